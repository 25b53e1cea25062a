# SPDX-License-Identifier: Apache-2.0
"""Programs in scenarios."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from sundial.errors import BadInput
from sundial.model.argv import Argv, Word
from sundial.model.fields import NAMED, Flag, In, Strict, Whole, written
from sundial.model.images import ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.lists import EVERYONE, Machines
from sundial.model.network import Network
from sundial.model.program_events import EndSignal, LinePattern, Signal
from sundial.model.workload import MILLISECONDS, Ends, Millis, Named, Transport, WorkloadBase, WorkloadKind
from sundial.units import SIZE, TIME
from sundial.workloads import sockets
from sundial.workloads.command.model_events import check_events
from sundial.workloads.command.model_fields import (
    FILE,
    VARIABLE,
    EtherType,
    Figure,
    Names,
    Pattern,
    PortOrName,
    Ports,
    Unused,
    numbers_of,
)
from sundial.workloads.command.model_template import filled

PROGRAMS_MOST = 64
INSTANCES_MOST = 1024
FILES_BYTES = 32 * 1024
OVER_TCP_ALONE = ("http2",)
"""Decoders whose protocol has no datagrams."""

_Name = Annotated[str, NAMED]
_Port = Annotated[int, Whole(1, 65535)]


class Ready(Strict):
    """When a service is ready: exactly one rule. Without any, when it has started."""

    tcp: Annotated[int | str, PortOrName()] | None = None
    """A TCP socket listens on this port. It is looked up in the kernel, without a frame."""
    udp: Annotated[int | str, PortOrName()] | None = None
    """A UDP socket has this port."""
    line: Annotated[str, LinePattern()] | None = None
    """Regular expression that a line of its outputs matches."""
    path: Annotated[str, Word(1)] | None = None
    """File that exists."""
    command: Annotated[tuple[str, ...], Argv()] | None = None
    """Program that ends with status 0; it is run again until it does."""


class Text(Strict):
    """Requirements on an output."""

    contains: Annotated[str, Word(1)] | None = None
    """Text that must be in it."""
    matches: Annotated[str, Pattern()] | None = None
    """Regular expression that must match somewhere in it; ^ and $ match at lines."""


class Expected(Strict):
    """Requirements on a program. A violation is a mismatch."""

    status: Annotated[int, Whole(0, 255)] | None = None
    """Exit status. Default: 0 for jobs; any for a service that was stopped."""
    signal: Annotated[str, EndSignal()] | None = None
    """Signal that ends it, instead of a status."""
    stdout: Text = Text()
    stderr: Text = Text()


class Stop(Strict):
    """How a program is ended."""

    signal: Annotated[str, Signal()] = "TERM"
    """First signal, to its process group."""
    grace: Millis = written("1 s")
    """Time after which SIGKILL follows."""


class Program(Strict):
    """One program."""

    on: Annotated[tuple[str, ...], Machines()]
    """Machine, or machines with an instance each."""
    role: Literal["service", "job"] = "job"
    """service: must live until all jobs of all programs have ended, and is stopped then. job: runs to its end."""
    argv: Annotated[tuple[str, ...], Argv()] | None = None
    """Program and arguments, without a shell."""
    shell: Annotated[str, Word(1)] | None = None
    """Text for /bin/sh -c, instead of argv."""
    env: dict[Annotated[str, VARIABLE], Annotated[str, Word()]] = Field(default_factory=dict)
    """Environment variables."""
    directory: Annotated[str, Word(1)] | None = None
    """Working directory; it is created."""
    user: Annotated[int, Whole(0, 65534)] | None = None
    """Number of user and group. Default: root."""
    input: Annotated[str, Word()] | None = None
    """Standard input. Default: empty."""
    files: dict[Annotated[str, FILE], Annotated[str, Word()]] = Field(default_factory=dict)
    """Text files to write before the programs of the machine start, by absolute path; mode 0755. Files of the host are
    `files` of the topology."""
    ready: Ready | None = None
    """When a service is ready."""
    after: Annotated[tuple[str, ...], Names()] = ()
    """Programs that must be ready (services) or have ended (jobs) before this one starts, on any machine."""
    at: Annotated[int, In(TIME.between("0 ns", "24 h", example="3 s"))] | None = None
    """Virtual time before which it does not start."""
    timeout: Annotated[int, In(MILLISECONDS)] = written("30 s")
    """Time for a job to end and for a service to get ready. A job that takes longer is ended and is a mismatch; a
    service that takes longer fails the run."""
    stop: Stop = Stop()
    """How it is ended."""
    restart: Literal["never"] = "never"
    """never: a service that ends by itself is a mismatch."""
    keep: Annotated[int, In(SIZE.between("0", "64 MiB", example="1 MiB"))] = written("1 MiB")
    """Bytes of each output to record; the rest is only counted."""
    expect: Expected = Expected()
    """Requirements on its end and output."""
    figures: dict[_Name, Annotated[str, Figure()]] = Field(default_factory=dict)
    """Numbers in its outputs: a regular expression for each, whose group has the number; ^ and $ match at lines. Each
    match is a row of table `figures` for bounds."""

    @property
    def words(self) -> tuple[str, ...]:
        """What is executed."""
        return self.argv if self.argv is not None else ("/bin/sh", "-c", str(self.shell))

    def texts(self) -> Iterator[tuple[Path, str]]:
        """Its texts with templates, and their fields."""
        yield from ((("argv", number), word) for number, word in enumerate(self.argv or ()))
        yield from (((name,), text) for name in ("shell", "directory", "input") if (text := getattr(self, name)))
        yield from ((("env", name), text) for name, text in self.env.items())
        if self.ready is not None:
            yield from ((("ready", "command", number), word) for number, word in enumerate(self.ready.command or ()))


class Port(Strict):
    """What may have a program as its reason on the wires."""

    tcp: _Port | None = None
    """TCP port of a server."""
    udp: Annotated[int | str, Ports()] | None = None
    """UDP port of a server, or ports from one to another: 5000-5010."""
    icmp: Annotated[bool, Flag()] = False
    """ICMP echo (ping)."""
    ethertype: Annotated[int, EtherType()] | None = None
    """Frames that programs make themselves, by a socket of packets: `arp` (arping), or a type of frames."""
    decode: Literal["onc-rpc", "dns", "http2"] | None = None
    """Protocol of what is said there: all messages are checked. Default: none, and the bytes have no meaning."""

    @property
    def number(self) -> int | None:
        """Its number; of several ports the first."""
        return next((ports[0] for each in ("tcp", "udp") if (ports := self.numbers(each))), None)

    def numbers(self, transport: str) -> range:
        """Its ports over UDP or TCP."""
        return numbers_of(getattr(self, transport))


class Command(WorkloadBase):
    """Any programs."""

    app: Literal["command"]
    """Any programs, started in order on any machines."""
    programs: dict[_Name, Program] = Field(min_length=1)
    """Programs by name."""
    ports: dict[_Name, Port] = Field(default_factory=dict)
    """Ports by name: frames from and to them are expected; others are mismatches."""
    clients: Annotated[tuple[str, ...], Unused("clients", EVERYONE, "on: MACHINE of each program")] = Field(
        default=EVERYONE,  # type: ignore[arg-type]
        exclude=True,
    )
    server: Annotated[str, Unused("server", "server", "on: MACHINE of each program")] = Field(
        default="server", exclude=True
    )
    series: Annotated[int, Unused("series", 1, "the program's own repetitions")] = Field(default=1, exclude=True)

    @property
    def transports(self) -> tuple[str, ...]:
        return ()

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for program in self.programs.values() for name in program.on))

    @property
    def instances(self) -> list[tuple[str, str]]:
        """Each program on each of its machines, in order; an instance's number is its place."""
        return [(name, machine) for name, program in self.programs.items() for machine in program.on]

    @property
    def commands(self) -> Sequence[Named]:
        """Those that are not in a file of the workload, and that no program of the machine may have written: none comes
        before them."""
        laid = {(machine, file) for each in self.programs.values() for machine in each.on for file in each.files}
        found = []
        for name, machine in self.instances:
            program = self.programs[name]
            word = program.argv[0] if program.argv else ""
            early = program.at is None and not any(machine in self.programs[each].on for each in self._before(name))
            own = any(where == machine and posixpath.basename(file) == word for where, file in laid)
            if word and "/" not in word and "{" not in word and early and not own and "PATH" not in program.env:
                found.append(Named(machine, word, ("programs", name, "argv", 0)))
        return found

    def _before(self, name: str) -> set[str]:
        """All programs that a program comes after."""
        found: set[str] = set()
        queue = [name]
        while queue:
            queue += [each for each in self.programs[queue.pop()].after if each not in found]
            found |= set(queue)
        return found


