# SPDX-License-Identifier: Apache-2.0
"""The table of recorded digests: its key, its entries, and what counts as a difference."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from sundial.model.catalog import names
from tests.run.digests import different, digests, find, key, load, put

RECORD: dict[str, Any] = {
    "versions": {"qemu": "7.2.22", "tshark": "4.0.17"},
    "images": {"linux": {"sha256": {"kernel": "11", "initrd": "22"}, "recipe": "distribution"}},
    "seed": 1,
}


def changed(**change: Any) -> dict[str, Any]:
    return {**RECORD, **change}


OTHER_IMAGES = (
    changed(images={"linux": {"sha256": {"kernel": "11", "initrd": "23"}}}),
    changed(images={**RECORD["images"], "ssscore": {"sha256": {"kernel": "1", "initrd": "2"}}}),
)


@pytest.mark.parametrize("actual", [{"wire/lan.pcapng": "aa"}, {"wire/lan.pcapng": "bb"}])
def test_entry_of_the_same_run_is_found(actual: dict[str, str]) -> None:
    assert find(put([], RECORD, {"wire/lan.pcapng": "aa"}), key(RECORD), actual) == (
        "recorded",
        {"wire/lan.pcapng": "aa"},
    )


@pytest.mark.parametrize("other", OTHER_IMAGES)
def test_bytes_of_another_image_are_as_good_as_an_entry(other: dict[str, Any]) -> None:
    entries = put([], RECORD, {"wire/lan.pcapng": "aa"})
    assert find(entries, key(other), {"wire/lan.pcapng": "aa"}) == (
        "recorded with other images",
        {"wire/lan.pcapng": "aa"},
    )
    assert find(entries, key(other), {"wire/lan.pcapng": "bb"}) == ("run twice", None)


@pytest.mark.parametrize("other", [changed(versions={"qemu": "10.0.2"}), changed(seed=2)])
def test_entry_of_another_qemu_or_seed_is_not_found(other: dict[str, Any]) -> None:
    entries = put([], RECORD, {"wire/lan.pcapng": "aa"})
    assert find(entries, key(other), {"wire/lan.pcapng": "aa"}) == ("run twice", None)


def test_new_entry_replaces_that_of_the_same_qemu_only() -> None:
    entries = put([], RECORD, {"a": "1"})
    entries = put(entries, changed(versions={"qemu": "10.0.2"}), {"a": "2"})
    entries = put(entries, changed(seed=2), {"a": "3"})
    assert [(entry["qemu"], entry["files"]) for entry in entries] == [("10.0.2", {"a": "2"}), ("7.2.22", {"a": "3"})]


def test_files_that_differ_or_are_missing_are_named() -> None:
    assert different({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "4"}) == ["b", "c", "d"]


def test_wires_samples_and_consoles_have_digests_and_nothing_else(tmp_path: Path) -> None:
    written = (
        "wire/lan.pcapng",
        "wire/atm/lan.cells.pcapng",
        "nodes/client/samples.jsonl",
        "nodes/client/console.log",
        "samples.parquet",
    )
    for name in (*written, "nodes/client/job.json", "run.json", "verify.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert digests(tmp_path) == {name: hashlib.sha256(name.encode()).hexdigest() for name in sorted(written)}


def test_every_shipped_scenario_has_an_entry() -> None:
    assert sorted(load()) == names("scenario")
    assert all(entry["files"] for entries in load().values() for entry in entries)
