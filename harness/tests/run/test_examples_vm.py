# SPDX-License-Identifier: Apache-2.0
"""The worked example with ONC RPC of Debian's packages, booted: its round trips, and one wrong bit that is found."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import polars as pl
import pytest

from mutation.capture import Capture, transmissions
from mutation.damage import Copy
from sundial.verify import verify_run
from tests.run.live import require_guests
from tests.run.served import passed

pytestmark = [pytest.mark.vm, pytest.mark.night, pytest.mark.timeout(900)]

MAPPER = 111
UDP_AT, PORTS_AT, HEADER = 23, 34, 42


def _asks_mapper(data: bytes) -> bool:
    return data[UDP_AT] == 17 and int.from_bytes(data[PORTS_AT + 2 : PORTS_AT + 4], "big") == MAPPER


def _flip(captures: dict[str, Capture], random: Random) -> None:
    """The lowest bit of an xid, in a call without a checksum, wherever it was seen."""
    calls = [each for each in transmissions(list(captures.values())) if _asks_mapper(each.data)]
    for frame in random.choice(calls).everywhere:
        frame.data = frame.data[: HEADER - 2] + b"\0\0" + frame.data[HEADER:]
        frame.data = frame.data[: HEADER + 3] + bytes([frame.data[HEADER + 3] ^ 1]) + frame.data[HEADER + 4 :]


def test_nfs_and_rusers_have_round_trips_and_a_changed_xid_is_found(tmp_path: Path) -> None:
    require_guests()
    if shutil.which("apt-get") is None:
        pytest.skip("apt-get is not here")
    run = tmp_path / "nfs"
    passed(Path("nfs"), run)
    exchanges = pl.read_parquet(run / "exchanges.parquet")
    assert exchanges["ok"].all()
    assert exchanges.filter(pl.col("retransmissions") > 0)["rtt_ns"].min() > 10**10  # type: ignore[operator]
    copy = Copy(run, tmp_path / "copy")
    captures = copy.captures()
    _flip(captures, Random(1))
    for name, capture in captures.items():
        copy.write(name, capture.to_bytes())
    copy.seal(samples=False)
    found = [str(each["field"]) for each in verify_run(copy.path).problems]
    assert {"decoded question", "decoded answer"} & set(found), found
