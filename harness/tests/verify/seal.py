# SPDX-License-Identifier: Apache-2.0
"""A run directory made by hand, completed and sealed as the run stage does it."""

from __future__ import annotations

import json
from pathlib import Path

from sundial.run.collect import collect_samples, digests
from sundial.verify.directory import OF_NODE


def seal(directory: Path) -> Path:
    """Empty files for what a test has no use for, samples.parquet, and the digests of all. Again after each change."""
    file = directory / "run.json"
    document = json.loads(file.read_text())
    for path in [directory / "nodes" / node / name for node in document["nodes"] for name in OF_NODE]:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("{}" if path.suffix == ".json" else "")
    document["status"] = "complete"
    document["captures"] = {}
    file.write_text(json.dumps(document))
    collect_samples(directory)
    found = digests(directory)
    file.write_text(json.dumps({**document, "captures": found.captures, "files": found.files}))
    return directory
