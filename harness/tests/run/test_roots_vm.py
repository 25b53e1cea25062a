# SPDX-License-Identifier: Apache-2.0
"""Machines with programs of others in their roots, booted: a container image, a folder, and packages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sundial.machines.images import Images
from sundial.run.places import Places
from tests.machines.containers import archive, folder, layer, layout, link, member
from tests.run.live import LiveRun, hog, output_of, require_guests, sundial, up, write_scenario
from tests.run.served import passed

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

SCRIPT = b"#!/bin/sh\nexec cat /etc/word\n"
TOPOLOGY = """\
description: two hosts with programs of others
machines:
  client:
    root: {{{client}}}
    interfaces: {{eth0: {{address: 10.0.0.1/24}}}}
    files: {{/etc/mine: {{content: "mine\\n", mode: "0640"}}}}
  server:
    root: {{{server}}}
    interfaces: {{eth0: {{address: 10.0.0.2/24}}}}
segments:
  lan: {{kind: hub, rate: 10 Mbit/s, cable_delay: 25 ns, ports: ["client:eth0", "server:eth0"]}}
"""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()
    if Images(Places().checkout).ensure("linux", lambda line: None).recipe != "distribution":
        pytest.skip("the kernel has no driver for a mapped file system")


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """The client has a container image in memory, whose /usr is merged; the server a folder on a disk."""
    lower = layer(
        folder("usr/bin"),
        link("bin", "usr/bin"),
        link("sbin", "usr/bin"),
        member("usr/bin/word", content=SCRIPT, mode=0o755),
        member("etc/word", content=b"lower\n"),
        member("etc/gone", content=b"x"),
        member("srv/owned", content=b"x", uid=7, gid=8, mode=0o4750),
        folder("tmp", 0o1777),
    )
    upper = layer(member("etc/.wh.gone"), member("etc/word", content=b"upper\n"))
    archive(tmp_path / "image.tar", layout(tmp_path / "image", lower, upper))
    tree = tmp_path / "tree"
    (tree / "opt" / "bin").mkdir(parents=True)
    (tree / "opt" / "data").write_bytes(os.urandom(1 << 20) * 70)
    (tree / "opt" / "bin" / "word").write_bytes(SCRIPT)
    (tree / "opt" / "bin" / "word").chmod(0o755)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / "word").symlink_to("/opt/bin/word")
    (tree / "etc").mkdir()
    (tree / "etc" / "word").write_bytes(b"folder\n")
    return write(tmp_path, "roots", client="oci: image.tar", server="folder: tree, as: disk")


def write(folder: Path, name: str, **roots: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(TOPOLOGY.format(**roots))
    return path


def run(folder: Path, name: str, topology: Path, *options: str) -> Mapping[str, Any]:
    """A run that passes; its record."""
    scenario = write_scenario(folder, sizes="0:64:32", calls=2)
    passed(scenario, folder / name, "--topology", str(topology), *options)
    return LiveRun.read(folder / name)


def test_programs_of_an_image_and_of_a_folder_run_in_their_usual_paths(topology: Path) -> None:
    with up(topology, "--set", "machines.server.files={/etc/word: {content: laid}, /tmp/x: {content: x}}"):
        for words in (("word",), ("/usr/bin/word",), ("sh", "-c", "/bin/word")):
            assert output_of(topology, "client", *words) == "upper\n"
        assert output_of(topology, "client", "sh", "-c", "ls /etc/gone 2>&1 || cat /etc/mine").endswith("mine\n")
        assert output_of(topology, "client", "stat", "-c", "%a %u %g", "/srv/owned", "/tmp") == "4750 7 8\n1777 0 0\n"
        # On the disk: what a topology lays over it, what is written, and what it holds.
        assert output_of(topology, "server", "/opt/bin/word") == "laid"
        assert output_of(topology, "server", "sh", "-c", "echo new >/etc/word; word") == "new\n"
        assert output_of(topology, "server", "sh", "-c", "rm /opt/data; ls /opt") == "bin\n"
        mounted = output_of(topology, "server", "mount")
        assert mounted.startswith("none on / type overlay ")
        assert output_of(topology, "server", "tcpdump", "--version").startswith("tcpdump")


def test_runs_with_roots_are_equal_restored_and_cold_and_on_a_busy_host(topology: Path, tmp_path: Path) -> None:
    first = run(tmp_path, "first", topology)
    with hog():
        cold = run(tmp_path, "cold", topology, "--cold")
    assert first["captures"] == cold["captures"]
    assert first["boots"] == cold["boots"]
    root = first["boots"]["server"]["root"]
    assert list(root["sources"]) == ["folder"]
    assert root["bytes"] > 70 << 20
    # Less than the root, which is 70 MiB: it is not in memory.
    assert first["topology"]["defaults"].get("memory") is None


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("folder: tree", "machines.server.memory: 96 MiB are too little for a root of "),
        ("oci: device.tar", "machines.server.root.oci: layer "),
        ("oci: image.tar, as: disk, tag: x", "machines.server.root.oci: "),
    ],
)
def test_a_root_that_cannot_be_made_is_one_line_and_nothing_starts(topology: Path, server: str, said: str) -> None:
    folder = topology.parent
    archive(folder / "device.tar", layout(folder / "device", layer(member("dev/sda", b"4"))))
    wrong = write(folder, "wrong", client="oci: image.tar", server=server)
    done = sundial("up", str(wrong))
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("sundial: ")]
    assert said in line
    # Other tests have topologies up at the same time.
    assert sundial("exec", "--topology", wrong.stem, "server", "--", "true").returncode == 2


@pytest.mark.night
@pytest.mark.parametrize("held", ["memory", "disk"])
@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_redis_of_packages_serves_another_machine(tmp_path: Path, clock: str, held: str) -> None:
    roots = {"client": f"packages: [redis-tools], as: {held}", "server": f"packages: [redis-server], as: {held}"}
    topology = write(tmp_path, f"redis-{held}", **roots)
    with up(topology, "--clock", clock, "--set", "defaults.memory=192 MiB"):
        serve = "redis-server --bind 0.0.0.0 --protected-mode no --save '' --daemonize yes"
        output_of(topology, "server", "sh", "-c", f"{serve} && until redis-cli ping; do sleep 0.1; done")
        assert output_of(topology, "client", "redis-cli", "-h", "10.0.0.2", "incr", "a") == "1\n"
        assert output_of(topology, "client", "redis-cli", "-h", "10.0.0.2", "incr", "a") == "2\n"
