# SPDX-License-Identifier: Apache-2.0
"""ShrimpRPC between two SSS-CORE nodes: what a call costs both ends, and how it fails.

The tasks are cases of guest-apps/sss-core/tests/tasks/shrimp.c; the server is the image's shrimp-server.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.run.live import END_S, HARNESS, night, require_guests
from tests.run.tasks import Pair, build_task

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

NO_NAME, FULL, MISMATCH, NO_ANSWER = -257, -260, -272, -110
GARBAGE, NO_PROCEDURE, IS_GONE = 0xFF01, 0xFF00, 0xFF81
NS_OF_INSTRUCTION, CALLS = 16, 100
WORD_NS = 4250
"""Long enough for the server to check what the call before has brought."""
RATES = {"word_latency": f"{WORD_NS} ns", "link_rate": "4 Gbit/s", "dma_rate": "4 Gbit/s"}
PLACES = 30
"""Of a service, for its clients."""
BYTES = {"null": (8, 8), "in_64": (72, 8), "out_64": (8, 72), "inout_64": (72, 72), "in": (80, 8), "inout": (80, 80)}
"""Of a call and of its reply, with 64 bytes of data."""
MOST = {"null": 60, "in_64": 100, "out_64": 100, "inout_64": 120, "in": 100, "inout": 160}
"""Instructions of both ends, polling included; where 64 bytes are counted, not fixed, there are loops."""


def server(**options: object) -> dict[str, object]:
    return {"app": "shrimp-server", "options": options}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_guests("ssscore")
    return build_task(tmp_path_factory.mktemp("tasks"), "shrimp")


def run_cases(program: Path, folder: Path, *cases: str, die: int | None = None, **backplane: str) -> Pair:
    """One after another."""
    pair = Pair(program, folder, backplane)
    pair.run(server=((server(die={"call": die}) if die else server(),), ()), client=((), cases))
    assert pair.faults("client") == pair.faults("server") == []
    return pair


@pytest.fixture(scope="module")
def refused(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return run_cases(program, tmp_path_factory.mktemp("refused"), "mismatch", "hostile")


def flight_ns(length: int) -> int:
    """What the fields of RATES give: 2 ns a byte over the line, and 2 into memory."""
    return WORD_NS + (length - 8) * 2 * 2


def test_what_a_call_costs_both_ends(program: Path, tmp_path: Path) -> None:
    results = run_cases(program, tmp_path, "budget", **RATES).results("client", "budget")
    assert results["bind"] == [0]
    assert not any(results["wrong"])
    costs = {
        name: (results[name][0] / CALLS - sum(map(flight_ns, lengths))) / NS_OF_INSTRUCTION
        for name, lengths in BYTES.items()
    }
    assert all(0 < costs[name] <= most for name, most in MOST.items()), costs


def test_another_interface_is_refused_and_the_server_serves_on(refused: Pair) -> None:
    assert refused.results("client", "mismatch") == {
        "another hash": [MISMATCH],
        "more pages": [MISMATCH],
        "another version": [NO_NAME],
        "the same": [0],
        "null": [0],
    }


@pytest.mark.parametrize("case", [night("dies"), "dies-notify"])
def test_a_server_that_ends_in_a_call_is_gone(program: Path, tmp_path: Path, case: str) -> None:
    results = run_cases(program, tmp_path, case, die=5).results("client", case)
    assert results["call"] == [5]
    assert results["status"] == results["next"] == [IS_GONE]
    # Its kernel reports that, so the client does not wait for a timeout of 1 s.
    assert results["ns"][0] < 5_000_000
    assert results["again"][0] in (NO_NAME, -261)


def test_malicious_client_affects_only_itself(refused: Pair) -> None:
    results = refused.results("client", "hostile")
    assert results["bind"] == results["null"] == results["meanwhile"] == [0]
    assert results["no such procedure"] == [NO_PROCEDURE]
    assert results["in"] == results["out"] == results["inout"] == [GARBAGE]
    assert results["import"] == [1]
    assert results["busy"] == [FULL]
    assert results["afterwards"] == results["after nonsense"] == [0]


@pytest.mark.parametrize("case", ["crash", night("crash-notify")])
def test_clients_whose_node_restarts_lose_their_places_to_others(program: Path, tmp_path: Path, case: str) -> None:
    pair = Pair(program, tmp_path)
    restart = {"app": "restart", "options": {}}
    pair.run(server=((server(),), ()), client=((case,), (restart, {"app": "sleep", "options": {"ns": 300_000_000}})))
    assert pair.results("client", case) == {"served": [PLACES, PLACES]}
    assert pair.faults("client") == pair.faults("server") == []


def test_the_service_of_the_readme(tmp_path: Path) -> None:
    """Its .x file, its procedures and its two ends, as a newcomer would put them into the tree."""
    require_guests("ssscore")
    tree = tmp_path / "guest-apps"
    unneeded = shutil.ignore_patterns("build", "tests", "__pycache__")
    shutil.copytree(HARNESS.parent / "guest-apps", tree, ignore=unneeded)
    walk = (tree / "shrimp" / "README.md").read_text().split("## A service in ten minutes")[1].split("\n## ")[0]
    blocks = re.findall(r"^```c\n(.*?)^```$", walk, re.DOTALL | re.MULTILINE)
    places = ("shrimp/calc.x", "sss-core/tasks/common/calc_procedures.c", None, "sss-core/tasks/calc.c")
    for place, block in zip(places, blocks, strict=True):
        if place:
            (tree / place).write_text(block)
    out = tmp_path / "out"
    argv = ["make", "-s", "-C", str(tree / "sss-core"), f"OUT={out}", str(out / "bin" / "calc")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=END_S)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "pair").mkdir()
    pair = Pair(out / "bin" / "calc", tmp_path / "pair")
    pair.run(server=(({"app": "calc", "options": {}},), ()), client=((), ({"app": "calc", "options": {"server": 2}},)))
    console = (pair.out / "nodes" / "client" / "console.log").read_text()
    assert "sum 42" in console
    assert "Good morning, Ada" in console
