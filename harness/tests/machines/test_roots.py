# SPDX-License-Identifier: Apache-2.0
"""Roots are made once, from what they name, and again when a source or the image has changed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from sundial.errors import HostLacks
from sundial.machines.archives import cpio
from sundial.machines.images import Image
from sundial.machines.loading import Missing
from sundial.machines.packed import write_cpio
from sundial.machines.roots import KEPT, BadRoot, BuiltRoot, Roots
from sundial.machines.tree import Tree, file, with_folders
from sundial.model.root import Root
from tests.machines.containers import layer, layout, member

PROGRAM = """\
#!/usr/bin/env python3
# A builder of packages that needs no network.
import hashlib, io, json, sys, tarfile
from pathlib import Path

out, words = Path(sys.argv[2]), sys.argv[7:] if sys.argv[5] == "--lock" else sys.argv[5:]
print("resolving", *words)
with (Path(__file__).parent / "calls").open("a") as calls:
    print(*words, file=calls)
if words == ["nosuch"]:
    print("images/packages/build: Unable to locate package nosuch", file=sys.stderr)
    sys.exit(2)
if words == ["offline"]:
    print("images/packages/build: cannot download offline", file=sys.stderr)
    sys.exit(3)
with tarfile.open(out / "packages.tar", "w") as tar:
    for word in words:
        info = tarfile.TarInfo(f"usr/bin/{word}")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"one"))
with tarfile.open(out / "packages.tar", "a") as tar:
    for given in out.glob("given.json"):
        info = tarfile.TarInfo("etc/locked")
        info.size = given.stat().st_size
        tar.addfile(info, io.BytesIO(given.read_bytes()))
