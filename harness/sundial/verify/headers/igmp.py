# SPDX-License-Identifier: Apache-2.0
"""Reports of groups that programs of users have joined: IGMPv3 (RFC 3376) as Linux makes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from ipaddress import IPv4Address

import polars as pl

from sundial.observe import Octets
from sundial.observe.headers import ETHERNET
from sundial.verify.findings import Finding, as_table

UNPROVEN = ("that a report of a group (IGMP) follows what programs joined and left, and how often it is sent",)

Read = Callable[[pl.DataFrame], Octets]
IGMP = 2
HEADER = 24
"""Bytes of IPv4 with the option that routers look at (RFC 2113)."""
ALL_ROUTERS = "224.0.0.22"
_ALERT = bytes([0x94, 4, 0, 0])
_REPORT = 0x22
_RECORD_TYPES = range(1, 7)
_FIXED = 8
"""Bytes of a report before its records, and of a record before its sources."""


def is_group(address: str) -> bool:
    """Whether packets to an address are for many."""
    return IPv4Address(address).is_multicast


def group_mac(address: str) -> int:
    """The MAC address of a group: 01:00:5e and its low 23 bits (RFC 1112)."""
    return 0x01005E << 24 | int(IPv4Address(address)) & 0x7FFFFF


def reports_of(of_users: Collection[str]) -> pl.Expr:
    """Packets of IGMP, of machines with programs of users."""
    return (pl.col("protocol") == IGMP).fill_null(False) & pl.col("machine").is_in(list(of_users))


def check_igmp(sent: pl.DataFrame, read: Read, of_users: Collection[str]) -> pl.DataFrame:
    """`sent` as of `ports.sent_frames`. Reports are few: they are looked at one by one."""
    reports = sent.filter(reports_of(of_users))
    octets = read(reports)
    rows: list[Finding] = []
    for place, frame in enumerate(reports.iter_rows(named=True)):
        packet = octets.frame(place)[ETHERNET : ETHERNET + frame["ip_length"]]
        rows += check_report(packet, frame["target"], [frame["row"]])
    return as_table(rows)


def check_report(packet: bytes, target: str, rows: list[int]) -> Iterator[Finding]:
    """What is wrong with an IPv4 packet whose header has HEADER bytes."""
    option, report = packet[20:HEADER], packet[HEADER:]
    if option != _ALERT:
        yield Finding(None, "ip.opt", "router alert", option.hex(), rows)
    if target != ALL_ROUTERS:
        yield Finding(None, "ip.dst", f"{ALL_ROUTERS}, of reports", target, rows)
    if len(report) < _FIXED or report[0] != _REPORT:
        yield Finding(
            None,
            "igmp.type",
            f"{_REPORT:#x}, with {_FIXED} bytes at least",
            f"{report[:1].hex()}, {len(report)} bytes",
            rows,
        )
        return
    words = report + bytes(len(report) % 2)
    total = sum(int.from_bytes(words[at : at + 2]) for at in range(0, len(words), 2))
    if total % 0xFFFF or not total:
        yield Finding(None, "igmp.checksum", "right", "wrong", rows)
    at = _FIXED
    for _ in range(int.from_bytes(report[6:8])):
        record = report[at : at + _FIXED]
        at += _FIXED + 4 * int.from_bytes(record[2:4])
        if len(record) < _FIXED:
            break
        group = str(IPv4Address(record[4:8]))
        if record[0] not in _RECORD_TYPES or record[1] or not is_group(group):
            yield Finding(None, "igmp.record", "a type from 1 to 6 of a group", f"type {record[0]} of {group}", rows)
    if at != len(report):
        yield Finding(
            None, "igmp.num_grp_recs", f"records of {len(report) - _FIXED} bytes", f"{at - _FIXED} bytes", rows
        )
