# SPDX-License-Identifier: Apache-2.0
"""A backplane in what is started: the fabric's fields, a machine's device and plugin, and no interface in the job."""

from __future__ import annotations

from pathlib import Path

from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.plan.build import Boot, MachineFiles, boot_plugin, domain_spec, plan_topology, run_plugin
from sundial.plan.domain import machine_flags
from sundial.plan.paths import RunPaths

PATHS = RunPaths(capture=Path("/run/wire"), sockets=Path("/run/sockets"), shm=Path("/dev/shm/x"))
DEVICE = "ivshmem-plain,memdev=vmmc0,master=on,bus=pcie.0,addr=0x18"


def test_a_backplane_in_the_plan() -> None:
    plan = plan_topology(build_network(load_topology("sss-two-vmmc")), PATHS, clock="virtual", seed=1)
    backplane, lan = plan.fabric["segments"]
    assert backplane == {
        "name": "backplane", "kind": "vmmc", "max_frame_bytes": 4128,
        "adapter": {"ring_frames": 1, "when_full": "drop"},
        "ports": [
            {"machine": "client", "nic": 1, "interface": "vmmc0", "mac": "02:53:44:00:01:01"},
            {"machine": "server", "nic": 1, "interface": "vmmc0", "mac": "02:53:44:00:01:02"},
        ],
        "word_latency_ns": 4250, "link_rate_bps": 1_600_000_000, "dma_rate_bps": 184_000_000, "nodes": [1, 2],
    }  # fmt: skip
    assert lan["max_frame_bytes"] == 1514
    assert plan.fabric["machines"] == [{"name": "client", "nics": 2}, {"name": "server", "nics": 2}]
    assert [interface.device for interface in plan.jobs["server"].interfaces] == ["eth0"]


def test_a_machine_on_a_backplane() -> None:
    plan = plan_topology(build_network(load_topology("sss-two-vmmc")), PATHS, clock="virtual", seed=1)
    node = plan.network.node("server")
    nowhere = Path("/x")
    boot = Boot(nowhere, nowhere, nowhere, "", "", "")
    spec = domain_spec(plan, node, "d", boot, MachineFiles(nowhere, nowhere, nowhere))
    flags = machine_flags(spec)
    assert flags[-4:] == ("-object", "memory-backend-ram,id=vmmc0,size=16M", "-device", DEVICE)
    assert sum(each.startswith("virtio-net-pci") for each in flags) == len(spec.nics) == 1
    running = dict(run_plugin(plan, node, nowhere, supervisor=2, report=nowhere, zero_ns=0).arguments)
    assert running["nics"] == 2
    assert running["vmmc"] == "2:1024:1000:2800:1600000000:184000000:32768"
    booting = dict(boot_plugin(node, nowhere, supervisor=2, report=nowhere).arguments)
    assert booting["nics"] == 1
    assert "vmmc" not in booting
