# SPDX-License-Identifier: Apache-2.0
"""The files of mbcf/ use only those below them (mbcf/README.md, "Files"): measured from their objects, ...-NAME.o."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ORDER = (
    ("pool",), ("fifo",), ("channel",), ("acks",), ("epochs",), ("receive",), ("connection", "tasks"), ("operation",),
    ("execute", "operate", "inspect"), ("mbcf",),
)  # fmt: skip
UPWARDS = {"mbcf_channel_event"}


def main(objects: list[Path]) -> None:
    """Leaves with a message for each use of a file that is not below."""
    rank = {name: number for number, names in enumerate(ORDER) for name in names}
    home: dict[str, str] = {}
    used: dict[str, set[str]] = {}
    for path in objects:
        name = path.stem.rpartition("-")[2]
        symbols = subprocess.run(["gcc-nm", "-P", path], capture_output=True, text=True, check=True).stdout
        for symbol, kind, *_ in map(str.split, symbols.splitlines()):
            if kind == "U":
                used.setdefault(name, set()).add(symbol)
            else:
                home[symbol] = name
    wrong = [
        f"{name}.c uses {symbol} of {home[symbol]}.c"
        for name, symbols in used.items()
        for symbol in sorted(symbols - UPWARDS)
        if home.get(symbol, name) != name and rank[home[symbol]] >= rank[name]
    ]
    if wrong or set(home.values()) != set(rank):
        raise SystemExit("\n".join(wrong) or f"the files are not those of {ORDER}")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
