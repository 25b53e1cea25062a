# SPDX-License-Identifier: Apache-2.0
"""A whole reproduction without machines: which runs, which numbers, what is said of them."""

import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from sundial.errors import BadInput
from sundial.papers.kamesawa98.results import Results
from sundial.report.plotting import Pictures, pictures
from sundial.reproduce.cells import of_table
from sundial.reproduce.declared import DeclaredOutcome
from sundial.reproduce.paper import reproduction
from sundial.reproduce.perform import Reproduced, Request, perform
from sundial.reproduce.runs import Bench, Spec
from sundial.reproduce.worker import OneByOne
from tests.reproduce.house import House
from tests.run.stage import Words


def reproduced(folder: Path, house: House, words: Words | None = None) -> Reproduced:
    request = Request(
        "kamesawa98", "quick", 7, folder, folder / "made", "embedded", ("sundial", "reproduce", "kamesawa98")
    )
    with pictures(Pictures(png=False)):
        return perform(request, house.doors(), words or Words())


def results_of(made: Reproduced) -> Results:
    assert isinstance(made.outcome, DeclaredOutcome)
    assert isinstance(made.outcome.results, Results)
    return made.outcome.results


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reproduced, House, Words]:
    house, words = House(), Words()
    return reproduced(tmp_path_factory.mktemp("captures"), house, words), house, words


def test_the_machine_model_is_the_nearest_to_the_reference(done: tuple[Reproduced, House, Words]) -> None:
    results = results_of(done[0])
    assert results.best.mips == Decimal("62.5")
    assert [f"{tried.mips:f}" for tried in results.tried] == ["125", "62.5", "31.25"]
    assert results.best.distance == min(tried.distance for tried in results.tried)
    fact = "62.5 mips put Linux nearest to the paper's reference"
    assert done[0].outcome.facts() == [("machine", fact)]


def test_every_cell_of_every_table_is_measured_and_behind_it_is_a_run(done: tuple[Reproduced, House, Words]) -> None:
    made = done[0]
    for table in results_of(made).paper.tables:
        for size, column, _, cell in of_table(table, results_of(made).cells):
            assert cell is not None, (table.number, column.key, size)
            assert cell.value is not None
            assert (made.folder / "runs" / cell.run / "run.json").is_file()
    assert done[1].asked == done[1].reported == [run.name for run in made.made]


def test_a_call_falls_into_wire_and_software_exactly(done: tuple[Reproduced, House, Words]) -> None:
    cell = results_of(done[0]).cells[4, "sss-mbcf3", 64]
    assert cell.parts is not None
    length = 14 + 48 + 64
    assert cell.parts.wire_bytes == 2 * (length + 12)
    assert cell.parts.wire_ns == 2 * ((length + 12) * 80 + 1000)
    assert (cell.parts.client_ns, cell.parts.server_ns) == (1500 * 16, 1000 * 16)
    assert cell.instructions == 2500
    assert cell.value == cell.parts.total_ns / 1000


def test_a_stream_is_held_against_the_wire(done: tuple[Reproduced, House, Words]) -> None:
    cell = results_of(done[0]).cells[2, "stream", 1408]
    assert cell.most == pytest.approx(1408 / ((1408 + 62 + 24) * 0.08))
    # Cables and not gaps lie between these frames.
    assert cell.value == pytest.approx(1408 / ((1408 + 62 + 12) * 0.08 + 1))


def test_what_is_written(done: tuple[Reproduced, House, Words]) -> None:
    folder = done[0].folder
    page = (folder / "report.html").read_text()
    for word in (
        "Table 1",
        "Table 4",
        "62.5 million instructions",
        "ns a byte as printed",
        'href="runs/sss-rpc-100base-tx/wire/lan.pcapng"',
    ):
        assert word in page
    summary = pl.read_csv(folder / "summary.csv", schema_overrides={"of": pl.String})
    cell = summary.filter(experiment="table 4", system="SSS-CORE MBCF", of="0")
    assert cell["printed"][0] == 338
    assert cell["ratio"][0] == pytest.approx(cell["measured"][0] / 338, abs=1e-6)
    faults = pl.read_csv(folder / "faults.csv")
    assert faults.filter(semantics="exactly_once")["doubled"].sum() == 0
    assert {path.stem for path in (folder / "figures").glob("*.svg")} >= {"table-1", "table-2", "table-3", "table-4"}
    index = json.loads((folder / "reproduce.json").read_text())
    assert (index["status"], index["mips"]) == ("complete", "62.5")


def test_progress_says_which_run_of_how_many(done: tuple[Reproduced, House, Words]) -> None:
    assert any(line.startswith("1/") and "linux-udp-10base-t" in line for line in done[2].said)


def test_each_run_is_a_scenario_that_a_user_can_run(done: tuple[Reproduced, House, Words]) -> None:
    folder = done[0].folder
    for run in done[0].made:
        assert json.loads((folder / "scenarios" / f"{run.name}.yaml").read_text())["seed"] == 7


def test_a_run_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    house = House(broken=frozenset({"sss-rpc-10base-t"}), mismatched=frozenset({"remote-write"}))
    made = reproduced(tmp_path, house)
    assert [run.name for run in made.failed] == ["sss-rpc-10base-t"]
    assert [run.name for run in made.mismatched] == ["remote-write"]
    assert "PANIC" in made.failed[0].error
    assert (3, "sss-udp", 0) not in results_of(made).cells
    assert (4, "sss-udp", 0) in results_of(made).cells
    page = (made.folder / "report.html").read_text()
    assert "2 of " in page
    assert "its kernel panicked: PANIC: no memory" in page


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no paper 'birrell84'; allowed: bilas97, kamesawa98"):
        reproduction("birrell84")
    (tmp_path / "made").mkdir()
    with pytest.raises(BadInput, match=r"--out: .*made exists; allowed: a directory that does not exist yet"):
        reproduced(tmp_path, House())


def test_what_only_some_runs_boot_is_built_and_copied_once(tmp_path: Path) -> None:
    house = House(broken=frozenset({"one", "other"}))
    bench = Bench(tmp_path, 7, "embedded", house.doors(), Words(), OneByOne(house.making))
    bench.pin_images()
    assert house.pinned == []
    boots = ("defaults.image=linux-python",)
    for name in ("one", "other"):
        spec = Spec(name, "gRPC", "two-hosts-10base-t", [{"app": "grpc", "functions": ["void"]}], boots)
        assert bench.make(spec, Decimal(125)) is None
    assert house.pinned == [["linux-python"]]
    assert bench.images.keys() == {"linux", "ssscore", "linux-python"}
