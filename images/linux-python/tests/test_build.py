# SPDX-License-Identifier: Apache-2.0
"""The build of images with Python: the same bytes from the same inputs, what is inside, and what is not."""

import json
import tomllib
from pathlib import Path

import pytest
from testing.built import CHECKOUT, build_again

from recipe import cpio, cpp, lz4, python, wheels
from recipe.elf import Elf
from recipe.errors import RecipeError
from recipe.image import Contents, Workspace


@pytest.fixture(scope="module")
def inside(image: Path) -> dict[str, cpio.Entry]:
    """What the archive with Python holds, by path."""
    data = (image / "initrd").read_bytes()
    _, end = cpio.read(data)
    end += -end % 512
    outside = {entry.path: entry for entry in cpio.read(data, end)[0]}
    parts = [outside[path].data for path in sorted(outside) if path.endswith(".cpio.lz4")]
    assert [python.ARCHIVES.format(number) in outside for number in range(len(parts))] == [True] * len(parts)
    return {entry.path: entry for part in parts for entry in cpio.read(lz4.decompress(part))[0]}


@pytest.mark.night
def test_building_twice_gives_the_same_bytes(image: Path, tmp_path: Path) -> None:
    environment = {
        "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7", "PYTHONOPTIMIZE": "2", "VERSION": "1.2.3"
    }  # fmt: skip
    again = build_again(image.name, CHECKOUT / "guest-apps", tmp_path, environment=environment)
    for name in ("kernel", "initrd", "manifest.json"):
        assert (image / name).read_bytes() == (again.folder / name).read_bytes(), name


def test_a_library_that_no_recipe_knows_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "image.toml").write_text('[python]\npython = "3.11.2"\nrequests = "2"\n')
    monkeypatch.setattr(python, "IMAGES", tmp_path)
    workspace = Workspace(tmp_path / "scratch", tmp_path / "cache")
    with pytest.raises(RecipeError, match=r"images/mine/image.toml: python.requests: allowed: python, grpc, "):
        python.over(Contents(b"", b"", "", "", []), workspace, "mine")


@pytest.mark.night
def test_the_manifest_says_which_python_is_inside(image: Path) -> None:
    manifest = json.loads((image / "manifest.json").read_text())
    declared = tomllib.loads((CHECKOUT / "images" / image.name / "image.toml").read_text())
    assert manifest["python"] == declared["python"]
    assert manifest.get("cpp") == declared.get("cpp")
    assert manifest["cmdline"].endswith(" norandmaps")
    assert {"python3-grpcio", "python3-rpyc", "libprotobuf32"} <= {package["name"] for package in manifest["packages"]}


@pytest.mark.night
def test_everything_is_compiled_and_nothing_names_the_host(inside: dict[str, cpio.Entry]) -> None:
    files = {path: entry.data for path, entry in inside.items()}
    assert not [path for path in files if path.endswith(".py")]
    modules = [data for path, data in files.items() if path.endswith(".pyc")]
    assert len(modules) > 500
    # PEP 552: a pyc with a hash that is not checked, and so with no date.
    assert {data[4:8] for data in modules} == {b"\1\0\0\0"}
    assert not [path for path, data in files.items() if str(CHECKOUT).encode() in data]
    assert not [path for path in files if "/test/" in path or "roots.pem" in path or "/tkinter/" in path]
    assert {"bin/python3.11", "usr/lib/sundial/python/sundial_guest/_clock.so"} <= files.keys()


@pytest.mark.night
def test_the_program_in_cpp_is_static_and_has_its_names(image: Path, inside: dict[str, cpio.Entry]) -> None:
    program = inside[f"{python.LINKS}/{cpp.PROGRAM}"]
    assert Elf(program.data).interpreter is None
    assert Elf(program.data).needed == []
    assert program.mode & 0o777 == 0o755
    data = (image / "initrd").read_bytes()
    _, end = cpio.read(data)
    outside = {entry.path: entry for entry in cpio.read(data, end + -end % 512)[0]}
    assert {outside[f"{python.LINKS}/{name}"].data for name in cpp.NAMES} == {cpp.PROGRAM.encode()}


HASH = f" --hash=sha256:{'0' * 64}"


@pytest.mark.parametrize(
    "line", ["rpyc", "rpyc==1", "rpyc==1 --hash=sha256:12", f"rpyc>=1{HASH}", f"rpyc==1{HASH}{HASH}"]
)
def test_a_wheel_without_its_hash_is_refused(tmp_path: Path, line: str) -> None:
    lock = tmp_path / wheels.LOCK
    lock.write_text(f"# a comment\n{line}\n")
    with pytest.raises(RecipeError, match="is not NAME==VERSION"):
        wheels.pinned(lock)


def test_a_lock_is_read_as_manifests_list_it(tmp_path: Path) -> None:
    lock = tmp_path / wheels.LOCK
    lock.write_text(f"--no-binary rpyc\nrpyc==4.0.1 \\\n    --hash=sha256:{'ab' * 32}\n")
    assert wheels.pinned(lock) == [{"name": "rpyc", "version": "4.0.1", "sha256": "ab" * 32}]
