# SPDX-License-Identifier: Apache-2.0
"""The recipe `buildroot` on a made-up release, whose make answers as a real one does; what releases say, as text."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recipe import buildroot, kernel_config, release
from recipe.errors import HostLacks, RecipeError
from recipe.image import Workspace
from sundial.machines.waiting import wait_until

PATIENCE_S = 60.0

MAKEFILE = """\
export BR2_VERSION := 2025.02.16
BR2_VERSION_EPOCH = 1700000000
defconfig:
\t@grep -v '@DROPPED@' $(BR2_DEFCONFIG) > $(O)/.config
show-build-order:
\t@echo host-flex linux
source:
\t@echo "source $$BR2_DL_DIR $$SOURCE_DATE_EPOCH $${BR2_JUNK-none} $(BR2_PRIMARY_SITE)" >> $(O)/calls
%-dirclean:
\t@echo $@ >> $(O)/calls
show-info:
\t@cat info.json
all:
\t@echo all >> $(O)/calls
\t@printf '\\033[7m>>> host-flex 2.6.4 Building\\033[27m\\n'
\t@printf '\\033[7m>>> host-flex 2.6.4 Installing to host directory\\033[27m\\n'
\t@printf '\\033[7m>>> linux custom Building\\033[27m\\n'
\t@@COMMAND@
\t@printf '\\033[7m>>>   Finalizing target directory\\033[27m\\n'
\t@mkdir -p $(O)/images/linux $(O)/images/ssscore $(O)/host/bin
\t@printf '#!/bin/sh\\necho gcc 13.3.0\\n' > $(O)/host/bin/x86_64-linux-gcc; chmod +x $(O)/host/bin/x86_64-linux-gcc
"""


def package(kind: str, version: str | None, licences: str, *dependencies: str) -> dict[str, object]:
    """As `make show-info` describes one; without a version it is virtual."""
    about = {"type": kind, "virtual": version is None, "dependencies": list(dependencies)}
    return about if version is None else about | {"version": version, "licenses": licences}


INFO = {
    "linux": package("target", "6.1.183", "GPL-2.0", "skeleton"),
    "skeleton": package("target", "", "unknown"),
    "sss-core": package("target", "1.0", "Apache-2.0", "lwip"),
    "lwip": package("target", "2.1.3", "BSD-3-Clause", "jdk"),
    "jdk": package("target", None, ""),
    "rootfs-cpio": package("rootfs", "1", "", "linux"),
}


def make_release(folder: Path, dropped: str = "nothing at all", command: str = ":") -> Path:
    for part in ("package", "support", "toolchain", "utils"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "Config.in").touch()
    (folder / "info.json").write_text(json.dumps(INFO))
    (folder / "Makefile").write_text(MAKEFILE.replace("@DROPPED@", dropped).replace("@COMMAND@", command))
    return folder


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the checkout: sources of two parts."""
    folder = tmp_path / "checkout"
    (folder / "apps").mkdir(parents=True)
    (folder / "apps/a.c").touch()
    (folder / "linux.config").touch()
    monkeypatch.setattr(buildroot, "CHECKOUT", folder)
    monkeypatch.setattr(buildroot, "WHOLE", [])
    parts = {"linux": ([folder / "linux.config"], ["linux"]), "applications": ([folder / "apps"], ["apps", "core"])}
    monkeypatch.setattr(buildroot, "PARTS", parts)
    return folder


def workspace(tmp_path: Path, folder: Path | None) -> Workspace:
    return Workspace(tmp_path, tmp_path / "cache", folder)


def calls(tmp_path: Path) -> list[str]:
    """What was asked of make since the last call of this function."""
    file = tmp_path / "cache/buildroot/output/calls"
    if not file.exists():
        return []
    lines = [line.split()[0] for line in file.read_text().splitlines()]
    file.unlink()
    return lines


