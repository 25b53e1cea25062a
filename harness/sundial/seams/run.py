# SPDX-License-Identifier: Apache-2.0
"""`run.json`: everything that is needed to repeat a run, and its result."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sundial.seams.form import Form, Items, Natural, OpenForm

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Failure(OpenForm):
    """Error of an incomplete run; some errors add fields (`machine`, `console_tail`)."""

    error: str
    """The kind of error."""
    exit_code: int
    message: str
    hint: str | None
    whose: Literal["host", "run"] | None = None
    """run: the same run fails in the same way on any host; host: it may pass when made again. Earlier versions did not
    write it."""
    end_ns: Natural | None = None
    """Length of a run that failed and came to its end: it ends there on any host. Without it the run was cut short."""


class ImageDigests(Form):
    """Boot files of a guest."""

    kernel: Sha256
    initrd: Sha256


class ImageUse(Form):
    """An image of the run; earlier versions wrote only its digests."""

    sha256: ImageDigests
    recipe: str | None = None
    """Recipe that made it."""
    hz: Annotated[int, Field(ge=1)] | None = None
    """Ticks a second of its kernel, the unit of its TCP's timers; null if it has none."""
    libraries: dict[Literal["python", "cpp"], dict[str, str]] = Field(default_factory=dict)
    """Versions of libraries by name, by language."""


class LaidFile(Form):
    """A file that was copied into a machine's root."""

    sha256: Sha256
    mode: Annotated[str, Field(pattern=r"^[0-7]{4}$")]
    bytes: Natural


class Package(Form):
    """A package of a root."""

    name: str
    version: str
    architecture: str
    sha256: Sha256


class OwnRoot(Form):
    """A root with programs of others."""

    sources: dict[str, str]
    """Digests of packages, container image and folder, of those that it has."""
    packages: Items[Package]
    bytes: Natural
    """Of the root's file system as it is kept."""
    entries: Natural
    """Files, folders and links."""
    disk: Sha256 | None = None
    """Digest of the file system that the machine maps; without it the root is in memory."""


class OwnBoot(Form):
    """Boot files of a machine beside or instead of its image."""

    kernel: Sha256
    initrd: Sha256
    """Digest of the whole archive, including files appended to it."""
    cmdline: str
    kernel_release: str | None
    """Release of the kernel; null if its file does not have it."""
    files: dict[str, LaidFile]
    """Files by path in the machine."""
    root: OwnRoot | None = None
    """Programs of others in its root."""


class Time(Form):
    """Length of the run."""

    virtual_ns: Natural | None
    """Virtual length in ns; null if the run did not reach its end."""
    wall_s: float | None


class Host(OpenForm):
    """The host of the run."""

    cpu: str
    cores: Natural
    memory_bytes: Natural | None
    load: Items[float]
    kernel: str
    system: str | None


class Interface(Form):
    """One network interface of a machine."""

    device: str
    mac: str
    address: str | None
    segment: str
    mtu: Natural


class Machine(Form):
    """One machine."""

    zero_ns: Natural | None
    """Reading of its clock at zero of the run's time axis; null if the run failed earlier."""
    ended: str | None = None
    """How the machine ended before its topology was taken down; left out if it did not."""
    interfaces: Items[Interface]


class CarriedFrames(Form):
    """Frames of one interface between the fabric and a machine on another host."""

    to_machine: Natural
    to_fabric: Natural
    undelivered: Natural
    """The fabric had ended already."""


class RemoteHost(Form):
    """Another host that ran machines."""

    connect: str
    """libvirt's URI."""
    machines: Items[str]
    qemu: str
    libvirt: str
    frames: dict[str, CarriedFrames]
    """Frames by MACHINE:INTERFACE; empty if the run failed earlier."""


class Run(Form):
    """The record of one run."""

    version: Literal[1]
    status: Literal["complete", "failed", "interrupted"]
    error: Failure | None
    scenario: dict[str, Any] | None
    """The resolved scenario; null for an interactive session."""
    topology: dict[str, Any]
    """The resolved topology."""
    timeline: Items[dict[str, Any]] = ()
    """Changes by hand of a topology that was up, as `timeline` of a scenario has them; left out if there were none."""
    seed: int
    clock: Literal["virtual", "real"]
    accelerator: Literal["tcg", "kvm"]
    versions: dict[str, str | None]
    """Versions of all programs of the run; digests for those that are built here."""
    images: dict[str, ImageUse]
    boots: dict[str, OwnBoot] = Field(default_factory=dict)
    """Boot files by machine, for machines with their own kernel, initrd, words on the command line or files."""
    time: Time
    captures: dict[str, Sha256]
    """Digests of captures by file in the run directory."""
    files: dict[str, Sha256]
    """Digests of all other files that a verdict or a report needs."""
    command: Items[str]
    """The command line."""
    host: Host
    mtu: dict[str, Natural]
    """By segment."""
    epoch_ns: int | None
    """Zero of the run's time axis in captures, in ns since 1970."""
    nodes: dict[str, Machine]
    hosts: dict[str, RemoteHost] = Field(default_factory=dict)
    """Other hosts that ran machines; left out if there were none."""

    def document(self) -> dict[str, Any]:
        """The record as it is written."""
        return self.model_dump(mode="json", exclude_unset=True)
