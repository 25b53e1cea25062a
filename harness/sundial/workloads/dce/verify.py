# SPDX-License-Identifier: Apache-2.0
"""Verification of DCE RPC over UDP: both sides of every activity replayed, and each PDU checked against the due one.

What a machine sends follows from its job, from the PDUs that were complete at its port by then, and from its timers
(`verify_client`, `verify_server`). So a frame without a cause, one that is missing, one that came too early, and one
with another byte are found alike (`sundial.judge.replay`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import polars as pl

from sundial.expect.call import Leg, unsent_leg
from sundial.expect.ip import udp_packets
from sundial.judge import parties
from sundial.judge.machine import NEVER, UNREAD_NS
from sundial.judge.replay import Replay
from sundial.judge.settled import Transport, Verdict, Verification
from sundial.observe import RunDirectory
from sundial.verify.findings import Finding
from sundial.verify.frames import OUTBOUND
from sundial.verify.headers.arp import questions, within
from sundial.verify.headers.icmp import Read, closed_until
from sundial.verify.result import leg_json
from sundial.verify.segment import network_of
from sundial.verify.workload import CLASSES, Verifier, WorkloadVerifier
from sundial.workloads.dce.expect import SSS_CORE, TABLE_BYTES, parameters
from sundial.workloads.dce.expect_pdu import HEADER, Pdu, Type
from sundial.workloads.dce.verify_binding import TIMEOUT_MS, bindings_missing, check_binding, check_ports
from sundial.workloads.dce.verify_boot import boots, fewest_findings
from sundial.workloads.dce.verify_calls import check_packets, observed, uncaused
from sundial.workloads.dce.verify_client import OK, Client
from sundial.workloads.dce.verify_counters import (
    PAUSE_NS,
    Reports,
    Totals,
    check_batch,
    check_server,
    pauses,
)
from sundial.workloads.dce.verify_datagrams import (
    Closed,
    Traffic,
    balance,
    check_layouts,
    datagrams,
    own_frames,
    sightings,
)
from sundial.workloads.dce.verify_names import CLIENT, SERVER, Activity, Service, activities
from sundial.workloads.dce.verify_server import Server
from sundial.workloads.dce.verify_sides import REAL_EARLY_NS, Sides, divide, replay_client, replay_servers
from sundial.workloads.dce.verify_stream import CONV
from sundial.workloads.function_lines import check_function_line

NAME = "dce"
_MIPS = 125.0
"""Of a machine whose topology is not recorded: the default."""
UNPROVEN: tuple[str, ...] = (
    "dce: the boot time of a server, which is its own; only that it is one and the same",
    "dce: how long a machine takes for what it has read, and how long a procedure takes",
    "dce: which of maybe calls that follow one another closely are executed; only how many are executed or dropped",
    "dce: how many maybe calls a server has executed whose procedures take a time; only that it is at most all",
    "dce: a second reading of the headers of PDUs whose ports tshark gives to another protocol",
    "dce: which of several activities loses its place to another, if they became idle within a quarter of a second",
)
UNPROVEN_REAL_CLOCK: tuple[str, ...] = (
    "dce: that what was due was sent in time",
    "dce: that a server hears what comes before its machine has sent anything",
    "dce: that a server reports in each pause",
)
_CLASS = {
    Type.REQUEST: "call", Type.RESPONSE: "call", Type.FAULT: "dce_fault", Type.FACK: "dce_fack", Type.PING: "dce_ping",
    Type.WORKING: "dce_working", Type.NOCALL: "dce_nocall", Type.REJECT: "dce_reject", Type.ACK: "dce_ack",
    Type.CL_CANCEL: "dce_cancel", Type.CANCEL_ACK: "dce_cancel",
}  # fmt: skip


@dataclass(frozen=True)
class _Dce(Transport):
    def describe(self) -> pl.Expr:
        kinds = {int(kind): kind.name.lower().replace("_", " ") for kind in Type}
        kind = pl.col("dce_type").replace_strict(kinds, default="PDU", return_dtype=pl.String)
        ends = [pl.format("{}:{}", name, f"{name}_port") for name in ("source", "target")]
        text = "DCE RPC {} of call {}, fragment {}, serial {}{}, {} > {}"
        asks = pl.when("dce_asks").then(pl.lit(", asking for a fack")).otherwise(pl.lit(""))
        return pl.format(text, kind, "dce_sequence", "dce_fragment", "dce_serial", asks, *ends)

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        if call["xid"] is None:
            return None
        way = f"ip.addr == {call['client_address']} && udp.port == {call['client_port']}"
        return f"{way} && dcerpc.dg_seqnum == {call['xid']}"


def _not_open(run: RunDirectory, own: pl.DataFrame, frames: pl.DataFrame, read: Read) -> Closed:
    """Until when ports of DCE RPC were not open: only before their first datagram."""
    sent = own.filter(pl.col("view") == "sent", pl.col("source_port").is_not_null())
    first = {
        (address, port): at
        for address, port, at in sent.group_by("source", "source_port").agg(pl.col("time_ns").min()).iter_rows()
    }
    return {
        (owner[0].name, port): at
        for (address, port), at in closed_until(frames, read).items()
        if at < first.get((address, port), NEVER) and (owner := run.owner(address)) is not None
    }


class _Verification(Verification[Service]):
    """Of one run."""

    name = NAME
    clients = (CLIENT,)
    servers = (SERVER,)
    service = Service

    def prepare(self) -> None:
        run, frames = self.run, self.frames
        self.end_ns = int(frames["time_ns"].max() or 0) if frames.height else 0  # type: ignore[arg-type]
        ends = {end for each in self.services for end in each.ends}
        self.seen = sightings(run, frames, ends)
        self.own = own_frames(run, frames, self.seen, self.ports)
        self.asked = {} if self.exact else questions(frames, self.homes, self.read)
        self.reported = {call.id: call for batch in parties.batches(self.samples, self.calls) for call in batch.calls}
        self.activities = activities(run, self.samples, self.services)
        self.explained: set[int] = set()
        """Rows of what was sent for a cause."""
        self.not_taken: dict[UUID, frozenset[int]] = defaultdict(frozenset)
        """By activity: when requests came that their server may have dropped."""
        self.closed = _not_open(run, self.own, frames, self.read)
        self._divide()

    def _divide(self) -> None:
        """All datagrams, to the two sides of activities."""
        self.traffic: Traffic = datagrams(self.own, self.read(self.own), self.closed)
        self.sides, self.unowned = divide(self.traffic.datagrams, self.activities)
        self.owner = {
            number: (sides, pdu)
            for sides in self.sides.values()
            for side in (sides.client, sides.server)
            for number, _, pdu in (*side.sent, *side.arrived)
        }

    def _drops(self, machine: str) -> Callable[[int], bool]:
        """A program is at most UNREAD_NS behind what it has read; ARP asks as soon as it sends. Under the real clock a
        call seems to begin earlier."""
        behind_ns = UNREAD_NS if self.exact else UNREAD_NS + REAL_EARLY_NS
        stretches = [(begin - behind_ns, end) for begin, end in self.unsent.get(machine, [])]
        return partial(within, stretches)

    def verdict(self) -> Verdict:
        rows: list[Finding] = [*self._unowned()]
        rows += check_layouts(self.traffic, {number: self._call_of(number) for number in self.owner})
        seen: list[dict[str, Any]] = []
        again: list[Finding] = []
        for service in self.services:
            rows += self._serve(service) if self.exact else self._serve_from_its_boot(service)
        for sides in self.sides.values():
            replay = replay_client(
                sides,
                partial(self._told, sides.activity),
                self._drops(sides.activity.client),
                self.asked.get(sides.activity.client, ()),
                exact=self.exact,
            )
            rows += self._findings(sides, replay)
            rows += self._check_samples(sides, replay)
            exchanges = sides.exchanges()
            for call in replay.histories[0].calls:
                exchange = exchanges[call.sequence]
                taken = exchange.without(self.not_taken[sides.activity.uuid])
                again += uncaused(call, taken, exchanges[call.sequence + 1], sides.activity.settings)
                if call.id is not None:
                    seen.append(observed(call, sides.activity, exchange, self._mtus(sides.activity)))
        ok = dict(self.calls.select("id", "ok").iter_rows())
        rows += parties.check_reporters(self.samples, self.services, lambda line: "by_opnum" in line)
        rows += bindings_missing(self.run, self.samples)
        rows += check_ports(self.run, self.samples, self.calls)
        for row in seen:
            rows += check_packets(row, bool(ok[row["call"]]))
        return Verdict(
            self._classes(),
            sum(len(each.rows) for each in self.traffic.datagrams if each.sent),
            rows,
            [balance(self.seen, self.own, self.transit)],
            seen,
            self._expected(),
            {way: leg_json(unsent_leg("udp", 0)) for way in ("request", "reply")},
            uncaused=again,
        )

    def _mtus(self, activity: Activity) -> tuple[int, int]:
        """Of the ports of both ends; a broadcast comes in where the server's machine has its network."""
        node = self.run.nodes.get(activity.server)
        far = None if node is None else node.towards(activity.server_end[0])
        near = 1500 if activity.own_end is None else self.mtu(activity.own_end[0])
        return near, 1500 if far is None else far.mtu

    # ---- findings ----

    def _unowned(self) -> Iterator[Finding]:
        for each in self.unowned:
            if each.datagram.sent:
                yield Finding(None, "dce.sent", "PDUs of activities that call here", each.reason, each.datagram.rows)

    def _findings(self, sides: Sides, replay: Replay[Any]) -> Iterator[Finding]:
        ids = {call.sequence: call.id for call in sides.activity.calls}
        for pdu, name, expected, seen, rows in replay.findings:
            call = None if pdu is None or pdu.interface == CONV else ids.get(pdu.sequence)
            yield Finding(call, f"dce.{name}", expected, seen, list(rows))
        self.explained |= {row for sent in replay.explained for row in sent.rows}

    def _check_samples(self, sides: Sides, replay: Replay[Client]) -> Iterator[Finding]:
        """What the client wrote about each call and batch, against its machine."""
        rows = {call.id: self.reported[call.id] for call in sides.activity.calls if call.id is not None}
        ends = (sides.activity.own_end, sides.activity.server_end, "udp")
        machine = min(replay.histories, key=lambda each: _unlike(each, rows, exact=self.exact))
        for place, call in enumerate(machine.calls):
            if call.id is None:
                continue
            row = rows[call.id]
            status, at_ns = machine.ended.get(place, ("not over", 0))
            said = OK if row.ok else str(row.error)
            if said != status:
                yield Finding(call.id, "sample.error", status, said)
            if self.exact and row.ok and row.end_ns < at_ns:
                yield Finding(
                    call.id, "sample.end", f"not before its last fragment has come, at {at_ns} ns", str(row.end_ns)
                )
            if row.retransmits != machine.resent.get(place, 0):
                yield Finding(call.id, "sample.retransmits", str(machine.resent.get(place, 0)), str(row.retransmits))
            said_ends = (row.client_end, row.server_end)
            if (*said_ends, row.transport) != ends:
                yield Finding(call.id, "sample.ends", str(ends), str((*said_ends, row.transport)))
            if row.xid != place:
                yield Finding(call.id, "sample.xid", str(place), str(row.xid))
        yield from self._check_batches(sides.activity, replay)
        if sides.activity.mapper:
            yield from self._check_binding(sides, replay)

    def _batches(self, activity: Activity, machine: Client) -> Iterator[tuple[int, Counter[str]]]:
        """The batches that a machine has begun, and what it has counted of each: those before the last are over."""
        for number, (batch, place) in enumerate(activity.batches):
            if place in machine.before:
                later = activity.batches[number + 1][1] if number + 1 < len(activity.batches) else None
                after = machine.counts if later is None else machine.before.get(later, machine.counts)
                yield batch, after - machine.before[place]

    def _told(self, activity: Activity, machine: Client) -> bool:
        """Whether its program counted the same, up to the batch before the present one, and in its latest call."""
        place = len(machine.ended) - 1
        number = activity.calls[place].id if place >= 0 else None
        row = None if number is None else self.reported[number]
        if row is not None and machine.resent.get(place, 0) != row.retransmits:
            return False
        over = list(self._batches(activity, machine))[-2:-1]
        return all(not list(check_batch("", self._line(activity, batch), [counts])) for batch, counts in over)

    def _line(self, activity: Activity, batch: int) -> dict[str, Any]:
        return self.samples.batches[activity.client, batch]

    def _check_batches(self, activity: Activity, replay: Replay[Client]) -> Iterator[Finding]:
        """A client's counters are those of one of the histories; its activity has the name that its seed gives it."""
        if activity.named not in (None, activity.uuid):
            where = f"nodes/{activity.client} batch {activity.batches[0][0]} activity"
            yield Finding(None, where, str(activity.named), str(activity.uuid))
        counted: dict[int, list[Counter[str]]] = defaultdict(list)
        for machine in replay.histories:
            for batch, counts in self._batches(activity, machine):
                counted[batch].append(counts)
        for batch, histories in counted.items():
            where, line = f"nodes/{activity.client} batch {batch}", self._line(activity, batch)
            each = [list(check_batch(where, line, [counts])) for counts in histories]
            yield from min(each, key=len)
            yield from check_function_line(where, line)

    def _check_binding(self, sides: Sides, replay: Replay[Client]) -> Iterator[Finding]:
        """What a client says of its questions to the mapper."""
        activity = sides.activity
        asked = activity.server_end[1]
        near = (each for each in self.services if each.machine == activity.server and asked in each.ports)
        service = next(near, None)
        port = 0 if service is None else service.port
        options = parties.options_of(self.run, activity.client, int((activity.binding or {})["step"]))
        timeout_ns = int(options.get("binding_timeout_ms") or TIMEOUT_MS) * 1_000_000
        yield from check_binding(sides, replay.histories, port, timeout_ns, exact=self.exact)

    # ---- servers ----

    def _serve_from_its_boot(self, service: Service) -> list[Finding]:
        """Under the real clock: with the end of its machine's boot that explains most."""
        explained, closed = self.explained, self.closed

        def served(until_ns: int) -> list[Finding]:
            self.explained = set(explained)
            ends = [(service.machine, port) for port in service.ports]
            self.closed = {**closed, **{end: max(until_ns, closed.get(end, -1)) for end in ends}}
            self._divide()
            return list(self._serve(service))

        found = list(self._serve(service))
        ends = [end for end, machine in self.homes.items() if machine == service.machine]
        spoke = self.frames.filter(pl.col("end").is_in(ends), pl.col("direction") == OUTBOUND)["time_ns"]
        instants = boots(self._arrived(service), NEVER if spoke.is_empty() else int(spoke.min()))  # type: ignore[arg-type]
        return fewest_findings(served, [-1, *instants]) if found and instants else found

    def _arrived(self, service: Service) -> list[int]:
        """When something was whole at a server, in order."""
        return sorted(
            each.whole_ns
            for each in self.traffic.datagrams
            if not each.sent and each.machine == service.machine and each.target[1] in service.ports
        )

    def _serve(self, service: Service) -> Iterator[Finding]:
        seed = int(self.run.jobs[service.machine].get("seed") or 0)
        arrived = self._arrived(service)
        # The last pause may have been too short for a report: when the run ended no frame shows.
        network = network_of(self.run)
        mips = _MIPS if network is None else float(network.node(service.machine).mips)
        job = self.run.jobs[service.machine]
        alone = {task.get("app") for task in (*job.get("services", ()), *job.get("steps", ()))} <= {CLIENT, SERVER}
        end_ns = self.end_ns + PAUSE_NS
        breaks = pauses(arrived, end_ns, mips=mips, alone=alone, exact=self.exact, seen_ns=self.end_ns)
        marks = [mark for begin, end, _ in breaks for mark in (begin, end)]
        served: list[Replay[Server]] = []
        mapped: list[Replay[Server]] = []
        platforms = dict(self.ports.select("machine", "platform").rows())
        for sides, replay in replay_servers(
            list(self.sides.values()),
            service,
            seed,
            memory=TABLE_BYTES if platforms.get(service.machine) == SSS_CORE else None,
            marks=marks,
            end_ns=self.end_ns,
            drops=self._drops(service.machine),
            exact=self.exact,
        ):
            yield from self._findings(sides, replay)
            self.not_taken[sides.activity.uuid] = frozenset().union(*(each.not_taken for each in replay.histories))
            (mapped if sides.activity.mapper else served).append(replay)
        of_calls, of_mapper = (Totals((each.counted for each in part), len(breaks)) for part in (served, mapped))
        works = bool(service.options.get("work_ms"))
        reports = Reports(of_calls, of_mapper, [sure for _, _, sure in breaks], works)
        yield from check_server(service.where, service.lines(self.samples), reports)

    # ---- the result ----

    def _call_of(self, number: int) -> int | None:
        sides, pdu = self.owner[number]
        if pdu.interface == CONV:
            return None
        calls = sides.activity.calls
        return calls[pdu.sequence].id if pdu.sequence < len(calls) else None

    def _classes(self) -> pl.DataFrame:
        """A frame that was sent has a class if its PDU was explained, and one that came if one like it was."""
        lines = []
        known: set[bytes] = set()
        for number in self.owner:
            each = self.traffic.datagrams[number]
            if each.sent and set(each.rows) <= self.explained:
                known.add(each.payload)
        firsts: set[tuple[Any, ...]] = set()
        for number, (sides, pdu) in sorted(self.owner.items(), key=lambda item: self.traffic.datagrams[item[0]].at_ns):
            each = self.traffic.datagrams[number]
            if each.sent and not set(each.rows) <= self.explained:
                continue
            if each.payload in known:
                word = self._class(sides, pdu, (each.machine, each.sent), firsts)
                lines += [(row, word, self._call_of(number)) for row in each.rows]
        classes = pl.DataFrame(lines, schema=CLASSES, orient="row")
        return pl.concat([classes, self._pieces(classes)])

    def _pieces(self, classes: pl.DataFrame) -> pl.DataFrame:
        """What came of datagrams that did not come whole, where the same was sent for a cause."""
        key = ["source", "target", "ip_id", "fragment_offset", "ip_length", "more", "udp_head"]
        own = self.own.with_columns(pl.col("row").cast(pl.UInt32))
        sent = own.filter(pl.col("view") == "sent").join(classes, on="row", how="semi")
        left = own.filter(pl.col("view") == "received").join(classes, on="row", how="anti")
        same = left.join(sent.select(key).unique(), on=key, how="semi", nulls_equal=True)
        return same.select("row", pl.lit("dce_piece").alias("class"), pl.lit(None, pl.UInt32).alias("call"))

    @staticmethod
    def _class(sides: Sides, pdu: Pdu, view: tuple[str, bool], firsts: set[tuple[Any, ...]]) -> str:
        if pdu.interface == CONV:
            return "dce_conv"
        if sides.activity.mapper:
            return "dce_mapper"
        if pdu.type not in (Type.REQUEST, Type.RESPONSE):
            return _CLASS[pdu.type]
        name = (view, sides.activity.uuid, pdu.type, pdu.sequence, pdu.fragment)
        again = name in firsts
        firsts.add(name)
        return "dce_retransmission" if again else "call"

    def _expected(self) -> dict[tuple[str, str, int], dict[str, Any]]:
        """Request and response of each procedure and size, each sent once."""
        found: dict[tuple[str, str, int], dict[str, Any]] = {}
        mtus = {call.id: self._mtus(each) for each in self.activities for call in each.calls}
        settings = {call.id: each.settings for each in self.activities for call in each.calls}
        sent = self.calls.filter(pl.col("id").is_in(list(settings)))
        kinds = sent.unique(["procedure", "size"], keep="first", maintain_order=True)
        for procedure, size, number in kinds.select("procedure", "size", "id").iter_rows():
            legs = [
                message_leg(settings[number].bodies(part), mtu)
                for part, mtu in zip(parameters(procedure, size), mtus[number], strict=True)
            ]
            found["udp", procedure, size] = {"request": leg_json(legs[0]), "reply": leg_json(legs[1])}
        return found


KIND: WorkloadVerifier = Verifier(transport=_Dce(_Verification))


def _unlike(machine: Client, rows: Mapping[int, parties.Call], *, exact: bool) -> int:
    """Calls that ended otherwise than their client says, with other retransmissions, or later where clocks are one
    (`exact`): of several histories the one with the fewest is meant."""
    ended = (
        (rows[call.id], machine.ended.get(place), machine.resent.get(place, 0))
        for place, call in enumerate(machine.calls)
        if call.id is not None
    )
    return sum(
        end is None
        or row.ok != (end[0] == OK)
        or (exact and row.ok and row.end_ns < end[1])
        or row.retransmits != again
        for row, end, again in ended
    )


def message_leg(pdus: Sequence[int], mtu: int) -> Leg:
    """All packets of a message whose PDUs have such bodies, sent once."""
    packets = tuple(packet for body in pdus for packet in udp_packets(HEADER + body, mtu))
    return Leg("udp", sum(pdus), sum(pdus) + HEADER * len(pdus), tuple(pdus), packets)
