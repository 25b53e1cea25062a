# SPDX-License-Identifier: Apache-2.0
"""Requests of the command line to the stages that run things, and their results: plain data and one Protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sundial.model.experiment import Experiment
    from sundial.model.network import Network
    from sundial.model.topology import Clock, Topology

EMBEDDED = "embedded"
"""The `connect` value of libvirt's embedded driver; any other value is a URI."""


class Progress(Protocol):
    """Receiver of progress; any thread may call it."""

    def say(self, text: str) -> None:
        """A step begins: one line."""

    def share(self, done: float, text: str) -> None:
        """`done` from 0 to 1 of the step that began last."""


class Silence:
    """A Progress that is not shown."""

    def say(self, text: str) -> None:
        return

    def share(self, done: float, text: str) -> None:
        return


@dataclass(frozen=True)
class Stirring:
    """How the clocks of a trial look at their horizons, which must not change anything that its guests do."""

    jitter_ns: int | None = None
    """Mean distance of further gates and looks at pseudo-random times; None: there are none."""
    looks: bool = True
    """False: gates alone."""

    def arguments(self) -> tuple[tuple[str, int], ...]:
        """Of the clock plugin."""
        jitter = () if self.jitter_ns is None else (("jitter", self.jitter_ns),)
        return jitter if self.looks else (*jitter, ("looks", 0))


CALM = Stirring()
"""The clocks look when they must."""


@dataclass(frozen=True)
class Standing:
    """A run whose machines all stand at one instant, but for those that are off: all before it has happened, and
    nothing after it."""

    at_ns: int
    clocks_ns: Mapping[str, int]
    """What each machine's clock shows: `at_ns`, or the end of the instruction that was on then."""
    folder: Path
    """The run directory so far."""
    sockets: Path
    """Where QEMU may make sockets."""
    qmp: Callable[..., Any]
    """The `return` of a QMP command: of this machine, this command, with these arguments."""
    kernel_functions: Callable[[str, str], list[tuple[int, str]]]
    """Address and name of each function of this machine's kernel, which a machine like it prints in place of this
    application of its image."""


class Stops(Protocol):
    """Where the machines of a run stand."""

    @property
    def first_ns(self) -> int:
        """The first instant."""

    def stand(self, standing: Standing) -> int | None:
        """Called while they do. The next instant; None: they go on to the end. What it raises ends the run."""


@dataclass(frozen=True)
class RunRequest:
    """One run to make."""

    experiment: Experiment
    captures: Path
    """Folder of run directories."""
    out: Path | None
    """Run directory that the user named, if any; it must not exist yet."""
    connect: str
    cold: bool
    """Boot the guests instead of restoring them."""
    command: tuple[str, ...]
    """The arguments as typed, for run.json."""
    images: Path | None = None
    """Folder of images that `pin` made, instead of the checkout's."""
    recipe: str | None = None
    """Recipe of the checkout's images, if the command names one."""
    while_running: Callable[[], AbstractContextManager[None]] = nullcontext
    """Context entered when all machines run, and left when the run has ended or failed."""
    trial: Stirring | None = None
    """The run is a trial of the emulator; None: an ordinary run, which needs an emulator that is certified."""
    stops: Stops | None = None
    """Instants at which all machines stand, under virtual time; None: there are none."""


@dataclass(frozen=True)
class RunResult:
    """A complete run directory."""

    path: Path
    virtual_ns: int
    wall_s: float
    clocks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The last report of each machine's clock plugin; empty under the real clock."""
    memories: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of the main memory that each machine was restored with; empty under the real clock."""


@dataclass(frozen=True)
class UpRequest:
    """A topology to bring up."""

    topology: Topology
    network: Network
    clock: Clock
    seed: int
    connect: str
    recipe: str | None = None
    """Recipe of images, if the command names one."""


@dataclass(frozen=True)
class KeptMachine:
    """One machine that is up: its image, its first address and the socket of its console."""

    name: str
    image: str
    address: str
    console: str


@dataclass(frozen=True)
class Kept:
    """A topology that is up."""

    topology: str
    clock: Clock
    captures: Path
    """The run directory while it is up; captured frames are in it within 0.2 s."""
    final: Path
    """Its name after `down`."""
    pid: int
    """Process id of the keeper."""
    machines: tuple[KeptMachine, ...]
    connect: str = EMBEDDED
    """libvirt's URI, or EMBEDDED."""
    hosts: dict[str, str] = field(default_factory=dict)
    """Other hosts that run machines, and their URIs."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "captures": str(self.captures), "final": str(self.final)}
