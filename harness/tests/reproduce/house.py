# SPDX-License-Identifier: Apache-2.0
"""Runs that were never made: directories as a run leaves them, with times and frames that are known beforehand."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from sundial import EPOCH_NS
from sundial.errors import RunFailed
from sundial.observe import SAMPLE_COLUMNS
from sundial.plan.build import plan_run
from sundial.plan.paths import RunPaths
from sundial.plan.request import Progress, RunRequest, RunResult
from sundial.reproduce.runs import Doors

CLIENT_MAC, SERVER_MAC = bytes.fromhex("025344000001"), bytes.fromhex("025344000002")
CABLE_NS = 1000
INSTRUCTIONS = {"linux": (17_000, 16_000), "ssscore": (1_500, 1_000)}
"""Of each end, by the client's image."""
GAP_NS = 100_000


@dataclass
class House:
    """The doors of a reproduction, without machines behind them."""

    broken: frozenset[str] = frozenset()
    """Runs that fail."""
    mismatched: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)

    def doors(self) -> Doors:
        return Doors(self.run, self.verify, self.report, self.pin_images)

    def pin_images(self, folder: Path, progress: Progress) -> dict[str, dict[str, str]]:
        folder.mkdir()
        return {name: {"kernel": "1" * 64, "initrd": "2" * 64} for name in INSTRUCTIONS}

    def run(self, request: RunRequest, progress: Progress) -> RunResult:
        assert request.out is not None
        assert request.images is not None
        assert request.images.is_dir()
        self.asked.append(request.out.name)
        if request.out.name in self.broken:
            raise RunFailed("its kernel panicked: PANIC: no memory", machine="server")
        _make(request, request.out)
        return RunResult(request.out, 1, 1.0)

    def verify(self, path: Path) -> Mapping[str, Any]:
        return {"verdict": "fail" if path.name in self.mismatched else "pass", "calls": 5, "mismatches": 0}

    def report(self, path: Path) -> None:
        self.reported.append(path.name)


def _make(request: RunRequest, out: Path) -> None:
    experiment = request.experiment
    plan = plan_run(experiment, RunPaths(Path("/w"), Path("/s"), Path("/m")))
    (out / "wire").mkdir(parents=True)
    run = {
        "topology": experiment.topology_json(),
        "scenario": experiment.scenario_json(),
        "nodes": {
            node.name: {"interfaces": [{"device": nic.device, "mac": nic.mac} for nic in node.nics]}
            for node in experiment.network.nodes
        },
        "epoch_ns": EPOCH_NS,
    }
    (out / "run.json").write_text(json.dumps(run))
    for name, job in plan.jobs.items():
        (out / "nodes" / name).mkdir(parents=True)
        (out / "nodes" / name / "job.json").write_text(json.dumps(job.document()))
    calls = _Calls(experiment.network.node("server").image, run["topology"])
    for name, job in plan.jobs.items():
        for number, step in enumerate(job.document()["steps"]):
            calls.step(name, number, step)
    counters = {"type": "counters", "app": "echo-server", "executed": len(calls.rows)}
    (out / "nodes" / "server" / "samples.jsonl").write_text(
        '{"type":"hello"}\n' + _line({**counters, "executed": 1}) + _line(counters)
    )
    pl.DataFrame(calls.rows, schema=SAMPLE_COLUMNS, orient="row").write_parquet(out / "samples.parquet")
    (out / "wire" / "lan.pcapng").write_bytes(_pcapng(calls.frames))


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


class _Calls:
    """One call after the other: client, wire, server, wire, client."""

    def __init__(self, image: str, topology: Mapping[str, Any]) -> None:
        segment = next(iter(topology["segments"].values()))
        self.ns_a_byte = 800 if segment["rate"] == "10 Mbit/s" else 80
        self.instruction_ns = float(1000 / Decimal(str(topology["defaults"]["mips"])))
        self.image = image
        self.now = 1_000_000
        self.rows: list[tuple[Any, ...]] = []
        self.frames: list[tuple[int, int, bytes]] = []

    def step(self, client: str, number: int, step: Mapping[str, Any]) -> None:
        options = step["options"]
        streaming = options.get("mode") == "stream"
        for size in options["sizes"]:
            for call in range(options["warmup"] + options["calls"]):
                self._call(client, number, options, size, call, streaming=streaming)
            self.now += GAP_NS

    def _call(
        self, client: str, step: int, options: Mapping[str, Any], size: int, call: int, *, streaming: bool
    ) -> None:
        begin = self.now
        client_ns, server_ns = (int(count * self.instruction_ns) for count in INSTRUCTIONS[self.image])
        if streaming:
            self.now = self._frame(CLIENT_MAC, SERVER_MAC, begin, size)
        else:
            arrived = self._frame(CLIENT_MAC, SERVER_MAC, begin + client_ns // 2, size)
            answered = self._frame(SERVER_MAC, CLIENT_MAC, arrived + server_ns, size)
            self.now = answered + client_ns - client_ns // 2
        transport = options.get("transport", "mbcf")
        procedure = options.get("procedure") or options.get("operation")
        warm = call < options["warmup"]
        self.rows.append(
            ("s", 0, client, "server", transport, "app", procedure, size, 0, call, warm, begin, self.now,
             self.now - begin, call, True, 0, None, "", "", 0, 0, step, step)
        )  # fmt: skip
        self.now += 0 if streaming else GAP_NS

    def _frame(self, source: bytes, target: bytes, at_ns: int, size: int) -> int:
        """Both sights of one frame; when it has arrived."""
        packet = target + source + b"\x88\xb6" + len(self.frames).to_bytes(48) + bytes(size)
        packet = packet.ljust(60, b"\0")
        arrival = at_ns + (len(packet) + 12) * self.ns_a_byte + CABLE_NS
        sender = int(source == SERVER_MAC)
        self.frames += [(at_ns, sender, packet), (arrival, 1 - sender, packet)]
        return arrival


def _pcapng(frames: list[tuple[int, int, bytes]]) -> bytes:
    out = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in (b"client:eth0", b"server:eth0", b"lan:fate"):
        options = _option(2, name) + _option(9, b"\x09") + bytes(4)
        out.append(_block(1, struct.pack("<HHI", 1, 0, 0) + options))
    for at_ns, interface, packet in sorted(frames, key=lambda frame: frame[0]):
        stamp = at_ns + EPOCH_NS
        head = struct.pack("<IIIII", interface, stamp >> 32, stamp & 0xFFFFFFFF, len(packet), len(packet))
        out.append(_block(6, head + packet.ljust(-(-len(packet) // 4) * 4, b"\0")))
    return b"".join(out)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value.ljust(-(-len(value) // 4) * 4, b"\0")


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
