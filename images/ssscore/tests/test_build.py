# SPDX-License-Identifier: Apache-2.0
"""The recipe: reproducible, small, and what it reads is declared."""

import hashlib
import json
from pathlib import Path

import pytest

from sundial.machines.images import Images
from sundial.machines.recipes import Choice

from testing.built import CHECKOUT, Again, build_again, recipe_under_test


@pytest.mark.night
def test_the_manifest_describes_the_files(image: Path) -> None:
    manifest = json.loads((image / "manifest.json").read_text())
    for name in ("kernel", "initrd"):
        data = (image / name).read_bytes()
        assert manifest["sha256"][name] == hashlib.sha256(data).hexdigest()
        assert manifest["bytes"][name] == len(data)
    assert {"init", "portmapper", "echo-server", "echo-client", "mbcf-server", "mbcf-client"} <= set(manifest["tasks"])
    assert manifest["kernel_release"].startswith("sss-core ")
    assert manifest["packages"], "where lwIP comes from"


@pytest.mark.night
def test_the_kernel_is_small(image: Path) -> None:
    assert (image / "kernel").stat().st_size < 256 * 1024


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    scratch = tmp_path_factory.mktemp("again")
    return build_again("ssscore", CHECKOUT / "guest-apps/sss-core", scratch, environment={}, umask=0o077)


@pytest.mark.night
def test_another_build_gives_the_same_bytes(image: Path, again: Again) -> None:
    for name in ("kernel", "initrd", "manifest.json"):
        assert (again.folder / name).read_bytes() == (image / name).read_bytes(), name


@pytest.mark.night
@pytest.mark.skipif(
    recipe_under_test("ssscore") == "buildroot", reason="Buildroot's compiler does not note its sources"
)
def test_all_that_is_compiled_is_an_input_and_programs_of_the_other_guest_are_not(again: Again) -> None:
    inputs = set(Images(CHECKOUT, Choice()).input_files("ssscore", "distribution"))
    assert {path.name for path in again.sources} >= {"boot.S", "syscall.c", "echo-server.c", "pattern.h"}
    assert again.sources <= inputs
    others = ("guest-apps/runner", "guest-apps/raw", "guest-apps/sss-core/linux", "guest-apps/sss-core/tasks/linux")
    assert not any(path.is_relative_to(CHECKOUT / other) for path in inputs for other in others)
