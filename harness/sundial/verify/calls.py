# SPDX-License-Identifier: Apache-2.0
"""The calls of a run as a table, each with its flow: the address and port pair that its packets travel between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from sundial.expect import Options, auth_sys_bytes, record_buffer
from sundial.observe import SAMPLE_COLUMNS, RunDirectory, read_samples
from sundial.verify.errors import readable_parquet

PROTOCOLS = {"echo-client": "sunrpc", "raw-client": "raw"}
"""Client apps to the protocol they speak; calls of other apps are not verified."""

FLOW = ("client_address", "client_port", "server_address", "server_port", "transport")
IP_PROTOCOL = {"tcp": 6, "udp": 17}
IPERF3_PORT = 5201
AUTH_MACHINE = "sundial"
"""Machine name of AUTH_SYS credentials where the job names none (guest-apps/echo/settings.c)."""

_BATCHES: dict[str, type[pl.DataType]] = {"client": pl.String, "batch": pl.Int64, "tcp_retransmits": pl.Int64}

UNKEYED_RAW_BYTES = 8
"""Raw payloads shorter than magic and sequence number are matched by order (ARCHITECTURE.md, Samples)."""


@dataclass(frozen=True)
class Setting:
    """What the job told the two ends of a call, beyond its size."""

    options: Options = field(default_factory=Options)
    bounded: bool = False
    """Socket buffers were set: where TCP segments end is then not determined."""


@dataclass(frozen=True)
class RunCalls:
    """`table`: one row a call, and one for what ends a batch of one-way calls, with `id` (its number here), `flow`,
    `protocol`, `setting`, `key`, MTUs; `flows`: one row a flow with `flow` and where its ends are captured; `records`:
    the other lines of each node's samples."""

    table: pl.DataFrame
    flows: pl.DataFrame
    settings: tuple[Setting, ...]
    records: dict[str, tuple[dict[str, Any], ...]]
    mbcf: pl.DataFrame
    """Calls and operations over MBCF: samples with `id`. `table` has none of them."""
    lines: dict[tuple[str, int], dict[str, Any]]
    """The lines above batches, by client and batch."""
    batches: pl.DataFrame
    """What a client's kernel counted in each batch: client, batch, tcp_retransmits (null where it did not say)."""
    samples: pl.DataFrame
    """As in samples.parquet, in that order; `id` is the row."""


def is_mbcf() -> pl.Expr:
    """Of samples: those of calls and operations over MBCF."""
    return pl.col("transport").str.starts_with("mbcf")


def load_calls(run: RunDirectory) -> RunCalls:
    """Read samples.parquet, or where there is none the nodes' samples.jsonl."""
    parts, records, batches = [], {}, []
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    for name, node in run.nodes.items():
        file = run.path / "nodes" / name / "samples.jsonl"
        if file.is_file():
            read = read_samples(file, scenario=run.scenario, client=node, names=run.names)
            parts.append(read.table)
            records[name] = read.records
            batches += [(name, place, line.get("tcp_retransmits")) for place, line in enumerate(read.batches)]
            lines |= {(name, place): line for place, line in enumerate(read.batches)}
    stored = run.path / "samples.parquet"
    if stored.is_file():
        samples = readable_parquet(stored, SAMPLE_COLUMNS)
    else:
        samples = pl.concat(parts) if parts else pl.DataFrame(schema=SAMPLE_COLUMNS)
    settings, rows = _settings(run, samples)
    table = (
        samples.with_row_index("id")
        .filter(pl.col("app").is_in(list(PROTOCOLS)), ~is_mbcf())
        .with_columns(protocol=pl.col("app").replace_strict(PROTOCOLS, default=None, return_dtype=pl.String))
        .join(rows, on=["client", "server", "node_step"], how="left")
    )
    table = _with_setting(table, settings)
    table = pl.concat([table, _flushes(table, samples.height)])
    flows = _flows(run, table)
    table = table.join(flows.select(*FLOW, "flow", "request_mtu", "reply_mtu"), on=list(FLOW), how="left").with_columns(
        key=_key()
    )
    counted = pl.DataFrame(batches, schema=_BATCHES, orient="row")
    over_mbcf = samples.with_row_index("id").filter(is_mbcf())
    return RunCalls(table, flows, settings, records, over_mbcf, lines, counted, samples)


def _with_setting(table: pl.DataFrame, settings: Sequence[Setting]) -> pl.DataFrame:
    """The calls with what verification of one-way calls wants to know of their settings."""
    columns = {
        "setting": pl.Series(range(len(settings)), dtype=pl.UInt32),
        "one_way": pl.Series([setting.options.one_way for setting in settings], dtype=pl.Boolean),
        "bounded": pl.Series([setting.bounded for setting in settings], dtype=pl.Boolean),
        "send_buffer": pl.Series(
            [record_buffer(setting.options.request_buffer) for setting in settings], dtype=pl.Int64
        ),
    }
    return table.join(pl.DataFrame(columns), on="setting", how="left", maintain_order="left")


