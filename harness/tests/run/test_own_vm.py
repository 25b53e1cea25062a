# SPDX-License-Identifier: Apache-2.0
"""Machines with kernels, initrds and files of their own, booted."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from sundial.machines.archives import cpio
from sundial.machines.images import Image, Images
from sundial.run.places import Places
from tests.model.kernels import FILE, elf, newc
from tests.run.live import LiveRun, night, output_of, require_guests, sundial, up, write_scenario
from tests.run.served import passed

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

SIZES = "0:64:32"
TOPOLOGY = """\
description: two hosts, of which the client has files of its own
machines:
  client:
    interfaces: {eth0: {address: 10.0.0.1/24}}
    files:
      /etc/motd: {content: "mine\\n"}
      /usr/bin/greet: {from: greet, mode: "0755"}
      /root/secret: {content: "x", mode: "0600"}
      /usr/bin/su-like: {content: "x", mode: "4755"}
      /bin/tcpdump: {content: "#!/bin/sh\\necho my tcpdump\\n", mode: "0750"}
      /opt/deep/down/file: {content: ""}
  server:
    interfaces: {eth0: {address: 10.0.0.2/24}}
segments:
  lan: {kind: hub, rate: 10 Mbit/s, cable_delay: 25 ns, ports: ["client:eth0", "server:eth0"]}
