# SPDX-License-Identifier: Apache-2.0
"""A sweep from its file to its folder, with workers that die and hosts that fail; no machine is booted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.errors import BadInput, HostLacks
from sundial.machines.waiting import wait_until
from sundial.plan.request import Silence
from sundial.reproduce.workers import Workers
from sundial.sweep.perform import Swept
from tests.sweep import side
from tests.sweep.bench import InProcess, sweeping
from tests.sweep.side import FOLDER, MAKING, Known

HARNESS = Path(__file__).resolve().parents[2]
METRICS = {"tcp": "mean(rtt_ms) where transport = tcp", "udp": "mean(rtt_ms) where transport = udp"}
GRID: dict[str, Any] = {
    "topology": "two-hosts-wan",
    "axes": {"loss": {"key": "loss", "values": ["0 %", "5 %"]}},
    "seeds": "1..3",
    "metrics": METRICS,
}
Ask = Callable[..., None]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """`ask("die-2")`: what a run does."""
    asked = tmp_path / "asked"
    asked.mkdir()
    monkeypatch.setenv(FOLDER, str(asked))
    return lambda *words: [(asked / word).touch() for word in words] and None


def perform(folder: Path, data: dict[str, Any] = GRID, known: Known | None = None, **changes: Any) -> Swept:
    return sweeping(folder, data, known, **changes).perform(MAKING, Silence(), InProcess)


def table(swept: Swept) -> pl.DataFrame:
    found = pl.read_parquet(swept.folder / "runs.parquet")
    return found.select(name for name in found.columns if not name.startswith("host_"))


def test_a_grid_is_made_once_and_its_tables_do_not_depend_on_order(tmp_path: Path, ask: Ask) -> None:
    swept = perform(tmp_path)
    assert (swept.status, swept.counts.made, swept.checked, swept.to_check) == (0, 6, 1, 1)
    again = perform(tmp_path)
    assert (again.folder, again.counts.made, again.counts.had, again.checked) == (swept.folder, 0, 6, 1)
    (tmp_path / "other").mkdir()
    one = perform(tmp_path / "other", slots=1)
    assert table(one).equals(table(swept))
    calls = [pl.read_parquet(each.folder / "calls.parquet") for each in (one, swept)]
    assert calls[0].equals(calls[1])
    assert calls[0].height == 6 * 2 * side.CALLS
    runs = table(swept)
    assert runs["axis_loss"].to_list() == [0.0] * 3 + [0.05] * 3
    assert runs["seed"].to_list() == [1, 2, 3] * 2
    assert runs["metric_udp"].min() == pytest.approx(20.05, abs=0.05)  # type: ignore[arg-type]
    page = (swept.folder / "index.html").read_text()
    for row in swept.rows:
        assert row.key in page
    assert "by-loss-ms" in page


def test_captures_are_dropped_and_made_again_on_demand(tmp_path: Path, ask: Ask) -> None:
    ask("bad-2")
    swept = perform(tmp_path)
    assert swept.status == 1
    kept = {row.point.seed: row.kept for row in swept.rows}
    assert [kept[seed].has_captures for seed in (1, 2, 3)] == [False, True, False]
    assert (kept[2].run / "report.html").is_file()
    found = sweeping(tmp_path, GRID).show(0, MAKING, Silence())
    assert (found["captures"], found["differs"], found["again"] > 0) == (True, "", True)
    assert (Path(found["path"]) / "wire" / "wan.pcapng").is_file()


def test_a_run_that_is_made_twice_with_other_bytes_is_an_alarm(tmp_path: Path, ask: Ask) -> None:
    first = perform(tmp_path)
    checked = next(row for row in first.rows if row.kept.again)
    (place,) = tmp_path.glob(f"store/results/*/{checked.key}/again")
    next(place.iterdir()).unlink()
    ask(f"differ-{checked.point.seed}")
    swept = perform(tmp_path)
    assert swept.status == 1
    (row,) = swept.having("differs")
    assert (row.key, row.first) == (checked.key, "wire/wan.pcapng")
    assert set(row.metrics.values()) == {None}, "a run that differs is not averaged"
    assert "made twice with different bytes" in (swept.folder / "index.html").read_text()
    assert perform(tmp_path).status == 1, "the alarm stays until the result is removed"


@pytest.mark.parametrize("pool", [InProcess, Workers])
def test_workers_that_die_lose_nothing(tmp_path: Path, ask: Ask, pool: Any) -> None:
    ask("die-1", "die-2", "stop-3")
    swept = sweeping(tmp_path, GRID).perform(MAKING, Silence(), pool)
    assert (swept.status, swept.counts.made, swept.counts.lost) == (0, 6, 3)
    assert list((tmp_path / "store" / "making").iterdir()) == []


def test_a_run_that_fails_by_itself_is_kept_and_one_that_the_host_fails_is_not(tmp_path: Path, ask: Ask) -> None:
    ask("panic-2", "lie-3")
    data = {**GRID, "retries": 0, "check": "0 %"}
    swept = perform(tmp_path, data)
    assert swept.status == 4
    failed = {(row.point.seed, row.first) for row in swept.having("failed")}
    assert failed == {(2, "server: its kernel panicked"), (3, "client: samples.jsonl is malformed")}
    assert perform(tmp_path, data).counts.made == 0
    ask("stop-3")
    (tmp_path / "b").mkdir()
    other = perform(tmp_path / "b", data)
    assert (other.status, len(other.given_up)) == (4, 1)
    assert perform(tmp_path / "b", data).given_up == {}


def test_a_host_that_brings_nothing_to_its_end_ends_the_sweep(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("lack-2")
    with pytest.raises(HostLacks, match="no memory left"):
        perform(tmp_path)
    assert json.loads(next(tmp_path.glob("sweep-mine-*/sweep.json")).read_text())["result"]["status"] == 0
    assert perform(tmp_path).status == 0


def test_another_verifier_makes_runs_again_and_compares_them(tmp_path: Path, ask: Ask) -> None:
    perform(tmp_path, {**GRID, "check": "0 %"})
    swept = perform(tmp_path, {**GRID, "check": "0 %"}, Known("v2"))
    assert (swept.status, swept.counts.made) == (0, 6)
    assert all(row.kept.again == 1 for row in swept.rows)


def test_bounds_of_the_sweep_do_not_change_the_runs(tmp_path: Path, ask: Ask) -> None:
    perform(tmp_path)
    swept = perform(tmp_path, {**GRID, "expect": ["max(rtt_ms) < 100 where transport = udp"]})
    assert (swept.status, swept.counts.made) == (1, 0)
    assert {row.first.partition(": ")[0] for row in swept.having("fail") if row.first} == {
        "max(rtt_ms) < 100 where transport = udp"
    }


def test_seeds_are_added_until_the_interval_is_narrow(tmp_path: Path, ask: Ask) -> None:
    until = {"metric": "udp", "halfwidth": "0.1 %", "least": 2, "most": 8}
    axes = {"loss": {"key": "loss", "values": ["0 %", "20 %"]}}
    swept = perform(tmp_path, {**GRID, "axes": axes, "until": until})
    counts = table(swept).group_by("axis_loss").len().sort("axis_loss")["len"].to_list()
    assert counts[0] < 8
    assert counts[1] == 8


def test_a_threshold_is_bisected_and_said_to_be_undecided_where_seeds_do_not_tell(tmp_path: Path, ask: Ask) -> None:
    threshold = {"axis": "loss", "metric": "tcp", "minus": "udp", "within": "5 %"}
    data = {**GRID, "axes": {"loss": {"key": "loss", "from": "0 %", "to": "40 %"}}, "seeds": "1..16"}
    swept = perform(tmp_path, {**data, "threshold": threshold})
    (found,) = swept.crossings
    assert found is not None
    low, high = (float(each.removesuffix(" %")) for each in (found.low, found.high))
    assert 0 <= low < high <= 40
    assert ("undecided" in found.words) == (not found.is_certain)
    level = {"axis": "loss", "metric": "udp", "level": 19}
    (tmp_path / "b").mkdir()
    (other,) = perform(tmp_path / "b", {**data, "threshold": level}).crossings
    assert other is not None
    assert other.words == "above the level at both ends"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gird": 1}, "mine.yaml:1: gird: unknown field"),
        ({"axes": {"loss": {"key": "loss", "values": ["0 %", "105 %"]}}}, "'105 %' is out of range"),
        ({"axes": {"loss": {"key": "lost", "values": [1]}}}, "lost: unknown key"),
        ({"scenario": "quickstart", "topology": "two-hosts-netem"}, "loss is a field of 2 segments; allowed:"),
        ({"scenario": "quickstart", "topology": "two-hosts-10base-t"}, "loss is a field of 0 segments"),
        ({"design": "zip", "axes": {"a": {"key": "calls", "values": [1]}, "b": {"key": "sizes", "values": [1, 2]}}},
         "zip needs axes of one length: a has 1, b has 2"),
        ({"design": "halton"}, "count is missing"),
        ({"axes": {"loss": {"key": "loss", "from": "0 %", "to": "5 %"}}}, "design grid needs values"),
        ({"axes": {"loss": {"key": "loss", "from": "0 %", "to": "5 ms"}}}, "0 % and 5 ms are no range"),
        ({"axes": {"loss": {"key": "loss", "from": "0 %"}}}, "has one end of a range"),
        ({"metrics": {"x": "p50(rtt)"}}, "there is no column 'rtt'"),
        ({"until": {"metric": "p99"}}, "until.metric: there is no 'p99'; allowed: tcp, udp"),
        ({"threshold": {"axis": "loss", "metric": "tcp"}}, "threshold.axis: there is no 'loss'"),
        ({"seeds": "5..1"}, "'5..1' is out of range"),
        ({"points": [{"los": "1 %"}]}, "points.0: has los; allowed: loss"),
        ({"axes": {}}, "the scenario varies segments.wan.impairments.both.loss"),
        ({"set": {"clock": "real"}}, "runs under the real clock do not repeat"),
        ({"scenario": "los"}, "there is no scenario 'los'"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_started(
    tmp_path: Path, ask: Ask, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput) as caught:
        perform(tmp_path, {**GRID, **changes})
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert not list(tmp_path.glob("sweep-*"))


def test_a_sweep_has_one_command_at_a_time_and_one_folder(tmp_path: Path, ask: Ask) -> None:
    first = sweeping(tmp_path, GRID)
    with first._owned(), pytest.raises(BadInput, match="another command makes"):
        perform(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(BadInput, match="is not a sweep"):
        perform(tmp_path, out=tmp_path / "mine")


def test_a_killed_command_goes_on_where_it_was(tmp_path: Path, ask: Ask) -> None:
    """kill -9 of the command: its workers end, and the same command makes the rest."""
    ask("stay-3")
    program = (
        "import sys, pathlib; from tests.sweep.test_perform import perform;perform(pathlib.Path(sys.argv[1]), slots=1)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=HARNESS)
    try:
        wait_until(lambda: not (tmp_path / "asked" / "stay-3").exists(), seconds=300, what="the third run")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    swept = perform(tmp_path)
    assert (swept.status, swept.counts.made, swept.counts.had) == (0, 4, 2)
    wait_until(lambda: sweeping(tmp_path, GRID).store.tidy() == 0, seconds=300, what="an empty folder")
    assert list((tmp_path / "store" / "making").iterdir()) == []


def test_known_results_open_without_a_look_at_each_run(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = perform(tmp_path, GRID)
    identified: list[int] = []
    monkeypatch.setattr(Known, "of", lambda self, each, of=Known.of: identified.append(each.seed) or of(self, each))
    monkeypatch.setattr("sundial.sweep.perform.measured_all", None)
    again = perform(tmp_path, GRID)
    assert identified == [1, 1], "of each point, for any number of seeds"
    assert (again.counts.had, again.rows) == (first.counts.had + first.counts.made, first.rows)
    monkeypatch.undo()
    monkeypatch.setenv(FOLDER, str(tmp_path / "asked"))
    (first.folder / "runs.parquet").unlink()
    perform(tmp_path, GRID)
    assert (first.folder / "runs.parquet").is_file()
    (first.folder / "memo.json").write_text("[")
    assert perform(tmp_path, GRID).rows == first.rows
