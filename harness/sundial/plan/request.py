# SPDX-License-Identifier: Apache-2.0
"""What the command line asks of the stages that run things, and what they answer: plain data and one Protocol."""

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
"""The `connect` value that means libvirt's embedded driver; anything else is a URI."""


class Progress(Protocol):
    """Where long work reports how far it is; calls may come from any thread."""

    def say(self, text: str) -> None:
        """A step begins: one line."""

    def share(self, done: float, text: str) -> None:
        """`done` from 0 to 1 of the step that began last."""


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
class RunRequest:
    """One run to make."""

    experiment: Experiment
    captures: Path
    """Where run directories live."""
    out: Path | None
    """The run directory, if the user named it; it must not exist yet."""
    connect: str
    cold: bool
    """Boot the guests instead of restoring them."""
    command: tuple[str, ...]
    """The arguments as typed, for run.json."""
    images: Path | None = None
    """A folder of images that `pin` made, instead of those of the checkout."""
    recipe: str | None = None
    """What the checkout's images are made by, where the command says it."""
    while_running: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered once all machines run, left once the run has ended or failed."""
    trial: Stirring | None = None
    """The run is a trial of the emulator; None: an ordinary run, which needs an emulator that is certified."""


@dataclass(frozen=True)
class RunResult:
    """A run directory that is complete."""

    path: Path
    virtual_ns: int
    wall_s: float
    clocks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The last report of each machine's clock plugin; empty under the real clock."""
    memories: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of the main memory that each machine was restored with; empty under the real clock."""


@dataclass(frozen=True)
class UpRequest:
    """A topology to bring up and leave up."""

    topology: Topology
    network: Network
    clock: Clock
    seed: int
    connect: str
    recipe: str | None = None
    """What images are made by, where the command says it."""


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
    """The run directory while it is up; what has been captured is in it within 0.2 s."""
    final: Path
    """The name that it is meant to have after `down`."""
    pid: int
    """Of the process that keeps it."""
    machines: tuple[KeptMachine, ...]
    connect: str = EMBEDDED
    """libvirt's URI, or EMBEDDED."""
    hosts: dict[str, str] = field(default_factory=dict)
    """Other computers that run machines, and their URIs."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "captures": str(self.captures), "final": str(self.final)}
