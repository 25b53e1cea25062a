# SPDX-License-Identifier: Apache-2.0
"""What keeps a packet from the program that it is for, or from the wire, without a fate of its own: a port that is not
open yet, and an address that ARP does not resolve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address

import polars as pl

from sundial.observe import Octets
from sundial.observe.headers import ARP, ETHERNET
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.headers.arp import REPLY, REQUEST, arp_fields
from sundial.verify.headers.icmp import PORT, UNREACHABLE
from sundial.verify.headers.ip import ICMP

Endpoint = tuple[str, int]
Read = Callable[[pl.DataFrame], Octets]

TRIES = 3
"""Requests without an answer after which Linux drops what waits for one (its mcast_solicit)."""
RETRY_NS = 1_100_000_000
"""Its time between them (retrans_time), and what a machine may take besides."""


def closed_until(frames: pl.DataFrame, read: Read) -> dict[Endpoint, int]:
    """When a machine last said that a UDP port of its own was closed (RFC 792: destination and port unreachable)."""
    reports = frames.filter(pl.col("protocol") == ICMP, pl.col("direction") == OUTBOUND, pl.col("fate").is_null())
    octets = read(reports)
    found: dict[Endpoint, int] = {}
    for place, (source, at_ns, header) in enumerate(reports.select("source", "time_ns", "ip_header").iter_rows()):
        message = octets.frame(place)[ETHERNET + header :]
        quote = message[8:]
        if message[:2] != bytes((UNREACHABLE, PORT)) or len(quote) < 28:
            continue
        ports = (quote[0] & 0xF) * 4
        if str(ip_address(quote[16:20])) == source:
            found[source, int.from_bytes(quote[ports + 2 : ports + 4])] = at_ns
    return found


def unresolved(frames: pl.DataFrame, machines: Mapping[str, str], read: Read) -> dict[str, list[tuple[int, int]]]:
    """By machine: stretches in which it asked for an address, TRIES times in a row, and had no answer. What it has for
    that address meanwhile is dropped, and no capture shows it. `machines`: by `end`."""
    arp = frames.filter(pl.col("eth_type") == ARP, pl.col("fate").is_null()).sort("time_ns", "row")
    fields = arp_fields(arp, read(arp))
    open_runs: dict[tuple[str, int], list[int]] = {}
    found: dict[str, list[tuple[int, int]]] = {}
    columns = fields.select(pl.col("end").cast(pl.String), "time_ns", "direction", "arp_op", "arp_spa", "arp_tpa")
    for end, at_ns, direction, kind, sender, target in columns.iter_rows():
        if end not in machines:
            continue
        if direction == INBOUND and kind in (REQUEST, REPLY):
            run = open_runs.pop((end, sender), [])
            if len(run) == TRIES and at_ns > run[-1] + RETRY_NS:
                found.setdefault(machines[end], []).append((run[0], run[-1] + RETRY_NS))
        elif direction == OUTBOUND and kind == REQUEST:
            run = open_runs.setdefault((end, target), [])
            if len(run) == TRIES:
                found.setdefault(machines[end], []).append((run[0], at_ns))
                run.clear()
            elif run and at_ns > run[-1] + RETRY_NS:
                run.clear()
            run.append(at_ns)
    for (end, _), run in open_runs.items():
        if len(run) == TRIES:
            found.setdefault(machines[end], []).append((run[0], run[-1] + RETRY_NS))
    return found


def within(stretches: Iterable[tuple[int, int]], at_ns: int) -> bool:
    """Whether an instant is in one of them."""
    return any(begin <= at_ns <= end for begin, end in stretches)
