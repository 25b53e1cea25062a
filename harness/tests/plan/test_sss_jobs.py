# SPDX-License-Identifier: Apache-2.0
"""Jobs of SSS-CORE nodes, and of Linux machines that speak MBCF with them."""

from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.plan.build import plan_run, plan_topology
from sundial.plan.paths import RunPaths
from sundial.plan.seeds import epoch

HEAD = "description: A test\ntopology: sss-two-100base-tx\nworkloads:\n"


def jobs(paths: RunPaths, scenario: str, *overrides: str, **options: Any) -> dict[str, Any]:
    jobs = plan_run(load_experiments(scenario, overrides=overrides, **options)[0], paths).jobs
    return {name: job.document() for name, job in jobs.items()}


def written(folder: Path, *workloads: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(HEAD + "".join(f"  - {{{workload}}}\n" for workload in workloads))
    return str(path)


def test_a_node_knows_itself_and_the_others(paths: RunPaths) -> None:
    job = jobs(paths, "sss-mixed", seed=5)["n2"]
    assert (job["node"], job["epoch"]) == (2, epoch(5, "n2"))
    assert job["nodes"] == [
        {"node": 1, "machine": "n1", "mac": "02:53:44:00:00:01"},
        {"node": 3, "machine": "n3", "mac": "02:53:44:00:00:03"},
        {"node": 4, "machine": "n4", "mac": "02:53:44:00:00:04"},
        {"node": 5, "machine": "linux", "mac": "02:53:44:00:00:05"},
    ]


def test_epochs_differ_by_machine_and_seed_and_are_never_zero() -> None:
    drawn = [epoch(seed, name) for seed in range(50) for name in ("n1", "n2")]
    assert len(set(drawn)) == 100
    assert all(0 < value < 2**32 for value in drawn)


def test_services_and_steps_of_a_node(paths: RunPaths, tmp_path: Path) -> None:
    die = "die: {when: during, call: 7}"
    path = written(tmp_path, f"app: sunrpc, transports: [udp, mbcf3], sizes: [0, 64], calls: 3, {die}")
    planned = jobs(paths, path)
    assert planned["server"]["services"] == [
        {"app": "portmapper", "options": {}},
        {"app": "echo-server", "options": {"transports": ["udp", "mbcf3"], "die": {"when": "during", "call": 7}}},
    ]
    common = {"procedure": "echo", "series": 0, "sizes": [0, 64], "calls": 3, "warmup": 1, "connection": "per-size"}
    common |= {"threads": 1, "total_timeout_ms": 25_000, "auth": "none"}
    over_udp = {"server": "10.0.0.2", "transport": "udp", "retry_timeout_ms": 1000, "semantics": "at_least_once"}
    over_mbcf = {"server": 2, "transport": "mbcf3", "depth": 1, "ack": True, "semantics": "exactly_once"}
    assert planned["client"]["steps"] == [
        {"app": "echo-client", "options": {**common, **over_udp}},
        {"app": "echo-client", "options": {**common, **over_mbcf}},
    ]
    assert planned["client"]["start_ns"] == 20_000_000


def test_operations(paths: RunPaths, tmp_path: Path) -> None:
    path = written(tmp_path, "app: mbcf, operations: [write, fifo], modes: [round_trip, stream], sizes: 4, calls: 9")
    planned = jobs(paths, path)
    assert planned["server"]["services"] == [
        {"app": "portmapper", "options": {}},
        {"app": "mbcf-server", "options": {}},
    ]
    steps = planned["client"]["steps"]
    assert [(step["options"]["operation"], step["options"]["mode"]) for step in steps] == [
        ("write", "round_trip"),
        ("write", "stream"),
        ("fifo", "round_trip"),
        ("fifo", "stream"),
    ]
    assert steps[0] == {
        "app": "mbcf-client",
        "options": {
            "server": 2,
            "operation": "write",
            "mode": "round_trip",
            "series": 0,
            "sizes": [4],
            "calls": 9,
            "warmup": 1,
            "total_timeout_ms": 25_000,
        },
    }


def test_updates_over_a_backplane(paths: RunPaths) -> None:
    options = ["workloads.1.calls=7"]
    planned = jobs(paths, "vmmc-operations", *options)
    assert planned["server"]["services"] == [
        {"app": "vmmc-server", "options": {"transports": ["au", "au-combined", "du"]}}
    ]
    steps = [step["options"] for step in planned["client"]["steps"]]
    assert [(step["transport"], step["procedure"]) for step in steps[:3]] == [
        ("au", "round_trip"),
        ("au", "stream"),
        ("au-combined", "round_trip"),
    ]
    assert [(step["calls"], step["warmup"], step["transfers"]) for step in steps[6:8]] == [(7, 1, 1), (1, 0, 7)]
    assert steps[7] == {
        "server": 2,
        "transport": "au",
        "procedure": "stream",
        "series": 0,
        "sizes": [65536],
        "calls": 1,
        "warmup": 0,
        "transfers": 7,
        "total_timeout_ms": 25_000,
    }


def test_each_process_of_a_linux_client_is_a_node_of_its_own(paths: RunPaths) -> None:
    planned = jobs(paths, "sss-mixed", seed=5)["linux"]
    assert not {"node", "epoch", "nodes"} & set(planned)
    apps = [step["app"] for step in planned["steps"]]
    assert apps == ["echo-client", "echo-client", "mbcf-echo-client", "mbcf-echo-client"]
    first, second = (step["options"]["endpoint"] for step in planned["steps"][2:])
    assert (first["node"], first["device"]) == (5, "eth0")
    assert [node["machine"] for node in first["nodes"]] == ["n1", "n2", "n3", "n4"]
    assert first["epoch"] != second["epoch"]
    assert all(
        "endpoint" not in step["options"] and "semantics" not in step["options"] for step in planned["steps"][:2]
    )


def test_a_linux_server_serves_sockets_and_mbcf_apart(paths: RunPaths, tmp_path: Path) -> None:
    path = written(tmp_path, "app: sunrpc, transports: [udp, mbcf1, mbcf3], sizes: 4, clients: client")
    services = jobs(paths, path, "machines.server.image=linux")["server"]["services"]
    assert [service["app"] for service in services] == ["rpcbind", "echo-server", "mbcf-echo-server"]
    assert services[1]["options"] == {"transports": ["udp"], "tcp_nodelay": True}
    memory = services[2]["options"]
    assert memory["transports"] == ["mbcf1", "mbcf3"]
    assert memory["endpoint"]["node"] == 2
    assert memory["endpoint"]["nodes"] == [{"node": 1, "machine": "client", "mac": "02:53:44:00:00:01"}]


def test_a_linux_machine_makes_all_wait_for_it(paths: RunPaths, tmp_path: Path) -> None:
    path = written(tmp_path, "app: sunrpc, transports: udp, sizes: 4")
    assert jobs(paths, path, "machines.server.image=linux")["client"]["start_ns"] == 300_000_000
    assert jobs(paths, path, "defaults.mips=62.5")["client"]["start_ns"] == 40_000_000


def test_many_sizes_are_several_steps_of_a_task(paths: RunPaths, tmp_path: Path) -> None:
    path = written(tmp_path, 'app: sunrpc, transports: [udp], sizes: "0:400:4", auth: sys')
    steps = jobs(paths, path)["client"]["steps"]
    assert [len(step["options"]["sizes"]) for step in steps] == [64, 37]
    assert steps[1]["options"]["sizes"][0] == 256
    assert steps[0]["options"]["auth_machine"] == "client"
    (linux,) = jobs(paths, path, "machines.client.image=linux")["client"]["steps"]
    assert len(linux["options"]["sizes"]) == 101
    assert "auth_machine" not in linux["options"]


def test_buffers_of_the_library_reach_both_ends(paths: RunPaths, tmp_path: Path) -> None:
    path = written(
        tmp_path, "app: sunrpc, transports: [udp, tcp], sizes: 4, udp_message_size: 9000, serving: {recv_buffer: 5000}"
    )
    planned = jobs(paths, path)
    assert planned["server"]["services"][1]["options"] == {
        "transports": ["udp", "tcp"],
        "recv_buffer": 5000,
        "udp_message_size": 9000,
    }
    assert planned["client"]["steps"][0]["options"]["udp_message_size"] == 9000


def test_one_server_cannot_have_two_semantics(paths: RunPaths, tmp_path: Path) -> None:
    calls = "app: sunrpc, transports: udp, sizes: 4"
    path = written(tmp_path, f"{calls}, semantics: at_least_once", f"{calls}, semantics: at_most_once")
    with pytest.raises(BadInput, match=r"two workloads configure echo-server on 'server' differently"):
        jobs(paths, path)


def test_a_cluster_that_is_brought_up_serves_everything(paths: RunPaths) -> None:
    plan = plan_topology(build_network(load_topology("sss-cluster")), paths, clock="real", seed=1)
    assert [service["app"] for service in plan.jobs["n1"].document()["services"]] == [
        "portmapper",
        "echo-server",
        "mbcf-server",
        "dce-server",
    ]
    assert plan.jobs["n1"].document()["services"][1]["options"]["transports"][:3] == ["udp", "tcp", "mbcf1"]
    assert plan.jobs["n1"].interactive is True
    served = {service["app"]: service["options"] for service in plan.jobs["linux"].document()["services"]}
    assert served["mbcf-echo-server"]["transports"] == ["mbcf1", "mbcf2", "mbcf12", "mbcf3", "mbcf3a"]
    linux_alone = plan_topology(build_network(load_topology("office")), paths, clock="real", seed=1)
    assert all(service["app"] != "mbcf-echo-server" for service in linux_alone.jobs["server"].document()["services"])
