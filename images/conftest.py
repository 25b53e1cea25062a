# SPDX-License-Identifier: Apache-2.0
"""Fixtures for images/NAME/tests: the image NAME of this checkout, built where it is not current."""

import shutil
from pathlib import Path

import pytest

from testing.built import Built, current


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("vm") and shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest) -> Built:
    """The image whose folder the test is in."""
    return current(request.path.parents[1].name)


@pytest.fixture(scope="module")
def image(built: Built) -> Path:
    """The folder of its kernel, initrd and manifest."""
    return built.folder


@pytest.fixture(scope="module")
def bootable(image: Path) -> Path:
    """The same, for tests that boot it."""
    return image
