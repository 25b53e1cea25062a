# SPDX-License-Identifier: Apache-2.0
"""What the run says of each port: whose it is, its addresses, and whom it can reach."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from ipaddress import IPv4Address, ip_network
from typing import Any

import numpy as np
import polars as pl

from sundial.errors import BadInput
from sundial.model.images import IMAGES
from sundial.model.network import Network
from sundial.model.topology import Route
from sundial.observe import RunDirectory
from sundial.observe.headers import HEADER_COLUMNS
from sundial.observe.rundir import ALLOWED
from sundial.verify.frames import DROPPED, FATE, FATE_SUFFIX, INBOUND, OUTBOUND, end_name
from sundial.verify.headers.igmp import group_mac, is_group
from sundial.verify.learning import GROUP_BIT
from sundial.verify.segment import network_of
from sundial.verify.wire import SECOND_NS, bits_of

PORT: dict[str, pl.DataType] = {
    "end": pl.String(),
    "port": pl.String(),
    "machine": pl.String(),
    "mac": pl.Int64(),
    "address": pl.String(),
    "broadcast": pl.String(),
    "mtu": pl.Int64(),
    "joins": pl.Boolean(),
    "offloads": pl.Boolean(),
    "static_arp": pl.Boolean(),
    "corrupts": pl.Boolean(),
    "duplicates": pl.Boolean(),
    "domain": pl.Int64(),
    "forwards": pl.Boolean(),
    "inner": pl.Boolean(),
    "platform": pl.String(),
    "undelivered": pl.Int64(),
    "arrived": pl.Int64(),
    "timed": pl.Boolean(),
}
"""`machine`: its name, or that of a device. `broadcast`: the address of all on its network. `joins`: it joins segments
and sends nothing of its own. Ports of one `domain` reach each other. `forwards`: the machine passes on packets of
others. `inner`: on a segment within its machine, which hears itself and leaves checksums of UDP and TCP unfinished.
`corrupts`, `duplicates`: the guest does so to frames that it sends here (tc-netem(8)). `offloads`: the guest leaves
checksums and segmentation to its adapter. `platform`: of the machine's image, if known. `undelivered` and `arrived`:
frames that did not reach it before the run ended, and that it received, perhaps behind the end, as the fabric counts
them. `timed`: the law of its segment says to the ns when frames arrive (`verify.wires`), and when the run ended is
known."""

FULL, HELD = "adapter full", "8 frames wait"
"""Rules by which an adapter refuses a frame that it has no place for."""
GIVEN_UP = "no answer"
"""Rule by which a LAN emulation client drops those that it held for an address."""
HELD_MOST = 8
BROADCAST = (1 << 48) - 1
"""The MAC address of all (IEEE 802.3)."""

SENT = (
    "row", "capture", "interface", "end", "time_ns", "direction", *FATE, "comment", "frame_length", "captured_length",
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
    inner = () if network is None else network.inner
    forwards = {} if network is None else {node.name: node.forwards for node in network.nodes}
    images = {} if network is None else {node.name: IMAGES.get(node.image) for node in network.nodes}
    mtus = {} if network is None else {name: segment.mtu for name, segment in network.segments.items()}
    domains = _domains(
        [[item.segment for item in run.nodes[name].interfaces] for name in run.nodes if joins[name]]
        + [[port.segment for port in device.ports] for device in devices]
    )
    undelivered, arrived = _counted(run, "undelivered"), _counted(run, "rx_frames")
    exact = run.clock == "virtual" and isinstance((run.counters or {}).get("virtual_ns"), int)
    timed = () if network is None or not exact else network.segments
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
                    "broadcast": _broadcast(run, port, item.network) if item.address else None,
                    "mtu": item.mtu,
                    "joins": joins[node.name],
                    **{name: bool(written.get(name, defaults.get(name))) for name in ("offloads", "static_arp")},
                    **{f"{word}s": word in (written.get("netem") or "").split() for word in ("corrupt", "duplicate")},
                    "domain": domains.setdefault(item.segment, len(domains)),
                    "forwards": forwards.get(node.name, False),
                    "inner": item.segment in inner,
                    "platform": None if (image := images.get(node.name)) is None else image.platform,
                    "undelivered": undelivered.get((item.segment, port), 0),
                    "arrived": arrived.get((item.segment, port), 0),
                    "timed": item.segment in timed,
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
                "broadcast": None,
                "mtu": mtus[place.segment],
                "joins": True,
                "offloads": False,
                "static_arp": False,
                "corrupts": False,
                "duplicates": False,
                "domain": domains[place.segment],
                "forwards": False,
                "inner": False,
                "platform": None,
                "undelivered": undelivered.get((place.segment, place.end), 0),
                "arrived": arrived.get((place.segment, place.end), 0),
                "timed": place.segment in timed,
            }
        )
    return pl.DataFrame(rows, schema=PORT)


def _counted(run: RunDirectory, name: str) -> dict[tuple[str, str], int]:
    """What the fabric counted, by segment and port."""
    try:
        return {
            (segment, port): int(counters.get(name, 0))
            for segment, counted in (run.counters or {})["segments"].items()
            for port, counters in counted["ports"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}  # what of it cannot be read is named where counters are compared


def _broadcast(run: RunDirectory, port: str, network: str) -> str:
    try:
        return str(ip_network(network, strict=False).broadcast_address)
    except ValueError:
        file = str(run.path / "run.json")
        raise BadInput(f"{port}: no network {network!r}", file=file, allowed=ALLOWED) from None


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


def homes(ports: pl.DataFrame) -> dict[str, str]:
    """The machines of ports that join no segments, by `end`."""
    return dict(ports.filter(~pl.col("joins")).select("end", "machine").iter_rows())


def stations(ports: pl.DataFrame) -> pl.DataFrame:
    """mac, address and domain of machines that send and take packets."""
    return ports.filter(~pl.col("joins")).select("domain", "mac", "address")


def not_taken(frames: pl.DataFrame, ports: pl.DataFrame) -> pl.Series:
    """Rows of frames that came to a machine's port with the MAC address of another: its adapter does not take them."""
    macs = ports.filter(~pl.col("joins")).select("end", "mac")
    came = frames.filter(pl.col("direction") == INBOUND, pl.col("fate").is_null()).select("row", "end", "eth_target")
    other = (pl.col("eth_target") != pl.col("mac")) & (pl.col("eth_target") & GROUP_BIT == 0)
    return came.join(macs, on="end", how="inner").filter(other)["row"]


