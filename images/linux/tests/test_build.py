# SPDX-License-Identifier: Apache-2.0
"""The recipe: the same inputs give the same bytes, and what goes wrong is said in one line."""

import hashlib
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest
from recipe import image as recipe_image
from recipe import modules, packages
from recipe.cpio import Archive
from recipe.errors import HostLacks, RecipeError

LINUX = Path(__file__).resolve().parent.parent


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_building_twice_gives_the_same_bytes(image: Path, tmp_path: Path) -> None:
    again = tmp_path / "somewhere" / "else"
    environment = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    subprocess.run([LINUX / "build", "--out", again], check=True, env=environment, timeout=600)
    for name in ("kernel", "initrd", "manifest.json"):
        assert digest(image / name) == digest(again / name), name
    assert sorted(path.name for path in again.iterdir()) == ["initrd", "kernel", "manifest.json"]


def test_the_manifest_describes_the_files(image: Path) -> None:
    manifest = json.loads((image / "manifest.json").read_text())
    for name in ("kernel", "initrd"):
        assert manifest["sha256"][name] == digest(image / name)
        assert manifest["bytes"][name] == (image / name).stat().st_size
    names = [package["name"] for package in manifest["packages"]]
    assert manifest["kernel_release"] in names[0]
    assert {"busybox-static", "rpcbind", "iperf3", "libtirpc3", "libc6"} <= set(names)
    assert "apt" not in names
    assert str(LINUX.parent.parent) not in (image / "manifest.json").read_text()


def test_no_path_of_the_host_is_in_the_image(image: Path) -> None:
    root = str(LINUX.parent.parent).encode()
    assert root not in (image / "initrd").read_bytes()


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


def test_a_damaged_package_is_fetched_again_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_missing_development_packages_are_named_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = [("/no/such/file", "libtirpc-dev"), ("/nor/this", "libjansson-dev")]
    monkeypatch.setattr(recipe_image, "DEVELOPMENT_FILES", missing)
    with pytest.raises(HostLacks, match="libtirpc-dev libjansson-dev") as raised:
        recipe_image.check_host()
    assert raised.value.exit_status == 3
