# SPDX-License-Identifier: Apache-2.0
"""One YAML file with the line of every field, and the line of each validation error.

`read` accepts YAML 1.2 with plain mappings, lists and scalars, without duplicate keys. `validate` turns plain data into
a model, or raises BadInput with all its problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent

from sundial.errors import BadInput, Problem

SIZE_MOST = 256 * 1024
NODES_MOST = 10_000
DEPTH_MOST = 32
"""Limits: bytes of a file, values and keys with aliases expanded, and levels of nesting. Without them, a few lines can
make a reader take all memory."""

INTEGER_MOST = 2**63 - 1

FieldPath = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)


class Number(Decimal):
    """A number that messages show as written."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Origin:
    """Origin of a value; `label` replaces the field's path if the user wrote another name."""

    file: str
    line: int | None
    label: str | None = None


@dataclass
class Source:
    """Plain data with the origin of each part."""

    name: str
    file: str
    data: dict[str, Any]
    origins: dict[FieldPath, Origin] = field(default_factory=dict)
    within: FieldPath = ()
    """Where in the file's own data it is."""

    def origin(self, path: FieldPath) -> Origin:
        """Origin of the value at `path`, or of the nearest part above it."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return Origin(self.file, None)

    def inner(self, field: str) -> Source:
        """The mapping in a field as data of its own, with the same name and file."""
        origins = {path[1:]: origin for path, origin in self.origins.items() if path[:1] == (field,)}
        return Source(self.name, self.file, dict(self.data[field]), origins, (*self.within, field))

    def problem(self, path: FieldPath, what: str, allowed: str | None = None) -> Problem:
        """A problem at `path`, with its file and line."""
        origin = self.origin(path)
        return Problem(what, allowed, origin.file, origin.line, origin.label or dotted((*self.within, *path)) or None)

    def put(self, path: FieldPath, value: Any, origin: Origin) -> None:
        """Write `value` at `path`, creating mappings on the way.

        Raises BadInput if the path leads through something that is not a mapping or list.
        """
        node: Any = self.data
        place: list[str | int] = []
        for key in path:
            step = _step(node, key, origin)
            place.append(step)
            if len(place) == len(path):
                node[step] = value
            else:
                node = node.setdefault(step, {}) if isinstance(node, dict) else node[step]
        path = tuple(place)
        for stale in [key for key in self.origins if key[: len(path)] == path]:
            del self.origins[stale]
        self.origins[path] = origin


def dotted(path: Sequence[str | int]) -> str:
    """A path as the user writes it."""
    return ".".join(str(part) for part in path)


def read(path: Path, shown: str) -> Source:
    """The YAML file at `path`, named `shown` in messages. Raises BadInput."""
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_MOST + 1)
        text = content.decode("utf-8")
    except FileNotFoundError as error:
        raise BadInput("does not exist", file=shown) from error
    except UnicodeDecodeError as error:
        raise BadInput("is not text in UTF-8", file=shown) from error
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", file=shown) from error
    except ValueError as error:  # a NUL in the name
        raise BadInput(f"cannot be read: {error}", file=shown) from error
    if len(content) > SIZE_MOST:
        raise BadInput("is too large", file=shown, allowed=f"up to {SIZE_MOST // 1024} KiB")
    return parse(text, path.stem, shown)


def parse(text: str, name: str, shown: str) -> Source:
    """Plain data from YAML text. Raises BadInput."""
    document = load_yaml(text, shown)
    if not isinstance(document, CommentedMap):
        raise BadInput("must be a mapping of fields", file=shown, line=1, allowed="'field: value' lines")
    source = Source(name, shown, {})
    source.origins[()] = Origin(shown, 1)
    source.data = _plain(document, (), source)
    return source


def load_yaml(text: str, shown: str) -> Any:
    """The nodes of `text` from ruamel.yaml (YAML 1.2, duplicate keys rejected). Raises BadInput."""
    try:
        _check_extent(text, shown)
        return YAML(typ="rt", pure=True).load(text)
    except BadInput:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = (error.problem or error.context or "").splitlines()[0]
        raise BadInput(f"is not YAML: {what}", file=shown, line=mark.line + 1 if mark else None) from error
    except (YAMLError, ValueError) as error:
        raise BadInput(f"is not YAML: {str(error).splitlines()[0]}", file=shown) from error


def _check_extent(text: str, shown: str) -> None:
    """Check the limits before anything is built; reads no further than the first excess. Raises BadInput."""
    nodes = 0
    begun: list[tuple[str | None, int]] = []
    anchored: dict[str, int] = {}
    for event in YAML(typ="rt", pure=True).parse(text):
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            if any(event.anchor == anchor for anchor, _ in begun):
                raise BadInput(f"*{event.anchor} contains itself", file=shown, line=line)
            nodes += anchored.get(event.anchor, 1)
        elif isinstance(event, NodeEvent):
            nodes += 1
            if isinstance(event, CollectionStartEvent):
                begun.append((event.anchor, nodes))
            elif event.anchor is not None:
                anchored[event.anchor] = 1
        elif isinstance(event, CollectionEndEvent):
            anchor, before = begun.pop()
            if anchor is not None:
                anchored[anchor] = nodes - before + 1
        if nodes > NODES_MOST:
            raise BadInput(
                "has too many values, with aliases expanded",
                file=shown,
                line=line,
                allowed=f"up to {NODES_MOST} values",
            )
        if len(begun) > DEPTH_MOST:
            raise BadInput("is nested too deeply", file=shown, line=line, allowed=f"up to {DEPTH_MOST} levels")


def validate(source: Source, model: type[ModelT]) -> ModelT:
    """`source` as `model`. Raises BadInput with every problem, in the order of the file."""
    try:
        return model.model_validate(source.data)
    except ValidationError as error:
        schema = _schema(model)
        problems = [problem for detail in error.errors() for problem in _problems(source, schema, detail)]
        raise BadInput.many(sorted(problems, key=lambda problem: problem.line or 0)) from error


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _plain(node: Any, path: FieldPath, source: Source) -> Any:
    if isinstance(node, CommentedMap):
        result: dict[Any, Any] = {}
        for key, value in node.items():
            if not isinstance(key, str | int) or isinstance(key, bool):
                raise BadInput(f"{str(key)!r} is not a valid field name", file=source.file, line=node.lc.line + 1)
            name: str | int = int(key) if isinstance(key, int) else str(key)
            line = _line(node, key)
            source.origins[(*path, name)] = Origin(source.file, line + 1)
            result[name] = _plain(value, (*path, name), source)
        return result
    if isinstance(node, CommentedSeq):
        items = []
        for number, value in enumerate(node):
            line = _line(node, number)
            source.origins[(*path, number)] = Origin(source.file, line + 1)
            items.append(_plain(value, (*path, number), source))
        return items
    return plain_scalar(node, replace(source.origin(path), label=dotted(path)))


def _line(node: CommentedMap | CommentedSeq, key: Any) -> int:
    """Line of an entry, from 0; that of the whole mapping if ruamel has none, as for entries from a merge key."""
    places = node.lc.data or {}
    return int(places[key][0] if key in places else node.lc.line)


def plain_scalar(node: Any, origin: Origin) -> Any:
    """A scalar as a built-in type; fractions become Decimal. Raises BadInput for tags and dates."""
    if node is None or isinstance(node, bool):
        return node
    if isinstance(node, int):
        if type(node).__name__ == "ScalarBoolean":
            return bool(node)
        if abs(node) <= INTEGER_MOST:
            return int(node)
    elif isinstance(node, float) and isfinite(node):
        return Number(repr(float(node)))
    if isinstance(node, str):
        return str(node)
    if isinstance(node, int | float):
        what = f"is not a number between {-INTEGER_MOST} and {INTEGER_MOST}"
        raise BadInput(what, file=origin.file, line=origin.line, field=origin.label)
    raise BadInput(
        f"{str(node)!r} is not a plain value",
        file=origin.file,
        line=origin.line,
        field=origin.label,
        allowed="text, numbers, true, false",
    )


def _step(node: Any, key: str | int, origin: Origin) -> str | int:
    """`key` for `node`: a number if that is a list."""
    if isinstance(node, dict):
        return key
    if not isinstance(node, list):
        raise BadInput(
            f"{key!r} is not a field of this value, which has none",
            file=origin.file,
            line=origin.line,
            field=origin.label,
        )
    if not str(key).isdecimal() or int(key) >= len(node):
        what, allowed = f"index {key!r} is out of range", f"0 to {len(node) - 1}"
        raise BadInput(what, file=origin.file, line=origin.line, field=origin.label, allowed=allowed)
    return int(key)


def _problems(source: Source, schema: dict[str, Any], detail: ErrorDetails) -> list[Problem]:
    path = _real_path(source.data, detail["loc"])
    kind, context = detail["type"], detail.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, BadInput):
        return [
            source.problem((*path, problem.field) if problem.field else path, problem.what, problem.allowed)
            for problem in cause.problems
        ]
    spec = _spec(schema, source.data, path if kind != "extra_forbidden" else path[:-1])
    allowed = _allowed(schema, spec)
    if kind == "extra_forbidden":
        return [source.problem(path, "unknown field", allowed)]
    if kind == "missing":
        return [source.problem(path[:-1], f"{path[-1]} is missing", allowed)]
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        name = str(context["discriminator"]).strip("'")
        tags = str(context.get("expected_tags") or ", ".join(spec.get("discriminator", {}).get("mapping", {})))
        if kind == "union_tag_not_found":
            return [source.problem(path, f"{name} is missing", tags.replace("'", ""))]
        return [source.problem((*path, name), f"{context['tag']!r} is unknown", tags.replace("'", ""))]
    if kind == "literal_error":
        expected = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        return [source.problem(path, f"{detail['input']!r} is unknown", expected)]
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return [source.problem(path, "must be a mapping of fields", allowed)]
    if kind in ("list_type", "tuple_type"):
        return [source.problem(path, "must be a list, such as [A, B]", allowed)]
    if kind == "too_short":
        return [source.problem(path, f"has {context['actual_length']} entries", f"{context['min_length']} or more")]
    if kind == "too_long":
        return [source.problem(path, "has too many entries", f"up to {context['max_length']}")]
    return [source.problem(path, detail["msg"], allowed)]


def _real_path(data: Any, loc: Sequence[str | int]) -> FieldPath:
    """`loc` without pydantic's additions (union tags, `[key]`): only steps that exist, and a last missing field."""
    path: list[str | int] = []
    node: Any = data
    for position, step in enumerate(loc):
        if _holds(node, step):
            node = node[step]
            path.append(step)
        elif position == len(loc) - 1 and isinstance(node, dict) and step != "[key]":
            path.append(step)
    return tuple(path)


