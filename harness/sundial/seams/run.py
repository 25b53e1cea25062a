# SPDX-License-Identifier: Apache-2.0
"""`run.json`: everything that is needed to repeat a run, and what became of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sundial.seams.form import Form, Items, Natural, OpenForm

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Failure(OpenForm):
    """Why a run is not complete; some errors add fields (`machine`, `console_tail`)."""

    error: str
    """The kind of error."""
    exit_code: int
    message: str
    hint: str | None


class ImageDigests(Form):
    """What a guest booted."""

    kernel: Sha256
    initrd: Sha256


class ImageUse(Form):
    """An image of the run; earlier versions wrote its digests alone."""

    sha256: ImageDigests
    recipe: str | None = None
    """What it was made by."""
    hz: Annotated[int, Field(ge=1)] | None = None
    """Ticks a second of its kernel, in which its TCP counts; null where it has none."""
    libraries: dict[Literal["python", "cpp"], dict[str, str]] = Field(default_factory=dict)
    """Versions by name, of each language whose libraries are in it."""


class LaidFile(Form):
    """A file that was laid into a machine's root."""

    sha256: Sha256
    mode: Annotated[str, Field(pattern=r"^[0-7]{4}$")]
    bytes: Natural


class OwnBoot(Form):
    """What a machine booted that was not just its image."""

    kernel: Sha256
    initrd: Sha256
    """Of the whole archive, files laid in behind it included."""
    cmdline: str
    kernel_release: str | None
    """What the kernel calls itself; null where its file does not say it."""
    files: dict[str, LaidFile]
    """By path in the machine."""


class Time(Form):
    """How long the run took."""

    virtual_ns: Natural | None
    """On its own axis; null where it did not end by itself."""
    wall_s: float | None


class Host(OpenForm):
    """The machine on which the run was made."""

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
    """Its clock's reading at zero of the run's axis; null where the run did not come so far."""
    ended: str | None = None
    """How it ended before a topology that was kept up was taken down; left out where it did not."""
    interfaces: Items[Interface]


class CarriedFrames(Form):
    """Frames of one interface between the fabric and a machine on another host."""

    to_machine: Natural
    to_fabric: Natural
    undelivered: Natural
    """The fabric had ended already."""


class RemoteHost(Form):
    """Another computer that ran machines."""

    connect: str
    """libvirt's URI."""
    machines: Items[str]
    qemu: str
    libvirt: str
    frames: dict[str, CarriedFrames]
    """By MACHINE:INTERFACE; empty where the run did not come so far."""


class Run(Form):
    """The record of one run."""

    version: Literal[1]
    status: Literal["complete", "failed", "interrupted"]
    error: Failure | None
    scenario: dict[str, Any] | None
    """The scenario, resolved; null for a topology that was only brought up."""
    topology: dict[str, Any]
    """The topology, resolved."""
    seed: int
    clock: Literal["virtual", "real"]
    accelerator: Literal["tcg", "kvm"]
    versions: dict[str, str | None]
    """Of every program that had a part in the run; what is built here is named by its content."""
    images: dict[str, ImageUse]
    boots: dict[str, OwnBoot] = Field(default_factory=dict)
    """By machine, of those with a kernel, an initrd, words on the command line or files of their own."""
    time: Time
    captures: dict[str, Sha256]
    """File in the run directory to its digest."""
    files: dict[str, Sha256]
    """The same of all other files that a verdict or a report rests on."""
    command: Items[str]
    """The command line."""
    host: Host
    mtu: dict[str, Natural]
    """By segment."""
    epoch_ns: int | None
    """What zero of the run's axis is in captures, in ns since 1970."""
    nodes: dict[str, Machine]
    hosts: dict[str, RemoteHost] = Field(default_factory=dict)
    """Other computers that ran machines; left out where there were none."""

    def document(self) -> dict[str, Any]:
        """The record as it is written."""
        return self.model_dump(mode="json", exclude_unset=True)
