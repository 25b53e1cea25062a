# SPDX-License-Identifier: Apache-2.0
"""An image built for tests, and the sources that the compiler read for it.

SUNDIAL_RECIPE names the recipe, for images that have it; SUNDIAL_BUILDROOT the release, where it needs one.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recipe.image import recipes

IMAGES = Path(__file__).resolve().parents[1]
CHECKOUT = IMAGES.parent


class Built(NamedTuple):
    """An image and the folder that holds its kernel, initrd and manifest."""

    name: str
    folder: Path
    recipe: str


def recipe_under_test(name: str) -> str:
    """What the image is made by for these tests."""
    known = recipes(name)
    asked = os.environ.get("SUNDIAL_RECIPE", known[0])
    return asked if asked in known else known[0]


def build(name: str, out: Path, **options: Any) -> Path:
    """Runs images/NAME/build; skips the test where the host lacks something."""
    command = [IMAGES / name / "build", "--out", out, "--recipe", recipe_under_test(name)]
    if release := os.environ.get("SUNDIAL_BUILDROOT"):
        command += ["--buildroot", release]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600, **options)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return out


def compiled_sources(folder: Path, out: Path, **variables: Path) -> set[Path]:
    """Every file of the checkout that the compiler reads for `make all` in a folder."""
    settings = [f"{name}={value}" for name, value in {"OUT": out, **variables}.items()]
    command = ["make", "-s", "-C", str(folder), "CC=gcc -MMD", *settings, "all"]
    subprocess.run(command, capture_output=True, check=True, timeout=600)
    sources = {path for file in out.rglob("*.d") for path in _listed(file, folder)}
    shutil.rmtree(out)
    return {path for path in sources if path.is_relative_to(CHECKOUT)}


def _listed(dependencies: Path, folder: Path) -> Iterator[Path]:
    for word in dependencies.read_text().replace("\\\n", " ").split():
        if not word.endswith(":"):
            yield (folder / word).resolve()
