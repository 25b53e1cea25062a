# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of topologies, scenarios and images for editors; `python -m sundial.model.schema` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sundial.model.catalog import FOLDERS
from sundial.model.fields import Strict
from sundial.model.images import FOLDER, ImageKind
from sundial.model.scenario import Scenario
from sundial.model.topology import Topology

FILES: dict[Path, type[Strict]] = {
    FOLDERS["topology"] / "topology.schema.json": Topology,
    FOLDERS["scenario"] / "scenario.schema.json": Scenario,
    FOLDER / "image.schema.json": ImageKind,
}


def schema_text(model: type[Strict]) -> str:
    """The JSON Schema of `model` as it is shipped."""
    schema = model.model_json_schema()
    schema["required"].remove("name")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_plain(schema)}
    return json.dumps(schema, indent=2) + "\n"


def _plain(node: Any) -> Any:
    """Our `x-allowed` as a description, where a field has none of its own; choices as `_choice` has them."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "discriminator" in node:
        return _plain(_choice(**node))
    allowed = node.get("x-allowed")
    rest = {key: _plain(value) for key, value in node.items() if key != "x-allowed"}
    if allowed is None:
        return rest
    text = node.get("description")
    return {**rest, "description": f"{text} Allowed: {allowed}." if text else f"Allowed: {allowed}."}


def _choice(discriminator: dict[str, Any], oneOf: list[Any], **rest: Any) -> dict[str, Any]:
    """A choice by one field. Validators ignore OpenAPI's `discriminator`, and of a wrong word `oneOf` says only that
    nothing fits."""
    name, kinds = discriminator["propertyName"], discriminator["mapping"]
    cases = [
        {"if": {"properties": {name: {"const": kind}}, "required": [name]}, "then": {"$ref": reference}}
        for kind, reference in kinds.items()
    ]
    return {**rest, "type": "object", "required": [name], "properties": {name: {"enum": list(kinds)}}, "allOf": cases}


if __name__ == "__main__":
    for path, model in FILES.items():
        path.write_text(schema_text(model), encoding="utf-8")
