# SPDX-License-Identifier: Apache-2.0
"""Modules that are compiled again: which packages and options, with apt and make in their places. No network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from packages import rebuild
from recipe.errors import RecipeError
from recipe.packages import Package

KERNEL = Package("linux-image-6.1.0-9-cloud-amd64", "6.1.1-1", "amd64", "ab" * 32, ())
CONFIG = 'CONFIG_CC_VERSION_TEXT="gcc-12 (Debian) 12.2"\nCONFIG_UDP_OFF=y\nCONFIG_OTHER=y\n# CONFIG_MORE is not set\n'


def test_options_of_several_modules_are_read() -> None:
    assert rebuild.read_options(["nfs:A=n", "nfs:B_C=y", "x:A=y"]) == {"nfs": {"A": False, "B_C": True}, "x": {"A": True}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"UDP_OFF": False, "MORE": True}, None),
        ({"OTHER": False}, "its source does not read option OTHER"),
        ({"UDP": False}, "its source does not read option UDP"),
        ({"UDP_OFF": True}, "option UDP_OFF is on in this kernel"),
        ({"MORE": False}, "option MORE is off in this kernel"),
    ],
)
def test_an_option_must_change_something(options: dict[str, bool], said: str | None) -> None:
    files = ["#ifdef CONFIG_UDP_OFF\n", "m-$(CONFIG_MORE) += x.o\n"]
    if said is None:
        rebuild.check_options("nfs", options, CONFIG, files)
        return
    with pytest.raises(rebuild.NoOption) as refused:
        rebuild.check_options("nfs", options, CONFIG, files)
    assert str(refused.value) == f"kernel module nfs: {said}"
    assert refused.value.exit_status == 2


def test_the_compiler_reads_both_kinds_of_options() -> None:
    assert rebuild.header({"B": True, "A": False}).splitlines() == [
        *("#undef CONFIG_A", "#undef CONFIG_A_MODULE"),
        *("#undef CONFIG_B", "#undef CONFIG_B_MODULE", "#define CONFIG_B 1"),
    ]


def _look_up(names: list[str]) -> dict[str, Package]:
    depends = ("linux-headers-6.1.0-9-common", "linux-kbuild-6.1", "linux-compiler-gcc-12-x86")
    found = {}
    for word in names:
        name, _, version = word.partition("=")
        assert version == KERNEL.version, "another version has other symbols"
        found[name] = Package(name, version, "all", "cd" * 32, depends if name.endswith("amd64") else ())
    return found


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """A host whose packages are here. Returns what make was called with."""
    said: list[tuple[str, ...]] = []

    def unpack(file: Path, folder: Path) -> None:
        own = folder / "usr/src" / file.name
        own.mkdir(parents=True, exist_ok=True)
        if file.name.endswith("amd64"):
            (own / ".config").write_text(CONFIG)
            (own / "Makefile").write_text("include /usr/src/linux-headers-6.1.0-9-common/Makefile\n")

    def unpack_source(archive: Path, folder: str, target: Path) -> Path:
        source = target / folder
        source.mkdir(parents=True)
        (source / "a.c").write_text("#ifdef CONFIG_UDP_OFF\n")
        return source

    def make(source: Path, *words: str) -> Iterator[str]:
        said.append((str(source), (source / "Makefile").read_text(), *words))
        module = next(word for word in words if word.startswith("M=")).removeprefix("M=")
        (Path(module) / words[-1]).write_bytes(b"compiled")
        yield "CC"

    monkeypatch.setattr(rebuild.packages, "look_up", _look_up)
    monkeypatch.setattr(
        rebuild.packages, "download", lambda some, cache: {each.name: tmp_path / each.name for each in some}
    )
    monkeypatch.setattr(rebuild.packages, "unpack", unpack)
    monkeypatch.setattr(rebuild, "_unpack", unpack_source)
    monkeypatch.setattr(rebuild, "_check_compiler", lambda config: None)
    monkeypatch.setattr(rebuild, "make", make)
    return said


def test_a_module_is_compiled_from_the_sources_of_its_kernel(tmp_path: Path, host: list[tuple[str, ...]]) -> None:
    built = tmp_path / "kernel/lib/modules/6.1/kernel/fs/nfs/nfs.ko.xz"
    built.parent.mkdir(parents=True)
    built.write_bytes(b"Debian's")
    scratch = tmp_path / "kernel/scratch"
    rebuild.rebuild(KERNEL, built, {"UDP_OFF": False}, tmp_path, scratch)
    assert built.read_bytes() == b"compiled"
    ((folder, entry, *words),) = host
    assert folder == f"{scratch}/headers/usr/src/linux-headers-6.1.0-9-cloud-amd64"
    assert entry == f"include {scratch}/headers/usr/src/linux-headers-6.1.0-9-common/Makefile\n"
    assert f"M={scratch}/source-nfs/fs/nfs" in words
    assert "CONFIG_UDP_OFF=" in words
    assert words[-1] == "nfs.ko"
    assert [each.name for each in rebuild.sources(KERNEL)][-1] == "linux-source-6.1"


def test_a_kernel_of_other_packages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        rebuild.packages, "look_up", lambda names: {"linux-headers-own": Package("linux-headers-own", "1", "all", "", ())}
    )
    with pytest.raises(RecipeError, match="names no package with the kernel's tools"):
        rebuild.sources(Package("linux-image-own", "1", "amd64", "", ()))
