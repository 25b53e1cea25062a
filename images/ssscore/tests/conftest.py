# SPDX-License-Identifier: Apache-2.0
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SSSCORE = Path(__file__).resolve().parent.parent
LINUX = SSSCORE.parent / "linux"
# The recipe's shared parts and the machines of the tests are the Linux image's.
sys.path[:0] = [str(SSSCORE), str(LINUX), str(LINUX / "tests")]


def build(out: Path, umask: int = 0o022) -> None:
    done = subprocess.run(
        [SSSCORE / "build", "--out", out], capture_output=True, text=True, check=False, timeout=600, umask=umask
    )
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image, built by the recipe."""
    out = tmp_path_factory.mktemp("image")
    build(out)
    return out


@pytest.fixture(scope="session")
def bootable(image: Path) -> Path:
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    return image
