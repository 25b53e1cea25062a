# SPDX-License-Identifier: Apache-2.0
"""What one call must look like on the wire: request and reply, from protocol, procedure, size and MTU.

Pure arithmetic; the sources are named in `ip`, `tcp` and `sunrpc`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, get_args

from sundial.expect import sunrpc
from sundial.expect.ip import MAX_UDP_PAYLOAD, Packet, udp_packets
from sundial.expect.sunrpc import Library
from sundial.expect.tcp import segment_size, tcp_segments

Protocol = Literal["sunrpc", "portmap", "raw"]
Transport = Literal["udp", "tcp"]
Procedure = Literal["null", "echo", "echo_string", "sink", "source", "getport"]

RAW_TCP_LEAST = 16
"""Raw TCP messages need their whole header, since a stream has no message ends."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the two ends were told, as far as it changes lengths."""

    credential: int = 0
    """Bytes of the call's credential body: 0 for AUTH_NONE, `sunrpc.auth_sys_bytes(...)` for AUTH_SYS."""
    udp_message: int = sunrpc.UDP_MESSAGE_DEFAULT
    """Largest Sun RPC message over UDP, both ways."""
    request_buffer: int = 0
    """Record stream send buffer of the client as asked for; 0 is the library's default."""
    reply_buffer: int = 0
    """The same at the server."""
    library: Library = "libtirpc"
    one_way: bool = False
    """Over TCP the procedure sink sends no reply."""
    timestamps: bool = True
    """Both ends use TCP timestamps (RFC 7323)."""
    request_mss: int | None = None
    """MSS option in the server's SYN, which limits requests; None: the MTU alone does."""
    reply_mss: int | None = None
    """MSS option in the client's SYN."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One direction of a call.

    `packets` is what is sent where nothing interferes; where `exact` is false only their sum, `fewest`, `most` and
    `largest` bind (see `tcp`). A leg without packets is not sent.
    """

    transport: Transport | Literal["mbcf"]
    message: int
    """Bytes of the message: RPC header and XDR, or raw payload."""
    payload: int
    """Bytes handed to the transport: the message and, over TCP, its record marks."""
    records: tuple[int, ...]
    packets: tuple[Packet, ...]
    exact: bool = True
    fewest: int = 0
    most: int = 0
    largest: int = 0

    @property
    def lengths(self) -> tuple[int, ...]:
        """What verification compares: IP payload of each fragment (UDP), payload of each segment (TCP)."""
        return tuple(packet.data for packet in self.packets)

    @property
    def frame_bytes(self) -> int:
        """Ethernet frames as captured, without padding and FCS."""
        return sum(packet.frame for packet in self.packets)

    @property
    def padded_frame_bytes(self) -> int:
        """Ethernet frames padded to 60 bytes, without FCS."""
        return sum(packet.padded_frame for packet in self.packets)

    @property
    def wire_bytes(self) -> int:
        """Byte times on the wire, with preamble, FCS and gap of every frame."""
        return sum(packet.wire for packet in self.packets)


