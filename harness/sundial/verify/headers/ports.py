# SPDX-License-Identifier: Apache-2.0
"""What the run says of each port: whose it is, its addresses, and whom it can reach."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.observe import RunDirectory
from sundial.observe.headers import HEADER_COLUMNS
from sundial.observe.rundir import ALLOWED
from sundial.verify.frames import COLLISION, DROPPED, FATE_SUFFIX, OUTBOUND, end_name, way_from
from sundial.verify.segment import network_of

PORT: dict[str, pl.DataType] = {
    "end": pl.String(),
    "port": pl.String(),
    "machine": pl.String(),
    "mac": pl.Int64(),
    "address": pl.String(),
    "mtu": pl.Int64(),
    "joins": pl.Boolean(),
    "offloads": pl.Boolean(),
    "static_arp": pl.Boolean(),
    "netem": pl.String(),
    "domain": pl.Int64(),
}
"""`machine`: its name, or that of a device. `joins`: it joins segments and sends nothing of its own. Ports of one
`domain` reach each other. `offloads`: the guest leaves checksums and segmentation to its adapter."""


SENT = (
    "row", "capture", "interface", "end", "time_ns", "direction", "fate", "comment", "frame_length", "captured_length",
    "octets_begin", "source", "target", "source_port", "target_port", "protocol", "more", "fragment_offset",
    "ip_id", "ip_length", "ip_header", "udp_length", "tcp_seq", "tcp_length", "tcp_flags", "icmp_type", *HEADER_COLUMNS,
)  # fmt: skip
"""Of the table of frames: what the checks of headers need."""


def ports_of(run: RunDirectory) -> pl.DataFrame:
    """One row a port: PORT. Raises BadInput where run.json lacks a MAC address."""
    topology: dict[str, Any] = run.document.get("topology") or {}
    defaults = topology.get("defaults") or {}
    machines = topology.get("machines") or {}
    joins = {name: machines.get(name, {}).get("role") == "bridge" for name in run.nodes}
    network = network_of(run)
    devices = () if network is None else network.devices
    mtus = {} if network is None else {name: segment.mtu for name, segment in network.segments.items()}
    domains = _domains(
        [[item.segment for item in run.nodes[name].interfaces] for name in run.nodes if joins[name]]
        + [[port.segment for port in device.ports] for device in devices]
    )
    rows = []
    for node in run.nodes.values():
        for item in node.interfaces:
            written = machines.get(node.name, {}).get("interfaces", {}).get(item.device) or {}
            port = f"{node.name}:{item.device}"
            rows.append(
                {
                    "end": end_name(f"wire/{item.segment}.pcapng", port),
                    "port": port,
                    "machine": node.name,
                    "mac": _mac(run, port, item.mac),
                    "address": item.address or None,
                    "mtu": item.mtu,
                    "joins": joins[node.name],
                    **{name: bool(written.get(name, defaults.get(name))) for name in ("offloads", "static_arp")},
                    "netem": written.get("netem") or "",
                    "domain": domains.setdefault(item.segment, len(domains)),
                }
            )
    for place in (each for device in devices for each in device.ports):
        rows.append(
            {
                "end": end_name(f"wire/{place.segment}.pcapng", place.end),
                "port": place.end,
                "machine": place.device,
                "mac": _mac(run, place.end, place.mac),
                "address": None,
                "mtu": mtus[place.segment],
                "joins": True,
                "offloads": False,
                "static_arp": False,
                "netem": "",
                "domain": domains[place.segment],
            }
        )
    return pl.DataFrame(rows, schema=PORT)


def _mac(run: RunDirectory, port: str, text: str) -> int:
    octets = text.split(":")
    if len(octets) != 6 or not all(re.fullmatch("[0-9a-fA-F]{2}", octet) for octet in octets):
        raise BadInput(f"has no MAC address of {port}", file=str(run.path / "run.json"), field="mac", allowed=ALLOWED)
    return int("".join(octets), 16)


def _domains(joined: list[list[str]]) -> dict[str, int]:
    """Segments that guests and devices join, by the number of their domain."""
    groups: list[set[str]] = []
    for segments in joined:
        apart = [group for group in groups if group.isdisjoint(segments)]
        groups = [*apart, set(segments).union(*(group for group in groups if group not in apart))]
    return {segment: number for number, group in enumerate(groups) for segment in group}


def stations(ports: pl.DataFrame) -> pl.DataFrame:
    """mac, address and domain of machines that send and take packets."""
    return ports.filter(~pl.col("joins")).select("domain", "mac", "address")


def sent_frames(frames: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """What machines have sent of their own, in order, with PORT: at their ports, and what the wire never took: the
    frames that an adapter refused or gave up. `frames` with row, end and fate."""
    frames = frames.select(SENT)
    segment = pl.col("interface").str.strip_suffix(FATE_SUFFIX)
    # Polars 2.1 panics in concat_str where a filter leaves chunks that are empty.
    refused = (
        frames.filter(pl.col("fate") == DROPPED, way_from().is_null(), way_to().is_null())
        .rechunk()
        .with_columns(end=pl.concat_str(pl.format("wire/{}.pcapng|", segment), dropped_by()))
        .drop_nulls("end")
    )
    own = frames.filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND)
    return (
        pl.concat([own, refused])
        .join(ports.filter(~pl.col("joins")), on="end", how="inner", maintain_order="left")
        .sort("time_ns", "row")
    )


def way_to() -> pl.Expr:
    """The receiving port of such a fate."""
    return pl.col("comment").str.extract(r"(?: to|towards) (\S+:\S+)$")


def dropped_by() -> pl.Expr:
    """The port whose adapter did not send a frame: `dropped: transmit ring full (A)`, `... 16 attempts of A`."""
    return pl.coalesce(
        pl.col("comment").str.extract(r"\((\S+:\S+)\)$"), pl.col("comment").str.extract(r"attempts of (\S+:\S+)$")
    )


def collided() -> pl.Expr:
    """The port of a collision: `collision: A, attempt 1, ...`."""
    return pl.when(pl.col("fate") == COLLISION).then(pl.col("comment").str.extract(r"^collision: (\S+:\S+),"))
