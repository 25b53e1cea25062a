# SPDX-License-Identifier: Apache-2.0
"""What a machine boots: its image's files, or copies of its own that are hashed as they are made.

A file of the user's may be changed at any time. So it is read once, and what was read is checked, hashed, written into
a folder of the run, and booted. Copies are called by their digest: machines with equal files share them.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, RunFailed
from sundial.machines.archives import Conflict, LaidContent, Root, lay_over
from sundial.machines.images import Image
from sundial.machines.rootdisk import with_files
from sundial.machines.roots import BadRoot, BuiltRoot, Roots
from sundial.model.bootable import INITRD_ALLOWED, PLAIN_ALLOWED, compression, kernel_fault, kernel_release
from sundial.model.check_own import root_too_large
from sundial.model.hostfiles import Unusable, check_file, check_initrd, check_kernel, read_whole
from sundial.model.images import IMAGES
from sundial.model.network import Node
from sundial.plan.build import Boot
from sundial.plan.domain import DISK_WORDS, RootDisk

RECORDED = ("sources", "packages", "bytes", "entries")
"""Fields of a root's manifest that run.json has."""
COMMAND_LINE_MOST = 2047
"""Of Linux on x86-64, in bytes."""


@dataclass(frozen=True)
class BootFiles:
    """Files that QEMU is given for one machine, with their digests."""

    kernel: Path
    kernel_sha256: str
    initrd: Path
    initrd_sha256: str
    cmdline: str
    own: dict[str, Any] | None = None
    """As run.json has it, of a machine with something of its own."""
    disk: RootDisk | None = None
    """File system that the machine maps."""

    def started_by(self, emulator: Path, qemu: str) -> Boot:
        """The same for a plan; `qemu`: the emulator's version."""
        digests = (self.kernel_sha256, self.initrd_sha256)
        return Boot(emulator, self.kernel, self.initrd, self.cmdline, *digests, qemu, self.disk)


def root_of(node: Node, image: Image, roots: Roots, say: Callable[[str], None]) -> BuiltRoot | None:
    """The root of `node` with programs of others; None: it has none. Raises BadInput, HostLacks."""
    if node.root is None:
        return None
    try:
        root = roots.ensure(node.root, image, say)
    except BadRoot as fault:
        raise BadInput(str(fault), field=_field(node, f"root.{fault.field}"), allowed=fault.allowed) from fault
    wrong = root_too_large(IMAGES[node.image], node.memory, root.added)
    if wrong is not None and root.disk is None:
        raise BadInput(wrong.what, field=_field(node, "memory"), allowed=wrong.allowed)
    return root


def boot_files(node: Node, image: Image, copies: Path, root: BuiltRoot | None = None) -> BootFiles:
    """What `node`, with this root, boots; copies of its own files go into the folder `copies`. Raises BadInput,
    RunFailed."""
    cmdline = str(image.manifest["cmdline"])
    if not node.boots_its_own:
        return BootFiles(image.kernel, image.kernel_sha256, image.initrd, image.initrd_sha256, cmdline)
    kernel, kernel_sha256 = image.kernel, image.kernel_sha256
    release = image.manifest.get("kernel_release")
    if node.kernel is not None:
        data = _kernel(node, node.kernel)
        kernel, kernel_sha256 = _copied(data, copies)
        release = kernel_release(data)
    initrd, initrd_sha256 = image.initrd, image.initrd_sha256
    if root is not None:
        initrd, initrd_sha256 = root.initrd, root.initrd_sha256
    laid = _files(node)
    if node.initrd is not None or laid:
        initrd, initrd_sha256 = _copied(_initrd(node, image, laid, root), copies)
    disk = None if root is None else root.disk
    words = " ".join(filter(None, (cmdline, DISK_WORDS if disk else None, node.cmdline)))
    if len(words) > COMMAND_LINE_MOST:
        allowed = f"{COMMAND_LINE_MOST - len(cmdline) - 1} characters behind those of image {image.name}"
        raise BadInput(f"the command line has {len(words)} characters", field=_field(node, "cmdline"), allowed=allowed)
    own: dict[str, Any] = {
        "kernel": kernel_sha256,
        "initrd": initrd_sha256,
        "cmdline": words,
        "kernel_release": release,
        "files": {
            each.path: {
                "sha256": hashlib.sha256(each.content).hexdigest(),
                "mode": f"{each.mode:04o}",
                "bytes": len(each.content),
            }
            for each in laid
        },
    }
    if root is not None:
        own["root"] = {name: root.manifest[name] for name in RECORDED}
        if disk is not None:
            own["root"]["disk"] = disk.path.name
    return BootFiles(kernel, kernel_sha256, initrd, initrd_sha256, words, own, disk)


