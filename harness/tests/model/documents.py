# SPDX-License-Identifier: Apache-2.0
"""Small documents, and what is said of one that is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.errors import BadInput


def scenario(folder: Path, topology: str, *workloads: str) -> str:
    """The path of a scenario; its workloads, as fields of flow mappings, are in the lines from 4 on."""
    path = folder / "mine.yaml"
    path.write_text(
        f"description: A test\ntopology: {topology}\nworkloads:\n"
        + "".join(f"  - {{{workload}}}\n" for workload in workloads)
    )
    return str(path)


def refusal(load: Callable[[], object]) -> list[str]:
    """The lines that loading ends with, and exit status 2."""
    with pytest.raises(BadInput) as caught:
        load()
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()
