# SPDX-License-Identifier: Apache-2.0
"""RPyC between booted guests: each function verified, in every container and way to compute, and over a bad wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.model.images import IMAGES
from tests.run import served
from tests.run.live import require_guests

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600), pytest.mark.spread]

EACH_KIND = """\
description: each function, container and way to compute
topology: two-hosts-python
seed: 7
workloads:
  - {app: rpyc, functions: all, containers: [list, tuple], distance: [numpy, zip], tcp_nodelay: [false, true], calls: 2}
"""
BAD_WIRE = """\
description: lost, late and small segments
topology: two-hosts-python
seed: 7
vary:
  - mtu: 576
    segments.lan.impairments.both: {loss: 2 %, delay: 1 ms, jitter: 0.4 ms}
workloads:
  - {app: rpyc, functions: all, containers: [list, tuple], calls: 4}
"""
NAGLE_MS = 40
"""How long Linux delays an acknowledgement at least (TCP_DELACK_MIN)."""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests("linux-python")


def passed(folder: Path, text: str) -> tuple[dict[str, Any], list[Any]]:
    """verify.json, and the client's samples, of a run that verified."""
    scenario = folder / "calls.yaml"
    scenario.write_text(text)
    served.passed(scenario, folder / "run")
    verified = json.loads((folder / "run" / "verify.json").read_text())
    assert verified["mismatches"] == 0
    observed = pl.read_parquet(folder / "run" / "observed.parquet")
    assert set(observed["verdict"]) == {"pass"}
    return verified, [json.loads(line) for line in (folder / "run/nodes/client/samples.jsonl").read_text().splitlines()]


def test_each_function(tmp_path: Path) -> None:
    verified, lines = passed(tmp_path, EACH_KIND)
    # With lists all twelve and distance again, with tuples the four with arrays and distance again; twice that.
    assert verified["calls"] == 3 * 2 * (12 + 1 + 4 + 1)
    assert {"call", "tcp_handshake", "tcp_fin", "tcp_ack"} <= verified["classified"].keys()
    assert "rpyc_unjudged" not in verified["classified"]
    batches = [line for line in lines if isinstance(line, dict) and line["type"] == "batch"]
    python = IMAGES["linux-python"].python
    assert python is not None
    assert {line["library"] for line in batches} == {python["rpyc"]}
    # Of lists small messages wait for one another's acknowledgement, unless TCP_NODELAY is set; of tuples they do not.
    # The first calls of a connection are acknowledged at once.
    third = {}
    for place, line in enumerate(lines):
        if isinstance(line, dict) and line.get("procedure") == "distance":
            _, start, end, *_ = lines[place + 3]
            third[line["tcp_nodelay"], line["container"], line["variant"]] = (end - start) / 1e6
    for variant in ("numpy", "zip"):
        assert third[False, "list", variant] - third[True, "list", variant] > 0.75 * NAGLE_MS
        assert abs(third[False, "tuple", variant] - third[True, "tuple", variant]) < 1


@pytest.mark.night
def test_a_bad_wire(tmp_path: Path) -> None:
    verified, lines = passed(tmp_path, BAD_WIRE)
    assert verified["retransmissions"]["rpyc_request"] > 0
    assert verified["classified"]["fate_lost"] > 0
    again = sum(line["tcp_retransmits"] for line in lines if isinstance(line, dict) and line["type"] == "batch")
    assert again > 0
