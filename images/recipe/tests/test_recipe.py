# SPDX-License-Identifier: Apache-2.0
"""The shared parts of recipes: archives, modules, packages, source packages; failures in one line."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from recipe import cpio, image, kernel_config, modules, packages, sources
from recipe.cpio import Archive
from recipe.errors import HostLacks, RecipeError
from recipe.image import CHECKOUT, check_host, run_make


def test_archives_are_ordered_and_carry_nothing_of_the_host() -> None:
    first, second = Archive(), Archive()
    first.add_file("b/c", b"hello", 0o755)
    first.add_link("a", "b/c")
    second.add_link("a", "b/c")
    second.add_file("b/c", b"hello", 0o755)
    assert first.to_bytes() == second.to_bytes()
    assert first.paths() == ["a", "b", "b/c"]
    header = first.to_bytes()[:110]
    assert header[:6] == b"070701"
    mode, uid, gid, links, mtime = (int(header[6 + 8 * i : 14 + 8 * i], 16) for i in range(1, 6))
    assert (stat.S_ISLNK(mode), uid, gid, links, mtime) == (True, 0, 0, 1, 0)
    assert len(first.to_bytes()) % 512 == 0
    with pytest.raises(ValueError, match="twice"):
        first.add_file("a", b"")


def test_a_checkout_that_make_cannot_build_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "CHECKOUT", Path("/home/me/my checkout"))
    with pytest.raises(HostLacks, match="no image can be built in '/home/me/my checkout'"):
        check_host([])


def test_host_of_another_architecture_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image.os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    with pytest.raises(HostLacks, match=r"^this host is aarch64, and images are built on x86-64 hosts: copy images/out"):
        check_host([("/nonexistent", "gcc")])


def test_the_compiler_of_a_manifest_is_the_one_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "echo ccache")
    assert image._compiler_version() == "ccache --version"
    for folder in ("guest-apps", "guest-apps/python", "guest-apps/sss-core"):
        database = subprocess.run(
            ["make", "-pn", "-C", str(CHECKOUT / folder), "no-such-target"],
            env={name: value for name, value in os.environ.items() if name != "CC"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "\nCC := gcc\n" in database.stdout, folder


def test_an_archive_is_read_as_it_was_written() -> None:
    archive = cpio.Archive()
    archive.add_file("b/c", b"hello", 0o4755)
    archive.add_link("a", "b/c")
    data = b"zeros" + bytes(3) + archive.to_bytes() + b"behind"
    entries, end = cpio.read(data, 8)
    assert entries == [
        cpio.Entry("a", stat.S_IFLNK | 0o777, b"b/c"),
        cpio.Entry("b", stat.S_IFDIR | 0o755, b""),
        cpio.Entry("b/c", stat.S_IFREG | 0o4755, b"hello"),
    ]
    assert data[end:].lstrip(b"\0") == b"behind"


@pytest.mark.parametrize("place", [0, 14, 54, 94, 109])
def test_a_damaged_archive_is_refused(place: int) -> None:
    archive = cpio.Archive()
    archive.add_file("file", b"hello")
    data = bytearray(archive.to_bytes())
    data[place : place + 1] = b"x"
    if place == 109:  # within the check sum, which this kind has not
        assert cpio.read(bytes(data))[0][0].data == b"hello"
    else:
        with pytest.raises(ValueError, match=r"cpio|literal"):
            cpio.read(bytes(data))
    for cut in range(len(archive.to_bytes().rstrip(b"\0"))):
        with pytest.raises(ValueError, match="cpio"):
            cpio.read(archive.to_bytes()[:cut])


def test_an_archive_that_lies_over_another_names_no_folders_of_its_own() -> None:
    archive = cpio.Archive(over_another=True)
    archive.add_file("usr/bin/x", b"")
    assert archive.paths() == ["usr/bin/x"]


def test_a_configuration_says_what_the_kernel_unpacks() -> None:
    config = "CONFIG_RD_GZIP=y\n# CONFIG_RD_XZ is not set\nCONFIG_RD_ZSTD=y\nCONFIG_RD_NEW=y\nCONFIG_HZ=250\n"
    assert kernel_config.unpacks(config) == ["gzip", "zstd"]
    assert kernel_config.unpacks("") == []


def test_modules_are_listed_with_all_they_need() -> None:
    loaded = [
        modules.Module("a", b"", (), ()),
        modules.Module("b", b"", ("a",), ("alias:b*",)),
        modules.Module("c", b"", ("b", "a"), ()),
    ]
    files = modules.index_files(loaded)
    assert files["modules.dep"] == b"a.ko:\nb.ko: a.ko\nc.ko: b.ko a.ko\n"
    assert files["modules.alias"] == b"alias alias:b* b\n"


def test_an_unknown_package_is_named() -> None:
    with pytest.raises(HostLacks, match="no-such-package-at-all"):
        packages.look_up(["no-such-package-at-all"])


def test_a_damaged_package_is_fetched_again_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = packages.Package("p", "1:2", "amd64", hashlib.sha256(b"whole").hexdigest(), ())
    file = tmp_path / "p_1%3a2_amd64.deb"

    def fetch(content: bytes) -> None:
        def run(*_: object, **__: object) -> subprocess.CompletedProcess:
            file.write_bytes(content)
            return subprocess.CompletedProcess([], 0, "", "")

        monkeypatch.setattr(packages.subprocess, "run", run)

    file.write_bytes(b"damaged")
    fetch(b"whole")
    assert packages.download([package], tmp_path) == {"p": file}
    file.write_bytes(b"damaged")
    fetch(b"wrong as well")
    with pytest.raises(RecipeError, match="not the file"):
        packages.download([package], tmp_path)


def test_missing_development_packages_are_named_together() -> None:
    missing = [("/no/such/file", "libtirpc-dev"), ("/nor/this", "libjansson-dev"), (__file__, "present")]
    with pytest.raises(HostLacks, match=r"on this host: libtirpc-dev libjansson-dev$") as raised:
        check_host(missing)
    assert raised.value.exit_status == 3


def test_what_does_not_compile_is_named() -> None:
    with pytest.raises(RecipeError, match=r"images/recipe does not compile:\n.*No rule to make target"):
        run_make(CHECKOUT / "images/recipe")


def test_packages_are_unpacked_all_or_the_broken_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "whole/DEBIAN").mkdir(parents=True)
    control = "Package: a\nVersion: 1\nArchitecture: all\nMaintainer: m\nDescription: d\n"
    (tmp_path / "whole/DEBIAN/control").write_text(control)
    (tmp_path / "whole/file").write_text("inside")
    whole, broken = tmp_path / "whole.deb", tmp_path / "broken.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tmp_path / "whole", whole], check=True, capture_output=True)
    broken.write_bytes(whole.read_bytes()[:100])
    packages.unpack_all({whole: tmp_path / "one"})
    assert (tmp_path / "one/file").read_text() == "inside"
    with pytest.raises(RecipeError, match=r"^broken\.deb: cannot unpack"):
        packages.unpack_all({whole: tmp_path / "two", broken: tmp_path / "three"})


def test_make_has_all_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first waits for the second to have begun.
    (tmp_path / "Makefile").write_text(
        "all: one other\n"
        "one:\n\ttimeout 60 sh -c 'echo > a'\n"
        "other:\n\ttimeout 60 cat a > /dev/null\n"
    )
    os.mkfifo(tmp_path / "a")
    monkeypatch.setattr(image, "cores", lambda: 2)
    run_make(tmp_path)


def test_lists_of_packages_become_lists_of_source_packages(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("# a comment\ndeb [signed-by=/k.gpg] mirror one main\n")
    (tmp_path / "sources.list.d/more.list").write_text("deb mirror two main\ndeb-src mirror two main\n")
    (tmp_path / "sources.list.d/new.sources").write_text("Types: deb\nURIs: mirror\n\nTypes: deb deb-src\n")
    lists = dict(sources.source_lists(tmp_path))
    assert lists["sources-one-line.list"].splitlines()[1] == "deb-src [signed-by=/k.gpg] mirror one main"
    assert lists["more-one-line.list"].splitlines() == ["deb-src mirror two main"] * 2
    assert lists["new.sources"].count("Types: deb-src\n") == 2


DESCRIPTION = """Format: 3.0 (quilt)
Checksums-Sha1:
 0000 4 thing_1.orig.tar.xz
Checksums-Sha256:
 {digest} 4 thing_1.orig.tar.xz
Files:
 0000 4 thing_1.orig.tar.xz
"""


def test_only_whole_packages_are_taken_from_the_cache(tmp_path: Path) -> None:
    folder = tmp_path / "source-thing"
    folder.mkdir()
    digest = hashlib.sha256(b"good").hexdigest()
    (folder / "thing_1.dsc").write_text(DESCRIPTION.format(digest=digest))
    (folder / "thing_1.orig.tar.xz").write_bytes(b"good")
    assert sources.listed_files((folder / "thing_1.dsc").read_text()) == {"thing_1.orig.tar.xz": digest}
    assert sources.download("thing", tmp_path) == folder / "thing_1.dsc"
    (folder / "thing_1.orig.tar.xz").write_bytes(b"evil")
    assert sources._complete(folder, "thing") is None


def test_a_package_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thing_1.dsc").write_text(DESCRIPTION.format(digest="0" * 64))
    with pytest.raises(RecipeError, match="one upstream and one Debian"):
        sources.unpack(tmp_path / "thing_1.dsc", tmp_path / "out")
