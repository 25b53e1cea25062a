# SPDX-License-Identifier: Apache-2.0
"""One version: that of the package; its other parts and the pages agree."""

from __future__ import annotations

import re

import pytest

from sundial import __version__
from sundial.model.catalog import ROOT

PLACES = {
    "harness/fabric/Cargo.toml": r'^version = "(.+)"$',
    "harness/fabric/Cargo.lock": r'^name = "sundial-fabric"\nversion = "(.+)"$',
    "harness/clock/Makefile": r"^VERSION := (.+)$",
    "CHANGELOG.md": r"^## (\d\S+)$",
}


@pytest.mark.parametrize(("path", "pattern"), PLACES.items())
def test_part_has_the_version_of_the_package(path: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == __version__
