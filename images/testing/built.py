# SPDX-License-Identifier: Apache-2.0
"""The image that is tested, and the sources that the compiler read for it.

It is made by the recipe that was chosen last; SUNDIAL_RECIPE names another, SUNDIAL_BUILDROOT the release it needs.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sundial.errors import HostLacks
from sundial.machines.images import Images
from sundial.machines.recipes import chosen

IMAGES = Path(__file__).resolve().parents[1]
CHECKOUT = IMAGES.parent


class Built(NamedTuple):
    """An image and the folder that holds its kernel, initrd and manifest."""

    name: str
    folder: Path
    recipe: str


def recipe_under_test(name: str) -> str:
    """What the image is made by for these tests."""
    return Images(CHECKOUT).recipe(name)


def current(name: str) -> Built:
    """The image of this checkout, built first where it is not current; skips the test where the host lacks something."""
    try:
        image = Images(CHECKOUT).ensure(name, lambda line: None)
    except HostLacks as lack:
        pytest.skip(str(lack))
    return Built(name, image.kernel.parent, image.recipe)


def build(name: str, out: Path, *words: str | Path, **options: Any) -> Path:
    """Runs images/NAME/build once more, into another folder; skips the test where the host lacks something."""
    command = [IMAGES / name / "build", "--out", out, "--recipe", recipe_under_test(name), *words]
    if (release := chosen(CHECKOUT).release) is not None:
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
