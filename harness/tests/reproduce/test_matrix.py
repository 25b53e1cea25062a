# SPDX-License-Identifier: Apache-2.0
"""A matrix of runs: axes, cells, page, and what is refused. Runs are made by doors of the test."""

from __future__ import annotations

import csv
import io
import json
from contextlib import nullcontext
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.errors import BadInput, Interrupted, RunFailed
from sundial.plan.request import RunRequest, Silence
from sundial.reproduce.matrix import Axis, Cell, Matrix, axis_of_runs, label, pairs, parse_axis, to_csv, values_of
from sundial.reproduce.matrix_make import Doors, Request, axes_of, collect, make
from sundial.reproduce.matrix_page import page
from sundial.reproduce.worker import Making, OneByOne
from sundial.seams.matrix import MatrixDocument

LOSS = "segments.wan.impairments.both.loss"


class Fake:
    """Makes run directories whose verdict is by the run's name."""

    def __init__(self, bad: tuple[str, ...] = (), dead: tuple[str, ...] = ()) -> None:
        self.requests: list[RunRequest] = []
        self.bad, self.dead = bad, dead

    def run(self, request: RunRequest, progress: Any) -> Any:
        self.requests.append(request)
        assert request.out is not None
        request.out.mkdir(parents=True)
        (request.out / "run.json").write_text(json.dumps({"status": "complete"}))
        if any(word in request.out.name for word in self.dead):
            raise RunFailed("its job failed", machine="client")

    def verify(self, path: Path) -> dict[str, Any]:
        bad = any(word in path.name for word in self.bad)
        document = {
            "verdict": "fail" if bad else "pass",
            "calls": 7,
            "mismatches": 3 * bad,
            "retransmissions": {"udp": 2, "tcp": 1},
        }
        (path / "verify.json").write_text(json.dumps(document))
        return document

    def doors(self) -> Doors:
        def report(path: Path) -> None:
            (path / "report.html").write_text("report")

        def first(name: str, document: Any) -> str | None:
            return f"first of {name}" if document.get("verdict") == "fail" else None

        maker = OneByOne(Making(self.run, self.verify, report))
        return Doors(lambda progress: nullcontext(maker), lambda path: ("5 us", 5.0), first)


def request(folder: Path, rows: str, columns: str, **changes: Any) -> Request:
    plain: dict[str, Any] = {
        "scenario": "loss", "rows": parse_axis(rows, "--rows"), "columns": parse_axis(columns, "--columns"),
        "overrides": (), "topology": None, "scale": None, "seed": None, "measure": "p50(rtt_us)",
        "captures": folder, "out": None, "connect": "embedded", "recipe": None, "skip_refused": False,
        "command": ("./sundial", "matrix", "loss"),
    }  # fmt: skip
    return Request(**{**plain, **changes})


def test_each_cell_is_a_run_with_both_values(tmp_path: Path) -> None:
    fake = Fake()
    folder, matrix = make(request(tmp_path, f"{LOSS}=0 %,5 %", "sizes=64,[1024, 4096]".replace("64,[", "[64, [") + "]"),
                          fake.doors(), Silence())  # fmt: skip
    assert folder == tmp_path / "matrix-loss-001"
    assert matrix.rows.labels == ("0 %", "5 %")
    assert matrix.columns.labels == ("64", "1024, 4096")
    asked = [
        (str(each.experiment.topology_json()["segments"]["wan"]["impairments"]["both"]["loss"]),
         each.experiment.workloads[0].sizes)
        for each in fake.requests
    ]  # fmt: skip
    assert asked == [("0 %", (64,)), ("0 %", (1024, 4096)), ("5 %", (64,)), ("5 %", (1024, 4096))]
    assert fake.requests[3].command[:5] == ("sundial", "run", "loss", "--set", f'{LOSS}="5 %"')
    assert {cell.verdict for cell in matrix.cells} == {"pass"}
    assert (matrix.cells[0].figure, matrix.cells[0].retransmissions, matrix.status) == ("5 us", 3, 0)
    document = json.loads((folder / "matrix.json").read_text())
    assert MatrixDocument.model_validate(document).model_dump(mode="json") == document
    assert [cell["run"] for cell in document["cells"]][3] == "runs/02-02-5-pct-1024-4096"
    table = list(csv.DictReader(io.StringIO((folder / "matrix.csv").read_text())))
    assert [row["column"] for row in table] == ["64", "1024, 4096"] * 2


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "circle", "path", "br"):
            self.open.append(tag)
        self.links += [str(value) for name, value in attrs if name == "href"]

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("circle", "path"):
            assert self.open.pop() == tag


def test_the_page_links_each_report_and_is_well_formed(tmp_path: Path) -> None:
    folder, _ = make(request(tmp_path, f"{LOSS}=0 %,5 %", "calls=1,2"), Fake(bad=("5-pct",)).doors(), Silence())
    text = (folder / "index.html").read_text()
    read = Links()
    read.feed(text)
    assert read.open == []
    assert [link for link in read.links if not (folder / link).is_file()] == []
    assert len([link for link in read.links if link.endswith("report.html")]) == 4
    assert "4 cells: 2 verified, 2 with mismatches." in text
    assert "first of runs/02-01-5-pct-1" in text