"""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


@pytest.fixture
def image() -> Image:
    return Images(Places().checkout).ensure("linux", lambda line: None)


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    (tmp_path / "greet").write_text("#!/bin/sh\ncat /etc/motd\n")
    path = tmp_path / "own-files.yaml"
    path.write_text(TOPOLOGY)
    return path


def run(folder: Path, name: str, *options: str) -> dict[str, Any]:
    """A run that passes; its record."""
    scenario = write_scenario(folder, sizes=SIZES, calls=2)
    passed(scenario, folder / name, *options)
    return LiveRun.read(folder / name)


def damaged(image: Image, folder: Path) -> list[str]:
    """Options that give the client a kernel, or an initrd, that QEMU starts and that does not come up."""
    (folder / "resets").write_bytes(elf())
    (folder / "no-init").write_bytes(newc({"x": (FILE, b"")}))
    return [f"machines.client.{each}" for each in (f"kernel={folder / 'resets'}", f"initrd={folder / 'no-init'}")]


def test_files_are_there_with_their_modes_and_win_over_the_images(topology: Path) -> None:
    with up(topology):
        assert output_of(topology, "client", "greet") == "mine\n"
        # Among the image's extras, which are unpacked after the boot.
        assert output_of(topology, "client", "tcpdump") == "my tcpdump\n"
        names = [
            "/etc/motd",
            "/usr/bin/greet",
            "/root/secret",
            "/usr/bin/su-like",
            "/bin/tcpdump",
            "/opt/deep/down/file",
        ]
        listed = output_of(topology, "client", "stat", "-c", "%a %u %g %n", *names, "/opt/deep")
        assert listed.splitlines() == [
            "644 0 0 /etc/motd",
            "755 0 0 /usr/bin/greet",
            "600 0 0 /root/secret",
            "4755 0 0 /usr/bin/su-like",
            "750 0 0 /bin/tcpdump",
            "644 0 0 /opt/deep/down/file",
            "755 0 0 /opt/deep",
        ]
        # A link of the image's, as /usr/bin may be, stays one.
        above = [
            output_of(topology, each, "stat", "-c", "%f %n", "/usr/bin", "/bin", "/tmp")
            for each in ("client", "server")
        ]
        assert above[0] == above[1]
        assert output_of(topology, "server", "find", "/", "-xdev", "-name", "greet") == ""


@pytest.mark.parametrize("clock", ["virtual", night("real")])
def test_a_run_records_what_was_booted(topology: Path, tmp_path: Path, clock: str) -> None:
    record = run(tmp_path, "run", "--topology", str(topology), "--clock", clock)
    (booted,) = record["boots"].values()
    greet = b"#!/bin/sh\ncat /etc/motd\n"
    assert booted["files"]["/usr/bin/greet"] == {
        "sha256": hashlib.sha256(greet).hexdigest(),
        "mode": "0755",
        "bytes": len(greet),
    }
    assert booted["kernel"] == record["images"]["linux"]["sha256"]["kernel"]
    assert booted["initrd"] != record["images"]["linux"]["sha256"]["initrd"]
    # The files are no more needed, on this host or on another.
    (tmp_path / "greet").unlink()
    topology.unlink()
    assert sundial("verify", str(tmp_path / "run")).returncode == 0


@pytest.mark.night
def test_the_same_files_under_other_names_give_the_same_bytes(image: Image, tmp_path: Path) -> None:
    for part, path in (("kernel", image.kernel), ("initrd", image.initrd)):
        shutil.copy(path, tmp_path / part)
    ours = run(tmp_path, "image")
    own = [word for part in ("kernel", "initrd") for word in ("--set", f"defaults.{part}={tmp_path / part}")]
    theirs = run(tmp_path, "own", *own)
    if ours["images"] != theirs["images"]:
        pytest.skip("the image was changed meanwhile")
    assert ours["captures"] == theirs["captures"]
    assert theirs["boots"]["server"]["kernel"] == image.kernel_sha256


@pytest.mark.night
def test_a_compressed_initrd_has_the_files_laid_over_it(image: Image, topology: Path, tmp_path: Path) -> None:
    if "gzip" not in image.manifest["unpacks"]:
        pytest.skip(f"the kernel of recipe {image.recipe} does not unpack gzip")
    (tmp_path / "small.gz").write_bytes(gzip.compress(image.initrd.read_bytes(), 1))
    options = ["--set", f"machines.client.initrd={tmp_path / 'small.gz'}", "--set", "defaults.memory=160 MiB"]
    with up(topology, *options, "--set", "defaults.cmdline=loglevel=3 mine=1"):
        assert output_of(topology, "client", "greet") == "mine\n"
        assert output_of(topology, "server", "cat", "/proc/cmdline").endswith(" loglevel=3 mine=1\n")


@pytest.mark.parametrize(("clock", "which"), [("virtual", 0), ("real", 1), night("real", 0), night("virtual", 1)])
def test_what_does_not_come_up_names_its_machine(image: Image, tmp_path: Path, clock: str, which: int) -> None:
    scenario = write_scenario(tmp_path, sizes=SIZES, calls=2)
    live = LiveRun(scenario, tmp_path / "run", "--clock", clock, "--set", damaged(image, tmp_path)[which])
    status, output = live.end()
    assert status == 4, output
    assert "sundial: client: " in output
    assert LiveRun.read(tmp_path / "run")["status"] == "failed"


def test_a_task_of_ones_own_runs_on_one_node_of_sss_core(tmp_path: Path) -> None:
    require_guests("linux", "ssscore")
    tasks = Images(Places().checkout).ensure("ssscore", lambda line: None).initrd.read_bytes()
    entries, _ = cpio.read(tasks)
    (hello,) = [entry.data for entry in entries if entry.path == "hello"]
    (tmp_path / "hello").write_bytes(hello)
    own = tmp_path / "own-tasks.yaml"
    machines = "".join(
        f"  {name}: {{interfaces: {{eth0: {{address: 10.0.0.{number}/24}}}}{files}}}\n"
        for name, number, files in (
            ("first", 1, ", files: {/my-hello: {from: hello}, /sum: {content: junk}}"), ("second", 2, ""),
        )
    )  # fmt: skip
    own.write_text(
        f"description: a task\ndefaults: {{image: ssscore}}\nmachines:\n{machines}segments:\n"
        '  lan: {kind: hub, rate: 10 Mbit/s, cable_delay: 25 ns, ports: ["first:eth0", "second:eth0"]}\n'
    )
    with up(own):
        assert output_of(own, "first", "run", "my-hello").startswith("task ")
        assert sundial("exec", "--topology", "own-tasks", "first", "--", "run", "sum").returncode == 1
        assert sundial("exec", "--topology", "own-tasks", "second", "--", "run", "my-hello").returncode == 1
        log = output_of(own, "first", "log")
        assert "my-hello: task " in log
        assert "task sum cannot start: it is not an ELF64 file\n" in log
