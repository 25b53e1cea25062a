# SPDX-License-Identifier: Apache-2.0
"""Our packages really build: by a stand-in of Buildroot's infrastructure, to the bytes of the images' own builds."""

import subprocess
from pathlib import Path

import pytest
import symbols
from recipe import sources
from recipe.image import CHECKOUT, run_make

from sundial.machines.images import Images
from sundial.machines.recipes import Choice

LWIP_PACKAGE = "lwip"
STAND_IN = Path(__file__).with_name("stand-in.mk")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Buildroot would make, below a folder: images, target, and lwip, its sources."""
    out = tmp_path_factory.mktemp("out")
    cache = CHECKOUT / "images/out/cache"
    cache.mkdir(parents=True, exist_ok=True)
    sources.unpack(sources.download(LWIP_PACKAGE, cache), out / "lwip")
    (out / "staging/usr/include").mkdir(parents=True)
    (out / "staging/usr/include/tirpc").symlink_to("/usr/include/tirpc")
    packages = ["lwip", "sss-core", "sundial-guest-apps"]
    command = ["make", "-s", "-f", STAND_IN, f"TREE={symbols.TREE}", f"OUT={out}", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return out


@pytest.mark.night
def test_sss_core_is_the_same_as_the_distribution_recipe_makes_it(made: Path) -> None:
    image = Images(CHECKOUT, Choice()).ensure("ssscore", lambda line: None)
    for name in ("kernel", "initrd"):
        assert (made / "images/ssscore" / name).read_bytes() == (image.kernel.parent / name).read_bytes(), name


@pytest.mark.night
def test_the_applications_are_the_same_with_a_link_for_each(made: Path, tmp_path: Path) -> None:
    run_make(CHECKOUT / "guest-apps", OUT=tmp_path)
    folder = made / "target/usr/lib/sundial"
    expected = {path.name: path.readlink().name for path in tmp_path.iterdir() if path.is_symlink()}
    assert {path.name: path.readlink().name for path in folder.iterdir() if path.is_symlink()} == expected
    assert (made / "target/bin/runner").resolve() == folder / expected["runner"]
    for program in set(expected.values()):
        assert (folder / program).read_bytes() == (tmp_path / program).read_bytes()


@pytest.mark.night
def test_licences_come_with_the_sources(made: Path) -> None:
    licence = (CHECKOUT / "LICENSE").read_bytes()
    assert {name: (made / name / "LICENSE").read_bytes() == licence for name in ("sss-core", "sundial-guest-apps")} == {
        "sss-core": True,
        "sundial-guest-apps": True,
    }
    assert not (made / "sss-core/sss-core/build").exists(), "objects of the host are not copied"
