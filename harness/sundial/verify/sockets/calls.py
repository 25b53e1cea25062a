# SPDX-License-Identifier: Apache-2.0
"""Calls of a run over UDP and TCP, each with its flow: the addresses and ports that its packets travel between."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.frames import end_name
from sundial.verify.samples import RunSamples
from sundial.verify.sockets.protocol import IP_PROTOCOL, Setting, SocketProtocol
from sundial.verify.sockets.tcp import ACK, SYN

FLOW = ("client_address", "client_port", "server_address", "server_port", "transport")
_UNCONNECTED = "cannot connect"
"""Of an error: guest-apps/raw/channel.c, guest-apps/echo/tirpc/port.c."""
_STEP = ("protocol", "client", "server", "node_step")


@dataclass(frozen=True)
class SocketCalls:
    """`table`: one row a call, and one for each that has no sample, with `id` (samples: their row), `flow`, `protocol`,
    `setting`, `key`, MTUs; `flows`: one row a flow with `flow` and where its ends are captured."""

    table: pl.DataFrame
    flows: pl.DataFrame
    settings: tuple[Setting, ...]


def socket_calls(run: RunDirectory, samples: RunSamples, protocols: Mapping[str, SocketProtocol]) -> SocketCalls:
    """The samples of all `protocols`, by name."""
    names = {protocol.client_app: name for name, protocol in protocols.items()}
    table = samples.table.filter(
        pl.col("app").is_in(list(names)), pl.col("transport").is_in(list(IP_PROTOCOL))
    ).with_columns(protocol=pl.col("app").replace_strict(names, default=None, return_dtype=pl.String))
    settings, rows = _settings(run, table, protocols)
    table = table.join(rows, on=list(_STEP), how="left", maintain_order="left")
    table = pl.concat([table, _unsampled(table, settings, protocols, samples.table.height)])
    flows = _flows(run, table)
    keyed = table.with_columns(key=_of_protocol({name: protocol.key() for name, protocol in protocols.items()}))
    return SocketCalls(_with_flows(keyed, flows), flows, settings)


def _with_flows(table: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    return table.join(flows.select(*FLOW, "flow", "request_mtu", "reply_mtu"), on=list(FLOW), how="left")


def reconnected(run: RunDirectory, calls: SocketCalls, frames: pl.DataFrame) -> SocketCalls:
    """A client connects again after a call over TCP that failed, and the line above a batch has the port of its last
    connection: each call with the port of its own. `frames` of all ports."""
    over_tcp = calls.table.filter(pl.col("transport") == "tcp", pl.col("start_ns").is_not_null())
    if over_tcp["ok"].all():
        return calls
    opened, carried, begun = _accepted(frames), _carried(frames), _begun(frames)
    unclaimed = {pair: dict(ports) for pair, ports in opened.items()}
    between = ["client_address", "server_address", "server_port"]
    for *pair, port in over_tcp.select(*between, "client_port").unique().iter_rows():
        unclaimed.get(tuple(pair), {}).pop(port, None)
    ports: dict[int, int] = {}
    threads = over_tcp.sort("start_ns", "id").group_by(*between, "client", "thread", maintain_order=True)
    for (*pair, _, _), part in threads:
        asked = {port: at for (*there, port), at in carried.items() if there == pair}
        key = tuple(pair)
        ports |= _ports(part, opened.get(key, {}), unclaimed.get(key, {}), asked, begun.get(key, {}))
    # A call whose client could not connect has no connection.
    unconnected = over_tcp.filter(pl.col("error").str.starts_with(_UNCONNECTED).fill_null(False))
    ports |= dict.fromkeys(unconnected["id"], 0)
    port = pl.col("client_port")
    own = pl.col("id").replace_strict(ports, default=port, return_dtype=calls.table.schema["client_port"])
    table = calls.table.drop("flow", "request_mtu", "reply_mtu").with_columns(client_port=own)
    flows = _flows(run, table)
    return replace(calls, table=_with_flows(table, flows), flows=flows)


def _accepted(frames: pl.DataFrame) -> dict[tuple[Any, ...], dict[int, int]]:
    """When clients asked for connections that were accepted: by addresses and server's port, and by the client's."""
    tcp = frames.filter(pl.col("protocol") == IP_PROTOCOL["tcp"], pl.col("fate").is_null())
    kind = pl.col("tcp_flags") & (SYN | ACK)
    asked = tcp.filter(kind == SYN).select("source", "target", "target_port", "source_port", "time_ns")
    accepted = tcp.filter(kind == SYN | ACK)
    turned = {"source": "target", "target": "source", "target_port": "source_port", "source_port": "target_port"}
    both = asked.join(
        accepted.select(pl.col(name).alias(other) for name, other in turned.items()), on=list(turned), how="semi"
    )
    return _by_pair(both.group_by(list(turned)).agg(pl.col("time_ns").min()).sort("time_ns"))


def _by_pair(rows: pl.DataFrame) -> dict[tuple[Any, ...], dict[int, int]]:
    """Times by client's port, by what is before it in a row."""
    found: dict[tuple[Any, ...], dict[int, int]] = {}
    for *pair, port, at in rows.iter_rows():
        found.setdefault(tuple(pair), {})[port] = at
    return found


