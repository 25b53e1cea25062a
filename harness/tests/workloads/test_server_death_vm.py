# SPDX-License-Identifier: Apache-2.0
"""A server that is killed in a call: its clients' calls fail at once, and the capture is explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.run.live import night, require_guests
from tests.run.served import passed

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600), pytest.mark.spread]

CALL = 3
SCENARIO = """\
description: a server that is killed in its third call
topology: {topology}
seed: 7
expect: {{failures: allowed}}
workloads:
  - {{app: {app}, functions: [void, boolean], calls: 3, warmup: 1, die: {{call: {call}}}{more}}}
"""
MOST_MS = 500
"""In virtual time, of a call that finds no server: a tenth of any timeout."""


@pytest.mark.parametrize(
    ("app", "error", "topology", "more"),
    [
        night("grpc", "UNAVAILABLE", "two-hosts-python", ""),
        ("grpc", "UNAVAILABLE", "two-hosts-python", ", languages: [cpp]"),
        night("rpyc", "EOFError", "two-hosts-python", ""),
        night("grpc", "UNAVAILABLE", "one-host", ", clients: server"),
        ("rpyc", "EOFError", "one-host", ", clients: server"),
    ],
)
def test_later_calls_fail_at_once(tmp_path: Path, app: str, error: str, topology: str, more: str) -> None:
    require_guests("linux-python")
    scenario = tmp_path / "calls.yaml"
    scenario.write_text(SCENARIO.format(app=app, topology=topology, call=CALL, more=more))
    passed(scenario, tmp_path / "run", "--set", "defaults.image=linux-python")
    nodes = tmp_path / "run" / "nodes"
    records = [
        json.loads(line) for path in sorted(nodes.glob("*/samples.jsonl")) for line in path.read_text().splitlines()
    ]
    rows = [line for line in records if isinstance(line, list)]
    assert [row[6] for row in rows] == [None] * (CALL - 1) + [error] * (len(rows) - CALL + 1)
    assert len(rows) == 8
    assert all(end - start < MOST_MS * 1_000_000 for _, start, end, *_ in rows)
    (counted,) = (line for line in records if isinstance(line, dict) and line["type"] == "counters")
    assert (counted["calls"], counted["by_function"]) == (CALL, {"void": CALL})
    verified = json.loads((tmp_path / "run" / "verify.json").read_text())
    assert (verified["verdict"], verified["mismatches"], verified["calls"]) == ("pass", 0, 8)
    # Its kernel ended the connection; gRPC tries again, and is refused.
    assert verified["classified"]["tcp_fin"] > 0
    assert ("tcp_reset" in verified["classified"]) == (app == "grpc")
