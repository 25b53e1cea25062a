# SPDX-License-Identifier: Apache-2.0
"""Errors of the files and command lines of machines that the topology alone shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sundial.model.images import IMAGES, ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.own import files_of
from sundial.model.topology import Machine, Topology
from sundial.units import SIZE

FILES_SPARE = 2 << 20
"""Bytes that the files of a machine may take at the least memory of its image. Linux with 96 MiB boots with 2 MiB of
files, but not with 6."""


def check_own(topology: Topology) -> Iterator[Invalid]:
    """Invalid fields about each machine; its image is known."""
    for name, machine in topology.machines.items():
        yield from _machine(topology, name, machine, IMAGES[machine.image or topology.defaults.image])


def written_at(topology: Topology, name: str, field: str, *path: str) -> Path:
    """The path of a machine's field: at the machine, or in `defaults`."""
    own = getattr(topology.machines[name], field)
    inherited = path[0] not in own if path else not own
    return ("defaults", field, *path) if inherited else ("machines", name, field, *path)


def too_large(topology: Topology, name: str, field: Literal["initrd", "files"], taken: int) -> Iterator[Invalid]:
    """A finding if `taken` bytes are too much for the machine's memory, which holds them twice while it boots: packed
    and unpacked."""
    machine = topology.machines[name]
    image = IMAGES[machine.image or topology.defaults.image]
    memory = machine.memory or topology.defaults.memory or image.memory
    if field == "initrd":
        most, allowed = memory // 2, "half of its memory"
    else:
        most = FILES_SPARE + (memory - image.memory_least) // 3
        least, spare = SIZE.show(image.memory_least), SIZE.show(FILES_SPARE)
        allowed = f"{spare} plus a third of the memory above {least}, the least of image {image.name}: {most} bytes"
    if taken > most:
        what = f"{taken} bytes are too many for the {SIZE.show(memory)} of memory of {name!r}"
        yield Invalid(written_at(topology, name, field), what, allowed)


def root_too_large(image: ImageKind, memory: int, added: int) -> Invalid | None:
    """A finding if `added` bytes of a root, beyond the image's, are too much for a machine's memory: it holds them
    twice while it boots."""
    mib = 1 << 20
    least = -(-(image.memory_least + 3 * max(0, added - FILES_SPARE)) // mib) * mib
    if memory >= least:
        return None
    what = f"{SIZE.show(memory)} are too little for a root of {added} bytes beside image {image.name}"
    return Invalid(("memory",), what, f"{SIZE.show(least)} or more, or root.as: disk")


def _machine(topology: Topology, name: str, machine: Machine, image: ImageKind) -> Iterator[Invalid]:
    files = files_of(topology.defaults, machine)
    if (machine.cmdline or topology.defaults.cmdline) and not image.command_line:
        what = f"the kernel of image {image.name!r}, which {name!r} boots, has no command line"
        yield Invalid(written_at(topology, name, "cmdline"), what, _with("command_line"))
    if files and not image.files:
        what = f"image {image.name!r}, which {name!r} boots, does not support files"
        yield Invalid(written_at(topology, name, "files"), what, _with("files"))
        return
    yield from _root(topology, name, image)
    for path in files:
        where = written_at(topology, name, "files", path)
        above = next((other for other in files if path.startswith(f"{other}/")), None)
        if above is not None:
            yield Invalid(where, f"{above!r} is also a file", "a path that is not a folder of another")
        elif image.flat_files and path.count("/") > 1:
            what = f"image {image.name!r}, which {name!r} boots, has no folders"
            yield Invalid(where, what, f"a name in its root, such as '/{path.rpartition('/')[2]}'")
    inline = sum(len(laid.content.encode()) for laid in files.values() if laid.content is not None)
    yield from too_large(topology, name, "files", inline)


def _root(topology: Topology, name: str, image: ImageKind) -> Iterator[Invalid]:
    machine, defaults = topology.machines[name], topology.defaults
    root = machine.root or defaults.root
    if root is None:
        return
    where = written_at(topology, name, "root")
    if not image.files or image.flat_files:
        what = f"image {image.name!r}, which {name!r} boots, does not support programs of others"
        fitting = (other for other, kind in IMAGES.items() if kind.files and not kind.flat_files)
        yield Invalid(where, what, "an image that does: " + ", ".join(fitting))
    elif machine.initrd or defaults.initrd:
        yield Invalid(where, f"{name!r} has an initrd of its own, which takes the place of the root", "root or initrd")
    elif root.held == "disk" and machine.on is not None:
        what = f"{name!r} runs on host {machine.on!r}, which cannot map a file of this one"
        yield Invalid((*where, "as"), what, "as: memory")


def _with(capability: str) -> str:
    """The images that have a capability, for messages."""
    return "an image that does: " + ", ".join(name for name, kind in IMAGES.items() if getattr(kind, capability))
