# SPDX-License-Identifier: Apache-2.0
"""A root that a machine maps: the initrd that mounts it, and files of a topology over it.

The file system is on an NVDIMM (`plan/domain.py`), read-only, the same file for all machines. What a machine writes is
in an overlay in its memory. The files of a topology are the first things in that overlay.
"""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from sundial.machines.archives import Conflict, LaidContent
from sundial.machines.packed import write_cpio_to
from sundial.machines.tree import BadTree, Entry, Tree, above, file, folder, link, place

MODULES = ("nfit", "nd_pmem", "erofs", "overlay")
"""Drivers of the kernel that mounting needs; the kernel of recipe `distribution` has them as modules."""
UPPER = "rw/upper"
"""Folder of the initrd with the first files of the overlay."""

FOLDERS = ("bin", "dev", "lower", "modules", "proc", "root", "rw", "rw/work", "written", UPPER)

INIT = """\
#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The shell finds its own commands by /proc/self/exe.
/bin/busybox mount -t proc none /proc
mount -t devtmpfs none /dev
for module in /modules/*; do insmod $module; done
tries=0
while [ ! -b /dev/pmem0 ] && [ $tries -lt 2000 ]; do usleep 5000; tries=$((tries + 1)); done
mount -t erofs -o ro /dev/pmem0 /lower &&
    mount -t tmpfs -o mode=0755 none /written &&
    cp -a /rw/. /written/ &&
    mount -t overlay -o lowerdir=/lower,upperdir=/written/upper,workdir=/written/work none /root ||
    echo "sundial: the root cannot be mounted" >/dev/console
umount /dev
umount /proc
exec /bin/busybox switch_root /root /init
"""


def boot_tree(busybox: Entry, modules: Iterable[Path], disk_sha256: str) -> Tree:
    """The initrd that mounts the file system with this digest."""
    tree: Tree = {path: folder() for path in FOLDERS}
    tree["bin/busybox"] = busybox
    tree["bin/sh"] = link("busybox")
    tree["dev/console"] = Entry(stat.S_IFCHR | 0o600, device=(5, 1))
    tree["init"] = file(INIT.encode(), 0o755)
    # Snapshots are called by what is booted, and the file's path is not among that.
    tree["root.sha256"] = file(f"{disk_sha256}\n".encode())
    for module in sorted(modules):
        tree[f"modules/{module.name}"] = file(module.read_bytes())
    return tree


def shape_of(tree: Mapping[str, Entry]) -> str:
    """Folders and links of a tree, as a document: what is needed to find the place of a file in it."""
    found: dict[str, list[int] | str] = {}
    for path, entry in sorted(tree.items()):
        if entry.is_folder:
            found[path] = [entry.mode, entry.uid, entry.gid]
        elif entry.is_link:
            found[path] = entry.target
    return json.dumps(found)


def with_files(initrd: bytes, shape: str, files: Iterable[LaidContent]) -> bytes:
    """An initrd as `boot_tree` has it, with files over the file system of this shape. Raises Conflict."""
    tree: Tree = {}
    for path, entry in json.loads(shape).items():
        tree[path] = link(entry) if isinstance(entry, str) else Entry(*entry)
    over: Tree = {}
    for path, content, mode in files:
        try:
            where = place(tree, path)
        except BadTree as error:
            raise Conflict(path, str(error)) from error
        if where in tree and tree[where].is_folder:
            raise Conflict(path, "there is a folder")
        if f"{UPPER}/{where}" in over:
            raise Conflict(path, "a link makes it the same file as another")
        over[f"{UPPER}/{where}"] = file(content, mode)
        for parent in above(where):
            over[f"{UPPER}/{parent}"] = tree[parent] if parent in tree else folder()
    out = io.BytesIO()
    write_cpio_to(out, over)
    return initrd + bytes(-len(initrd) % 4) + out.getvalue()
