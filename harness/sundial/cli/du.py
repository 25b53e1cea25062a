# SPDX-License-Identifier: Apache-2.0
"""`sundial du`: what takes how much of the disk."""

from __future__ import annotations

import click

from sundial.cli import rooms
from sundial.cli.talk import Verb, as_json, in_bytes, print_json, print_table


@click.command(cls=Verb)
@as_json
def du(as_json: bool) -> None:
    """Show what of Sundial takes how much of the disk, and how to free it.

    \b
    sundial du
    sundial du --json
    """
    rows = rooms.usage()
    if as_json:
        print_json(
            [
                {
                    "what": row.what,
                    "count": row.count,
                    "bytes": row.bytes,
                    "places": [str(place) for place in row.places],
                    "free": row.free or None,
                }
                for row in rows
            ]
        )
        return
    shown = [["WHAT", "COUNT", "SIZE", "TO FREE IT"]]
    for row in rows:
        if row.bytes:
            shown.append([row.what, "-" if row.count is None else str(row.count), in_bytes(row.bytes), row.free or "-"])
    total = sum(row.bytes for row in rows)
    print_table([*shown, ["total", "-", in_bytes(total), "-"]])