def test_an_error_names_the_axis(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        make(request(tmp_path, f"{LOSS}=0 %,101 %", "calls=1"), Fake().doors(), Silence())
    assert str(caught.value).startswith(f"--rows: {LOSS}: '101 %' is out of range")
    assert "the cell is 101 % x 1" in str(caught.value.hint)
    with pytest.raises(BadInput, match="there is no scenario 'nosuch'"):
        make(request(tmp_path, "calls=1", "sizes=1", scenario="nosuch"), Fake().doors(), Silence())


def test_a_page_escapes_what_it_shows() -> None:
    axis = Axis("<k>", ("1",), ("<b>",))
    cells = (Cell("<b>", "<b>", "fail", first='"><script>'),)
    text = page(Matrix(axis, axis, cells, "<s>", "<m>", ("<c>",)), {})
    assert "<script>" not in text.replace("&lt;", "")
    assert "<b>" not in text


def test_an_interrupted_matrix_has_what_was_made(tmp_path: Path) -> None:
    class Stopped(Fake):
        def run(self, request: RunRequest, progress: Any) -> Any:
            if len(self.requests) == 2:
                raise Interrupted
            super().run(request, progress)

    with pytest.raises(Interrupted):
        make(request(tmp_path, f"{LOSS}=0 %,5 %", "calls=1,2"), Stopped().doors(), Silence())
    document = json.loads((tmp_path / "matrix-loss-001" / "matrix.json").read_text())
    assert [cell["verdict"] for cell in document["cells"]] == ["pass", "pass", "missing", "missing"]
    assert [path.name for path in tmp_path.iterdir()] == ["matrix-loss-001"]


@pytest.mark.parametrize(("bad", "dead", "status"), [((), (), 0), (("01-01",), (), 1), (("01-01",), ("02-01",), 4)])
def test_the_status_is_the_worst(tmp_path: Path, bad: Any, dead: Any, status: int) -> None:
    _, matrix = make(request(tmp_path, f"{LOSS}=0 %,5 %", "calls=1,2"), Fake(bad, dead).doors(), Silence())
    assert matrix.status == status
    if dead:
        failed = matrix.at("5 %", "1")
        assert (failed.verdict, failed.first) == ("failed", "client: its job failed")
        assert matrix.at("5 %", "2").verdict == "pass"


def test_values_that_do_not_go_together_are_refused_or_empty(tmp_path: Path) -> None:
    fake = Fake()
    axes = (f"{LOSS}=0 %,5 %", "transports=udp,vrpc")
    with pytest.raises(BadInput) as caught:
        make(request(tmp_path, *axes), fake.doors(), Silence())
    assert "the cell is 0 % x vrpc; --skip-refused leaves such cells empty" in str(caught.value.hint)
    assert (fake.requests, list(tmp_path.iterdir())) == ([], [])
    _, matrix = make(request(tmp_path, *axes, skip_refused=True), fake.doors(), Silence())
    assert [cell.verdict for cell in matrix.cells] == ["pass", "refused", "pass", "refused"]
    assert matrix.at("0 %", "vrpc").first
    assert matrix.status == 0


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        ("nothing=1,2", "calls=1,2", "nothing: unknown key"),
        ("segments.lan.rate=1 kbit/s", "calls=1", "there is no segment 'lan'"),
        ("calls=0,1", "sizes=64", "0 is out of range"),
        ("sizes=64", "calls=1", "the scenario varies segments.wan.impairments.both.loss"),
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_what_no_cell_can_have_is_refused(tmp_path: Path, rows: str, columns: str, words: str, skip: bool) -> None:
    fake = Fake()
    if skip and rows.startswith("calls"):
        return  # one of its cells is possible
    with pytest.raises(BadInput, match=words):
        make(request(tmp_path, rows, columns, skip_refused=skip), fake.doors(), Silence())
    assert (fake.requests, list(tmp_path.iterdir())) == ([], [])


SCENARIO = """
description: d
topology: two-hosts-10base-t
vary:
  matrix: {transports: [[udp], [tcp]], calls: [1, 2, 3]}
  exclude: [{transports: [tcp], calls: 3}]
workloads: [{app: raw, sizes: [64]}]
"""


def test_the_axes_may_be_those_of_the_scenario(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SCENARIO)
    rows, columns = axes_of(str(path))
    assert (rows.labels, columns.labels) == (("udp", "tcp"), ("1", "2", "3"))
    fake = Fake()
    asked = replace(request(tmp_path, "a=1", "b=1"), scenario=str(path), rows=rows, columns=columns)
    _, matrix = make(asked, fake.doors(), Silence())
    assert [cell.verdict for cell in matrix.cells] == ["pass"] * 5 + ["refused"]
    assert matrix.at("tcp", "3").first == "excluded by the scenario"
    assert fake.requests[3].experiment.workloads[0].transports == ("tcp",)
    for text, words in (("loss", "has no vary.matrix"), (SCENARIO.replace(", calls: [1, 2, 3]", ""), "has 1 fields")):
        path.write_text(text.replace("  exclude: [{transports: [tcp], calls: 3}]\n", ""))
        with pytest.raises(BadInput, match=words):
            axes_of(str(path) if "vary" in text else "loss")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sizes", "is not an axis"),
        ("sizes=", "is not an axis"),
        ("=64", "is not an axis"),
        ("sizes=[]", "has no values"),
        ("sizes=64,64", "'64' is there twice"),
        ("sizes=[64, '64']", "'64' is there twice"),
        ("sizes=[64", "is not YAML"),
    ],
)
def test_an_axis_of_another_form_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        parse_axis(text, "--rows")


