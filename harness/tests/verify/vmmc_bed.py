# SPDX-License-Identifier: Apache-2.0
"""Runs over a backplane made by hand: two nodes whose packets are written one after the other, each where it leaves and
where it arrives. Nothing here that makes packets imports `sundial`."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path

from sundial.observe import open_run, read_frames
from sundial.verify.frames import with_places
from sundial.verify.samples import load_samples
from sundial.verify.workload import Settled, own_transports
from tests.verify.bed import EPOCH_NS, IN, OUT, Record, block, counters, option
from tests.verify.seal import seal

AU, DU, CONTROL, NACK = 1, 2, 3, 4
GAP, PAGE_END, FULL, TIMER, UNCOMBINED = 1, 2, 3, 4, 5
IMPORT, ANSWER, GONE, UNIMPORT = 1, 2, 3, 4
CLIENT, SERVER = 1, 2
FLIGHT_NS, STEP_NS = 4_250, 10_000
PORTS = ["client:vmmc0", "server:vmmc0"]
COLUMNS = ["call", "start", "end", "ok", "retransmits", "xid", "error"]
HEADER = struct.Struct("<BBBBHHIIIIII")


def control(
    kind: int, request: int = 0, name: str = "", key: int = 0, status: int = 0, export: int = 0, generation: int = 0,
    pages: int = 0, use: int = 0,
) -> bytes:  # fmt: skip
    return struct.pack("<IIQ32sIIIHH", kind, request, key, name.encode(), status, export, generation, pages, use)


def capture(records: list[Record]) -> bytes:
    """With the link type of backplanes."""
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in PORTS:
        described = option(2, name.encode()) + option(9, b"\x09") + option(0, b"")
        parts.append(block(1, struct.pack("<HHI", 148, 0, 0) + described))
    ordered = sorted(range(len(records)), key=lambda place: (records[place].at, place))
    return b"".join(parts + [records[place].block() for place in ordered])


@dataclass
class VmmcBed:
    """`now` moves on with each packet; a packet is in memory FLIGHT_NS later."""

    directory: Path
    now: int = 1_000_000
    records: list[Record] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    server_lines: list[str] = field(default_factory=list)
    options: dict[str, object] = field(default_factory=dict)
    """Of the client's only step."""
    sequence: dict[tuple[int, int], int] = field(default_factory=dict)
    requests: int = 0
    pairs: int = 0
    calls: int = 0

    def packet(
        self, kind: int, sender: int, receiver: int, data: bytes = b"", *, flags: int = 0, reason: int = 0,
        export: int = 0, generation: int = 0, offset: int = 0, count: int = 0, arrives: bool = True,
    ) -> int:  # fmt: skip
        """-> the place of its record."""
        number = self.sequence.get((sender, receiver), 0)
        self.sequence[sender, receiver] = number + 1
        whole = HEADER.pack(
            1, kind, flags, reason, sender, receiver, number, export, generation, offset, len(data), count
        ) + data  # fmt: skip
        self.records.append(Record(self.now, sender - 1, OUT, whole))
        if arrives:
            self.records.append(Record(self.now + FLIGHT_NS, receiver - 1, IN, whole))
        self.now += STEP_NS
        return len(self.records) - 1 - arrives

    def imported(
        self, importer: int, name: str, *, export: int, generation: int, pages: int, use: int = 0, key: int = 0
    ) -> tuple[int, int, int, int]:
        """A granted import, both of its messages -> (sender, receiver, export, generation)."""
        exporter = 3 - importer
        self.requests += 1
        self.packet(CONTROL, importer, exporter, control(IMPORT, self.requests, name, key))
        answer = control(ANSWER, self.requests, export=export, generation=generation, pages=pages, use=use)
        self.packet(CONTROL, exporter, importer, answer)
        return importer, exporter, export, generation

    def refused(self, importer: int, name: str, status: int) -> None:
        """One that is not granted."""
        self.requests += 1
        self.packet(CONTROL, importer, 3 - importer, control(IMPORT, self.requests, name))
        self.packet(CONTROL, 3 - importer, importer, control(ANSWER, self.requests, status=status))

    def store(
        self, stream: tuple[int, int, int, int], offset: int, data: bytes, *, reason: int = UNCOMBINED,
        stores: int | None = None, flags: int = 0,
    ) -> int:  # fmt: skip
        """One packet of automatic update."""
        sender, receiver, export, generation = stream
        count = -(-len(data) // 8) if stores is None else stores
        return self.packet(
            AU, sender, receiver, data, flags=flags, reason=reason, export=export, generation=generation, offset=offset,
            count=count,
        )  # fmt: skip

    def send(self, stream: tuple[int, int, int, int], offset: int, data: bytes, number: int, *, last: bool) -> int:
        """One packet of a deliberate update."""
        sender, receiver, export, generation = stream
        return self.packet(
            DU, sender, receiver, data, flags=2 if last else 0, export=export, generation=generation, offset=offset,
            count=number,
        )  # fmt: skip

    def pair(
        self, name: str, *, pages: int, task: int = 273, use: int = 0, hash_: int = 0, status: int = 0, notify: int = 0,
        made: int | None = None, welcomed: bool = True,
    ) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:  # fmt: skip
        """A client connects to what a server offers as `name` -> both imports' sender, receiver, export, generation.
        `made`: how many its program has made before; of programs whose tasks have one number these are alike."""
        self.pairs += 1
        own, key = f"client.{CLIENT}.{task}.{self.pairs if made is None else made}", 77 + self.pairs
        there = self.imported(CLIENT, name, export=self.pairs, generation=2 * self.pairs, pages=pages, use=use)
        hello = struct.pack("<QQ32sHHI5s3x", hash_, key, own.encode(), CLIENT, task, notify, b"hello")
        for at in range(0, len(hello), 8):
            self.store(there, at, hello[at : at + 8], flags=notify & 1)
        if not welcomed:
            return there, (0, 0, 0, 0)
        back = self.imported(
            SERVER, own, export=self.pairs, generation=2 * self.pairs + 1, pages=pages, use=use, key=key
        )
        self.store(back, 0, struct.pack("<4sI", b"come", status), flags=notify & 1)
        return there, back

    def batch(self, app: str, transport: str, procedure: str, size: int, **more: object) -> None:
        head = {
            "type": "batch", "step": 0, "app": app, "series": 0, "transport": transport, "procedure": procedure,
            "size": size, "thread": 0, "server": "2", "warmup": 0, "server_node": 2, "server_task": 288,
            "client_task": 273, "columns": COLUMNS, **more,
        }  # fmt: skip
        self.lines.append(json.dumps(head))
        self.calls = 0

    def sample(self, start: int, xid: int | None = None, ok: bool = True, error: str | None = None) -> None:
        self.lines.append(json.dumps([self.calls, start, self.now, int(ok), 0, xid, error]))
        self.calls += 1

    def write(self, app: str) -> Path:
        """Write the run directory; its client ran `app`."""
        wire = self.directory / "wire"
        wire.mkdir(parents=True)
        (wire / "backplane.pcapng").write_bytes(capture(self.records))
        (wire / "counters.json").write_text(counters({"backplane": (PORTS, self.records)}))
        for name, lines, job in (
            ("client", self.lines, {"node": 1, "steps": [{"app": app, "options": self.options}]}),
            ("server", self.server_lines, {"node": 2}),
        ):
            node = self.directory / "nodes" / name
            node.mkdir(parents=True)
            (node / "samples.jsonl").write_text(
                "\n".join(['{"type":"hello"}', *lines, '{"type":"done","status":0}', ""])
            )
            (node / "job.json").write_text(json.dumps(job))
        nodes = {
            name: {
                "zero_ns": 0,
                "interfaces": [
                    {"device": "vmmc0", "mac": f"02:53:44:00:00:{place:02x}", "segment": "backplane", "mtu": 1500}
                ],
            }
            for place, name in enumerate(("client", "server"), start=1)
        }
        document = {
            "version": 1, "status": "complete", "scenario": {"name": "test", "expect": {}}, "clock": "virtual",
            "epoch_ns": EPOCH_NS, "captures": {"wire/backplane.pcapng": ""}, "mtu": {"backplane": 1500},
            "nodes": nodes,
        }  # fmt: skip
        (self.directory / "run.json").write_text(json.dumps(document))
        return seal(self.directory)


def settled(directory: Path) -> Settled:
    """What verification of a backplane makes of a run, without what knows of its topology."""
    run = open_run(directory)
    frames = with_places(read_frames([(directory / name, name) for name in run.captures], run.epoch_ns))
    return own_transports()["vmmc"].settle(run, frames, load_samples(run), {})


def fields(found: Settled) -> list[str]:
    """Its findings; of unexplained packets `unexplained`."""
    return [*found.findings["field"], *{"unexplained"}.intersection(found.classes["class"])]
