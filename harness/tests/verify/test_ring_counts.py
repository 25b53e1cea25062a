# SPDX-License-Identifier: Apache-2.0
"""What servers count of calls in rings, against samples that are made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from sundial.workloads.sunrpc.verify_ring_counts import check_ring_counts

LINE: dict[str, Any] = {
    "type": "counters", "app": "echo-server", "calls": 3, "executed": 3,
    "by_procedure": {"null": 1, "echo": 0, "echo_string": 0, "sink": 1, "source": 1, "sink_one_way": 0},
    "bad_payload": 0, "undecodable": 0, "bytes_in": 8, "bytes_out": 24, "duplicates": 0, "replayed": 0,
    "clients": 0, "clients_gone": 0, "rings": {"clients": 3, "clients_gone": 2, "polls": 17},
}  # fmt: skip
CALLS = (("null", 0), ("sink", 8), ("source", 24))


def found(line: dict[str, Any], *, linger: str = "1 s", ok: bool = True, transport: str = "vrpc") -> list[str]:
    batches = {
        ("client", number): {"app": "echo-client", "server": "2", "transport": transport if number else "vrpc-mbcf"}
        for number in range(len(CALLS))
    }
    rows = [("client", number, *call, ok or number != 1) for number, call in enumerate(CALLS)]
    table = pl.DataFrame(rows, schema=["client", "batch", "procedure", "size", "ok"], orient="row")
    run: Any = SimpleNamespace(
        names={"1": "client", "2": "server"},
        jobs={"server": {"services": []}},
        document={"scenario": {"linger": linger}},
    )
    # Only the last line has all of them.
    samples: Any = SimpleNamespace(records={"server": [{**LINE, "calls": 1}, line]}, batches=batches, table=table)
    return list(check_ring_counts(run, samples)["field"])


def test_what_was_called_is_counted() -> None:
    assert found(LINE) == []


@pytest.mark.parametrize("name", [name for name in LINE if name not in ("type", "app", "rings", "by_procedure")])
def test_each_count(name: str) -> None:
    assert found({**LINE, name: LINE[name] + 1}) == [f"counted.{name}"]


def test_counts_of_rings_and_procedures() -> None:
    assert found({**LINE, "by_procedure": {**LINE["by_procedure"], "echo": 1}}) == ["counted.by_procedure"]
    assert found({**LINE, "rings": {**LINE["rings"], "clients": 2}}) == ["counted.rings.clients"]
    assert found({**LINE, "rings": {**LINE["rings"], "clients_gone": 4}}) == ["counted.rings.clients_gone"]
    assert found({key: value for key, value in LINE.items() if key != "rings"}) == [
        "counted.rings.clients", "counted.rings.clients_gone",
    ]  # fmt: skip


def test_what_cannot_be_known_is_not_judged() -> None:
    wrong = {**LINE, "calls": 9}
    assert found(wrong, linger="100 ms") == []
    assert found(wrong, ok=False) == []
    assert found(wrong, transport="udp") == []
    assert found(wrong) == ["counted.calls"]