def test_it_builds_once_says_how_far_it_is_and_describes_what_it_built(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BR2_JUNK", "of another build")
    monkeypatch.setenv("BR2_PRIMARY_SITE", "file:///mirror")
    folder = make_release(tmp_path / "release")
    built = buildroot.build(workspace(tmp_path, folder))
    said = capsys.readouterr().out.splitlines()
    assert said[2:] == ["host-flex 2.6.4 (1 of 2)", "linux (2 of 2)", "finalizing target directory"]
    work = tmp_path / "cache/buildroot"
    first = (work / "output/calls").read_text().splitlines()
    assert first == [f"source {work}/downloads 1700000000 none file:///mirror", "all"]
    assert built.facts["release"] == {"version": "2025.02.16", "sha256": release.tree_sha256(folder)}
    assert built.compiler == "gcc 13.3.0"
    assert set(built.facts["defconfigs"]) == {"sundial_linux_defconfig", "sundial_ssscore_defconfig"}
    assert (built.beside, built.facts.get("sbom")) == ({}, None)
    calls(tmp_path)
    assert buildroot.build(workspace(tmp_path, folder)).facts == built.facts
    assert calls(tmp_path) == []


def test_only_what_changed_is_built_again(tmp_path: Path, checkout: Path) -> None:
    folder = make_release(tmp_path / "release")
    kept = tmp_path / "cache/buildroot/output/kept"
    buildroot.build(workspace(tmp_path, folder))
    calls(tmp_path)
    kept.touch()
    (checkout / "apps/a.c").write_text("int a;")
    (checkout / "apps/build").mkdir()
    (checkout / "apps/build/a.o").touch()
    buildroot.build(workspace(tmp_path, folder))
    assert calls(tmp_path) == ["apps-dirclean", "core-dirclean", "source", "all"]
    (checkout / "apps/build/a.o").write_text("of the host")
    buildroot.build(workspace(tmp_path, folder))
    assert calls(tmp_path) == []
    assert kept.exists()
    (folder / "package/a.mk").touch()
    buildroot.build(workspace(tmp_path, folder))
    assert not kept.exists(), "another release: nothing of the old one is used"
    kept.touch()
    (tmp_path / "cache").rename(tmp_path / "moved")
    buildroot.build(Workspace(tmp_path, tmp_path / "moved", folder))
    assert not (tmp_path / "moved/buildroot/output/kept").exists(), "it holds the paths of its old place"


def test_every_file_of_the_tree_is_an_input_of_some_part() -> None:
    tops = [*buildroot.WHOLE, *(path for sources, _ in buildroot.PARTS.values() for path in sources)]
    assert [path for path in tops if not path.exists()] == []
    files = [path for path in buildroot.TREE.rglob("*") if path.is_file() and path.parent != buildroot.TREE / "tests"]
    not_read = {"README.md", "pytest.ini"}
    uncovered = [path for path in files if not any(path.is_relative_to(top) for top in tops)]
    assert {path.name for path in uncovered if path.suffix != ".pyc"} == not_read


@pytest.mark.parametrize("text", ["", "[]", "{", '{"parts": 3, "complete": true}'])
def test_a_record_of_parts_that_was_damaged_is_as_none(tmp_path: Path, checkout: Path, text: str) -> None:
    folder = make_release(tmp_path / "release")
    buildroot.build(workspace(tmp_path, folder))
    calls(tmp_path)
    (tmp_path / "cache/buildroot/output/sundial-parts.json").write_text(text)
    buildroot.build(workspace(tmp_path, folder))
    assert calls(tmp_path) == ["source", "all"]


def test_an_output_that_was_never_configured_is_begun_anew(tmp_path: Path, checkout: Path) -> None:
    folder = make_release(tmp_path / "release")
    buildroot.build(workspace(tmp_path, folder))
    calls(tmp_path)
    (tmp_path / "cache/buildroot/output/.config").unlink()
    (checkout / "apps/a.c").write_text("int a;")
    buildroot.build(workspace(tmp_path, folder))
    assert calls(tmp_path) == ["source", "all"]


def test_a_line_of_the_defconfig_that_is_dropped_is_named_before_anything_is_built(
    tmp_path: Path, checkout: Path
) -> None:
    folder = make_release(tmp_path / "release", dropped="BR2_PACKAGE_RPCBIND")
    with pytest.raises(RecipeError, match=r"^Buildroot 2025.02.16 does not take a line .*: BR2_PACKAGE_RPCBIND=y$"):
        buildroot.build(workspace(tmp_path, folder))
    assert calls(tmp_path) == []


def test_a_build_that_fails_shows_its_end_and_goes_on_where_it_was(tmp_path: Path, checkout: Path) -> None:
    folder = make_release(tmp_path / "release", command="seq 100; echo no rule; [ -e $(O)/mended ]")
    with pytest.raises(RecipeError) as raised:
        buildroot.build(workspace(tmp_path, folder))
    lines = str(raised.value).splitlines()
    log = tmp_path / "cache/buildroot/build.log"
    assert lines[-1] == f"Buildroot's make all failed (status 2); its whole output is in {log}"
    assert "no rule" in lines
    assert len(lines) == buildroot.LAST_LINES + 1
    assert "\n1\n2\n" in log.read_text()
    (tmp_path / "cache/buildroot/output/mended").touch()
    buildroot.build(workspace(tmp_path, folder))
    assert calls(tmp_path) == ["source", "all", "source", "all"]


def test_a_build_that_writes_to_the_release_is_reported(tmp_path: Path, checkout: Path) -> None:
    folder = make_release(tmp_path / "release", command="mkdir output")
    with pytest.raises(RecipeError, match=f"the build has written to the release {folder}: output"):
        buildroot.build(workspace(tmp_path, folder))


@pytest.mark.parametrize(
    ("program", "sbom"),
    [("import sys; print(len(sys.stdin.read()) > 9)", b"True\n"), ("raise OSError('no network')", None)],
    ids=["made", "no network"],
)
def test_the_sbom_is_that_of_the_release(
    tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str], program: str, sbom: bytes | None
) -> None:
    folder = make_release(tmp_path / "release")
    (folder / "utils/generate-cyclonedx").write_text(program)
    built = buildroot.build(workspace(tmp_path, folder))
    assert built.beside.get("sbom.cdx.json") == sbom
    assert ("sbom" in built.facts) == (sbom is not None)
    assert ("warning: no SBOM" in capsys.readouterr().out) == (sbom is None)


