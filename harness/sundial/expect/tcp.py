# SPDX-License-Identifier: Apache-2.0
"""TCP segments of one message (RFC 9293 section 3.7, RFC 7323, Nagle's rule RFC 896, initial window RFC 6928).

A message reaches TCP as one or more writes. Which segments carry it is determined only where nothing but the maximum
segment size can cut it:

* one write that fits the initial window of ten segments (RFC 6928) and the 65535 bytes that a window without scaling
  can say (RFC 9293 section 3.1) is cut every `S` bytes: exact;
* a longer write may also be cut where the peer's window ends, at most once in each full segment: between
  `ceil(write / S)` and twice as many segments;
* one write that is longer than half of that window, where `S` is too, may also be cut at half of the greatest window
  that the peer has offered (RFC 9293 section 3.8.6.2.1; Linux: tcp_bound_to_half_wnd, from the window in the SYN on):
  between `ceil(write / S)` and twice as many as halves;
* several writes may be joined by Nagle's rule, or while the adapter holds back what was written before: between
  `ceil(total / S)` and the sum of the single writes.

A segment never exceeds `S`, and the segments add up to the message, in every case.

Below an MTU of 88 Linux does not follow this: it keeps 48 bytes for data and options (its tcp_min_snd_mss), so that
its segments are longer than the link carries and are fragmented by IP. Measured at MTU 68: 36 bytes of data in packets
of 88. Scenarios are refused there (`model.limits`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sundial.expect.ip import IP_HEADER, TCP_HEADER, TCP_TIMESTAMPS, Packet, PerPacket, check_mtu, one

INITIAL_WINDOW_SEGMENTS = 10
UNSCALED_WINDOW = 65535
LEAST_WINDOW = 1152
"""Of a Linux socket with the smallest receive buffer."""
HALF_WINDOW = 32741
"""Of the smallest window that a Linux whose interface has the largest MTU offers in its SYN: 65,483."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The packets that are expected where nothing interferes, and the bounds of their number."""

    packets: tuple[Packet, ...]
    exact: bool
    fewest: int
    most: int
    largest: int
    """Payload bytes of a full segment (S)."""


def segment_size(mtu: int, timestamps: bool, peer_mss: int | None = None) -> int:
    """Payload of a full segment: S = min(MTU - 40, the MSS the peer offered) less the options' bytes.

    RFC 9293 section 3.7.1 (Eff.snd.MSS); `peer_mss` is the value of the MSS option in the peer's SYN, which does not
    count options (RFC 6691).
    """
    check_mtu(mtu)
    room = mtu - IP_HEADER - TCP_HEADER
    if peer_mss is not None:
        room = min(room, peer_mss)
    return room - (TCP_TIMESTAMPS if timestamps else 0)


def tcp_segments(writes: tuple[int, ...], size: int, timestamps: bool) -> Segments:
    """Segments for `writes` (bytes each, none empty), cut every `size` bytes."""
    if size < 1:
        raise ValueError(f"segment size {size}: no room for data")
    if any(write < 1 for write in writes):
        raise ValueError(f"writes {writes}: an empty write sends nothing")
    header = _header(timestamps)
    payloads = [part for write in writes for part in _cut(write, size)]
    packets = tuple(Packet(header + payload, payload) for payload in payloads)
    total = sum(writes)
    fewest, most = -(-total // size), len(payloads)
    fits = most <= INITIAL_WINDOW_SEGMENTS and total <= UNSCALED_WINDOW // size * size
    if any(min(write, size) > HALF_WINDOW for write in writes):
        fits, most = False, sum(-(-write // HALF_WINDOW) for write in writes)
    if not fits:
        most *= 2
    return Segments(packets, exact=fits and len(writes) == 1, fewest=fewest, most=most, largest=size)


def most_segments(payloads: Iterable[int], window: int) -> int:
    """Segments of a message that needs those of `payloads` bytes, where the peer's window may be as small as `window`:
    each is cut at half of it (RFC 9293 section 3.8.6.2.1), and once more where the window ends."""
    return 2 * sum(-(-payload // max(window // 2, 1)) for payload in payloads)


def tcp_segment_count(writes: tuple[int, ...], size: int, timestamps: bool, each: PerPacket = one) -> int:
    """What the segments count for where only the segment size cuts."""
    header = _header(timestamps)
    count = 0
    for write in writes:
        full, rest = divmod(write, size)
        count += full * each(header + size) + (each(header + rest) if rest else 0)
    return count


def _header(timestamps: bool) -> int:
    return IP_HEADER + TCP_HEADER + (TCP_TIMESTAMPS if timestamps else 0)


def _cut(write: int, size: int) -> list[int]:
    full, rest = divmod(write, size)
    return [size] * full + ([rest] if rest else [])
