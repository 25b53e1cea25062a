# SPDX-License-Identifier: Apache-2.0
"""A whole reproduction of kedziera98 without machines: which runs at which speeds, and what is written."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.errors import RunFailed
from sundial.model.experiment import Experiment
from sundial.papers.kedziera98.experiments import FITS, fit_machine
from sundial.papers.kedziera98.paper import Kedziera98, Value
from sundial.papers.kedziera98.reproduce import KIND
from sundial.papers.kedziera98.results import Results
from sundial.papers.kedziera98.statements import STATEMENTS
from sundial.plan.request import Silence
from sundial.report.plotting import Pictures, pictures
from sundial.reproduce.declared import DeclaredOutcome
from sundial.reproduce.perform import Reproduced, Request, perform
from sundial.reproduce.runs import Bench
from sundial.reproduce.worker import OneByOne
from tests.reproduce.house import House

CURVES = ["fig1-atm", "fig1-linux-sun", "fig1-linux-sun-swapped", "fig3-tcp", "fig3-udp", "fig4-ethernet"]
RUNS = [*CURVES, "raw-tcp", "raw-udp", "pc-pc", "iperf3-atm", "iperf3-linux-sun", "lane-control"]
COMMAND = ("sundial", "reproduce", "kedziera98")


def reproduced(folder: Path, house: House, scale: str = "smoke") -> Reproduced:
    request = Request("kedziera98", scale, 3, folder, folder / "made", "embedded", COMMAND)
    return perform(request, house.doors(), Silence())


def outcome(made: Reproduced) -> DeclaredOutcome[Kedziera98, Results]:
    assert isinstance(made.outcome, DeclaredOutcome)
    return made.outcome


def run_json(made: Reproduced, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made.folder / "runs" / name / "run.json").read_text())
    return found


def job(made: Reproduced, run: str, machine: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made.folder / "runs" / run / "nodes" / machine / "job.json").read_text())
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    return reproduced(tmp_path_factory.mktemp("captures"), House())


def test_three_speeds_are_fitted_one_after_the_other_and_then_all_is_run(done: Reproduced) -> None:
    names = [made.name for made in done.made]
    assert names[-len(RUNS) :] == RUNS
    assert names[: -len(RUNS)] == ["fit-sun-62-5-mips", "fit-solaris-pc-7-8125-mips", "fit-linux-pc-7-8125-mips"]
    assert "At this scale no other speeds were tried." in (done.folder / "report.html").read_text()


def test_a_speed_is_searched_for_by_what_the_paper_prints(tmp_path: Path) -> None:
    # The fakes need 33,000 instructions and two frames for a call, and pause for 100 us between two calls.
    made = House()
    bench = Bench(tmp_path, 1, "embedded", made.doors(), Silence(), OneByOne(made.making))
    bench.images = {"linux": {}}
    (tmp_path / ".images").mkdir()
    paper = KIND.paper()
    extent = paper.scales["smoke"].model_copy(update={"search": True})
    fit = fit_machine(Results(paper, "smoke"), bench, extent, {}, *FITS[0])
    # 2 * 8192 bytes at 7 MB/s.
    assert fit.printed_us == pytest.approx(2340.57, abs=0.01)
    assert fit.mips == Decimal("31.25")
    assert [tried.mips for tried in fit.tried] == [Decimal(text) for text in ("62.5", "31.25", "15.625")]
    (measured,) = fit.best.measured.values()
    assert measured == pytest.approx(2 * ((8192 + 62 + 12) * 0.08 + 1) + 33_000 * 0.032 + 100 / 2)
    assert fit.left_pct == pytest.approx(100 * (measured / fit.printed_us - 1))
    assert made.asked == ["fit-sun-62-5-mips", "fit-sun-31-25-mips", "fit-sun-15-625-mips"]


def experiments_at(folder: Path, scale: str) -> dict[str, Experiment]:
    """What would be run; only the speeds are measured."""
    house = House(broken=frozenset(RUNS))
    reproduced(folder, house, scale)
    return {name: request.experiment for name, request in zip(house.asked, house.requests, strict=True)}


def test_scale_paper_has_the_papers_sizes_calls_and_series(tmp_path: Path) -> None:
    experiment = experiments_at(tmp_path, "paper")["fig1-atm"]
    (short, long) = experiment.scenario_json()["workloads"]
    assert experiment.topology_json()["segments"]["elan"]["capture"]["cells"] is False
    assert [*expanded(short), *expanded(long)] == list(range(16, 8193, 16))
    assert (expanded(short)[-1], short["calls"], long["calls"]) == (2032, 3000, 100)
    assert (short["series"], short["order"], short["connection"]) == (10, "seeded", "per-size")


def test_scale_quick_has_every_packet_edge_and_cells(tmp_path: Path) -> None:
    made = experiments_at(tmp_path, "quick")
    (workload,) = made["fig1-linux-sun"].scenario_json()["workloads"]
    sizes = expanded(workload)
    assert {*range(64, 8193, 64), *range(1024, 1537, 16), 3952, 3968, 5392, 5408} <= set(sizes)
    # First size with one more segment in the call (PROTOCOLS.md, section 1: MTU 1500, timestamps), and beside it.
    assert {1400, 1401, 1416, 1417} <= set(sizes)
    assert (workload["calls"], workload["series"]) == (3, 3)
    assert made["fig1-atm"].topology_json()["segments"]["elan"]["capture"]["cells"] is True


def expanded(workload: dict[str, Any]) -> list[int]:
    """Its sizes, ranges written out."""
    found: list[int] = []
    for item in workload["sizes"]:
        parts = [int(part) for part in str(item).split(":")]
        found += parts if len(parts) == 1 else range(parts[0], parts[1] + 1, parts[2])
    return found


def test_every_number_of_the_text_is_judged() -> None:
    paper = KIND.paper()
    assert {value.statement for value in paper.values} <= {statement.id for statement in STATEMENTS}
    assert paper.tables == ()
    assert [paper.value(name).text for name in ("atm", "linux-tcp", "raw-udp")] == [
        "to 7 MB/s", "above 500 kB/s", "1.4 to 4 times",
    ]  # fmt: skip


@pytest.mark.parametrize(("number", "kind"), [(3.0, "range"), ((3.0, 4.0), "to")])
def test_a_range_has_two_numbers(number: float | tuple[float, float], kind: str) -> None:
    with pytest.raises(ValueError, match="a range has two numbers, everything else has one"):
        Value.model_validate(
            {"id": "x", "statement": "A1", "quantity": "y", "number": number, "unit": "%", "kind": kind}
        )


def test_each_machine_has_its_own_speed(done: Reproduced) -> None:
    sun, solaris, linux = (fit.mips for fit in outcome(done).results.fits)
    for run, speeds in {
        "fig1-atm": (sun, sun),
        "fig1-linux-sun": (linux, sun),
        "fig1-linux-sun-swapped": (linux, sun),
        "fig4-ethernet": (solaris, sun),
        "pc-pc": (linux, solaris),
    }.items():
        machines = run_json(done, run)["topology"]["machines"]
        assert [float(machines[name]["mips"]) for name in ("client", "server")] == [float(mips) for mips in speeds]


def test_only_the_linux_pc_has_a_small_buffer_and_nagles_rule(done: Reproduced) -> None:
    def ends(run: str, client: str, server: str) -> list[tuple[int, bool]]:
        (step, *_) = job(done, run, client)["steps"]
        (service,) = (each for each in job(done, run, server)["services"] if each["app"] == "echo-server")
        return [(each["options"]["send_buffer"], each["options"]["tcp_nodelay"]) for each in (step, service)]

    assert ends("fig1-linux-sun", "client", "server") == [(4000, False), (65536, True)]
    assert ends("fig3-tcp", "client", "server") == [(4000, False), (65536, True)]
    assert ends("fig1-linux-sun-swapped", "server", "client") == [(65536, True), (4000, False)]
    for run in ("fig1-atm", "fig4-ethernet"):
        (step, *_) = job(done, run, "client")["steps"]
        assert ("send_buffer" in step["options"], step["options"]["tcp_nodelay"]) == (False, True)


def test_the_frames_of_a_mixed_path_are_followed_over_both_segments(done: Reproduced) -> None:
    curve = outcome(done).results.curves["fig1-linux-sun"]
    wire = curve.points[8192].wire
    assert wire is not None
    assert curve.captures == ("wire/elan.pcapng", "wire/hub.pcapng")
    length = 14 + 48 + 8192
    assert wire.carried_us == 2 * ((length + 12) * 0.8 + 1)
    assert wire.packets == 2
    # One frame here, as the fakes do not know of an MTU: LEC ID, frame and trailer in cells of 48 octets.
    assert wire.cells == 2 * -(-(2 + length + 8) // 48)


def test_what_is_expected_comes_from_the_protocols(done: Reproduced) -> None:
    curve = outcome(done).results.curves["fig1-atm"]
    assert curve.cell_us == pytest.approx(331.25 / 117, abs=1e-6)
    expected = curve.expected[8192]
    assert (expected.packets, expected.cells) == ((6, 6), (183, 183))
    # 366 cells and one more each way, and 10 us for each cell's way through the switch.
    assert curve.bound_us[8192] == pytest.approx(1041.9 + 2 * 10 + 4 * 0.025, abs=0.2)


def test_what_is_written(done: Reproduced) -> None:
    folder = done.folder
    page = (folder / "report.html").read_text()
    for word in (
        "The printed curve",
        "to 7 MB/s",
        "above 500 kB/s",
        'href="runs/fig1-linux-sun/wire/hub.pcapng"',
        'href="runs/fig1-atm/wire/elan.pcapng"',
        "LAN emulation at the first calls",
        "Standard deviation",
        "throughput of PC_Solaris-SUN-Ethernet",
        "8.00",
    ):
        assert word in page, word
    figures = {path.stem for path in (folder / "figures").glob("*.png")}
    assert figures >= {"figure-1", "figure-2", "figure-3", "figure-4", "exchanged", "difference", "ratios"}
    index = json.loads((folder / "reproduce.json").read_text())
    assert (index["status"], index["scale"], len(index["statements"])) == ("complete", "smoke", 13)
    assert set(index["statements"].values()) <= {"met", "not met", "undecidable"}
    statements = pl.read_csv(folder / "statements.csv")
    assert statements["statement"].to_list() == [f"A{number}" for number in range(1, 14)]
    curves = pl.read_csv(folder / "curves.csv")
    assert curves.filter(curve="fig3-udp")["size"].to_list()[0] == 16
    assert curves.filter(curve="fig1-atm", size=8192)["cells_expected"].to_list() == [366]


def test_a_run_that_fails_leaves_its_statements_undecidable(tmp_path: Path) -> None:
    with pictures(Pictures(png=False)):
        house = House(broken=frozenset({"fig1-linux-sun", "raw-udp", "lane-control", "iperf3-atm"}))
        made = reproduced(tmp_path, house)
    assert [run.name for run in made.failed] == ["fig1-linux-sun", "raw-udp", "iperf3-atm", "lane-control"]
    said = {each.statement.id: each for each in outcome(made).verdicts}
    for name, key in (("A3", "fig1-linux-sun"), ("A5", "fig1-linux-sun"), ("A12", "raw-udp")):
        assert (said[name].outcome, key in said[name].reason) == ("undecidable", True)
    assert (made.folder / "figures" / "figure-1.svg").is_file()


def test_without_a_speed_there_is_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="fit-sun-62-5-mips was not measured, so the speed of sun is not known"):
        reproduced(tmp_path, House(broken=frozenset({"fit-sun-62-5-mips"})))
    assert json.loads((tmp_path / "made" / "reproduce.json").read_text())["status"] == "failed"
