# SPDX-License-Identifier: Apache-2.0
"""Digests of what runs wrote, recorded in `digests.json`: the same run must write the same bytes after any commit.

    python -m tests.run.digests               # run the first variant of every scenario, write the table (in harness/)
    python -m tests.run.digests SCENARIO...   # only these

An entry holds for one QEMU, one set of images and one seed. Where only the images differ, a run that writes an entry's
bytes is the same run. Any other run without an entry is compared with a second run.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.run.live import evidence

TABLE = Path(__file__).with_name("digests.json")


class Key(NamedTuple):
    """What the bytes of a run depend on, beside the scenario and the code."""

    qemu: str
    """Version: firmware and tables move a guest's boot, and its entropy and ports with it."""
    images: Mapping[str, str]
    """sha256 of kernel and initrd by image."""
    seed: int


def key(record: Mapping[str, Any]) -> Key:
    """The key of a run, by its run.json."""
    images = {
        name: hashlib.sha256("".join(image["sha256"][part] for part in ("kernel", "initrd")).encode()).hexdigest()
        for name, image in sorted(record["images"].items())
    }
    return Key(record["versions"]["qemu"], images, record["seed"])


def digests(run: Path) -> dict[str, str]:
    """sha256 of every file that does not change when a run is repeated: wire/, samples and consoles."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(evidence(run).items())}


def different(expected: Mapping[str, str], actual: Mapping[str, str]) -> list[str]:
    """Names of the files that differ, or that only one of both has."""
    return sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))


def load(table: Path = TABLE) -> dict[str, list[dict[str, Any]]]:
    """Entries by scenario."""
    found: dict[str, list[dict[str, Any]]] = json.loads(table.read_text())
    return found


def find(
    entries: Iterable[Mapping[str, Any]], wanted: Key, actual: Mapping[str, str]
) -> tuple[str, Mapping[str, str] | None]:
    """The kind of entry that there is for a run with this key and these digests, and the digests to expect of it.

    None: the run has to be repeated.
    """
    entries = [entry for entry in entries if (entry["qemu"], entry["seed"]) == (wanted.qemu, wanted.seed)]
    for entry in entries:
        if entry["images"] == wanted.images:
            return "recorded", entry["files"]
    if any(entry["files"] == actual for entry in entries):
        return "recorded with other images", actual
    return "run twice", None


def put(entries: list[dict[str, Any]], record: Mapping[str, Any], files: Mapping[str, str]) -> list[dict[str, Any]]:
    """The entries with one more, which replaces that of the same QEMU."""
    made = key(record)
    kept = [entry for entry in entries if entry["qemu"] != made.qemu]
    return sorted([*kept, {**made._asdict(), "files": dict(files)}], key=lambda entry: str(entry["qemu"]))


def main(scenarios: list[str]) -> None:
    from sundial.model.catalog import names
    from tests.run.smallest import PACKAGED, run_first_variant

    shipped = names("scenario")
    table = {name: entries for name, entries in (load() if TABLE.exists() else {}).items() if name in shipped}
    table |= {name: [] for name in PACKAGED}
    for scenario in (each for each in scenarios or shipped if each not in PACKAGED):
        with tempfile.TemporaryDirectory(prefix="digests-") as folder:
            run = run_first_variant(scenario, Path(folder) / scenario)
            record = json.loads((run / "run.json").read_text())
            table[scenario] = put(table.get(scenario, []), record, digests(run))
        TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")
        print(f"{scenario}: {len(table[scenario])} entries", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
