# SPDX-License-Identifier: Apache-2.0
"""Adapters with a latency: a machine's frames follow from what it knew that much before their first bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.model.load import load_topology
from sundial.model.network import Network, build_network
from sundial.model.topology import Topology
from sundial.verify import verify_run
from sundial.verify.frames import with_fates
from sundial.verify.handed_in import latest_hand_in, on_the_wire
from sundial.verify.segment import contentions
from tests.fates import collision, given_up, lost, output_full, ring_full
from tests.verify.bed import RPC_PORT, Bed
from tests.verify.seal import seal

CLIENT_NS, SERVER_NS = 50_000, 7_000
ROWS = [
    # interface, direction, fate, comment, whose latency
    ("client:eth0", 2, None, None, CLIENT_NS),
    ("server:eth0", 1, None, None, 0),
    ("server:eth0", 2, None, None, SERVER_NS),
    ("client:eth0", 1, None, None, 0),
    ("lan:fate", 0, "dropped", ring_full("client:eth0"), CLIENT_NS),
    ("lan:fate", 0, "dropped", given_up("server:eth0"), SERVER_NS),
    ("lan:fate", 0, "dropped", output_full("client:eth0"), 0),
    ("lan:fate", 0, "collision", collision("client:eth0", 1, 96), CLIENT_NS),
    ("lan:fate", 0, "lost", lost("client:eth0", "server:eth0"), 0),
]


def with_latencies() -> Network:
    written = load_topology("two-hosts-10base-t").model_dump(mode="json")
    for machine, latency_ns in (("client", CLIENT_NS), ("server", SERVER_NS)):
        written["machines"][machine]["adapter"] = {"latency": f"{latency_ns} ns"}
    return build_network(Topology.model_validate(written))


def frames(rows: list[tuple[str, int, str | None, str | None, int]]) -> pl.DataFrame:
    schema = {"interface": pl.String, "direction": pl.UInt8, "fate": pl.String, "comment": pl.String}
    table = pl.DataFrame([row[:4] for row in rows], schema=schema, orient="row")
    return with_fates(table).with_columns(
        capture=pl.lit("wire/lan.pcapng"),
        time_ns=pl.lit(1_000_000, pl.Int64),
        frame_length=pl.lit(60, pl.UInt32),
        eth_target=pl.lit(None, pl.UInt64),
    )


def test_what_adapters_did_is_moved_by_their_own_latency() -> None:
    network, table = with_latencies(), frames(ROWS)
    moved = latest_hand_in(table, network)
    assert moved["time_ns"].to_list() == [1_000_000 - row[4] for row in ROWS]
    assert on_the_wire(moved, network).equals(table)


def test_without_a_latency_nothing_is_moved() -> None:
    table = frames(ROWS)
    assert latest_hand_in(table, build_network(load_topology("two-hosts-10base-t"))) is table
    assert latest_hand_in(table, None) is table


def test_the_wire_is_asked_for_when_the_adapter_comes_to_it() -> None:
    """Both stations take the hub from 1 ms on for 67.2 us, gap and preamble included."""
    network = with_latencies()
    found = contentions(network, latest_hand_in(frames(ROWS[:3]), network))
    for port, latency_ns in (("client:eth0", CLIENT_NS), ("server:eth0", SERVER_NS)):
        begins = 1_000_000 - latency_ns
        assert found[port].busy_ns(begins, begins + 100_000) == 67_200
        assert found[port].idle_ns(begins - 5, begins + 67_200) == 5


def problems(bed: Bed, latencies: dict[str, int]) -> set[str]:
    """The fields of the findings of a run on a link whose machines have adapters with these latencies."""
    directory = bed.write()
    document: dict[str, Any] = json.loads((directory / "run.json").read_text())
    document["topology"] = {
        "name": "net",
        "description": "Two hosts",
        "machines": {
            machine: {
                "interfaces": {"eth0": {"address": f"10.0.0.{number}/24"}},
                "adapter": {"latency": f"{latencies.get(machine, 0)} ns"},
            }
            for number, machine in enumerate(("client", "server"), start=1)
        },
        "segments": {"lan": {"kind": "link", "rate": "10 Mbit/s", "ports": ["client:eth0", "server:eth0"]}},
    }
    (directory / "run.json").write_text(json.dumps(document))
    return {problem["field"] for problem in verify_run(seal(directory)).problems}


@pytest.mark.parametrize(("latencies", "found"), [
    ({}, set()), ({"client": 1}, set()), ({"client": 2}, {"request.count"}),
    ({"server": 9_000}, set()), ({"server": 9_001}, {"reply.sent"}),
])  # fmt: skip
def test_a_frame_that_begins_before_its_adapter_can_have_it_is_found(
    tmp_path: Path, latencies: dict[str, int], found: set[str]
) -> None:
    """The request's first bit is 1 ns after its client read the clock: made before that, it is not a request of the
    call. The reply's is 9 us after the request's last."""
    bed = Bed(tmp_path / "run")
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    bed.udp_call(16, 100)
    assert problems(bed, latencies) & {"request.count", "reply.sent"} == found