digest = hashlib.sha256((out / "packages.tar").read_bytes()).hexdigest()
packages = [{"name": word, "version": "1", "sha256": "0" * 64, "architecture": "all"} for word in words]
lock = {"asked": words, "packages": packages, "not_run": {words[0]: ["adduser"]}, "sha256": digest}
(out / "lock.json").write_text(json.dumps(lock))
"""


@pytest.fixture
def image(tmp_path: Path) -> Image:
    tree: Tree = {"init": file(b"#!/bin/sh\n", 0o755), "bin/busybox": file(b"busybox")}
    with_folders(tree)
    digest = write_cpio(tree, tmp_path / "initrd")
    return Image("linux", tmp_path / "kernel", tmp_path / "initrd", "k" * 64, digest, {"cmdline": ""})


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    program = tmp_path / "images" / "packages" / "build"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return Roots(tmp_path, tmp_path / "state")


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "images" / "packages" / "calls").read_text().splitlines()


def files(root: BuiltRoot) -> dict[str, bytes]:
    entries, _ = cpio.read(root.initrd.read_bytes())
    return {entry.path: entry.data for entry in entries if entry.data}


def test_packages_are_chosen_once_whatever_their_order(roots: Roots, image: Image, tmp_path: Path) -> None:
    said: list[str] = []
    first = roots.ensure(Root(packages=["bb", "aa", "bb"]), image, said.append)
    again = roots.ensure(Root(packages=["aa", "bb"]), image, said.append)
    assert calls(tmp_path) == ["aa bb"]
    assert first == again
    assert files(first)["usr/bin/aa"] == b"one"
    assert said == [
        "resolving aa bb",
        "not run: the script of package aa, which uses adduser",
        "making a root: bb, aa, bb",
    ]
    assert [lock["asked"] for lock in roots.locks()] == [["aa", "bb"]]
    assert first.manifest["packages"] == roots.locks()[0]["packages"]
    assert first.initrd.name == first.initrd_sha256


def test_another_image_or_another_source_is_another_root(roots: Roots, image: Image) -> None:
    first = roots.ensure(Root(packages=["aa"]), image, lambda _: None)
    other = roots.ensure(Root(packages=["aa"]), replace(image, kernel_sha256="x" * 64), lambda _: None)
    assert first.initrd.parent != other.initrd.parent
    assert first.initrd_sha256 == other.initrd_sha256
    assert roots.ensure(Root(packages=["aa", "bb"]), image, lambda _: None).initrd_sha256 != first.initrd_sha256


def test_later_sources_override_earlier_ones(roots: Roots, image: Image, tmp_path: Path) -> None:
    oci = layout(tmp_path / "oci", layer(member("usr/bin/aa", content=b"two"), member("usr/bin/c", content=b"two")))
    folder = tmp_path / "folder" / "usr" / "bin"
    folder.mkdir(parents=True)
    (folder / "c").write_bytes(b"three")
    root = Root(packages=["aa", "bb"], oci=str(oci), folder=str(tmp_path / "folder"))
    found = files(roots.ensure(root, image, lambda _: None))
    assert {path: found[path] for path in found if path.startswith("usr")} == {
        "usr/bin/aa": b"two",
        "usr/bin/bb": b"one",
        "usr/bin/c": b"three",
    }


def test_a_folder_that_changed_is_another_root(roots: Roots, image: Image, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x").write_bytes(b"one")
    root = Root(folder=str(folder))
    first = roots.ensure(root, image, lambda _: None)
    status = (folder / "x").stat()
    (folder / "x").write_bytes(b"two")
    os.utime(folder / "x", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert files(roots.ensure(root, image, lambda _: None))["x"] == b"two"
    (folder / "x").write_bytes(b"one")
    assert roots.ensure(root, image, lambda _: None).initrd == first.initrd
    (folder / "x").chmod(0o755)
    assert roots.ensure(root, image, lambda _: None).initrd != first.initrd


def test_a_folder_is_read_again_only_if_it_may_have_changed(
    roots: Roots, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x").write_bytes(b"one")
    changed_ns = (folder / "x").stat().st_ctime_ns
    roots.ensure(Root(packages=["aa"]), image, lambda _: None)
    read = []

    def contents(path: Path) -> str:
        read.append(path)
        return "digest"

    monkeypatch.setattr("sundial.machines.roots._contents", contents)
    for later_s, times in ((0, 1), (1, 2), (3, 3), (3, 3), (4, 3)):
        monkeypatch.setattr("sundial.machines.roots.time.time_ns", lambda: changed_ns + later_s * 10**9)  # noqa: B023
        assert roots.digest_of_folder(folder) == "digest"
        assert len(read) == times


def test_a_root_that_was_damaged_is_made_again(roots: Roots, image: Image) -> None:
    first = roots.ensure(Root(packages=["aa"]), image, lambda _: None)
    first.initrd.write_bytes(b"damaged")
    said: list[str] = []
    again = roots.ensure(Root(packages=["aa"]), image, said.append)
    assert said == ["making a root: aa"]
    assert files(again)["usr/bin/aa"] == b"one"


def test_packages_that_cannot_be_had(roots: Roots, image: Image, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(BadRoot, match="Unable to locate package nosuch") as refused:
            roots.ensure(Root(packages=["nosuch"]), image, lambda _: None)
    assert refused.value.field == "packages"
    with pytest.raises(HostLacks, match="packages could not be fetched: cannot download offline"):
        roots.ensure(Root(packages=["offline"]), image, lambda _: None)
    assert calls(tmp_path) == ["nosuch", "nosuch", "offline"]
    assert not [path for path in (tmp_path / "state").rglob("*") if path.name.startswith((".root-", ".packages-"))]


def test_a_changed_archive_of_packages_is_refused(roots: Roots, image: Image, tmp_path: Path) -> None:
    roots.ensure(Root(packages=["aa"]), image, lambda _: None)
    (archive,) = (tmp_path / "state").rglob("packages.tar")
    archive.write_bytes(b"another")
    with pytest.raises(BadRoot, match=r"packages\.tar was changed: remove "):
        roots.ensure(Root(packages=["aa"]), replace(image, kernel_sha256="x" * 64), lambda _: None)


def test_a_layer_with_a_device_is_refused_and_leaves_nothing(roots: Roots, image: Image, tmp_path: Path) -> None:
    oci = layout(tmp_path / "oci", layer(member("dev/sda", b"4")))
    with pytest.raises(BadRoot, match="/dev/sda is a device, which a root cannot have") as refused:
        roots.ensure(Root(oci=str(oci)), image, lambda _: None)
    assert refused.value.field == "oci"
    assert [path for path in (tmp_path / "state").rglob("*") if path.is_dir() and path.name.startswith(".")] == []


def test_the_roots_that_were_used_last_are_kept(roots: Roots, image: Image) -> None:
    for number in range(KEPT + 2):
        roots.ensure(Root(packages=["aa"]), replace(image, kernel_sha256=f"{number:064}"), lambda _: None)
    last = roots.ensure(Root(packages=["aa"]), image, lambda _: None)
    assert len([path for path in last.initrd.parents[1].iterdir() if (path / "manifest.json").is_file()]) == KEPT
    assert json.loads((last.initrd.parent / "manifest.json").read_text()) == last.manifest


def test_a_program_of_a_folder_without_its_library_is_refused_and_of_packages_named(
    roots: Roots, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sundial.machines.roots._package_of", {"libone.so.1": "libone1"}.get)

    def lacking(tree: Tree, paths: list[str]) -> list[Missing]:
        return [
            Missing(path, "needs the library libone.so.1", "libone.so.1") for path in paths if path != "bin/busybox"
        ]

    monkeypatch.setattr("sundial.machines.roots.missing", lacking)
    place = tmp_path / "folder" / "usr" / "bin"
    place.mkdir(parents=True)
    (place / "x").write_bytes(b"x")
    (place / "x").chmod(0o755)
    with pytest.raises(
        BadRoot, match=r"/usr/bin/x needs the library libone\.so\.1, which is in package libone1"
    ) as refused:
        roots.ensure(Root(folder=str(tmp_path / "folder")), image, lambda _: None)
    assert (refused.value.field, refused.value.allowed) == ("folder", "packages: [libone1] in addition")
    oci = layout(tmp_path / "oci", layer(member("usr/bin/greet", mode=0o755), member("usr/bin/other", mode=0o755)))
    with pytest.raises(BadRoot, match="/usr/bin/greet needs the library") as refused:
        roots.ensure(Root(oci=str(oci)), image, lambda _: None)
    assert refused.value.field == "oci"
    other = layout(tmp_path / "other", layer(member("usr/bin/other", mode=0o755)))
    said: list[str] = []
    roots.ensure(Root(oci=str(other)), image, said.append)
    assert said[-1] == "cannot start: /usr/bin/other needs the library libone.so.1, which is in package libone1"


def test_what_a_killed_process_left_is_removed_and_a_root_has_a_size(
    roots: Roots, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = roots.ensure(Root(packages=["aa"]), image, lambda _: None)
    left = first.initrd.parents[1] / ".root-left"
    left.mkdir()
    monkeypatch.setattr("sundial.machines.roots.BYTES_MOST", 5)
    with pytest.raises(BadRoot, match="has 4 entries with 6 bytes, and a root may have 1000000 with 5"):
        roots.ensure(Root(packages=["aa", "bb"]), image, lambda _: None)
    assert not left.exists()


def test_a_folder_that_is_gone_is_one_line(roots: Roots, image: Image, tmp_path: Path) -> None:
    with pytest.raises(BadRoot, match="none does not exist") as refused:
        roots.ensure(Root(folder=str(tmp_path / "none")), image, lambda _: None)
    assert (refused.value.field, refused.value.allowed) == ("folder", "a folder on this host")


PINNED = {"name": "aa", "version": "1:2-3+b1", "architecture": "amd64", "sha256": "0" * 64}


def lock_of(folder: Path, asked: list[str], *packages: dict[str, str]) -> str:
    (folder / "lock").write_text(json.dumps({"version": 1, "asked": asked, "packages": packages}))
    return str(folder / "lock")


def test_packages_of_a_lock_are_those_and_no_others(roots: Roots, image: Image, tmp_path: Path) -> None:
    chosen = roots.ensure(Root(packages=["aa"]), image, lambda _: None)
    locked = Root(packages=["aa"], lock=lock_of(tmp_path, ["aa"], PINNED))
    first = roots.ensure(locked, image, lambda _: None)
    assert json.loads(files(first)["etc/locked"]) == {"packages": [PINNED]}
    assert first.initrd != chosen.initrd
    assert roots.ensure(locked, image, lambda _: None) == first
    assert calls(tmp_path) == ["aa", "aa"]
    lock_of(tmp_path, ["aa"], {**PINNED, "version": "2"})
    assert roots.ensure(locked, image, lambda _: None) != first


@pytest.mark.parametrize(
    ("asked", "package", "said"),
    [
        (["bb"], PINNED, "is for packages bb"),
        (["aa"], {**PINNED, "sha256": "0" * 63}, "has an invalid package 'aa'"),
        (["aa"], {**PINNED, "name": "-oDir=/"}, "has an invalid package '-oDir=/'"),
        (["aa"], {**PINNED, "architecture": "arm64"}, "has an invalid package 'aa'"),
        (["aa"], {"name": "aa"}, "is not a lock of packages"),
    ],
)
def test_a_lock_that_does_not_fit_is_one_line(
    roots: Roots, image: Image, tmp_path: Path, asked: list[str], package: dict[str, str], said: str
) -> None:
    with pytest.raises(BadRoot, match=said) as refused:
        roots.ensure(Root(packages=["aa"], lock=lock_of(tmp_path, asked, package)), image, lambda _: None)
    assert refused.value.field == "lock"


MODULES_PROGRAM = """\
#!/usr/bin/env python3
# A builder of modules that needs no network.
import sys
from pathlib import Path

