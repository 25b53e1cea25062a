# SPDX-License-Identifier: Apache-2.0
"""What the host lets a process have (`ulimit`): raised as far as it may be, and refused where that is too little."""

from __future__ import annotations

import resource

from sundial.errors import HostLacks

LEAST_FILES = 32
"""For any command that reads or makes a run: 14 were measured."""
LEAST_ADDRESS_BYTES = 2 << 30
"""The same: 1,640 MiB were measured for verification and report, 1,735 MiB for a run. Libraries reserve most of it and
never touch it; those end the process where they do not get it."""
_MIB = 1 << 20


def require(files: int = LEAST_FILES, address_bytes: int = LEAST_ADDRESS_BYTES) -> None:
    """Returns where this process and those that it starts may have so many open files, and so many bytes of address
    space each. Raises HostLacks."""
    have = _raised(resource.RLIMIT_NOFILE, files)
    if have < files:
        what = f"the limit of open files is {have}; this command needs {files}"
        raise HostLacks(what, hint=f"ulimit -n {files}")
    have = _raised(resource.RLIMIT_AS, address_bytes)
    if have < address_bytes:
        what = f"the limit of virtual memory is {have // _MIB} MiB; this command needs {-(-address_bytes // _MIB)} MiB"
        raise HostLacks(what, hint="ulimit -v unlimited")


def _raised(limit: int, need: int) -> int:
    """The soft limit, which is raised to `need` where the hard one allows it."""
    soft, hard = (_finite(each) for each in resource.getrlimit(limit))
    if soft >= need:
        return soft
    if hard >= need:
        resource.setrlimit(limit, (need, resource.getrlimit(limit)[1]))
        return need
    return hard


def _finite(value: int) -> int:
    return (1 << 63) - 1 if value == resource.RLIM_INFINITY else value
