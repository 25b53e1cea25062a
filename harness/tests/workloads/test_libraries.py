# SPDX-License-Identifier: Apache-2.0
"""Versions of libraries are those of the run, not those that images have today."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sundial.model.images import IMAGES
from sundial.workloads.libraries import libraries_of


def run(images: object) -> Any:
    return SimpleNamespace(document={"images": images})


def test_what_a_run_has_recorded_is_not_looked_up() -> None:
    recorded = {"python": {"grpc": "1.20.0", "rpyc": "3.0.0"}}
    assert libraries_of(run({"linux-python": {"libraries": recorded}}), "linux-python") == recorded
    assert libraries_of(run({"gone": {"libraries": recorded}}), "gone") == recorded


def test_what_it_has_not_is_that_of_the_declaration() -> None:
    assert libraries_of(run({"linux-python": {}}), "linux-python")["python"] == IMAGES["linux-python"].python
    assert libraries_of(run(None), "linux-python").keys() == {"python", "cpp"}
    assert libraries_of(run({}), "linux") == {}
    assert libraries_of(run({}), "gone") == {}
