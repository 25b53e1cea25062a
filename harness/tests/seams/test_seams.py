# SPDX-License-Identifier: Apache-2.0
"""The formats between the parts: their models and schemas, and the golden files on both sides of each."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from sundial.model.catalog import names
from sundial.model.load import load_experiments, load_topology
from sundial.observe import read_samples
from sundial.observe.rundir import Node
from sundial.plan.build import plan_run
from sundial.plan.jobs import JOB_BYTES as PLANNED_JOB_BYTES
from sundial.seams import control
from sundial.seams.fabric import Fabric
from sundial.seams.fate import Record, read_comment
from sundial.seams.job import JOB_BYTES, Endpoint, Job
from sundial.seams.run import Run
from sundial.seams.samples import Line
from sundial.seams.verify import Verification
from sundial.seams.write import FATE_WORDS, FORMS, fate_words_text, path_of, schema_text
from tests.seams.golden_files import FOLDER, PATHS, files

CHECKOUT = Path(__file__).parents[3]
SUNDIAL_FABRIC = CHECKOUT / "harness" / "fabric" / "target" / "release" / "sundial-fabric"


def golden(place: str) -> list[Path]:
    return sorted(FOLDER.glob(place))


def named(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


@cache
def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(path_of(name).read_text()))


def edited() -> Iterator[tuple[dict[str, str], str]]:
    """Malformed jobs: which edit of which golden job, and the text that it makes."""
    for line in (FOLDER / "jobs" / "malformed.jsonl").read_text().splitlines():
        edit = json.loads(line)
        text = (FOLDER / "jobs" / f"{edit['job']}.json").read_text()
        assert edit["from"] in text, edit
        yield edit, text.replace(edit["from"], edit["to"], 1)


@pytest.mark.parametrize("name", FORMS)
def test_shipped_schemas_are_those_of_the_models(name: str) -> None:
    assert path_of(name).read_text() == schema_text(name), "run python -m sundial.seams.write"
    Draft202012Validator.check_schema(json.loads(schema_text(name)))


def test_the_fabric_has_the_words_of_the_models() -> None:
    assert FATE_WORDS.read_text() == fate_words_text(), "run python -m sundial.seams.write"


def fields(schema: dict[str, Any]) -> Iterator[str]:
    for part in (schema, *schema.get("$defs", {}).values()):
        yield from part.get("properties", {})


@pytest.mark.parametrize("name", FORMS)
def test_the_reference_page_describes_every_field(name: str) -> None:
    page = (path_of(name).parent / "README.md").read_text()
    words = set(re.findall(r"\w+", page))
    assert set(fields(json.loads(schema_text(name)))) - words == set()


def test_golden_files_are_what_is_written_now() -> None:
    made = dict(files())
    kept = {named(path): path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()}
    differing = [name for name, data in made.items() if kept.get(name) != data]
    assert differing == [], "python -m tests.seams.golden_files writes them; a guest must take what has changed"
    recorded = {name for name in kept if name.startswith(("samples/", "counters/"))} | {"jobs/malformed.jsonl"}
    assert kept.keys() - recorded == made.keys(), "a golden file that nothing writes"


@pytest.mark.parametrize("path", golden("jobs/*/*.json"), ids=named)
def test_a_job_passes_its_model_without_a_change(path: Path) -> None:
    text = path.read_bytes().rstrip(b"\n")
    document = json.loads(text)
    assert Job.model_validate(document).text() == text
    assert list(schema("job").iter_errors(document)) == []


def test_a_job_fits_what_the_guest_reads() -> None:
    assert JOB_BYTES == PLANNED_JOB_BYTES


def test_the_endpoint_of_a_process_is_typed() -> None:
    job = Job.model_validate_json((FOLDER / "jobs" / "linux" / "endpoint.json").read_bytes())
    endpoints = [task.options["endpoint"] for task in (*job.services, *job.steps) if task.app.startswith("mbcf-")]
    assert endpoints
    for endpoint in endpoints:
        assert Endpoint.model_validate(endpoint).model_dump(mode="json") == endpoint


def test_models_refuse_malformed_jobs() -> None:
    """But for what only the guest can tell: `"left_to": "guest"`."""
    for edit, text in edited():
        try:
            Job.model_validate_json(text)
        except ValidationError:
            assert "left_to" not in edit, edit
        else:
            assert "left_to" in edit, edit


@pytest.mark.parametrize("path", golden("fabric/*.json"), ids=named)
def test_a_fabric_configuration_passes_its_model_and_sundial_fabric(path: Path) -> None:
    text = path.read_text()
    assert json.dumps(Fabric.model_validate_json(text).document(), indent=1) + "\n" == text
    assert list(schema("fabric").iter_errors(json.loads(text))) == []
    checked = subprocess.run([SUNDIAL_FABRIC, "check", path], capture_output=True, text=True, check=False, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_kind_of_segment_has_a_golden_configuration() -> None:
    kinds = {part["kind"] for path in golden("fabric/*.json") for part in json.loads(path.read_text())["segments"]}
    shipped = (load_topology(name).segments.values() for name in names("topology"))
    assert kinds >= {segment.kind for segments in shipped for segment in segments}


@pytest.mark.parametrize(
    ("written", "damaged"),
    [('"clock": "virtual"', '"clock": "lunar"'), ('"seed": 7', '"seed": -1'), ('"seed": 7', '"seed": 7, "more": 1')],
)
def test_model_and_sundial_fabric_refuse_the_same(written: str, damaged: str, tmp_path: Path) -> None:
    good = (FOLDER / "fabric" / "hub.json").read_text()
    assert written in good
    broken = good.replace(written, damaged)
    (tmp_path / "fabric.json").write_text(broken)
    with pytest.raises(ValidationError):
        Fabric.model_validate_json(broken)
    checked = subprocess.run([SUNDIAL_FABRIC, "check", tmp_path / "fabric.json"], capture_output=True, check=False)
    assert checked.returncode == 2


COMMENTS = (FOLDER / "fates" / "comments.txt").read_text().splitlines()
"""`core/src/fate.rs` writes the same."""


@pytest.mark.parametrize("comment", COMMENTS)
def test_a_comment_passes_its_model_and_the_reader(comment: str) -> None:
    record = json.loads(comment.partition(" | ")[2])
    assert list(schema("fate").iter_errors(record)) == []
    read = read_comment(comment)
    assert read is not None
    assert (read.record, read.comment) == (record, comment)


def test_every_record_has_a_golden_comment() -> None:
    assert {type(read_comment(comment)) for comment in COMMENTS} == set(get_args(Record))


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "lost: a:eth0 to b:eth0",
        'lost: a:eth0 to b:eth1 | {"fate":"lost","from":"a:eth0","to":"b:eth0"}',
        'lost: a:eth0 to b:eth0 | {"fate":"lost","to":"b:eth0","from":"a:eth0"}',
        'lost: a:eth0 to b:eth0 | {"fate": "lost", "from": "a:eth0", "to": "b:eth0"}',
        'lost: a:eth0 to b:eth0 | {"fate":"lost","from":"a:eth0","to":"b:eth0"},{}',
        'lost: a:eth0 to b:eth0 | {"fate":"lost","from":"a:eth0","to":"b:eth0","bit":1}',
        'lost: a:eth0 to 7 | {"fate":"lost","from":"a:eth0","to":7}',
        'vanished: a:eth0 to b:eth0 | {"fate":"vanished","from":"a:eth0","to":"b:eth0"}',
        'corrupted: bit 8 of byte 0, a:e0 to b:e0 | {"fate":"corrupted","bit":8,"byte":0,"from":"a:e0","to":"b:e0"}',
        'dropped: 1 of 2 cells, CLP 1 from a:eth0 | {"fate":"dropped","rule":"CLP 1","lost_cells":1,"cells":2,'
        '"from":"a:eth0","to":"b:eth0"}',
        'collision: a:eth0, attempt 1, 4294967296 bits on the wire | {"fate":"collision","adapter":"a:eth0",'
        '"attempt":1,"bits":4294967296}',
        "x | []",
        "x | 1",
        'x | {"fate":[]}',
        'x | {"fate":{},"rule":{}}',
        "x | {",
        pytest.param("x | " + 60_000 * "[", id="deeply nested"),
    ],
)  # fmt: skip
def test_another_comment_has_no_valid_record(comment: str) -> None:
    assert read_comment(comment) is None


@pytest.mark.parametrize("path", golden("samples/*.jsonl"), ids=named)
def test_recorded_samples_pass_their_model_and_the_reader(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    rows = 0
    for line in lines:
        Line.validate_json(line)
        assert list(schema("samples").iter_errors(json.loads(line))) == []
        rows += line.startswith(b"[")
    samples = read_samples(path, scenario="golden", client=Node("client", 0, ()), names={})
    assert (samples.table.height, samples.truncated) == (rows, False)


def test_every_type_of_record_has_a_golden_line() -> None:
    lines = [json.loads(line) for path in golden("samples/*.jsonl") for line in path.read_text().splitlines()]
    recorded = {line["type"] for line in lines if isinstance(line, dict)}
    assert recorded == {"hello", "batch", "binding", "iperf3", "counters", "error", "step", "done"}
    assert any(isinstance(line, list) for line in lines)


@pytest.mark.parametrize(
    "line",
    [
        b"[0,1,2,1,0,null]",
        b"[0,1,2,2,0,null,null]",
        b'["0",1,2,1,0,null,null]',
        b'{"type":"done"}',
        b'{"type":"done","status":"0"}',
        b'{"type":"gone"}',
        b'{"type":"step","step":0,"app":"a","status":0,"more":1}',
    ],
)
def test_other_lines_are_no_samples(line: bytes) -> None:
    with pytest.raises(ValidationError):
        Line.validate_json(line)
    assert list(schema("samples").iter_errors(json.loads(line)))


@pytest.mark.parametrize("path", golden("counters/*.json"), ids=named)
def test_recorded_counters_pass_their_model(path: Path) -> None:
    document = json.loads(path.read_text())
    assert FORMS["counters"].validate_python(document)
    assert list(schema("counters").iter_errors(document)) == []


@pytest.mark.parametrize(("place", "form"), [("run", Run), ("verify", Verification)])
def test_documents_of_a_run_pass_their_models_without_a_change(place: str, form: type[Run | Verification]) -> None:
    for path in golden(f"{place}/*.json"):
        text = path.read_text()
        assert json.dumps(form.model_validate_json(text).document(), indent=1) + "\n" == text
        assert list(schema(place).iter_errors(json.loads(text))) == []


@pytest.mark.parametrize(
    "line",
    [
        {"event": "listening"},
        {"event": "done", "machine": "client", "status": 0, "at_ns": 7},
        {"event": "finished", "virtual_ns": 9},
        {"command": "stop"},
        {"command": "counters"},
        {"event": "stands", "at_ns": 7},
        {"command": "until", "at_ns": 7},
    ],
)
def test_control_lines(line: dict[str, Any]) -> None:
    assert control.Control.validate_python(line)
    assert list(schema("control").iter_errors(line)) == []
    assert list(schema("control").iter_errors({**line, "more": 1}))


def test_the_done_frame_holds_its_status() -> None:
    assert control.done_payload(1) == b"sundial-done\x01"
    assert control.done_status(b"sundial-done\x02" + bytes(33)) == 2
    assert control.done_status(control.READY) is None


def test_plans_of_shipped_scenarios_pass_the_models_without_a_change() -> None:
    for scenario in names("scenario"):
        for experiment in load_experiments(scenario, seed=1):
            plan = plan_run(experiment, PATHS)
            assert Fabric.model_validate(plan.fabric).document() == plan.fabric
            for job in plan.jobs.values():
                assert Job.model_validate_json(job.text()) == job
