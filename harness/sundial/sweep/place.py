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
ALLOWED = "local, local:N for N runs at a time (1 to 64), tcp://127.0.0.1:PORT, or tls://HOST:PORT with --certs"
THIS_HOST = re.compile(r"localhost|127(\.\d{1,3}){3}|\[::1\]")
CERTIFICATE, KEY = "cert.pem", "key.pem"


@dataclass(frozen=True)
class Place:
    """Where runs are made."""

    slots: int | None = None
    """Runs at a time on this host; None: as many as there are cores for."""
    address: str | None = None
    """Of the scheduler that has the workers; None: runs are made on this host."""
    certs: Path | None = None
    """Folder of the certificate and the key for `tls:`."""

    @property
    def is_here(self) -> bool:
        """True if runs are made by processes of this command alone."""
        return self.address is None


HERE = Place()


def place_of(text: str, certs: Path | None = None) -> Place:
    """The place that `--on` names. Raises BadInput."""
    found = LOCAL.fullmatch(text)
    if found is not None and int(found[1] or 1) <= SLOTS_MOST:
        return Place(int(found[1]) if found[1] else None)
    return Place(None, *scheduler_of(text, certs, "--on", ALLOWED))


def scheduler_of(text: str, certs: Path | None, option: str, allowed: str) -> tuple[str, Path | None]:
    """A scheduler's address, and the folder of certificates that it takes. Raises BadInput for one that other hosts
    would reach without a certificate."""
    found = ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[3]) < 65536:
        raise BadInput(f"{text!r} is not a place for runs", file=option, allowed=allowed)
    if found[1] == "tls":
        return text, checked_certs(certs)
    if not THIS_HOST.fullmatch(found[2]):
        what = f"{text!r} reaches another host without a certificate, and any program can be run there"
        raise BadInput(what, file=option, allowed=f"tls://{found[2]}:{found[3]} with --certs DIR")
    return text, None


def checked_certs(certs: Path | None) -> Path:
    """The folder of a certificate and its key. Raises BadInput."""
    if certs is None:
        raise BadInput("is missing for tls:", file="--certs", allowed="a folder that `sundial sweep certs DIR` made")
    for name in (CERTIFICATE, KEY):
        if not (certs / name).is_file():
            what = f"{certs} has no {name}"
            raise BadInput(what, file="--certs", allowed="a folder that `sundial sweep certs DIR` made")
    return certs
