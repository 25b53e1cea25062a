# SPDX-License-Identifier: Apache-2.0
import io
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.errors import BadInput, HostLacks, RunFailed
from sundial.machines.images import Images, PinnedImages, pin

RECIPE = """#!/bin/sh
set -eu
cd "$(dirname "$0")"
[ "$1" = --out ]
out=$2 recipe=own
[ "${3-}" != --recipe ] || recipe=$4
mkdir -p $out
printf kernel > $out/kernel
cat recipe-input ../../guest-apps/app.c > $out/initrd
sum() { sha256sum $out/$1 | cut -d' ' -f1; }
printf '{"version": 1, "cmdline": "quiet", "packages": {"linux": "6.1"}, "sha256": {"kernel": "%s", "initrd": "%s"},
    "recipe": "%s"}' "$(sum kernel)" "$(sum initrd)" $recipe > $out/manifest.json
echo "$@" >> ../runs
"""

DECLARATION = """description = "tiny"
platform = "tiny-os"
roles = ["host"]
memory = "8 MiB"
memory_least = "4 MiB"
memory_most = "64 MiB"
start = "10 ms"
translations_mib = 4
greeting = ["true"]
binder = "portmapper"
inputs = ["guest-apps", "!guest-apps/other", "guest-apps/other/shared.[ch]", "notes.txt"]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    recipe = tmp_path / "images" / "tiny" / "build"
    recipe.parent.mkdir(parents=True)
    recipe.write_text(RECIPE)
    recipe.chmod(0o755)
    (recipe.parent / "recipe-input").write_text("input\n")
    (recipe.parent / "image.toml").write_text(DECLARATION)
    (tmp_path / "notes.txt").write_text("x\n")
    (tmp_path / "guest-apps").mkdir()
    (tmp_path / "guest-apps" / "app.c").write_text("int main(void);\n")
    (tmp_path / "guest-apps" / "other").mkdir()
    (tmp_path / "guest-apps" / "other" / "shared.h").write_text("int shared;\n")
    return tmp_path


def runs(checkout: Path) -> int:
    return len((checkout / "images" / "runs").read_text().splitlines())


def test_built_once_and_again_when_an_input_changes(checkout: Path) -> None:
    images, said = Images(checkout), list[str]()
    assert [(status.name, status.state) for status in images.list()] == [("tiny", "missing")]
    first = images.ensure("tiny", said.append)
    assert images.ensure("tiny", said.append) == first
    assert runs(checkout) == 1
    assert first.manifest["packages"] == {"linux": "6.1"}
    (checkout / "guest-apps" / "app.c").write_text("int main(void) { return 0; }\n")
    assert images.list()[0].state == "stale"
    second = images.ensure("tiny", said.append)
    assert second.initrd_sha256 != first.initrd_sha256
    assert second.kernel_sha256 == first.kernel_sha256
    assert images.list()[0].state == "built"
    assert said == ["building image tiny"] * 2


def test_recipe_runs_by_the_python_of_the_harness(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent), prepend=":")
    recipe = checkout / "images" / "tiny" / "build"
    recipe.write_text(recipe.read_text() + "python3 -c 'import sys; print(sys.prefix)'\n")
    said = list[str]()
    Images(checkout).ensure("tiny", said.append)
    assert said[-1] == sys.prefix


def test_a_lost_result_is_missing(checkout: Path) -> None:
    images = Images(checkout)
    image = images.ensure("tiny", lambda line: None)
    image.initrd.unlink()
    assert images.list()[0].state == "missing"


def test_tests_and_build_leavings_are_no_inputs(checkout: Path) -> None:
    images = Images(checkout)
    images.ensure("tiny", lambda line: None)
    for name in ("tests/test.c", "build/app.o", "app.o", ".hypothesis/constants/1", ".pytest_cache/v/lastfailed"):
        path = checkout / "guest-apps" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert images.list()[0].state == "built"


@pytest.mark.parametrize(
    ("path", "state"),
    [
        ("other/kernel.c", "built"),
        ("guest-apps/other/task.c", "built"),
        ("guest-apps/README.md", "built"),
        ("images/tiny/image.toml", "built"),
        ("guest-apps/other/shared.c", "stale"),
        ("guest-apps/new/app.c", "stale"),
        ("images/tiny/etc/hosts", "stale"),
        ("notes.txt", "stale"),
    ],
)
def test_only_declared_inputs_make_an_image_stale(checkout: Path, path: str, state: str) -> None:
    images = Images(checkout)
    images.ensure("tiny", lambda line: None)
    (checkout / path).parent.mkdir(exist_ok=True)
    (checkout / path).write_text(f"{DECLARATION}# changed\n")
    assert images.list()[0].state == state


def test_other_libraries_than_it_was_built_with_make_an_image_stale(checkout: Path) -> None:
    declaration = checkout / "images" / "tiny" / "image.toml"
    libraries = '\n[python]\npython = "3.11.2"\nrpyc = "5.3.0"\n'
    declaration.write_text(DECLARATION + libraries)
    Images(checkout).ensure("tiny", lambda line: None)
    declaration.write_text(DECLARATION.replace("tiny", "less") + libraries)
    assert Images(checkout).list()[0].state == "built"
    declaration.write_text(DECLARATION + libraries.replace("5.3.0", "6.0.2"))
    assert Images(checkout).list()[0].state == "stale"


def test_a_declared_input_that_is_not_there_is_named(checkout: Path) -> None:
    (checkout / "notes.txt").unlink()
    with pytest.raises(HostLacks, match=r"images/tiny/image.toml: inputs: there is no notes.txt"):
        Images(checkout).ensure("tiny", lambda line: None)


def test_a_declaration_without_a_build_is_listed_and_not_built(checkout: Path) -> None:
    (checkout / "images" / "tiny" / "build").unlink()
    assert [(image.state, image.description) for image in Images(checkout).list()] == [("missing", "tiny")]
    with pytest.raises(HostLacks, match="images/tiny/build is not an executable file"):
        Images(checkout).ensure("tiny", lambda line: None)


def test_an_unknown_image_names_the_known_ones(checkout: Path) -> None:
    with pytest.raises(BadInput, match="no image huge; allowed: tiny"):
        Images(checkout).build("huge", lambda line: None)


def test_a_recipe_that_fails_says_its_last_line(checkout: Path) -> None:
    (checkout / "images" / "tiny" / "build").write_text("#!/bin/sh\necho no compiler here >&2\nexit 1\n")
    with pytest.raises(HostLacks, match="no compiler here"):
        Images(checkout).ensure("tiny", lambda line: None)


def flip(out: Path) -> None:
    content = bytearray((out / "initrd").read_bytes())
    content[0] ^= 1
    (out / "initrd").write_bytes(content)


def cut(out: Path) -> None:
    (out / "kernel").write_bytes(b"")


def foreign(out: Path) -> None:
    (out / "manifest.json").write_text("[]")


def deep(out: Path) -> None:
    (out / "manifest.json").write_text("[" * 100_000)


@pytest.mark.parametrize("harm", [flip, cut, foreign, deep])
def test_what_is_damaged_is_noticed_and_built_again(checkout: Path, harm: Callable[[Path], None]) -> None:
    images, said = Images(checkout), list[str]()
    first = images.ensure("tiny", said.append)
    harm(checkout / "images" / "out" / "own" / "tiny")
    assert images.list()[0].state == "damaged"
    assert images.ensure("tiny", said.append) == first
    assert said[1].startswith("image tiny is damaged: ")
    assert runs(checkout) == 2


def test_a_pinned_image_stays_as_it_was(checkout: Path, tmp_path: Path) -> None:
    images, folder = Images(checkout), tmp_path / "pinned"
    pinned = pin(images, folder, lambda line: None)
    (checkout / "guest-apps" / "app.c").write_text("int main(void) { return 0; }\n")
    assert images.ensure("tiny", lambda line: None).initrd_sha256 != pinned["tiny"]["initrd"]
    assert PinnedImages(folder).ensure("tiny", lambda line: None).initrd_sha256 == pinned["tiny"]["initrd"]
    flip(folder / "tiny")
    with pytest.raises(RunFailed, match="was changed: its initrd has another sha256"):
        PinnedImages(folder).ensure("tiny", lambda line: None)


def test_what_is_built_on_demand_is_built_by_its_name_and_pinned_where_it_is_built(
    checkout: Path, tmp_path: Path
) -> None:
    other = checkout / "images" / "rare"
    shutil.copytree(checkout / "images" / "tiny", other)
    (other / "image.toml").write_text(f"on_demand = true\n{DECLARATION}")
    images = Images(checkout)
    assert images.names() == ["rare", "tiny"]
    assert images.usual() == ["tiny"]
    assert pin(images, tmp_path / "before", lambda line: None).keys() == {"tiny"}
    with pytest.raises(RunFailed, match="image rare was not built when all images were copied"):
        PinnedImages(tmp_path / "before").ensure("rare", lambda line: None)
    assert pin(images, tmp_path / "before", lambda line: None, ["rare"]).keys() == {"rare"}
    assert PinnedImages(tmp_path / "before").ensure("rare", lambda line: None).recipe == "own"
    images.ensure("rare", lambda line: None)
    assert pin(images, tmp_path / "after", lambda line: None).keys() == {"rare", "tiny"}


def nothing(line: str) -> None:
    pass


class TestState:
    """A folder apart from the checkout."""

    def test_builds_go_there(self, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        state = tmp_path_factory.mktemp("state")
        image = Images(checkout, state=state).ensure("tiny", nothing)
        assert image.kernel == state / "images" / "out" / "own" / "tiny" / "kernel"
        assert not (checkout / "images" / "out").exists()

    def test_an_image_of_the_checkout_serves(self, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        shipped = Images(checkout).ensure("tiny", nothing)
        assert Images(checkout, state=tmp_path_factory.mktemp("state")).ensure("tiny", nothing) == shipped
        assert runs(checkout) == 1

    def test_a_newer_one_goes_before_it(self, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        images = Images(checkout, state=tmp_path_factory.mktemp("state"))
        shipped = Images(checkout).ensure("tiny", nothing)
        (checkout / "notes.txt").write_text("changed\n")
        newer = images.ensure("tiny", nothing)
        assert newer.kernel != shipped.kernel
        assert images.ensure("tiny", nothing) == newer


@pytest.fixture
def archive(checkout: Path) -> Path:
    """What a release has of the image, which is not built here."""
    Images(checkout).ensure("tiny", nothing)
    out = checkout / "images" / "out"
    path = checkout / "images.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("kernel", "initrd", "manifest.json", "inputs.sha256"):
            tar.add(out / "own" / "tiny" / name, f"own/tiny/{name}")
    shutil.rmtree(out)
    return path


class TestFetch:
    def test_a_fetched_image_is_not_built(self, checkout: Path, archive: Path) -> None:
        images = Images(checkout)
        (fetched,) = images.fetch(archive)
        assert images.ensure("tiny", nothing) == fetched
        assert runs(checkout) == 1

    def test_an_image_of_other_sources_is_refused(self, checkout: Path, archive: Path) -> None:
        (checkout / "notes.txt").write_text("changed\n")
        with pytest.raises(BadInput, match=r"images.tar: image tiny \(own\) was built from other sources"):
            Images(checkout).fetch(archive)
        assert Images(checkout).list()[0].state == "missing"

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("own/tiny/kernel", b"another", "image tiny .own. is damaged: its kernel has another sha256"),
            ("own/other/kernel", b"", "has an image other of recipe own, which is not declared"),
            ("own/tiny/notes", b"", "has 'own/tiny/notes', which is not a file of an image"),
            ("../../kernel", b"", "has '../../kernel', which is not a file of an image"),
            ("/tiny/kernel", b"", "has '/tiny/kernel', which is not a file of an image"),
        ],
    )
    def test_an_archive_with_another_file_is_refused(
        self, checkout: Path, archive: Path, name: str, content: bytes, message: str
    ) -> None:
        with tarfile.open(archive, "a") as tar:
            added = tarfile.TarInfo(name)
            added.size = len(content)
            tar.addfile(added, io.BytesIO(content))
        with pytest.raises(BadInput, match=message):
            Images(checkout).fetch(archive)
        assert Images(checkout).list()[0].state == "missing"

    @pytest.mark.parametrize(("content", "message"), [(b"", "is not an archive"), (b"\x1f\x8b12", "is not an archive")])
    def test_what_is_not_an_archive_is_refused(self, checkout: Path, content: bytes, message: str) -> None:
        (checkout / "images.tar").write_bytes(content)
        with pytest.raises(BadInput, match=message):
            Images(checkout).fetch(checkout / "images.tar")

    def test_a_missing_archive_is_refused(self, checkout: Path) -> None:
        with pytest.raises(BadInput, match="cannot be read: No such file or directory"):
            Images(checkout).fetch(checkout / "images.tar")