def port_number(workload: Command, port: int | str) -> int | None:
    """The number of a port that is given by either; None: no such name."""
    return port if isinstance(port, int) else getattr(workload.ports.get(port), "number", None)


def template_values(workload: Command, network: Network, machine: str, seed: int) -> dict[str, str]:
    """All templates of a program on `machine`, by name."""
    values = {"me.name": machine, "seed": str(seed)}
    for node in network.nodes:
        for nic in node.network_adapters:
            if nic.address is not None:
                values[f"{node.name}.{nic.device}"] = str(nic.address.ip)
    for node in network.nodes:
        if f"{node.name}.eth0" in values:
            values[node.name] = values[f"{node.name}.eth0"]
    values |= {
        f"me{name.removeprefix(machine)}": value
        for name, value in values.items()
        if name == machine or name.startswith(f"{machine}.")
    }
    values |= {f"port.{name}": str(port.number) for name, port in workload.ports.items() if port.number is not None}
    return values


class CommandKind:
    """Programs, as the model asks for them."""

    order = 20
    model = Command
    transports: tuple[Transport, ...] = ()

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform == sockets.LINUX

    def check(self, workload: Command, ends: Ends, path: Path) -> Iterator[Invalid]:
        if len(workload.instances) > INSTANCES_MOST:
            yield Invalid((*path, "programs"), f"{len(workload.instances)} instances", f"up to {INSTANCES_MOST}")
        for machine in workload.machines:
            count = sum(here == machine for _, here in workload.instances)
            if count > PROGRAMS_MOST:
                yield Invalid((*path, "programs"), f"{machine!r} has {count} programs", f"up to {PROGRAMS_MOST}")
        for name, port in workload.ports.items():
            others = (port.tcp is not None) + (port.udp is not None) + (port.ethertype is not None)
            if others + port.icmp != 1:
                what = "a port has exactly one of tcp, udp, icmp and ethertype"
                yield Invalid((*path, "ports", name), what, "{tcp: 6379}")
            elif port.decode is not None and port.number is None:
                what = f"{'ICMP echo' if port.icmp else 'a type of frames'} has nothing to decode"
                yield Invalid((*path, "ports", name, "decode"), what, "tcp or udp")
            elif port.udp is not None and port.decode in OVER_TCP_ALONE:
                yield Invalid((*path, "ports", name, "decode"), f"{port.decode} is not spoken over UDP", "tcp")
        for name, program in workload.programs.items():
            yield from self._check_program(workload, name, program, ends.network, (*path, "programs", name))
        yield from _check_order(workload, path)
        yield from _check_ports(workload, path)
        yield from _check_files(workload, path)

    def _check_program(
        self, workload: Command, name: str, program: Program, network: Network, path: Path
    ) -> Iterator[Invalid]:
        if (program.argv is None) == (program.shell is None):
            allowed = "argv: [PROGRAM, ARGUMENT, ...]"
            yield Invalid(path, "a program has either argv or shell", allowed)
        if program.ready is not None and sum(value is not None for _, value in program.ready) != 1:
            what = "ready must have exactly one rule"
            yield Invalid((*path, "ready"), what, "tcp, udp, line, path or command")
        for other in program.after:
            if other not in workload.programs:
                yield Invalid((*path, "after"), f"there is no program {other!r}", ", ".join(workload.programs))
        if program.role == "job" and program.ready is not None:
            yield Invalid((*path, "ready"), f"{name!r} is a job, which has no readiness", "role: service")
        for field in ("tcp", "udp"):
            port = getattr(program.ready, field, None)
            if isinstance(port, str) and getattr(workload.ports.get(port), field, None) is None:
                known = ", ".join(each for each, it in workload.ports.items() if getattr(it, field) is not None)
                what = f"there is no {field} port {port!r}"
                yield Invalid((*path, "ready", field), what, f"a number or a name of ports: {known or 'none so far'}")
        if program.expect.status is not None and program.expect.signal is not None:
            yield Invalid((*path, "expect"), "a program has either status or signal", "one of them")
        for machine in program.on:
            values = template_values(workload, network, machine, 0)
            for place, text in program.texts():
                try:
                    filled(text, values.get, lambda values=values: ", ".join(f"{{{each}}}" for each in values))  # type: ignore[misc]
                except BadInput as error:
                    problem = error.problems[0]
                    yield Invalid((*path, *place), problem.what, problem.allowed)

    def resolve(self, workload: Command, ends: Ends, path: Path) -> tuple[Command, list[Invalid]]:
        return workload, []

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        """Names of programs are those of files with outputs: each once. Events of the timeline meet programs."""
        programs: dict[str, Program] = {}
        owners: dict[str, int] = {}
        for number, workload in enumerate(workloads):
            for name, program in workload.programs.items() if isinstance(workload, Command) else ():
                if name in programs:
                    what = f"workloads.{owners[name]} has a program {name!r}, too"
                    yield Invalid(("workloads", number, "programs", name), what, "another name")
                programs[name], owners[name] = program, number
        yield from check_events(network.events, programs)


