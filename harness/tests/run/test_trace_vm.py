# SPDX-License-Identifier: Apache-2.0
"""A trace changes nothing, is the same each time, and divides each call into steps that are its round trip."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from sundial.machines.functions import KALLSYMS
from sundial.observe.trace import read_trace
from sundial.run.places import Places
from tests.run.live import night, require_guests, stirred, sundial

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

SCENARIO = """\
description: calls of one packet and of several, over UDP and TCP
topology: two-hosts-10base-t
seed: 5
linger: 50 ms
workloads:
  - app: sunrpc
    transports: [udp, tcp]
    sizes: [0, 1392, 4016]
    calls: 5
"""
SSS_CORE = """\
description: calls over sockets and between nodes, and operations on a node's memory
topology: sss-two-100base-tx
seed: 5
linger: 50 ms
workloads:
  - app: sunrpc
    transports: [udp, mbcf3]
    procedures: ["null", echo]
    sizes: [64]
    calls: 3
  - app: mbcf
    operations: [write]
    sizes: [4]
    calls: 3
"""
BACKPLANE = """\
description: vRPC and ShrimpRPC, whose ends poll, and operations that have no stamps
topology: sss-two-vmmc
seed: 5
linger: 300 ms
workloads:
  - app: sunrpc
    transports: [vrpc, vrpc-mbcf]
    procedures: ["null"]
    sizes: [0]
    calls: 4
  - app: shrimprpc
    procedures: ["null"]
    sizes: [0]
    calls: 4
  - app: vmmc
    operations: [au]
    modes: [round_trip]
    sizes: [8]
    calls: 4
