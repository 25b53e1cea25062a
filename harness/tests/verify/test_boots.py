# SPDX-License-Identifier: Apache-2.0
"""What run.json says that machines booted, against the topology, the images, domain.xml and the guests' own words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mutation.runs import recorded
from sundial.observe import open_run
from sundial.verify.documents import check_documents
from sundial.verify.plan import check_plan
from sundial.verify.samples import load_samples

Change = Callable[[dict[str, Any]], object]
NO_FRAMES = pl.DataFrame(
    schema={"row": pl.UInt32, "interface": pl.String, "direction": pl.UInt8, "fate": pl.String, "time_ns": pl.Int64}
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A stored run of two machines with files of their own; the client has words on its command line too."""
    return recorded("own-virtual", tmp_path)


def edit(run: Path, change: Change) -> None:
    document = json.loads((run / "run.json").read_text())
    change(document)
    (run / "run.json").write_text(json.dumps(document))


def fields(path: Path) -> list[str]:
    run = open_run(path)
    samples = load_samples(run)
    found = pl.concat([check_documents(run, samples, NO_FRAMES), check_plan(run, samples, {})])
    return [str(field) for field in found["field"]]


def client(document: dict[str, Any]) -> dict[str, Any]:
    boot: dict[str, Any] = document["boots"]["client"]
    return boot


def test_a_sound_run_has_no_findings(run: Path) -> None:
    assert fields(run) == []


def test_a_kernel_that_does_not_say_its_name_may_have_any(run: Path) -> None:
    edit(run, lambda document: client(document).update(kernel_release=None))
    assert fields(run) == []


@pytest.mark.parametrize(
    "junk", [5, "x", [], {"client": 5}, {"client": {"files": 5}}, {"client": {"files": {"/x": 5}}}]
)
def test_junk_is_a_finding_and_no_crash(run: Path, junk: object) -> None:
    edit(run, lambda document: document.update(boots=junk))
    assert [field for field in fields(run) if field.startswith(("run.json boots", "nodes/client/domain.xml boots"))]


def test_a_machine_with_its_image_alone_has_no_entry(tmp_path: Path) -> None:
    path = recorded("raw-virtual", tmp_path / "raw")
    boot = json.loads((recorded("own-virtual", tmp_path / "own") / "run.json").read_text())["boots"]["client"]
    edit(path, lambda document: document.update(boots={"client": boot}))
    assert "nodes/client/domain.xml boots" in fields(path)


@pytest.mark.parametrize("part", ["kernel", "initrd"])
def test_a_copy_is_called_by_its_digest_in_the_domain(run: Path, part: str) -> None:
    """As if the client had booted a kernel and an initrd of its own."""
    digest = "a" * 64

    def change(document: dict[str, Any]) -> None:
        document["topology"]["machines"]["client"][part] = "/home/me/mine"
        client(document)[part] = digest

    edit(run, change)
    domain = run / "nodes/client/domain.xml"
    assert fields(run) == [f"nodes/client/domain.xml boots {part}"]
    text, count = re.subn(rf"<{part}>[^<]*</{part}>", f"<{part}>/tmp/copies/{digest}</{part}>", domain.read_text())
    assert count == 1
    domain.write_text(text)
    assert fields(run) == []
