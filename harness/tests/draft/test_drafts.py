# SPDX-License-Identifier: Apache-2.0
"""Drafts are valid as they are, and are written whole or not at all."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sundial.draft import kinds, texts
from sundial.draft.write import write
from sundial.errors import BadInput
from sundial.model.catalog import ROOT
from sundial.model.load import load_experiments, load_topology
from sundial.model.source import load_yaml
from sundial.plan.build import plan_run
from sundial.plan.paths import RunPaths

PATHS = RunPaths(Path("/run/wire"), Path("/run/s"), Path("/dev/shm/x"))


def plain(text: str) -> Any:
    return json.loads(json.dumps(load_yaml(text, "x"), default=str))


@pytest.mark.parametrize("segment", texts.SEGMENTS)
@pytest.mark.parametrize("machines", [2, 3, 64])
def test_a_topology_is_valid_as_it_is(tmp_path: Path, segment: str, machines: int) -> None:
    if segment == "link" and machines > 2:
        pytest.skip("a link has two ports")
    file = tmp_path / "lab.yaml"
    file.write_text(texts.topology(machines, segment))
    loaded = load_topology(str(file))
    assert len(loaded.machines) == machines
    assert {each.kind for each in loaded.segments.values()} == {segment}


@pytest.mark.parametrize("segment", texts.SEGMENTS)
def test_fields_in_comments_are_valid_too(tmp_path: Path, segment: str) -> None:
    lines = texts.topology(2, segment).splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("# clock"))
    shown = [line.replace("# ", "", 1) if line.lstrip().startswith("# ") else line for line in lines[begin:]]
    file = tmp_path / "lab.yaml"
    file.write_text("\n".join(shown))
    assert load_topology(str(file)).description is None


@pytest.mark.parametrize(("machines", "segment"), [(None, None), (3, None), (None, "hub"), (2, "link"), (4, "atm")])
def test_a_scenario_is_planned_as_it_is(tmp_path: Path, machines: int | None, segment: str | None) -> None:
    file = tmp_path / "echo.yaml"
    file.write_text(texts.scenario(machines, segment, "two-hosts-10base-t"))
    (experiment,) = load_experiments(str(file))
    assert len(experiment.network.nodes) == (machines or 2)
    assert plan_run(experiment, PATHS).jobs
    inside = machines is not None or segment is not None
    assert experiment.topology.name == ("echo" if inside else "two-hosts-10base-t")


def test_the_schema_that_a_draft_names_accepts_it(tmp_path: Path) -> None:
    for kind, text in (("topology", texts.topology(3, "switch")), ("scenario", texts.scenario(None, None, "office"))):
        path = Path(text.splitlines()[0].partition("$schema=")[2])
        assert path.is_absolute()
        assert path.name == f"{kind}.schema.json"
        jsonschema.Draft202012Validator(json.loads(path.read_text())).validate(plain(text))


def test_the_schema_of_a_scenario_takes_a_topology_inside() -> None:
    schema = json.loads((ROOT / "harness" / "scenarios" / "scenario.schema.json").read_text())
    inner = schema["properties"]["topology"]["then"]["$ref"]
    target = ROOT / "harness" / "scenarios" / inner
    assert target.resolve() == ROOT / "topologies" / "topology.schema.json"
    schema["properties"]["topology"]["then"] = json.loads(target.read_text()) | {"$id": "urn:topology"}
    validator = jsonschema.Draft202012Validator(schema)
    document = plain(texts.scenario(3, "hub", ""))
    validator.validate(document)
    document["topology"]["segments"]["lan"]["kind"] = "hupp"
    assert not validator.is_valid(document)


def test_a_mistake_in_a_topology_inside_has_its_line_and_path(tmp_path: Path) -> None:
    file = tmp_path / "echo.yaml"
    file.write_text(texts.scenario(2, "hub", "").replace("rate: 10 Mbit/s", "rate: 11 Mbit/s"))
    line = next(number for number, text in enumerate(file.read_text().splitlines(), 1) if "rate: 11" in text)
    with pytest.raises(BadInput) as caught:
        load_experiments(str(file))
    assert caught.value.message.startswith(f"{file}:{line}: topology.segments.lan.rate: is not a rate of a hub")


@pytest.mark.parametrize(
    ("machines", "segment", "words"),
    [
        (1, "hub", "--machines: 1 is out of range; allowed: 2 to 64"),
        (65, "hub", "--machines: 65 is out of range; allowed: 2 to 64"),
        (3, "link", "--machines: a link cannot join 3 machines; allowed: 2, or another --segment"),
        (2, "swich", "--segment: 'swich' cannot be drafted; did you mean 'switch'? allowed: switch, hub, link, atm"),
    ],
)
def test_what_cannot_be_drafted_is_one_line(machines: int, segment: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        texts.topology(machines, segment)
    assert caught.value.message == words


@pytest.mark.parametrize("kind", kinds.FOLDERS)
def test_a_kind_is_the_toy_under_another_name(kind: str) -> None:
    found = kinds.files(kind, "calc", ROOT)
    for path, (text, mode) in found.items():
        assert "toy" not in f"{path}{text}".lower().replace("toy1", "")
        assert bool(mode & 0o100) is (path.name == "build")
        if path.suffix == ".py":
            ast.parse(text)
    if kind == "workload":
        assert 'app: Literal["calc"]' in found[Path("harness/sundial/workloads/calc/model.py")][0]
        assert "int calc_client_main" in found[Path("guest-apps/calc/client.c")][0]
        assert 'NAME = b"TOY1"' in found[Path("harness/sundial/workloads/calc/expect.py")][0]


@pytest.mark.parametrize("name", ["", "a", "Calc", "my-calc", "9x", "toys", "x" * 17])
def test_a_bad_name_of_a_kind_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is not a name of a kind"):
        kinds.files("workload", name, ROOT)


def test_a_package_without_sources_takes_no_kind(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no sources"):
        kinds.files("workload", "calc", tmp_path)


def test_nothing_is_written_if_one_file_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {tmp_path / "a" / "b" / "x": ("1", 0o755), tmp_path / "a" / "y": ("2", 0o644)}
    write(files, force=False)
    assert os.access(tmp_path / "a" / "b" / "x", os.X_OK)
    with pytest.raises(BadInput, match="exists already; allowed: another name, or --force"):
        write(files, force=False)
    write({tmp_path / "a" / "y": ("3", 0o644)}, force=True)
    assert (tmp_path / "a" / "y").read_text() == "3"
    real = Path.write_text

    def full(path: Path, text: str, **options: Any) -> int:
        if text == "2":
            raise OSError(28, "No space left on device")
        return real(path, text, **options)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        write({tmp_path / "c" / "x": ("1", 0o644), tmp_path / "c" / "y": ("2", 0o644)}, force=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]
    with pytest.raises(BadInput, match="is not a folder"):
        write({tmp_path / "a" / "y" / "z": ("1", 0o644)}, force=False)
