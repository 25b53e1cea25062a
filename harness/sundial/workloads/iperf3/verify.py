# SPDX-License-Identifier: Apache-2.0
"""iperf3's tests: what each client tells of its own against its job, and against all the frames of it.

Its streams are no calls. A frame is iperf3's when it belongs to a connection or flow of a test that a client tells of;
what else goes to its port has no reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.conservation import check_balance, transit_of
from sundial.verify.contention import Contention
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import DROPPED, end_name
from sundial.verify.headers.ports import ports_of
from sundial.verify.samples import RunSamples
from sundial.verify.segment import contentions, network_of
from sundial.verify.sockets import flows
from sundial.verify.sockets.payloads import payloads
from sundial.verify.sockets.protocol import IP_PROTOCOL, Files
from sundial.verify.workload import Background, Verifier, WorkloadVerifier
from sundial.workloads.iperf3.model import PORT
from sundial.workloads.iperf3.verify_control import COOKIE, RESULTS_AT, read_control
from sundial.workloads.iperf3.verify_result import check_result, check_said, uncounted_bytes
from sundial.workloads.iperf3.verify_transfers import (
    UDP_ANSWER,
    UDP_HELLO,
    Connections,
    check_blocks,
    check_datagrams,
    given_up,
    least_lost,
    local_ports,
    open_connections,
)

CLIENT = "iperf3-client"
_CONTROL_MOST = 1 << 20
_UNREAD_NS = {True: 20_000_000, False: 1_000_000_000}
"""How long a datagram may wait for the server that had arrived, under the virtual and under the real clock."""

UNPROVEN: tuple[str, ...] = (
    "iperf3: jitter, processor load, window and round trip times that it reports: they are its own measurements",
    "iperf3: the first block of a stream, which it draws at random",
    "iperf3: datagrams that its server had not read when the test ended, which it counts as lost",
)


Lines = Callable[[], Mapping[str, Contention]]
"""When the wire in front of each port was free."""


@dataclass(frozen=True)
class _Test:
    """One test: the record of a client, the options of its step, and where it ran."""

    client: str
    step: int
    options: Mapping[str, Any]
    record: Mapping[str, Any]

    @property
    def result(self) -> Mapping[str, Any]:
        return self.record["result"]  # type: ignore[no-any-return]

    @property
    def udp(self) -> bool:
        return bool(self.options.get("transport", "tcp") == "udp")

    def row(self, field: str, expected: str, seen: str, rows: Sequence[int] = ()) -> Finding:
        """A finding about it."""
        return Finding(None, f"iperf3 {self.client} step {self.step} {field}", expected, seen, list(rows))


class _Iperf3(Verifier):
    def background(
        self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, ahead_ns: Mapping[str, int]
    ) -> Background:
        tests, rows = _tests(run, samples)
        if not tests:
            return Background(_findings(rows))
        table = _flows(run, tests, frames)
        files: Files = run.capture_files
        known = flows.add_flows(frames, table).filter(pl.col("flow").is_not_null())
        known = known.with_columns(call=pl.lit(None, pl.UInt32))
        streams = open_connections(known, files)
        network = network_of(run)
        lines = cache(lambda: {} if network is None else contentions(network, frames))
        taken: set[int] = set()
        given_up = [test for test in tests if test.result.get("error")]
        may_fail = ((run.document.get("scenario") or {}).get("expect") or {}).get("failures") == "allowed"
        for test in tests:
            if test in given_up:
                if not may_fail:
                    rows.append(test.row("error", "none", str(test.result["error"])))
                continue
            rows += check_result_of(test)
            own = table.filter(pl.col("client_address") == _address(run, test))
            rows += _check_test(run, test, own, known, streams, taken, lines)
        taken |= _refused(known) | _begun_by(run, given_up, table, known, taken)
        of_tests = known.filter(pl.col("flow").is_in(list(taken)))
        transit = transit_of(frames, ports_of(run), run)
        segment = pl.format("{} bytes at {}", "data", "pos")
        datagrams = of_tests.filter(pl.col("protocol") == flows.UDP)
        sides = ["flow", "reply", "udp_length", "udp_head"]
        placed = streams.frames.filter(pl.col("flow").is_in(list(taken)))
        balances = [
            check_balance(placed, ["conn", "reply", "pos", "data", "tcp_flags"], segment, transit),
            check_balance(datagrams, sides, pl.format("a datagram of {}", "udp_length"), transit),
        ]
        return Background(
            pl.concat([_findings(rows), *balances]), of_tests.select("row", pl.lit("iperf3").alias("class"))
        )


def _begun_by(
    run: RunDirectory, given_up: Sequence[_Test], table: pl.DataFrame, known: pl.DataFrame, taken: set[int]
) -> set[int]:
    """Flows that belong to no other test, of clients that gave a test up: iperf3 does not say which they were."""
    found: set[int] = set()
    first = known.group_by("flow").agg(pl.col("time_ns").min())
    for test in given_up:
        mine = table.filter(
            pl.col("client_address") == _address(run, test), pl.col("server_address") == str(test.options["server"])
        ).join(first, on="flow")
        if run.clock == "virtual":
            mine = mine.filter(pl.col("time_ns").is_between(*_interval(run, test)))
        found |= set(mine["flow"]) - taken
    return found


def _interval(run: RunDirectory, test: _Test) -> tuple[int, int]:
    """When a test began and ended, by its client."""
    zero_ns = run.nodes[test.client].zero_ns
    return test.record["start"] - zero_ns, test.record["end"] - zero_ns


def _refused(known: pl.DataFrame) -> set[int]:
    """Flows on which a server that had not started yet refused a connection; its client tries again."""
    syn = ~pl.col("reply") & (pl.col("tcp_flags") & 0x17 == 0x02)
    reset = pl.col("reply") & (pl.col("tcp_flags") & 0x07 == 0x04)
    segments = known.filter(pl.col("protocol") == flows.TCP)
    return set(segments.group_by("flow").agg(refused=(syn | reset).all() & reset.any()).filter("refused")["flow"])


def check_result_of(test: _Test) -> Iterator[Finding]:
    """What a test tells of itself."""
    if test.record.get("status") != 0:
        yield test.row("status", "0", str(test.record.get("status")))
    for difference in check_result(test.options, test.result):
        yield test.row(*difference)


def _tests(run: RunDirectory, samples: RunSamples) -> tuple[list[_Test], list[Finding]]:
    """The tests of all clients; a finding where they are not those of the steps, one each."""
    tests: list[_Test] = []
    rows: list[Finding] = []
    for client in run.nodes:
        steps = run.jobs.get(client, {}).get("steps", [])
        results = [each for each in samples.records.get(client, ()) if each["type"] == "iperf3"]
        asked = [number for number, step in enumerate(steps) if step.get("app") == CLIENT]
        seen = [each.get("step") for each in results]
        if seen != asked:
            rows.append(Finding(None, f"iperf3 {client} steps", str(asked), str(seen)))
        tests += [
            _Test(client, each["step"], steps[each["step"]]["options"], each)
            for each in results
            if each["step"] in asked
        ]
    return tests, rows


def _address(run: RunDirectory, test: _Test) -> str:
    here = run.nodes[test.client].towards(str(test.options["server"]))
    return here.address if here else ""


def _flows(run: RunDirectory, tests: Sequence[_Test], frames: pl.DataFrame) -> pl.DataFrame:
    """One row for each port from which a client's machine sent to iperf3's port of a server."""
    ways = pl.DataFrame(
        sorted(
            {(_address(run, test), str(test.options["server"]), int(test.options.get("port", PORT))) for test in tests}
        ),
        schema={"client_address": pl.String, "server_address": pl.String, "server_port": pl.UInt32},
        orient="row",
    )
    names = {number: name for name, number in IP_PROTOCOL.items()}
    seen = frames.filter(pl.col("protocol").is_in(list(names))).select(
        client_address="source", client_port="source_port", server_address="target", server_port="target_port",
        ip_protocol="protocol",
    )  # fmt: skip
    table = seen.join(ways, on=["client_address", "server_address", "server_port"], how="semi").unique()
    ends = {address: _end(run, address) for name in ("client", "server") for address in table[f"{name}_address"]}
    return (
        table.sort(pl.all())
        .with_row_index("flow")
        .with_columns(
            transport=pl.col("ip_protocol").replace_strict(names, return_dtype=pl.String),
            client_end=pl.col("client_address").replace_strict(ends, return_dtype=pl.String),
            server_end=pl.col("server_address").replace_strict(ends, return_dtype=pl.String),
        )
    )


def _end(run: RunDirectory, address: str) -> str:
    owner = run.owner(address)
    return "" if owner is None else end_name(f"wire/{owner[1].segment}.pcapng", f"{owner[0].name}:{owner[1].device}")


def _check_test(
    run: RunDirectory,
    test: _Test,
    own: pl.DataFrame,
    known: pl.DataFrame,
    streams: Connections,
    taken: set[int],
    lines: Lines,
) -> Iterator[Finding]:
    """Everything of one test; the flows that are its own go into `taken`."""
    ports, cookie = local_ports(test.result), str((test.result.get("start") or {}).get("cookie"))
    if len(set(ports)) != test.options.get("streams", 1):
        yield test.row("streams", str(test.options.get("streams", 1)), str(len(set(ports))))
    over = "udp" if test.udp else "tcp"
    of_data = own.filter(pl.col("transport") == over, pl.col("client_port").is_in(ports))
    taken.update(of_data["flow"])
    # Of none: a SYN that collided before it was first sent.
    conns = streams.frames.select("flow", "conn").drop_nulls().unique().join(own, on="flow", how="semi").sort("conn")
    wanted = cookie.encode() + b"\0"
    control = [
        (flow, conn)
        for flow, conn in conns.filter(~pl.col("flow").is_in(of_data["flow"].implode())).iter_rows()
        if streams.read(conn, False, COOKIE) == wanted
    ]
    if len(control) != 1:
        yield test.row("control connection", "one with its cookie", str(len(control)))
        return
    flow, conn = control[0]
    taken.add(flow)
    yield from _changed(test, "control connection", streams, conn, _CONTROL_MOST)
    said = read_control(cookie, *(_whole(streams, conn, reply) for reply in (False, True)))
    if isinstance(said, str):
        yield test.row("control connection", "a test of iperf 3.12", said, _rows(streams, conn))
        return
    for difference in check_said(said, test.options, test.result):
        yield test.row(*difference)
    yield from _times(run, test, streams, conn, lines)
    read_ns = _ended_ns(streams, conn) - _UNREAD_NS[run.clock == "virtual"]
    for number, port in enumerate(ports):
        mine = of_data.filter(pl.col("client_port") == port)
        if mine.height != 1:
            yield test.row(f"stream {number}", f"a flow from port {port}", str(mine.height))
        elif test.udp:
            of_flow = known.filter(pl.col("flow") == mine["flow"][0])
            yield from _check_flow(test, number, of_flow, streams.files, read_ns)
        else:
            of_stream = conns.filter(pl.col("flow") == mine["flow"][0])["conn"].to_list()
            yield from _check_stream(test, number, of_stream, streams, wanted)


def _ended_ns(streams: Connections, conn: int) -> int:
    """When the server asked for the client's results: it reads no data after that."""
    word = RESULTS_AT
    said = streams.frames.filter(
        pl.col("conn") == conn,
        "reply",
        pl.col("view") == "sent",
        pl.col("pos") <= word,
        pl.col("pos") + pl.col("data") > word,
    )
    return int(said["time_ns"].min() or 0)  # type: ignore[arg-type]


