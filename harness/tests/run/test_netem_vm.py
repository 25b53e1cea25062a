# SPDX-License-Identifier: Apache-2.0
"""The `link` model beside the kernel's own tc-netem in virtual time: the same delay, rate and loss, seen by guests."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import polars as pl
import pytest

from tests.run import served
from tests.run.live import require_guests

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600), pytest.mark.spread]

SIZE = 1000
ROUND_TRIP_BYTES = (14 + 20 + 8 + 44 + SIZE) + (14 + 20 + 8 + 28 + SIZE)
"""Ethernet, IP and UDP headers, the RPC call and its reply (RFC 5531), the argument both ways."""
CALLS = 400

SCENARIO = f"""\
description: datagrams there and back
topology: two-hosts-wan
seed: 3
deadline: 30 min
linger: 50 ms
workloads:
  - app: sunrpc
    transports: [udp]
    procedures: [echo]
    sizes: [{SIZE}]
    calls: {CALLS}
    retry_timeout: 100 ms
    total_timeout: 10 s
expect: {{retransmissions: allowed}}
"""

HOSTS = """\
description: two hosts
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}}}
  server: {interfaces: {eth0: {address: 10.0.0.2/24}}}
"""
LINK = """\
segments:
  wan: {{kind: link, rate: 100 Mbit/s, ports: ["client:eth0", "server:eth0"], impairments: {{both: {{{link}}}}}}}
"""
KERNEL = """\
  bridge:
    role: bridge
    interfaces:
      eth0: {{netem: "{netem}"}}
      eth1: {{netem: "{netem}"}}
segments:
  near: {{kind: link, rate: 100 Mbit/s, ports: ["client:eth0", "bridge:eth0"]}}
  far: {{kind: link, rate: 100 Mbit/s, ports: ["bridge:eth1", "server:eth0"]}}
"""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


def run(folder: Path, name: str, wires: str, *options: str) -> Path:
    """One verified run; its directory."""
    (folder / f"{name}.yaml").write_text(HOSTS + wires)
    (folder / "datagrams.yaml").write_text(SCENARIO)
    out = folder / name
    options = ("--topology", str(folder / f"{name}.yaml"), *options)
    served.passed(folder / "datagrams.yaml", out, *options)
    return out


def round_trip_ns(out: Path) -> float:
    """Median of the calls that needed one request only."""
    table = pl.read_parquet(out / "samples.parquet").filter(~pl.col("warmup"), pl.col("ok"), pl.col("retransmits") == 0)
    return statistics.median(table["rtt_ns"].to_list())


def passed(out: Path, entry: tuple[str, str], leaving: tuple[str, str]) -> float:
    """Share of the frames that entered at one port and left at the other."""
    segments = json.loads((out / "wire" / "counters.json").read_text())["segments"]
    went_in = segments[entry[0]]["ports"][entry[1]]["tx_frames"]
    came_out = segments[leaving[0]]["ports"][leaving[1]]["rx_frames"]
    return float(came_out / went_in)


def test_a_kernel_with_netem_delays_and_loses(tmp_path: Path) -> None:
    calls = 60
    out = run(tmp_path, "kernel", KERNEL.format(netem="delay 20ms loss 10%"), "--set", f"workloads.0.calls={calls}")
    # Twice each way; the lines and the machines take less than a tenth of one delay.
    assert 40_000_000 < round_trip_ns(out) < 42_000_000
    way = passed(out, ("near", "client:eth0"), ("far", "server:eth0"))
    # Four standard deviations; the run repeats, so this never flickers.
    assert 0.9 - 4 * (0.9 * 0.1 / calls) ** 0.5 < way < 1


@pytest.mark.night
def test_delay_and_rate_are_those_of_the_kernel(tmp_path: Path) -> None:
    plain = run(tmp_path, "link-plain", LINK.format(link="limit: 1000"))
    kernel_plain = run(tmp_path, "kernel-plain", KERNEL.format(netem="limit 1000"))
    delayed = run(tmp_path, "link-delay", LINK.format(link="delay: 20 ms"))
    kernel_delayed = run(tmp_path, "kernel-delay", KERNEL.format(netem="delay 20ms"))
    slow = run(tmp_path, "link-rate", LINK.format(link="rate: 1 Mbit/s"))
    kernel_slow = run(tmp_path, "kernel-rate", KERNEL.format(netem="rate 1mbit"))

    # What netem adds to one round trip, in both directions. The model adds exactly that; the kernel's timers wake a
    # little late and never early, so it adds that and at most a few tens of microseconds each way.
    added = round_trip_ns(delayed) - round_trip_ns(plain)
    kernel_added = round_trip_ns(kernel_delayed) - round_trip_ns(kernel_plain)
    assert abs(added - 40_000_000) < 50_000  # guests that wait longer take other paths out of idleness
    assert -50_000 < kernel_added - added < 200_000

    line_ns = ROUND_TRIP_BYTES * 8 * 1000  # at 1 Mbit/s, both directions; netem counts from the Ethernet header on
    added = round_trip_ns(slow) - round_trip_ns(plain)
    kernel_added = round_trip_ns(kernel_slow) - round_trip_ns(kernel_plain)
    assert abs(added - line_ns) < 50_000
    assert abs(kernel_added - added) < 0.01 * line_ns + 200_000


@pytest.mark.night
def test_loss_is_that_of_the_kernel(tmp_path: Path) -> None:
    link = run(tmp_path, "link-loss", LINK.format(link="loss: 10 %"))
    kernel = run(tmp_path, "kernel-loss", KERNEL.format(netem="loss 10%"))
    ways = [
        passed(link, ("wan", "client:eth0"), ("wan", "server:eth0")),
        passed(link, ("wan", "server:eth0"), ("wan", "client:eth0")),
        passed(kernel, ("near", "client:eth0"), ("far", "server:eth0")),
        passed(kernel, ("far", "server:eth0"), ("near", "client:eth0")),
    ]
    # Four standard deviations of a share of 0.9 in at least CALLS frames; the runs repeat, so this never flickers.
    margin = 4 * (0.9 * 0.1 / CALLS) ** 0.5
    assert [way for way in ways if abs(way - 0.9) > margin] == []
