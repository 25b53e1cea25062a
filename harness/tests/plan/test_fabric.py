# SPDX-License-Identifier: Apache-2.0
"""fabric.json: the contract of harness/schemas/README.md, in integer base units."""

import json
from typing import Any

import pytest

from sundial.model.catalog import names
from sundial.model.impairments import Impairments
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.plan.build import plan_run, plan_topology
from sundial.plan.paths import RunPaths
from sundial.segments.link.plan import impairments


def planned(paths: RunPaths, topology: str, *overrides: str, **options: Any) -> dict[str, Any]:
    return plan_run(load_experiments("quickstart", topology=topology, overrides=overrides, **options)[0], paths).fabric


def test_the_hub_of_the_contract(paths: RunPaths) -> None:
    assert planned(paths, "two-hosts-10base-t", seed=42) == {
        "version": 1,
        "clock": "virtual",
        "seed": 42,
        "capture_dir": "/run/wire",
        "control": "/run/s/fabric.sock",
        "shm": "/dev/shm/sundial-x",
        "linger_ns": 1_000_000_000,
        "deadline_ns": 300_000_000_000,
        "done_machines": ["client"],
        "machines": [{"name": "client", "nics": 1}, {"name": "server", "nics": 1}],
        "segments": [
            {
                "name": "lan",
                "kind": "hub",
                "rate_bps": 10_000_000,
                "max_frame_bytes": 1514,
                "adapter": {"ring_frames": 64, "when_full": "stop"},
                "ports": [
                    {"machine": "client", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:01"},
                    {"machine": "server", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:02"},
                ],
                "cable_delay_ns": [25, 25],
                "repeater_delay_ns": 800,
            }
        ],
    }


def test_real_clock_has_sockets_and_no_shared_memory(paths: RunPaths) -> None:
    fabric = planned(paths, "two-hosts-10base-t", clock="real")
    assert "shm" not in fabric
    assert fabric["segments"][0]["ports"][1] == {
        "machine": "server", "nic": 0, "interface": "eth0", "mac": "02:53:44:00:00:02",
        "local": "/run/s/f-server-0.sock", "remote": "/run/s/q-server-0.sock",
    }  # fmt: skip


def test_the_latency_of_adapters_is_a_machines(paths: RunPaths) -> None:
    """A machine's own wins over that of all; a machine that has none is written as before there was one."""
    own = ("defaults.adapter.latency=20 us", "machines.server.adapter.latency=1.5 us")
    for overrides, written in (
        (own, [{"adapter_latency_ns": 20_000}, {"adapter_latency_ns": 1_500}]),
        ((own[0], "machines.server.adapter.latency=0 ns"), [{"adapter_latency_ns": 20_000}, {}]),
        ((own[1],), [{}, {"adapter_latency_ns": 1_500}]),
    ):
        machines = planned(paths, "two-hosts-10base-t", *overrides)["machines"]
        names = ({"name": "client", "nics": 1}, {"name": "server", "nics": 1})
        assert machines == [{**name, **latency} for name, latency in zip(names, written, strict=True)]


def test_a_repeater_is_quicker_at_100_mbit(paths: RunPaths) -> None:
    assert planned(paths, "two-hosts-100base-tx")["segments"][0]["repeater_delay_ns"] == 460


def test_link_impairments_are_by_sending_port_in_base_units(paths: RunPaths) -> None:
    link = planned(paths, "two-hosts-wan", "segments.wan.impairments.server:eth0.loss=2 %")["segments"][0]
    common = {"delay_ns": 10_000_000, "jitter_ns": 500_000, "distribution": "normal", "limit_frames": 1000}
    assert link["impairments"] == {"0": {**common, "loss": 0.01}, "1": {**common, "loss": 0.02}}
    assert (link["rate_bps"], link["propagation_ns"]) == (10_000_000, 50_000)


def test_every_impairment_has_its_name_in_fabric_json() -> None:
    given = {
        "delay": "1 ms", "jitter": "1 us", "delay_correlation": "25 %", "distribution": "pareto", "loss": "0.1 %",
        "loss_correlation": "1 %", "gemodel": {"p": "1 %", "r": "10 %"}, "duplicate": "1 %",
        "duplicate_correlation": "1 %",
        "corrupt": "1 %", "corrupt_correlation": "1 %", "reorder": "1 %", "reorder_correlation": "1 %", "gap": 5,
        "rate": "1 Mbit/s", "packet_overhead": -4, "cell_size": 48, "cell_overhead": 5, "limit": 100,
    }  # fmt: skip
    fields = impairments(Impairments.model_validate(given))
    assert set(given) == set(Impairments.model_fields)
    assert set(fields) == {
        "delay_ns", "jitter_ns", "delay_correlation", "distribution", "loss", "loss_correlation", "gemodel",
        "duplicate",
        "duplicate_correlation", "corrupt", "corrupt_correlation", "reorder", "reorder_correlation", "gap", "rate_bps",
        "packet_overhead_bytes", "cell_size_bytes", "cell_overhead_bytes", "limit_frames",
    }  # fmt: skip
    assert fields["gemodel"] == {"p": 0.01, "r": 0.1, "one_minus_h": 1.0, "one_minus_k": 0.0}
    assert (fields["loss"], fields["rate_bps"], fields["packet_overhead_bytes"]) == (0.001, 1_000_000, -4)


def test_a_switch_has_a_rate_for_each_port(paths: RunPaths) -> None:
    switch = planned(
        paths, "two-hosts-switched", "segments.lan.rate={'client:eth0': 10 Mbit/s, 'server:eth0': 1 Gbit/s}"
    )
    assert switch["segments"][0]["rate_bps"] == [10_000_000, 1_000_000_000]
    assert switch["segments"][0]["ageing_ns"] == 300 * 10**9


@pytest.mark.parametrize("topology", names("topology"))
def test_every_topology_becomes_json_of_whole_numbers(paths: RunPaths, topology: str) -> None:
    plan = plan_topology(build_network(load_topology(topology)), paths, clock="real", seed=1)
    assert json.loads(json.dumps(plan.fabric)) == plan.fabric
    assert plan.done_machines == ()
    assert "deadline_ns" not in plan.fabric
    for segment in plan.fabric["segments"]:
        numbers = [value for name, value in segment.items() if name.endswith(("_ns", "_bps", "_bytes", "_frames"))]
        single = [n for value in numbers for n in (value if isinstance(value, list) else [value])]
        assert all(n is None or isinstance(n, int) for n in single)  # None: by port, and not at this one