def _carried(frames: pl.DataFrame) -> dict[tuple[Any, ...], set[int]]:
    """The xids that were read in what clients sent over TCP: by addresses, server's port and client's."""
    named = frames.filter(
        pl.col("protocol") == IP_PROTOCOL["tcp"], pl.col("rpc_xid").is_not_null(), pl.col("fate").is_null()
    )
    ends = ["source", "target", "target_port", "source_port"]
    return {tuple(key): set(xids) for *key, xids in named.group_by(ends).agg(pl.col("rpc_xid").unique()).iter_rows()}


def _begun(frames: pl.DataFrame) -> dict[tuple[Any, ...], dict[int, int]]:
    """When clients first sent data over TCP: by addresses and server's port, and by the client's."""
    data = frames.filter(pl.col("protocol") == IP_PROTOCOL["tcp"], pl.col("tcp_length") > 0, pl.col("fate").is_null())
    ends = ["source", "target", "target_port", "source_port"]
    return _by_pair(data.group_by(ends).agg(pl.col("time_ns").min()))


def _ports(
    part: pl.DataFrame,
    opened: Mapping[int, int],
    unclaimed: dict[int, int],
    carried: Mapping[int, Collection[int]],
    begun: Mapping[int, int],
) -> dict[int, int]:
    """By call of a thread whose calls fail: the port of the connection that it opened last. It opens one before the
    first call of a batch, or behind a call that failed, before the next one ends. It takes its ports from `unclaimed`,
    which no batch names; of several that where its xid was seen (`carried`, by port), or the first that began with data
    (`begun`) behind the call's start: another thread may have opened one in the same instant."""
    found: dict[int, int] = {}
    port, free_from, again = None, None, True
    batches = set(part.filter(~pl.col("ok"))["batch"])
    columns = ["id", "batch", "ok", "client_port", "start_ns", "end_ns", "xid"]
    rows = part.select(columns).rows()
    for place, (call, batch, ok, named, start, end, xid) in enumerate(rows):
        again = again or (place > 0 and rows[place - 1][1] != batch)
        if again and batch in batches:
            inside = [each for each, at in opened.items() if (free_from is None or free_from <= at) and at <= end]
            with_it = [each for each in inside if xid in carried.get(each, ())]
            new = next(iter(with_it), None)
            if new is None:
                free = [each for each in inside if each in unclaimed]
                behind = {each: begun[each] for each in free if start <= begun.get(each, start - 1)}
                new = named if named in inside else min(behind, key=behind.__getitem__, default=next(iter(free), None))
            if new is not None:
                unclaimed.pop(new, None)
                port = new
        elif again:
            port = named
        if port is not None and batch in batches:
            found[call] = port
        free_from, again = end, not ok
    return found


def setting_of(run: RunDirectory, protocol: SocketProtocol, client: str, server: str, step: int) -> Setting:
    """How `client`'s step and `server`'s services were configured."""
    steps = run.jobs.get(client, {}).get("steps", [])
    options: dict[str, Any] = steps[step].get("options", {}) if 0 <= step < len(steps) else {}
    return protocol.setting(options, run.jobs.get(server, {}).get("services", []))


def _settings(
    run: RunDirectory, table: pl.DataFrame, protocols: Mapping[str, SocketProtocol]
) -> tuple[tuple[Setting, ...], pl.DataFrame]:
    """Distinct settings, and a table of steps (_STEP) with the index of their setting."""
    numbers: dict[Setting, int] = {}
    rows = []
    for name, client, server, step in table.select(_STEP).unique().sort(pl.all()).iter_rows():
        setting = setting_of(run, protocols[name], client, server, step)
        rows.append((name, client, server, step, numbers.setdefault(setting, len(numbers))))
    schema = {name: table.schema[name] for name in _STEP} | {"setting": pl.UInt32}
    return tuple(numbers), pl.DataFrame(rows, schema=schema, orient="row")


def _unsampled(
    table: pl.DataFrame, settings: tuple[Setting, ...], protocols: Mapping[str, SocketProtocol], first: int
) -> pl.DataFrame:
    """Calls without a sample, with ids from `first`."""
    parts = [
        protocol.unsampled(table.filter(pl.col("protocol") == name), settings) for name, protocol in protocols.items()
    ]
    ids = (pl.int_range(pl.len()) + first).cast(pl.UInt32)
    return pl.concat([table.clear(), *parts]).with_columns(id=ids).select(table.columns)


def _of_protocol(choices: Mapping[str, pl.Expr]) -> pl.Expr:
    """By the column `protocol`."""
    return reduce(
        lambda other, name: pl.when(pl.col("protocol") == name).then(choices[name]).otherwise(other),
        choices,
        pl.lit(None, pl.Int64),
    )


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
        inner=pl.col("client_address") == pl.col("server_address"),
    )


def _end(run: RunDirectory, address: str) -> tuple[str, int]:
    """`capture|interface` where a station is seen, and its MTU."""
    owner = run.owner(address)
    if owner is None:
        return "", 1500
    node, interface = owner
    return end_name(f"wire/{interface.segment}.pcapng", f"{node.name}:{interface.device}"), interface.mtu


def display_filter(call: Mapping[str, Any], protocol: SocketProtocol) -> str:
    """A Wireshark display filter for the packets of a call."""
    way = f"ip.addr == {call['client_address']} && {call['transport']}.port == {call['client_port']}"
    return " && ".join(filter(None, (way, protocol.display_filter(call))))
