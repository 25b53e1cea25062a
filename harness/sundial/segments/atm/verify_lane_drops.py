# SPDX-License-Identifier: Apache-2.0
"""Frames that a LAN emulation client drops, and why: it is not a member yet, eight already wait for the same station,
or that station was not resolved in time. The capture of frames has them as fates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_lane_messages import ARP, RESPONSE, Message
from sundial.segments.atm.verify_lane_uplink import ROUNDING_NS, Uplink
from sundial.segments.atm.verify_lane_vccs import NEVER_NS, Span
from sundial.verify.law import merged
from sundial.verify.wire import Numbers, Wire, problem

WAITING_PLACES = 8
"""Of Linux (net/atm/lec.c); af-lane-0021 sets no number."""


def check_drops(
    segment: Atm, wire: Wire, line: Uplink, messages: Sequence[Message], sent: dict[int, Numbers], member_ns: int
) -> pl.DataFrame:
    """Of one client; `sent`: by address, when data frames for it left."""
    port = segment.ports[line.number]
    early, many, silent = (
        wire.given_up(port).filter(fate_rule=rule) for rule in ("not joined", "8 frames wait", "no answer")
    )
    return merged(
        [
            _not_joined(port, early, member_ns),
            *(_to_other(port, each) for each in (many, silent)),
            _too_many(port, many, silent, sent, wire.end_ns),
            _no_answer(segment, port, line, messages, silent),
        ]
    )


def wanted(wire: Wire, line: Uplink, sent: dict[int, Numbers]) -> frozenset[int]:
    """The addresses that a client had frames for."""
    here = wire.given_up(wire.ports[line.number])
    return frozenset(sent) | frozenset(here["eth_target"].drop_nulls().to_list())


def _not_joined(port: str, fates: pl.DataFrame, member_ns: int) -> pl.DataFrame:
    at = fates["time_ns"].to_numpy()
    wrong = at > member_ns
    return problem(
        f"frames of {port}", wrong, [_rows(fates)], (f"not dropped after {member_ns} ns" for _ in at[wrong]),
        (f"not joined, at {each} ns" for each in at[wrong]),
    )  # fmt: skip


def _to_other(port: str, fates: pl.DataFrame) -> pl.DataFrame:
    """Its record names the station that the frame is for."""
    target = [each.to_bytes(6, "big").hex(":") for each in fates["eth_target"].to_list()]
    named = fates["fate_address"].to_list()
    wrong = np.array([one != other for one, other in zip(named, target, strict=True)], np.bool_)
    return problem(
        f"frames of {port}", wrong, [_rows(fates)], iter(np.array(target, object)[wrong]),
        iter(np.array(named, object)[wrong]),
    )  # fmt: skip


def _too_many(
    port: str, fates: pl.DataFrame, silent: pl.DataFrame, sent: dict[int, Numbers], end_ns: int | None
) -> pl.DataFrame:
    """Eight frames for the station were sent, or dropped, only afterwards; at the end they may still wait."""
    later = []
    for at, mac in fates.select("time_ns", "eth_target").iter_rows():
        gone = silent.filter(pl.col("time_ns") > at, pl.col("eth_target") == mac).height
        later.append(int((sent.get(int(mac), np.zeros(0, np.int64)) > at).sum()) + gone)
    seen = np.array(later, np.int64)
    wrong = seen < WAITING_PLACES if end_ns is None or len(silent) else (seen < WAITING_PLACES) & (seen > 0)
    return problem(
        f"frames of {port}", wrong, [_rows(fates)],
        (f"{WAITING_PLACES} that wait" for _ in seen[wrong]), (f"{each} that were sent later" for each in seen[wrong]),
    )  # fmt: skip


def _no_answer(segment: Atm, port: str, line: Uplink, messages: Sequence[Message], fates: pl.DataFrame) -> pl.DataFrame:
    """C20 after the last request, which remained unanswered."""
    lane = segment.lan_emulation
    latency_ns = segment.by_port(segment.rx_latency)[line.number]
    answered = {
        each.fields.transaction: each.at_ns + latency_ns
        for each in messages
        if each.opcode == ARP + RESPONSE and not each.out and each.fields is not None
    }
    due: dict[int, list[Span]] = {}
    asked = [(each, line.asked_between(each.record)) for each in messages if each.opcode == ARP and each.out]
    for each, (low, high) in asked:
        over = low + lane.le_arp_response_time, high + lane.le_arp_response_time
        number = each.fields.transaction if each.fields is not None else 0
        # A request that was repeated was not the last.
        again = any(other.target_mac == each.target_mac and other is not each and line.left_between(other.record, over)
                    for other, _ in asked)  # fmt: skip
        if answered.get(number, NEVER_NS) >= over[0] and not again:
            due.setdefault(each.target_mac, []).append(over)
    at = fates["time_ns"].to_numpy()
    wrong = np.array(
        [
            not any(low - ROUNDING_NS <= each <= high + ROUNDING_NS for low, high in due.get(int(mac), []))
            for each, mac in zip(at.tolist(), fates["eth_target"].to_list(), strict=True)
        ],
        np.bool_,
    )
    return problem(
        f"frames of {port}", wrong, [_rows(fates)],
        (f"{lane.le_arp_response_time} ns after an unanswered request" for _ in at[wrong]),
        (f"no answer, at {each} ns" for each in at[wrong]),
    )  # fmt: skip


def _rows(fates: pl.DataFrame) -> Numbers:
    return fates["row"].cast(pl.Int64).to_numpy()