def _whole(streams: Connections, conn: int, reply: bool) -> bytes:
    return streams.read(conn, reply, min(streams.length(conn, reply), _CONTROL_MOST))


def _changed(test: _Test, what: str, streams: Connections, conn: int, count: int) -> Iterator[Finding]:
    """What was sent again must be what it was."""
    for row, (place, then, now) in streams.changed(conn, count):
        yield test.row(f"{what} bytes", f"0x{then:02x} at {place}, as sent before", f"0x{now:02x}", [row])


def _rows(streams: Connections, conn: int) -> list[int]:
    return streams.frames.filter(pl.col("conn") == conn)["row"].to_list()


def _times(run: RunDirectory, test: _Test, streams: Connections, conn: int, lines: Lines) -> Iterator[Finding]:
    """Under virtual time: the control connection begins after the test did, and its last word is written before the
    test's end."""
    if run.clock != "virtual":
        return
    start, end = _interval(run, test)
    sent = streams.frames.filter(pl.col("conn") == conn, pl.col("view") == "sent", ~pl.col("reply"))
    first = min(sent["time_ns"].to_list(), default=start)
    if first < start:
        yield test.row("start", f"before its first frame, at {first} ns", f"{start} ns")
    # A kernel sends a word again for a program that has ended.
    fresh = streams.segments.filter(pl.col("conn") == conn, ~pl.col("reply"), pl.col("fresh") > 0)
    late = sent.filter(pl.col("row").is_in(fresh["row"].implode()), pl.col("time_ns") > end).sort("time_ns")
    for port, last in late.select("interface", "time_ns").tail(1).iter_rows():
        if not waited(port, last, end, lines):
            yield test.row("end", f"after its last word, at {last} ns", f"{end} ns")


