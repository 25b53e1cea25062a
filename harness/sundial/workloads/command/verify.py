# SPDX-License-Identifier: Apache-2.0
"""What can be proven of any program's traffic. Its bytes have a meaning where its port has a decoder. A frame has a
reason if it belongs to a connection to, or a datagram from or to, a port that the workload or a decoded message names.
Streams are whole and unchanged, what was sent arrives or has a fate, and nothing is sent before the machine's programs
have started.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from sundial.model.experiment import Experiment
from sundial.model.network import Network
from sundial.model.recorded import recorded_experiment
from sundial.observe import RunDirectory
from sundial.observe.headers import ARP, IPV4
from sundial.observe.programs import STREAMS, outputs
from sundial.verify.conservation import Transit, check_balance, transit_of
from sundial.verify.decoders.gathered import of_service
from sundial.verify.decoders.traffic import Service
from sundial.verify.findings import Finding, as_table, none
from sundial.verify.frames import OUTBOUND, end_name
from sundial.verify.headers.igmp import IGMP
from sundial.verify.headers.ports import ports_of
from sundial.verify.samples import RunSamples
from sundial.verify.sockets import flows, tcp
from sundial.verify.sockets.conversations import Conversation, Conversations, Explained, conversations
from sundial.verify.workload import FIGURES, Background, Verifier, WorkloadVerifier
from sundial.workloads.command.model import Command, Port, port_number
from sundial.workloads.command.verify_amounts import check_amounts
from sundial.workloads.command.verify_clocks import check_clocks
from sundial.workloads.command.verify_decoded import Absences, Decoded, decode, exchanges_of, services_of, unproven_of
from sundial.workloads.command.verify_events import check_events, late_ns, pauses
from sundial.workloads.command.verify_records import Ran, are_records, check_order, check_ran, figures_of, read_records

CLASS, UNNAMED = "command", "unnamed"
_ECHO = (0, 8)
_UNREACHABLE = 3

UNPROVEN: tuple[str, ...] = (
    "command: that what a program writes to its outputs is true",
    "command: what a program does between its frames, and that a service would have served longer",
    "command: what is in frames that programs make themselves (`ethertype`), and that no kernel made them",
    "command: that TTL, type of service and DF of a flow are what its program set, at its ends above all",
    "command: of a paused program only that it answers no new connection: its kernel sends what was written before",
    "command: that no datagram leaves after its program has ended, since it may wait for ARP",
)


@dataclass(frozen=True)
class _Machines:
    """The machines of the workload, and the others of the run."""

    own: Mapping[str, str]
    """Machine by address: those with programs, and those that no workload has, whose kernels answer."""
    others: frozenset[str]
    """Addresses of machines of other workloads."""
    ends: Mapping[str, str]
    """Port of an address, as `end` of frames."""
    ran: Mapping[str, Sequence[Ran]]
    listeners: Mapping[tuple[str, str, int], Sequence[Ran]]
    """Services by protocol, machine and the port by which they are ready."""
    offs_ns: Mapping[str, int]
    """When the power of machines is cut."""
    with_programs: frozenset[str]
    """Machines."""

    @property
    def absences(self) -> Absences:
        """When their programs did not run."""
        return Absences(self.own, self.ran, self.listeners, self.offs_ns)

    def begins_ns(self, machine: str) -> int | None:
        """When its first program started."""
        return min((each.start_ns for each in self.ran.get(machine, ())), default=None)


@dataclass
class _Parts:
    """What is known so far."""

    findings: list[pl.DataFrame] = field(default_factory=lambda: [none()])
    classes: list[pl.DataFrame] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)

    def take(self, rows: Sequence[int] | pl.Series, name: str = CLASS) -> None:
        """Rows with a reason."""
        table = pl.DataFrame({"row": rows}, schema={"row": pl.UInt32})
        self.classes.append(table.select("row", pl.lit(name).alias("class")))


class _Command(Verifier):
    def unproven_of(self, run: RunDirectory) -> list[str]:
        return unproven_of(run)

    def of_users(self, run: RunDirectory) -> Mapping[str, frozenset[int]]:
        found: dict[str, frozenset[int]] = {}
        for each in _workloads(run):
            types = {port.ethertype for port in each.ports.values() if port.ethertype is not None}
            found |= {name: found.get(name, frozenset()) | types for name in each.machines}
        return found

    def background(
        self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, ahead_ns: Mapping[str, int]
    ) -> Background:
        workloads = _workloads(run)
        if not workloads:
            return Background()
        experiment = recorded_experiment(run.document)
        parts = _Parts()
        found = [(each, _check_records(run, each, experiment.network, samples, parts)) for each in workloads]
        machines, ports = (
            _machines(run, found, experiment),
            [port for each in workloads for port in each.ports.values()],
        )
        transit = transit_of(frames, ports_of(run))
        decoded = _decoded(run, frames, services_of(ports), machines)
        parts.findings += [as_table(each.findings) for each in decoded.judged.values()]
        _streams(run, frames, decoded.services, machines, transit, parts)
        _datagrams(frames, decoded.services, machines, transit, parts)
        _messages(frames, ports, machines, parts)
        _frames(frames, self.of_users(run), ports_of(run), parts)
        if len(workloads) == len(experiment.scenario.workloads):
            added = _added_addresses(frames, ports_of(run), machines, parts)
            _others(frames.filter(~pl.col("source").is_in(added), ~pl.col("target").is_in(added)), machines, parts)
            _other_frames(frames, ports_of(run), machines, parts)
        classes = pl.concat([Background().classes, *parts.classes]).unique("row", keep="first", maintain_order=True)
        if run.clock == "virtual":
            parts.findings.append(as_table(_check_silence(frames, classes, machines)))
        tables = {
            "exchanges": exchanges_of(decoded, machines.own),
            "figures": pl.DataFrame(parts.figures, schema=FIGURES),
        }
        return Background(pl.concat(parts.findings), classes, decoded.remarks, tables)


def _workloads(run: RunDirectory) -> list[Command]:
    """The workloads of this kind."""
    if not any(each.get("app") == CLASS for each in (run.document.get("scenario") or {}).get("workloads", ())):
        return []
    return [each for each in recorded_experiment(run.document).scenario.workloads if isinstance(each, Command)]


def _check_records(
    run: RunDirectory, workload: Command, network: Network, samples: RunSamples, parts: _Parts
) -> list[Ran]:
    """All programs of a workload as recorded, compared with the scenario and the files."""
    found: list[Ran] = []
    rows: list[Finding] = []
    by_machine: dict[str, list[Mapping[str, Any]]] = {}
    exact = run.clock == "virtual"
    late = {name: late_ns(network.node(name).mips) for name in workload.machines if exact}
    for machine in workload.machines:
        records = samples.records.get(machine, ())
        own: list[Mapping[str, Any]] = [each for each in records if _of_workload(each, workload, run, machine)]
        if not are_records(own):
            continue  # `check_documents` says which lines are not
        ran, missing = read_records(workload, machine, run.nodes[machine].zero_ns, own, network.events)
        by_machine[machine] = own
        written = outputs(own)
        rows += missing
        for each in ran:
            rows += check_ran(each, written)
            numbers, lacking = figures_of(each, written)
            parts.figures += numbers
            rows += lacking
        for name, stream in ((each.name, stream) for each in ran for stream in STREAMS):
            data = written.get((name, stream), b"")
            file = run.path / "nodes" / machine / "programs" / f"{name}.{stream}"
            seen = file.read_bytes() if file.is_file() else b""
            if seen != data:
                where = f"nodes/{machine}/programs/{name}.{stream}"
                rows.append(Finding(None, where, f"the {len(data)} bytes of the records", f"{len(seen)} bytes"))
        rows += check_clocks(network.events, machine, own, run.nodes[machine].zero_ns, late.get(machine))
        zero_ns, memory_bytes = run.nodes[machine].zero_ns, network.node(machine).memory
        rows += check_amounts(network.events, machine, own, zero_ns, late.get(machine), memory_bytes)
        found += ran
    if exact:  # clocks of machines have one zero only there
        rows += check_order(workload, found)
    zeros_ns = {machine: run.nodes[machine].zero_ns for machine in workload.machines}
    rows += check_events(network.events, workload, found, by_machine, zeros_ns, late)
    parts.findings.append(as_table(rows))
    return found


def _of_workload(record: Mapping[str, Any], workload: Command, run: RunDirectory, machine: str) -> bool:
    """Whether a record is of the step that runs a workload's programs; one that names no step of programs is."""
    steps = run.jobs.get(machine, {}).get("steps", ())
    place = record.get("step")
    options = steps[place].get("options", {}) if isinstance(place, int) and place < len(steps) else {}
    names = {each.get("name") for each in options.get("programs", ())}
    return not names or bool(names & workload.programs.keys())


