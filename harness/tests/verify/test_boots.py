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
OTHER = "0" * 64


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


def motd(document: dict[str, Any]) -> dict[str, Any]:
    laid: dict[str, Any] = client(document)["files"]["/etc/motd"]
    return laid


def test_a_sound_run_has_no_findings(run: Path) -> None:
    assert fields(run) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda run: run.pop("boots"), "boots"),
        (lambda run: run["boots"].pop("client"), "boots"),
        (lambda run: client(run).update(kernel=OTHER), "boots kernel"),
        (lambda run: run["images"]["linux"]["sha256"].update(kernel=OTHER), "boots kernel"),
        (lambda run: client(run).update(initrd=OTHER), "boots initrd"),
        (lambda run: client(run).update(cmdline="quiet"), "boots cmdline"),
        (lambda run: client(run)["files"].pop("/etc/motd"), "boots files"),
        (lambda run: client(run)["files"].update({"/x": motd(run)}), "boots files"),
        (lambda run: motd(run).update(mode="0755"), "boots /etc/motd mode"),
        (lambda run: motd(run).update(sha256=OTHER), "boots /etc/motd sha256"),
        (lambda run: motd(run).update(bytes=1), "boots /etc/motd bytes"),
    ],
)
def test_what_is_changed_or_missing_is_noticed(run: Path, change: Change, field: str) -> None:
    edit(run, change)
    assert f"nodes/client/domain.xml {field}" in fields(run)


@pytest.mark.parametrize("words", ["loglevel=5", None])
def test_the_command_line_has_the_words_of_the_topology(run: Path, words: str | None) -> None:
    def change(document: dict[str, Any]) -> None:
        machine = document["topology"]["machines"]["client"]
        machine.update(cmdline=words) if words else machine.pop("cmdline")

    edit(run, change)
    assert fields(run) == ["nodes/server/domain.xml cmdline"]


@pytest.mark.parametrize("value", ["6.0", "", 5])
def test_a_kernel_calls_itself_what_its_file_says(run: Path, value: object) -> None:
    edit(run, lambda document: client(document).update(kernel_release=value))
    expected = {"6.0": "nodes/client hello kernel", 5: "run.json boots.client.kernel_release"}
    assert value not in expected or expected[value] in fields(run)  # type: ignore[index]


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