def waited(port: str, at_ns: int, since_ns: int, lines: Lines) -> bool:
    """True if what left a port at a time may have been ready since another: its line was never free."""
    line = lines().get(port)
    return line is not None and line.idle_ns(since_ns, at_ns) <= 0


def _check_stream(
    test: _Test, number: int, conns: Sequence[int], streams: Connections, cookie: bytes
) -> Iterator[Finding]:
    """One TCP stream: between what arrived and what was written has gone over the wire, block after block."""
    where = f"stream {number}"
    if len(conns) != 1:
        yield test.row(where, "one connection", str(len(conns)))
        return
    (conn,) = conns
    end = ((test.result.get("end") or {}).get("streams") or [{}] * (number + 1))[number]
    sender, receiver = end.get("sender") or {}, end.get("receiver") or {}
    if streams.read(conn, False, COOKIE) != cookie:
        yield test.row(where, "begins with the test's cookie", "another beginning", _rows(streams, conn)[:1])
    yield from _changed(test, where, streams, conn, COOKIE)
    sent = streams.length(conn, False) - COOKIE
    arrived = streams.length(conn, False, "received") - COOKIE
    written, read = int(sender.get("bytes") or 0), int(receiver.get("bytes") or 0)
    most = written + uncounted_bytes(test.result)
    if not sent <= most:
        yield test.row(f"{where} bytes", f"at most {most}, {written} counted as written", f"{sent} on the wire")
    if not min(arrived, 1) <= read <= arrived:
        yield test.row(f"{where} bytes", f"{arrived} at most, which arrived, and not 0 of them", f"{read} read")
    fresh = streams.segments.filter(pl.col("conn") == conn)
    behind = streams.behind_gaps(conn, False)
    if behind:
        total = f"{sent + COOKIE + behind} bytes without a gap"
        yield test.row(f"{where} positions", total, f"{sent + COOKIE}", _rows(streams, conn)[:1])
    back = fresh.filter("reply")
    if back.height:
        yield test.row(where, "nothing from the server", f"{back['fresh'].sum()} bytes", back["row"].to_list())
    again = fresh.filter(~pl.col("reply"), pl.col("fresh") < pl.col("data")).height + streams.opened_again(conn)
    dropped = streams.frames.filter(pl.col("conn") == conn, pl.col("fate") == DROPPED).height
    if again + dropped < int(sender.get("retransmits") or 0):
        yield test.row(f"{where} retransmits", f"{again} in the capture", f"{sender.get('retransmits')} by the client")
    size = int(((test.result.get("start") or {}).get("test_start") or {}).get("blksize") or 0)
    for row, place in check_blocks(streams, conn, size) if size > 0 else ():
        yield test.row(f"{where} payload", "the same block as before", f"another at byte {place}", [row])


