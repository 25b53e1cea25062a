# SPDX-License-Identifier: Apache-2.0
"""A new image is one new folder: in a copy of the checkout it is listed, checked, planned and built."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parents[2]

DECLARATION = """description = "A toy"
platform = "toy-os"
roles = ["host"]
memory = "8 MiB"
memory_least = "4 MiB"
memory_most = "64 MiB"
start = "7 ms"
translations_mib = 3
greeting = ["true"]
binder = "portmapper"
"""
BUILD = """#!/bin/sh
mkdir -p ../out/toy && cd ../out/toy && echo kernel > kernel && echo initrd > initrd
echo '{"version": 1, "name": "toy", "kernel_release": "toy 1", "cmdline": "quiet"}' > manifest.json
"""
TOPOLOGY = """description: Two toys
defaults: {image: toy}
machines:
  a: {interfaces: {eth0: {address: 10.0.0.1/24}}}
  b: {interfaces: {eth0: {address: 10.0.0.2/24}}}
segments:
  lan: {kind: hub, rate: 10 Mbit/s, ports: ["a:eth0", "b:eth0"]}
"""
PLAN = """
import json, sys
from pathlib import Path
from sundial.cli import rooms
from sundial.machines.fake import FakeHypervisor
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.plan.build import Boot, MachineFiles, domain_spec, plan_topology
from sundial.plan.domain import domain_xml
from sundial.plan.jobs import default_start
from sundial.plan.paths import RunPaths

paths = RunPaths(capture=Path("/run/wire"), sockets=Path("/run/s"), shm=Path("/dev/shm/x"))
plan = plan_topology(build_network(load_topology(sys.argv[1])), paths, clock="virtual", seed=1)
image = rooms.images().ensure(plan.network.nodes[0].image, lambda text: None)
boot = Boot(Path("/usr/bin/qemu"), image.kernel, image.initrd, image.manifest["cmdline"])
files = MachineFiles(console=Path("/r/console"), samples=Path("/r/samples"), job=Path("/r/job"))
hypervisor = FakeHypervisor()
documents = [domain_xml(domain_spec(plan, node, node.name, boot, files)) for node in plan.network.nodes]
machines = [hypervisor.start(node.name, xml) for node, xml in zip(plan.network.nodes, documents)]
print(json.dumps({
    "machines": [machine.name for machine in machines],
    "jobs": list(plan.jobs),
    "start_ns": default_start(plan.network),
    "domain": documents[0],
}))
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what `sundial` is made of, with the image `toy` beside the shipped ones."""
    tmp_path = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__", "*.c", "*.h", "tests", "out")
    shutil.copytree(HARNESS / "sundial", tmp_path / "harness" / "sundial", ignore=ignored)
    shutil.copytree(HARNESS.parent / "images", tmp_path / "images", ignore=ignored)
    folder = tmp_path / "images" / "toy"
    folder.mkdir()
    (folder / "image.toml").write_text(DECLARATION)
    (folder / "build").write_text(BUILD)
    (folder / "build").chmod(0o755)
    (tmp_path / "toys.yaml").write_text(TOPOLOGY)
    return tmp_path


def python(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "harness")}
    return subprocess.run(
        [sys.executable, *words], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )


def sundial(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return python(checkout, "-m", "sundial.cli", *words)


def test_a_new_image_is_listed_and_built(checkout: Path) -> None:
    assert [line.split()[:2] for line in sundial(checkout, "images", "list").stdout.splitlines()[1:]] == [
        ["linux", "missing"], ["ssscore", "missing"], ["toy", "missing"],
    ]  # fmt: skip
    assert sundial(checkout, "images", "build", "toy").stdout.startswith("toy  kernel ")
    assert "toy      built    toy 1   A toy" in sundial(checkout, "images", "list").stdout


def test_a_topology_may_name_it_and_its_declaration_counts(checkout: Path) -> None:
    assert sundial(checkout, "topology", "check", "toys.yaml").stdout.startswith("toys.yaml: sound")
    refused = sundial(checkout, "topology", "check", "toys.yaml", "--set", "defaults.memory=2 MiB")
    assert refused.returncode == 2
    assert "2 MiB for 'a', which boots toy; allowed: a size from 4 MiB to 64 MiB, such as '8 MiB'" in refused.stderr
    refused = sundial(checkout, "topology", "check", "toys.yaml", "--set", "machines.a.role=bridge")
    assert "image 'toy' cannot be a bridge; allowed: host" in refused.stderr
    refused = sundial(checkout, "topology", "check", "toys.yaml", "--set", "defaults.image=tin")
    assert "there is no image 'tin'; allowed: linux, ssscore, toy" in refused.stderr


def test_a_wrong_declaration_is_one_line(checkout: Path) -> None:
    tin = checkout / "images" / "tin" / "image.toml"
    tin.parent.mkdir()
    tin.write_text(DECLARATION + 'colour = "red"\n')
    refused = sundial(checkout, "images", "list")
    shutil.rmtree(tin.parent)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = (line for line in refused.stderr.splitlines() if "image.toml" in line)
    assert "images/tin/image.toml:11: colour: unknown field; allowed: name, description, platform" in line


def test_it_is_planned_and_its_machines_are_made(checkout: Path) -> None:
    done = python(checkout, "-c", PLAN, "toys.yaml")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert (plan["machines"], plan["jobs"], plan["start_ns"]) == (["a", "b"], ["a", "b"], 7_000_000)
    for part in (f'<memory unit="b">{8 << 20}<', f"<kernel>{checkout}/images/out/toy/kernel<", 'unit="MiB">3<'):
        assert part in plan["domain"]
