# SPDX-License-Identifier: Apache-2.0
"""A capture's file as a view of one port: whole, or as it grows."""

from __future__ import annotations

import contextlib
import mmap
import os
import select
from pathlib import Path
from typing import BinaryIO

from sundial.errors import BadInput
from sundial.observe.pcapng import ALLOWED
from sundial.observe.view import PortView
from sundial.whole import whole

_HEAD_BYTES = 1 << 20
"""More than the interfaces of any segment take."""
_PAUSE_S = 0.1
_PIECE_BYTES = 1 << 24


def ports(capture: Path) -> list[str]:
    """The ports of a capture, in its order. Raises BadInput."""
    return link_and_ports(capture)[1]


def link_and_ports(capture: Path) -> tuple[int, list[str]]:
    """The link type of a capture's first interface, and its ports. Raises BadInput."""
    with capture.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    view = PortView("")
    _take(view, head, capture)
    if not view.ports:
        raise BadInput("has no interface", file=str(capture), allowed=ALLOWED)
    return view.links[0], view.ports


def stream_view(capture: Path, port: str | None, to: BinaryIO, keeper_pid: int | None) -> None:
    """Write what `port` saw (None: everything, as it is) of the file, and with `keeper_pid` of what is appended until
    that process has ended. Raises BadInput for a file that is not whole."""
    view = None if port is None else PortView(port)
    with capture.open("rb") as file:
        if keeper_pid is None:
            _write_file(view, capture, file, to)
        else:
            _follow(view, capture, file, to, keeper_pid)


def write_view(capture: Path, port: str | None, path: Path, keeper_pid: int | None) -> None:
    """The same into a file that is written whole or not at all. Raises BadInput, OSError."""
    with whole(path) as beside, beside.open("wb") as file:
        stream_view(capture, port, file, keeper_pid)


def _write_file(view: PortView | None, capture: Path, file: BinaryIO, to: BinaryIO) -> None:
    if view is None:
        while piece := file.read(_PIECE_BYTES):
            to.write(piece)
        return
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        blocks, end = _take(view, data, capture)
        if end < len(data):
            raise BadInput(f"truncated block at byte {end}", file=str(capture), allowed=ALLOWED)
        to.writelines(blocks)


def _follow(view: PortView | None, capture: Path, file: BinaryIO, to: BinaryIO, keeper_pid: int) -> None:
    waiting = b""
    with contextlib.ExitStack() as stack:
        keeper = []
        with contextlib.suppress(ProcessLookupError):
            keeper.append(os.pidfd_open(keeper_pid))
            stack.callback(os.close, keeper[0])
        ended = not keeper
        while True:
            waiting += file.read()
            if view is None:
                to.write(waiting)
                waiting = b""
            else:
                blocks, end = _take(view, waiting, capture)
                to.writelines(blocks)
                waiting = waiting[end:]
            to.flush()
            if ended:
                return
            ended = bool(select.select(keeper, [], [], _PAUSE_S)[0])


def _take(view: PortView, data: bytes | mmap.mmap, capture: Path) -> tuple[list[bytes], int]:
    try:
        return view.take(data)
    except ValueError as error:
        raise BadInput(str(error), file=str(capture), allowed=ALLOWED) from error
