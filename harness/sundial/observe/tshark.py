# SPDX-License-Identifier: Apache-2.0
"""tshark as a function from a capture file and a list of fields to a table of text."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sundial.errors import BadInput, HostLacks

AGGREGATOR = ","
"""Between the values of a field that occurs more than once in a frame, in either form of output."""


def dissect(
    path: Path,
    fields: Sequence[str],
    *,
    options: Sequence[str] = (),
    display_filter: str | None = None,
    whole: bool = False,
    name: Path | None = None,
) -> pl.DataFrame:
    """One row a frame, one text column a field; a field that a frame does not have is null.

    Fields are asked for as columns of the packet list, since tshark then builds only the part of its tree that they
    need and is twice as fast as with `-T fields`; bytes longer than 36 are abbreviated there. `whole` asks for all.
    `name` is the file to name in errors, if it is not `path`.
    """
    program = shutil.which("tshark")
    if program is None:
        raise HostLacks("tshark is not installed", hint="apt-get install tshark")
    command = [program, "-n", "-r", str(path)]
    if whole:
        command += ["-T", "fields", "-E", "separator=/t", "-E", f"aggregator={AGGREGATOR}"]
        command += [word for field in fields for word in ("-e", field)]
    else:
        columns = ",".join(f'"{place}","%Cus:{field}:0:U"' for place, field in enumerate(fields))
        command += ["-T", "tabs", "-o", f"gui.column.format:{columns}"]
    for option in options:
        command += option.split(" ", 1)
    if display_filter is not None:
        command += ["-Y", display_filter]
    with tempfile.TemporaryDirectory(prefix="sundial-tshark-") as empty:
        # A user's own preferences must not change what is found.
        environment = {**os.environ, "WIRESHARK_CONFIG_DIR": empty, "LC_ALL": "C.UTF-8"}
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
    if done.returncode != 0:
        reason = [line for line in done.stderr.decode(errors="replace").splitlines() if line.startswith("tshark:")]
        raise BadInput(
            (reason or ["tshark: failed"])[-1], file=str(name or path), allowed="a capture that tshark can read"
        )
    if not done.stdout:
        return pl.DataFrame(schema=dict.fromkeys(fields, pl.String))
    return pl.read_csv(
        io.BytesIO(done.stdout),
        separator="\t",
        has_header=False,
        new_columns=list(fields),
        schema=dict.fromkeys(fields, pl.String),
        quote_char=None,
    )