def _holds(node: Any, step: str | int) -> bool:
    if isinstance(node, list):
        return isinstance(step, int) and step < len(node)
    return isinstance(node, dict) and step in node


def _spec(schema: dict[str, Any], data: Any, path: FieldPath) -> dict[str, Any]:
    """The part of a JSON Schema that describes the value at `path` of `data`."""
    node = _deref(schema, schema, data)
    for step in path:
        inside = data[step] if _holds(data, step) else None
        if step in node.get("properties", {}):
            node = node["properties"][step]
        elif "items" in node and isinstance(step, int):
            node = node["items"]
        elif isinstance(node.get("additionalProperties"), dict):
            node = node["additionalProperties"]
        elif node.get("patternProperties"):
            node = next(iter(node["patternProperties"].values()))
        else:
            return {}
        node = _deref(schema, node, inside)
        data = inside
    return node


def _deref(schema: dict[str, Any], node: dict[str, Any], data: Any) -> dict[str, Any]:
    while True:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        elif "discriminator" in node:
            rule = node["discriminator"]
            tag = data.get(rule["propertyName"]) if isinstance(data, dict) else None
            if not isinstance(tag, str) or tag not in rule["mapping"]:
                return node
            node = schema["$defs"][rule["mapping"][tag].rpartition("/")[2]]
        elif "anyOf" in node and "x-allowed" not in node:
            node = next(choice for choice in node["anyOf"] if choice.get("type") != "null")
        else:
            return node


def _allowed(schema: dict[str, Any], spec: dict[str, Any]) -> str | None:
    """The allowed values of a field, or the names of its parts."""
    if "x-allowed" in spec:
        return str(spec["x-allowed"])
    if "enum" in spec:
        return ", ".join(str(value) for value in spec["enum"])
    if "const" in spec:
        return str(spec["const"])
    if "properties" in spec:
        return ", ".join(spec["properties"])
    if "discriminator" in spec:
        return f"a mapping with {spec['discriminator']['propertyName']}: {', '.join(spec['discriminator']['mapping'])}"
    if "propertyNames" in spec:
        return f"a mapping with keys: {_allowed(schema, spec['propertyNames'])}"
    if "items" in spec:
        items = _allowed(schema, _deref(schema, spec["items"], None))
        return f"a list of: {items}" if items else "a list"
    return None
