# SPDX-License-Identifier: Apache-2.0
"""Programs of others and an image in one root: the shape is theirs, and what the image needs stays."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sundial.machines.merged import merge, read_initrd
from sundial.machines.packed import write_cpio
from sundial.machines.tree import BadTree, Tree, file, folder, link, place, with_folders


def image() -> Tree:
    """Shaped as the Linux image."""
    tree: Tree = {
        "init": file(b"#!/bin/sh\nmount\n", 0o755),
        "bin/busybox": file(b"busybox", 0o755),
        "bin/sh": link("busybox"),
        "bin/modprobe": link("busybox"),
        "bin/insmod": link("busybox"),
        "bin/runner": link("../usr/lib/sundial/apps"),
        "usr/lib/sundial/apps": file(b"apps", 0o755),
        "sbin": link("bin"),
        "usr/bin": link("../bin"),
        "usr/sbin": link("../bin"),
        "var/run": link("../run"),
        "run": folder(),
        "lib/x86_64-linux-gnu/libc.so.6": file(b"the image's"),
        "lib64/ld-linux-x86-64.so.2": file(b"the image's"),
        "etc/passwd": file(b"root:x:0:0::/root:/bin/sh\n"),
        "etc/nsswitch.conf": file(b"hosts: files\n"),
        "dev/console": file(b""),
    }
    with_folders(tree)
    return tree


def merged(other: Tree) -> Tree:
    with_folders(other)
    return merge(image(), other)


def read(tree: Tree, path: str) -> bytes:
    """What the guest reads there."""
    return tree[place(tree, path, follow=True)].read()


NEEDED = {
    "/init": b"#!/bin/busybox sh\nmount\n",
    "/bin/busybox": b"busybox",
    "/bin/modprobe": b"busybox",
    "/sbin/modprobe": b"busybox",
    "/bin/runner": b"apps",
    "/usr/lib/sundial/apps": b"apps",
    "/etc/nsswitch.conf": b"hosts: files\n",
}
SHAPES: dict[str, Tree] = {
    "packages": {"usr/bin/x": file(b"x"), "usr/sbin/y": link("../bin/x"), "sbin/z": file(b"z")},
    "usr merged": {"bin": link("usr/bin"), "sbin": link("usr/sbin"), "lib": link("usr/lib"), "usr/bin/x": file(b"x"),
                   "usr/sbin/y": link("/bin/x"), "usr/sbin/z": file(b"z"), "lib64": link("usr/lib64"),
                   "usr/lib64/k": file(b""), "usr/lib/k": file(b"")},
    "all in bin": {"sbin": link("bin"), "usr/bin": link("/bin"), "usr/sbin": link("../bin"), "bin/x": file(b"x"),
                   "bin/y": link("x"), "bin/z": file(b"z")},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_programs_are_in_their_paths_and_the_image_boots(shape: str) -> None:
    tree = merged({**SHAPES[shape], "etc/nsswitch.conf": file(b"hosts: dns\n"), "init": file(b"systemd")})
    for path, content in NEEDED.items():
        assert read(tree, path) == content, path
    for path in ("/usr/bin/x", "/usr/sbin/y", "/bin/x", "/bin/y"):
        assert read(tree, path) == b"x", path
    assert read(tree, "/sbin/z") == read(tree, "/bin/z") == b"z"
    assert place(tree, "/var/run/x") == "run/x"
    assert read(tree, "/lib/x86_64-linux-gnu/libc.so.6") == b"the image's"
    for path in tree:
        above = path.rpartition("/")[0]
        assert not above or tree[above].is_folder, path


def test_a_file_of_the_other_side_wins_and_users_are_those_of_both() -> None:
    users = b"daemon:x:1:1::/:/bin/false\nroot:x:0:0::/:/bin/bash\n"
    tree = merged({"bin/sh": file(b"dash"), "etc/passwd": file(users), "bin/busybox": file(b"another")})
    assert read(tree, "/bin/sh") == b"dash"
    assert read(tree, "/bin/busybox") == b"busybox"
    assert read(tree, "/etc/passwd") == b"root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/bin/false\n"


def test_nothing_is_put_below_what_is_mounted_over() -> None:
    tree = merged({"dev/null": file(b""), "proc/1/maps": file(b""), "sys": link("proc")})
    assert sorted(path for path in tree if path.split("/")[0] in ("dev", "proc", "sys")) == [
        *("dev", "dev/console", "proc", "sys"),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_the_same_entries_gives_the_same_root(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    digests = set()
    for shape in SHAPES.values():
        other = list(shape.items())
        chance.shuffle(other)
        digests.add(write_cpio(merged(dict(other)), tmp_path / "root"))
    assert digests == {write_cpio(merged(dict(shape)), tmp_path / "root") for shape in SHAPES.values()}


def test_an_initrd_is_read_as_the_kernel_unpacks_it(tmp_path: Path) -> None:
    write_cpio(image(), tmp_path / "first")
    write_cpio({"etc/passwd": file(b"later")}, tmp_path / "second")
    (tmp_path / "initrd").write_bytes((tmp_path / "first").read_bytes() + bytes(8) + (tmp_path / "second").read_bytes())
    tree = read_initrd(tmp_path / "initrd")
    assert tree.keys() == image().keys()
    assert tree["etc/passwd"].read() == b"later"
    assert tree["bin/sh"].target == "busybox"


@pytest.mark.parametrize("wrong", [b"\x1f\x8b compressed", b"070701" + b"0" * 20])
def test_an_initrd_that_cannot_be_read_is_refused(tmp_path: Path, wrong: bytes) -> None:
    (tmp_path / "initrd").write_bytes(wrong)
    with pytest.raises(BadTree):
        read_initrd(tmp_path / "initrd")


def test_an_image_whose_init_is_another_program_is_refused() -> None:
    with pytest.raises(BadTree, match="the init of this image is not a script of /bin/sh"):
        merge({**image(), "init": file(b"\x7fELF")}, {})


def test_a_library_of_both_sides_is_the_others_and_found_first() -> None:
    other: Tree = {"usr/lib/x86_64-linux-gnu/libc.so.6": file(b"theirs"), "lib/x86_64-linux-gnu/other.so": file(b"o")}
    tree = merged(other)
    assert (
        read(tree, "/lib/x86_64-linux-gnu/libc.so.6") == read(tree, "/usr/lib/x86_64-linux-gnu/libc.so.6") == b"theirs"
    )
    assert read(tree, "/lib64/ld-linux-x86-64.so.2") == b"the image's"
