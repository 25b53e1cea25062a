# SPDX-License-Identifier: Apache-2.0
"""An image's least memory is enough for everything at once: every server on one machine, and every client after the
other beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sundial.model.images import IMAGES
from tests.run.live import LiveRun, require_guests

pytestmark = [pytest.mark.vm, pytest.mark.night, pytest.mark.timeout(1800)]

SCENARIO = """\
description: every system on one machine of the least memory
topology: one-host
seed: 3
linger: 300 ms
deadline: 10 min
workloads:
  - {{app: grpc, functions: all, calls: {calls}, languages: {languages}, max_workers: 64, clients: server}}
  - {{app: grpc, functions: all, calls: 2, port: 50061, clients: server}}
  - {{app: rpyc, functions: all, calls: {calls}, containers: [list, tuple], distance: [numpy, zip],
     tcp_nodelay: [false, true], clients: server}}
  - {{app: sunrpc, transports: [udp, tcp], sizes: [16, 8192], calls: {calls}, clients: server}}
  - {{app: raw, transports: [udp, tcp], sizes: [16, 8192], calls: {calls}, clients: server}}
  - {{app: dce, sizes: [16, 8192], calls: {calls}, clients: server}}
"""


@pytest.mark.parametrize("image", ["linux-python", "linux-python-current"])
def test_every_system_runs_on_one_machine_of_the_least_memory(tmp_path: Path, image: str) -> None:
    require_guests(image)
    kind = IMAGES[image]
    scenario, run = tmp_path / "all.yaml", tmp_path / "run"
    languages = "[python, cpp]" if kind.cpp else "[python]"
    scenario.write_text(SCENARIO.format(languages=languages, calls=20))
    settings = (f"defaults.image={image}", f"defaults.memory={kind.memory_least // 2**20} MiB")
    status, output = LiveRun(scenario, run, *(word for each in settings for word in ("--set", each))).end(1500)
    console = (run / "nodes/server/console.log").read_text() if run.is_dir() else ""
    # The kernel kills a program before a machine has no memory left.
    assert re.findall(r"(?i)out of memory|oom|panic", console) == []
    assert status == 0, output
