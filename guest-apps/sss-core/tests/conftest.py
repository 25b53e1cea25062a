# SPDX-License-Identifier: Apache-2.0
import shutil
import subprocess
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parent.parent


def make(out: Path, *targets: str) -> None:
    """Builds in a folder of its own."""
    paths = [str(out / target) for target in targets]
    done = subprocess.run(
        ["make", "-s", "-C", HOME, f"OUT={out}", *paths], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel's core and the test tasks; QEMU must be there to boot them."""
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    out = tmp_path_factory.mktemp("sss-core")
    make(out, "check/core", "check/tasks.cpio")
    return out / "check"
