# SPDX-License-Identifier: Apache-2.0
"""The worked examples with ONC RPC of Debian's packages, booted: their round trips, why calls were sent again, and one
wrong bit that is found."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from random import Random

import polars as pl
import pytest

from mutation.capture import Capture, transmissions
from mutation.damage import Copy
from sundial.model.catalog import FOLDERS
from sundial.verify import verify_run
from tests.run.live import require_guests
from tests.run.served import passed

pytestmark = [pytest.mark.vm, pytest.mark.night, pytest.mark.timeout(1800)]

MAPPER, NFS = 111, 2049
UDP_AT, PORTS_AT, HEADER = 23, 34, 42


def _asks(data: bytes, port: int) -> bool:
    is_first = not int.from_bytes(data[20:22], "big") & 0x1FFF
    return data[UDP_AT] == 17 and is_first and int.from_bytes(data[PORTS_AT + 2 : PORTS_AT + 4], "big") == port


def _flip(captures: dict[str, Capture], port: int, random: Random) -> None:
    """The lowest bit of an xid, in a call without a checksum, wherever it was seen."""
    calls = [each for each in transmissions(list(captures.values())) if _asks(each.data, port)]
    for frame in random.choice(calls).everywhere:
        frame.data = frame.data[: HEADER - 2] + b"\0\0" + frame.data[HEADER:]
        frame.data = frame.data[: HEADER + 3] + bytes([frame.data[HEADER + 3] ^ 1]) + frame.data[HEADER + 4 :]


def _ran(tmp_path: Path, scenario: str) -> tuple[Path, pl.DataFrame]:
    """A run of a scenario, and its exchanges."""
    require_guests()
    if shutil.which("apt-get") is None:
        pytest.skip("apt-get is not here")
    run = tmp_path / scenario
    passed(Path(scenario), run)
    exchanges = pl.read_parquet(run / "exchanges.parquet")
    assert exchanges["ok"].all()
    return run, exchanges


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not here")
def test_a_grpc_program_in_go_is_built_and_each_call_is_read(tmp_path: Path) -> None:
    require_guests()
    folder = tmp_path / "grpc-go"
    shutil.copytree(FOLDERS["scenario"] / "grpc-go", folder, ignore=shutil.ignore_patterns("root"))
    subprocess.run(["make", "-C", str(folder)], check=True, timeout=600)
    run = tmp_path / "run"
    passed(folder / "grpc-go.yaml", run)
    exchanges = pl.read_parquet(run / "exchanges.parquet")
    assert exchanges.filter(pl.col("procedure").str.ends_with("SayHello"))["ok"].to_list() == [True] * 10


def _check_a_changed_xid_is_found(tmp_path: Path, run: Path, port: int) -> None:
    copy = Copy(run, tmp_path / "copy")
    captures = copy.captures()
    _flip(captures, port, Random(1))
    for name, capture in captures.items():
        copy.write(name, capture.to_bytes())
    copy.seal(samples=False)
    found = [str(each["field"]) for each in verify_run(copy.path).problems]
    assert {"decoded question", "decoded answer"} & set(found), found


def test_nfs_and_rusers_have_round_trips_and_a_changed_xid_is_found(tmp_path: Path) -> None:
    run, exchanges = _ran(tmp_path, "nfs")
    assert exchanges.filter(pl.col("retransmissions") > 0)["rtt_ns"].min() > 10**10  # type: ignore[operator]
    _check_a_changed_xid_is_found(tmp_path, run, MAPPER)


@pytest.mark.skipif(shutil.which("gcc-12") is None, reason="gcc-12 compiles the module")
def test_nfs_over_udp_sends_again_what_lost_a_fragment(tmp_path: Path) -> None:
    run, exchanges = _ran(tmp_path, "nfs-udp")
    again = exchanges.filter(pl.col("retransmissions") > 0)
    assert again.height > 0
    assert (again["after_loss"] == again["retransmissions"]).all()
    assert (again["rtt_ns"] > 100_000_000).all(), "its client waits for longer than a loss could be noticed"
    assert exchanges.filter(pl.col("question_bytes") > 8192).height >= 32, "in six fragments"
    _check_a_changed_xid_is_found(tmp_path, run, NFS)
