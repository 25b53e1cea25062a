# SPDX-License-Identifier: Apache-2.0
"""The image itself: the kernel of guest-apps/sss-core with lwIP, and an archive of its tasks."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from recipe.cpio import Archive
from recipe.errors import HostLacks, RecipeError
from ssscore import sources

CHECKOUT = Path(__file__).resolve().parents[3]
SOURCES = CHECKOUT / "guest-apps/sss-core"

NAME = "ssscore"
LWIP_PACKAGE = "lwip"
MEMORY_MIN = 16
"""Least guest memory (MiB): kernel, pools and the tasks of the test suite."""

# Without these it does not compile: (file, package).
DEVELOPMENT_FILES = [
    ("/usr/bin/rpcgen", "rpcsvc-proto"),
    ("/usr/bin/gcc", "gcc"),
    ("/usr/bin/make", "make"),
    ("/usr/bin/objcopy", "binutils"),
    ("/usr/bin/patch", "patch"),
    ("/usr/bin/xz", "xz-utils"),
]


def check_host() -> None:
    """Raises HostLacks with every development package that is missing, in one line."""
    missing = [package for path, package in DEVELOPMENT_FILES if not Path(path).exists()]
    if missing:
        raise HostLacks(f"packages missing on this host: {' '.join(missing)}")


def _compile(target: Path, lwip: Path) -> None:
    command = ["make", "-s", "-C", str(SOURCES), f"OUT={target}", f"LWIP={lwip}", "all"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise RecipeError("guest-apps/sss-core does not compile:\n" + "\n".join(lines[-20:]))


def _compiler_version() -> str:
    done = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _release() -> str:
    """What the kernel calls itself in its hello."""
    text = (SOURCES / "kernel/main.c").read_text()
    found = re.search(r'#define SSS_VERSION\s+"([^"]+)"', text)
    if found is None:
        raise RecipeError("guest-apps/sss-core/kernel/main.c defines no SSS_VERSION")
    return f"sss-core {found[1]}"


def build(out: Path, cache: Path) -> dict[str, object]:
    """Writes kernel, initrd and manifest.json to `out`; returns the manifest.

    Files are exchanged one by one, the manifest last, so that a manifest always describes files that are complete.
    """
    check_host()
    description = sources.download(LWIP_PACKAGE, cache)
    out.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".build-", dir=out))
    try:
        sources.unpack(description, scratch / "lwip")
        _compile(scratch / "made", scratch / "lwip")
        archive = Archive()
        for task in sorted((scratch / "made/bin").iterdir()):
            archive.add_file(task.name, task.read_bytes(), 0o755)
        kernel, initrd = (scratch / "made/ssscore").read_bytes(), archive.to_bytes()
        manifest: dict[str, object] = {
            "version": 1,
            "name": NAME,
            "kernel_release": _release(),
            "cmdline": "",
            "memory_min": MEMORY_MIN,
            "tasks": archive.paths(),
            "sha256": {"kernel": _sha256(kernel), "initrd": _sha256(initrd)},
            "bytes": {"kernel": len(kernel), "initrd": len(initrd)},
            "compiler": _compiler_version(),
            "packages": [
                {"name": LWIP_PACKAGE, "source": name, "sha256": digest}
                for name, digest in sources.listed_files(description.read_text()).items()
            ],
        }
        text = json.dumps(manifest, indent=2) + "\n"
        for name, data in (("kernel", kernel), ("initrd", initrd), ("manifest.json", text.encode())):
            (scratch / name).write_bytes(data)
            os.replace(scratch / name, out / name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return manifest
