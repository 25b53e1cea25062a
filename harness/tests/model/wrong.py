# SPDX-License-Identifier: Apache-2.0
"""Wrong values for every field of a model, from its JSON Schema and from what it says is allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import jsonschema
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from sundial.model.source import INTEGER_MOST

Path = tuple[str | int, ...]
Spec = dict[str, Any]
Values = tuple[str, Any, SearchStrategy[Any]]
"""The kind of a mistake, the value that the gate always tries, and others."""

WORD = st.text("§ßQ~!", min_size=1, max_size=9)
POOL: list[Values] = [
    ("null", None, st.none()),
    ("flag", True, st.booleans()),
    ("number", 1, st.integers(-(10**9), 10**9)),
    ("fraction", 0.3, st.integers(-999, 999).map(lambda number: number + 0.3)),
    ("word", "§", WORD),
    ("empty text", "", st.just("")),
    ("empty list", [], st.just([])),
    ("list", ["§"], st.lists(WORD, min_size=1, max_size=3)),
    ("nested list", [[["§"]]], st.lists(st.lists(WORD), min_size=1, max_size=3)),
    ("mapping", {"§": 7}, st.dictionaries(WORD, st.integers(0, 9), max_size=3)),
]
CLOSED = re.compile(r"one or more of|from -?\d")
"""Where this is allowed every other word is wrong, although a schema lets text pass because of commas and ranges."""
WORDS = ("word", "list", "empty text")

RANGE = re.compile(r"from (-?\d[\d.]*)(?: ([A-Za-z/%]+))? to (-?\d[\d.]*)(?: ([A-Za-z/%]+))?")
FOREIGN = {"ns us ms s min h": "7 Mbit/s", "bit/s kbit/s Mbit/s Gbit/s": "7 MiB", "B KiB MiB GiB": "7 ms", "%": "7 ms"}
"""Units of one dimension, and a quantity of another."""
SAMPLES = (
    *("both", "client:eth0", "eth0", "/etc/motd", "10.1.0.0/24", "qemu+ssh://a/session", "client", "1", "a b"),
    *("NFS_DISABLE_UDP_SUPPORT", True),
)
"""For fields and keys that name no example."""


@dataclass(frozen=True)
class Wrong:
    """A mistake: `value`, or another of `others`, at `path`; the message names one of `fields` and one of `allowed`."""

    kind: str
    path: Path
    value: Any
    others: SearchStrategy[Any]
    fields: tuple[Path, ...]
    allowed: tuple[str, ...]

    @property
    def alone(self) -> bool:
        """Whether it may hide others: the word that chooses a kind, and what is read before fields are checked."""
        early = ("name", "topology", "default_scale", "vary")
        return not self.path or self.path[0] in early or self.kind.startswith("choice: ")


class Schema:
    """The JSON Schema of a model, and the parts of documents that it describes."""

    def __init__(self, model: Any) -> None:
        self.whole: Spec = model.model_json_schema()

    def valid(self, spec: Spec, value: Any) -> bool:
        return bool(jsonschema.Draft202012Validator({**spec, "$defs": self.whole["$defs"]}).is_valid(value))

    def inner(self, spec: Spec, data: Any = None) -> Spec:
        """What describes `data`: behind references, a null that is allowed, too, and the choice of a kind."""
        if "$ref" in spec:
            return self.inner(self.whole["$defs"][spec["$ref"].rpartition("/")[2]], data)
        if "discriminator" in spec and isinstance(data, dict):
            rule = spec["discriminator"]
            return self.inner({"$ref": rule["mapping"][data[rule["propertyName"]]]}, data)
        if "anyOf" in spec and "x-allowed" not in spec:
            return self.inner(next(choice for choice in spec["anyOf"] if choice.get("type") != "null"), data)
        return spec

    def parts(self, spec: Spec, data: Any) -> Iterator[tuple[str | int, Spec, Any]]:
        """Fields of `data`, those left out included, or its last item or first entry, with what describes each."""
        within = self.inner(spec, data)
        if "properties" in within:
            yield from ((name, part, (data or {}).get(name)) for name, part in within["properties"].items())
        elif within.get("type") == "array" and "x-allowed" not in within:
            yield from ((number, within["items"], each) for number, each in list(enumerate(data or ()))[-1:])
        elif holds(within):
            yield from ((key, entry(within), each) for key, each in list((data or {}).items())[:1])

    def places(self, spec: Spec, data: Any, path: Path = ()) -> Iterator[tuple[Path, Spec, Any]]:
        """Every part of a document, and of its parts."""
        for name, part, value in self.parts(spec, data):
            yield (*path, name), part, value
            yield from self.places(part, value, (*path, name))

    def filled(self, spec: Spec, data: Any) -> Any:
        """`data` with the parts that hold others where they are left out."""
        copy: Any = list(data) if isinstance(data, list) else dict(data) if isinstance(data, dict) else data
        for name, part, value in self.parts(spec, data):
            if value is None and holds(self.inner(part)):
                value = self.sample(part)
            if value is not None:
                copy[name] = self.filled(part, value)
        return copy

    def sample(self, spec: Spec) -> Any:
        """The least that the schema takes."""
        within = self.inner(spec)
        if "properties" in within:
            return {name: self.sample(within["properties"][name]) for name in within.get("required", ())}
        if holds(within) and within["type"] == "array":
            return [self.sample(within["items"])] * max(1, within.get("minItems", 0))
        if holds(within):
            return {self.sample(keys(within)): self.sample(entry(within))} if "propertyNames" in within else {}
        return next(value for value in (*allowed_values(within), *SAMPLES) if self.valid(within, value))

    def mistakes(self, path: Path, spec: Spec, data: Any) -> Iterator[Wrong]:
        """Every mistake that can be made at one place."""
        within, behind = self.inner(spec, data), self.inner(spec)
        if "discriminator" in behind:
            rule, order = behind["discriminator"], [each["$ref"] for each in behind["oneOf"]]
            tags = ", ".join(sorted(rule["mapping"], key=lambda tag: order.index(rule["mapping"][tag])))
            for kind, value, others in POOL:
                yield wrong(f"choice: {kind}", (*path, rule["propertyName"]), value, others, tags)
        if holds(within):
            yield from self._of_container(path, spec, data)
        elif within and not isinstance(within.get("const"), str):
            yield from self._of_leaf(path, spec)

    def _of_leaf(self, path: Path, spec: Spec) -> Iterator[Wrong]:
        within = self.inner(spec)
        allowed = tuple(texts(within))
        assert allowed, f"{path} does not say what is allowed"
        for kind, value, others in self._values(spec, allowed[0]):
            yield wrong(kind, path, value, others, *allowed)
        by_port = next(
            (choice for choice in within.get("anyOf", ()) if "x-allowed" in choice.get("propertyNames", ())), None
        )
        if by_port is not None:
            port, one = self.sample(keys(by_port)), entry(by_port)
            good = self.sample(one)
            yield wrong("by port: key", path, {"§": good}, WORD.map(lambda word: {word: good}), *allowed)
            for kind, value, others in self._values(one, one["x-allowed"]):
                each = others.map(lambda value: {port: value})
                yield wrong(f"by port: {kind}", path, {port: value}, each, *allowed, fields=((*path, port),))

    def _values(self, spec: Spec, allowed: str) -> Iterator[Values]:
        """Wrong values of one field: what its schema does not take, and what the words exclude."""

        def is_wrong(value: Any) -> bool:  # to pydantic, 1 is Literal[True]
            return value != spec.get("const", ...) and not self.valid(spec, value)

        for kind, value, others in POOL:
            if kind in WORDS and CLOSED.search(allowed):
                yield kind, value, others
            elif is_wrong(value):
                yield kind, value, others.filter(is_wrong)
        found = RANGE.search(allowed)
        if found is None:
            return
        least, low, most, high = Decimal(found[1]), found[2], Decimal(found[3]), found[4]
        more = st.integers(1, 10**6)
        if not low or least > 0:
            yield "below", quantity(least - 1, low), more.map(lambda n: quantity(least - n, low))
        if most < INTEGER_MOST:
            yield "above", quantity(most + 1, high), more.map(lambda n: quantity(most + n, high))
        if high:
            yield "negative", f"-1 {high}", more.map(lambda n: f"-{n} {high}")
            foreign = next(other for units, other in FOREIGN.items() if high in units.split())
            yield "wrong unit", foreign, st.sampled_from([foreign, "7 kg", f"7 {high}§"])
            if high != "%":
                yield "part of a unit", f"1.0000000000001 {high}", more.map(lambda n: f"{n}.0000000000001 {high}")
            if not self.valid(spec, "7"):
                yield "no unit", "7", more.map(str)

    def _of_container(self, path: Path, spec: Spec, data: Any) -> Iterator[Wrong]:
        within, allowed = self.inner(spec, data), self._holds(spec)
        own = ("mapping",) if within["type"] == "object" else ("list", "nested list", "empty list")
        for kind, value, others in POOL:
            if kind not in own and not (kind == "null" and self.valid(spec, None)):
                yield wrong(kind, path, value, others, *allowed)
        least = within.get("minItems") or within.get("minProperties")
        most = within.get("maxItems") or within.get("maxProperties")
        if least:
            few: Any = data[: least - 1] if isinstance(data, list) else {}
            yield wrong("too few", path, few, st.just(few), f"{least} or more")
        if most and isinstance(data, list):
            yield wrong("too many", path, data[:1] * (most + 1), st.just(data[:1] * (most + 1)), f"up to {most}")
        elif most:
            names = [f"{start}{number}" for start in ("a", "/") for number in range(most + 1)]
            many = {name: next(iter(data.values())) for name in names if self.valid(keys(within), name)}
            yield wrong("too many", path, many, st.just(many), f"up to {most}")
        chooser = self.inner(spec).get("discriminator", {}).get("propertyName")
        for name in within.get("required", ()):
            rest = {key: value for key, value in data.items() if key != name}
            needed = self._holds(within["properties"][name]) if name != chooser else self._holds(spec)
            yield wrong(f"missing {name}", path, rest, st.just(rest), *needed)
        if "properties" in within:
            yield wrong("unknown field", (*path, "§"), 7, WORD, ", ".join(within["properties"]))
        elif "propertyNames" in within:
            value = next(iter(data.values()))
            yield wrong("unknown key", (*path, "§"), value, st.just(value), *allowed)

    def _holds(self, spec: Spec) -> tuple[str, ...]:
        """What a part says is allowed in its place."""
        within = self.inner(spec)
        if "discriminator" in within:
            return (", ".join(within["discriminator"]["mapping"]),)
        if "properties" in within:
            return (", ".join(within["properties"]),)
        if holds(within) and within["type"] == "array":
            return self._holds(within["items"])
        if holds(within):
            return tuple(texts(within.get("propertyNames", {"const": "KEY: VALUE"})))
        return tuple(texts(within))


def wrong(
    kind: str, path: Path, value: Any, others: SearchStrategy[Any], *allowed: str, fields: tuple[Path, ...] = ()
) -> Wrong:
    return Wrong(kind, path, value, others, (path, *fields), allowed)


def holds(spec: Spec) -> bool:
    """Whether it describes what holds fields, entries or items of its own."""
    return "x-allowed" not in spec and (spec.get("type") in ("array", "object") or "discriminator" in spec)


def entry(spec: Spec) -> Spec:
    """What describes the values of a mapping."""
    (found,) = (spec.get("patternProperties") or {"": spec["additionalProperties"]}).values()
    return found if isinstance(found, dict) else {}


def keys(spec: Spec) -> Spec:
    """What describes the keys of a mapping."""
    patterns = [{"pattern": pattern} for pattern in spec.get("patternProperties", ())]
    return {"type": "string", **spec["propertyNames"], **(patterns[0] if patterns else {})}


def texts(spec: Any) -> Iterator[str]:
    """Each text that says what is allowed in a field."""
    if isinstance(spec, list):
        yield from (text for each in spec for text in texts(each))
    elif isinstance(spec, dict):
        if "x-allowed" in spec:
            yield str(spec["x-allowed"])
        elif "enum" in spec or "const" in spec:
            yield ", ".join(map(str, spec.get("enum", [spec.get("const")])))
        yield from (text for name, each in spec.items() if name != "enum" for text in texts(each))


def allowed_values(spec: Spec) -> list[Any]:
    """Values that a field says it takes: its words, its examples and both ends of its range."""
    text = next(texts(spec), "")
    found: list[Any] = [*spec.get("enum", ()), *([spec["const"]] if "const" in spec else [])]
    for words in re.findall(r"one or more of ([\w-]+(?:, (?!or )[\w-]+)*)", text):
        found += words.split(", ")
    for examples in re.findall(r"such as ('[^']+'(?: or '[^']+')*)", text):
        found += re.findall(r"'([^']+)'", examples)
    for least, low, most, high in RANGE.findall(text):
        found += [quantity(Decimal(least), low), quantity(Decimal(most), high)]
    return found


def quantity(number: Decimal, unit: str) -> Any:
    """A number with its unit, if it has one."""
    return f"{number:f} {unit}" if unit else int(number)


@dataclass(frozen=True)
class Raw:
    """A line of a document as it is, behind its indentation."""

    text: str


def emit(data: Any) -> tuple[str, dict[Path, int]]:
    """A document in block style, and the line of each field."""
    lines = ["# the first line"]
    places: dict[Path, int] = {(): 1}
    _emit(data, (), "", lines, places)
    return "\n".join(lines) + "\n", places


def _emit(node: Any, path: Path, indent: str, lines: list[str], places: dict[Path, int]) -> None:
    for key, value in enumerate(node) if isinstance(node, list) else node.items():
        places[(*path, key)] = len(lines) + 1
        head = f"{indent}-" if isinstance(node, list) else f"{indent}{json.dumps(key, ensure_ascii=False)}:"
        if isinstance(value, Raw):
            lines.append(f"{head} {value.text}")
        elif isinstance(value, dict | list) and value:
            first = len(lines) if isinstance(node, list) else lines.append(head)
            _emit(value, (*path, key), indent + "  ", lines, places)
            if first is not None:
                lines[first] = f"{head} {lines[first].lstrip()}"
        else:
            lines.append(f"{head} {json.dumps(value, ensure_ascii=False)}")
