# SPDX-License-Identifier: Apache-2.0
"""Shipped scenarios as small as they get: the base of the gate's booted runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

from sundial.model.catalog import FOLDERS
from sundial.model.load import load_experiments
from tests.run.served import passed

WHOLE = {
    "etcd",
    "mbcf-operations",
    "nfs",
    "nfs-udp",
    "partition",
    "redis",
    "shrimp-rpc-sweep",
    "sss-mixed",
    "sss-rpc-sweep",
    "store",
    "vmmc-operations",
}
"""Small enough to be run as they are, or of another time without their calls."""
PACKAGED = {"etcd", "nfs", "nfs-udp", "redis"}
"""With programs of Debian's packages, which apt chooses on each host: at night, with the network, and always twice."""


def smallest(scenario: str) -> Iterator[str]:
    """The least and the greatest size, one call of each, one series, one second."""
    for number, workload in enumerate(load_experiments(scenario)[0].scenario.workloads):
        written = workload.model_dump(exclude_none=True)
        if "sizes" in written:
            sizes = sorted(written["sizes"])
            yield f"workloads.{number}.sizes={sizes[0]},{sizes[-1]}"
        for field, least in (("calls", "1"), ("series", "1"), ("duration", "1 s")):
            if field in written:
                yield f"workloads.{number}.{field}={least}"


def options(scenario: str) -> list[str]:
    """The options of the command line that make a scenario small."""
    return [] if scenario in WHOLE else [word for change in smallest(scenario) for word in ("--set", change)]


def first_variant(scenario: str, folder: Path) -> Path:
    """The scenario in a file of the same name, with the first entry of its `vary` alone."""
    yaml = YAML()
    written = yaml.load(FOLDERS["scenario"] / f"{scenario}.yaml")
    if written.get("vary"):
        written["vary"] = written["vary"][:1]
    if "check" in written.get("expect", {}):
        written["expect"]["check"][0] = str(FOLDERS["scenario"] / written["expect"]["check"][0])
    file = folder / f"{scenario}.yaml"
    yaml.dump(written, file)
    return file


def variants(scenario: str) -> int:
    """How many runs a scenario asks for."""
    return len(load_experiments(scenario))


def run_first_variant(scenario: str, folder: Path, *, report: bool = False) -> Path:
    """The directory of a run of the first variant, which verifies."""
    folder.mkdir(parents=True)
    output = passed(first_variant(scenario, folder), folder / "run", *options(scenario), report=report)
    assert output.count("verdict  pass") == 1
    return folder / "run"
