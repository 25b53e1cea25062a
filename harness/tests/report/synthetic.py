# SPDX-License-Identifier: Apache-2.0
"""Run directories made from arithmetic: what a run would leave behind, without running one.

Times follow a simple machine model (so many us a call and a byte) plus the exact wire time; packets are the expected
ones unless a test asks for damage.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sundial.report import topology_read, wire_time
from sundial.report.registry import legs
from sundial.report.wire_time import Hop
from sundial.report.workload import Setting

CURVES = (
    ("echo-client", "udp", "echo"),
    ("echo-client", "tcp", "echo"),
    ("raw-client", "udp", "echo"),
    ("raw-client", "tcp", "echo"),
)
EDGES = (1428, 1429, 1444, 1445, 1472, 1473, 2908, 2909, 4388, 4389, 5868, 5869, 7348, 7349)
QUICKSTART_SIZES = tuple(sorted({0, 16, *range(256, 8193, 256), *EDGES}))
COST_US = {"echo-client": (148.0, 0.021), "raw-client": (61.0, 0.012)}
"""Of one side of a call: us a call, us a byte."""


@dataclass
class Plan:
    """What to make up."""

    topology: dict[str, Any]
    clients: Sequence[str] = ("client",)
    server: str = "server"
    curves: Sequence[tuple[str, str, str]] = CURVES
    sizes: Sequence[int] = QUICKSTART_SIZES
    calls: int = 20
    warmup: int = 2
    series: int = 1
    loss: float = 0.0
    mismatched_sizes: Sequence[int] = ()
    statistic: str = "mean"
    jitter_us: float = 3.0
    scenario: str = "quickstart"
    extra: dict[str, Any] = field(default_factory=dict)


def two_hosts(**changes: Any) -> Plan:
    """two-hosts-10base-t, as the model writes it."""
    topology = {
        "name": "two-hosts-10base-t",
        "description": "Two hosts on a 10Base-T hub.",
        "machines": {
            "client": {"interfaces": {"eth0": {"address": "10.0.0.1/24"}}},
            "server": {"interfaces": {"eth0": {"address": "10.0.0.2/24"}}},
        },
        "segments": {"lan": {"kind": "hub", "ports": ["client:eth0", "server:eth0"], "rate": "10 Mbit/s"}},
    }
    return Plan(**{"topology": topology, **changes})


def office(**changes: Any) -> Plan:
    """One switch, five clients, one server."""
    names = [f"client{k}" for k in range(1, 6)]
    topology = {
        "name": "office",
        "description": "Five clients and a server on one switch.",
        "machines": {
            name: {"interfaces": {"eth0": {"address": f"10.0.0.{k}/24"}}}
            for k, name in enumerate([*names, "server"], 1)
        },
        "segments": {
            "office": {"kind": "switch", "ports": [f"{name}:eth0" for name in [*names, "server"]], "rate": "100 Mbit/s"}
        },
    }
    return Plan(**{"topology": topology, "clients": names, "scenario": "office", **changes})


def wan(**changes: Any) -> Plan:
    """A lossy, slow link."""
    topology = {
        "name": "two-hosts-wan",
        "description": "Two hosts on a long line.",
        "machines": two_hosts().topology["machines"],
        "segments": {
            "wan": {
                "kind": "link",
                "ports": ["client:eth0", "server:eth0"],
                "rate": "100 Mbit/s",
                "propagation": "50 us",
                "impairments": {"both": {"delay": "10 ms", "jitter": "2 ms", "loss": "5 %", "rate": "2 Mbit/s"}},
            }
        },
    }
    return Plan(**{"topology": topology, "loss": 0.05, "scenario": "loss", **changes})


def make(directory: Path, plan: Plan) -> Path:
    """Writes a whole run directory and returns it."""
    directory.mkdir(parents=True, exist_ok=True)
    samples = calls(plan)
    samples.write_parquet(directory / "samples.parquet")
    observed(samples, plan).write_parquet(directory / "observed.parquet")
    _json(directory / "verify.json", verdict(samples, plan))
    _json(directory / "run.json", run_json(plan) | plan.extra)
    segment = next(iter(plan.topology["segments"]))
    ports = {end: _port(k) for k, end in enumerate(plan.topology["segments"][segment]["ports"])}
    kind = plan.topology["segments"][segment]["kind"]
    counters = {
        "version": 1,
        "epoch_ns": 0,
        "virtual_ns": 13_700_000_000,
        "segments": {segment: {"kind": kind, "ports": ports}},
    }
    _json(directory / "wire" / "counters.json", counters)
    for name in plan.topology["machines"]:
        _node(directory / "nodes" / name, name, plan)
    return directory


def _json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))


def _port(k: int) -> dict[str, Any]:
    return {
        "tx_frames": 18004 + k,
        "tx_bytes": 19_400_221 + 77 * k,
        "rx_frames": 18000,
        "rx_bytes": 19_300_000,
        "offered_frames": 18004 + k,
        "adapter_full": 0,
        "dropped": {"lost": 3} if k else {},
        "collisions": 12,
        "excessive_collisions": 0,
        "deferred": 7,
    }


def _node(folder: Path, name: str, plan: Plan) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    console = "\n".join(f"[    0.{k:06d}] {name}: boot line {k}" for k in range(60))
    (folder / "console.log").write_text(console + "\nsundial: steps done\n")
    lines: list[Any] = [
        {"type": "hello", "version": 1, "machine": name, "kernel": "6.1.0-35-cloud-amd64", "clock": "tsc"}
    ]
    if name in plan.clients:
        lines.append({"type": "batch", "step": 0, "app": "echo-client", "columns": ["call"]})
        lines.append([0, 1, 2, 1, 0, 7, None])
        for step, transport in enumerate(("udp", "tcp")):
            lines.append(
                {
                    "type": "binding",
                    "step": step,
                    "transport": transport,
                    "start": 300_000_000 + step * 5_000_000,
                    "end": 301_834_000 + step * 5_700_000,
                    "ok": True,
                    "attempts": 1,
                    "port": 1025 + step,
                }
            )
    else:
        lines.append({"type": "counters", "app": "echo-server", "calls": 3520, "bad_payload": 0})
    lines.append({"type": "done", "status": 0})
    (folder / "samples.jsonl").write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def _wire_us(plan: Plan, curve: tuple[str, str, str], size: int) -> tuple[float, float] | None:
    """Wire time of request and reply on the plan's own topology."""
    known = legs(Setting(curve), size)
    if known is None:
        return None
    ways = zip(known, paths(plan), strict=True)
    times = [wire_time.transit_ns([packet.frame for packet in leg.packets], path) / 1000 for leg, path in ways]
    return times[0], times[1]


