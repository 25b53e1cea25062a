# SPDX-License-Identifier: Apache-2.0
"""What iperf3 prints (`-J`) against the job, against what both ends said on the control connection, and in itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sundial.workloads.iperf3.verify_control import Control

_NS_PER_MS = 1_000_000
_MS_PER_S = 1000
_BITS = 8
LATE_S = 1.0
"""By how much a test may last longer than its duration: it ends with the block under way."""
_RELATIVE = 1e-6

Difference = tuple[str, str, str]
"""Field, expected, seen."""


def uncounted_bytes(result: Mapping[str, Any]) -> int:
    """The most that a TCP stream may have written beyond what the client counts.

    Since iperf3 3.16 each stream is a thread, which the client cancels at the end: in the midst of a block, as a rule,
    of which a part has been written then. Before, the block under way was finished and counted.
    """
    start = result.get("start") or {}
    version = re.search(r"(\d+)\.(\d+)", str(start.get("version")))
    if version is None or (int(version[1]), int(version[2])) < (3, 16):
        return 0
    return max(0, int((start.get("test_start") or {}).get("blksize") or 0) - 1)


def check_result(options: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Difference]:
    """What was asked for, and whether the sums are right. `options`: of the step."""
    start, end = result.get("start") or {}, result.get("end") or {}
    test = start.get("test_start") or {}
    udp = options.get("transport", "tcp") == "udp"
    asked = {
        "protocol": "UDP" if udp else "TCP",
        "num_streams": options.get("streams", 1),
        "duration": options.get("duration_ms", _MS_PER_S) // _MS_PER_S,
        "reverse": 0,
        "omit": 0,
        "bytes": 0,
        "blocks": 0,
    }
    if options.get("rate_bps"):
        asked["target_bitrate"] = options["rate_bps"]
    for name, value in asked.items():
        yield from _same(f"test.{name}", value, test.get(name))
    host = (start.get("connecting_to") or {}).get("host")
    yield from _same("test.host", options.get("server"), host)
    yield from _same("error", None, result.get("error"))
    yield from _sums(result.get("intervals") or [], end, udp)
    duration = asked["duration"]
    seconds = _number((end.get("sum_sent") or {}).get("seconds"))
    if not duration <= seconds <= duration + LATE_S:
        yield "test.seconds", f"{duration} to {duration + LATE_S}", str(seconds)


def _sums(intervals: Sequence[Mapping[str, Any]], end: Mapping[str, Any], udp: bool) -> Iterator[Difference]:
    sent, received = end.get("sum_sent") or {}, end.get("sum_received") or {}
    of_streams = [_half(each, "sender", udp) for each in end.get("streams") or []]
    yield from _same(
        "sum_sent.bytes of streams", sum(_whole(each.get("bytes")) for each in of_streams), sent.get("bytes")
    )
    for name in ("bytes", *(("packets",) if udp else ())):
        over = sum(_whole((each.get("sum") or {}).get(name)) for each in intervals)
        yield from _same(f"sum_sent.{name} of intervals", over, sent.get(name))
    for interval in intervals:
        whole = interval.get("sum") or {}
        parts = sum(_whole(each.get("bytes")) for each in interval.get("streams") or [])
        yield from _same("interval.bytes", parts, whole.get("bytes"))
        yield from _rate("interval", whole)
    if not udp:
        back = sum(_whole(_half(each, "receiver", udp).get("bytes")) for each in end.get("streams") or [])
        yield from _same("sum_received.bytes of streams", back, received.get("bytes"))
    for name, part in (("sum_sent", sent), ("sum_received", received)):
        yield from _rate(name, part)


def check_said(control: Control, options: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Difference]:
    """What iperf3 prints against what went over the control connection."""
    udp = options.get("transport", "tcp") == "udp"
    test = (result.get("start") or {}).get("test_start") or {}
    parameters = control.parameters
    yield from _same("parameters.transport", True, parameters.get("udp" if udp else "tcp"))
    for name, value in (
        ("time", options.get("duration_ms", _MS_PER_S) // _MS_PER_S),
        ("parallel", options.get("streams", 1)),
        ("len", test.get("blksize")),
        ("omit", 0),
        ("bandwidth", options.get("rate_bps")),
        ("window", options.get("socket_buffer")),
        ("nodelay", True if options.get("tcp_nodelay") else None),
    ):
        if value is not None or parameters.get(name):
            # UDP is offered at 1 Mbit/s where nothing else is asked for (iperf3(1), -b).
            default = 1 << 20 if (udp and name == "bandwidth" and value is None) else value
            yield from _same(f"parameters.{name}", default, parameters.get(name))
    streams = (result.get("end") or {}).get("streams") or []
    mine, theirs = (each.get("streams") or [] for each in (control.client, control.server))
    for number, (stream, ours, back) in enumerate(_beside(streams, mine, theirs)):
        sender, receiver = _half(stream, "sender", udp), _half(stream, "receiver", udp)
        yield from _same(f"stream {number} bytes sent", ours.get("bytes"), sender.get("bytes"))
        if udp:
            for name, said in (("packets", "packets"), ("lost_packets", "errors")):
                given = ours if name == "packets" else back
                yield from _same(f"stream {number} {name}", given.get(said), sender.get(name))
        else:
            yield from _same(f"stream {number} retransmits", ours.get("retransmits"), sender.get("retransmits"))
            yield from _same(f"stream {number} bytes received", back.get("bytes"), receiver.get("bytes"))


def _beside(*lists: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], ...]]:
    for place in range(max(len(each) for each in lists)):
        yield tuple(each[place] if place < len(each) else {} for each in lists)


def _half(stream: Mapping[str, Any], name: str, udp: bool) -> Mapping[str, Any]:
    return stream.get("udp" if udp else name) or {}


def _rate(name: str, part: Mapping[str, Any]) -> Iterator[Difference]:
    """Bits a second follow from bytes and seconds."""
    seconds, rate = _number(part.get("seconds")), _number(part.get("bits_per_second"))
    right = _whole(part.get("bytes")) * _BITS / seconds if seconds else 0.0
    if abs(right - rate) > _RELATIVE * max(right, 1.0):
        yield f"{name}.bits_per_second", f"{right:.6g}", f"{rate:.6g}"


def _same(field: str, expected: Any, seen: Any) -> Iterator[Difference]:
    if expected != seen:
        yield field, str(expected), str(seen)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