def _kernel(node: Node, path: str) -> bytes:
    try:
        data = read_whole(path, check_kernel(path))
    except Unusable as fault:
        raise _refused(node, "kernel", fault) from fault
    wrong = kernel_fault(io.BytesIO(data), len(data))
    if wrong is not None:
        raise RunFailed(f"{path} was changed while it was read: it {wrong}", machine=node.name)
    return data


def _initrd(node: Node, image: Image, laid: Sequence[LaidContent], root: BuiltRoot | None) -> bytes:
    if root is not None:
        data = root.initrd.read_bytes()
        if hashlib.sha256(data).hexdigest() != root.initrd_sha256:
            raise RunFailed("its root was made again meanwhile", machine=node.name, hint="run it again")
    elif node.initrd is None:
        data = image.initrd.read_bytes()
        if hashlib.sha256(data).hexdigest() != image.initrd_sha256:
            raise RunFailed(f"image {image.name} was built again meanwhile", hint="run it again")
    else:
        try:
            compressed = IMAGES[node.image].compressed_initrd
            data = read_whole(node.initrd, check_initrd(node.initrd, compressed=compressed))
        except Unusable as fault:
            raise _refused(node, "initrd", fault) from fault
        packed, unpacked = compression(data), image.manifest.get("unpacks")
        if packed is not None and node.kernel is None and isinstance(unpacked, list) and packed not in unpacked:
            what = f"{node.initrd} is compressed ({packed}), which the kernel of image {image.name} does not unpack"
            raise BadInput(what, field=_field(node, "initrd"), allowed=", ".join(unpacked) or PLAIN_ALLOWED)
        damage = Root(data).damage
        if damage is not None:
            raise BadInput(f"{node.initrd} is damaged: {damage}", field=_field(node, "initrd"), allowed=INITRD_ALLOWED)
    try:
        if root is not None and root.disk is not None:
            return with_files(data, root.shape, laid)
        return lay_over(data, laid) if laid else data
    except Conflict as conflict:
        where = node.initrd or f"image {image.name}"
        what = f"cannot be laid over {where}: {conflict}"
        raise BadInput(what, field=_field(node, f"files.{conflict.path}")) from conflict


def _files(node: Node) -> list[LaidContent]:
    laid = []
    for path, file in node.files:
        if file.source is None:
            content = (file.content or "").encode()
        else:
            try:
                content = read_whole(file.source, check_file(file.source))
            except Unusable as fault:
                raise _refused(node, f"files.{path}.from", fault) from fault
        laid.append(LaidContent(path, content, file.mode))
    return laid


def _copied(data: bytes, copies: Path) -> tuple[Path, str]:
    digest = hashlib.sha256(data).hexdigest()
    path = copies / digest
    if not path.exists():
        path.write_bytes(data)
        path.chmod(0o444)
    return path, digest


def _refused(node: Node, field: str, fault: Unusable) -> BadInput:
    return BadInput(str(fault), field=_field(node, field), allowed=fault.allowed)


def _field(node: Node, field: str) -> str:
    return f"machines.{node.name}.{field}"
