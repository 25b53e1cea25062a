# SPDX-License-Identifier: Apache-2.0
"""Fixtures for images/NAME/tests: the image NAME, built once."""

import shutil
from pathlib import Path

import pytest

from testing.built import Built, build, recipe_under_test


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("vm") and shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")


@pytest.fixture(scope="session")
def built_images() -> dict[str, Path]:
    """Images that this session has built, by name."""
    return {}


@pytest.fixture(scope="module")
def built(
    request: pytest.FixtureRequest, built_images: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Built:
    """The image whose folder the test is in."""
    name = request.path.parents[1].name
    if name not in built_images:
        built_images[name] = build(name, tmp_path_factory.mktemp(name))
    return Built(name, built_images[name], recipe_under_test(name))


@pytest.fixture(scope="module")
def image(built: Built) -> Path:
    """The folder of its kernel, initrd and manifest."""
    return built.folder


@pytest.fixture(scope="module")
def bootable(image: Path) -> Path:
    """The same, for tests that boot it."""
    return image
