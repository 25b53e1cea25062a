# SPDX-License-Identifier: Apache-2.0
"""Kconfig without a release: defconfigs against the table of Buildroot's symbols, our Config.in as Kconfig reads it."""

from pathlib import Path

import kconfiglib
import pytest
import symbols
from recipe import release

ROWS = [line.split("\t") for line in symbols.TABLE.read_text().splitlines()[1:]]
TYPES = {symbol: kind for symbol, kind, _ in ROWS}
OURS = {"BR2_PACKAGE_SSS_CORE", "BR2_PACKAGE_SUNDIAL_GUEST_APPS"}

# Symbols of Buildroot's that our packages depend on or select.
BUILDROOT = """
config BR2_x86_64
	bool "x86_64"
config BR2_USE_MMU
	bool "mmu"
config BR2_TOOLCHAIN_HAS_THREADS
	bool "threads"
config BR2_PACKAGE_JANSSON
	bool
config BR2_PACKAGE_LIBTIRPC
	bool
source "$BR2_EXTERNAL_SUNDIAL_PATH/Config.in"
"""


def test_the_table_is_of_the_releases_that_the_recipe_accepts() -> None:
    assert [row[2].split() for row in ROWS] == [list(release.TRIED)] * len(ROWS)
    assert symbols.named() == set(TYPES)


@pytest.mark.parametrize("defconfig", symbols.configurations(), ids=lambda path: path.name)
def test_every_line_of_a_defconfig_sets_a_symbol_that_exists_to_a_value_of_its_type(defconfig: Path) -> None:
    lines = release.settings(defconfig.read_text())
    names = []
    for line in lines:
        unset = line.startswith("# ")
        name, value = (line.split()[1], "n") if unset else line.split("=", 1)
        names.append(name)
        kind = "bool" if name in OURS else TYPES[name]
        assert (value in ("y", "n")) if kind == "bool" else (value[0] == value[-1] == '"' and not unset), line
    assert len(names) == len(set(names))


def test_a_fragment_takes_the_place_of_what_it_unsets() -> None:
    """Python wants shared libraries: both choices at once would be one, and Kconfig says no word of it."""
    fragment = symbols.TREE / "configs/sundial_linux_python.fragment"
    base, whole = (symbols.merged(path).splitlines() for path in (fragment.with_name("sundial_linux_defconfig"), fragment))
    assert [line for line in base if line not in whole] == ["BR2_STATIC_LIBS=y"]
    added = [line for line in whole if line not in base]
    assert added[0] == "BR2_SHARED_STATIC_LIBS=y"
    assert {"BR2_PACKAGE_PYTHON3=y", "BR2_PACKAGE_PYTHON_GRPCIO=y"} <= set(added)
    assert len(release.settings("\n".join(whole))) == len(base) - 1 + len(added)


def test_paths_in_defconfigs_are_there() -> None:
    for defconfig in symbols.TREE.glob("configs/*_defconfig"):
        for line in release.settings(defconfig.read_text()):
            path = line.partition('"$(BR2_EXTERNAL_SUNDIAL_PATH)/')[2].rstrip('"')
            assert (symbols.TREE / path).exists(), line


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> kconfiglib.Kconfig:
    """Our packages in a menu of Buildroot's."""
    monkeypatch.setenv("BR2_EXTERNAL_SUNDIAL_PATH", str(symbols.TREE))
    monkeypatch.setenv("CONFIG_", "")
    (tmp_path / "Config.in").write_text(BUILDROOT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("srctree", raising=False)
    read = kconfiglib.Kconfig("Config.in", warn_to_stderr=False)
    assert read.warnings == []
    return read


def test_sss_core_brings_lwip_and_is_for_one_architecture(ours: kconfiglib.Kconfig) -> None:
    core, lwip, x86_64 = (ours.syms[f"BR2_{name}"] for name in ("PACKAGE_SSS_CORE", "PACKAGE_LWIP", "x86_64"))
    core.set_value("y")
    assert (core.str_value, lwip.str_value) == ("n", "n")
    x86_64.set_value("y")
    assert (core.str_value, lwip.str_value) == ("y", "y")


def test_the_applications_bring_their_libraries_and_need_threads(ours: kconfiglib.Kconfig) -> None:
    names = ("PACKAGE_SUNDIAL_GUEST_APPS", "PACKAGE_JANSSON", "PACKAGE_LIBTIRPC")
    ours.syms["BR2_USE_MMU"].set_value("y")
    ours.syms["BR2_PACKAGE_SUNDIAL_GUEST_APPS"].set_value("y")
    assert [ours.syms[f"BR2_{name}"].str_value for name in names] == ["n", "n", "n"]
    ours.syms["BR2_TOOLCHAIN_HAS_THREADS"].set_value("y")
    assert [ours.syms[f"BR2_{name}"].str_value for name in names] == ["y", "y", "y"]


def test_every_package_has_its_recipe_and_a_digest_of_what_it_downloads() -> None:
    for folder in sorted((symbols.TREE / "package").iterdir()):
        makefile = (folder / f"{folder.name}.mk").read_text()
        assert "LICENSE = " in makefile
        assert "LICENSE_FILES = " in makefile
        local = "SITE_METHOD = local" in makefile
        assert local != (folder / f"{folder.name}.hash").exists(), folder.name


def test_the_kernel_of_the_defconfig_has_its_digest() -> None:
    defconfig = (symbols.TREE / "configs/sundial_linux_defconfig").read_text()
    version = defconfig.partition('CUSTOM_VERSION_VALUE="')[2].partition('"')[0]
    for name in ("linux", "linux-headers"):
        digests = (symbols.TREE / f"patches/{name}/{name}.hash").read_text()
        assert f"  linux-{version}.tar.xz\n" in digests
