# SPDX-License-Identifier: Apache-2.0
"""What a machine boots: copies of its own files, which are what was hashed, and one for all machines alike."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from sundial.errors import BadInput, RunFailed
from sundial.machines import bootfiles
from sundial.machines.archives import LaidContent, cpio, lay_over
from sundial.machines.bootfiles import boot_files
from sundial.machines.images import Image
from sundial.model.load import load_topology
from sundial.model.network import Node, build_network
from sundial.model.own import LaidFile
from tests.model.kernels import FILE, FOLDER, bz_image, elf, newc

TREE = newc({"etc": (FOLDER, b""), "etc/motd": (FILE, b"image")})


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    for name, data in (("kernel", elf()), ("initrd", TREE)):
        (tmp_path / name).write_bytes(data)
    manifest = {"cmdline": "quiet", "kernel_release": "6.1-image"}
    return Image("linux", tmp_path / "kernel", tmp_path / "initrd", digest(elf()), digest(TREE), manifest)


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    (tmp_path / "copies").mkdir()
    return tmp_path / "copies"


@pytest.fixture
def node() -> Node:
    return build_network(load_topology("two-hosts-10base-t")).node("client")


def test_a_machine_without_anything_of_its_own_boots_its_image(node: Node, image: Image, copies: Path) -> None:
    found = boot_files(node, image, copies)
    assert (found.kernel, found.initrd, found.cmdline, found.own) == (image.kernel, image.initrd, "quiet", None)
    assert list(copies.iterdir()) == []


def test_everything_of_its_own(node: Node, image: Image, copies: Path, tmp_path: Path) -> None:
    (tmp_path / "bzImage").write_bytes(bz_image())
    (tmp_path / "other").write_bytes(newc({"x": (FILE, b"")}))
    (tmp_path / "script").write_bytes(b"#!/bin/sh\n")
    script = LaidFile.model_validate({"from": str(tmp_path / "script"), "mode": "0755"})
    own = replace(
        node,
        kernel=str(tmp_path / "bzImage"),
        initrd=str(tmp_path / "other"),
        cmdline="loglevel=7",
        files=(("/bin/script", script), ("/note", LaidFile(content="ä"))),
    )
    found = boot_files(own, image, copies)
    assert found.kernel.read_bytes() == bz_image()
    whole = lay_over(
        (tmp_path / "other").read_bytes(),
        [LaidContent("/bin/script", b"#!/bin/sh\n", 0o755), LaidContent("/note", "ä".encode(), 0o644)],
    )
    assert found.initrd.read_bytes() == whole
    assert found.cmdline == "quiet loglevel=7"
    assert found.own == {
        "kernel": digest(bz_image()),
        "initrd": digest(whole),
        "cmdline": "quiet loglevel=7",
        "kernel_release": "6.7.8-own",
        "files": {
            "/bin/script": {"sha256": digest(b"#!/bin/sh\n"), "mode": "0755", "bytes": 10},
            "/note": {"sha256": digest("ä".encode()), "mode": "0644", "bytes": 2},
        },
    }
    assert (found.kernel_sha256, found.initrd_sha256) == (found.own["kernel"], found.own["initrd"])
    assert {path.name for path in copies.iterdir()} == {found.kernel_sha256, found.initrd_sha256}


def test_machines_with_equal_files_share_one(node: Node, image: Image, copies: Path) -> None:
    files = (("/etc/motd", LaidFile(content="hello")),)
    one, two, three = (
        boot_files(replace(node, name=name, files=laid), image, copies)
        for name, laid in (("a", files), ("b", files), ("c", (("/etc/motd", LaidFile(content="hullo")),)))
    )
    assert one == two
    assert one.initrd_sha256 != three.initrd_sha256 != image.initrd_sha256
    assert len(list(copies.iterdir())) == 2


def test_words_alone_take_no_copy(node: Node, image: Image, copies: Path) -> None:
    found = boot_files(replace(node, cmdline="debug"), image, copies)
    assert (found.kernel, found.initrd, found.cmdline) == (image.kernel, image.initrd, "quiet debug")
    assert found.own is not None
    assert found.own["kernel_release"] == "6.1-image"
    assert list(copies.iterdir()) == []


def test_a_command_line_that_is_too_long_for_the_kernel(node: Node, image: Image, copies: Path) -> None:
    long = replace(image, manifest={"cmdline": "x" * 1500})
    assert len(boot_files(replace(node, cmdline="y" * 546), long, copies).cmdline) == 2047
    with pytest.raises(
        BadInput, match=r"machines\.client\.cmdline: the command line has 2048 characters; allowed: 546"
    ):
        boot_files(replace(node, cmdline="y" * 547), long, copies)


def test_what_is_hashed_is_what_is_booted_whatever_becomes_of_the_file(
    node: Node, image: Image, copies: Path, tmp_path: Path
) -> None:
    kernel = tmp_path / "bzImage"
    kernel.write_bytes(bz_image())
    found = boot_files(replace(node, kernel=str(kernel)), image, copies)
    kernel.write_bytes(elf())
    assert digest(found.kernel.read_bytes()) == found.kernel_sha256 == digest(bz_image())
    assert found.kernel.stat().st_mode & 0o222 == 0


@pytest.mark.parametrize(
    ("becomes", "words"),
    [
        (None, r"machines\.client\.kernel: there is no .*/bzImage; allowed: an ELF file"),
        (b"", r"machines\.client\.kernel: .*/bzImage is neither an ELF file nor a bzImage"),
    ],
)
def test_a_file_that_is_another_one_since_it_was_checked(
    node: Node, image: Image, copies: Path, tmp_path: Path, becomes: bytes | None, words: str
) -> None:
    kernel = tmp_path / "bzImage"
    if becomes is not None:
        kernel.write_bytes(becomes)
    with pytest.raises(BadInput, match=words):
        boot_files(replace(node, kernel=str(kernel)), image, copies)


@pytest.mark.parametrize("length", [-1, 1])
def test_a_file_that_changes_between_two_looks(
    node: Node, image: Image, copies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    kernel = tmp_path / "bzImage"
    kernel.write_bytes(bz_image())
    check = bootfiles.check_kernel

    def checked(path: str) -> int:
        size = check(path)
        kernel.write_bytes(kernel.read_bytes()[:length] if length < 0 else kernel.read_bytes() + b"x")
        return size

    monkeypatch.setattr(bootfiles, "check_kernel", checked)
    with pytest.raises(
        BadInput, match="was changed while it was read; allowed: a file that does not change during the run"
    ):
        boot_files(replace(node, kernel=str(kernel)), image, copies)


def test_a_kernel_that_becomes_junk_of_the_same_length(
    node: Node, image: Image, copies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "bzImage"
    kernel.write_bytes(bytes(len(bz_image())))
    monkeypatch.setattr(bootfiles, "check_kernel", lambda path: len(bz_image()))
    with pytest.raises(RunFailed, match=r"client: .* was changed while it was read: it is neither"):
        boot_files(replace(node, kernel=str(kernel)), image, copies)


def test_an_image_that_is_built_again_meanwhile(node: Node, image: Image, copies: Path) -> None:
    image.initrd.write_bytes(newc({}))
    with pytest.raises(RunFailed, match="image linux was built again meanwhile"):
        boot_files(replace(node, files=(("/x", LaidFile(content="x")),)), image, copies)


def test_a_file_that_is_a_folder_of_the_image(node: Node, image: Image, copies: Path) -> None:
    with pytest.raises(
        BadInput, match=r"machines\.client\.files\./etc: cannot be laid over image linux: there is a folder"
    ):
        boot_files(replace(node, files=(("/etc", LaidFile(content="x")),)), image, copies)


def test_the_images_own_file_gives_way(node: Node, image: Image, copies: Path) -> None:
    found = boot_files(replace(node, files=(("/etc/motd", LaidFile(content="mine")),)), image, copies)
    data = found.initrd.read_bytes()
    first, end = cpio.read(data)
    start = len(data) - len(data[end:].lstrip(b"\0"))
    second, _ = cpio.read(data, start)
    assert [(entry.path, entry.data) for entry in (*first, *second)] == [
        ("etc", b""),
        ("etc/motd", b"image"),
        ("etc/motd", b"mine"),
    ]


@pytest.mark.parametrize("data", [newc({"x": (FILE, bytes(64))})[:150], TREE + b"070701 junk", TREE[:-60]])
def test_an_initrd_that_is_cut_off(node: Node, image: Image, copies: Path, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "mine").write_bytes(data)
    with pytest.raises(BadInput, match=r"machines\.client\.initrd: .*/mine is damaged: .*entry of cpio"):
        boot_files(replace(node, initrd=str(tmp_path / "mine")), image, copies)


@pytest.mark.parametrize(
    ("unpacks", "allowed"), [(["zstd", "xz"], "zstd, xz"), ([], r"a cpio archive \(newc\) that is not compressed")]
)
def test_a_recipes_kernel_that_does_not_unpack_it(
    node: Node, image: Image, copies: Path, tmp_path: Path, unpacks: list[str], allowed: str
) -> None:
    (tmp_path / "mine").write_bytes(gzip.compress(TREE))
    recipe = replace(image, manifest={**image.manifest, "unpacks": unpacks})
    own = replace(node, initrd=str(tmp_path / "mine"))
    with pytest.raises(
        BadInput, match=rf"is compressed \(gzip\), which the kernel of image linux .*; allowed: {allowed}"
    ):
        boot_files(own, recipe, copies)
    for other in (image, replace(image, manifest={**image.manifest, "unpacks": ["gzip"]})):
        assert boot_files(own, other, copies).initrd.read_bytes() == gzip.compress(TREE)
    # The owner of a kernel knows what it unpacks.
    (tmp_path / "bzImage").write_bytes(bz_image())
    assert boot_files(replace(own, kernel=str(tmp_path / "bzImage")), recipe, copies).own