def _machines(run: RunDirectory, found: Sequence[tuple[Command, Sequence[Ran]]], experiment: Experiment) -> _Machines:
    having = {name for workload, _ in found for name in workload.machines}
    parties = {name for workload in experiment.scenario.workloads for name in workload.parties}
    names = having | run.nodes.keys() - parties
    own: dict[str, str] = {}
    others: set[str] = set()
    ends: dict[str, str] = {}
    for name, node in run.nodes.items():
        for interface in node.interfaces:
            if not interface.address:
                continue
            ends[interface.address] = end_name(f"wire/{interface.segment}.pcapng", f"{name}:{interface.device}")
            if name in names:
                own[interface.address] = name
            else:
                others.add(interface.address)
    by_machine: dict[str, list[Ran]] = {}
    listeners: dict[tuple[str, str, int], list[Ran]] = {}
    for workload, ran in found:
        for each in ran:
            by_machine.setdefault(each.machine, []).append(each)
            for protocol in ("tcp", "udp"):
                port = getattr(each.program.ready, protocol, None)
                number = None if port is None else port_number(workload, port)
                if number is not None:
                    listeners.setdefault((protocol, each.machine, number), []).append(each)
    return _Machines(own, frozenset(others), ends, by_machine, listeners, experiment.network.offs_ns, frozenset(having))


