# SPDX-License-Identifier: Apache-2.0
import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parent.parent
BUILD = HOME / "build/boots"


def make(out: Path, *targets: str) -> None:
    """Builds in a folder of its own."""
    paths = [str(out / target) for target in targets]
    done = subprocess.run(
        ["make", "-s", "-C", HOME, f"OUT={out}", *paths], capture_output=True, text=True, check=False, timeout=800
    )
    assert done.returncode == 0, done.stdout + done.stderr


def made(target: str) -> Path:
    """Something of these tests, built where it is not current. Other suites may ask for it at the same time."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(BUILD, target)
    return BUILD / target


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder of the kernel's core and the test tasks; QEMU must be there to boot them."""
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    made("check/tasks.cpio")
    return made("check/core").parent
