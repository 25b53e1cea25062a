# SPDX-License-Identifier: Apache-2.0
"""Images that can be made by several recipes: which is chosen, and that each has its own result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sundial.errors import BadInput, HostLacks
from sundial.machines.images import Images
from sundial.machines.recipes import CHOICE, Choice, asked, choose, chosen
from tests.machines.test_images import DECLARATION, checkout, runs

__all__ = ["checkout"]

RECIPES = '\n[recipes]\nplain = []\nfast = ["fast.config"]\n'


@pytest.fixture
def several(checkout: Path) -> Path:
    """A checkout whose image has two recipes; only the second reads fast.config."""
    (checkout / "images/tiny/image.toml").write_text(DECLARATION + RECIPES)
    (checkout / "fast.config").write_text("x\n")
    return checkout


def silent(line: str) -> None:
    return


def written(folder: Path, text: str) -> Path:
    (folder / CHOICE).parent.mkdir(parents=True, exist_ok=True)
    (folder / CHOICE).write_text(text)
    return folder


RELEASE = Path("/somewhere/release")


@pytest.mark.parametrize(
    ("kept", "environment", "option", "expected"),
    [
        (None, {}, None, Choice()),
        ('{"recipe": "fast"}', {}, None, Choice("fast")),
        ('{"recipe": "fast"}', {}, "plain", Choice("plain")),
        ('{"recipe": "fast"}', {"SUNDIAL_RECIPE": "plain"}, None, Choice("plain")),
        ('{"recipe": "fast"}', {"SUNDIAL_RECIPE": ""}, None, Choice("fast")),
        (None, {"SUNDIAL_RECIPE": "plain"}, "fast", Choice("fast")),
        ('{"recipe": "br", "release": "/somewhere/release"}', {}, None, Choice("br", RELEASE)),
        ('{"recipe": "br", "release": "/somewhere/release"}', {}, "br", Choice("br", RELEASE)),
        ('{"recipe": "br", "release": "/somewhere/release"}', {}, "fast", Choice("fast")),
        ('{"recipe": "br", "release": "/somewhere/release"}', {"SUNDIAL_RECIPE": "br"}, None, Choice("br", RELEASE)),
        (None, {"SUNDIAL_RECIPE": "br", "SUNDIAL_BUILDROOT": "/somewhere/release"}, None, Choice("br", RELEASE)),
        (None, {"SUNDIAL_BUILDROOT": "/somewhere/release"}, None, Choice()),
    ],
)
def test_an_option_goes_before_the_environment_and_that_before_the_file(
    tmp_path: Path, kept: str | None, environment: Mapping[str, str], option: str | None, expected: Choice
) -> None:
    if kept is not None:
        written(tmp_path, kept)
    assert asked(tmp_path, option, environment) == expected


@pytest.mark.parametrize("choice", [Choice("fast"), Choice("br", RELEASE)])
def test_a_choice_is_kept(tmp_path: Path, choice: Choice) -> None:
    choose(tmp_path, choice)
    assert chosen(tmp_path, {}) == choice
    assert [path.name for path in (tmp_path / CHOICE).parent.iterdir()] == [CHOICE.name]


@pytest.mark.parametrize(
    "junk", ["", "[]", "null", "7", '{"recipe": 7}', "{}", '{"recipe": "fast", "release": 1}', "[" * 100_000, "\xff"]
)
def test_a_damaged_choice_is_one_line(tmp_path: Path, junk: str) -> None:
    written(tmp_path, "")
    (tmp_path / CHOICE).write_bytes(junk.encode("latin-1"))
    with pytest.raises(BadInput, match=r"out/recipe.json: is not a choice of a recipe; allowed: ") as raised:
        chosen(tmp_path, {})
    assert "\n" not in str(raised.value)
    assert asked(tmp_path, "fast", {}) == Choice("fast")


def test_results_of_recipes_lie_side_by_side(several: Path) -> None:
    plain, fast = (Images(several, Choice(recipe)).ensure("tiny", silent) for recipe in ("plain", "fast"))
    assert (plain.recipe, fast.recipe) == ("plain", "fast")
    assert plain.kernel == several / "images/out/plain/tiny/kernel"
    listed = [(image.recipe, image.chosen, image.state) for image in Images(several, Choice("fast")).list()]
    assert listed == [("plain", False, "built"), ("fast", True, "built")]
    again = Images(several, Choice()).ensure("tiny", silent)
    assert (again.recipe, runs(several)) == ("plain", 2)


def test_an_input_of_one_recipe_makes_no_other_stale(several: Path) -> None:
    for recipe in ("plain", "fast"):
        Images(several, Choice(recipe)).ensure("tiny", silent)
    (several / "fast.config").write_text("y\n")
    assert [image.state for image in Images(several, Choice()).list()] == ["built", "stale"]


def test_an_image_without_the_recipe_is_made_by_its_first(several: Path) -> None:
    other = several / "images/other"
    other.mkdir()
    (other / "image.toml").write_text(DECLARATION.replace('"tiny"', '"other"'))
    images = Images(several, Choice("fast"))
    assert (images.recipe("other"), images.recipe("tiny")) == ("own", "fast")


def test_a_recipe_that_no_image_has_names_those_there_are(several: Path) -> None:
    with pytest.raises(BadInput, match="no image has a recipe slow; allowed: plain, fast"):
        Images(several, Choice("slow"))


def test_a_result_of_another_recipe_is_damage(several: Path) -> None:
    made = Images(several, Choice("plain")).ensure("tiny", silent)
    fast = Images(several, Choice("fast")).ensure("tiny", silent).kernel.parent
    (fast / "manifest.json").write_bytes((made.kernel.parent / "manifest.json").read_bytes())
    said: list[str] = []
    Images(several, Choice("fast")).ensure("tiny", said.append)
    assert said[0].endswith("manifest.json says recipe plain, not fast")


@pytest.mark.parametrize("hz", ["0", "true", '"250"', "2.5"])
def test_ticks_a_second_are_a_number(several: Path, hz: str) -> None:
    build = several / "images/tiny/build"
    build.write_text(build.read_text().replace('"version": 1', f'"version": 1, "hz": {hz}'))
    with pytest.raises(HostLacks, match=r"hz in its manifest\.json is not a number of ticks a second"):
        Images(several, Choice()).build("tiny", silent)


@pytest.mark.parametrize("python", ["3", '["3.11"]', '{"rpyc": 5}'])
def test_versions_of_libraries_are_words(several: Path, python: str) -> None:
    build = several / "images/tiny/build"
    build.write_text(build.read_text().replace('"version": 1', f'"version": 1, "python": {python}'))
    with pytest.raises(HostLacks, match=r"python in its manifest\.json are no versions by name"):
        Images(several, Choice()).build("tiny", silent)


def test_a_release_that_is_gone_is_missed_only_where_something_is_to_be_built(several: Path) -> None:
    release = several / "release"
    release.mkdir()
    images = Images(several, Choice("fast", release))
    images.ensure("tiny", silent)
    assert (several / "images/runs").read_text().endswith(f"--recipe fast --buildroot {release}\n")
    release.rmdir()
    images.ensure("tiny", silent)
    (several / "fast.config").write_text("y\n")
    with pytest.raises(HostLacks, match=f"its Buildroot release {release} is not there"):
        images.ensure("tiny", silent)


def test_what_a_build_says_is_passed_on_as_it_comes(checkout: Path) -> None:
    said: list[str] = []
    build = checkout / "images/tiny/build"
    build.write_text(build.read_text() + "echo; echo half; echo whole\necho a warning >&2\n")
    Images(checkout, Choice()).build("tiny", said.append)
    assert said == ["building image tiny", "half", "whole"]