def _conversations(
    run: RunDirectory, frames: pl.DataFrame, services: Iterable[Service], machines: _Machines
) -> Conversations:
    """Connections to some services."""
    ends = {
        (address, each.port)
        for each in services
        if each.transport == "tcp"
        for address in (machines.own if each.address is None else [each.address])
    }
    return conversations(run, frames, sorted(ends))


def _decoded(
    run: RunDirectory, frames: pl.DataFrame, services: Mapping[Service, str | None], machines: _Machines
) -> Decoded:
    """What decoders say of the services that have one."""

    def to(some: Iterable[Service]) -> list[Conversation]:
        return [each for each in _conversations(run, frames, some, machines).all if each.client[0] in machines.own]

    return decode(run, frames, services, machines.absences, machines.ends, to)


def _streams(
    run: RunDirectory,
    frames: pl.DataFrame,
    services: Iterable[Service],
    machines: _Machines,
    transit: Transit,
    parts: _Parts,
) -> None:
    """Connections to named ports, from SYN to end."""
    found = _conversations(run, frames, services, machines)
    own = [each for each in found.all if each.client[0] in machines.own]
    explained = [
        Explained(each.number, reply, 0, len(way.data), None, CLASS) for each in own for reply, way in each.ways.items()
    ]
    rows = found.frames.filter(pl.col("conn").is_in([each.number for each in own])).select("row")
    parts.classes.append(found.classes(explained).drop("call").join(rows, on="row", how="semi"))
    parts.findings += [found.findings, found.balance(transit)]
    parts.findings.append(as_table(_check_ends(own, machines.offs_ns)))
    if run.clock == "virtual":
        parts.findings.append(as_table([*_check_accepts(own, machines), *_check_pauses(own, machines)]))


