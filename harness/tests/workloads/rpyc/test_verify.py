# SPDX-License-Identifier: Apache-2.0
"""Verification of connections: what the library has said, in frames made by hand, and damages, each one mismatch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from sundial.observe import open_run, read_frames
from sundial.observe.octets import octets_of
from sundial.verify.corruption import intact, with_corrupted
from sundial.verify.frames import with_places
from sundial.verify.headers.ports import ports_of
from sundial.verify.samples import load_samples
from sundial.verify.unsent import unsent
from sundial.verify.workload import Settled
from sundial.workloads.functions import FUNCTIONS
from sundial.workloads.rpyc.expect_brine import Handler, Kind, frames, unpack
from sundial.workloads.rpyc.expect_sides import Called
from sundial.workloads.rpyc.verify import KIND
from sundial.workloads.rpyc.verify_names import Service, check_counters
from tests.verify.bed import CLIENT, RST, SERVER, Bed, Stream
from tests.workloads.rpyc.spoken import CALLS, calls, events, replay

PORT, CLIENT_PORT, MSS = 18861, 40_000, 1448
NAME = "5.3.0-list-zip"
Order = list[tuple[bool, bytes]]


@dataclass
class Spoken:
    """A run of one connection whose messages are those of a recording."""

    folder: Path
    name: str = NAME
    order: Order = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    counters: list[dict[str, Any]] = field(default_factory=list)
    lose: tuple[int, ...] = ()
    """Places of messages whose first segment is lost."""
    die_call: int | None = None
    """What the server's job says."""
    ended_by: str = CLIENT
    reset: bool = False
    """The server's kernel resets the connection, as it does where a program has not read all."""
    mtu: int = 1500
    """Of the client's interface."""
    room: int = MSS
    """In each of the client's segments."""
    clock: str = "virtual"
    refused: int | None = None
    """The port of an attempt before the server listens."""

    def __post_init__(self) -> None:
        library, container, variant = self.name.split("-")
        self.order = events(self.name)
        found = replay(self.name)
        for planned, batch in zip(calls(container, variant), found.client.batches, strict=True):
            function = planned.function
            line = {
                "type": "batch", "step": 0, "app": "rpyc-client", "series": 0, "transport": "rpyc",
                "procedure": function.name, "size": function.size, "thread": 0, "server": SERVER, "server_port": PORT,
                "client_port": CLIENT_PORT, "warmup": 1, "tcp_retransmits": 0, "function": function.number,
                "library": library, "tcp_nodelay": False, "exchanges": batch.end_number - batch.first_number,
                "context_switches": CALLS,
                "columns": ["call", "start", "end", "ok", "retransmits", "xid", "error"],
            }  # fmt: skip
            line |= {"container": container} if function.contains else {}
            line |= {"variant": variant} if function.name == "distance" else {}
            self.batches.append(line)
        self.called = [called for batch in found.client.batches for called in batch.calls]
        self.rows = [[number % CALLS, 0, 0, 1, 0, each.number, None] for number, each in enumerate(self.called)]
        count = dict.fromkeys((each.name for each in FUNCTIONS), CALLS)
        self.counters = [{"type": "counters", "app": "rpyc-server", "port": PORT, "calls": 24, "by_function": count,
                          "failed": 0, "context_switches": dict(count)}]  # fmt: skip
        self.options = {
            "server": SERVER, "port": PORT, "functions": [each.name for each in FUNCTIONS], "container": container,
            "distance": variant, "calls": 1, "warmup": 1,
        }  # fmt: skip

    def settle(self) -> Settled:
        """The frames, the files and the verdict."""
        bed = Bed(self.folder / "run", clock=self.clock)
        self.talk(bed)
        self._write(bed)
        run = open_run(self.folder / "run")
        files = [(run.path / name, name) for name in sorted(run.captures)]
        table = with_places(read_frames(files, run.epoch_ns))
        table = with_corrupted(table, lambda rows: octets_of(rows, files))
        assert KIND.transport is not None
        self.frames = table
        dropped = unsent(intact(table), ports_of(run), lambda rows: octets_of(rows, files))
        return KIND.transport.settle(run, table, load_samples(run), dropped.stretches)

    def talk(self, bed: Bed) -> None:
        """Both ends' frames, and the times of all calls."""
        if self.refused is not None:
            Stream(bed, self.refused, PORT, {CLIENT: 50, SERVER: 0}).refuse()
        stream = Stream(bed, CLIENT_PORT, PORT, {CLIENT: 100, SERVER: 900})
        stream.open()
        begins: dict[tuple[bool, int], int] = {}
        ends: dict[tuple[bool, int], int] = {}
        done = {False: 0, True: 0}
        for place, (reply, data) in enumerate(self.order):
            room = MSS if reply else self.room
            cuts = [room] * (len(data) // room) + ([len(data) % room] if len(data) % room else [])
            begins[reply, done[reply]] = bed.now
            stream.write(SERVER if reply else CLIENT, data, cuts, (0,) if place in self.lose else ())
            ends[reply, done[reply]] = bed.now
            done[reply] += 1
        if self.reset:
            bed.send(SERVER, [stream.frame(SERVER, RST, stream.sent[SERVER])])
        else:
            stream.close(self.ended_by)
        for row, called in zip(self.rows, self.called, strict=True):
            row[1] += begins.get((False, called.first), bed.now) - 1
            row[2] += ends.get((True, called.answered), bed.now)

    def _write(self, bed: Bed) -> None:
        for number, line in enumerate(self.batches):
            bed.lines.append(json.dumps(line))
            bed.lines += [json.dumps(row) for row in self.rows[number * CALLS : (number + 1) * CALLS]]
        path = bed.write()
        document = json.loads((path / "run.json").read_text())
        document["nodes"]["client"]["interfaces"][0]["mtu"] = self.mtu
        (path / "run.json").write_text(json.dumps(document))
        (path / "nodes/client/job.json").write_text(
            json.dumps({"steps": [{"app": "rpyc-client", "options": self.options}]})
        )
        server = path / "nodes/server"
        server.mkdir(exist_ok=True)
        options = {"port": PORT, "tcp_nodelay": False} | ({} if self.die_call is None else {"die_call": self.die_call})
        (server / "job.json").write_text(json.dumps({"services": [{"app": "rpyc-server", "options": options}]}))
        lines = [{"type": "hello"}, *self.counters, {"type": "done", "status": 0}]
        (server / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def kill(self, call: int) -> None:
        """The server is killed in a call, counted from 1; the client's kernel answers its end."""
        self.die_call, self.ended_by = call, SERVER
        last = self.place(False, lambda found: found.kind == Kind.REQUEST and found.body[0] == Handler.CALL, call - 1)
        del self.order[last + 1 :]
        for row in self.rows[call - 1 :]:
            row[3], row[6] = 0, "EOFError"
        count = {each.name: max(0, min(CALLS, call - CALLS * place)) for place, each in enumerate(FUNCTIONS)}
        switches = {name: number for name, number in count.items() if number}
        self.counters[0] |= {"calls": call, "by_function": count, "context_switches": switches}

    def place(self, reply: bool, test: Callable[[Any], bool], turn: int = 0) -> int:
        """Where the n-th message is that meets a test."""
        found = [at for at, (way, data) in enumerate(self.order) if way == reply and test(message(data))]
        return found[turn]

    def of(self, name: str) -> tuple[dict[str, Any], list[list[Any]], list[Called]]:
        """A function's batch line, rows and calls."""
        place = [each.name for each in FUNCTIONS].index(name)
        part = slice(place * CALLS, (place + 1) * CALLS)
        return self.batches[place], self.rows[part], self.called[part]


def message(data: bytes) -> Any:
    (only,) = frames(data)
    return unpack(only.data)


def fields(settled: Settled) -> list[str]:
    return settled.findings["field"].to_list()


@pytest.mark.parametrize("name", ["4.0.1-list-numpy", "5.3.0-list-zip", "5.3.0-tuple-zip", "6.0.2-list-numpy"])
def test_what_the_library_says_has_no_mismatch(tmp_path: Path, name: str) -> None:
    spoken = Spoken(tmp_path, name)
    settled = spoken.settle()
    assert settled.findings.rows() == []
    # Every frame has a reason, those with data that of a call or of the connection.
    seen = spoken.frames.filter(pl.col("fate").is_null())
    assert settled.classes.height == seen.height
    assert set(settled.classes["class"]) == {"call", "tcp_handshake", "tcp_fin"}
    assert settled.observed["call"].to_list() == list(range(24))
    stamps = ["call_first_tx_ns", "call_last_rx_ns", "reply_first_tx_ns", "reply_last_rx_ns"]
    for row in settled.observed.select(stamps).iter_rows():
        assert list(row) == sorted(row)
    assert settled.observed["request_retransmissions"].sum() == 0
    assert set(settled.expected) == {("rpyc", each.name, each.size) for each in FUNCTIONS}
    for way in ("request", "reply"):
        # Frames made by hand: a segment for each message, however many of them a call has.
        void = settled.expected["rpyc", "void", 0][way]
        assert (void["packets"], void["exact"]) == (3, False)
        assert void["fewest"] <= settled.observed[f"{way}_packets"][0] <= void["most"]
    assert settled.calls["protocol"].unique().to_list() == ["rpyc"]


def test_what_opens_a_connection_is_sent_again_before_the_first_batch(tmp_path: Path) -> None:
    """The client asks its kernel for the first time when the root has come."""
    assert fields(Spoken(tmp_path, lose=(0,)).settle()) == []
    said = Spoken(tmp_path / "said", lose=(0,))
    said.batches[0]["tcp_retransmits"] = 1
    assert fields(said.settle()) == ["nodes/client tcp_retransmits"]


def test_a_lost_segment_is_no_mismatch_and_counted(tmp_path: Path) -> None:
    spoken = Spoken(tmp_path)
    place = spoken.place(False, lambda found: found.number == 20 and found.kind == Kind.REQUEST)
    spoken.lose = (place,)
    line = next(each for each, called in zip(spoken.batches, spoken.called[::CALLS], strict=True)
                if called.first_number <= 20 < called.first_number + each["exchanges"])  # fmt: skip
    line["tcp_retransmits"] = 1
    settled = spoken.settle()
    assert settled.findings.rows() == []
    assert settled.retransmissions == {"rpyc_request": 1, "rpyc_reply": 0}


def changed_byte(spoken: Spoken) -> None:
    at = spoken.place(True, lambda found: found.body == (1, True))
    data = bytearray(spoken.order[at][1])
    data[-2] ^= 7
    spoken.order[at] = (True, bytes(data))


def missing_del(spoken: Spoken) -> None:
    del spoken.order[spoken.place(True, lambda found: found.kind == Kind.REQUEST and found.body[0] == 15, 1)]


def another_end(spoken: Spoken) -> None:
    spoken.of("person")[1][1][2] -= 40_000


def another_start(spoken: Spoken) -> None:
    spoken.of("long")[1][0][1] += 2


def retransmits_left_out(spoken: Spoken) -> None:
    del spoken.of("void")[0]["tcp_retransmits"]


def no_close(spoken: Spoken) -> None:
    """It ends with a request without an answer."""
    del spoken.order[spoken.place(False, lambda found: found.kind == Kind.REQUEST and found.body[0] == Handler.CLOSE)]


def cut_before_a_call(spoken: Spoken) -> None:
    """The client ends its stream, as its last message before the tenth call says, and says it made all."""
    at = spoken.place(False, lambda found: found.kind == Kind.REQUEST and found.body[0] == Handler.CALL, 9)
    del spoken.order[at:]


def no_switches(spoken: Spoken) -> None:
    spoken.of("void")[0]["context_switches"] = 0


def no_switches_of_the_server(spoken: Spoken) -> None:
    spoken.counters[0]["context_switches"]["int"] = 0


def no_counters(spoken: Spoken) -> None:
    spoken.counters.clear()


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (missing_del, "rpyc.reply.message"),
        (another_end, "end"),
        (another_start, "start"),
        (retransmits_left_out, "nodes/client tcp_retransmits"),
        (no_close, "rpyc.request.message"),
        (no_switches, "nodes/client batch 0 context_switches"),
        (no_switches_of_the_server, f"nodes/server port {PORT} counters context_switches of int"),
        (no_counters, f"nodes/server port {PORT} counters"),
    ],
)
def test_each_damage_is_one_mismatch(tmp_path: Path, damage: Callable[[Spoken], None], found: str) -> None:
    spoken = Spoken(tmp_path)
    damage(spoken)
    settled = spoken.settle()
    assert fields(settled) == [found]
    # Frames behind the first difference are the connection's all the same.
    assert settled.classes.height == spoken.frames.filter(pl.col("fate").is_null()).height