def paths(plan: Plan) -> tuple[list[Hop], list[Hop]]:
    """The lines from the first client to the server, and back."""
    topology = topology_read.read({"topology": plan.topology})
    out = wire_time.hops(topology, plan.clients[0], plan.server)
    back = wire_time.hops(topology, plan.server, plan.clients[0])
    assert out, "plans join their machines"
    assert back, "plans join their machines"
    return out, back


def calls(plan: Plan) -> pl.DataFrame:
    """samples.parquet."""
    random = np.random.default_rng(7)
    frames = []
    batch = 0
    now = dict.fromkeys(plan.clients, 300000000)
    for client_index, client in enumerate(plan.clients):
        for series in range(plan.series):
            for curve in plan.curves:
                for size in plan.sizes:
                    wire = _wire_us(plan, curve, size)
                    if wire is None:
                        continue
                    count = plan.calls + plan.warmup
                    fixed, per_byte = COST_US[curve[0]]
                    side = fixed + per_byte * size + (25 if curve[1] == "tcp" else 0)
                    extra = random.gamma(1.5, plan.jitter_us, count) + 9.0 * client_index
                    drift = 1 + 0.004 * ((series * 7) % 5)
                    again = random.random(count) < plan.loss if curve[0] == "echo-client" else np.zeros(count, bool)
                    lost = again & (random.random(count) < 0.1)
                    rtt = ((2 * side + 30 + extra) * drift + sum(wire) + again * 1e6) * 1000
                    rtt = rtt.astype(np.int64)
                    ends = now[client] + np.cumsum(rtt + 4_000)
                    now[client] = int(ends[-1])
                    frames.append(_batch(plan, curve, client, series, size, batch, ends - rtt, ends, again, lost))
                    batch += 1
    return pl.concat(frames) if frames else pl.DataFrame()