def test_make_ends_with_the_recipe_that_is_killed(tmp_path: Path, checkout: Path) -> None:
    folder = make_release(tmp_path / "release", command="echo $$$$ > $(O)/pid; exec sleep 60")
    program = (
        "from pathlib import Path; from recipe import buildroot; from recipe.image import Workspace\n"
        f"buildroot.build(Workspace(Path({str(tmp_path)!r}), Path({str(tmp_path / 'cache')!r}), Path({str(folder)!r})))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(buildroot.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.DEVNULL) as process:
        pid = _when_written(tmp_path / "cache/buildroot/output/pid")
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: _has_ended(pid), seconds=PATIENCE_S, what="the end of make")


def _when_written(file: Path) -> int:
    def written() -> bool:
        return file.exists() and file.read_text().endswith("\n")

    wait_until(written, seconds=PATIENCE_S, what="make")
    return int(file.read_text())


def _has_ended(pid: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the latter where it ends between open and read
        return True


def test_what_is_no_release_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(HostLacks, match="needs an unpacked release: make images BUILDROOT=DIR"):
        buildroot.build(workspace(tmp_path, None))
    with pytest.raises(HostLacks, match="is not a Buildroot release: there is no Makefile"):
        release.read(tmp_path / "nowhere")
    folder = make_release(tmp_path / "release")
    (folder / "Makefile").write_text("all:\n")
    with pytest.raises(HostLacks, match="its Makefile sets no BR2_VERSION"):
        release.read(folder)


def test_a_release_that_was_not_tried_is_taken_with_a_warning(tmp_path: Path) -> None:
    folder = make_release(tmp_path / "release")
    assert release.read(folder).warning is None
    text = (folder / "Makefile").read_text().replace("2025.02.16", "2031.02-rc1")
    (folder / "Makefile").write_text(text)
    found = release.read(folder)
    assert found.warning is not None
    assert found.warning.startswith("warning: Buildroot 2031.02-rc1 was not tried; ")


def test_a_release_is_the_same_unpacked_and_checked_out(tmp_path: Path) -> None:
    first, second = make_release(tmp_path / "a"), make_release(tmp_path / "b")
    for leaving in ("output/x", ".git/HEAD", "dl/busybox/b.tar"):
        (second / leaving).parent.mkdir(parents=True)
        (second / leaving).touch()
    assert release.tree_sha256(first) == release.tree_sha256(second)
    (second / "support/new").symlink_to("a")
    assert release.tree_sha256(first) != release.tree_sha256(second)


def test_settings_of_a_defconfig_are_looked_for_as_they_are() -> None:
    defconfig = '# a comment\nBR2_A=y\n\n# BR2_B is not set\nBR2_C="$(X)/y"\n'
    assert release.settings(defconfig) == ["BR2_A=y", "# BR2_B is not set", 'BR2_C="$(X)/y"']
    assert release.not_taken(defconfig, 'BR2_A=y\n# BR2_B is not set\nBR2_C="$(X)/y"\n') == []
    assert release.not_taken(defconfig, '# BR2_A is not set\nBR2_C="$(X)/z"\n') == release.settings(defconfig)


def test_packages_are_listed_with_licences_but_not_what_is_none() -> None:
    listed = release.package_list(INFO)
    assert [package["name"] for package in listed] == ["linux", "lwip", "sss-core"]
    assert listed[0] == {"name": "linux", "version": "6.1.183", "licence": "GPL-2.0"}
    assert [package["name"] for package in release.package_list(INFO, ["sss-core"])] == ["lwip", "sss-core"]
    with pytest.raises(RecipeError, match="does not list busybox"):
        release.package_list(INFO, ["busybox"])


def test_facts_of_a_kernel_are_read_from_it() -> None:
    assert kernel_config.hz("CONFIG_HZ_100=y\n# CONFIG_HZ_250 is not set\nCONFIG_HZ=100\n") == 100
    assert release.kernel_release(b"\x7fELF...Linux version 6.1.183 (u@h) (gcc) #1\0") == "6.1.183"
    with pytest.raises(RecipeError, match="CONFIG_HZ"):
        kernel_config.hz("")
    with pytest.raises(RecipeError, match="banner"):
        release.kernel_release(b"Linux version %s")