@dataclass(frozen=True, slots=True)
class Call:
    """Both directions. `fails` says which of them cannot be made at this size, if any."""

    request: Leg
    reply: Leg
    fails: Literal["request", "reply"] | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What determines the packets of a call."""

    protocol: Protocol
    transport: Transport
    procedure: Procedure
    size: int
    mtu: int
    options: Options = field(default_factory=Options)


def udp_leg(message: int, mtu: int) -> Leg:
    """One message in one UDP datagram."""
    packets = udp_packets(message, mtu)
    count = len(packets)
    return Leg("udp", message, message, (), packets, True, count, count, max(packet.data for packet in packets))


def tcp_leg(message: int, records: tuple[int, ...], mtu: int, timestamps: bool, peer_mss: int | None = None) -> Leg:
    """One message over TCP: a write per record fragment, or one write of the bare message (`records` empty)."""
    writes = tuple(sunrpc.RECORD_MARK + length for length in records) or (message,)
    segments = tcp_segments(writes, segment_size(mtu, timestamps, peer_mss), timestamps)
    return Leg(
        "tcp", message, sum(writes), records, segments.packets, segments.exact, segments.fewest, segments.most,
        segments.largest,
    )  # fmt: skip


def unsent_leg(transport: Transport, message: int) -> Leg:
    """A leg that never reaches the wire."""
    return Leg(transport, message, 0, (), ())


@lru_cache(maxsize=16384)
def expect_call(shape: Shape) -> Call:
    """The packets of one call. Raises ValueError for what the protocol does not know or cannot carry."""
    if shape.size < 0:
        raise ValueError(f"size {shape.size}: must not be negative")
    if shape.transport not in get_args(Transport):
        raise ValueError(f"transport {shape.transport!r}: known are {', '.join(get_args(Transport))}")
    if shape.protocol == "raw":
        return _raw_call(shape)
    if shape.protocol == "portmap":
        return _portmap_call(shape)
    if shape.protocol == "sunrpc":
        return _sunrpc_call(shape)
    raise ValueError(f"protocol {shape.protocol!r}: known are {', '.join(get_args(Protocol))}")


def sunrpc_messages(procedure: Procedure, size: int, credential: int = 0) -> tuple[int, int]:
    """Message lengths (call, reply) of a workload procedure with `size` bytes of data."""
    data = sunrpc.counted(size)
    arguments, results = {
        "null": (0, 0),
        "echo": (data, data),
        "echo_string": (data, data),
        "sink": (data, 0),
        "source": (2 * sunrpc.WORD, data),  # sequence number and size, guest-apps/echo/echo.x
    }.get(procedure, (-1, -1))
    if arguments < 0:
        raise ValueError(f"procedure {procedure!r}: Sun RPC has null, echo, echo_string, sink, source")
    return sunrpc.call_message(arguments, credential), sunrpc.reply_message(results)


def _sunrpc_call(shape: Shape) -> Call:
    options = shape.options
    call, reply = sunrpc_messages(shape.procedure, shape.size, options.credential)
    if shape.transport == "udp":
        limit = min(sunrpc.padded(options.udp_message), MAX_UDP_PAYLOAD)
        if call > limit:
            return Call(unsent_leg("udp", call), unsent_leg("udp", reply), "request")
        if reply > limit:  # the server cannot encode its results and answers SYSTEM_ERR (RFC 5531 section 9)
            return Call(udp_leg(call, shape.mtu), udp_leg(sunrpc.REPLY, shape.mtu), "reply")
        return Call(udp_leg(call, shape.mtu), udp_leg(reply, shape.mtu))
    call_word, reply_word = _ends_in_word(shape)
    legs = []
    for message, asked, word, mss in (
        (call, options.request_buffer, call_word, options.request_mss),
        (reply, options.reply_buffer, reply_word, options.reply_mss),
    ):
        buffer = sunrpc.record_buffer(asked, options.library)
        records = sunrpc.record_fragments(message, buffer, options.library, word)
        legs.append(tcp_leg(message, records, shape.mtu, options.timestamps, mss))
    if options.one_way and shape.procedure == "sink":
        legs[1] = unsent_leg("tcp", reply)
    return Call(legs[0], legs[1])


def _ends_in_word(shape: Shape) -> tuple[bool, bool]:
    """Whether call and reply end with a single XDR word rather than with a run of bytes."""
    empty = shape.size == 0
    call = shape.procedure == "source" or (shape.procedure != "null" and empty)
    reply = shape.procedure in ("null", "sink") or empty
    return call, reply


def _portmap_call(shape: Shape) -> Call:
    if shape.procedure != "getport":
        raise ValueError(f"procedure {shape.procedure!r}: the port mapper is expected to be asked getport alone")
    call, reply = sunrpc.PORTMAP_GETPORT_CALL, sunrpc.PORTMAP_GETPORT_REPLY
    if shape.transport == "udp":
        return Call(udp_leg(call, shape.mtu), udp_leg(reply, shape.mtu))
    timestamps = shape.options.timestamps
    return Call(
        tcp_leg(call, (call,), shape.mtu, timestamps, shape.options.request_mss),
        tcp_leg(reply, (reply,), shape.mtu, timestamps, shape.options.reply_mss),
    )


def _raw_call(shape: Shape) -> Call:
    if shape.procedure != "echo":
        raise ValueError(f"procedure {shape.procedure!r}: raw sockets have echo")
    size, mtu, options = shape.size, shape.mtu, shape.options
    if shape.transport == "udp":
        return Call(udp_leg(size, mtu), udp_leg(size, mtu))
    if size < RAW_TCP_LEAST:
        raise ValueError(f"size {size}: raw TCP needs at least {RAW_TCP_LEAST} bytes")
    return Call(
        tcp_leg(size, (), mtu, options.timestamps, options.request_mss),
        tcp_leg(size, (), mtu, options.timestamps, options.reply_mss),
    )
