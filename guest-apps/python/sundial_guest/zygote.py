# SPDX-License-Identifier: Apache-2.0
"""A process that has imported all programs, and forks one where the runner asks for it (guest-apps/runner/zygote.h).

Imports are nearly all of a program's start. The runner starts the zygote while the machine waits for its job; what a
snapshot holds, no restored machine does again. Nothing here may start a thread, open a connection or draw from a
generator of random numbers: all clones would have it.
"""

import gc
import importlib.util
import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

from sundial_guest import start

PROGRAMS = Path("/usr/lib/sundial")
LAUNCHER = "python-program"
"""What the name of a Python program links to."""
NAME = "python-zygote"
ALSO = ("numpy",)
"""What programs import only when their options ask for it."""
ORDER_BYTES = 1 << 17


def programs() -> list[str]:
    """All that are in this image."""
    links = (path for path in sorted(PROGRAMS.iterdir()) if path.is_symlink() and path.name != NAME)
    return [path.name for path in links if path.readlink().name == LAUNCHER]


def _prepare() -> None:
    for name in ALSO:
        if importlib.util.find_spec(name):
            importlib.import_module(name)
    for program in programs():
        module = start.module_of(program)
        # What it would do on its first call only, such as encoding a message of each type.
        getattr(module, "prepare", lambda: None)()
    # Children that collect garbage would copy every page of it.
    gc.collect()
    gc.freeze()


def _threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def _fork(channel: socket.socket) -> bool:
    """Twice, so that the grandchild belongs to process 1, which reaps it; whether this is the grandchild."""
    between = os.fork()
    if between == 0:
        between = os.getpid()
        if os.fork() != 0:
            os._exit(0)
        # A process that learns of it may wait for it, which only its parent can.
        while os.getppid() == between:
            os.sched_yield()
        channel.send(os.getpid().to_bytes(4, sys.byteorder))
        return True
    os.waitpid(between, 0)
    return False


def _become(order: bytes, output: list[int]) -> NoReturn:
    program, options, *variables = os.fsdecode(order).split("\0")[:-1]
    for variable in variables:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    for descriptor in output:
        os.dup2(descriptor, 1)
        os.close(descriptor)
    start.run([program, options])


def main() -> NoReturn:
    """argv[2] is the number of the runner's channel: an empty answer says that this is ready, then each order is
    answered by the number of its process."""
    channel = socket.socket(fileno=int(sys.argv[2]))
    _prepare()
    channel.send(b"\0")
    while True:
        order, output, _, _ = socket.recv_fds(channel, ORDER_BYTES, 1)
        if not order:
            os._exit(0)
        if (threads := _threads()) != 1:
            print(f"{NAME}: has {threads} threads, and cannot fork", file=sys.stderr)
            os._exit(1)
        if _fork(channel):
            channel.close()
            _become(order, output)
        for descriptor in output:
            os.close(descriptor)
