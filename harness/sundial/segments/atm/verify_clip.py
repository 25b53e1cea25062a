# SPDX-License-Identifier: Apache-2.0
"""Classical IP over ATM (RFC 2225): permanent channels carry IP packets only, and each adapter answers its machine's
ARP in place of an ATMARP server, so neither question nor answer leaves it.

The answer comes when one of the machine that has the address could: after one cell each way.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import polars as pl

from sundial.expect.atm import UNITS_PER_PS
from sundial.observe.headers import ARP, ETHERNET
from sundial.segments.atm.model import Atm
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.wire import MOST, Wire

_ARP = struct.Struct(">HHBBH6s4s6s4s")
_FIXED = (1, 0x0800, 6, 4)
_REQUEST, _REPLY = 1, 2
_NS = 1000 * UNITS_PER_PS


def check_clip(segment: Atm, wire: Wire) -> list[pl.DataFrame]:
    """Findings about ARP at the ports, and about what no channel takes."""
    rows: list[Finding] = []
    for number, port in enumerate(segment.ports):
        asked, came = (_frames(wire, port, direction) for direction in (OUTBOUND, INBOUND))
        due = []
        for at_ns, row, frame in asked:
            owner, octets = _answer(wire, number, frame)
            if octets:
                due.append((at_ns + way_ns(segment, number, owner), row, octets))
            else:
                rows.append(
                    _finding(port, "question of ARP", "one about a machine here", "one without an answer", [row])
                )
        rows += _compared(port, due, came, wire.end_ns)
    return [as_table(rows[:MOST]), _dropped(segment, wire)]


def way_ns(segment: Atm, number: int, owner: int) -> int:
    """From a port to another and back, a cell each way."""
    ports = [segment.ports[each] for each in (number, owner)]
    cells = sum(2 * segment.cell_time_units(port) for port in ports)
    waits = [segment.by_port(each)[place] for each in (segment.tx_latency, segment.rx_latency)
             for place in (number, owner)]  # fmt: skip
    propagation = sum(segment.by_port(segment.propagation)[place] for place in (number, owner))
    return -(-cells // _NS) + sum(waits) + 2 * (propagation + segment.cell_latency)


def _frames(wire: Wire, port: str, direction: int) -> list[tuple[int, int, bytes]]:
    """ARP frames at a port: time, row, octets."""
    here = wire.frames.filter(
        pl.col("interface") == port,
        pl.col("direction") == direction,
        pl.col("fate").is_null(),
        pl.col("eth_type") == ARP,
    ).sort("time_ns", "row")
    if wire.octets is None or here.is_empty():
        return []
    octets = wire.octets(here)
    return [(at, row, octets.frame(place)) for place, (at, row) in enumerate(here.select("time_ns", "row").iter_rows())]


def _answer(wire: Wire, number: int, frame: bytes) -> tuple[int, bytes]:
    """Which port has the address that a frame asks for, and the answer; nothing: it asks for none."""
    body = frame[ETHERNET:]
    if len(body) < _ARP.size:
        return -1, b""
    *fixed, operation, asker, asker_ip, _, wanted = _ARP.unpack_from(body)
    owners = [
        place for place, port in enumerate(wire.ports) if place != number and wanted in wire.addresses.get(port, ())
    ]
    if tuple(fixed) != _FIXED or operation != _REQUEST or not owners:
        return -1, b""
    mac = wire.macs[wire.ports[owners[0]]].to_bytes(6, "big")
    header = asker + mac + struct.pack(">H", ARP)
    return owners[0], header + _ARP.pack(*_FIXED, _REPLY, mac, wanted, asker, asker_ip)


def _compared(
    port: str, due: Sequence[tuple[int, int, bytes]], came: Sequence[tuple[int, int, bytes]], end_ns: int | None
) -> list[Finding]:
    """What came against what had to, within the ns that the fabric's rounding leaves."""
    rows: list[Finding] = []
    left = list(came)
    for at_ns, cause, octets in due:
        found = next((each for each in left if each[2] == octets and abs(each[0] - at_ns) <= 1), None)
        if found is not None:
            left.remove(found)
        elif end_ns is None or at_ns + 1 < end_ns:
            rows.append(_finding(port, "answer of the adapter", f"{octets.hex()} at {at_ns} ns", "none", [cause]))
    for at_ns, row, octets in left:
        rows.append(
            _finding(port, "answer of the adapter", "to a question before it", f"{octets.hex()} at {at_ns} ns", [row])
        )
    return rows


def _dropped(segment: Atm, wire: Wire) -> pl.DataFrame:
    """A frame is dropped that is not an IP packet, or whose next hop is at no other port: by the address that ARP asks
    for, or the MAC address that a packet is sent to."""
    known = {address for port in segment.ports for address in wire.addresses.get(port, ())}
    rows: list[Finding] = []
    fates = wire.fates.filter(pl.col("fate_rule").is_in(["not IP", "no VC"]))
    octets = wire.octets(fates) if wire.octets is not None and not fates.is_empty() else None
    columns = fates.select("row", "fate_rule", "fate_adapter", "fate_address")
    for place, (row, rule, adapter, address) in enumerate(columns.iter_rows()):
        no_ip = rule == "not IP"
        frame = octets.frame(place) if octets is not None else b""
        kind, packet = int.from_bytes(frame[12:14]), frame[ETHERNET:]
        wanted = packet[24:28] if kind == ARP else packet[16:20]
        if no_ip and (kind == 0x0800 and packet[:1] and packet[0] >> 4 == 4 and len(packet) >= 20):
            rows.append(_finding("fate", "not IP", "a frame of another kind", "an IP packet", [row]))
        elif not no_ip and (
            (wanted in known if kind == ARP else frame[:6] in _others(wire, adapter))
            or address != ".".join(map(str, wanted))
        ):
            rows.append(_finding("fate", "no VC", "an address at no other port, as named", str(address), [row]))
    return as_table(rows[:MOST])


def _others(wire: Wire, adapter: str) -> set[bytes]:
    """MAC addresses at the other ports."""
    return {wire.macs[port].to_bytes(6, "big") for port in wire.ports if port != adapter}


def _finding(port: str, what: str, expected: str, seen: str, rows: list[int]) -> Finding:
    return Finding(None, f"classical IP at {port}: {what}", expected, seen, rows)
