# SPDX-License-Identifier: Apache-2.0
"""DCE RPC between booted guests: each policy, semantics and byte order verified, and numbers of khandker's paper."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.workloads.functions import NAMES
from tests.run import served
from tests.run.live import night, require_guests

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600), pytest.mark.spread]

EACH_KIND = """\
description: each policy, semantics and byte order
topology: two-hosts-10base-t
seed: 7
linger: 300 ms
workloads:
  - {app: dce, port: 1027, procedures: [null, put, get, echo], sizes: [0, 1393, 4017, 24096], calls: 1}
  - {app: dce, port: 1028, policy: halves, procedures: [put], sizes: [8032, 16064, 24096], calls: 1}
  - {app: dce, port: 1029, policy: osf, procedures: [echo], sizes: [900, 64256], calls: 1, warmup: 0}
  - {app: dce, port: 1030, semantics: idempotent, byte_order: big, procedures: [echo], sizes: [0, 8033], calls: 2}
  - {app: dce, port: 1031, semantics: maybe, procedures: [put], sizes: [0, 4016, 8032], calls: 3}
  - {app: dce, port: 1032, semantics: broadcast, procedures: [echo], sizes: [16], calls: 2}
  - {app: dce, port: 1033, binding: mapper, connection: per-size, procedures: [put], sizes: [16, 32], calls: 1}
  - {app: dce, port: 1034, threads: 3, procedures: [put], sizes: [16064], calls: 2}
  - {app: dce, port: 1035, work: 2500, procedures: [put], sizes: [16], calls: 1, warmup: 0}
"""
LOSSY = """\
description: each policy under loss, doubling and overtaking
topology: two-hosts-wan
seed: 7
linger: 300 ms
vary:
  - segments.wan.impairments.both: {loss: 10 %, duplicate: 3 %, delay: 10 ms, jitter: 4 ms}
workloads:
  - {app: dce, port: 1027, procedures: [echo], sizes: [0, 24096], calls: 4, resend: 300 ms, ping: 300 ms}
  - {app: dce, port: 1028, policy: halves, procedures: [echo], sizes: [24096], calls: 4, resend: 300 ms, ping: 300 ms}
  - {app: dce, port: 1029, policy: osf, procedures: [echo], sizes: [24096], calls: 4, resend: 300 ms, ping: 300 ms}
  - {app: dce, port: 1030, semantics: idempotent, procedures: [echo], sizes: [16], calls: 8, ping: 300 ms}
"""
FUNCTIONS = """\
description: the twelve functions, of one thread and of three
topology: TOPOLOGY
seed: 7
linger: 300 ms
workloads:
  - {app: dce, functions: all, calls: 4, byte_order: ORDER, binding: mapper, clients: [CLIENT], server: SERVER}
  - app: dce
    functions: "12,int,10"
    calls: 2
    threads: 3
    byte_order: ORDER
    binding: mapper
    clients: [CLIENT]
    server: SERVER
"""
NOTIFIED = """\
description: requests and responses of three packets while a backplane notifies of 8000 bytes, 8 at a time
topology:
  defaults: {image: ssscore}
  machines:
    server: {interfaces: {eth0: {address: 10.0.0.1/24}, vmmc0: {}}, mips: 31.25}
    client: {interfaces: {eth0: {address: 10.0.0.2/24}, vmmc0: {}}}
  segments:
    lan: {kind: switch, ports: ["server:eth0", "client:eth0"], mtu: 576, rate: 10 Mbit/s}
    backplane: {kind: vmmc, ports: ["server:vmmc0", "client:vmmc0"], combine_bytes: 8}
seed: 10
workloads:
  - {app: shrimprpc, wait: notify, sizes: [0, 8000], calls: 2, warmup: 0}
  - {app: dce, port: 1028, clients: [server], server: client, functions: "9", calls: 20, threads: 4}
"""
SMALL_MTU = """\
description: every edge at a small MTU
topology: two-hosts-10base-t
seed: 7
linger: 300 ms
vary: [{mtu: 576}]
workloads:
  - {app: dce, procedures: [put], sizes: [0, 4100, edges], calls: 1, warmup: 0}