def test_at_most_256_cells() -> None:
    sixteen = parse_axis(f"a={','.join(map(str, range(16)))}", "--rows")
    assert len(pairs(sixteen, Axis("b", sixteen.values, sixteen.labels))) == 256
    more = Axis("b", (*sixteen.values, "16"), (*sixteen.labels, "16"))
    with pytest.raises(BadInput, match="272 cells; allowed: up to 256"):
        pairs(sixteen, more)
    with pytest.raises(BadInput, match="a is on both axes"):
        pairs(sixteen, sixteen)


@given(
    st.lists(
        st.integers(-(10**9), 10**9) | st.sampled_from([62.5, 0.25]) | st.sampled_from(["udp", "1 %", "a b"]),
        min_size=1,
        max_size=5,
        unique_by=str,
    )
)
def test_a_list_and_its_values_with_commas_are_the_same_axis(values: list[Any]) -> None:
    assert parse_axis(f"k={json.dumps(values)}", "--rows") == parse_axis(f"k={','.join(map(str, values))}", "--rows")
    assert parse_axis(f"k={json.dumps(values)}", "--rows").labels == tuple(map(label, values))


# ---- runs that are there ----


def written(folder: Path, name: str, mtu: int, transports: list[str], **changes: Any) -> Path:
    path = folder / name
    path.mkdir()
    document = {
        "status": "complete", "seed": 1,
        "scenario": {"name": "s", "workloads": [{"app": "raw", "transports": transports}]},
        "topology": {"name": "t", "defaults": {"mtu": mtu}}, **changes,
    }  # fmt: skip
    (path / "run.json").write_text(json.dumps(document))
    Fake(bad=("bad",)).verify(path)
    (path / "report.html").write_text("report")
    return path


def test_runs_that_are_there_are_placed_by_what_they_say(tmp_path: Path) -> None:
    runs = {
        "a": written(tmp_path, "a", 1500, ["udp"]),
        "b bad": written(tmp_path, "b bad", 576, ["udp"]),
        "c": written(tmp_path, "c", 576, ["tcp"], status="failed", error={"message": "client: no"}),
    }
    asked = request(tmp_path, "x=1", "y=1", out=tmp_path / "m")
    folder, matrix = collect(runs, "defaults.mtu", "transports", asked, Fake().doors(), Silence())
    assert (matrix.rows.labels, matrix.columns.labels) == (("576", "1500"), ("tcp", "udp"))
    assert [cell.verdict for cell in matrix.cells] == ["failed", "fail", "missing", "pass"]
    assert (matrix.status, matrix.scenario) == (4, "s")
    read = Links()
    read.feed((folder / "index.html").read_text())
    assert "../b%20bad/report.html" in read.links


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        ("nothing", "seed", "no run has this field"),
        ("seed", "topology", "a and b are both 1 x t"),
        ("seed", "status", "a and b are both 1 x complete"),
    ],
)
def test_runs_that_have_no_place_are_refused(tmp_path: Path, rows: str, columns: str, words: str) -> None:
    runs = {name: written(tmp_path, name, 1500, ["udp"]) for name in ("a", "b")}
    asked = request(tmp_path, "x=1", "y=1", out=tmp_path / "m")
    with pytest.raises(BadInput, match=words):
        collect(runs, rows, columns, asked, Fake().doors(), Silence())
    assert not (tmp_path / "m").exists()


def test_a_run_without_a_verdict_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a", 1500, ["udp"])
    (path / "verify.json").unlink()
    asked = request(tmp_path, "x=1", "y=1", out=tmp_path / "m")
    with pytest.raises(BadInput, match="a was not verified"):
        collect({"a": path}, "seed", "topology", asked, Fake().doors(), Silence())


def test_values_of_workloads_that_differ_have_no_place() -> None:
    run = {"scenario": {"workloads": [{"app": "raw", "sizes": [1]}, {"app": "sunrpc", "sizes": [1]}]}}
    assert values_of(run, "sizes") == {"1"}
    assert values_of(run, "workloads.1.app") == {"sunrpc"}
    with pytest.raises(BadInput, match="workloads of a differ in it"):
        axis_of_runs("app", "--rows", {"a": run})


def test_the_csv_quotes() -> None:
    axis = Axis("k", ("1",), ('a,"b',))
    text = to_csv(Matrix(axis, axis, (Cell('a,"b', 'a,"b', "missing"),), "s", "m", ()))
    assert next(csv.DictReader(io.StringIO(text)))["row"] == 'a,"b'