def _check_flow(test: _Test, number: int, frames: pl.DataFrame, files: Files, read_ns: int) -> Iterator[Finding]:
    """One UDP stream: opened by both, then datagrams with numbers from 1, as many as the client says. The server has
    read what had arrived by `read_ns`."""
    where = f"stream {number}"
    end = ((test.result.get("end") or {}).get("streams") or [{}] * (number + 1))[number].get("udp") or {}
    sent = frames.filter(pl.col("view") == "sent").sort("time_ns", "row")
    asked, answered = sent.filter(~pl.col("reply")), sent.filter("reply")
    for way, part, word in (("client", asked.head(1), UDP_HELLO), ("server", answered, UDP_ANSWER)):
        if list(payloads(part, files)) != [word]:
            yield test.row(where, f"the {way} opens it with {word!r}", "another beginning", part["row"].to_list()[:3])
    data = asked.slice(1)
    dropped = frames.filter(pl.col("fate") == DROPPED, ~pl.col("reply")).height
    packets, lost = int(end.get("packets") or 0), int(end.get("lost_packets") or 0)
    if not packets - dropped <= data.height <= packets or packets == 0:
        yield test.row(f"{where} packets", f"{packets}, and more than 0", f"{data.height} on the wire")
    arrived = frames.filter(pl.col("view") == "received", ~pl.col("reply")).sort("time_ns", "row")
    least = least_lost(payloads(arrived, files), arrived["time_ns"], read_ns)
    if lost < least:
        yield test.row(f"{where} lost", f"at least {least}", str(lost))
    size = int(((test.result.get("start") or {}).get("test_start") or {}).get("blksize") or 0)
    if int(end.get("bytes") or 0) != packets * size:
        yield test.row(f"{where} bytes", str(packets * size), str(end.get("bytes")))
    numbered = frames.filter(~pl.col("reply"), (pl.col("view") == "sent") | given_up(frames)).sort("time_ns", "row")
    for row, field, expected, seen in check_datagrams(numbered.slice(1), files, size):
        yield test.row(f"{where} {field}", expected, seen, [row])


def _findings(rows: Sequence[Finding]) -> pl.DataFrame:
    return as_table(rows)


KIND: WorkloadVerifier = _Iperf3()
