# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the files and the command lines of machines, as far as the topology alone says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sundial.model.finding import Finding, Path
from sundial.model.images import IMAGES, ImageKind
from sundial.model.own import files_of
from sundial.model.topology import Machine, Topology
from sundial.units import SIZE

FILES_SPARE = 2 << 20
"""What the files of a machine may take where its memory is the least of its image. Linux at 96 MiB boots with 2 MiB of
them, and not with 6."""


def check_own(topology: Topology) -> Iterator[Finding]:
    """Findings about each machine, whose image is known."""
    for name, machine in topology.machines.items():
        yield from _machine(topology, name, machine, IMAGES[machine.image or topology.defaults.image])


def written_at(topology: Topology, name: str, field: str, *path: str) -> Path:
    """Where a field of a machine that is its own or its defaults' is written."""
    own = getattr(topology.machines[name], field)
    inherited = path[0] not in own if path else not own
    return ("defaults", field, *path) if inherited else ("machines", name, field, *path)


def too_large(topology: Topology, name: str, field: Literal["initrd", "files"], taken: int) -> Iterator[Finding]:
    """A finding where `taken` bytes are too much for the machine's memory: while it boots they are there twice, packed
    and unpacked."""
    machine = topology.machines[name]
    image = IMAGES[machine.image or topology.defaults.image]
    memory = machine.memory or topology.defaults.memory or image.memory
    if field == "initrd":
        most, allowed = memory // 2, "half of its memory"
    else:
        most = FILES_SPARE + (memory - image.memory_least) // 3
        least, spare = SIZE.show(image.memory_least), SIZE.show(FILES_SPARE)
        allowed = f"{spare}, and a third of what its memory is above the {least} that image {image.name} needs"
    if taken > most:
        what = f"{taken} bytes are too much for the memory of {name!r}, {SIZE.show(memory)}"
        yield Finding(written_at(topology, name, field), what, allowed)


def _machine(topology: Topology, name: str, machine: Machine, image: ImageKind) -> Iterator[Finding]:
    files = files_of(topology.defaults, machine)
    if (machine.cmdline or topology.defaults.cmdline) and not image.command_line:
        what = f"the kernel of image {image.name!r}, which {name!r} boots, reads no command line"
        yield Finding(written_at(topology, name, "cmdline"), what, _with("command_line"))
    if files and not image.files:
        what = f"image {image.name!r}, which {name!r} boots, takes no files"
        yield Finding(written_at(topology, name, "files"), what, _with("files"))
        return
    for path in files:
        where = written_at(topology, name, "files", path)
        above = next((other for other in files if path.startswith(f"{other}/")), None)
        if above is not None:
            yield Finding(where, f"{above!r} is a file, too", "a path that is not a folder of another")
        elif image.flat_files and path.count("/") > 1:
            what = f"image {image.name!r}, which {name!r} boots, has no folders"
            yield Finding(where, what, f"a name in its root, such as '/{path.rpartition('/')[2]}'")
    inline = sum(len(laid.content.encode()) for laid in files.values() if laid.content is not None)
    yield from too_large(topology, name, "files", inline)


def _with(capability: str) -> str:
    """The images that have a capability, as what is allowed."""
    return "an image that does: " + ", ".join(name for name, kind in IMAGES.items() if getattr(kind, capability))
