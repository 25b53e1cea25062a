# SPDX-License-Identifier: Apache-2.0
"""Runs that were never made: directories as a run leaves them, with times and frames that are known beforehand."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
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
from sundial.reproduce.worker import Makers, Making, OneByOne

CABLE_NS = 1000
INSTRUCTIONS = {"linux": (17_000, 16_000), "ssscore": (1_500, 1_000)}
"""Of each end, by the client's image."""
GAP_NS = 100_000
STREAM = {
    "type": "iperf3",
    "result": {"end": {"sum_sent": {"retransmits": 3}, "sum_received": {"bits_per_second": 8e6}}},
}
"""What iperf3 reports, as far as it is read."""


@dataclass
class House:
    """The doors of a reproduction, without machines behind them."""

    broken: frozenset[str] = frozenset()
    """Runs that fail."""
    mismatched: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)
    requests: list[RunRequest] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    pinned: list[list[str]] = field(default_factory=list)
    """Images that runs wanted beside the usual ones."""

    @property
    def making(self) -> Making:
        return Making(self.run, self.verify, self.report)

    def doors(self, makers: Makers | None = None) -> Doors:
        return Doors(makers or (lambda progress: nullcontext(OneByOne(self.making))), self.pin_images)

    def pin_images(self, folder: Path, progress: Progress, names: Iterable[str] | None) -> dict[str, dict[str, str]]:
        if names is not None:
            self.pinned.append(list(names))
            return {name: {"kernel": "1" * 64, "initrd": "2" * 64} for name in self.pinned[-1]}
        folder.mkdir()
        return {name: {"kernel": "1" * 64, "initrd": "2" * 64} for name in INSTRUCTIONS}

    def run(self, request: RunRequest, progress: Progress) -> RunResult:
        assert request.out is not None
        assert request.images is not None
        assert request.images.is_dir()
        name = _name(request.command)
        self.asked.append(name)
        self.requests.append(request)
        if name in self.broken:
            raise RunFailed("its kernel panicked: PANIC: no memory", machine="server")
        _make(request, request.out)
        return RunResult(request.out, 1, 1.0)

    def verify(self, path: Path) -> Mapping[str, Any]:
        name = _name(json.loads((path / "run.json").read_bytes())["command"])
        return {"verdict": "fail" if name in self.mismatched else "pass", "calls": 5, "mismatches": 0}

    def report(self, path: Path, *, drawn: bool = False) -> None:
        assert not drawn
        self.reported.append(path.name)


def _name(command: Sequence[str]) -> str:
    """Of a run, by the file that it is made from."""
    return Path(command[2]).stem


def _make(request: RunRequest, out: Path) -> None:
    experiment = request.experiment
    plan = plan_run(experiment, RunPaths(Path("/w"), Path("/s"), Path("/m")))
    (out / "wire").mkdir(parents=True)
    nodes = experiment.network.nodes
    run = {
        "command": ["sundial", "run", _name(request.command)],
        "images": {},
        "versions": {},
        "topology": experiment.topology_json(),
        "scenario": experiment.scenario_json(),
        "nodes": {
            node.name: {
                "interfaces": [
                    {"device": nic.device, "mac": nic.mac, "address": str(nic.address.ip if nic.address else ""),
                     "segment": nic.segment, "mtu": nic.mtu} for nic in node.nics
                ]
            }
            for node in nodes
        },
        "epoch_ns": EPOCH_NS,
    }  # fmt: skip
    (out / "run.json").write_text(json.dumps(run))
    for name, job in plan.jobs.items():
        (out / "nodes" / name).mkdir(parents=True)
        (out / "nodes" / name / "job.json").write_text(json.dumps(job.document()))
    calls = _Calls({node.name: Station(node.image, node.nics[0].mac, float(1000 / node.mips)) for node in nodes},
                   run["topology"])  # fmt: skip
    streams = []
    for name, job in plan.jobs.items():
        for number, step in enumerate(job.document()["steps"]):
            if "sizes" in step["options"]:
                calls.step(name, number, step)
            else:
                streams.append(_line(STREAM))
    counters = {"type": "counters", "app": "echo-server", "executed": len(calls.rows)}
    (out / "nodes" / "server" / "samples.jsonl").write_text(
        '{"type":"hello"}\n' + _line({**counters, "executed": 1}) + _line(counters)
    )
    with (out / "nodes" / next(iter(plan.jobs)) / "samples.jsonl").open("a") as reported:
        reported.writelines(streams)
    pl.DataFrame(calls.rows, schema=SAMPLE_COLUMNS, orient="row").write_parquet(out / "samples.parquet")
    counted = {}
    for segment in run["topology"]["segments"]:
        ends = [nic.end for node in nodes for nic in node.nics if nic.segment == segment]
        (out / "wire" / f"{segment}.pcapng").write_bytes(_pcapng(segment, ends, calls.frames))
        counted[segment] = {"ports": {end: {"tx_pdus": 7, "tx_cells": 21, "dropped": {}} for end in ends}}
    (out / "wire" / "counters.json").write_text(json.dumps({"segments": counted}))


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