def test_a_stream_that_its_client_ends_too_early(tmp_path: Path) -> None:
    spoken = Spoken(tmp_path)
    cut_before_a_call(spoken)
    assert fields(spoken.settle())[0] == "rpyc.request.message"


@pytest.mark.parametrize(("mtu", "found"), [(576, []), (1500, ["rpyc.request.segments"])])
def test_segments_are_as_large_as_the_own_interface_lets_them(tmp_path: Path, mtu: int, found: list[str]) -> None:
    """A sender's MTU bounds them as well as what the other end takes."""
    spoken = Spoken(tmp_path, "5.3.0-tuple-zip", room=576 - 52, mtu=mtu)
    assert fields(spoken.settle()) == found


def test_a_message_that_leaves_before_its_cause_came_is_one_mismatch(tmp_path: Path) -> None:
    """The answer to the first question leaves before the question."""
    spoken = Spoken(tmp_path)
    assert [way for way, _ in spoken.order[:4]] == [False, True, False, True]
    first = spoken.order.pop(1)
    spoken.order.insert(0, first)
    assert set(fields(spoken.settle())) == {"rpyc.reply.sent"}


def test_a_connection_that_no_client_tells_of_has_no_reason(tmp_path: Path) -> None:
    spoken = Spoken(tmp_path)
    for line in spoken.batches:
        line["client_port"] = CLIENT_PORT + 1
    settled = spoken.settle()
    assert fields(settled) == ["rpyc.connection"]
    assert set(settled.classes["class"]) == {"tcp_handshake", "tcp_fin"}


