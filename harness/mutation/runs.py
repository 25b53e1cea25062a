# SPDX-License-Identifier: Apache-2.0
"""The runs that are damaged: small ones of each workload, wire and clock, made by guests and kept in `recorded`."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from mutation.damage import PRODUCTS
from sundial.errors import RunFailed

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
RECORDED = HERE / "recorded"
NAMES = (
    "sunrpc-virtual", "sunrpc-real", "raw-virtual", "raw-real", "mbcf-virtual", "mbcf-real",
    "sunrpc-mbcf-virtual", "sunrpc-mbcf-real", "sss-virtual", "iperf3-virtual", "iperf3-real",
    "link-virtual", "link-events-virtual", "jitter-virtual", "switch-virtual", "netem-virtual",
    "lane-virtual", "lane-faults-virtual", "own-virtual", "dce-virtual", "dce-real", "dce-loss-virtual",
    "vmmc-virtual", "shrimprpc-virtual", "vrpc-virtual", "vrpc-notify-virtual",
    "trace-virtual", "grpc-virtual", "grpc-real", "rpyc-virtual", "rpyc-real", "command-virtual",
)  # fmt: skip
"""SCENARIO-CLOCK of each."""
MADE_WITHIN_S = 300


def make(name: str, folder: Path) -> Path:
    """Boot the guests and make the run. Raises RunFailed where it does not pass by itself."""
    scenario, _, clock = name.rpartition("-")
    run = folder / name
    command = ["run", str(HERE / "scenarios" / f"{scenario}.yaml"), "--clock", clock, "--out", str(run)]
    done = subprocess.run(
        [str(CHECKOUT / "sundial"), *command], capture_output=True, text=True, timeout=MADE_WITHIN_S, check=False
    )
    if done.returncode != 0:
        raise RunFailed(f"{name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return run


def keep(run: Path) -> None:
    """Store a run without what verification writes."""
    RECORDED.mkdir(exist_ok=True)
    with zipfile.ZipFile(RECORDED / f"{run.name}.zip", "w", zipfile.ZIP_LZMA) as archive:
        for file in sorted(run.rglob("*")):
            name = file.relative_to(run)
            if file.is_file() and name.parts[0] not in PRODUCTS:
                archive.writestr(zipfile.ZipInfo(str(name)), file.read_bytes(), zipfile.ZIP_LZMA)


def recorded(name: str, folder: Path) -> Path:
    """A stored run, in a folder of its own."""
    run = folder / name
    with zipfile.ZipFile(RECORDED / f"{name}.zip") as archive:
        archive.extractall(run)
    return run


def stored() -> list[str]:
    """Runs that are in the repository."""
    return [name for name in NAMES if (RECORDED / f"{name}.zip").is_file()]