def sent_frames(frames: pl.DataFrame, ports: pl.DataFrame, network: Network | None = None) -> pl.DataFrame:
    """What machines have sent of their own, in order, with PORT: at their ports, and what the wire never took: the
    frames that an adapter refused or gave up. `frames` with row, end and fate. With `network`, a frame that an adapter
    has no place for is behind those that had them then (`_behind_places`)."""
    frames = frames.select(SENT)
    segment = pl.col("interface").str.strip_suffix(FATE_SUFFIX)
    # Polars 2.1 panics in concat_str where a filter leaves chunks that are empty.
    refused = (
        frames.filter(pl.col("fate") == DROPPED, pl.col("fate_adapter").is_not_null())
        .rechunk()
        .with_columns(end=pl.concat_str(pl.format("wire/{}.pcapng|", segment), "fate_adapter"))
    )
    own = frames.filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND)
    # What is one value for all frames stays one value where nothing is joined to them.
    sent = own if refused.is_empty() else pl.concat([own, refused])
    sent = sent.join(ports.filter(~pl.col("joins")), on="end", how="inner", maintain_order="left")
    own, _ = apart(sent, ports)
    if network is not None:
        own = _behind_places(own, network)
    return own.sort("time_ns", "row")


def _behind_places(sent: pl.DataFrame, network: Network) -> pl.DataFrame:
    """Frames that an adapter refused, 1 ns behind the last of those that it had then, and before what it then took: it
    has them from when they are handed in, and their time is that of their first bit. A full transmit ring has
    `ring_frames` that have not left; a LAN emulation client, 8 for the address (af-lane-0021, C10), which it sends
    later or gives up together."""
    refused = sent.filter(pl.col("fate_rule").is_in([FULL, HELD]))
    if refused.is_empty():
        return sent
    later: list[tuple[int, int]] = []
    for (end,), part in refused.group_by("end", maintain_order=True):
        segment, port = network.segments[str(end).partition(".")[0].rpartition("/")[2]], part["port"][0]
        own = sent.filter(pl.col("end") == end, pl.col("fate").is_null()).sort("time_ns", "row")
        begins, rows = own["time_ns"].to_numpy(), own["row"].to_numpy()
        given_up = pl.col("fate").is_null() | (pl.col("fate_rule") == GIVEN_UP)
        held = sent.filter(pl.col("end") == end, given_up).sort("time_ns", "row")
        freed, targets = held["time_ns"].to_numpy(), held["eth_target"].to_numpy()
        held_rows = held["row"].to_numpy()
        following = np.append(begins[1:], np.iinfo(np.int64).max)
        busy = bits_of(own["frame_length"].cast(pl.Int64).to_numpy()) * SECOND_NS // segment.rate_bps(port)
        ends = following if segment.packet_cells is not None else np.minimum(begins + busy, following)
        for row, at_ns, rule, target in part.select("row", "time_ns", "fate_rule", "eth_target").iter_rows():
            if rule == FULL:
                last = rows[np.searchsorted(ends, at_ns, "right") :][: segment.adapter.ring_frames]
            else:
                last = held_rows[(freed >= at_ns) & (targets == target)][:HELD_MOST]
            if len(last):
                later.append((row, int(last[-1])))
    known = sent.schema["row"]
    moved = pl.DataFrame(later, schema={"row": known, "behind": known}, orient="row")
    moved = moved.join(sent.select(behind="row", behind_ns="time_ns"), on="behind", how="inner")
    table = sent.join(moved, on="row", how="left", maintain_order="left")
    is_moved = (pl.col("behind_ns") >= pl.col("time_ns")).fill_null(False)
    table = table.with_columns(
        place=pl.when(is_moved).then("behind").otherwise("row"), moved=is_moved,
        time_ns=pl.when(is_moved).then("behind_ns").otherwise("time_ns"),
    ).sort("end", "time_ns", "place", "moved", "row")  # fmt: skip
    beyond = pl.col("moved").cum_sum().over("end", "time_ns").cast(sent.schema["time_ns"])
    return table.with_columns(time_ns=pl.col("time_ns") + beyond).select(sent.columns)