def _batch(
    plan: Plan,
    curve: tuple[str, str, str],
    client: str,
    series: int,
    size: int,
    batch: int,
    starts: Any,
    ends: Any,
    again: Any,
    lost: Any,
) -> pl.DataFrame:
    count = len(starts)
    table = pl.DataFrame({"call": np.arange(count), "start_ns": starts, "end_ns": ends, "rtt_ns": ends - starts})
    return table.select(
        pl.lit(plan.scenario).alias("scenario"),
        pl.lit(series, pl.Int32).alias("series"),
        pl.lit(client).alias("client"),
        pl.lit(plan.server).alias("server"),
        pl.lit(curve[1]).alias("transport"),
        pl.lit(curve[0]).alias("app"),
        pl.lit(curve[2]).alias("procedure"),
        pl.lit(size, pl.Int64).alias("size"),
        pl.lit(0, pl.Int32).alias("thread"),
        pl.col("call"),
        (pl.col("call") < plan.warmup).alias("warmup"),
        "start_ns",
        "end_ns",
        "rtt_ns",
        (pl.col("call") + 1000 * batch).alias("xid"),
        pl.Series("ok", ~lost),
        pl.Series("retransmits", again.astype(np.int32)),
        pl.lit(None, pl.String).alias("error"),
        pl.lit("10.0.0.1").alias("client_address"),
        pl.lit("10.0.0.2").alias("server_address"),
        pl.lit(700, pl.Int32).alias("client_port"),
        pl.lit(1025, pl.Int32).alias("server_port"),
        pl.lit(batch, pl.Int64).alias("batch"),
        pl.lit(0, pl.Int32).alias("node_step"),
    )


