# SPDX-License-Identifier: Apache-2.0
"""Programs in jobs: one step on each machine, which runs all programs there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sundial.model.amount_events import Amount, amounts
from sundial.model.clock_events import ClockChange, clock_changes
from sundial.model.network import Network
from sundial.model.program_events import Signal
from sundial.model.timeline import Event
from sundial.plan.calling import written
from sundial.plan.seeds import derive
from sundial.plan.workload import Host, Options, Service, Step, Way, WorkloadPlan
from sundial.workloads.command.model import Command, Program, Ready, port_number, template_values
from sundial.workloads.command.model_events import events_on
from sundial.workloads.command.model_template import filled

APP = "command"


class CommandPlan:
    """Programs, as the plan asks for them."""

    def services(self, workload: Command, server: Host) -> Iterator[Service]:
        return iter(())

    def steps(self, workload: Command, way: Way) -> Iterator[Step]:
        network, machine = way.client.network, way.client.node.name
        numbers = {node.name: number for number, node in enumerate(network.nodes)}
        here = [(number, name) for number, (name, where) in enumerate(workload.instances) if where == machine]
        files = {path: text for _, name in here for path, text in workload.programs[name].files.items()}
        events = [_event(*each) for each in events_on(network.events, workload.programs, machine)]
        options: Options = {
            "workload": way.workload or None,
            "machine": numbers[machine],
            "peers": _peers(workload, machine, numbers, network.offs_ns),
            "files": files or None,
            "programs": [_program(workload, network, machine, each, way.seed, numbers) for each in here],
            "events": events or None,
            "clocks": [_change(each) for each in clock_changes(network.events, machine)] or None,
            "amounts": [_amount(each) for each in amounts(network.events, machine)] or None,
        }
        yield Step(APP, written(options))

    def idle_services(self, host: Host) -> Iterator[Service]:
        return iter(())


def _peers(workload: Command, machine: str, numbers: Mapping[str, int], offs_ns: Mapping[str, int]) -> list[int] | None:
    """The machines whose jobs must have ended before services of `machine` end. One that is off cannot say that its own
    have. A machine without peers does not listen: where all others are off later, it is its own."""
    others = [name for name in workload.machines if name != machine]
    return [numbers[name] for name in others if name not in offs_ns] or ([numbers[machine]] if others else None)


def _program(
    workload: Command, network: Network, machine: str, instance: tuple[int, str], seed: int, numbers: dict[str, int]
) -> dict[str, Any]:
    number, name = instance
    program = workload.programs[name]
    values = template_values(workload, network, machine, derive(seed, "program", machine, name))

    def fill(text: str) -> str:
        return filled(text, values.get, lambda: "")

    after = [
        [numbers[where], other] for other, (awaited, where) in enumerate(workload.instances) if awaited in program.after
    ]
    waiting = [where for other, where in workload.instances if name in workload.programs[other].after]
    return written(
        {
            "name": name,
            "id": number,
            "role": program.role,
            "argv": [fill(word) for word in program.words],
            "env": {key: fill(text) for key, text in program.env.items()} or None,
            "directory": None if program.directory is None else fill(program.directory),
            "user": program.user,
            "input": None if program.input is None else fill(program.input),
            "ready": None if program.ready is None else _ready(workload, program.ready, fill),
            "rule": None if program.ready is None else _rule(workload, program.ready),
            "after": after or None,
            "tells": [numbers[each] for each in dict.fromkeys(waiting) if each != machine] or None,
            "at_ns": program.at,
            "timeout_ms": program.timeout,
            "stop": _stop(program),
            "keep": program.keep,
        }
    )


def _event(number: int, event: Event) -> dict[str, Any]:
    after = event.after
    return written(
        {
            "number": number,
            "verb": event.verb,
            "program": event.program,
            "at_ns": event.at_,
            "after": None
            if after is None
            else written({"program": after.program, "line": after.line, "delay_ns": after.delay}),
            "for_ns": event.for_,
            "signal": None if event.signal is None else Signal.NUMBERS[event.signal],
        }
    )


def _change(change: ClockChange) -> dict[str, Any]:
    by_ns = change.by_ns or None
    return written({"number": change.number, "at_ns": change.at_ns, "by_ns": by_ns, "ppb": change.ppb})


def _amount(amount: Amount) -> dict[str, Any]:
    return written(
        {
            "number": amount.number,
            "at_ns": amount.at_ns,
            "over_ns": amount.over_ns,
            "path": amount.path,
            "bytes": amount.bytes,
            "leave": amount.leave,
        }
    )


def _ready(workload: Command, ready: Ready, fill: Any) -> dict[str, Any]:
    return written(
        {
            "tcp": None if ready.tcp is None else port_number(workload, ready.tcp),
            "udp": None if ready.udp is None else port_number(workload, ready.udp),
            "line": ready.line,
            "path": ready.path,
            "command": None if ready.command is None else [fill(word) for word in ready.command],
        }
    )


def _rule(workload: Command, ready: Ready) -> str:
    """The rule in words, of a service that does not fulfil it."""
    if ready.tcp is not None:
        return f"no socket listens on TCP port {port_number(workload, ready.tcp)}"
    if ready.udp is not None:
        return f"no socket has UDP port {port_number(workload, ready.udp)}"
    if ready.line is not None:
        return f"no line matches {ready.line!r}"
    return f"{ready.path} does not exist" if ready.path is not None else "its readiness command fails"


def _stop(program: Program) -> dict[str, int]:
    return {"signal": Signal.NUMBERS[program.stop.signal], "grace_ms": program.stop.grace}


KIND: WorkloadPlan[Command] = CommandPlan()
