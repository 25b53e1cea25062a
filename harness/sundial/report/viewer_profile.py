# SPDX-License-Identifier: Apache-2.0
"""The files that `sundial wireshark install` writes: a script for extcap, a loader of dissectors, a profile. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from sundial.report import viewer

MARK = "Written by `sundial wireshark install`; `sundial wireshark uninstall` removes it."
"""Every file has it, so that no other file is removed."""
PROFILE, EXTCAP, LOADER = "Sundial", "sundial", "sundial.lua"
_COLOURS = (
    # Name, display filter, background and text, 16 bits each.
    ("Lost or dropped", 'frame.comment matches "^(lost|dropped):"', (64250, 50886, 55769), (24672, 0, 12336)),
    ("Corrupted", 'frame.comment matches "^corrupted:"', (65021, 58339, 46774), (24672, 12336, 0)),
    ("Duplicated", 'frame.comment matches "^duplicated:"', (58339, 54998, 64250), (16448, 8224, 28784)),
    ("Collided", 'frame.comment matches "^collision:"', (64764, 61680, 50372), (20560, 16448, 0)),
    ("Retransmission of TCP", "tcp.analysis.retransmission", (54998, 59367, 64250), (0, 16448, 32896)),
    ("Retransmission of MBCF", "mbcf.flags.retx == 1", (54998, 59367, 64250), (0, 16448, 32896)),
)


def profile(columns: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The files of the profile by name: columns as `sundial open` has them, preferences, ports, and rules that colour
    frames by what became of them."""
    shown = ",\n\t".join(f'"{title}", "{field}"' for title, field in columns)
    preferences = [f"gui.column.format: \n\t{shown}"]
    preferences += [": ".join(each.split(":", 1)) for each in viewer.PREFERENCES]
    ports = [f"decode_as_entry: tcp.port,{port},(none),{name}" for port, name in sorted(viewer.usual_ports().items())]
    return {
        "preferences": _file("#", preferences),
        "colorfilters": _file("#", [_rule(*each) for each in _COLOURS]),
        "decode_as_entries": _file("#", ports),
        "heuristic_protos": _file("#", [f"{name},0" for name in viewer.FOREIGN]),
        "protobuf_search_paths": _file("#", [f'"{folder}","TRUE"' for folder in viewer.message_folders()]),
    }


def _rule(name: str, shown: str, background: tuple[int, int, int], text: tuple[int, int, int]) -> str:
    colours = "][".join(",".join(map(str, colour)) for colour in (background, text))
    return f"@{name}@{shown}@[{colours}]"


def extcap_script(launcher: Path) -> str:
    """The program that Wireshark starts to list and read interfaces."""
    return f'#!/bin/sh\n# {MARK}\nexec {shlex.quote(str(launcher))} wireshark extcap "$@"\n'


def loader(dissectors: Sequence[Path]) -> str:
    """The script in Lua that loads the dissectors from where they are."""
    names = "".join(f"dofile({_lua_text(path)})\n" for path in dissectors)
    return f"-- {MARK}\n{names}"


def _lua_text(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _file(comment: str, lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in (f"{comment} {MARK}", *lines))


def folders(listed: str) -> dict[str, Path]:
    """Folders by name, from what `tshark -G folders` prints."""
    found: Mapping[str, Path] = {
        name.strip(): Path(path.strip())
        for name, colon, path in (line.partition(":") for line in listed.splitlines())
        if colon and path.strip()
    }
    return dict(found)


def places(listed: Mapping[str, Path]) -> dict[str, Path] | None:
    """Where the files belong: `extcap`, `loader` and `profile`; None if a folder is not listed. Before Wireshark 4.2
    there is no folder for a user's own programs of extcap, so it is that of the system."""
    extcap = listed.get("Personal Extcap path", listed.get("Extcap path"))
    scripts, configuration = listed.get("Personal Lua Plugins"), listed.get("Personal configuration")
    if extcap is None or scripts is None or configuration is None:
        return None
    return {"extcap": extcap / EXTCAP, "loader": scripts / LOADER, "profile": configuration / "profiles" / PROFILE}
