# SPDX-License-Identifier: Apache-2.0
"""DNS over UDP, and over TCP with a length in front of each message (RFC 1035 section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.verify.decoders import dns_messages
from sundial.verify.decoders.dns_messages import HEADER, Dns, read_message
from sundial.verify.decoders.pairing import pair
from sundial.verify.decoders.traffic import Judged, Service, Traffic, Wrong
from sundial.verify.sockets.conversations import End
from sundial.verify.sockets.protocol import Message, Units
from sundial.verify.sockets.stream import Stream

PORT = 53
_PREFIX = 2


class Prefixed:
    """How a stream of messages is read."""

    unit = "message"

    def parse(self, stream: Stream, begin: int) -> Message | None:
        length = int.from_bytes(stream.need(begin, _PREFIX), "big")
        head = stream.read(begin + _PREFIX, HEADER)
        if length < HEADER or len(head) < HEADER:
            return None
        return Message(int.from_bytes(head[:2], "big"), begin, begin + _PREFIX + length, length, (), bool(head[2] >> 7))

    def find(self, stream: Stream, begin: int) -> int | None:
        for place in range(begin, stream.end - _PREFIX - HEADER + 1):
            found = self.parse(stream, place)
            if found is None or found.finish > stream.end:
                continue
            try:
                read_message(data_of(stream, found))
            except Wrong:
                continue
            return place
        return None


def data_of(stream: Stream, unit: Message) -> bytes:
    """A message without its length, as far as the stream has it."""
    return stream.read(unit.begin + _PREFIX, unit.length)


class _Language:
    nouns = ("query", "response")
    units: Units = Prefixed()

    def data_of(self, stream: Stream, unit: Message) -> bytes:
        return data_of(stream, unit)

    def read(self, data: bytes, transport: str) -> Dns:
        return read_message(data)

    def is_again(self, then: Dns, now: Dns, *, equal: bool) -> bool | None:
        return equal

    def fits(self, asked: Dns, answer: Dns) -> bool:
        return dns_messages.fits(asked, answer)

    def check(self, asked: Dns, transport: str) -> Iterator[Wrong]:
        yield from ()

    def check_answer(self, asked: Dns, answer: Dns, transport: str) -> Iterator[Wrong]:
        yield from dns_messages.check_answer(asked, answer, transport)

    def named(self, asked: Dns, answer: Dns, transport: str, server: End) -> Service | None:
        return None

    def may_be_silent(self, asked: Dns) -> bool:
        return False

    def has_many_answers(self, asked: Dns) -> bool:
        return asked.is_transfer

    def batched(self, asked: Dns) -> None:
        return None


class DnsDecoder:
    """The decoder."""

    name = "dns"
    transports: Sequence[str] = ("tcp", "udp")
    ports: Sequence[int] = (PORT,)
    units: Units | None = None
    asks: str | None = None
    unproven: Sequence[str] = (
        "dns: that answers are true",
        "dns: data of records of other types than A, AAAA, NS, CNAME, PTR, DNAME, MX, SOA, SRV, TXT and OPT",
        "dns: that a query is sent again no sooner than its client's own timer says",
        "dns: that a transfer of a zone is whole: only its messages are read",
    )

    def judge(self, traffic: Traffic) -> Judged:
        """All findings about the traffic of its services."""
        return pair(traffic, _Language())


DECODER = DnsDecoder()
