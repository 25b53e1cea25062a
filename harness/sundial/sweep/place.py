# SPDX-License-Identifier: Apache-2.0
"""Where runs are made, as `--on` says. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from sundial.errors import BadInput

LOCAL = re.compile(r"local(?::([1-9]\d?))?")
ADDRESS = re.compile(r"(tcp|tls)://([\w.-]+|\[[0-9a-f:.]+\]):(\d{1,5})")
SLOTS_MOST = 64
STARTED = re.compile(r"(slurm|k8s):([1-9]\d{0,3})|ssh:((?:[\w.-]+@)?[\w.-]+(?:,(?:[\w.-]+@)?[\w.-]+)*)")
ALLOWED = (
    "local, local:N for N runs at a time (1 to 64), tcp://127.0.0.1:PORT, tls://HOST:PORT with --certs, "
    "ssh:HOST,HOST, slurm:JOBS or k8s:PODS"
)
THIS_HOST = re.compile(r"localhost|127(\.\d{1,3}){3}|\[::1\]")
CERTIFICATE, KEY = "cert.pem", "key.pem"


@dataclass(frozen=True)
class Started:
    """Workers that a command starts, and that end with it."""

    kind: str
    """ssh, slurm or k8s."""
    count: int
    hosts: tuple[str, ...] = ()
    """Of ssh, as it names them."""


@dataclass(frozen=True)
class Place:
    """Where runs are made."""

    slots: int | None = None
    """Runs at a time on this host; None: as many as there are cores for."""
    address: str | None = None
    """Of the scheduler that has the workers; None: runs are made on this host."""
    certs: Path | None = None
    """Folder of the certificate and the key for `tls:`."""
    started: Started | None = None
    """Workers that this command starts, with their scheduler."""

    @property
    def is_here(self) -> bool:
        """True if runs are made by processes of this command alone."""
        return self.address is None and self.started is None


HERE = Place()


def place_of(text: str, certs: Path | None = None) -> Place:
    """The place that `--on` names. Raises BadInput."""
    found = LOCAL.fullmatch(text)
    if found is not None and int(found[1] or 1) <= SLOTS_MOST:
        return Place(int(found[1]) if found[1] else None)
    started = STARTED.fullmatch(text)
    if started is not None:
        return _started(started, certs)
    return Place(None, *scheduler_of(text, certs, "--on", ALLOWED))


def _started(found: re.Match[str], certs: Path | None) -> Place:
    """Raises BadInput where hosts would reach each other without a certificate."""
    if found[3] is None:
        # Pods reach each other in the network of their cluster, and this command by its own way.
        folder = None if found[1] == "k8s" else checked_certs(certs, found[1])
        return Place(None, None, folder, Started(found[1], int(found[2])))
    hosts = tuple(dict.fromkeys(found[3].split(",")))
    here = all(THIS_HOST.fullmatch(host.rpartition("@")[2]) for host in hosts)
    folder = None if here and certs is None else checked_certs(certs, "ssh")
    return Place(None, None, folder, Started("ssh", len(hosts), hosts))


def scheduler_of(text: str, certs: Path | None, option: str, allowed: str) -> tuple[str, Path | None]:
    """A scheduler's address, and the folder of certificates that it takes. Raises BadInput for one that other hosts
    would reach without a certificate."""
    found = ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[3]) < 65536:
        raise BadInput(f"{text!r} is not a place for runs", file=option, allowed=allowed)
    if found[1] == "tls":
        return text, checked_certs(certs, "tls")
    if not THIS_HOST.fullmatch(found[2]):
        what = f"{text!r} reaches another host without a certificate, and any program can be run there"
        raise BadInput(what, file=option, allowed=f"tls://{found[2]}:{found[3]} with --certs DIR")
    return text, None


def checked_certs(certs: Path | None, kind: str) -> Path:
    """The folder of a certificate and its key. Raises BadInput."""
    if certs is None:
        raise BadInput(
            f"is missing for {kind}:", file="--certs", allowed="a folder that `sundial sweep certs DIR` made"
        )
    for name in (CERTIFICATE, KEY):
        if not (certs / name).is_file():
            what = f"{certs} has no {name}"
            raise BadInput(what, file="--certs", allowed="a folder that `sundial sweep certs DIR` made")
    return certs