def test_a_server_that_was_still_starting(tmp_path: Path) -> None:
    """Under the real clock an attempt that is refused is none of the connections that are judged."""
    spoken = Spoken(tmp_path, clock="real", refused=CLIENT_PORT - 1)
    settled = spoken.settle()
    assert fields(settled) == []
    assert settled.classes.height == spoken.frames.height
    # What the server counts is still checked against the one that was served.
    counted = Spoken(tmp_path / "counted", clock="real", refused=CLIENT_PORT - 1)
    counted.counters[0]["by_function"] |= {"void": CALLS + 1}
    assert fields(counted.settle()) == ["nodes/server port 18861 counters void"]


def test_an_unknown_library_is_a_mismatch(tmp_path: Path) -> None:
    spoken = Spoken(tmp_path)
    for line in spoken.batches:
        line["library"] = "7.1.0"
    assert "rpyc.library" in fields(spoken.settle())


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_server_that_is_killed_in_a_call(tmp_path: Path, call: int) -> None:
    """That call and all later ones are EOFError, and what ended the connection has a reason."""
    spoken = Spoken(tmp_path)
    spoken.kill(call)
    settled = spoken.settle()
    assert settled.findings.rows() == []
    assert settled.classes.height == spoken.frames.filter(pl.col("fate").is_null()).height
    assert settled.observed["call"].to_list() == list(range(24))