def _check_order(workload: Command, path: Path) -> Iterator[Invalid]:
    """A cycle of `after`, once."""
    done: set[str] = set()
    for start in workload.programs:
        way: list[str] = []
        if _cycle(workload.programs, start, way, done):
            circle = way[way.index(way[-1]) :]
            what = f"{' waits for '.join(repr(each) for each in circle)}"
            yield Invalid((*path, "programs", circle[0], "after"), what, "an order without a cycle")
            return


def _cycle(programs: Mapping[str, Program], name: str, way: list[str], done: set[str]) -> bool:
    if name in way:
        way.append(name)
        return True
    if name in done or name not in programs:
        return False
    way.append(name)
    if any(_cycle(programs, other, way, done) for other in programs[name].after):
        return True
    way.pop()
    done.add(name)
    return False


def _check_ports(workload: Command, path: Path) -> Iterator[Invalid]:
    """Two services that wait for one port of one machine."""
    taken: dict[tuple[str, str, int], str] = {}
    for name, program in workload.programs.items():
        for field in ("tcp", "udp"):
            port = getattr(program.ready, field, None)
            number = None if port is None else port_number(workload, port)
            for machine in program.on if number is not None else ():
                other = taken.setdefault((machine, field, number or 0), name)
                if other != name:
                    what = f"{field} port {number} of {machine!r} is already used by {other!r}"
                    yield Invalid((*path, "programs", name, "ready", field), what, "another port or machine")


def _check_files(workload: Command, path: Path) -> Iterator[Invalid]:
    contents: dict[tuple[str, str], str] = {}
    for name, program in workload.programs.items():
        for file, text in program.files.items():
            field = (*path, "programs", name, "files", file)
            if not file.startswith("/") or posixpath.normpath(file) != file or len(file) > 250:
                yield Invalid(field, f"{file!r} is not an absolute path", "a path such as /srv/index.html")
            for machine in program.on:
                if contents.setdefault((machine, file), text) != text:
                    yield Invalid(field, f"another program of {machine!r} has another {file}", "one content")
    for machine in workload.machines:
        size = sum(len(text.encode()) for (where, _), text in contents.items() if where == machine)
        if size > FILES_BYTES:
            what = f"the files of {machine!r} have {size} bytes"
            yield Invalid((*path, "programs"), what, f"up to {FILES_BYTES}; larger ones as files of the topology")


KIND: WorkloadKind[Command] = CommandKind()
