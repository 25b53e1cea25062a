# SPDX-License-Identifier: Apache-2.0
"""Files laid over an initrd: the kernel unpacks the initrd's tree with the files in it, whatever links it has."""

from __future__ import annotations

import gzip
import stat
import subprocess
from pathlib import Path

import pytest

from sundial.machines.archives import Conflict, LaidContent, Root, cpio, lay_over
from tests.model.kernels import FILE, FOLDER, LINK, newc

TREE = newc(
    {
        "bin": (FOLDER, b""),
        "bin/sh": (FILE | 0o111, b"image"),
        "lib": (FOLDER, b""),
        "var": (FOLDER, b""),
        "run": (FOLDER, b""),
        "usr": (FOLDER, b""),
        "usr/bin": (LINK, b"../bin"),
        "var/run": (LINK, b"/run"),
        "circle": (LINK, b"circle"),
        "nowhere": (LINK, b"missing"),
    }
)


def laid(*paths: str, initrd: bytes = TREE) -> list[tuple[str, int, bytes]]:
    """What is behind the initrd, entry by entry."""
    whole = lay_over(initrd, [LaidContent(path, path.encode(), 0o750) for path in paths])
    assert whole.startswith(initrd)
    behind = whole[len(initrd) :]
    start = len(behind) - len(behind.lstrip(b"\0"))
    assert start >= 4
    assert (len(initrd) + start) % 4 == 0
    entries, end = cpio.read(behind, start)
    assert behind[end:].strip(b"\0") == b""
    return [(entry.path, entry.mode, entry.data) for entry in entries]


def file(place: str, path: str) -> tuple[str, int, bytes]:
    return place, stat.S_IFREG | 0o750, path.encode()


def folder(place: str) -> tuple[str, int, bytes]:
    return place, stat.S_IFDIR | 0o755, b""


def test_folders_that_are_there_are_left_alone() -> None:
    assert laid("/bin/x") == [file("bin/x", "/bin/x")]
    assert laid("/lib/a/b") == [folder("lib/a/"), file("lib/a/b", "/lib/a/b")]
    assert laid("/x") == [file("x", "/x")]


def test_links_on_the_way_are_followed() -> None:
    assert laid("/usr/bin/x") == [file("bin/x", "/usr/bin/x")]
    assert laid("/var/run/a/b") == [folder("run/a/"), file("run/a/b", "/var/run/a/b")]
    assert laid("/nowhere/x") == [folder("missing/"), file("missing/x", "/nowhere/x")]


def test_a_file_takes_the_place_of_a_file_or_a_link() -> None:
    assert laid("/bin/sh") == [file("bin/sh", "/bin/sh")]
    assert laid("/usr/bin") == [file("usr/bin", "/usr/bin")]


@pytest.mark.parametrize(
    ("paths", "what"),
    [
        (["/bin"], "there is a folder"),
        (["/bin/sh/x"], "/bin/sh is a file"),
        (["/usr/bin/sh/x"], "/bin/sh is a file"),
        (["/circle/x"], "/circle is a link that leads to itself"),
        (["/bin/x", "/usr/bin/x"], "a link makes it the same file as /bin/x"),
    ],
)
def test_what_cannot_be_laid_over_it(paths: list[str], what: str) -> None:
    with pytest.raises(Conflict) as caught:
        laid(*paths)
    assert (str(caught.value), caught.value.path) == (what, paths[-1])


def test_the_same_files_give_the_same_bytes() -> None:
    files = [LaidContent("/b", b"1", 0o644), LaidContent("/a/c", b"22", 0o4755)]
    assert lay_over(TREE, files) == lay_over(TREE, files)
    assert lay_over(TREE, files) == lay_over(TREE, list(reversed(files)))


def test_what_is_compressed_is_looked_into() -> None:
    packed = gzip.compress(TREE)
    assert Root(packed).complete
    assert laid("/usr/bin/x", initrd=packed) == [file("bin/x", "/usr/bin/x")]
    # A processor's microcode comes first, as it is.
    both = newc({"kernel": (FOLDER, b"")}) + bytes(508) + packed
    assert laid("/kernel/x", "/usr/bin/x", initrd=both) == [file("bin/x", "/usr/bin/x"), file("kernel/x", "/kernel/x")]


@pytest.mark.parametrize(
    "initrd",
    [
        b"\x28\xb5\x2f\xfd zstd",
        b"\x02\x21\x4c\x18 lz4",
        gzip.compress(TREE)[:-20],
        gzip.compress(TREE) + TREE,
        TREE[:300],
    ],
)
def test_folders_in_what_cannot_be_read_may_be_links(initrd: bytes) -> None:
    """A folder called `usr/bin` would take the place of a link; `usr/bin/` is where it leads to."""
    assert not Root(initrd).complete
    paths = [path for path, _, _ in laid("/opt/bin/x", initrd=initrd)]
    assert paths == ["opt/", "opt/bin/", "opt/bin/x"]


def test_cpio_unpacks_it_too(tmp_path: Path) -> None:
    behind = lay_over(b"", [LaidContent("/usr/bin/tool", b"#!/bin/sh\n", 0o4755), LaidContent("/empty", b"", 0o600)])
    done = subprocess.run(["cpio", "-idm", "--quiet"], cwd=tmp_path, input=behind.lstrip(b"\0"), check=False)
    assert done.returncode == 0
    assert (tmp_path / "usr/bin/tool").read_bytes() == b"#!/bin/sh\n"
    assert stat.S_IMODE((tmp_path / "empty").stat().st_mode) == 0o600
    assert (tmp_path / "empty").read_bytes() == b""
