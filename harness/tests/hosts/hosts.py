#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md's commands on bare roots of Debian's releases: `make test-hosts` (HOSTS="bookworm trixie sid").

    harness/tests/hosts/hosts.py SUITE...

A root is what mmdebstrap makes of the release's smallest variant, git and make. It gets a clone of this checkout, and
mounts and process numbers of its own; all that is installed or built stays in it. Needs root and Python alone.

QUICK=1    `make run` and not `make test`
ROOTS=DIR  keeps the roots in DIR, and goes on with those that are there
MIRROR=URL as mmdebstrap takes it
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[3]
LOGS = CHECKOUT / ".sundial" / "hosts"
PACKAGES = "ca-certificates,git,make"
OF_THE_HOST = ("etc/resolv.conf", "etc/hosts", "etc/pip.conf", "etc/ssl/certs/ca-certificates.crt")
"""Copied into a root: how this host reaches registries."""
MOUNTS = (
    "mount -t sysfs sysfs /sys; mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts; "
    "mkdir -p /dev/shm; mount -t tmpfs tmpfs /dev/shm; cd /root/sundial 2>/dev/null; "
)
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
}


class Row(NamedTuple):
    """What one command did on one host."""

    host: str
    command: str
    qemu: str
    minutes: str
    mb: str
    status: str
    sha256: str


def inside(root: Path, command: str) -> list[str]:
    """The command line that runs `command` in the root."""
    namespaces = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", f"--root={root}", "--mount-proc"]
    return [*namespaces, "sh", "-c", MOUNTS + command]


def said(root: Path, command: str) -> str:
    """The last word that a command prints in the root, or nothing."""
    done = subprocess.run(inside(root, command), env=ENVIRONMENT, capture_output=True, text=True, check=False)
    return (done.stdout.split() or [""])[-1]


def megabytes(root: Path) -> int:
    done = subprocess.run(["du", "-sxm", root], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


def make_root(suite: str, root: Path) -> None:
    """A bare root, unless it is there, with a new clone. Raises subprocess.CalledProcessError."""
    if not (root / "etc/debian_version").exists():
        # A root that a power failure may harm: dpkg does not wait for the disk.
        options = ["--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io", f"--include={PACKAGES}"]
        mirror = [os.environ["MIRROR"]] if "MIRROR" in os.environ else []
        subprocess.run(["mmdebstrap", *options, suite, root, *mirror], check=True)
    for name in OF_THE_HOST:
        if (Path("/") / name).exists():
            shutil.copyfile(Path("/") / name, root / name)
    clone = root / "root/sundial"
    shutil.rmtree(clone, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", CHECKOUT, clone], check=True)


def run(host: str, root: Path, command: str) -> Row:
    """The command in the root, with its output in a log."""
    before, began = megabytes(root), time.monotonic()
    log = LOGS / f"{host}-{command.replace(' ', '-')}.log"
    print(f"{host}: {command} (its output: {log})", file=sys.stderr, flush=True)
    with log.open("wb") as out:
        output = {"stdout": out, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        status = subprocess.run(inside(root, command), env=ENVIRONMENT, check=False, **output).returncode
    minutes = (time.monotonic() - began) / 60
    qemu = said(root, "dpkg-query -W -f '${Version}' qemu-system-x86 2>/dev/null")
    digest = said(root, "sha256sum <$(ls captures/quickstart-*/wire/lan.pcapng | tail -n 1) | head -c 64")
    return Row(host, command, qemu, f"{minutes:.1f}", str(megabytes(root) - before), str(status), digest[:16])


@contextmanager
def roots() -> Iterator[Path]:
    """The folder of the roots."""
    if kept := os.environ.get("ROOTS"):
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
        return
    # mmdebstrap needs a folder that other users may enter.
    with tempfile.TemporaryDirectory(prefix="sundial-hosts-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def main(suites: list[str]) -> int:
    if lacking := [name for name in ("mmdebstrap", "unshare", "git") if shutil.which(name) is None]:
        print(f"hosts: {' and '.join(lacking)} not found: apt-get install {' '.join(lacking)}", file=sys.stderr)
        return 3
    if os.geteuid() != 0:
        print("hosts: only root may make roots of other releases: sudo make test-hosts", file=sys.stderr)
        return 3
    LOGS.mkdir(parents=True, exist_ok=True)
    rows = []
    with roots() as folder:
        for suite in suites:
            root = folder / suite
            make_root(suite, root)
            rows.append(run(suite, root, "make run"))
            if not os.environ.get("QUICK") and rows[-1].status == "0":
                rows.append(run(suite, root, "make test"))
    print("| host | command | QEMU | minutes | MB | status | sha256 of wire/lan.pcapng |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return 0 if all(row.status == "0" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["bookworm", "trixie"]))
