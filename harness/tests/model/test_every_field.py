# SPDX-License-Identifier: Apache-2.0
"""Every wrong value of every field of topologies and scenarios is one line with file, line, field and what is allowed.

The fields come from the models, so those of new kinds are covered once a shipped file uses the kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sundial.cli.main import status_of, sundial
from sundial.errors import BadInput
from sundial.model.catalog import FOLDERS, names
from sundial.model.catalog import Kind as Format
from sundial.model.load import load_experiments, load_topology
from sundial.model.scenario import KINDS, Scenario
from sundial.model.source import DEPTH_MOST, INTEGER_MOST, dotted, parse, validate
from sundial.model.topology import SEGMENT_KINDS, Topology
from tests.model.wrong import Path, Raw, Schema, Wrong, allowed_values, emit, holds

MODELS: dict[Format, Any] = {"topology": Topology, "scenario": Scenario}
LOAD: dict[Format, Callable[[str], object]] = {"topology": load_topology, "scenario": load_experiments}
OTHERWISE: dict[Path, tuple[str, ...]] = {
    ("name",): ("mine",),
    ("topology",): (", ".join(names("topology")),),
    (): (", ".join(names("topology")),),
    ("default_scale",): ("smoke",),
}
"""What is allowed where a file decides."""
KINDS_IN: dict[Format, str] = {"topology": "segments", "scenario": "workloads"}


@cache
def schema(format: Format) -> Schema:
    return Schema(MODELS[format])


@dataclass(frozen=True)
class Document:
    """A shipped file, and the part of it in which mistakes are made."""

    format: Format
    written: dict[str, Any]
    root: Path

    @cached_property
    def data(self) -> Any:
        """With every part that may be left out, below `root`."""
        whole, data = schema(self.format), self.written
        if self.root:
            part, value = next(place[1:] for place in whole.places(whole.whole, data) if place[0] == self.root)
            return changed(data, self.root, whole.filled(part, value))
        if self.format == "scenario":
            return whole.filled(whole.whole, changed(data, ("default_scale",), "smoke"))
        for owner in (("defaults",), ("machines", next(iter(data["machines"])))):
            data = changed(data, (*owner, "files"), {"/etc/motd": {"content": "hello"}})
        return whole.filled(whole.whole, data)

    @cached_property
    def places(self) -> list[tuple[Path, dict[str, Any], Any]]:
        """All below `root`; kinds of segments and workloads have documents of their own."""
        found = list(schema(self.format).places(schema(self.format).whole, self.data))
        if self.root:
            return [place for place in found if place[0][: len(self.root)] == self.root]
        return [place for place in found if place[0][0] != KINDS_IN[self.format] or len(place[0]) == 1]

    @cached_property
    def mistakes(self) -> list[Wrong]:
        top = [((), schema(self.format).whole, self.data)] if not self.root else []
        found = [wrong for place in [*top, *self.places] for wrong in schema(self.format).mistakes(*place)]
        # A document that is not a mapping has no fields to name, and its name may be left out. A topology inside
        # a scenario is a mapping: its mistakes are those of topologies.
        return [
            each
            for each in found
            if (each.path or re.fullmatch("missing (?!name).*", each.kind))
            and (each.path, each.kind) != (("topology",), "mapping")
        ]


def shipped(format: Format) -> Iterator[dict[str, Any]]:
    for path in sorted(FOLDERS[format].glob("*.yaml"), key=lambda path: path.stat().st_size):
        yield YAML(typ="safe", pure=True).load(path)


def documents() -> dict[str, Document]:
    """One for each kind, the shortest that is shipped, and one for each format."""
    found: dict[str, Document] = {}
    for data in shipped("topology"):
        for name, segment in data["segments"].items():
            first = {**data, "segments": {name: segment, **data["segments"]}}
            found.setdefault(segment["kind"], Document("topology", first, ("segments", name)))
    found["topology"] = replace(next(iter(found.values())), root=())
    for data in (each for each in shipped("scenario") if isinstance(each["topology"], str)):
        for each in data["workloads"]:
            one = {"description": "d", "topology": data["topology"], "workloads": [each]}
            found.setdefault(f"{each['app']}-calls", Document("scenario", one, ("workloads", 0)))
    return {**found, "scenario": replace(found["sunrpc-calls"], root=())}


DOCUMENTS = documents()
each_document = pytest.mark.parametrize("name", sorted(DOCUMENTS))


def changed(data: Any, path: Path, value: Any) -> Any:
    """A copy of `data` with `value` at `path`."""
    if not path:
        return value
    copy: Any = list(data) if isinstance(data, list) else dict(data or {})
    copy[path[0]] = changed(copy[path[0]] if isinstance(copy, list) else copy.get(path[0]), path[1:], value)
    return copy


def write(document: Document, folder: File, values: Sequence[tuple[Path, Any]]) -> tuple[str, dict[Path, int]]:
    data: Any = document.data
    for path, value in values:
        data = changed(data, path, value)
    text, lines = emit(data)
    (folder / "mine.yaml").write_text(text)
    return str(folder / "mine.yaml"), lines


def check_refused(document: Document, folder: File, mistakes: Sequence[tuple[Wrong, Any]]) -> None:
    """A document with mistakes is refused with one line for each."""
    file, lines = write(document, folder, [(wrong.path, value) for wrong, value in mistakes])
    with pytest.raises(BadInput) as caught:
        LOAD[document.format](file)
    assert caught.value.exit_code == 2
    said = str(caught.value).splitlines()
    expected = [(wrong.kind, dotted(wrong.path), value, wrong.allowed) for wrong, value in mistakes]
    assert len(said) == len(mistakes), (said, expected)
    for (wrong, _), about in zip(mistakes, expected, strict=True):
        fitting = [line for line in said if is_about(line, wrong, file, lines)]
        assert fitting, (said, about)
        said.remove(fitting[0])


def is_about(line: str, wrong: Wrong, file: str, lines: dict[Path, int]) -> bool:
    _, _, allowed = line.partition("; allowed: ")
    heads = tuple(
        f"{file}:{lines[each]}: {dotted(each)}: ".replace(" : ", " ") for each in wrong.fields if each in lines
    )
    return line.startswith(heads) and any(text in allowed for text in (*wrong.allowed, *OTHERWISE.get(wrong.path, ())))


def rounds(mistakes: Sequence[Wrong]) -> Iterator[list[Wrong]]:
    """Each mistake once; those of fields that are equally deep are made at the same time."""
    together: dict[int, dict[Path, list[Wrong]]] = {}
    for wrong in mistakes:
        if wrong.alone:
            yield [wrong]
        else:
            together.setdefault(len(wrong.path), {}).setdefault(wrong.path, []).append(wrong)
    for fields in together.values():
        for beside in zip_longest(*fields.values()):
            yield [wrong for wrong in beside if wrong is not None]


def test_each_kind_has_a_document() -> None:
    segments = {name for name, kind in SEGMENT_KINDS.items() if kind.model is not None}
    assert DOCUMENTS.keys() == {"topology", "scenario", *segments, *(f"{app}-calls" for app in KINDS)}


@each_document
def test_document_without_mistakes_is_loaded(tmp_path: File, name: str) -> None:
    document = DOCUMENTS[name]
    (tmp_path / "mine.yaml").write_text(emit(document.written)[0])
    assert LOAD[document.format](str(tmp_path / "mine.yaml"))


@each_document
def test_each_mistake_is_one_line(tmp_path: File, name: str) -> None:
    for together in rounds(DOCUMENTS[name].mistakes):
        check_refused(DOCUMENTS[name], tmp_path, [(wrong, wrong.value) for wrong in together])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> File:
    return tmp_path_factory.mktemp("documents")


def hides(above: Wrong, one: Wrong) -> bool:
    """True if `one` is inside of what `above` replaces, or a scale sets its field."""
    in_scale = above.path[0] == "scale" != one.path[0] and above.path[-1] == one.path[-1]
    return in_scale or one.path[: len(above.path)] == above.path


@settings(max_examples=settings.default.max_examples // 4)
@given(data=st.data())
def test_mistakes_all_over_a_document_are_one_line_each(folder: File, data: st.DataObject) -> None:
    document = DOCUMENTS[data.draw(st.sampled_from(sorted(DOCUMENTS)))]
    mistakes = [wrong for wrong in document.mistakes if not wrong.alone]
    chosen = data.draw(st.lists(st.sampled_from(mistakes), min_size=1, max_size=4, unique_by=lambda wrong: wrong.path))
    apart = [one for one in chosen if not any(hides(each, one) for each in chosen if each != one)]
    check_refused(document, folder, [(wrong, data.draw(wrong.others)) for wrong in apart])


@each_document
def test_what_a_message_allows_is_taken(name: str) -> None:
    """The words, the examples and both ends of the range of each field."""
    document = DOCUMENTS[name]
    whole = schema(document.format)
    fields = [(path, whole.inner(spec), spec) for path, spec, _ in document.places]
    allowed = [
        [(path, value) for value in allowed_values(within) if whole.valid(spec, value)]
        for path, within, spec in fields
        if not holds(within)
    ]
    assert sum(map(len, allowed)) > len(allowed)
    for values in zip_longest(*allowed):
        data: Any = document.data
        for path, value in filter(None, values):
            data = changed(data, path, value)
        validate(parse(emit({**data, "name": "mine"})[0], "mine", "mine.yaml"), MODELS[document.format])


UNREADABLE = {
    "2000-01-01": "is not a plain value; allowed: text, numbers, true, false",
    ".nan": f"is not a number between {-INTEGER_MOST} and {INTEGER_MOST}",
    "[" * (DEPTH_MOST + 1) + "]" * (DEPTH_MOST + 1): f"is nested too deeply; allowed: up to {DEPTH_MOST} levels",
    "1\n{indent}{key}: 2": "found duplicate key",
}
"""What is refused before fields are known."""


@each_document
def test_what_cannot_be_read_is_one_line(tmp_path: File, name: str) -> None:
    """Each field once, with each mistake in turn."""
    document = DOCUMENTS[name]
    fields = [path for path, spec, _ in document.places if not holds(schema(document.format).inner(spec))]
    for number, path in enumerate(fields):
        text, words = list(UNREADABLE.items())[number % len(UNREADABLE)]
        text = text.format(indent="  " * (len(path) - 1), key=path[-1])
        if "\n" in text and isinstance(path[-1], int):
            continue
        file, lines = write(document, tmp_path, [(path, Raw(text))])
        with pytest.raises(BadInput) as caught:
            LOAD[document.format](file)
        (line,) = str(caught.value).splitlines()
        assert line.startswith(f"{file}:{lines[path] + text.count(chr(10))}: "), line
        assert words in line
        assert "between" not in words or f": {dotted(path)}: " in line


@each_document
def test_command_line_ends_with_status_2(tmp_path: File, capsys: pytest.CaptureFixture[str], name: str) -> None:
    document = DOCUMENTS[name]
    mistakes = document.mistakes
    wrong = mistakes[sum(map(ord, name)) % len(mistakes)]
    file, lines = write(document, tmp_path, [(wrong.path, wrong.value)])
    command = {"topology": ["topology", "check", file], "scenario": ["run", file, "--out", str(tmp_path / "run")]}
    assert status_of(sundial, command[document.format]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert is_about(said[0].removeprefix("sundial: "), wrong, file, lines), said
