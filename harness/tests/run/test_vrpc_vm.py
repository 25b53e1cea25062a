# SPDX-License-Identifier: Apache-2.0
"""vRPC as the harness runs it: every transport verified, what a null call costs, ends of servers, equal runs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.run.live import night, require_guests
from tests.run.served import passed

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900), pytest.mark.spread]
NS_OF_INSTRUCTION = 16
WORD_NS = 500
QUICK = (f"word_latency={WORD_NS} ns", "link_rate=4 Gbit/s", "dma_rate=4 Gbit/s")
NULL_MOST = 1300
"""Instructions of both ends, and of what a ring's packets wait for one another."""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests("ssscore")


def run(directory: Path, *options: str) -> pl.DataFrame:
    """A run that has to be verified -> its samples."""
    sets = [word for option in options for word in ("--set", option)]
    passed(Path("vrpc-sweep"), directory, *sets)
    return pl.read_parquet(directory / "samples.parquet").filter(~pl.col("warmup"))


@pytest.mark.night
def test_two_runs_are_equal_to_the_byte(tmp_path: Path) -> None:
    evidence = []
    for name in ("a", "b"):
        run(tmp_path / name, "calls=5")
        files = ("wire/backplane.pcapng", "wire/lan.pcapng", "nodes/client/samples.jsonl", "nodes/server/samples.jsonl")
        evidence.append([(tmp_path / name / file).read_bytes() for file in files])
    assert evidence[0] == evidence[1]


@pytest.mark.night
def test_what_a_null_call_costs(tmp_path: Path) -> None:
    quick = [f"segments.backplane.{each}" for each in QUICK]
    samples = run(tmp_path / "run", "transports=vrpc", "procedures=null", "calls=50", *quick)
    median = samples["rtt_ns"].median()
    assert isinstance(median, float)
    assert (median - 2 * WORD_NS) / NS_OF_INSTRUCTION <= NULL_MOST


@pytest.mark.parametrize("wait", [night("poll"), "notify"])
def test_rings_end_anywhere_and_long_messages_go_otherwise(tmp_path: Path, wait: str) -> None:
    sizes = "sizes=980,981,4097,40001,65536"  # 44 bytes more are a message: 1024 of it go by automatic update
    samples = run(tmp_path / "run", "transports=vrpc,vrpc-mbcf", "procedures=echo", sizes, "calls=8", f"wait={wait}")
    assert samples["ok"].all()
    assert samples.height == 2 * 5 * 8


def test_a_quick_machine_waits_for_its_adapter(tmp_path: Path) -> None:
    """A deliberate update of 4,096 bytes is read for longer than a machine of 500 mips takes for all the rest."""
    quick = ("machines.client.mips=500", "machines.server.mips=500")
    samples = run(tmp_path / "run", "transports=vrpc", "procedures=echo", "sizes=4096", "calls=5", *quick)
    assert samples["ok"].all()


@pytest.mark.parametrize("transport", ["vrpc", night("vrpc-mbcf")])
def test_a_server_that_dies_in_a_call_ends_it(tmp_path: Path, transport: str) -> None:
    options = [f"transports={transport}", "procedures=echo", "sizes=64", "calls=12", "warmup=0"]
    options += ["die={when: during, call: 5, restart: true}", "expect.failures=allowed", "total_timeout=5 s"]
    options.append("linger=500 ms")  # a server writes its counters when it has been idle
    samples = run(tmp_path / "run", *options).sort("call")
    failed = samples.filter(~pl.col("ok"))["call"].to_list()
    # Over MBCF, calls find no server as long as it is being started; over a backplane they wait for it.
    assert failed == [4, 9] if transport == "vrpc" else failed[0] == 4
    assert samples.height - len(failed) >= 8
    lines = (tmp_path / "run" / "nodes" / "server" / "samples.jsonl").read_text().splitlines()
    counters = [json.loads(text) for text in lines if text.startswith('{"type":"counters"')]
    assert len({line["task"] for line in counters}) >= 2
