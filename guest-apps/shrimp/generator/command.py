# SPDX-License-Identifier: Apache-2.0
"""The command: reads one file and writes three."""

from __future__ import annotations

import argparse
from pathlib import Path

from .emit import client_source, header, server_source
from .language import Refused, parse


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="shrimpgen", description="Stubs of ShrimpRPC for the interface in FILE.x.")
    parser.add_argument("file", metavar="FILE.x", type=Path)
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path(), help="where the files go (here)")
    options = parser.parse_args(words)
    path: Path = options.file
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "not UTF-8"
        parser.exit(2, f"{path}: {reason}\n")
    if not path.stem.isidentifier() or not path.stem.isascii():
        parser.exit(2, f"{path}: the file's name becomes one of C: letters, digits and _, then .x\n")
    try:
        program = parse(text)
    except Refused as refusal:
        parser.exit(2, f"{path}:{refusal.line}: {refusal}\n")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for ending, source in (
            (".h", header(path.stem, program)),
            ("_client.c", client_source(path.stem, program)),
            ("_server.c", server_source(path.stem, program)),
        ):
            (options.out / f"{path.stem}_shrimp{ending}").write_text(source, encoding="utf-8")
    except OSError as failure:
        parser.exit(2, f"{options.out}: {failure.strerror}\n")
    return 0