out, words = Path(sys.argv[sys.argv.index("--out") + 1]), sys.argv[9:]
options = {words[i + 1] for i in range(len(words) - 1) if words[i] == "--option"}
names = [word for word in words if word != "--option" and word not in options]
if "nosuch" in names:
    print("images/packages/modules: kernel module nosuch: not in the kernel package", file=sys.stderr)
    sys.exit(2)
for number, name in enumerate(["virtio", *names]):
    (out / f"{number:02}-{name}.ko").write_text(f"new {name}" + "".join(sorted(options)))
(out / "modules.dep").write_text("virtio.ko: other.ko\\n" + "".join(f"{name}.ko: virtio.ko\\n" for name in names))
"""


@pytest.fixture
def with_kernel(roots: Roots, image: Image, tmp_path: Path) -> Image:
    """An image whose kernel has modules."""
    program = tmp_path / "images" / "packages" / "modules"
    program.write_text(MODULES_PROGRAM)
    program.chmod(0o755)
    tree: Tree = {
        "init": file(b"#!/bin/sh\n", 0o755),
        "bin/busybox": file(b"busybox"),
        "lib/modules/6.1/modules.dep": file(b"virtio.ko:\n"),
        "lib/modules/6.1/virtio.ko": file(b"old virtio"),
    }
    with_folders(tree)
    kernel = {"name": "linux-image-6.1", "version": "6.1-1", "sha256": "d" * 64}
    digest = write_cpio(tree, tmp_path / "initrd")
    return replace(image, initrd_sha256=digest, manifest={"cmdline": "", "packages": [kernel]})


def test_modules_are_beside_those_of_the_image(roots: Roots, with_kernel: Image) -> None:
    root = roots.ensure(Root(modules=["nfsd", "nfs-acl"]), with_kernel, lambda _: None)
    found = {path: data for path, data in files(root).items() if path.startswith("lib/modules")}
    assert found == {
        "lib/modules/6.1/modules.dep": b"virtio.ko:\nnfs_acl.ko: virtio.ko\nnfsd.ko: virtio.ko\n",
        "lib/modules/6.1/virtio.ko": b"old virtio",
        "lib/modules/6.1/nfs_acl.ko": b"new nfs_acl",
        "lib/modules/6.1/nfsd.ko": b"new nfsd",
    }
    assert list(root.manifest["sources"]) == ["modules"] == Root(modules=["nfsd"]).sources
    assert roots.ensure(Root(modules=["nfsd"]), with_kernel, lambda _: None).initrd != root.initrd


def test_a_module_that_is_compiled_again_is_another_and_replaces_that_of_the_image(
    roots: Roots, with_kernel: Image
) -> None:
    modules = ["nfsd", "virtio"]
    plain = roots.ensure(Root(modules=modules), with_kernel, lambda _: None)
    root = roots.ensure(Root(modules=modules, rebuild={"virtio": {"A": False, "B": True}}), with_kernel, lambda _: None)
    assert files(root)["lib/modules/6.1/virtio.ko"] == b"new virtiovirtio:A=nvirtio:B=y"
    assert files(plain)["lib/modules/6.1/virtio.ko"] == b"old virtio"


def test_modules_that_cannot_be_had(roots: Roots, image: Image, with_kernel: Image) -> None:
    with pytest.raises(BadRoot, match="kernel module nosuch: not in the kernel package") as refused:
        roots.ensure(Root(modules=["nosuch"]), with_kernel, lambda _: None)
    assert (refused.value.field, refused.value.allowed) == ("modules", "modules in package linux-image-6.1")
    with pytest.raises(BadRoot, match="has no such modules") as refused:
        roots.ensure(Root(modules=["nfsd"]), image, lambda _: None)
    assert (refused.value.field, refused.value.allowed) == ("modules", "the recipe distribution")