def _check_ends(found: Sequence[Conversation], offs_ns: Mapping[str, int]) -> Iterator[Finding]:
    """Each connection that was answered is ended, by both sides or with RST: its programs have ended. Nothing ends one
    of a machine that is off."""
    for each in found:
        if each.client_machine in offs_ns or each.server_machine in offs_ns:
            continue
        if each.answered_ns is None or each.reset_rows or all(way.finished for way in each.ways.values()):
            continue
        open_by = [name for reply, name in ((False, "client"), (True, "server")) if not each.ways[reply].finished]
        rows = [segment.row for way in each.ways.values() for segment in way.sent[-1:]]
        yield Finding(None, f"{_named(each)} end", "FIN of both sides, or RST", f"none of the {open_by[0]}", rows)


def _check_accepts(found: Sequence[Conversation], machines: _Machines) -> Iterator[Finding]:
    """A server's kernel accepts only while a program that listens there runs: not after an event has killed it."""
    for each in found:
        services = machines.listeners.get(("tcp", each.server_machine, each.server[1]), ())
        at_ns = each.answered_ns
        if not services or each.refused or at_ns is None or any(one.lives_at(at_ns) for one in services):
            continue
        lives = [(one.name, life) for one in services for life in one.lives]
        expected = "; ".join(f"while {name} runs, {life.start_ns} to {life.end_ns} ns" for name, life in lives)
        yield Finding(None, f"{_named(each)} accepted", expected, f"at {at_ns} ns")


def _check_pauses(found: Sequence[Conversation], machines: _Machines) -> Iterator[Finding]:
    """A kernel accepts a connection for a program that is paused, which writes nothing to it before it continues."""
    for each in found:
        services = machines.listeners.get(("tcp", each.server_machine, each.server[1]), ())
        sent = each.ways[True].sent
        if len(services) != 1 or each.answered_ns is None or not sent:
            continue
        for since, until in pauses(services[0]):
            first = sent[0]
            if since <= each.answered_ns and first.at_ns < until:
                expected = f"no byte of {services[0].name}, which is paused until {until} ns"
                yield Finding(None, f"{_named(each)} reply", expected, f"at {first.at_ns} ns", [first.row])


def _named(each: Conversation) -> str:
    (near, near_port), (far, far_port) = each.client, each.server
    return f"TCP {near}:{near_port} > {far}:{far_port}"


def _datagrams(
    frames: pl.DataFrame, services: Iterable[Service], machines: _Machines, transit: Transit, parts: _Parts
) -> None:
    """Datagrams from and to named ports, with all their fragments."""
    own = list(machines.own)
    headed = frames.filter(
        pl.col("protocol") == flows.UDP,
        of_service(services, "udp"),
        pl.col("source").is_in(own),
        ~pl.col("target").is_in(list(machines.others)),
    )
    packets = headed.select("source", "target", "ip_id").unique()
    all_ = frames.filter(pl.col("protocol") == flows.UDP).join(packets, on=["source", "target", "ip_id"], how="semi")
    parts.take(all_["row"])
    names = ["source", "source_port", "target", "target_port"]
    pairs = headed.filter(pl.col("target").is_in(own)).select(names).unique().sort(names)
    seen: set[tuple[tuple[str, int], tuple[str, int]]] = set()
    lines: list[tuple[int, str, int, str, int, str, str]] = []
    for near, near_port, far, far_port in pairs.iter_rows():
        if ((far, far_port), (near, near_port)) not in seen:
            seen.add(((near, near_port), (far, far_port)))
            lines.append((len(lines), near, near_port, far, far_port, machines.ends[near], machines.ends[far]))
    schema = {
        "flow": pl.UInt32, "client_address": pl.String, "client_port": pl.UInt32, "server_address": pl.String,
        "server_port": pl.UInt32, "client_end": pl.String, "server_end": pl.String,
    }  # fmt: skip
    table = pl.DataFrame(lines, schema=schema, orient="row").with_columns(
        ip_protocol=pl.lit(flows.UDP, frames.schema["protocol"]),
        inner=pl.col("client_address") == pl.col("server_address"),
    )
    placed = flows.add_flows(frames, table).filter(pl.col("flow").is_not_null())
    placed = placed.with_columns(call=pl.lit(None, pl.UInt32))
    sides = ["flow", "reply", "udp_length", "udp_head"]
    parts.findings.append(check_balance(placed, sides, pl.format("a datagram of {}", "udp_length"), transit))


