# SPDX-License-Identifier: Apache-2.0
"""SSS-CORE as the harness runs it: every transport verified, both kernels calling one another, the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sundial.run.places import Places
from tests.run.live import LiveRun, require_guests

pytestmark = [pytest.mark.vm, pytest.mark.timeout(400)]
RUN_S = 200.0


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()
    if not (Places().checkout / "images" / "out" / "ssscore" / "manifest.json").is_file():
        pytest.skip("images/out/ssscore is not built")


@pytest.mark.parametrize("scenario", ["sss-rpc-sweep", "mbcf-operations", "sss-mixed"])
def test_a_shipped_scenario_runs_and_verifies(tmp_path: Path, scenario: str) -> None:
    status, output = LiveRun(Path(scenario), tmp_path / "run").end(RUN_S)
    assert status == 0, output
    assert "verdict  pass" in output


def test_two_runs_are_equal_to_the_byte(tmp_path: Path) -> None:
    evidence = []
    for name in ("a", "b"):
        status, output = LiveRun(Path("mbcf-operations"), tmp_path / name, "--seed", "9").end(RUN_S)
        assert status == 0, output
        files = ("wire/lan.pcapng", "nodes/client/samples.jsonl", "nodes/server/samples.jsonl")
        evidence.append([(tmp_path / name / file).read_bytes() for file in files])
    assert evidence[0] == evidence[1]


@pytest.mark.parametrize(("semantics", "transport"), [("at_most_once", "udp"), ("exactly_once", "mbcf3")])
def test_nothing_is_lost_or_doubled_on_a_bad_line(tmp_path: Path, semantics: str, transport: str) -> None:
    line = "segments.lan.impairments.both"
    options = [f"semantics={semantics}", f"transports={transport}"]
    options += [f"{line}.{what}=20 %" for what in ("loss", "duplicate", "reorder")]
    sets = [word for option in options for word in ("--set", option)]
    status, output = LiveRun(Path("sss-faults"), tmp_path / "run", *sets).end(RUN_S)
    assert status == 0, output
    told = (tmp_path / "run" / "nodes" / "server" / "samples.jsonl").read_text().splitlines()
    counters = [json.loads(text) for text in told if text.startswith('{"type":"counters"')]
    assert counters[-1]["executed"] == 100


def test_a_server_that_is_killed_is_seen_by_its_client_and_fails_no_run(tmp_path: Path) -> None:
    options = ["transports=mbcf3", "semantics=exactly_once", "expect.failures=allowed", "total_timeout=1 s"]
    options += ["die={when: during, call: 10}", "retry_timeout=500 ms"]
    sets = [word for option in options for word in ("--set", option)]
    status, output = LiveRun(Path("sss-faults"), tmp_path / "run", *sets).end(RUN_S)
    assert status == 0, output
    rows = [
        json.loads(text)
        for text in (tmp_path / "run" / "nodes" / "client" / "samples.jsonl").read_text().splitlines()
        if text.startswith("[")
    ]
    assert [row[3] for row in rows[:9]] == [1] * 9
    assert all(row[3] == 0 and row[6] for row in rows[9:])
