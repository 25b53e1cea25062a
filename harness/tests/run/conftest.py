# SPDX-License-Identifier: Apache-2.0
"""The fixtures of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.machines.fake import FakeHypervisor
from sundial.machines.guard import Guard
from sundial.machines.hypervisor import Happening, LifecycleEvent
from sundial.machines.runtime import RuntimeFolder
from sundial.model.images import DECLARATION, FOLDER
from sundial.run.fabric import FakeFabric, OnHeard
from sundial.run.places import Places
from sundial.run.session import Session
from tests.run.live import end_what_was_started
from tests.run.stage import RECIPE, Stage


@pytest.fixture(autouse=True)
def _nothing_outlives_a_test() -> Iterator[None]:
    yield
    end_what_was_started()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    recipe = tmp_path / "images" / "linux" / "build"
    recipe.parent.mkdir(parents=True)
    recipe.write_text(RECIPE)
    recipe.chmod(0o755)
    declaration = (FOLDER / "linux" / DECLARATION).read_text()
    (recipe.parent / DECLARATION).write_text(declaration.partition("inputs =")[0])
    places = Places.beneath(tmp_path)
    for program in (places.plugin, places.confine, places.fabric):
        program.parent.mkdir(parents=True)
        program.write_text("program\n")
    shm = tmp_path / "shm"
    shm.mkdir()
    hypervisor = FakeHypervisor()
    runtime = RuntimeFolder()
    guard = Guard(runtime.token)
    guard.remove_on_death(runtime.path)

    def start_fabric(program: Path, config: Path, on_heard: OnHeard) -> FakeFabric:
        made.fabrics.append(FakeFabric(program, config, on_heard))
        return made.fabrics[-1]

    session = Session(
        places, runtime, guard, hypervisor, start_fabric=start_fabric, shm_folder=shm, runs_kvm=lambda *_: False
    )
    made = Stage(session, hypervisor, tmp_path / "captures")
    running: set[str] = set()

    def watch(event: LifecycleEvent) -> None:
        if event.happening is Happening.RESUMED:
            running.add(event.machine)
            if len(running) == 2:
                running.clear()
                made.act(made)

    hypervisor.listen(watch)
    yield made
    session.close()