def _messages(frames: pl.DataFrame, ports: Sequence[Port], machines: _Machines, parts: _Parts) -> None:
    """Reports of groups; ICMP echo where a port names it, and port unreachable only where no program has the port."""
    parts.take(frames.filter(pl.col("protocol") == IGMP, pl.col("source").is_in(list(machines.own)))["row"])
    of_own = frames.filter(pl.col("protocol") == flows.ICMP, pl.col("source").is_in(list(machines.own)))
    if any(port.icmp for port in ports):
        packets = of_own.filter(pl.col("icmp_type").is_in(_ECHO)).select("source", "target", "ip_id").unique()
        echoes = of_own.join(packets, on=["source", "target", "ip_id"], how="semi")
        parts.take(echoes["row"])
    closed = of_own.filter(
        pl.col("icmp_type") == _UNREACHABLE, pl.col("direction") == OUTBOUND, pl.col("fate").is_null()
    )
    rows = []
    for row, source, port, at_ns in closed.select("row", "source", "target_port", "time_ns").iter_rows():
        services = machines.listeners.get(("udp", machines.own[source], port), ())
        serving = [each.name for each in services if each.serves_at(at_ns)]
        if serving:
            expected = f"a socket of {serving[0]} on UDP port {port}"
            rows.append(Finding(None, f"ICMP of {source}", expected, "port unreachable", [row]))
    parts.findings.append(as_table(rows))


def _frames(frames: pl.DataFrame, types: Mapping[str, Collection[int]], ports: pl.DataFrame, parts: _Parts) -> None:
    """Frames of types that a port names, from machines with programs."""
    for machine, numbers in types.items():
        macs = ports.filter(machine=machine)["mac"]
        of_type = frames.filter(pl.col("eth_type").is_in(list(numbers)), pl.col("eth_source").is_in(macs.implode()))
        parts.take(of_type["row"])


def _other_frames(frames: pl.DataFrame, ports: pl.DataFrame, machines: _Machines, parts: _Parts) -> None:
    """One finding for each type of frames that programs of a machine make and no workload names."""
    rest = frames.filter(pl.col("fate").is_null(), pl.col("eth_type") >= 0x0600, ~pl.col("eth_type").is_in([IPV4, ARP]))
    rest = rest.join(pl.concat([Background().classes, *parts.classes]), on="row", how="anti")
    owners = ports.filter(pl.col("machine").is_in(list(machines.with_programs))).select("machine", eth_source="mac")
    of_programs = rest.join(owners.unique("eth_source"), on="eth_source", how="inner", maintain_order="left")
    found = []
    for (machine, number), part in of_programs.group_by("machine", "eth_type", maintain_order=True):
        expected = f"a type that a workload names; add `NAME: {{ethertype: 0x{number:04x}}}` to ports"
        seen = f"{_count(part.height)}, which no workload names"
        found.append(Finding(None, f"frame of {machine}", expected, seen, part["row"].to_list()))
    parts.take(of_programs["row"], UNNAMED)
    parts.findings.append(as_table(found))


def _added_addresses(frames: pl.DataFrame, ports: pl.DataFrame, machines: _Machines, parts: _Parts) -> list[str]:
    """Addresses that programs gave their machines; one finding for each. Who has which is the topology's."""
    known = {*ports["address"].drop_nulls()}
    owners = ports.filter(pl.col("machine").is_in(list(machines.with_programs))).select("machine", eth_source="mac")
    sent = frames.filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND, pl.col("eth_type") == IPV4)
    strange = sent.drop_nulls("source").filter(~pl.col("source").is_in(list(known)))
    strange = strange.join(owners.unique("eth_source"), on="eth_source", how="inner", maintain_order="left")
    found = [
        Finding(
            None,
            f"address of {machine}",
            "those of its interfaces in the topology; programs cannot add others",
            f"{address} in {_count(part.height)}",
            part["row"].to_list(),
        )
        for (machine, address), part in strange.group_by("machine", "source", maintain_order=True)
    ]
    parts.findings.append(as_table(found))
    return strange["source"].unique().to_list()


