# SPDX-License-Identifier: Apache-2.0
"""LAN emulation's rules, from the capture of PDUs (af-lane-0021): the content of every control frame, who answers whom
and when, and which way data frames go. How PDUs travel, and that their data are the frames', is `verify_frames` and
`verify_times`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_lane_answers import check_answers
from sundial.segments.atm.verify_lane_calls import Channels
from sundial.segments.atm.verify_lane_drops import check_drops, wanted
from sundial.segments.atm.verify_lane_duties import check_duties
from sundial.segments.atm.verify_lane_fields import Problem, check_fields, lec_ids_of
from sundial.segments.atm.verify_lane_inquiries import check_inquiries
from sundial.segments.atm.verify_lane_join import Joining
from sundial.segments.atm.verify_lane_messages import NAMES, Message, clients_of, read_messages
from sundial.segments.atm.verify_lane_paths import Paths, Wrong
from sundial.segments.atm.verify_lane_uplink import uplink
from sundial.segments.atm.verify_lane_vccs import Vccs
from sundial.segments.atm.verify_pdus import Pdus
from sundial.verify.findings import Finding, as_table
from sundial.verify.wire import MOST, Numbers, Wire

UNPROVEN = (
    "lane: which frames of a machine waited in its client for a channel, and since when",
    "lane: when a client sent its second and later frames to an unknown station; only the limits C10 and C11",
    "lane: the order of LEC IDs where requests to join reached the LES in one ns, or some were lost or varied by CDV",
    "lane: with `interleave: cells` or shaping, how late a control frame leaves its adapter",
)


def lec_ids(segment: Atm, wire: Wire, pdus: Pdus) -> Numbers:
    """By port, as the LES gave them; -1: that client never joined. Without LE_ARP they are the ports from 1."""
    ports = len(segment.ports)
    if segment.lan_emulation.resolution == "static":
        return np.arange(1, ports + 1)
    found = np.full(ports, -1)
    for port, lec_id in lec_ids_of(clients_of(segment, wire), read_messages(pdus)).items():
        found[port] = lec_id
    return found


def check_lane(segment: Atm, wire: Wire, pdus: Pdus) -> list[pl.DataFrame]:
    """Findings of one emulated LAN."""
    clients, messages = clients_of(segment, wire), read_messages(pdus)
    lines = [uplink(segment, pdus, number) for number in range(len(segment.ports))]
    if segment.lan_emulation.resolution == "static":
        found = [problem_findings(pdus, (_none(each) for each in messages))]
    else:
        found = [
            problem_findings(pdus, check_fields(clients, messages)),
            problem_findings(pdus, check_answers(segment, clients, messages, lines, wire.end_ns)),
            problem_findings(pdus, check_duties(segment, clients, messages, lines, wire.end_ns)),
        ]
    vccs = Vccs(segment, clients, pdus, lines, messages)
    for number, line in enumerate(lines):
        own = [each for each in messages if each.port == number and not each.lost]
        joining = Joining(segment, line, own, wire.end_ns)
        channels = Channels(segment, line, own, vccs)
        paths = Paths.of(segment, clients, pdus, line, own, channels)
        if segment.lan_emulation.resolution != "static":
            sent = paths.sent()
            found += [
                problem_findings(pdus, joining.check()),
                problem_findings(pdus, channels.check(clients, wire.end_ns)),
                _rows(pdus, channels.check_data()),
                problem_findings(pdus, check_inquiries(segment, line, own, wanted(wire, line, sent), wire.end_ns)),
                check_drops(segment, wire, line, own, sent, joining.member_ns),
            ]
        found.append(_rows(pdus, paths.check(joining.member_ns)))
    return found


def _none(message: Message) -> Problem:
    return message, "control frame", "none, since all channels are there", NAMES.get(message.opcode, "one")


def problem_findings(pdus: Pdus, problems: Iterable[Problem]) -> pl.DataFrame:
    """Problems of control frames as findings."""
    return _rows(
        pdus,
        (
            (message.record, f"{NAMES.get(message.opcode, 'control frame')} {what}", expected, seen)
            for message, what, expected, seen in problems
        ),
    )


def _rows(pdus: Pdus, problems: Iterable[Wrong]) -> pl.DataFrame:
    return as_table(
        Finding(None, f"{pdus.name}: {what}", expected, f"{seen}, record {record + 1}")
        for (record, what, expected, seen), _ in zip(problems, range(MOST), strict=False)
    )
