# SPDX-License-Identifier: Apache-2.0
"""ONC RPC of any program, version and procedure (RFC 5531), over UDP and TCP, in either direction.

All bytes of a service's streams are records (section 11), and each datagram is a message. Replies are matched to calls
by xid on their connection, or between their ends over UDP. A call over UDP is sent again with the same bytes, and not
after its answer has come. What the port mapper answers (RFC 1833) names further services.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.verify.decoders import onc_messages, onc_ports
from sundial.verify.decoders.onc_messages import RPCSEC_GSS, Call, Reply, read_message
from sundial.verify.decoders.pairing import pair
from sundial.verify.decoders.records import Records, message_of
from sundial.verify.decoders.traffic import Judged, Service, Traffic, Wrong
from sundial.verify.sockets.conversations import End
from sundial.verify.sockets.protocol import Message
from sundial.verify.sockets.stream import Stream


class _Language:
    nouns = ("call", "reply")
    units = Records()

    def data_of(self, stream: Stream, unit: Message) -> bytes:
        return message_of(stream, unit)

    def read(self, data: bytes, transport: str) -> Call | Reply:
        return read_message(data)

    def is_again(self, then: Call | Reply, now: Call | Reply, *, equal: bool) -> bool | None:
        # RPCSEC_GSS numbers each time that a call is sent (RFC 2203 section 5.3.3.1).
        return True if equal or (isinstance(now, Call) and now.flavor == RPCSEC_GSS) else None

    def fits(self, asked: Call | Reply, answer: Call | Reply) -> bool:
        return True

    def check(self, asked: Call | Reply, transport: str) -> Iterator[Wrong]:
        assert isinstance(asked, Call)
        yield from onc_ports.check_question(asked)

    def check_answer(self, asked: Call | Reply, answer: Call | Reply, transport: str) -> Iterator[Wrong]:
        assert isinstance(asked, Call)
        assert isinstance(answer, Reply)
        yield from onc_messages.check_answer(asked, answer)

    def named(self, asked: Call | Reply, answer: Call | Reply, transport: str, server: End) -> Service | None:
        assert isinstance(asked, Call)
        assert isinstance(answer, Reply)
        return onc_ports.answered(asked, answer, transport, server)

    def may_be_silent(self, asked: Call | Reply) -> bool:
        return isinstance(asked, Call) and onc_ports.may_be_silent(asked)

    def has_many_answers(self, asked: Call | Reply) -> bool:
        return False

    def batched(self, asked: Call | Reply) -> tuple[int, int, int]:
        assert isinstance(asked, Call)
        return asked.called


class OncRpc:
    """The decoder."""

    name = "onc-rpc"
    transports: Sequence[str] = ("tcp", "udp")
    ports: Sequence[int] = (onc_ports.PORT,)
    units = Records()
    asks = r"^.{8}0000000000000002"
    unproven: Sequence[str] = (
        "onc-rpc: arguments and results, except of procedure 0 and of questions to the port mapper for a port",
        "onc-rpc: bodies of credentials and verifiers other than AUTH_SYS",
        "onc-rpc: that a call is sent again no sooner than its client's own timer says",
        "onc-rpc: that calls to procedures that are never answered, before one that is, are batched",
    )

    def judge(self, traffic: Traffic) -> Judged:
        """All findings about the traffic of its services."""
        return pair(traffic, _Language())


DECODER = OncRpc()
