# SPDX-License-Identifier: Apache-2.0
"""Names of programs in a root."""

from pathlib import Path

import pytest
from recipe import lz4
from recipe.commands import commands
from recipe.cpio import Archive

BUSYBOX = b"#!/bin/sh\necho sh\necho wget\n"


def _root(busybox: bytes = BUSYBOX, sbin: str = "bin") -> bytes:
    extras, base, over = Archive(), Archive(), Archive(over_another=True)
    extras.add_file("bin/ip", b"")
    extras.add_file("etc/no-program", b"")
    base.add_file("bin/busybox", busybox, 0o755)
    base.add_link("bin/sh", "busybox")
    base.add_link("sbin", sbin)
    base.add_file("lib/extras.cpio.lz4", lz4.compress(extras.to_bytes()))
    over.add_file("bin/python3.11", b"")
    return base.to_bytes() + over.to_bytes()


def test_names_are_those_of_busybox_and_of_all_archives(tmp_path: Path) -> None:
    assert commands(_root(), tmp_path) == ["busybox", "ip", "python3.11", "sh", "wget"]


@pytest.mark.parametrize(
    "initrd",
    [b"\x1f\x8b packed", Archive().to_bytes(), _root(b"not a program"), _root(sbin="/elsewhere")],
    ids=["packed", "no busybox", "busybox of another host", "folder elsewhere"],
)
def test_names_that_cannot_be_known_are_none(tmp_path: Path, initrd: bytes) -> None:
    assert commands(initrd, tmp_path) is None
