# SPDX-License-Identifier: Apache-2.0
"""`sundial reproduce` as typed: the list, what is printed, exit statuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from sundial.cli import rooms
from sundial.errors import RunFailed
from sundial.machines import images
from sundial.reproduce import perform, workers
from sundial.run import places
from sundial.sweep import engines, known
from sundial.sweep.place import Place
from tests.cli.one_run import RUN, one_run
from tests.reproduce.house import House
from tests.sweep.bench import InProcess
from tests.sweep.side import Known

Call = Callable[..., Result]


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> House:
    made = House()
    monkeypatch.setattr(rooms, "run", made.run)
    monkeypatch.setattr(rooms, "verify_run", made.verify)
    monkeypatch.setattr(rooms, "build_report", made.report)
    monkeypatch.setattr(images, "pin", lambda known, folder, say, names: made.pin_images(folder, say, names))
    monkeypatch.setattr(perform, "reproduction", one_run)
    monkeypatch.setattr(workers, "jobs_of_this_host", lambda: 1)  # the house is in this process
    return made


def test_without_a_name_the_papers_are_listed(call: Call, house: House) -> None:
    result = call("reproduce")
    assert result.exit_code == 0
    assert "\nkamesawa98  Kamesawa, Matsumoto, Hiraki: RPC implemented on" in result.stdout
    assert house.asked == []
    listed = {paper["name"]: paper["scales"] for paper in json.loads(call("reproduce", "--json").stdout)}
    assert listed["kamesawa98"] == ["quick", "full"]


def test_what_is_printed(call: Call, house: House, tmp_path: Path) -> None:
    result = call("reproduce", "kamesawa98", "--quick", "--out", str(tmp_path / "made"))
    assert result.exit_code == 0, result.stderr
    assert f"report   {tmp_path / 'made' / 'report.html'}" in result.stdout
    assert "machine  125 mips\n" in result.stdout
    assert house.asked == [RUN]
    assert "runs     1: 0 failed, 0 with mismatches" in result.stdout


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ((), Place()),
        (("--jobs", "3"), Place(3)),
        (("--on", "local:2"), Place(2)),
        (("--on", "tcp://127.0.0.1:7"), Place(None, "tcp://127.0.0.1:7")),
    ],
)
def test_where_runs_are_made(
    call: Call, house: House, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], place: Place
) -> None:
    asked: list[Place] = []

    def makers(place: Place, recipe: str | None) -> None:
        asked.append(place)
        raise RunFailed("seen")

    monkeypatch.setattr(rooms, "makers", makers)
    call("reproduce", "kamesawa98", "--quick", *options)
    call("matrix", "loss", "--rows", "calls=1", "--columns", "sizes=1", *options)
    assert asked == [place, place]


def test_runs_side_by_side_come_by_their_keys(
    call: Call, house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "Identities", lambda recipe, say: Known())
    monkeypatch.setattr(engines, "Workers", InProcess)
    monkeypatch.setattr(places.Places, "store", property(lambda self: tmp_path / "store"))
    result = call("reproduce", "kamesawa98", "--quick", "--jobs", "2", "--out", str(tmp_path / "made"))
    assert result.exit_code == 0, result.stderr
    assert (house.asked, house.reported) == ([RUN], [RUN])
    assert len(list((tmp_path / "store" / "results").glob("*/*/result.json"))) == 1
    assert (tmp_path / "made" / "runs" / RUN / "run.json").is_file()


def test_folders_are_numbered(call: Call, house: House, captures: Path) -> None:
    (captures / "reproduce-kamesawa98-4-001").mkdir(parents=True)
    result = call("reproduce", "kamesawa98", "--quick", "--seed", "4", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["folder"] == str(captures / "reproduce-kamesawa98-4-002")


@pytest.mark.parametrize(
    ("field", "status", "words"),
    [
        ("broken", 4, f"sundial: these runs failed: {RUN}"),
        ("mismatched", 1, f"sundial: verification of these runs failed: {RUN}"),
    ],
)
def test_runs_that_fail_are_named(
    call: Call, house: House, tmp_path: Path, field: str, status: int, words: str
) -> None:
    setattr(house, field, frozenset({RUN}))
    result = call("reproduce", "kamesawa98", "--quick", "--out", str(tmp_path / "made"))
    assert result.exit_code == status
    assert words in result.stderr
    assert (tmp_path / "made" / "report.html").is_file()


def test_bad_input(call: Call, house: House, tmp_path: Path) -> None:
    result = call("reproduce", "birrell84")
    assert (result.exit_code, result.stderr) == (
        2,
        "sundial: there is no paper 'birrell84'; allowed: bilas97, kamesawa98, kedziera98, khandker, santos18\n",
    )
    result = call("reproduce", "kamesawa98", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "exists; allowed: a directory that does not exist yet" in result.stderr
    assert call("reproduce", "kamesawa98", "--out", "a\tb").exit_code == 2
    assert call("reproduce", "kamesawa98", "--seed", "-1").exit_code == 2
    assert call("reproduce", "kamesawa98", "--jobs", "0").exit_code == 2
    result = call("reproduce", "kamesawa98", "--jobs", "2", "--on", "local:3")
    words = "sundial: --jobs: has no effect with --on; allowed: --jobs N, or --on PLACE\n"
    assert (result.exit_code, result.stderr) == (2, words)
    result = call("reproduce", "kamesawa98", "--scale", "paper")
    words = "sundial: --scale: kamesawa98 has no scale 'paper'; allowed: quick, full\n"
    assert (result.exit_code, result.stderr) == (2, words)
    result = call("reproduce", "kamesawa98", "--quick", "--scale", "full")
    words = "sundial: --quick and --scale full cannot be combined; allowed: one of them\n"
    assert (result.exit_code, result.stderr) == (2, words)
    assert house.asked == []
