# SPDX-License-Identifier: Apache-2.0
"""How Wireshark and tshark are to dissect a capture of Sundial: the words of the command line."""

from __future__ import annotations

import json
from pathlib import Path

from sundial.model.catalog import DISSECTORS, ROOT
from sundial.report.registry import CLIENTS

PREFERENCES = (
    "rpc.dissect_unknown_programs:TRUE",
    "tcp.relative_sequence_numbers:TRUE",
    # Otherwise the headers of HTTP/2 cannot be decoded behind a lost segment.
    "tcp.reassemble_out_of_order:TRUE",
    "nameres.mac_name:FALSE",
)
FOREIGN = ("wg",)
"""Heuristic dissectors that are not asked: the first request of DCE RPC without flags looks like WireGuard's data."""


def dissection(capture: Path) -> list[str]:
    """Dissectors, preferences and ports for a capture of a run, or a view of it."""
    return [*scripts(), *preferences(capture)]


def scripts() -> list[str]:
    """The dissectors in Lua."""
    return [part for path in DISSECTORS for part in ("-X", f"lua_script:{path}")]


def preferences(capture: Path) -> list[str]:
    """Preferences, and the ports of the capture's run."""
    words: list[str] = []
    for preference in PREFERENCES:
        words += ["-o", preference]
    # Where Wireshark finds the types of messages in protocol buffers.
    for folder in message_folders():
        words += ["-o", f'uat:protobuf_search_paths:"{folder}","TRUE"']
    for port, dissector in sorted(decoded(capture).items()):
        words += ["-d", f"tcp.port=={port},{dissector}"]
    for heuristic in FOREIGN:
        words += ["--disable-heuristic", heuristic]
    return words


def message_folders() -> list[Path]:
    """Where the descriptions of messages in protocol buffers are."""
    return sorted({path.parent for path in (ROOT / "guest-apps").glob("*/*.proto")})


def usual_ports() -> dict[int, str]:
    """The dissector of each port whose streams do not name it, unless a job says otherwise."""
    return {port: client.dissector for client in CLIENTS.values() for port in client.ports}


def decoded(capture: Path) -> dict[int, str]:
    """The dissector of each port whose streams do not name it: the usual ones, and those that clients of the run
    called."""
    found = usual_ports()
    folder = next((parent for parent in capture.parents if (parent / "nodes").is_dir()), None)
    for path in [] if folder is None else sorted((folder / "nodes").glob("*/job.json")):
        for step in json.loads(path.read_text()).get("steps", []):
            port, known = step.get("options", {}).get("port"), CLIENTS.get(step["app"])
            if known is not None and known.dissector and isinstance(port, int):
                found[port] = known.dissector
    return found