"""
CALLS = {SCENARIO: 36, SSS_CORE: 20, BACKPLANE: 20}
"""Warm-ups too: one for each size."""
HALTS_LEAST = {SCENARIO: 50, SSS_CORE: 50, BACKPLANE: 3}
"""Who polls does not sleep."""
NEAR = {SCENARIO: "udp_sendmsg", SSS_CORE: "udp_received", BACKPLANE: "vmmc_received"}
"""A function of the kernel."""
TRACED = ("client", "server")


IDS = ("linux", "sss-core", "backplane")


@pytest.fixture(scope="module", params=[SCENARIO, SSS_CORE, BACKPLANE], ids=IDS)
def scenario(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(scenario: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_guests()
    folder = tmp_path_factory.mktemp("trace")
    (folder / "calls.yaml").write_text(scenario)
    return folder


@pytest.fixture(scope="module")
def first(folder: Path) -> Path:
    """A run with a trace. Where no snapshot of these machines was made yet, it boots them."""
    stirred(0, folder / "calls.yaml", folder / "first", "--trace", "steps")
    return folder / "first"


@pytest.fixture(scope="module")
def plain(folder: Path, first: Path) -> dict[str, int]:
    """What the clocks counted in a run without a trace."""
    del first
    return stirred(0, folder / "calls.yaml", folder / "plain")


@pytest.fixture(scope="module")
def counts(folder: Path, plain: dict[str, int]) -> dict[str, dict[str, int]]:
    """What they counted without a trace, with one, and with one and gates at pseudo-random times."""
    scenario = folder / "calls.yaml"
    return {
        "plain": plain,
        "traced": stirred(0, scenario, folder / "traced", "--trace", "steps"),
        "often": stirred(3_000, scenario, folder / "often", "--trace", "steps"),
    }


def evidence(folder: Path) -> dict[str, bytes]:
    """Every file that a trace must not change."""
    files = [*(folder / "wire").iterdir(), folder / "samples.parquet"]
    files += [path for name in ("samples.jsonl", "console.log", "job.json") for path in folder.glob(f"nodes/*/{name}")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def differing(folder: Path, traced: str) -> list[str]:
    """Files of a run with a trace that are not as without one."""
    one, other = evidence(folder / "plain"), evidence(folder / traced)
    return [file for file in one if one[file] != other[file]]


@pytest.mark.parametrize("scenario", [night(SCENARIO), SSS_CORE, night(BACKPLANE)], ids=IDS, indirect=True)
def test_a_trace_changes_no_byte(scenario: str, folder: Path, plain: dict[str, int]) -> None:
    del scenario, plain  # the runs are made
    assert differing(folder, "first") == []


@pytest.mark.night
def test_a_trace_changes_nothing_however_often_the_clock_looks(folder: Path, counts: dict[str, dict[str, int]]) -> None:
    for name in ("traced", "often"):
        assert differing(folder, name) == []
        assert counts[name]["instructions"] == counts["plain"]["instructions"]
    assert counts["plain"]["stamps"] == 0 < counts["traced"]["stamps"]
    assert not list((folder / "plain").glob("nodes/*/trace.bin"))


@pytest.mark.night
def test_each_trace_of_a_run_is_the_same(scenario: str, folder: Path, counts: dict[str, dict[str, int]]) -> None:
    assert counts["often"]["gates"] > 10 * counts["traced"]["gates"]
    for name in TRACED:
        for file in ("trace.bin", "points.json"):
            first, second = (folder / run / "nodes" / name / file for run in ("traced", "often"))
            assert first.read_bytes() == second.read_bytes(), f"{name} {file}"
    # Each HLT holds the time of stamps against QEMU's.
    halts = sum(int((read_trace(folder / "traced" / "nodes" / name).stamps["kind"] == 2).sum()) for name in TRACED)
    assert counts["traced"]["stamps_checked"] == halts > HALTS_LEAST[scenario]


def test_the_steps_of_each_call_are_its_round_trip(scenario: str, first: Path) -> None:
    verdict = json.loads((first / "verify.json").read_text())
    samples = pl.read_parquet(first / "samples.parquet").with_row_index("call_row")
    assert verdict["verdict"] == "pass"
    assert verdict["steps"]["calls"] == verdict["steps"]["exact"] == samples.height == CALLS[scenario]
    steps = pl.read_parquet(first / "steps.parquet")
    on_path = steps.filter("on_path").with_columns(took_ns=pl.col("end_ns") - pl.col("start_ns"))
    sums = on_path.group_by("call").agg(pl.col("took_ns").sum()).sort("call")
    assert sums["took_ns"].to_list() == samples["rtt_ns"].to_list()
    # No frame was lost: each path goes to the server and back, and nothing on it waits for a timer. (Between nodes the
    # first call opens their connection.)
    # A machine that has not slept yet has no stamps.
    begun = max(int(read_trace(first / "nodes" / name).stamps["ns"][0]) for name in TRACED)
    whole = samples.filter(~pl.col("warmup") & (pl.col("start_ns") > begun))
    assert whole.height >= samples.height // 2
    on_path = on_path.join(whole, left_on="call", right_on="call_row", how="semi")
    assert set(Counter(on_path.filter(pl.col("step") == "wire")["call"]).values()) == {2}
    assert on_path.filter(pl.col("step").str.starts_with("idle")).is_empty()
    assert set(on_path["node"]) == {"client", "server", ""}


def test_a_function_that_is_not_there_is_named_with_the_nearest(scenario: str, folder: Path, first: Path) -> None:
    del first  # the kernel has been asked
    near = NEAR[scenario]
    done = sundial(
        "run", str(folder / "calls.yaml"), "--set", f"trace=[kernel:{near}x]", "--out", str(folder / "refused")
    )
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert re.fullmatch(
        rf"sundial: (workloads\.0\.)?trace: the kernel of machine '\w+' has no function {near}x; allowed: {near}, .*",
        last,
    )
    assert not (folder / "refused").exists()
    assert not (folder / ".refused.partial").exists()


@pytest.mark.night
@pytest.mark.parametrize("scenario", [SCENARIO], ids=["linux"], indirect=True)
def test_the_kernel_is_asked_once_for_a_snapshot(scenario: str, folder: Path, first: Path) -> None:
    del scenario, first
    assert list(Places().snapshots.glob(f"*/{KALLSYMS}"))
    done = sundial("run", str(folder / "calls.yaml"), "--trace", "steps", "--out", str(folder / "again"))
    assert done.returncode == 0, done.stderr
    assert "where its functions are" not in done.stderr
