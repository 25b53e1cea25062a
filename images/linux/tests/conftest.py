# SPDX-License-Identifier: Apache-2.0
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINUX = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(LINUX))


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image, built by the recipe; QEMU must be there to boot it."""
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    out = tmp_path_factory.mktemp("image")
    done = subprocess.run(
        [LINUX / "build", "--out", out], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return out
