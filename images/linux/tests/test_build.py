# SPDX-License-Identifier: Apache-2.0
"""The recipe: the same inputs give the same bytes, and everything that was compiled is in the image."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from linux import root
from sundial.machines.images import Images
from sundial.machines.recipes import Choice

from recipe import cpio, symbols
from recipe.cpio import Archive
from recipe.errors import RecipeError
from testing.built import CHECKOUT, Again, Built, build, build_again, recipe_under_test

CONFIG = CHECKOUT / "buildroot-configs/board/sundial/linux/linux.config"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    scratch = tmp_path_factory.mktemp("again")
    return build_again("linux", CHECKOUT / "guest-apps", scratch, environment={"TZ": "Asia/Tokyo", "LC_ALL": "C"})


@pytest.mark.night
def test_building_twice_gives_the_same_bytes(image: Path, again: Again) -> None:
    for name in ("kernel", "initrd", "manifest.json"):
        assert digest(image / name) == digest(again.folder / name), name
    manifest = json.loads((again.folder / "manifest.json").read_text())
    beside = {manifest["sbom"]} if "sbom" in manifest else set()
    beside |= {symbols.FILE} if "programs" in manifest else set()
    assert {path.name for path in again.folder.iterdir()} == {"initrd", "kernel", "manifest.json"} | beside


@pytest.mark.night
@pytest.mark.skipif(
    recipe_under_test("linux") != "tuned" or "COMPILE_AGAIN" not in os.environ,
    reason="COMPILE_AGAIN is not set, or the recipe is not tuned: no kernel was compiled a second time",
)
def test_compiling_the_kernel_again_gives_the_same_bytes(image: Path, tmp_path: Path) -> None:
    cache = tmp_path / "another" / "cache"
    cache.mkdir(parents=True)
    for package in (CHECKOUT / "images/out/cache").glob("*.deb"):
        (cache / package.name).symlink_to(package)
    build("linux", tmp_path / "again", "--cache", cache)
    for name in ("kernel", "initrd", "manifest.json"):
        assert digest(image / name) == digest(tmp_path / "again" / name), name


@pytest.mark.night
def test_the_manifest_describes_the_files(built: Built) -> None:
    image = built.folder
    manifest = json.loads((image / "manifest.json").read_text())
    for name in ("kernel", "initrd"):
        assert manifest["sha256"][name] == digest(image / name)
        assert manifest["bytes"][name] == (image / name).stat().st_size
    assert manifest["recipe"] == built.recipe
    assert str(CHECKOUT) not in (image / "manifest.json").read_text()


PACKAGED = pytest.mark.skipif(
    recipe_under_test("linux") not in ("distribution", "tuned"), reason="its root is not made of packages"
)


@pytest.mark.night
@PACKAGED
def test_the_manifest_lists_packages_and_the_kernel(built: Built) -> None:
    manifest = json.loads((built.folder / "manifest.json").read_text())
    names = [package["name"] for package in manifest["packages"]]
    assert {"busybox-static", "rpcbind", "iperf3", "libtirpc3", "libc6"} <= set(names)
    assert "apt" not in names
    if built.recipe == "tuned":
        assert manifest["kernel_release"].endswith("-sundial")
        assert manifest["kernel_source"]["package"].startswith("linux-source-")
        assert manifest["kernel_config_sha256"] == digest(CONFIG)
        assert f"CONFIG_HZ_{manifest['hz']}=y" in CONFIG.read_text().splitlines()
    else:
        assert manifest["kernel_release"] in names[0]
        assert manifest["hz"] == 250  # of the distribution's kernels for this architecture


@pytest.mark.night
@PACKAGED
def test_functions_are_found_by_programs_that_are_in_the_image(image: Path) -> None:
    manifest = json.loads((image / "manifest.json").read_text())
    document = json.loads((image / symbols.FILE).read_text())
    inside = {entry.path: entry.data for entry in cpio.read((image / "initrd").read_bytes())[0]}
    assert manifest["programs"]["apps"] == symbols.text_sha256(inside[f"{root.APPLICATIONS_FOLDER}/apps"])
    assert {name: table["text_sha256"] for name, table in document["programs"].items()} == manifest["programs"]
    functions = document["programs"]["apps"]["functions"]
    assert {"caller_call", "clnt_dg_call", "service_serve"} <= {name for *_, name in functions}
    assert [int(address, 16) for address, *_ in functions] == sorted(int(each[0], 16) for each in functions)
    assert document["applications"]["echo-client"] == "apps"


@pytest.mark.night
def test_no_path_of_the_host_is_in_the_image(image: Path) -> None:
    root = str(CHECKOUT).encode()
    assert root not in (image / "initrd").read_bytes()


@pytest.mark.night
@pytest.mark.skipif(recipe_under_test("linux") == "buildroot", reason="Buildroot's compiler does not note its sources")
def test_all_that_is_compiled_is_an_input_and_tasks_of_the_other_guest_are_not(again: Again) -> None:
    inputs = set(Images(CHECKOUT, Choice()).input_files("linux", "distribution"))
    assert {path.name for path in again.sources} >= {"apps.c", "echo_client.c", "dce_client.c", "client_machine.h"}
    assert again.sources <= inputs
    tasks = {path for path in inputs if path.parent == CHECKOUT / "guest-apps/sss-core/tasks"}
    assert tasks == {path for path in again.sources if path.parent == CHECKOUT / "guest-apps/sss-core/tasks"}


@pytest.mark.night
def test_every_application_that_make_leaves_is_in_the_image(tmp_path: Path) -> None:
    for program in ("apps", "more-apps"):
        (tmp_path / program).write_bytes(program.encode())
    for name, program in {"runner": "apps", "echo": "apps", "new": "more-apps"}.items():
        (tmp_path / name).symlink_to(program)
    base, extras = Archive(), Archive()
    root.add_applications(base, extras, tmp_path)
    assert [path for path in base.paths() if "apps" in path or path.endswith(("runner", "echo"))] == [
        "bin/runner",
        "usr/lib/sundial/apps",
        "usr/lib/sundial/echo",
    ]
    assert extras.paths()[-2:] == ["usr/lib/sundial/more-apps", "usr/lib/sundial/new"]
    (tmp_path / "runner").unlink()
    with pytest.raises(RecipeError, match="make left no link runner"):
        root.add_applications(Archive(), Archive(), tmp_path)
