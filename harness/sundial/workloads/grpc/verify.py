# SPDX-License-Identifier: Apache-2.0
"""Verification of gRPC: each frame of HTTP/2 of both ends of each connection, and what follows from what.

What an end has to send follows from the calls of the samples, octet by octet, headers by the state of the table that
both ends keep (`expect`). So a frame that is missing, one that is too much, and one with another octet are found alike
(`verify_frames`); those of a connection have their own rules (`verify_control`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from sundial.expect.call import tcp_leg
from sundial.judge.parties import check_reporters
from sundial.judge.settled import Transport, Verdict, Verification
from sundial.verify.findings import Finding
from sundial.verify.result import leg_json
from sundial.verify.sockets.conversations import Conversation, conversations
from sundial.verify.workload import Verifier, WorkloadVerifier
from sundial.workloads import functions, reporting, server_death, switches
from sundial.workloads.grpc.expect import LIBRARIES, PORT, call_octets
from sundial.workloads.grpc.expect_languages import BY_CLIENT, BY_SERVER, PYTHON
from sundial.workloads.grpc.verify_connection import Connection, Ends
from sundial.workloads.grpc.verify_names import BROKEN, LATE, Service, Step, libraries, links, steps

NAME = "grpc"
UNPROVEN: tuple[str, ...] = (
    "grpc: between which frames of calls a connection's window updates are",
    "grpc: which of a call's frames a program writes at once; only that no segment is shorter than a frame needs",
    "grpc: when a server without work reports; only what it reports at last, and that it counts upwards",
    "grpc: when PINGs that the scenario counts are sent",
    "grpc: sums of window updates behind SETTINGS that change a window, and from a call on that had its time",
    "grpc: when a channel whose connection broke tries again",
    f"grpc: {switches.UNPROVEN}",
    f"grpc: {reporting.UNPROVEN}",
)
_DEFAULT = next(iter(LIBRARIES.values()))


@dataclass(frozen=True)
class _Grpc(Transport):
    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        if call["xid"] is None or call["client_port"] is None:
            return None
        way = f"ip.addr == {call['client_address']} && tcp.port == {call['client_port']}"
        return f"{way} && http2.streamid == {call['xid']}"


def _ports(workload: Mapping[str, Any]) -> range:
    """Of the servers of a workload, as its scenario was recorded."""
    first = int(workload.get("port") or PORT)
    return range(first, first + len(workload.get("languages") or [PYTHON.name]))


class _Verification(Verification[Service]):
    """Of one run."""

    name = NAME
    clients = tuple(BY_CLIENT)
    servers = tuple(BY_SERVER)
    service = Service

    def prepare(self) -> None:
        self.speeds = switches.Speeds(self.run)
        self.steps = steps(self.run, self.samples)
        ends = {end for each in self.services for end in each.ends}
        self.found = conversations(self.run, self.frames, ends)
        # Under the virtual clock servers are ready before steps begin.
        clients = set() if self.exact else {(each.client, each.server) for each in self.steps}
        attempts = self.found.attempts(clients)
        self.conversations = [each for each in self.found.all if each.number not in attempts]
        own, self.unowned = links(self.steps, self.conversations)
        self.libraries = libraries(self.run)
        self.connections = [Connection(link, self._ends(link.conversation, link.step)) for link in own]
        self.again = [each.again() for each in self.connections]

    def _ends(self, each: Conversation, step: Step) -> Ends:
        server = next((one for one in self.services if each.server in one.ends), None)
        answers = step.language if server is None else server.language
        return Ends(
            client=self.libraries.get((each.client_machine, step.language.name), _DEFAULT),
            server=self.libraries.get((each.server_machine, answers.name), _DEFAULT),
            language=step.language,
            client_probes=bool(step.options.get("bdp_probe")),
            server_probes=server is not None and server.bdp_probe,
            counted=self._counted(each),
            mtus=(self.mtu(each.client[0]), self.mtu(each.server[0])),
        )

    def _counted(self, each: Conversation) -> bool:
        """Whether the scenario lets frames beside those of calls be there."""
        workloads = (self.run.document.get("scenario") or {}).get("workloads", [])
        return any(
            one.get("control_frames") == "counted"
            for one in workloads
            if isinstance(one, dict)
            and one.get("app") == NAME
            and one.get("server") in (None, each.server_machine)
            and each.server[1] in _ports(one)
        )

    def verdict(self) -> Verdict:
        rows: list[Finding] = [*self._unowned(), *self._check_rows(), *self._check_batches(), *self._check_servers()]
        seen: list[dict[str, Any]] = []
        for connection, again in zip(self.connections, self.again, strict=True):
            rows += connection.findings(exact=self.exact)
            seen += connection.observed(again)
        received = self.found.balance(self.transit).with_columns(field=pl.lit("grpc.received"))
        explained = [part for connection in self.connections for part in connection.explained()]
        return Verdict(
            self.found.classes(explained),
            self.found.packets,
            rows,
            [self.found.findings, received],
            seen,
            self._expected(),
        )

    # ---- findings ----

    def _unowned(self) -> Iterator[Finding]:
        """Connections of no step. One whose step's calls failed tried again."""
        for each in self.unowned:
            tried = any(step.broke and step.client == each.client_machine for step in self.steps)
            size = sum(len(way.data) for way in each.ways.values())
            if size or not tried:
                rows = [row for way in each.ways.values() for row in way.rows(0, len(way.data))]
                text = "{}:{} > {}:{}".format(*each.client, *each.server)
                yield Finding(None, "grpc.connection", "of a client's step", f"{text}, {size} bytes", rows)

    def _check_rows(self) -> Iterator[Finding]:
        """Samples: the functions with their sizes, over gRPC, with frames of their own where they succeeded."""
        carried = {call.id for connection in self.connections for call in connection.link.calls}
        names = [
            "id",
            "procedure",
            "size",
            "transport",
            "retransmits",
            "ok",
            "error",
            "app",
            "batch",
            "client",
            "end_ns",
        ]
        for number, procedure, size, transport, again, ok, error, app, batch, client, end_ns in self.calls.select(
            names
        ).iter_rows():
            known = functions.BY_NAME.get(procedure)
            if known is None or known.size != size:
                expected = "one of the twelve functions" if known is None else str(known.size)
                yield Finding(number, "sample.size", expected, f"{procedure}, {size}")
            line = self.samples.batches.get((client, batch), {})
            if known is not None and line.get("function") != known.number:
                yield Finding(number, "sample.function", str(known.number), str(line.get("function")))
            if line.get("language") != BY_CLIENT[app].name:
                yield Finding(number, "sample.language", BY_CLIENT[app].name, str(line.get("language")))
            if transport != NAME:
                yield Finding(number, "sample.transport", NAME, str(transport))
            if again:
                yield Finding(number, "sample.retransmits", "0: TCP sends again, and no client", str(again))
            if ok and number not in carried:
                yield Finding(number, "request", "on a connection of its step", "none")
            if not ok and error == BROKEN and number not in carried and not self._broke(client, end_ns):
                yield Finding(number, "sample.error", "none: no connection broke", str(error))

    def _broke(self, client: str, end_ns: int) -> bool:
        """Whether a connection of a client's broke, or was refused; or ARP had found no way to make one by then."""
        unresolved = any(begin <= end_ns or not self.exact for begin, _ in self.unsent.get(client, ()))
        return unresolved or any(
            each.client_machine == client and (each.ways[True].finished or each.reset_rows or not each.ways[True].data)
            for each in self.conversations
        )

    def _check_batches(self) -> Iterator[Finding]:
        """Ports of batches, and the segments that the client's kernel says it sent again."""
        counted: dict[tuple[str, int], int] = {}
        ports: dict[tuple[str, int], set[int]] = {}
        servers: dict[tuple[str, int], int] = {}
        waits: dict[tuple[str, int], bool] = {}
        broke: set[tuple[str, int]] = set()
        for connection, again in zip(self.connections, self.again, strict=True):
            link = connection.link
            for place, call in enumerate(link.calls):
                key = (link.step.client, call.batch)
                ports.setdefault(key, set()).add(link.conversation.client[1])
                servers[key] = link.step.server[1]
                waits[key] = self.speeds.waits(link.step.client, link.conversation.server_machine)
                # The client's kernel counts from the connection's beginning on.
                opening = 0 if place else again[False].get(-1, 0)
                counted[key] = counted.get(key, 0) + again[False].get(place, 0) + opening
                broke |= {key} if call.error == BROKEN else set()
        handshakes, late = self._handshakes(), self._late()
        answered = self._answered()
        for (client, batch), line in self.samples.batches.items():
            if line.get("app") not in BY_CLIENT or (client, batch) not in ports:
                continue
            where = f"nodes/{client} batch {batch}"
            yield from switches.check_batch(where, line, answered.get((client, batch), 0), waits=waits[client, batch])
            own, server_port = ports[client, batch], servers[client, batch]
            if line.get("server_port") != server_port:
                yield Finding(None, f"{where} server_port", str(server_port), str(line.get("server_port")))
            # A client looks for its connection behind a batch, and one that broke may be there no more.
            gone = line.get("client_port") is None and (client, batch) in broke
            if not gone and line.get("client_port") not in own:
                yield Finding(
                    None, f"{where} client_port", ", ".join(map(str, sorted(own))), str(line.get("client_port"))
                )
            said, seen = line.get("tcp_retransmits"), counted[client, batch]
            # If a batch used several connections, it is unknown how many of them its client counted.
            more = handshakes.get((client, min(own)), 0)
            least = 0 if gone else seen
            if said is not None and (client, batch) in late:
                continue
            if said is None or (len(own) == 1 and not least <= said <= seen + more):
                yield Finding(None, f"{where} tcp_retransmits", f"{seen}, as captured", str(said))

        for batches in {tuple(each) for each in late.values()}:
            said = sum(self.samples.batches[key].get("tcp_retransmits") or 0 for key in batches)
            seen = sum(counted.get(key, 0) for key in batches)
            least = 0 if broke.intersection(batches) else seen - counted.get(batches[-1], 0)
            ends = {(client, port) for client, batch in batches for port in ports.get((client, batch), ())}
            most = seen + sum(handshakes.get(end, 0) for end in ends)
            if not least <= said <= most:
                where = f"nodes/{batches[0][0]} batches {batches[0][1]} to {batches[-1][1]} tcp_retransmits"
                yield Finding(None, where, f"{least} to {most} together, as captured", str(said))

    def _late(self) -> dict[tuple[str, int], list[tuple[str, int]]]:
        """All batches of its step, for each batch of a step with a call that had its time: what that call left behind
        is sent again when a later batch is under way, or none."""
        found: dict[tuple[str, int], list[tuple[str, int]]] = {}
        for step in self.steps:
            if any(call.error == LATE for call in step.calls):
                batches = list(dict.fromkeys((step.client, call.batch) for call in step.calls))
                found |= dict.fromkeys(batches, batches)
        return found

    def _answered(self) -> dict[tuple[str, int], int]:
        """Measured calls that succeeded, by machine and batch."""
        measured = self.calls.filter(pl.col("ok"), ~pl.col("warmup"))
        return {
            (client, batch): count for client, batch, count in measured.group_by("client", "batch").len().iter_rows()
        }

    def _handshakes(self) -> dict[tuple[str, int], int]:
        """What a client's kernel counts beside data, or an adapter dropped before it was seen: by machine and port."""
        frames = self.found.frames.filter(~pl.col("reply"))
        syns = frames.filter(pl.col("view") == "sent", pl.col("tcp_flags") & 2 != 0).group_by("source_port").len()
        dropped = frames.filter(pl.col("fate") == "dropped").group_by("source_port").len()
        counts: dict[int, int] = {port: count - 1 for port, count in syns.iter_rows()}
        for port, count in dropped.iter_rows():
            counts[port] = counts.get(port, 0) + count
        machines = {each.client[1]: each.client_machine for each in self.found.all}
        return {(machines[port], port): count for port, count in counts.items() if port in machines}

    def _check_servers(self) -> Iterator[Finding]:
        """What servers counted: at last all requests that they executed, before that never more."""
        yield from check_reporters(self.samples, self.services, lambda line: line.get("app") in BY_SERVER)
        for service in self.services:
            yield from self._check_server(service)

    def _check_server(self, service: Service) -> Iterator[Finding]:
        least = dict.fromkeys(functions.NAMES, 0)
        most = dict(least)
        own = [each for each in self.connections if each.conversation.server in service.ends]
        for connection in own:
            for name, (low, high) in connection.served().items():
                least[name] += low
                most[name] += high
        if not self.run.by_hand:
            came, answered = sum(most.values()), sum(least.values())
            spoken = [each.conversation for each in own]
            ended = any(each.ended_by_server and not each.refused for each in spoken)
            for difference in server_death.check_death(
                NAME, service.die_call, came=came, answered=answered, at_once=service.max_workers, ended=ended
            ):
                yield Finding(None, *difference)
        where, lines = f"{service.where} counters", service.lines(self.samples)
        # One that is killed says so before.
        due = bool(service.die_call) or reporting.is_due(self.run)
        if not lines:
            answered = any(least.values()) and (service.die_call or not any(step.broke for step in self.steps))
            if answered and due:
                yield Finding(None, where, "a line after its calls", "none")
            return
        before: Mapping[str, Any] = {}
        for number, line in enumerate(lines):
            said = line.get("by_function")
            said = said if isinstance(said, Mapping) else {}
            last = due and number == len(lines) - 1
            for name in {*least, *said}:
                seen, low = said.get(name, 0), least.get(name, 0) if last else before.get(name, 0)
                if not isinstance(seen, int) or not low <= seen <= most.get(name, 0):
                    text = str(low) if low == most.get(name, 0) else f"{low} to {most.get(name, 0)}"
                    yield Finding(None, f"{where} {name}", text, str(seen))
            total = sum(each for each in said.values() if isinstance(each, int))
            for name, expected in (("calls", total), ("failed", 0)):
                if line.get(name) != expected:
                    yield Finding(None, f"{where} {name}", str(expected), str(line.get(name)))
            before = said
        waits = [self.speeds.waits(service.machine, each.conversation.client_machine) for each in own] == [True]
        yield from switches.check_counters(where, lines[-1], before, waits=waits)
        if service.die_call is not None and (last_call := min(service.die_call, sum(most.values()))) != total:
            yield Finding(None, f"{where} calls", f"{last_call}: it is killed in call {service.die_call}", str(total))

    # ---- the result ----

    def _expected(self) -> dict[tuple[str, str, int], dict[str, Any]]:
        """Request and reply of a later call of each function."""
        found: dict[tuple[str, str, int], dict[str, Any]] = {}
        for connection in self.connections:
            authority = "{}:{}".format(*connection.link.step.server)
            for call in connection.link.calls:
                known = functions.BY_NAME.get(call.function)
                if known is None or (NAME, known.name, known.size) in found:
                    continue
                sizes = (
                    call_octets(library, known.name, [known.name], authority)[way]
                    for way, library in enumerate((connection.ends.client, connection.ends.server))
                )
                said = connection.conversation
                legs = [
                    tcp_leg(size, (size,), mtu, said.timestamps, peer_mss)
                    for size, mtu, peer_mss in zip(sizes, connection.ends.mtus, reversed(said.mss), strict=True)
                ]
                found[NAME, known.name, known.size] = {"request": leg_json(legs[0]), "reply": leg_json(legs[1])}
        return found


KIND: WorkloadVerifier = Verifier(transport=_Grpc(_Verification))
