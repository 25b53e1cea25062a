# SPDX-License-Identifier: Apache-2.0
"""post-build.sh and post-image.sh on made-up folders, called as Buildroot calls them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import symbols

BOARD = symbols.TREE / "board/sundial/linux"
IMAGE = symbols.TREE.parent / "images/linux"
PROGRAMS = (
    *("sbin/ifconfig", "sbin/ip", "sbin/modprobe", "sbin/tc"),
    *("usr/bin/iperf3", "usr/bin/tcpdump", "usr/sbin/ethtool", "usr/sbin/rpcbind"),
)
UNUSED = (
    *("etc/init.d/S01", "etc/network/interfaces", "usr/share/doc/a"),
    *("usr/bin/tcpdump.4.99", "usr/bin/rpcinfo", "sbin/ss"),
)


def _write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """The folder in which the kernel was built."""
    tree = tmp_path / "build/linux-6.1.183"
    _write(tree / "include/config/kernel.release", "6.1.183\n")
    _write(tree / "modules.builtin", "kernel/net/bridge/bridge.ko\n")
    _write(tree / ".config", "CONFIG_HZ=100\n")
    _write(tmp_path / "build/linux-headers-6.1.183/Makefile")
    return tree


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A root as the packages leave it."""
    root = tmp_path / "target"
    for path in (*PROGRAMS, *UNUSED):
        _write(root / path)
    for folder in ("bin", "etc"):
        (root / folder).mkdir(exist_ok=True)
    return root


def _run(script: str, argument: Path, kernel: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"BUILD_DIR": str(kernel.parent)}
    return subprocess.run([BOARD / script, argument], env=environment, capture_output=True, text=True, check=False)


def test_the_root_gets_what_the_first_process_needs_and_loses_what_nothing_uses(target: Path, kernel: Path) -> None:
    for _ in range(2):  # a second build finds the root as the first has left it
        done = _run("post-build.sh", target, kernel)
        assert (done.returncode, done.stderr) == (0, "")
    assert (target / "init").read_bytes() == (IMAGE / "init").read_bytes()
    assert os.access(target / "init", os.X_OK)
    for file in (IMAGE / "etc").iterdir():
        assert (target / "etc" / file.name).read_bytes() == file.read_bytes()
    for path in PROGRAMS:
        assert (target / "bin" / Path(path).name).resolve() == target / path
    assert (target / "lib/modules/6.1.183/modules.builtin").read_bytes() == (kernel / "modules.builtin").read_bytes()
    assert (target / "lib/modules/6.1.183/modules.dep").read_bytes() == b""
    assert [path for path in UNUSED if (target / path).exists()] == []


def test_a_program_that_the_runner_calls_is_missed(target: Path, kernel: Path) -> None:
    (target / "usr/bin/iperf3").unlink()
    done = _run("post-build.sh", target, kernel)
    assert (done.returncode, done.stderr) == (1, "post-build.sh: usr/bin/iperf3 is missing\n")


def test_a_program_that_needs_a_dynamic_linker_stops_the_build(target: Path, kernel: Path) -> None:
    shutil.copy("/bin/true", target / "usr/bin/iperf3")
    done = _run("post-build.sh", target, kernel)
    linker = "/lib64/ld-linux-x86-64.so.2"
    said = f"post-build.sh: usr/bin/iperf3 is not linked statically, and {linker} is missing\n"
    assert (done.returncode, done.stderr) == (1, said)
    # As musl has it: a link to the C library.
    (target / "lib64").mkdir()
    (target / linker[1:]).symlink_to("../lib/libc.so")
    done = _run("post-build.sh", target, kernel)
    assert (done.returncode, done.stderr) == (0, "")


def test_images_lie_where_the_recipe_looks_for_them(tmp_path: Path, kernel: Path) -> None:
    images = tmp_path / "images"
    _write(images / "vmlinux", "kernel")
    _write(images / "rootfs.cpio", "root")
    done = _run("post-image.sh", images, kernel)
    assert (done.returncode, done.stderr) == (0, "")
    contents = {path.name: path.read_text() for path in (images / "linux").iterdir()}
    assert contents == {"kernel": "kernel", "initrd": "root", "config": "CONFIG_HZ=100\n"}


def test_a_root_without_a_kernel_stops_the_build(tmp_path: Path, target: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert _run("post-build.sh", target, tmp_path / "empty/linux").returncode != 0