def _others(frames: pl.DataFrame, machines: _Machines, parts: _Parts) -> None:
    """One finding for each port that programs use and no workload names."""
    taken = pl.concat([Background().classes, *parts.classes])
    machines_known = pl.col("source").is_in(list(machines.own)) & ~pl.col("target").is_in(list(machines.others))
    rest = frames.filter(
        pl.col("fate").is_null(), machines_known, pl.col("protocol").is_in([flows.TCP, flows.UDP, flows.ICMP])
    )
    rest = rest.join(taken, on="row", how="anti")
    ported = rest.filter(pl.col("source_port").is_not_null(), pl.col("protocol") != flows.ICMP)
    servers: dict[tuple[int, frozenset[tuple[str, int]]], tuple[str, int]] = {}
    rows: dict[tuple[str, str, int], list[int]] = {}
    names = ["protocol", "source", "source_port", "target", "target_port", "tcp_flags", "row"]
    for protocol, source, source_port, target, target_port, flags, row in (
        ported.sort("time_ns").select(names).iter_rows()
    ):
        key = protocol, frozenset({(source, source_port), (target, target_port)})
        answer = protocol == flows.TCP and (flags or 0) & (tcp.SYN | 0x10) == tcp.SYN | 0x10
        server = servers.setdefault(key, (source, source_port) if answer else (target, target_port))
        rows.setdefault(("TCP" if protocol == flows.TCP else "UDP", *server), []).append(row)
    echoes = rest.filter(pl.col("protocol") == flows.ICMP, pl.col("icmp_type").is_in(_ECHO))
    found = [
        Finding(
            None,
            f"{protocol} to {address}:{port}",
            f"a port that a workload names; add `NAME: {{{protocol.lower()}: {port}}}` to ports",
            f"{_count(len(rows_))}, which no workload names",
            rows_,
        )
        for (protocol, address, port), rows_ in rows.items()
    ]
    if len(echoes):
        expected = "a port that a workload names; add `ping: {icmp: true}` to ports"
        found.append(
            Finding(
                None, "ICMP echo", expected, f"{_count(len(echoes))}, which no workload names", echoes["row"].to_list()
            )
        )
    parts.take([row for rows_ in rows.values() for row in rows_], UNNAMED)
    parts.take(echoes["row"], UNNAMED)
    parts.findings.append(as_table(found))


def _count(frames: int) -> str:
    return "1 frame" if frames == 1 else f"{frames} frames"


def _check_silence(frames: pl.DataFrame, classes: pl.DataFrame, machines: _Machines) -> Iterator[Finding]:
    """Nothing with a reason leaves a machine before its first program has started."""
    sent = frames.filter(pl.col("direction") == OUTBOUND, pl.col("fate").is_null(), pl.col("source").is_not_null())
    sent = sent.join(classes, on="row", how="semi")
    for address, machine in machines.own.items():
        begins_ns = machines.begins_ns(machine)
        early = sent.filter(pl.col("source") == address, pl.col("end") == machines.ends[address])
        if begins_ns is not None:
            early = early.filter(pl.col("time_ns") < begins_ns)
        elif machine in machines.with_programs:  # its power was cut before it recorded them
            continue
        # A kernel answers an echo and refuses a connection by itself.
        by_kernel = (pl.col("protocol") == flows.ICMP) | (pl.col("tcp_flags").fill_null(0) & tcp.RST != 0)
        for row, at_ns in early.filter(~by_kernel).select("row", "time_ns").iter_rows():
            yield Finding(
                None,
                f"frame of {machine}",
                "none without a program" if begins_ns is None else f"none before its first program, at {begins_ns} ns",
                f"at {at_ns} ns",
                [row],
            )


KIND: WorkloadVerifier = _Command()
