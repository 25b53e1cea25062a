# SPDX-License-Identifier: Apache-2.0
"""The host's files that a topology names: made absolute, found, and validated before anything starts."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path as HostPath
from typing import Any, BinaryIO

from sundial.model import bootable
from sundial.model.check_own import too_large, written_at
from sundial.model.images import IMAGES
from sundial.model.invalid import Invalid
from sundial.model.oci import OCI_ALLOWED, BadImage, OciImage, read_image
from sundial.model.own import files_of
from sundial.model.root import read_lock
from sundial.model.source import FieldPath, Source
from sundial.model.topology import Topology
from sundial.units import SIZE

KERNEL_MOST = 256 << 20
INITRD_MOST = 512 << 20
FILE_MOST = 1 << 30
"""Most bytes of a kernel, of an initrd, and of a file for a machine's root."""

_Look = Callable[[BinaryIO, int], str | None]


class Unusable(Exception):
    """A file cannot be used; the message says why, `allowed` what can be used."""

    def __init__(self, what: str, allowed: str) -> None:
        super().__init__(what)
        self.allowed = allowed


def make_absolute(source: Source, command_line: str) -> None:
    """Every path to a file of the host. It begins at the folder of the file that names it, or at the working directory
    if it is from the `command_line` (the name of that origin)."""
    for path, owner, field in _named(source.data):
        written = source.origin(path).file
        folder = HostPath() if written == command_line else HostPath(written).parent
        owner[field] = str(HostPath(os.path.abspath(folder / owner[field])))  # noqa: PTH100  (resolve follows links)


def check_host_files(topology: Topology) -> Iterator[Invalid]:
    """Invalid fields about each file that a machine boots with."""
    for name, machine in topology.machines.items():
        defaults, image = topology.defaults, IMAGES[machine.image or topology.defaults.image]
        kernel, initrd = machine.kernel or defaults.kernel, machine.initrd or defaults.initrd
        try:
            if kernel is not None:
                field: FieldPath = written_at(topology, name, "kernel")
                check_kernel(kernel)
            if initrd is not None:
                field = written_at(topology, name, "initrd")
                size = check_initrd(initrd, compressed=image.compressed_initrd)
                yield from too_large(topology, name, "initrd", size)
            root = machine.root or defaults.root
            if root is not None and root.lock is not None:
                field = (*written_at(topology, name, "root"), "lock")
                check_lock(root.lock, root.packages)
            if root is not None and root.oci is not None:
                field = (*written_at(topology, name, "root"), "oci")
                check_oci(root.oci, root.tag)
            if root is not None and root.folder is not None:
                field = (*written_at(topology, name, "root"), "folder")
                check_folder(root.folder)
            taken = 0
            for path, laid in files_of(defaults, machine).items():
                field = (*written_at(topology, name, "files", path), "from")
                taken += len((laid.content or "").encode()) if laid.source is None else check_file(laid.source)
        except Unusable as fault:
            yield Invalid(field, str(fault), fault.allowed)
        else:
            yield from too_large(topology, name, "files", taken)


def check_kernel(path: str) -> int:
    """The size of a kernel that QEMU starts. Raises Unusable."""
    return _look(path, KERNEL_MOST, bootable.KERNEL_ALLOWED, bootable.kernel_fault)


def check_initrd(path: str, *, compressed: bool) -> int:
    """The size of an initrd that the image's kernel unpacks. Raises Unusable."""
    allowed = bootable.INITRD_ALLOWED if compressed else bootable.PLAIN_ALLOWED
    return _look(path, INITRD_MOST, allowed, lambda file, _: bootable.initrd_fault(file, compressed=compressed))


def check_file(path: str) -> int:
    """The size of a file that can be copied into a machine. Raises Unusable."""
    return _look(path, FILE_MOST, "a readable file", lambda *_: None)


def check_lock(path: str, packages: Sequence[str]) -> list[dict[str, str]]:
    """The packages of a lock for these words. Raises Unusable."""
    try:
        return read_lock(read_whole(path, check_file(path)).decode(errors="replace"), packages)
    except ValueError as error:
        raise Unusable(f"{path} {error}", "what sundial images packages --lock writes for these packages") from error


def check_oci(path: str, tag: str | None) -> OciImage:
    """The container image in an archive or a layout's folder. Raises Unusable."""
    try:
        return read_image(HostPath(path), tag)
    except BadImage as error:
        raise Unusable(f"{path} {error}", OCI_ALLOWED) from error


def check_folder(path: str) -> None:
    """Raises Unusable if it is not a folder that can be read."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except NotADirectoryError as error:
        raise Unusable(f"{path} is not a folder", "a folder on this host") from error
    except FileNotFoundError as error:
        raise Unusable(f"{path} does not exist", "a folder on this host") from error
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}", "a folder on this host") from error


def read_whole(path: str, size: int) -> bytes:
    """The content of a file that was validated, if it still has this size. Raises Unusable."""
    with _opened(path, "the same file as before") as file:
        content = file.read(size + 1)
    if len(content) != size:
        raise Unusable(f"{path} was changed while it was read", "a file that does not change during the run")
    return content


def _look(path: str, most: int, allowed: str, fault_of: _Look) -> int:
    with _opened(path, allowed) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise Unusable(f"{path} has {size} bytes", f"at most {SIZE.show(most)}")
        fault = fault_of(file, size)
    if fault is not None:
        raise Unusable(f"{path} {fault}", allowed)
    return size


def _opened(path: str, allowed: str) -> BinaryIO:
    """A regular file; nothing else is opened, because a pipe would block. Raises Unusable."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise Unusable(f"{path} does not exist", allowed) from error
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}", allowed) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Unusable(f"{path} is not a regular file", allowed)
    return os.fdopen(handle, "rb")


def _named(data: Mapping[str, Any]) -> Iterator[tuple[FieldPath, dict[str, Any], str]]:
    """Places where an unvalidated topology names files: path, mapping and key; malformed parts are left to
    validation."""
    machines = data.get("machines")
    owners: list[tuple[FieldPath, Any]] = [(("defaults",), data.get("defaults"))]
    owners += [(("machines", name), each) for name, each in (machines.items() if isinstance(machines, dict) else ())]
    for path, owner in owners:
        if not isinstance(owner, dict):
            continue
        yield from (((*path, field), owner, field) for field in ("kernel", "initrd") if _is_path(owner.get(field)))
        root = owner.get("root")
        if isinstance(root, dict):
            yield from (
                ((*path, "root", field), root, field)
                for field in ("lock", "oci", "folder")
                if _is_path(root.get(field))
            )
        files = owner.get("files")
        for name, laid in files.items() if isinstance(files, dict) else ():
            if isinstance(laid, dict) and _is_path(laid.get("from")):
                yield (*path, "files", name, "from"), laid, "from"


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()
