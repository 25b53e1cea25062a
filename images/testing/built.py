# SPDX-License-Identifier: Apache-2.0
"""The image that is tested, and the sources that the compiler read for it.

It is made by the recipe that was chosen last; SUNDIAL_RECIPE names another, SUNDIAL_BUILDROOT the release it needs.
"""

import os
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


COMPILER = """\
#!/bin/sh
exec gcc "$@" -MMD -MF "$(mktemp '{folder}/XXXXXX.d')"
"""


class Again(NamedTuple):
    """An image that was built once more, and every file of the checkout that the compiler read for it."""

    folder: Path
    sources: set[Path]


def build_again(name: str, source: Path, scratch: Path, *, environment: dict[str, str], **options: Any) -> Again:
    """Builds it into a folder in `scratch`; `source` is where its make runs. Buildroot has a compiler of its own, which
    does not note what it reads."""
    notes = scratch / "notes"
    notes.mkdir()
    compiler = notes / "compiler"
    compiler.write_text(COMPILER.format(folder=notes))
    compiler.chmod(0o755)
    noting = {} if recipe_under_test(name) == "buildroot" else {"CC": str(compiler)}
    folder = build(name, scratch / "somewhere" / "else", env=os.environ | environment | noting, **options)
    sources = {path for file in notes.glob("*.d") for path in _listed(file, source)}
    made = IMAGES / "out"
    return Again(folder, {path for path in sources if path.is_relative_to(CHECKOUT) and not path.is_relative_to(made)})


def _listed(dependencies: Path, folder: Path) -> Iterator[Path]:
    for word in dependencies.read_text().replace("\\\n", " ").split():
        if not word.endswith(":"):
            yield (folder / word).resolve()
