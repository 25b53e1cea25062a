# SPDX-License-Identifier: Apache-2.0
"""The same kinds for real: the toys' programs in an image of their own, its guests on a wire of the added model."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kinds.tree import CHECKOUT, Tree, copy_checkout

pytestmark = [pytest.mark.vm, pytest.mark.night, pytest.mark.timeout(900)]

FABRIC = Path("harness/fabric")
REGISTRATION = {
    "pub mod switch;\n": "pub mod switch;\npub mod tube;\n",
    "kinds![link, hub, switch, atm, vmmc]": "kinds![link, hub, switch, atm, vmmc, tube]",
}
"""Rust cannot find folders: the lines of segments/src/lib.rs that CONTRIBUTING.md names."""


def copy_fabric(tree: Tree) -> None:
    """The fabric with what cargo has built of it, so that only what depends on the kinds is compiled again."""
    ignored = shutil.ignore_patterns("incremental", "examples", "debug")
    shutil.copytree(CHECKOUT / FABRIC, tree.root / FABRIC, ignore=ignored, dirs_exist_ok=True, symlinks=True)
    library = tree.root / FABRIC / "segments" / "src" / "lib.rs"
    text = library.read_text()
    for before, after in REGISTRATION.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    library.write_text(text)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy whose image and fabric are compiled, both at once."""
    if shutil.which("qemu-system-x86_64") is None or not (CHECKOUT / "images" / "out" / "cache").is_dir():
        pytest.skip("QEMU is not installed, or no image was built here")
    tree = copy_checkout(tmp_path_factory.mktemp("real") / "sundial")
    copy_fabric(tree)
    cargo = [
        "cargo",
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--manifest-path",
        str(tree.root / FABRIC / "Cargo.toml"),
    ]
    with subprocess.Popen(cargo, stderr=subprocess.PIPE, text=True) as compiling:
        image = tree.sundial("images", "build", "toy")
        _, words = compiling.communicate()
    assert compiling.returncode == 0, words
    assert image.returncode == 0, image.stderr
    (tree.root / "captures").mkdir()
    return tree


def answer(tree: Tree, *words: str) -> dict[str, Any]:
    """What a command answers that succeeds."""
    done = tree.sundial(*words, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_toys_travel_through_a_tube_and_come_back(real: Tree) -> None:
    out = real.root / "captures" / "toys"
    result = answer(real, "run", "toy", "--out", str(out))
    assert (result["verdict"], result["calls"], result["mismatches"]) == ("pass", 16, 0)
    verified = json.loads((out / "verify.json").read_text())
    # A toy of 8 bytes is one packet, one of 2000 bytes two; eight of each go there and come back.
    assert verified["packets"] == 2 * 8 * (1 + 2)
    assert verified["frames"] >= 2 * verified["packets"]
    counters = json.loads((out / "wire" / "counters.json").read_text())["segments"]["lan"]
    assert counters["kind"] == "tube"
    assert counters["ports"]["client:eth0"]["tx_frames"] >= 8 * (1 + 2)
    assert "a tube" in (out / "report.html").read_text()


def test_their_paper_is_reproduced(real: Tree) -> None:
    out = real.root / "captures" / "paper"
    result = answer(real, "reproduce", "toy", "--quick", "--out", str(out))
    assert (result["runs"], result["failed"], result["mismatched"]) == (1, [], [])
    assert len((out / "toys.csv").read_text().splitlines()) == 3