def apart(sent: pl.DataFrame, ports: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What machines have sent of their own, and the packets of others that those which forward have passed on."""
    routers = ports.filter("forwards").drop_nulls("address").group_by("machine").agg(known="address")
    if routers.is_empty():
        return sent, sent.clear()
    marked = sent.join(routers, on="machine", how="left", maintain_order="left").with_columns(
        other=pl.col("source").is_not_null() & (~pl.col("known").list.contains(pl.col("source"))).fill_null(False)
    )
    return (
        marked.filter(~pl.col("other")).drop("known", "other"),
        marked.filter("other").drop("known", "other"),
    )


def next_hops(
    packets: pl.DataFrame,
    ports: pl.DataFrame,
    routes: Mapping[str, Sequence[Route]],
    of_users: Collection[str] = (),
) -> pl.DataFrame:
    """end, target, hop: to which MAC address each port sends packets for an address: its owner's if that is near, else
    that of the router of the narrowest route; all ones for all on its own network; without a row it knows none.
    `packets` with PORT; `of_users`: machines with programs of users, which may send to groups."""
    wide = set(ports.select("end", "broadcast").drop_nulls().rows())
    near = {(domain, address): mac for domain, mac, address in stations(ports).drop_nulls("address").iter_rows()}
    somewhere = {address for _, address in near}
    rows = []
    asked = packets.select("end", "machine", "domain", "target").unique().drop_nulls()
    for end, machine, domain, target in asked.iter_rows():
        hop = BROADCAST if (end, target) in wide else near.get((domain, target))
        fitting = [each for each in routes.get(machine, ()) if target in somewhere and IPv4Address(target) in each.to]
        if hop is None and machine in of_users and is_group(target):
            hop = group_mac(target)
        if hop is None and fitting:
            hop = near.get((domain, str(max(fitting, key=lambda each: each.to.prefixlen).via)))
        if hop is not None:
            rows.append((end, target, hop))
    return pl.DataFrame(rows, schema={"end": pl.String, "target": pl.String, "hop": pl.Int64}, orient="row")
