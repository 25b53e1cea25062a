# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests."""

from __future__ import annotations

import pytest

from sundial.machines.recipes import RECIPE, RELEASE


@pytest.fixture(autouse=True)
def _no_recipe_of_the_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test KERNEL=tuned` means the machines that are booted; made-up images have made-up recipes."""
    if request.node.get_closest_marker("vm") is None:
        for name in (RECIPE, RELEASE):
            monkeypatch.delenv(name, raising=False)