def observed(samples: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """observed.parquet: stamps from the machine model, packets from the expectations."""
    keys = ["app", "transport", "procedure", "size"]
    rows = []
    for app, transport, procedure, size in samples.select(keys).unique(maintain_order=True).iter_rows():
        found = legs(Setting((app, transport, procedure)), size)
        wire = _wire_us(plan, (app, transport, procedure), size)
        assert found is not None, "synthetic calls can be made"
        assert wire is not None, "synthetic calls can be made"
        rows.append(
            (
                app,
                transport,
                procedure,
                size,
                int(wire[0] * 1000),
                int(wire[1] * 1000),
                len(found[0].packets),
                len(found[1].packets),
            )
        )
    known = pl.DataFrame(
        rows, schema=[*keys, "out_ns", "back_ns", "request_packets_expected", "reply_packets_expected"], orient="row"
    )
    idle = pl.col("rtt_ns") - pl.col("out_ns") - pl.col("back_ns")
    damaged = pl.col("size").is_in(list(plan.mismatched_sizes)) & (pl.col("transport") == "udp") & (pl.col("call") == 3)
    return (
        samples.join(known, on=keys, how="left", maintain_order="left")
        .with_columns(call_first_tx_ns=pl.col("start_ns") + (idle * 0.31).cast(pl.Int64))
        .with_columns(call_last_rx_ns=pl.col("call_first_tx_ns") + pl.col("out_ns"))
        .with_columns(reply_first_tx_ns=pl.col("call_last_rx_ns") + (idle * 0.45).cast(pl.Int64))
        .with_columns(
            reply_last_rx_ns=pl.col("reply_first_tx_ns") + pl.col("back_ns"),
            request_packets=pl.col("request_packets_expected") - damaged.cast(pl.Int64),
            reply_packets=pl.col("reply_packets_expected"),
            retransmissions=pl.col("retransmits").cast(pl.Int64),
            verdict=pl.when(damaged).then(pl.lit("fail")).otherwise(pl.lit("pass")),
        )
        .drop("out_ns", "back_ns")
    )


def verdict(samples: pl.DataFrame, plan: Plan) -> dict[str, Any]:
    """verify.json."""
    groups = []
    problems: list[dict[str, Any]] = []
    keys = ["client", "server", "app", "transport", "procedure", "size"]
    frames = 0
    for *identity, count in samples.group_by(keys, maintain_order=True).len().iter_rows():
        client, server, app, transport, procedure, size = identity
        found = legs(Setting((app, transport, procedure)), size)
        assert found is not None, "synthetic calls can be made"
        sides = {"request": len(found[0].packets), "reply": len(found[1].packets)}
        frames += count * sum(sides.values())
        bad = size in plan.mismatched_sizes and transport == "udp"
        want = {side: {"packets": number} for side, number in sides.items()}
        low = {"request": sides["request"] - int(bad), "reply": sides["reply"]}
        seen = {side: {"packets": [low[side], number], "retransmissions": 0} for side, number in sides.items()}
        if bad:
            problems.append(
                {
                    "call": {
                        "client": client,
                        "server": server,
                        "app": app,
                        "transport": transport,
                        "procedure": procedure,
                        "size": size,
                        "series": 0,
                        "call": 3,
                        "xid": 3735928559,
                    },
                    "capture": "wire/lan.pcapng",
                    "frames": [412, 413],
                    "field": "request.fragments",
                    "expected": sides["request"],
                    "seen": sides["request"] - 1,
                    "filter": "rpc.xid == 0xdeadbeef || (ip.id == 0x1a2b && ip.src == 10.0.0.1)",
                }
            )
        groups.append(
            {
                "client": client,
                "server": server,
                "app": app,
                "transport": transport,
                "procedure": procedure,
                "size": size,
                "calls": count,
                "mismatches": int(bad),
                "expected": want,
                "seen": seen,
            }
        )
    return {
        "version": 1,
        "verdict": "fail" if problems else "pass",
        "calls": samples.height,
        "frames": 2 * frames,
        "packets": frames,
        "fragments": frames // 2,
        "retransmissions": {
            "calls": int(samples["retransmits"].sum() or 0) if samples.height else 0,
            "replies": 0,
            "tcp": 0,
        },
        "mismatches": len(problems),
        "groups": groups,
        "classified": {"arp": 2, "rpcbind": 4, "tcp handshake": 12},
        "problems": problems,
    }


def run_json(plan: Plan) -> dict[str, Any]:
    """run.json."""
    nodes = {}
    for number, (name, machine) in enumerate(plan.topology["machines"].items(), 1):
        segment = next(iter(plan.topology["segments"]))
        nodes[name] = {
            "zero_ns": 0,
            "interfaces": [
                {
                    "device": device,
                    "mac": f"02:53:44:00:00:{number:02x}",
                    "address": nic.get("address"),
                    "segment": segment,
                    "mtu": 1500,
                }
                for device, nic in machine["interfaces"].items()
            ],
        }
    segments = list(plan.topology["segments"])
    return {
        "version": 1,
        "status": "complete",
        "error": None,
        "scenario": {
            "name": plan.scenario,
            "description": "Every transport, a handful of sizes.",
            "statistic": plan.statistic,
        },
        "topology": plan.topology,
        "seed": 42,
        "clock": "virtual",
        "versions": {
            "sundial": "0.1.0",
            "qemu": "7.2.22",
            "libvirt": "9.0.0",
            "tshark": "4.0.17",
            "kernel": "6.1.0-35-cloud-amd64",
            "plugin": "0.1.0",
            "fabric": "0.1.0",
        },
        "images": {"linux": {"sha256": {"kernel": "ab" * 32, "initrd": "cd" * 32}}},
        "time": {"virtual_ns": 13_700_000_000, "wall_s": 11.42},
        "captures": {f"wire/{name}.pcapng": "ef" * 32 for name in segments},
        "command": [
            "./sundial",
            "run",
            plan.scenario,
            "--topology",
            plan.topology["name"],
            "--seed",
            "42",
            "--set",
            "calls=20",
        ],
        "host": {"cpu": "AMD EPYC 7B13", "cores": 2, "load": [0.42, 0.37, 0.31], "kernel": "6.12.3"},
        "mtu": dict.fromkeys(segments, 1500),
        "epoch_ns": 946_684_800_000_000_000,
        "nodes": nodes,
    }
