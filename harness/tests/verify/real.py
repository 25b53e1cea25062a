# SPDX-License-Identifier: Apache-2.0
"""A run directory around the real captures in golden/, made there at both ends of a veth pair."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from tests.verify.bed import CLIENT, IN, MAC, OUT, SERVER, Record, capture, counters
from tests.verify.seal import seal

GOLDEN = Path(__file__).parent / "golden"

JOBS = {
    "client": {
        "steps": [
            {"app": "echo-client", "options": {}},
            {"app": "echo-client", "options": {}},
            {"app": "echo-client", "options": {"send_buffer": 4000}},
            {"app": "echo-client", "options": {"auth": "sys", "auth_machine": "vm"}},
        ]
    }
}


def frames(path: Path) -> list[tuple[int, bytes]]:
    """(ns since 1970, bytes) of each enhanced packet block; dumpcap writes ns and little-endian here."""
    data, offset, found = path.read_bytes(), 0, []
    while offset < len(data):
        kind, total = struct.unpack_from("<II", data, offset)
        if kind == 6:
            high, low, captured = struct.unpack_from("<III", data, offset + 12)
            found.append((high << 32 | low, data[offset + 28 : offset + 28 + captured]))
        offset += total
    return found


def write_run(directory: Path) -> Path:
    """The directory that a run with these captures would have left."""
    ends = [frames(GOLDEN / f"run.{name}.pcapng") for name in ("client", "server")]
    zero = min(at for end in ends for at, _ in end)
    own = (MAC[CLIENT], MAC[SERVER])
    records = [
        Record(at - zero, place, OUT if data[6:12] == own[place] else IN, data)
        for place, end in enumerate(ends)
        for at, data in end
    ]
    wire, node = directory / "wire", directory / "nodes" / "client"
    wire.mkdir(parents=True)
    node.mkdir(parents=True)
    (wire / "lan.pcapng").write_bytes(capture(["client:eth0", "server:eth0", "lan:fate"], records))
    (wire / "counters.json").write_text(counters({"lan": (["client:eth0", "server:eth0"], records)}))
    (node / "samples.jsonl").write_bytes((GOLDEN / "run.jsonl").read_bytes())
    (node / "job.json").write_text(json.dumps(JOBS["client"]))
    nodes = {
        name: {
            "zero_ns": zero,
            "interfaces": [
                {"device": "eth0", "mac": MAC[here].hex(":"), "address": f"{here}/24", "segment": "lan", "mtu": 1500}
            ],
        }
        for name, here in (("client", CLIENT), ("server", SERVER))
    }
    document = {"version": 1, "scenario": {"name": "golden"}, "clock": "real", "captures": {}, "nodes": nodes}
    (directory / "run.json").write_text(json.dumps(document))
    return seal(directory)