"""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


def passed(folder: Path, text: str) -> tuple[dict[str, Any], pl.DataFrame]:
    """verify.json and observed calls of a run that verified."""
    scenario = folder / "calls.yaml"
    scenario.write_text(text)
    served.passed(scenario, folder / "run")
    verified = json.loads((folder / "run" / "verify.json").read_text())
    assert verified["mismatches"] == 0
    return verified, pl.read_parquet(folder / "run" / "observed.parquet")


def test_each_kind_of_call(tmp_path: Path) -> None:
    verified, observed = passed(tmp_path, EACH_KIND)
    assert set(observed["verdict"]) == {"pass"}
    assert observed["retransmissions"].sum() == 0
    # Eight machines of threads ask nothing twice; the mapper is asked once, and answers.
    assert {"dce_mapper", "dce_conv", "dce_fack", "dce_ack", "dce_ping", "dce_working"} <= verified["classified"].keys()
    assert verified["classified"]["dce_mapper"] == 4
    # khandker section 3: 24096 bytes are 6 PDUs of 3 packets, 4017 one more than 4016.
    calls = {
        (procedure, size): (request, reply)
        for procedure, size, request, reply in observed.select(
            "procedure", "size", "request_packets", "reply_packets"
        ).iter_rows()
    }
    assert calls["put", 24096] == (18, 1)
    assert calls["get", 24096] == (1, 18)
    assert calls["put", 4017] == (4, 1)
    assert calls["null", 0] == (1, 1)
    # OSF's runtime: 944 bytes, then 1384: 47 of a packet each. Big-endian idempotent calls are as long as others.
    assert calls["echo", 64256] == (47, 47)
    assert calls["echo", 8033] == (7, 7)


def test_each_policy_under_loss(tmp_path: Path) -> None:
    verified, observed = passed(tmp_path, LOSSY)
    assert verified["classified"]["fate_lost"] > 0
    assert verified["classified"]["dce_retransmission"] > 0
    assert observed["retransmissions"].sum() > 0
    assert observed["ok"].all()


@pytest.mark.parametrize(
    ("topology", "client", "server", "order", "packets"),
    [
        # RFC 791 at 1500 bytes: a fragment of 4096 is 3 packets, what is left of 4807 bytes is 1.
        night("two-hosts-10base-t", "client", "server", "little", 4),
        ("sss-two-100base-tx", "client", "server", "big", 4),
        night("sss-cluster", "linux", "n1", "big", 4),
        night("sss-cluster", "n1", "linux", "little", 4),
        # A loopback has room for a whole fragment.
        night("one-host", "server", "server", "big", 2),
    ],
)
def test_the_twelve_functions(
    tmp_path: Path, topology: str, client: str, server: str, order: str, packets: int
) -> None:
    words = {"TOPOLOGY": topology, "CLIENT": client, "SERVER": server, "ORDER": order}
    _, observed = passed(tmp_path, reduce(lambda text, word: text.replace(*word), words.items(), FUNCTIONS))
    assert observed["ok"].all()
    calls = dict(observed.group_by("procedure").agg(pl.len()).iter_rows())
    # Each once more for its warm-up; three of each of three threads.
    assert calls == {name: 5 + (9 if name in ("distance", "int", "string_array") else 0) for name in NAMES}
    whole = observed.filter(pl.col("procedure") == "string_array")
    assert set(whole.select("request_packets", "reply_packets").iter_rows()) == {(packets, packets)}


@pytest.mark.night
def test_every_edge_at_a_small_mtu(tmp_path: Path) -> None:
    _, observed = passed(tmp_path, SMALL_MTU)
    sizes = dict(observed.select("size", "request_packets").iter_rows())
    # RFC 791: 552 bytes of UDP in each fragment, the last of which may have 556.
    assert sizes[468] == 1
    assert sizes[469] == 2
    assert sizes[4016] == 8
    assert sizes[4017] == 9


@pytest.mark.night
def test_frames_pass_what_a_backplane_notifies(tmp_path: Path) -> None:
    """What a kernel is notified of takes buffers of its first adapter, which takes no frame's place for that."""
    _, observed = passed(tmp_path, NOTIFIED)
    assert observed["retransmissions"].sum() == 0
