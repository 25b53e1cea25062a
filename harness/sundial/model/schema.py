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
from sundial.model.sweep import Sweep
from sundial.model.topology import Topology

FILES: dict[Path, type[Strict]] = {
    FOLDERS["topology"] / "topology.schema.json": Topology,
    FOLDERS["scenario"] / "scenario.schema.json": Scenario,
    FOLDERS["scenario"] / "sweeps" / "sweep.schema.json": Sweep,
    FOLDER / "image.schema.json": ImageKind,
}


TOPOLOGY = "../../topologies/topology.schema.json"
"""From the schema of scenarios."""


def schema_text(model: type[Strict]) -> str:
    """The shipped JSON Schema of `model`."""
    schema = model.model_json_schema()
    schema["required"].remove("name")
    if model is Scenario:
        schema["properties"]["topology"] = _or_inside(schema["properties"]["topology"])
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_plain(schema)}
    return json.dumps(schema, indent=2) + "\n"


def _or_inside(field: dict[str, Any]) -> dict[str, Any]:
    """The field `topology` of a scenario, which may also be a mapping: `model.load` takes that before validation."""
    words = {name: field[name] for name in ("title", "description")}
    named = {name: value for name, value in field.items() if name not in words}
    return {**words, "if": {"type": "object"}, "then": {"$ref": TOPOLOGY}, "else": named}


def _plain(node: Any) -> Any:
    """Add `x-allowed` to each field's description, and write a choice of a kind in JSON Schema's own words."""
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
    """A choice by one field. Validators do not know OpenAPI's `discriminator`; `oneOf` says of a wrong word only that
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
