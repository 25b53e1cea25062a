# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a folder with a program, and the channel between the runner and the zygote."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import TOY, Programs


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    toy = tmp_path / "sundial_toy"
    toy.mkdir()
    (toy / "client.py").write_text(TOY)
    (tmp_path / "toy-client").symlink_to("python-program")
    (tmp_path / "python-zygote").symlink_to("python-program")
    programs = Programs(tmp_path)
    yield programs
    programs.end()


@pytest.fixture
def channel() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The runner's end of the zygote's channel, and the zygote's."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mine.settimeout(60)
    theirs.set_inheritable(True)
    with mine, theirs:
        yield mine, theirs
