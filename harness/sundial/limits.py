# SPDX-License-Identifier: Apache-2.0
"""What the host lets a process have (`ulimit`): raised as far as it may be, and refused where that is too little."""

from __future__ import annotations

import resource

from sundial.errors import HostLacks

MIB = 1 << 20


def require(files: int, address_bytes: int) -> None:
    """Returns where this process and those that it starts may have so many open files, and so many bytes of address
    space each. Raises HostLacks."""
    have = _raised(resource.RLIMIT_NOFILE, files)
    if have < files:
        what = f"the limit of open files is {have}, and this command needs {files}"
        raise HostLacks(what, hint=f"ulimit -n {files}")
    have = _raised(resource.RLIMIT_AS, address_bytes)
    if have < address_bytes:
        what = f"the limit of virtual memory is {have // MIB} MiB, and this command needs {-(-address_bytes // MIB)} MiB"
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
