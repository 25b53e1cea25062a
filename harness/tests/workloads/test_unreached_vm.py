# SPDX-License-Identifier: Apache-2.0
"""Clients that reach no server: their calls fail, and the capture shows why. Else the run fails."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.run.live import require_guests
from tests.run.served import passed, status

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600), pytest.mark.spread, pytest.mark.night]

SCENARIO = """\
description: a cable that is cut before the first call, or while calls are made
topology:
  defaults: {{image: {image}}}
  machines:
    client: {{interfaces: {{eth0: {{address: 10.0.0.1/24}}}}}}
    server: {{interfaces: {{eth0: {{address: 10.0.0.2/24}}}}}}
  segments:
    lan: {{kind: link, rate: 10 Mbit/s, ports: ["client:eth0", "server:eth0"]}}
seed: 3
linger: 300 ms
expect: {{failures: {failures}}}
timeline:
  - {{at: {at}, cut: "client:eth0"}}
workloads:
  - {work}
"""
DCE = "{app: dce, binding: mapper, give_up: 10 s, procedures: [put], sizes: [16, 64], calls: 2, warmup: 0, threads: 2}"
RPYC = "{app: rpyc, functions: [void, int], calls: 2, warmup: 0, series: 2, total_timeout: 10 s}"


def written(folder: Path, **words: str) -> Path:
    path = folder / "cut.yaml"
    path.write_text(SCENARIO.format(**({"failures": "allowed", "at": "1 ms"} | words)))
    return path


def errors(run: Path) -> Counter[str | None]:
    lines = map(json.loads, (run / "nodes/client/samples.jsonl").read_text().splitlines())
    return Counter(line[6] for line in lines if isinstance(line, list))


@pytest.mark.parametrize("image", ["linux", "ssscore"])
def test_dce_calls_without_a_port(tmp_path: Path, image: str) -> None:
    require_guests(image)
    passed(written(tmp_path, image=image, work=DCE), tmp_path / "run")
    assert errors(tmp_path / "run") == {"no port": 8}


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ("1 ms", {"cannot connect: OSError"}),
        ("510 ms", {"cannot connect: TimeoutError"}),
        ("540 ms", {"TimeoutError", "cannot connect: OSError"}),
    ],
)
def test_rpyc_calls_without_a_connection(tmp_path: Path, at: str, found: set[str | None]) -> None:
    """Before the SYN; behind the question for the root object; while calls are made."""
    require_guests("linux-python")
    passed(written(tmp_path, image="linux-python", work=RPYC, at=at), tmp_path / "run")
    assert set(errors(tmp_path / "run")) == found


def test_rpyc_calls_of_a_server_that_was_killed(tmp_path: Path) -> None:
    require_guests("linux-python")
    work = RPYC.replace("}", ", die: {call: 3}}", 1)
    passed(written(tmp_path, image="linux-python", work=work, at="30 s"), tmp_path / "run")
    assert errors(tmp_path / "run") == {None: 2, "EOFError": 2, "cannot connect: ConnectionRefusedError": 4}


@pytest.mark.parametrize(("image", "work", "ends"), [("ssscore", DCE, 4), ("linux-python", RPYC, 1)])
def test_failures_that_are_not_allowed(tmp_path: Path, image: str, work: str, ends: int) -> None:
    require_guests(image)
    scenario = written(tmp_path, image=image, work=work, failures="none")
    assert status(["run", str(scenario), "--out", str(tmp_path / "run")], tmp_path / "said", 300) == ends
