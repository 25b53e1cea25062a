# SPDX-License-Identifier: Apache-2.0
"""Runs made by hand whose bytes are those that two programs said to each other (`recorded`)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from sundial.expect import http2
from sundial.expect.http2 import Frame, Type
from sundial.observe import open_run, read_frames
from sundial.observe.octets import octets_of
from sundial.verify.corruption import with_corrupted
from sundial.verify.frames import with_places
from sundial.verify.headers.ports import ports_of
from sundial.verify.samples import load_samples
from sundial.verify.unsent import unsent
from sundial.verify.workload import Settled
from sundial.workloads import functions
from sundial.workloads.grpc.expect_languages import PYTHON, Language
from sundial.workloads.grpc.verify import KIND
from tests.verify.bed import ACK, CLIENT, FIN, SERVER, Bed, Stream
from tests.verify.seal import seal

RECORDED = Path(__file__).parent / "recorded"
CALLS = 5
AUTHORITY = "127.0.0.1:50051"
PORT, CLIENT_PORT = 50051, 40_000
NAMES = tuple(name for name in functions.NAMES for _ in range(CALLS))
MSS = 1448


def recorded(version: str, end: str) -> bytes:
    """All octets of an end. `version`: of the library, with `-cpp` behind it of the programs in C++."""
    return gzip.decompress((RECORDED / f"{version}.{end}.gz").read_bytes())


def turns(version: str, end: str) -> list[list[Frame]]:
    """What opens an end's stream, then what each call made it say. The authority is that of the bed."""
    octets = recorded(version, end)
    if end == "client":
        octets = octets[len(http2.PREFACE) :]
    found: list[list[Frame]] = [[]]
    seen: set[int] = set()
    for _, frame in http2.frames(octets):
        frame = replace(frame, payload=frame.payload.replace(_string(AUTHORITY), _string(f"{SERVER}:{PORT}")))
        if frame.type == Type.HEADERS and frame.stream not in seen:
            seen.add(frame.stream)
            found.append([])
        found[-1].append(frame)
    return found


def _string(text: str) -> bytes:
    """As HPACK writes it."""
    return bytes((len(text),)) + text.encode()


def octets_of_turn(frames: Sequence[Frame]) -> bytes:
    return b"".join(frame.octets for frame in frames)


