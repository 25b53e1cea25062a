# SPDX-License-Identifier: Apache-2.0
"""Jobs: what each guest has to do, and that it fits."""

import json
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.model.topology import Topology
from sundial.plan.build import plan_run, plan_topology
from sundial.plan.jobs import WAITING, build_idle_jobs, encode_job
from sundial.plan.paths import RunPaths
from sundial.plan.seeds import machine_seed
from sundial.seams.job import JOB_BYTES, Job


def jobs(paths: RunPaths, scenario: str, *overrides: str, **options: Any) -> dict[str, Any]:
    jobs = plan_run(load_experiments(scenario, overrides=overrides, **options)[0], paths).jobs
    return {name: job.document() for name, job in jobs.items()}


def written(folder: Path, workloads: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(f"description: A test\ntopology: two-hosts-10base-t\nworkloads:\n{workloads}")
    return str(path)


def test_a_job_of_the_contract(paths: RunPaths) -> None:
    job = jobs(paths, "quickstart", "machines.client.interfaces.eth0.static_arp=true", seed=9)["client"]
    steps = job.pop("steps")
    assert job == {
        "version": 1,
        "machine": "client",
        "seed": machine_seed(9, "client"),
        "clock": "tsc",
        "interfaces": [
            {
                "device": "eth0",
                "mac": "02:53:44:00:00:01",
                "address": "10.0.0.1/24",
                "mtu": 1500,
                "offloads": False,
                "neighbours": [{"address": "10.0.0.2", "mac": "02:53:44:00:00:02"}],
            }
        ],
        "bridge": None,
        "files": {},
        "services": [],
        "start_ns": 300_000_000,
        "zero_ns": 0,
    }
    assert [step["app"] for step in steps] == ["echo-client", "echo-client", "raw-client", "raw-client"]
    first = steps[0]["options"]
    assert first.pop("sizes")[:3] == [0, 16, 256]
    assert first == {
        "server": "10.0.0.2",
        "transport": "udp",
        "procedure": "echo",
        "series": 0,
        "calls": 3,
        "warmup": 1,
        "connection": "per-size",
        "threads": 1,
        "total_timeout_ms": 25_000,
        "retry_timeout_ms": 1000,
        "auth": "none",
    }


def test_the_server_serves_each_app_once(paths: RunPaths) -> None:
    job = jobs(paths, "quickstart")["server"]
    assert job["steps"] == []
    assert job["services"] == [
        {"app": "rpcbind", "options": {}},
        {"app": "echo-server", "options": {"tcp_nodelay": True, "transports": ["udp", "tcp"]}},
        {"app": "raw-server", "options": {"tcp_nodelay": True, "transports": ["udp", "tcp"]}},
    ]


def test_buffers_reach_both_ends_unless_the_server_differs(paths: RunPaths, tmp_path: Path) -> None:
    text = "  - {app: sunrpc, transports: tcp, sizes: 4000, send_buffer: 4000, serving: {send_buffer: 8000}}\n"
    planned = jobs(paths, written(tmp_path, text))
    assert planned["client"]["steps"][0]["options"]["send_buffer"] == 4000
    assert planned["server"]["services"][1]["options"]["send_buffer"] == 8000


def test_one_way_is_an_option_where_it_is_written(paths: RunPaths, tmp_path: Path) -> None:
    calls = "- {app: sunrpc, transports: [tcp], procedures: sink, sizes: 0, one_way: true}"
    (planned,) = jobs(paths, written(tmp_path, calls))["client"]["steps"]
    assert planned["options"]["one_way"] is True
    assert all("one_way" not in step["options"] for step in jobs(paths, "quickstart")["client"]["steps"])


def test_two_workloads_cannot_configure_one_server_differently(paths: RunPaths, tmp_path: Path) -> None:
    text = "  - {app: sunrpc, transports: tcp, sizes: 16, send_buffer: 4000}\n"
    text += "  - {app: sunrpc, transports: udp, sizes: 16}\n"
    with pytest.raises(BadInput, match=r"two workloads configure echo-server on 'server' differently"):
        jobs(paths, written(tmp_path, text))


def test_functions_are_one_step_and_a_program_of_their_own(paths: RunPaths, tmp_path: Path) -> None:
    calls = "  - {app: sunrpc, transports: [udp, mbcf3], functions: [12, void], calls: 7}\n"
    planned = jobs(paths, written(tmp_path, calls))
    assert [service["options"].get("program") for service in planned["server"]["services"][1:]] == ["functions"] * 2
    for step in planned["client"]["steps"]:
        assert (step["options"]["functions"], step["options"]["calls"]) == (["distance", "void"], 7)
        assert not {"sizes", "procedure"} & step["options"].keys()
    assert len(planned["client"]["steps"]) == 2


def test_a_server_serves_echo_or_functions(paths: RunPaths, tmp_path: Path) -> None:
    both = "  - {app: sunrpc, transports: udp, sizes: 16}\n  - {app: sunrpc, transports: udp, functions: all}\n"
    with pytest.raises(BadInput, match=r"two workloads configure echo-server on 'server' differently"):
        jobs(paths, written(tmp_path, both))


def test_a_server_of_plain_sockets_serves_both(paths: RunPaths, tmp_path: Path) -> None:
    both = "  - {app: raw, transports: udp, sizes: 16}\n  - {app: raw, transports: tcp, functions: all}\n"
    planned = jobs(paths, written(tmp_path, both))
    assert [service["options"]["transports"] for service in planned["server"]["services"]] == [["udp", "tcp"]]
    assert [("functions" in step["options"], "sizes" in step["options"]) for step in planned["client"]["steps"]] == [
        (False, True),
        (True, False),
    ]


def test_series_transports_and_bands_are_steps(paths: RunPaths) -> None:
    steps = jobs(paths, "sunrpc-sweep", scale="paper")["client"]["steps"]
    planned = [(s["options"]["series"], s["options"]["transport"], s["options"]["calls"]) for s in steps]
    assert planned[:4] == [(0, "udp", 3000), (0, "udp", 100), (0, "tcp", 3000), (0, "tcp", 100)]
    assert len(steps) == 40
    for few, many in zip(steps[::2], steps[1::2], strict=True):
        assert sorted(few["options"]["sizes"] + many["options"]["sizes"]) == list(range(16, 8193, 16))
        assert max(few["options"]["sizes"]) < 2048


def test_series_take_the_sizes_in_orders_of_their_own(paths: RunPaths) -> None:
    def orders(seed: int) -> list[list[int]]:
        return [step["options"]["sizes"] for step in jobs(paths, "sunrpc-sweep", seed=seed)["client"]["steps"]]

    first, again, other = orders(1), orders(1), orders(2)
    assert first == again
    assert first[0] != first[2]
    assert first[0] != other[0]
    assert sorted(first[0]) == sorted(first[2]) == sorted(other[0])


def test_null_has_no_sizes_and_udp_no_nodelay(paths: RunPaths, tmp_path: Path) -> None:
    text = "  - {app: sunrpc, transports: [udp, tcp], procedures: [null, sink], sizes: [16, 32]}\n"
    steps = jobs(paths, written(tmp_path, text))["client"]["steps"]
    assert [(s["options"]["procedure"], s["options"]["sizes"]) for s in steps[:2]] == [
        ("null", [0]),
        ("sink", [16, 32]),
    ]
    assert ["tcp_nodelay" in step["options"] for step in steps] == [False, False, True, True]


def test_iperf3(paths: RunPaths) -> None:
    planned = jobs(paths, "iperf3")
    assert planned["server"]["services"] == [{"app": "iperf3-server", "options": {}}]
    assert [step["options"] for step in planned["client"]["steps"]] == [
        {"server": "10.0.0.2", "transport": "tcp", "series": 0, "duration_ms": 2000, "streams": 1, "tcp_nodelay": True},
        {
            "server": "10.0.0.2",
            "transport": "udp",
            "series": 0,
            "duration_ms": 2000,
            "streams": 1,
            "rate_bps": 10_000_000,
        },
    ]


def test_a_bridge_gets_netem_and_no_address(paths: RunPaths) -> None:
    job = jobs(paths, "quickstart", topology="two-hosts-netem")["netem"]
    assert job["bridge"] == {"ports": ["eth0", "eth1"], "netem": {"eth0": "delay 10ms", "eth1": "delay 10ms"}}
    assert all("address" not in interface for interface in job["interfaces"])
    assert (job["services"], job["steps"]) == ([], [])


def test_slow_machines_get_more_time_to_start(paths: RunPaths) -> None:
    assert jobs(paths, "quickstart", "defaults.mips=62.5")["server"]["start_ns"] == 600_000_000
    assert jobs(paths, "quickstart", "start=50 ms", "defaults.mips=62.5")["server"]["start_ns"] == 50_000_000
    assert jobs(paths, "quickstart", clock="real")["server"]["start_ns"] == 0


def test_clients_may_start_one_after_the_other(paths: RunPaths) -> None:
    starts = {name: job["start_ns"] for name, job in jobs(paths, "lane-contention").items()}
    assert starts["server"] == starts["client1"] == 300_000_000
    assert [starts[f"client{number}"] for number in range(2, 6)] == [303_000_000, 306_000_000, 309_000_000, 312_000_000]
    assert {job["start_ns"] for job in jobs(paths, "lane-contention", clock="real").values()} == {0}


def test_a_topology_that_is_brought_up_serves_everything_and_takes_commands(paths: RunPaths) -> None:
    plan = plan_topology(build_network(load_topology("two-hosts-netem")), paths, clock="real", seed=1)
    assert plan.jobs["server"].document()["services"][0] == {"app": "rpcbind", "options": {}}
    assert plan.jobs["netem"].services == ()
    hosts = "127.0.0.1 localhost\n10.0.0.1 client\n10.0.0.2 server\n"
    assert {name: job.files for name, job in plan.jobs.items()} == {name: {"/etc/hosts": hosts} for name in plan.jobs}
    assert all(job.interactive and job.clock == "monotonic" for job in plan.jobs.values())


def test_a_machine_is_named_with_the_address_that_is_reached() -> None:
    document = {
        "name": "named",
        "machines": {
            "a": {"interfaces": {"eth0": {"address": "10.0.1.1/24"}}},
            "b": {"interfaces": {"eth0": {"address": "10.0.2.2/24"}, "eth1": {"address": "10.0.1.2/24"}}},
            "c": {"interfaces": {"eth0": {"address": "10.0.2.3/24"}}},
            "s": {"image": "ssscore", "interfaces": {"eth0": {"address": "10.0.1.4/24"}}},
        },
        "segments": {
            "one": {"kind": "hub", "rate": "10 Mbit/s", "ports": ["a:eth0", "b:eth1", "s:eth0"]},
            "two": {"kind": "hub", "rate": "10 Mbit/s", "ports": ["b:eth0", "c:eth0"]},
        },
    }
    network = build_network(Topology.model_validate(document))
    jobs = build_idle_jobs(network, clock="virtual", seed=1)
    lines = {name: job.files.get("/etc/hosts", "").splitlines()[1:] for name, job in jobs.items()}
    assert lines["a"] == ["10.0.1.1 a", "10.0.1.2 b", "10.0.2.3 c", "10.0.1.4 s"]
    assert lines["c"] == ["10.0.1.1 a", "10.0.2.2 b", "10.0.2.3 c", "10.0.1.4 s"]
    assert lines["s"] == []


@pytest.mark.parametrize("scenario", ["sunrpc-sweep", "raw-sweep"])
def test_the_papers_scale_fits_into_a_job(paths: RunPaths, scenario: str) -> None:
    for job in jobs(paths, scenario, scale="paper").values():
        data = encode_job(Job.model_validate(job), zero_ns=2**40)
        assert len(data) == JOB_BYTES
        assert json.loads(data)["zero_ns"] == 2**40


def test_the_waiting_job_is_padded_with_newlines() -> None:
    data = encode_job(WAITING)
    assert data.startswith(b'{"version":1,"wait":true}\n')
    assert data.rstrip(b"\n") + b"\n" * (JOB_BYTES - 25) == data


def test_a_job_that_is_too_long_is_bad_input(paths: RunPaths) -> None:
    with pytest.raises(BadInput, match=r"the job of machine 'client' has \d+ bytes; allowed: up to 65536"):
        jobs(paths, "sunrpc-sweep", "series=100", scale="paper")