@pytest.mark.parametrize("call", [1, 3])
def test_a_killed_server_whose_kernel_resets(tmp_path: Path, call: int) -> None:
    spoken = Spoken(tmp_path, reset=True)
    spoken.kill(call)
    settled = spoken.settle()
    assert settled.findings.rows() == []
    assert settled.observed["call"].to_list() == list(range(24))


def test_a_server_that_dies_before_a_call_is_sent(tmp_path: Path) -> None:
    """What its clients still had to say is not a mismatch of theirs; that it was to die later is one."""
    spoken = Spoken(tmp_path)
    spoken.kill(3)
    del spoken.order[-1]
    spoken.counters[0] |= {"calls": 2, "by_function": {"void": 2}, "context_switches": {"void": 2}}
    settled = spoken.settle()
    assert fields(settled) == ["rpyc.connection"]
    assert settled.observed["call"].to_list() == list(range(24))


@pytest.mark.parametrize(
    ("said", "calls", "found"),
    [
        ({"void": 2, "int": 1}, 3, []),  # it had read the second client's call
        ({"void": 3}, 3, []),
        ({"void": 3, "int": 1}, 4, ["calls"]),
        ({"void": 1, "int": 1}, 2, ["void", "calls"]),
        ({"void": 4}, 3, ["void", "by_function"]),
    ],
)
def test_a_killed_server_may_not_have_read_what_came(said: dict[str, int], calls: int, found: list[str]) -> None:
    """Two clients: one of its three calls of void is without a reply, and one of int may have been read."""
    line = {"type": "counters", "app": "rpyc-server", "port": PORT, "failed": 0, "calls": calls, "by_function": said,
            "context_switches": dict(said)}  # fmt: skip
    samples: Any = SimpleNamespace(records={"server": [line]})
    service = Service("server", (SERVER,), "rpyc-server", {"port": PORT, "die_call": 3})
    key = ("server", PORT)
    findings = check_counters(
        samples, [service], {key: {"void": 3, "int": 1}}, {key: {"void": 2}}, frozenset(), due=True
    )
    assert [field.removeprefix(f"nodes/server port {PORT} counters ") for _, field, *_ in findings] == found


