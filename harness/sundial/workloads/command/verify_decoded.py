# SPDX-License-Identifier: Apache-2.0
"""Ports that the scenario gives a decoder: their services, what their messages must be, and what is still unproven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.decoders.gathered import connections, datagrams, unreachable
from sundial.verify.decoders.registry import DECODERS
from sundial.verify.decoders.traffic import Judged, Service, Traffic
from sundial.verify.sockets.conversations import Conversation
from sundial.verify.workload import EXCHANGES
from sundial.workloads.command.model import Port
from sundial.workloads.command.verify_events import pauses
from sundial.workloads.command.verify_records import Ran


def services_of(ports: Iterable[Port]) -> dict[Service, str | None]:
    """The services that ports name, each with its decoder."""
    found: dict[Service, str | None] = {}
    for port in ports:
        for transport in ("tcp", "udp"):
            for number in port.numbers(transport):
                service = Service(transport, None, number)
                found[service] = port.decode or found.get(service)
    return found


@dataclass(frozen=True)
class Absences:
    """When programs did not run, by their records."""

    machines: Mapping[str, str]
    """Machine by address."""
    ran: Mapping[str, Sequence[Ran]]
    """All programs of a machine."""
    listeners: Mapping[tuple[str, str, int], Sequence[Ran]]
    """Services by transport, machine and port."""
    offs_ns: Mapping[str, int] = field(default_factory=dict)
    """When the power of machines is cut."""

    def of_service(self, service: Service, since_ns: int, until_ns: int) -> bool:
        """Whether a program that serves there did not run, was paused or off, at some time of an interval. Of a port by
        which no service is ready, that is any service of the machine."""
        machine = self.machines.get(service.address or "", "")
        if self.offs_ns.get(machine, until_ns + 1) <= until_ns:
            return True
        own = [each for each in self.ran.get(machine, ()) if each.program.role == "service"]
        serving = self.listeners.get((service.transport, machine, service.port), own)
        return any(not _runs(each, since_ns, until_ns) for each in serving)

    def of_client(self, address: str, since_ns: int, until_ns: int) -> bool:
        """Whether a program of the machine was paused, a signal ended it, or the machine was off, at some time of an
        interval."""
        machine = self.machines.get(address, "")
        if self.offs_ns.get(machine, until_ns + 1) <= until_ns:
            return True
        for each in self.ran.get(machine, ()):
            if any(begin <= until_ns and since_ns <= end for begin, end in pauses(each)):
                return True
            if any(life.signal is not None and since_ns <= life.end_ns <= until_ns for life in each.lives):
                return True
        return False


def _runs(ran: Ran, since_ns: int, until_ns: int) -> bool:
    """Whether it ran through all of an interval."""
    lives = any(life.start_ns <= since_ns and until_ns <= life.end_ns for life in ran.lives)
    return lives and not any(begin <= until_ns and since_ns <= end for begin, end in pauses(ran))


@dataclass(frozen=True)
class Decoded:
    """What decoders found."""

    services: Mapping[Service, str | None]
    """With those that messages name."""
    judged: Mapping[str, Judged]

    @property
    def remarks(self) -> list[str]:
        """What each has read, in a line."""
        return [found.remark(name) for name, found in self.judged.items()]


def decode(
    run: RunDirectory,
    frames: pl.DataFrame,
    services: Mapping[Service, str | None],
    absences: Absences,
    ends: Mapping[str, str],
    conversations: Callable[[Iterable[Service]], Sequence[Conversation]],
) -> Decoded:
    """All traffic of services with a decoder, and of those that their messages name on machines of the workload.

    `ends`: the port of each address, as `end` of frames; `conversations`: those to some services.
    """
    known, judged = dict(services), {}
    for name in dict.fromkeys(decoder for decoder in services.values() if decoder is not None):
        while True:
            own = [service for service, decoder in known.items() if decoder == name]
            traffic = Traffic(
                connections(conversations(own)),
                datagrams(frames, run.capture_files, own, ends),
                absence=absences,
                unreachable=unreachable(frames),
            )
            judged[name] = DECODERS[name].judge(traffic)
            new = {each for each in judged[name].services if each.address in absences.machines} - known.keys()
            # A port that the scenario names is that of the scenario, with or without a decoder.
            new = {each for each in new if each._replace(address=None) not in services}
            if not new:
                break
            known |= dict.fromkeys(sorted(new, key=str), name)
    return Decoded(known, judged)


def exchanges_of(decoded: Decoded, machines: Mapping[str, str]) -> pl.DataFrame:
    """All questions with their answers, in time; `machines` by address."""
    rows = [
        {
            "decoder": name,
            "transport": each.transport,
            "client": machines.get(each.client[0], each.client[0]),
            "server": machines.get(each.server[0], each.server[0]),
            "port": each.server[1],
            "procedure": each.procedure,
            "start_ns": each.sent_ns,
            "end_ns": each.answered_ns,
            "rtt_ns": None if each.answered_ns is None else each.answered_ns - each.sent_ns,
            "question_bytes": each.question_bytes,
            "answer_bytes": each.answer_bytes,
            "retransmissions": each.retransmissions,
            "after_loss": each.after_loss,
            "ok": each.answered_ns is not None,
        }
        for name, judged in decoded.judged.items()
        for each in judged.exchanges
    ]
    return pl.DataFrame(rows, schema=EXCHANGES).sort("start_ns", maintain_order=True)


def unproven_of(run: RunDirectory) -> list[str]:
    """What is not proven of the ports of programs: each that has no decoder, and what decoders do not check."""
    found: dict[str, None] = {}
    workloads = [
        each for each in (run.document.get("scenario") or {}).get("workloads", ()) if each.get("app") == "command"
    ]
    ports = [(name, port) for each in workloads for name, port in (each.get("ports") or {}).items()]
    for name, port in ports:
        for transport in ("tcp", "udp"):
            if port.get(transport) is None:
                continue
            if port.get("decode"):
                found.update(dict.fromkeys(DECODERS[port["decode"]].unproven))
                continue
            where = f"{name} ({transport.upper()} {port[transport]})"
            found[f"command: what programs say at {where}, which has no decoder: its bytes have no meaning here"] = None
            if transport == "udp":
                found[f"command: that a program sends a datagram again at {where} only for a reason"] = None
    return list(found)
