# SPDX-License-Identifier: Apache-2.0
"""With SUNDIAL_BUILDROOT=DIR (make test-images BUILDROOT=DIR): the release takes the defconfigs and the fragment, line by line."""

import os
import subprocess
from pathlib import Path

import pytest
import symbols
from recipe import release


@pytest.fixture(scope="module")
def folder() -> Path:
    """The release."""
    if not os.environ.get("SUNDIAL_BUILDROOT"):
        pytest.skip("BUILDROOT is not set: no release to check the defconfigs against")
    return Path(os.environ["SUNDIAL_BUILDROOT"])


@pytest.mark.parametrize("defconfig", symbols.configurations(), ids=lambda path: path.name)
def test_a_release_takes_every_line_and_writes_the_same_ones(folder: Path, tmp_path: Path, defconfig: Path) -> None:
    before, asked = release.state(folder), tmp_path / "asked"
    asked.write_text(symbols.merged(defconfig))
    command = ["make", "-s", "-C", str(folder), f"O={tmp_path}", f"BR2_EXTERNAL={symbols.TREE}"]
    for target in (f"BR2_DEFCONFIG={asked} defconfig", f"BR2_DEFCONFIG={tmp_path}/saved savedefconfig"):
        subprocess.run([*command, *target.split()], check=True, capture_output=True)
    assert release.not_taken(asked.read_text(), (tmp_path / ".config").read_text()) == []
    saved = (tmp_path / "saved").read_text()
    if defconfig.suffix == ".fragment":  # whose lines belong elsewhere in a whole configuration
        assert sorted(saved.splitlines()) == sorted(asked.read_text().splitlines())
    else:
        assert saved == asked.read_text()
    assert release.written(before, release.state(folder)) == []


def test_a_release_has_the_symbols_of_the_table(folder: Path) -> None:
    known = symbols.types(folder)
    rows = [line.split("\t") for line in symbols.TABLE.read_text().splitlines()[1:]]
    assert {symbol: known.get(symbol) for symbol, _, _ in rows} == {symbol: kind for symbol, kind, _ in rows}
