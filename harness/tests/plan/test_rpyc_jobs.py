# SPDX-License-Identifier: Apache-2.0
"""The servers and calls that a scenario with RPyC becomes in jobs."""

from __future__ import annotations

from pathlib import Path

from sundial.model.load import load_experiments
from sundial.plan.build import plan_run
from sundial.plan.paths import RunPaths
from tests.model.documents import scenario

PATHS = RunPaths(capture=Path("/run/wire"), sockets=Path("/run/s"), shm=Path("/dev/shm/sundial-x"))
TOPOLOGY = "two-hosts-python"


def test_each_function_is_called_where_it_makes_a_difference(tmp_path: Path) -> None:
    path = scenario(
        tmp_path,
        TOPOLOGY,
        "app: rpyc, functions: [void, int_array, distance], containers: [list, tuple], distance: [numpy, zip], "
        "tcp_nodelay: [false, true], calls: 5",
    )
    jobs = plan_run(load_experiments(path, seed=7)[0], PATHS).jobs
    services = [(each.app, each.options) for each in jobs["server"].services]
    assert services == [
        ("rpyc-server", {"port": 18861, "tcp_nodelay": False}),
        ("rpyc-server", {"port": 18862, "tcp_nodelay": True}),
    ]
    steps = [each.options for each in jobs["client"].steps]
    names = ("port", "tcp_nodelay", "container", "distance", "functions")
    turns = [
        ("list", "numpy", ["void", "int_array", "distance"]),
        ("list", "zip", ["distance"]),
        ("tuple", "numpy", ["int_array", "distance"]),
        ("tuple", "zip", ["distance"]),
    ]
    assert [tuple(step[name] for name in names) for step in steps] == [
        (port, nodelay, *turn) for port, nodelay in ((18861, False), (18862, True)) for turn in turns
    ]
    assert steps[0] | {"functions": None} == {
        "server": "10.0.0.2", "port": 18861, "functions": None, "container": "list", "distance": "numpy",
        "tcp_nodelay": False, "calls": 5, "warmup": 1, "series": 0, "total_timeout_ms": 25_000,
    }  # fmt: skip


def test_server_that_dies_knows_its_last_call(tmp_path: Path) -> None:
    path = scenario(tmp_path, TOPOLOGY, "app: rpyc, die: {call: 3}")
    (service,) = plan_run(load_experiments(path)[0], PATHS).jobs["server"].services
    assert service.options == {"port": 18861, "tcp_nodelay": False, "die_call": 3}
