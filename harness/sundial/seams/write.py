# SPDX-License-Identifier: Apache-2.0
"""`python -m sundial.seams.write` writes the JSON Schema of every format to harness/schemas, and the fabric's words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sundial.seams.compare import Comparison
from sundial.seams.control import Control
from sundial.seams.counters import Counters
from sundial.seams.fabric import Fabric
from sundial.seams.fate import Fate, words
from sundial.seams.job import Job
from sundial.seams.matrix import MatrixDocument
from sundial.seams.run import Run
from sundial.seams.samples import Line
from sundial.seams.trace import Points
from sundial.seams.verify import Verification

FOLDER = Path(__file__).parents[2] / "schemas"
FATE_WORDS = FOLDER.parent / "fabric" / "core" / "src" / "fate_words.json"
FORMS: dict[str, TypeAdapter[Any]] = {
    "compare": TypeAdapter(Comparison),
    "control": Control,
    "counters": TypeAdapter(Counters),
    "fabric": TypeAdapter(Fabric),
    "fate": Fate,
    "job": TypeAdapter(Job),
    "matrix": TypeAdapter(MatrixDocument),
    "points": TypeAdapter(Points),
    "run": TypeAdapter(Run),
    "samples": Line,
    "verify": TypeAdapter(Verification),
}


def path_of(name: str) -> Path:
    """Path of a format's schema."""
    return FOLDER / f"{name}.schema.json"


def schema_text(name: str) -> str:
    """The shipped JSON Schema of a format."""
    schema = FORMS[name].json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"


def fate_words_text() -> str:
    """The forms of words of `sundial.seams.fate`, as the fabric has them."""
    return json.dumps(words(), indent=1) + "\n"


if __name__ == "__main__":
    FATE_WORDS.write_text(fate_words_text(), encoding="utf-8")
    for name in FORMS:
        path_of(name).write_text(schema_text(name), encoding="utf-8")
