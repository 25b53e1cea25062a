# SPDX-License-Identifier: Apache-2.0
"""Events of the timeline on disks and memory: each was carried out, once, when it was due, and the kernel counts as
taken what it says. Pure, of records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sundial.model.amount_events import Amount, amounts
from sundial.model.timeline import Event
from sundial.verify.findings import Finding
from sundial.workloads.command.verify_records import AMOUNT, RECORD

PAGE = 4096
TAKE, RELEASE = "take", "release"
_KEPT_BYTES = 1 << 20
"""Tables of pages, and what the kernel drops of its caches meanwhile."""


def rough_bytes(memory_bytes: int) -> int:
    """By how much MemAvailable may differ from what was locked. A processor keeps freed pages up to the low watermark,
    which do not count (Linux, mm/page_alloc.c: `zone_highsize`, `calculate_min_free_kbytes`)."""
    least_kib = math.isqrt((memory_bytes >> 10) * 16)
    return _KEPT_BYTES + least_kib * 1024 * 5 // 4


def check_amounts(
    events: Sequence[Event],
    machine: str,
    records: Sequence[Mapping[str, Any]],
    zero_ns: int,
    late_ns: int | None,
    memory_bytes: int,
) -> Iterator[Finding]:
    """All of one machine with so much memory. `late_ns`: by how much one may begin late; None under the real clock. One
    that is due while another is carried out comes after it."""
    found = [each for each in records if each["type"] == AMOUNT]
    free_ns = {id(each): before["at"] - zero_ns for before, each in itertools.pairwise(found)}
    within = rough_bytes(memory_bytes)
    ended = any(each["type"] == RECORD for each in records)
    for amount in amounts(events, machine):
        what = f"amount {machine} timeline.{amount.number}"
        own = [each for each in found if each["number"] == amount.number]
        found = [each for each in found if each["number"] != amount.number]
        verbs = [each["verb"] for each in own]
        # What is still taken when all programs have ended is given back with them.
        if verbs not in ([TAKE], [TAKE, RELEASE][: 1 + (amount.over_ns is not None)]):
            until = "" if ended else ", and its programs have no end"
            yield Finding(None, what, f"taken at {amount.at_ns} ns", f"{', '.join(verbs) or 'nothing'}{until}")
            continue
        for record, due_ns in zip(own, (amount.at_ns, amount.over_ns), strict=False):
            waits_ns = max(0, free_ns.get(id(record), 0) - (due_ns or 0))
            yield from _check_time(what, record, due_ns or 0, zero_ns, None if late_ns is None else waits_ns + late_ns)
        exact = None if late_ns is None else 0 if amount.path is not None else within
        yield from _check_taken(what, amount, own[0], exact)
        for record in own[1:]:
            yield from _check_released(what, own[0], record, exact)
    for each in found:
        yield Finding(None, f"amount {machine} timeline.{each['number']}", "none", f"{each['verb']} at {each['at']} ns")


def _check_time(
    what: str, record: Mapping[str, Any], due_ns: int, zero_ns: int, most_ns: int | None
) -> Iterator[Finding]:
    late, at_ns = record["late"], record["at"] - zero_ns
    off = most_ns is not None and (late > most_ns or at_ns < due_ns + late)
    if record["due"] != due_ns or late < 0 or off:
        expected = f"{record['verb']}: due at {due_ns} ns, begun up to {most_ns} ns later"
        yield Finding(None, what, expected, f"due at {record['due']} ns, {late} ns late, over at {at_ns} ns")


def _check_taken(what: str, amount: Amount, record: Mapping[str, Any], within: int | None) -> Iterator[Finding]:
    before, taken = record["before"], record["holds"] - record["held"]
    asked = max(0, before - (amount.leave or 0)) if amount.bytes is None else amount.bytes
    pages = -(-asked // PAGE) * PAGE
    if taken != pages:
        yield Finding(None, what, f"{pages} bytes taken of {before}", f"{taken} bytes")
    yield from _check_free(what, record, before - taken, within)


def _check_released(
    what: str, taken: Mapping[str, Any], record: Mapping[str, Any], within: int | None
) -> Iterator[Finding]:
    if (record["held"], record["holds"]) != (taken["holds"], taken["held"]):
        expected = f"{taken['holds']} bytes before, {taken['held']} afterwards"
        yield Finding(None, f"{what} end", expected, f"{record['held']} and {record['holds']}")
        return
    gained = record["held"] - record["holds"]
    yield from _check_free(f"{what} end", record, record["before"] + gained, within)


def _check_free(what: str, record: Mapping[str, Any], expected: int, within: int | None) -> Iterator[Finding]:
    """What is free. Of a file system it is known to the byte where nothing else ran meanwhile; None: not at all."""
    seen = record["after"]
    if within is not None and record["sleeps"] == 0 and abs(seen - expected) > within:
        yield Finding(None, what, f"{expected} bytes free, within {within}", f"{seen} bytes")
