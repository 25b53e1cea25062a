# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from sundial.machines.recipes import RECIPE, RELEASE
from tests.warm_tshark.client import warm

# The number of cases is the tier's (Makefile: PROPERTY_CASES); seconds of the host are not judged. The gate repeats its
# cases: an unrelated change must not turn it red. The night draws new ones.
CASES = int(os.environ.get("PROPERTY_CASES", "200"))
settings.register_profile("tier", max_examples=CASES, deadline=None, derandomize=not os.environ.get("NIGHT"))
settings.load_profile("tier")


class ByFile(LoadFileScheduling):
    """A worker takes a whole file, whose tests may share machines; one by one the tests of a file marked `spread`."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return nodeid if _is_spread(file) else file


@cache
def _is_spread(file: str) -> bool:
    return "pytest.mark.spread" in (Path(__file__).parents[1] / file).read_text()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


@pytest.fixture(autouse=True)
def _no_recipe_of_the_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test KERNEL=tuned` means the machines that are booted; made-up images have made-up recipes."""
    if request.node.get_closest_marker("vm") is None:
        for name in (RECIPE, RELEASE):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def _one_tshark_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Most tests of verification give tshark a few frames, and it takes longer to begin than to dissect them."""
    with warm(tmp_path_factory.mktemp("warm_tshark")):
        yield