def _flushes(table: pl.DataFrame, first: int) -> pl.DataFrame:
    """The call with a reply that ends each batch of one-way calls: it has no sample, and ids from `first`.

    A caller numbers its calls without a gap.
    """
    last = table.filter("one_way").sort("id").group_by("client", "batch", maintain_order=True).last()
    return last.with_columns(
        id=(pl.int_range(pl.len()) + first).cast(pl.UInt32),
        procedure=pl.lit("null"),
        size=pl.lit(0, pl.Int64),
        call=pl.col("call") + 1,
        xid=(pl.col("xid") + 1) % (1 << 32),
        start_ns=pl.col("end_ns"),
        ok=pl.lit(True),
        retransmits=pl.lit(None, pl.Int32),
        error=pl.lit(None, pl.String),
    ).select(table.columns)


def _key() -> pl.Expr:
    """What names a call inside its flow: xid or sequence number; null where only the order does."""
    short = (pl.col("protocol") == "raw") & (pl.col("size") < UNKEYED_RAW_BYTES)
    return pl.when(short).then(None).otherwise(pl.col("xid"))


def _settings(run: RunDirectory, samples: pl.DataFrame) -> tuple[tuple[Setting, ...], pl.DataFrame]:
    """Distinct settings, and a table (client, server, node_step) -> index of its setting."""
    found: dict[Setting, int] = {}
    rows = []
    for client, server, step in samples.select("client", "server", "node_step").unique().sort(pl.all()).iter_rows():
        setting = setting_of(run, client, server, step)
        rows.append((client, server, step, found.setdefault(setting, len(found))))
    schema = {"client": pl.String, "server": pl.String, "node_step": pl.Int32, "setting": pl.UInt32}
    return tuple(found), pl.DataFrame(rows, schema=schema, orient="row")


def setting_of(run: RunDirectory, client: str, server: str, step: int) -> Setting:
    """What `client`'s step and `server`'s service were told."""
    steps = run.jobs.get(client, {}).get("steps", [])
    told: dict[str, Any] = steps[step].get("options", {}) if 0 <= step < len(steps) else {}
    services = run.jobs.get(server, {}).get("services", [])
    serving: dict[str, Any] = next((item["options"] for item in services if item["app"] == "echo-server"), {})
    credential = 0
    if told.get("auth") == "sys":
        machine = str(told.get("auth_machine", AUTH_MACHINE))
        credential = auth_sys_bytes(len(machine.encode()), len(told.get("auth_gids", [])))
    options = Options(
        credential=credential,
        one_way=bool(told.get("one_way")),
        udp_message=int(told.get("udp_message_size") or Options().udp_message),
        request_buffer=int(told.get("send_buffer") or 0),
        reply_buffer=int(serving.get("send_buffer") or 0),
    )
    bounded = bool(told.get("socket_buffer") or serving.get("socket_buffer"))
    return Setting(options, bounded)


def _flows(run: RunDirectory, table: pl.DataFrame) -> pl.DataFrame:
    """One row a flow: where its ends are captured, and the MTU each end sends with."""
    flows = table.select(*FLOW, "protocol").unique().sort(pl.all()).with_row_index("flow")
    ends = {address: _end(run, address) for name in ("client", "server") for address in flows[f"{name}_address"]}
    return flows.with_columns(
        pl.Series("client_end", [ends[address][0] for address in flows["client_address"]], dtype=pl.String),
        pl.Series("server_end", [ends[address][0] for address in flows["server_address"]], dtype=pl.String),
        pl.Series("request_mtu", [ends[address][1] for address in flows["client_address"]], dtype=pl.UInt32),
        pl.Series("reply_mtu", [ends[address][1] for address in flows["server_address"]], dtype=pl.UInt32),
        pl.col("transport").replace_strict(IP_PROTOCOL, return_dtype=pl.UInt32).alias("ip_protocol"),
    )


def _end(run: RunDirectory, address: str) -> tuple[str, int]:
    """`capture|interface` where a station is seen, and its MTU."""
    owner = run.owner(address)
    if owner is None:
        return "", 1500
    node, interface = owner
    return end_name(f"wire/{interface.segment}.pcapng", f"{node.name}:{interface.device}"), interface.mtu


def end_name(capture: str, interface: str) -> str:
    """One text for a capture interface."""
    return f"{capture}|{interface}"