@dataclass(frozen=True)
class Station:
    """One machine."""

    image: str
    mac: str
    instruction_ns: float

    @property
    def octets(self) -> bytes:
        return bytes.fromhex(self.mac.replace(":", ""))


class _Calls:
    """One call after the other: client, wire, server, wire, client."""

    def __init__(self, stations: Mapping[str, Station], topology: Mapping[str, Any]) -> None:
        rates = [segment.get("rate") for segment in topology["segments"].values()]
        self.ns_a_byte = 800 if "10 Mbit/s" in rates else 80
        self.stations = stations
        self.now = 1_000_000
        self.batch = 0
        """Calls of one size, one after another."""
        self.rows: list[tuple[Any, ...]] = []
        self.frames: list[tuple[int, str, bytes]] = []
        """When, at which machine, what."""

    def step(self, client: str, number: int, step: Mapping[str, Any]) -> None:
        options = step["options"]
        streaming = options.get("mode") == "stream"
        for size in options["sizes"]:
            for call in range(options["warmup"] + options["calls"]):
                self._call(client, number, step["app"], options, size, call, streaming=streaming)
            self.now += GAP_NS
            self.batch += 1

    def _call(
        self, client: str, step: int, app: str, options: Mapping[str, Any], size: int, call: int, *, streaming: bool
    ) -> None:
        begin = self.now
        server = "client" if client == "server" else "server"
        # What is behind the server's address says how many instructions an end takes.
        counts = INSTRUCTIONS[self.stations[server].image]
        client_ns, server_ns = (
            int(count * self.stations[name].instruction_ns)
            for count, name in zip(counts, (client, server), strict=True)
        )
        if streaming:
            self.now = self._frame(client, server, begin, size)
        else:
            arrived = self._frame(client, server, begin + client_ns // 2, size)
            answered = self._frame(server, client, arrived + server_ns, size)
            self.now = answered + client_ns - client_ns // 2
        transport = options.get("transport", "mbcf")
        procedure = options.get("procedure") or options.get("operation") or "echo"
        warm = call < options["warmup"]
        self.rows.append(
            ("s", options.get("series", 0), client, server, transport, app, procedure, size, 0, call, warm, begin,
             self.now, self.now - begin, call, True, 0, None, "", "", 0, 0, self.batch, step)
        )  # fmt: skip
        self.now += 0 if streaming else GAP_NS

    def _frame(self, sender: str, receiver: str, at_ns: int, size: int) -> int:
        """Both sights of one frame; when it has arrived."""
        ends = self.stations[receiver].octets + self.stations[sender].octets
        packet = (ends + b"\x88\xb6" + len(self.frames).to_bytes(48) + bytes(size)).ljust(60, b"\0")
        arrival = at_ns + (len(packet) + 12) * self.ns_a_byte + CABLE_NS
        self.frames += [(at_ns, sender, packet), (arrival, receiver, packet)]
        return arrival


def _pcapng(segment: str, ends: Sequence[str], frames: Sequence[tuple[int, str, bytes]]) -> bytes:
    """What was seen at the ports of one segment."""
    out = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in (*ends, f"{segment}:fate"):
        options = _option(2, name.encode()) + _option(9, b"\x09") + bytes(4)
        out.append(_block(1, struct.pack("<HHI", 1, 0, 0) + options))
    places = {end.partition(":")[0]: number for number, end in enumerate(ends)}
    for at_ns, machine, packet in sorted(frames, key=lambda frame: frame[0]):
        if machine in places:
            stamp = at_ns + EPOCH_NS
            head = struct.pack("<IIIII", places[machine], stamp >> 32, stamp & 0xFFFFFFFF, len(packet), len(packet))
            out.append(_block(6, head + packet.ljust(-(-len(packet) // 4) * 4, b"\0")))
    return b"".join(out)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value.ljust(-(-len(value) // 4) * 4, b"\0")


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length