@pytest.mark.parametrize(
    ("said", "due", "found"),
    [(2, True, []), (1, True, ["void", "calls"]), (1, False, []), (3, False, ["void", "calls"])],
)
def test_a_run_may_end_before_a_server_says_its_last_calls(said: int, due: bool, found: list[str]) -> None:
    line = {"type": "counters", "app": "rpyc-server", "port": PORT, "calls": said, "by_function": {"void": said},
            "failed": 0, "context_switches": {"void": said}}  # fmt: skip
    samples: Any = SimpleNamespace(records={"server": [line]})
    service = Service("server", (SERVER,), "rpyc-server", {"port": PORT})
    counts = {("server", PORT): {"void": 2}}
    findings = check_counters(samples, [service], counts, counts, frozenset(), due)
    assert [field.removeprefix(f"nodes/server port {PORT} counters ") for _, field, *_ in findings] == found


def timed_out(spoken: Spoken, call: int) -> None:
    spoken.options["total_timeout_ms"] = 1
    row = spoken.rows[call]
    row[1], row[3], row[6] = row[1] - 2_000_000, 0, "TimeoutError"


def test_what_comes_from_a_call_on_that_had_its_time_is_not_judged(tmp_path: Path) -> None:
    spoken = Spoken(tmp_path / "right")
    timed_out(spoken, 9)
    settled = spoken.settle()
    assert fields(settled) == []
    assert settled.observed["call"].to_list() == list(range(9))
    assert "rpyc_unjudged" in set(settled.classes["class"])
    assert settled.classes.height == spoken.frames.filter(pl.col("fate").is_null()).height
    behind = Spoken(tmp_path / "behind")
    timed_out(behind, 9)
    cut_before_a_call(behind)
    assert fields(behind.settle()) == []
    before = Spoken(tmp_path / "before")
    timed_out(before, 9)
    changed_byte(before)
    assert fields(before.settle()) == ["rpyc.reply.bytes"]


def test_a_call_that_had_its_time_lasted_as_long(tmp_path: Path) -> None:
    spoken = Spoken(tmp_path)
    timed_out(spoken, 9)
    spoken.options["total_timeout_ms"] = 3
    assert fields(spoken.settle()) == ["sample.error"]


def test_a_server_may_end_what_its_client_has_closed(tmp_path: Path) -> None:
    """Both end it at once, and the server's end may be the first."""
    spoken = Spoken(tmp_path)
    spoken.ended_by = SERVER
    assert spoken.settle().findings.rows() == []


def said_to_be_answered(spoken: Spoken) -> None:
    spoken.rows[5][3], spoken.rows[5][6] = 1, None


def not_said(spoken: Spoken) -> None:
    spoken.die_call = None


def said_of_a_later_call(spoken: Spoken) -> None:
    spoken.die_call = 4


def said_of_an_earlier_call(spoken: Spoken) -> None:
    spoken.die_call = 2


def ended_by_the_client(spoken: Spoken) -> None:
    spoken.ended_by = CLIENT


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (said_to_be_answered, ["sample.error"]),
        (not_said, ["rpyc.connection"]),
        (said_of_a_later_call, ["rpyc.connection"]),
        (said_of_an_earlier_call, [f"nodes/server port {PORT} counters calls", "rpyc.replies"]),
        (ended_by_the_client, ["rpyc.connection"]),
    ],
)
def test_another_death_than_the_job_says_is_a_mismatch(
    tmp_path: Path, damage: Callable[[Spoken], None], found: list[str]
) -> None:
    spoken = Spoken(tmp_path)
    spoken.kill(3)
    damage(spoken)
    assert fields(spoken.settle()) == found