@dataclass
class Dialogue:
    """What was said, for tests to change before it is written: a turn for what opens, then one for each call."""

    version: str = "1.51.1"
    language: Language = PYTHON
    said: dict[str, list[list[Frame]]] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=lambda: dict.fromkeys(functions.NAMES, CALLS))
    lose: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    """Segments that are lost, by end and turn."""
    apart: int | None = None
    """Call whose request's first frame has a segment to itself."""
    clock: str = "virtual"
    refused: int | None = None
    """The port of an attempt before the server listens."""
    stop: int | None = None
    """Call whose reply is not said: the server has ended."""
    die_call: int | None = None
    """What the server's job says."""
    limit_ms: int = 25_000
    retransmits: int | None = 0
    switches: int = CALLS
    """Of the first batch."""
    server_port: int = PORT
    """As the first batch says it."""
    switched: dict[str, int] = field(default_factory=dict)
    """Of the server, where it is not one for each call."""
    client_ports: dict[int, int | None] = field(default_factory=dict)
    """What batches say, by their number, where it is not the connection's."""

    def __post_init__(self) -> None:
        self.said = {end: turns(self.recording, end) for end in ("client", "server")}
        self.row: dict[int, dict[str, Any]] = {
            number: {"xid": 2 * number + 1, "ok": 1, "error": None} for number in range(len(NAMES))
        }

    @property
    def recording(self) -> str:
        return self.version if self.language is PYTHON else f"{self.version}-{self.language.name}"

    def write(self, directory: Path) -> Path:
        """The run's folder."""
        bed = Bed(directory / "run", clock=self.clock)
        if self.refused is not None:
            Stream(bed, self.refused, PORT, {CLIENT: 50, SERVER: 0}).refuse()
        stream = Stream(bed, CLIENT_PORT, PORT, {CLIENT: 1000, SERVER: 5000})
        stream.open()
        opening = {end: self.said[end][0] for end in self.said}
        self._say(stream, CLIENT, http2.PREFACE + octets_of_turn(opening["client"][:1]), ("client", -1))
        self._say(stream, SERVER, octets_of_turn(opening["server"]), ("server", -1))
        times: list[tuple[int, int]] = []
        for number in range(len(NAMES)):
            start = bed.now - 1
            if self.stop is not None and number > self.stop:
                times.append((start + 1, start + 2))
                bed.now += 10
                continue
            first = opening["client"][1:] if not number else []
            request = [*first, *self.said["client"][number + 1]]
            if number == self.apart:
                self._say(stream, CLIENT, octets_of_turn(request[:1]), ("client", number))
                request = request[1:]
            self._say(stream, CLIENT, octets_of_turn(request), ("client", number))
            if number == self.stop:
                self._end(stream, 2 * number + 1)
            else:
                self._say(stream, SERVER, octets_of_turn(self.said["server"][number + 1]), ("server", number))
            times.append((start, bed.now))
        if self.stop is None:
            stream.close()
        self._samples(bed, times)
        bed.write()
        self._jobs(bed.directory)
        return seal(bed.directory)

    def _say(self, stream: Stream, end: str, octets: bytes, place: tuple[str, int]) -> None:
        if octets:
            cuts = [len(octets[at : at + MSS]) for at in range(0, len(octets), MSS)]
            stream.write(end, octets, cuts, self.lose.get(place, ()))

    @staticmethod
    def _end(stream: Stream, number: int) -> None:
        """The server's process is killed: its kernel ends the connection, and the client gives the stream up."""
        stream.bed.send(SERVER, [stream.frame(SERVER, FIN | ACK, stream.sent[SERVER])])
        stream.write(CLIENT, http2.rst_stream(number, 7).octets, [13])

    def _samples(self, bed: Bed, times: Sequence[tuple[int, int]]) -> None:
        for first in range(0, len(NAMES), CALLS):
            function = functions.BY_NAME[NAMES[first]]
            bed.batch(self.language.client, "grpc", function.size, PORT, CLIENT_PORT, function.name)
            head = json.loads(bed.lines[-1])
            head["server_port"] = PORT if first else self.server_port
            head["client_port"] = self.client_ports.get(first // CALLS, CLIENT_PORT)
            head |= {
                "context_switches": CALLS if first else self.switches,
                "language": self.language.name,
                "function": function.number,
                "tcp_retransmits": self.retransmits if not first else 0,
            }
            bed.lines[-1] = json.dumps(head)
            for call in range(CALLS):
                start, end = times[first + call]
                row = self.row[first + call]
                begin, over = row.get("start", start) - row.get("back", 0), row.get("end", end)
                bed.lines.append(json.dumps([call, begin, over, row["ok"], 0, row["xid"], row["error"]]))

    def _jobs(self, directory: Path) -> None:
        options = {
            "server": SERVER, "port": PORT, "total_timeout_ms": self.limit_ms, "functions": list(functions.NAMES),
            "calls": CALLS, "warmup": 0,
        }  # fmt: skip
        step = {"app": self.language.client, "options": options}
        serving = {"port": PORT} | ({} if self.die_call is None else {"die_call": self.die_call})
        service = {"app": self.language.server, "options": serving}
        for name, job in (("client", {"steps": [step]}), ("server", {"services": [service]})):
            (directory / "nodes" / name).mkdir(exist_ok=True)
            (directory / "nodes" / name / "job.json").write_text(json.dumps(job))
        line = {
            "type": "counters", "app": self.language.server, "port": PORT, "calls": sum(self.counted.values()),
            "by_function": self.counted, "failed": 0,
            "context_switches": {name: count for name, count in self.counted.items() if count} | self.switched,
        }  # fmt: skip
        (directory / "nodes" / "server" / "samples.jsonl").write_text(f'{{"type":"hello"}}\n{json.dumps(line)}\n')


def settle(directory: Path) -> tuple[Settled, pl.DataFrame]:
    """What verification says of a run's folder, and its frames."""
    run = open_run(directory)
    files = [(run.path / name, name) for name in sorted(run.captures)]
    frames = with_places(read_frames(files, run.epoch_ns))
    frames = with_corrupted(frames, lambda rows: octets_of(rows, files))
    dropped = unsent(frames, ports_of(run), lambda rows: octets_of(rows, files))
    assert KIND.transport is not None
    return KIND.transport.settle(run, frames, load_samples(run), dropped.stretches), frames


def findings(settled: Settled) -> list[tuple[str, str, str]]:
    """Field, expected and seen of each."""
    return settled.findings.select("field", "expected", "seen").rows()
