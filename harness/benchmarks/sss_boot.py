# SPDX-License-Identifier: Apache-2.0
"""Two nodes in plain QEMU on one socket, without libvirt and fabric: what booting to the first call takes by itself."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from benchmarks.context import Cannot
from sundial.machines.connection import EMULATOR
from sundial.machines.images import Image
from sundial.model.load import load_experiments
from sundial.plan.build import plan_run
from sundial.plan.domain import JOB_FILE, SAMPLES_PORT
from sundial.plan.jobs import encode_job
from sundial.plan.paths import RunPaths

DEADLINE_S = 30.0
LOOK_S = 0.002


def first_call_s(folder: Path, image: Image, scenario: Path) -> float:
    """Wall seconds from the start of two QEMUs to the client's telling of a good call, under the real clock.

    `scenario` has one workload between `client` and `server`. Raises Cannot when the call fails or does not come.
    """
    (experiment,) = load_experiments(str(scenario), clock="real")
    plan = plan_run(experiment, RunPaths(folder, folder, folder / "shm"))
    names = [node.name for node in plan.network.nodes]
    for node in plan.network.nodes:
        (folder / f"{node.name}.job").write_bytes(encode_job(plan.jobs[node.name]))
    samples = folder / "client.samples"
    machines: list[subprocess.Popen[bytes]] = []
    began = time.monotonic()
    try:
        for node in plan.network.nodes:
            other = next(name for name in names if name != node.name)
            machines.append(subprocess.Popen(_command(folder, image, node.name, other, node.memory)))
        while not _has_called(samples):
            if time.monotonic() - began > DEADLINE_S or any(machine.poll() is not None for machine in machines):
                raise Cannot("the first call was not seen")
            time.sleep(LOOK_S)
        return time.monotonic() - began
    finally:
        for machine in machines:
            machine.kill()
            machine.wait()


def _has_called(samples: Path) -> bool:
    lines = samples.read_text().split("\n")[:-1] if samples.exists() else []
    records = [json.loads(line) for line in lines]
    rows = [line for line in records if isinstance(line, list)]
    if not rows:
        return False
    columns = next(line["columns"] for line in records if isinstance(line, dict) and line["type"] == "batch")
    if rows[0][columns.index("ok")] != 1:
        raise Cannot("the first call has failed")
    return True


def _command(folder: Path, image: Image, name: str, other: str, memory: int) -> list[str]:
    ends = f"local.type=unix,local.path={folder}/{name}.sock,remote.type=unix,remote.path={folder}/{other}.sock"
    return [
        EMULATOR,
        *("-M", "q35", "-accel", "tcg,thread=single", "-cpu", "qemu64,-rdrand,-cx16", "-m", str(memory >> 20)),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-netdev", f"dgram,id=n0,{ends}", "-device", "virtio-net-pci,netdev=n0,romfile="),
        *("-chardev", f"file,id=samples,path={folder}/{name}.samples", "-device", "virtio-serial-pci"),
        *("-device", f"virtserialport,chardev=samples,name={SAMPLES_PORT}"),
        *("-fw_cfg", f"name={JOB_FILE},file={folder}/{name}.job", "-serial", f"file:{folder}/{name}.console"),
        *("-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", str(image.manifest["cmdline"])),
    ]
