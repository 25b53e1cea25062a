# SPDX-License-Identifier: Apache-2.0
"""Dask.distributed, where it is installed: by the package's extra `cluster`, or by `make cluster` in a checkout."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from sundial.errors import HostLacks
from sundial.model.catalog import INSTALLED, ROOT
from sundial.sweep.place import CERTIFICATE, KEY

FOLDER = ROOT / ".sundial" / "cluster"
CONNECT_S = 15.0
"""For one end to accept the other's connection."""


def distributed() -> Any:
    """The module. Raises HostLacks."""
    if FOLDER.is_dir() and str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # behind what is installed
    try:
        import dask
        import distributed
    except ImportError as error:
        mend = "pip install 'sundial[cluster]'" if INSTALLED else "make cluster"
        raise HostLacks(f"Dask.distributed is not installed: {error}", hint=mend) from error
    # It says what it does on standard error; what matters for users is an exception here.
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    dask.config.set({"distributed.comm.timeouts.connect": f"{CONNECT_S} s"})
    return distributed


_ENDS = ("client", "scheduler", "worker")


def security(certs: Path | None) -> Any:
    """Who has the key of the folder may submit runs; None: no certificate is asked for."""
    if certs is None:
        return None
    certificate, key = str(certs / CERTIFICATE), str(certs / KEY)
    ends = {f"tls_{end}_{part}": path for end in _ENDS for part, path in (("cert", certificate), ("key", key))}
    return distributed().Security(tls_ca_file=certificate, require_encryption=True, **ends)


def tls_settings(certs: Path | None) -> dict[str, Any]:
    """The same as Dask's configuration, which workers started by ssh get."""
    if certs is None:
        return {}
    certificate, key = str(certs.absolute() / CERTIFICATE), str(certs.absolute() / KEY)
    tls = "distributed.comm.tls"
    ends = {f"{tls}.{end}.{part}": path for end in _ENDS for part, path in (("cert", certificate), ("key", key))}
    return {"distributed.comm.require-encryption": True, f"{tls}.ca-file": certificate, **ends}
