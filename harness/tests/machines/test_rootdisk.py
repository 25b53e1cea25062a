# SPDX-License-Identifier: Apache-2.0
"""The initrd that mounts a file system, and files over that file system."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sundial.machines.archives import Conflict, LaidContent, cpio
from sundial.machines.rootdisk import boot_tree, shape_of, with_files
from sundial.machines.tree import Entry, Tree, file, folder, link, with_folders


def shape() -> str:
    tree: Tree = {
        "usr/bin/x": file(b"x"),
        "bin": link("usr/bin"),
        "tmp": folder(0o1777),
        "srv": Entry(stat.S_IFDIR | 0o750, 5, 6),
        "round": link("round"),
    }
    with_folders(tree)
    return shape_of(tree)


def laid(initrd: bytes, *files: LaidContent) -> dict[str, tuple[int, bytes]]:
    entries, _ = cpio.read(with_files(initrd, shape(), files), len(initrd) + -len(initrd) % 4)
    return {entry.path: (entry.mode, entry.data) for entry in entries}


def test_the_initrd_loads_modules_in_order_and_names_the_file_system(tmp_path: Path) -> None:
    modules = [tmp_path / "01-second.ko", tmp_path / "00-first.ko"]
    for module in modules:
        module.write_bytes(module.name.encode())
    tree = boot_tree(file(b"busybox", 0o755), modules, "d" * 64)
    assert sorted(path for path in tree if path.startswith("modules/")) == [
        "modules/00-first.ko",
        "modules/01-second.ko",
    ]
    assert tree["root.sha256"].read() == b"d" * 64 + b"\n"
    assert tree["init"].mode == stat.S_IFREG | 0o755


def test_files_are_over_the_file_system_where_its_links_lead() -> None:
    found = laid(
        b"initrd",
        LaidContent("/bin/x", b"mine", 0o755),
        LaidContent("/tmp/note", b"n", 0o600),
        LaidContent("/srv/deep/down", b"d", 0o644),
    )
    assert found == {
        "rw/upper/usr": (stat.S_IFDIR | 0o755, b""),
        "rw/upper/usr/bin": (stat.S_IFDIR | 0o755, b""),
        "rw/upper/usr/bin/x": (stat.S_IFREG | 0o755, b"mine"),
        # As the folder below: that of the overlay takes its place.
        "rw/upper/tmp": (stat.S_IFDIR | 0o1777, b""),
        "rw/upper/tmp/note": (stat.S_IFREG | 0o600, b"n"),
        "rw/upper/srv": (stat.S_IFDIR | 0o750, b""),
        "rw/upper/srv/deep": (stat.S_IFDIR | 0o755, b""),
        "rw/upper/srv/deep/down": (stat.S_IFREG | 0o644, b"d"),
    }


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["/tmp"], "there is a folder"),
        (["/bin/x", "/usr/bin/x"], "a link makes it the same file as another"),
        (["/round/x"], "is a link that leads to itself"),
    ],
)
def test_a_file_that_has_no_place_is_refused(paths: list[str], said: str) -> None:
    with pytest.raises(Conflict, match=said):
        laid(b"", *(LaidContent(path, b"", 0o644) for path in paths))
