# SPDX-License-Identifier: Apache-2.0
"""Lengths of Sun RPC messages, of the records that carry them over TCP, and the packets of a call over sockets.

Sources: ONC RPC version 2, RFC 5531 (call and reply bodies section 9, record marking section 11, AUTH_SYS appendix A);
XDR, RFC 4506 (opaque section 4.10, string section 4.11); port mapper version 2, RFC 1833 section 3. How libtirpc 1.3.3
and glibc's older code fill their record buffers was measured; see `record_fragments`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sundial.expect.call import Call, Leg, Shape, tcp_leg, udp_leg, unsent_leg
from sundial.expect.edges import CELL_STEPS, Count, edges
from sundial.expect.ip import MAX_UDP_PAYLOAD, PerPacket, check_mtu, one, udp_packet_count
from sundial.expect.tcp import segment_size, tcp_segment_count
from sundial.workloads import functions
from sundial.workloads.sunrpc import expect_functions

Library = Literal["libtirpc", "glibc"]

CALL = 40
"""xid, CALL, RPC version, program, version, procedure, then empty credential and verifier (2 words each)."""
REPLY = 24
"""xid, REPLY, MSG_ACCEPTED, empty verifier (2 words), accept status."""
WORD = 4
RECORD_MARK = 4
MAX_AUTH_BODY = 400
"""RFC 5531 section 8.2."""
MAX_GROUPS = 16
"""AUTH_SYS: gids<16>, RFC 5531 appendix A."""
MAX_MACHINE_NAME = 255

UDP_MESSAGE_DEFAULT = 8800
"""UDPMSGSIZE of both libraries: the largest message a handle takes unless another size was asked for."""
RECORD_BUFFER_DEFAULT: dict[Library, int] = {"libtirpc": 65536, "glibc": 4000}
_RECORD_BUFFER_LEAST = 100
_RECORD_BUFFER_FALLBACK = 4000
_RECORD_BUFFER_MOST = 262144

PORTMAP_GETPORT_CALL = CALL + 4 * WORD
"""program, version, protocol, port."""
PORTMAP_GETPORT_REPLY = REPLY + WORD


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls, as AUTH_SYS credentials have it (RFC 5531 appendix A)."""

    machine: bytes
    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """What the two ends were configured with, as far as it changes lengths."""

    credential: int = 0
    """Bytes of the call's credential body: 0 for AUTH_NONE, `auth_sys_bytes(...)` for AUTH_SYS."""
    identity: Identity | None = None
    """What AUTH_SYS says; None for AUTH_NONE."""
    udp_message: int = UDP_MESSAGE_DEFAULT
    """Largest message over UDP, both ways."""
    request_buffer: int = 0
    """Record stream send buffer of the client as asked for; 0 is the library's default."""
    reply_buffer: int = 0
    """The same at the server."""
    library: Library = "libtirpc"
    one_way: bool = False
    """Over TCP the procedure sink sends no reply."""


DEFAULTS = Options()


def padded(length: int) -> int:
    """Bytes that XDR uses for `length` opaque bytes (RFC 4506 section 4.9: multiples of four)."""
    return -(-length // WORD) * WORD


def counted(length: int) -> int:
    """`opaque<>` or `string<>` of `length` bytes: length word, bytes, zero padding."""
    return WORD + padded(length)


def auth_sys_bytes(machine_name: int, groups: int) -> int:
    """What AUTH_SYS adds to a call, for a machine name of `machine_name` bytes and `groups` gids.

    stamp, name, uid, gid, gids<16> (RFC 5531 appendix A).
    """
    if not 0 <= machine_name <= MAX_MACHINE_NAME:
        raise ValueError(f"machine name of {machine_name} bytes: at most {MAX_MACHINE_NAME}")
    if not 0 <= groups <= MAX_GROUPS:
        raise ValueError(f"{groups} groups: at most {MAX_GROUPS}")
    return WORD + counted(machine_name) + 3 * WORD + WORD * groups


def call_message(arguments: int, credential: int = 0) -> int:
    """Call with `arguments` bytes of XDR and a credential body of `credential` bytes (0: AUTH_NONE)."""
    if not 0 <= credential <= MAX_AUTH_BODY:
        raise ValueError(f"credential of {credential} bytes: at most {MAX_AUTH_BODY}")
    return CALL + credential + arguments


def reply_message(results: int) -> int:
    """Accepted, successful reply with `results` bytes of XDR and an empty verifier."""
    return REPLY + results


def record_buffer(asked: int, library: Library = "libtirpc") -> int:
    """Bytes of the record stream's send buffer that the library really uses (0 asks for its default).

    Both round up to a word and take 4000 instead of anything below 100; libtirpc stops at 256 KiB.
    """
    if asked < 0:
        raise ValueError(f"record buffer {asked}: must not be negative")
    if asked == 0:
        return RECORD_BUFFER_DEFAULT[library]
    if library == "libtirpc":
        asked = min(asked, _RECORD_BUFFER_MOST)
    return _RECORD_BUFFER_FALLBACK if asked < _RECORD_BUFFER_LEAST else padded(asked)


def record_fragments(
    message: int, buffer: int, library: Library = "libtirpc", ends_in_word: bool = False
) -> tuple[int, ...]:
    """Lengths of the record fragments of one message; each is one write with four bytes of mark in front.

    A buffer holds the mark and `buffer - 4` bytes. libtirpc flushes as soon as bytes fill it, so that a message of
    exactly k full buffers ends with an empty last fragment; a message whose last item is a single word (`ends_in_word`:
    an integer, or the length of an empty string) fills the buffer without flushing it. glibc flushes on the next item.
    """
    if message < 1:
        raise ValueError(f"message of {message} bytes: a record is not empty")
    room = buffer - RECORD_MARK
    full, rest = divmod(message, room)
    fragments = (room,) * full
    if rest or (library == "libtirpc" and not ends_in_word):
        return (*fragments, rest)
    return fragments


def shipped_records(
    messages: Sequence[tuple[int, bool]], buffer: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Record fragments of each message, and the writes, where libtirpc collects all but the last.

    `messages`: bytes and `ends_in_word` (see `record_fragments`). A record begins where the one before ended; the
    buffer is written when it is full, at the end of a record of which a part was written already or behind which no
    mark fits, and with the last (xdrrec_endofrecord without and with `sendnow`).
    """
    records: list[tuple[int, ...]] = []
    writes: list[int] = []
    used = RECORD_MARK
    for number, (message, ends_in_word) in enumerate(messages):
        fragments: list[int] = []
        begun, left = used, message
        while left:
            part = min(left, buffer - used)
            used, left = used + part, left - part
            if used == buffer and (left or not ends_in_word):
                fragments.append(used - begun)
                writes.append(used)
                used = begun = RECORD_MARK
        if fragments or number == len(messages) - 1 or used + RECORD_MARK >= buffer:
            writes.append(used)
            used, ended = RECORD_MARK, used
        else:
            used, ended = used + RECORD_MARK, used
        records.append((*fragments, ended - begun))
    return tuple(records), tuple(writes)


def messages(procedure: str, size: int, credential: int = 0) -> tuple[int, int]:
    """Message lengths (call, reply) of a workload procedure with `size` bytes of data, or of a function."""
    function = functions.BY_NAME.get(procedure)
    if function is not None:
        if size != function.size:
            raise ValueError(f"{size} bytes: the values of function {procedure} have {function.size}")
        called, returned = expect_functions.arguments(procedure), expect_functions.results(procedure)
        return call_message(len(called), credential), reply_message(len(returned))
    data = counted(size)
    arguments, results = {
        "null": (0, 0),
        "echo": (data, data),
        "echo_string": (data, data),
        "sink": (data, 0),
        "source": (2 * WORD, data),  # sequence number and size, guest-apps/echo/echo.x
    }.get(procedure, (-1, -1))
    if arguments < 0:
        raise ValueError(
            f"procedure {procedure!r}: Sun RPC has null, echo, echo_string, sink, source and the twelve functions"
        )
    return call_message(arguments, credential), reply_message(results)


def ends_in_word(procedure: str, size: int) -> tuple[bool, bool]:
    """Whether call and reply end with a single XDR word rather than with a run of bytes."""
    if procedure in functions.BY_NAME:
        return expect_functions.ends_in_word(procedure)
    empty = size == 0
    call = procedure == "source" or (procedure != "null" and empty)
    reply = procedure in ("null", "sink") or empty
    return call, reply


@lru_cache(maxsize=16384)
def expect_call(shape: Shape, options: Options = DEFAULTS) -> Call:
    """The packets of one call. Raises ValueError for what the protocol does not know or cannot carry."""
    call, reply = messages(shape.procedure, shape.size, options.credential)
    if shape.transport == "udp":
        limit = min(padded(options.udp_message), MAX_UDP_PAYLOAD)
        if call > limit:
            return Call(unsent_leg("udp", call), unsent_leg("udp", reply), "request")
        if reply > limit:  # the server cannot encode its results and answers SYSTEM_ERR (RFC 5531 section 9)
            return Call(udp_leg(call, shape.mtu), udp_leg(REPLY, shape.mtu), "reply")
        return Call(udp_leg(call, shape.mtu), udp_leg(reply, shape.mtu))
    connection = shape.connection
    call_word, reply_word = ends_in_word(shape.procedure, shape.size)
    legs = []
    for message, asked, word, mss in (
        (call, options.request_buffer, call_word, connection.request_mss),
        (reply, options.reply_buffer, reply_word, connection.reply_mss),
    ):
        fragments = record_fragments(message, record_buffer(asked, options.library), options.library, word)
        legs.append(record_leg(message, fragments, shape.mtu, connection.timestamps, mss))
    if options.one_way and shape.procedure == "sink":
        legs[1] = unsent_leg("tcp", reply)
    return Call(legs[0], legs[1])


def expect_getport(shape: Shape) -> Call:
    """The packets of a question to the port mapper."""
    call, reply, connection = PORTMAP_GETPORT_CALL, PORTMAP_GETPORT_REPLY, shape.connection
    if shape.transport == "udp":
        return Call(udp_leg(call, shape.mtu), udp_leg(reply, shape.mtu))
    return Call(
        record_leg(call, (call,), shape.mtu, connection.timestamps, connection.request_mss),
        record_leg(reply, (reply,), shape.mtu, connection.timestamps, connection.reply_mss),
    )


def record_leg(message: int, fragments: tuple[int, ...], mtu: int, timestamps: bool, peer_mss: int | None) -> Leg:
    """One message over TCP, each fragment of its record written with a mark in front."""
    writes = tuple(RECORD_MARK + length for length in fragments)
    return tcp_leg(message, writes, mtu, timestamps, peer_mss, fragments)


LARGEST_UDP_ECHO = (MAX_UDP_PAYLOAD - messages("echo", 0)[0]) // WORD * WORD
"""Most bytes that an AUTH_NONE echo call can carry in one datagram."""

_STEPS = (-WORD, -1, 0, 1, WORD)
"""Four bytes share one XDR word."""


def edge_sizes(
    transport: str,
    mtu: int,
    smallest: int,
    largest: int,
    *,
    credential: int = 0,
    timestamps: bool = True,
    buffer: int = 0,
    library: Library = "libtirpc",
    cells: PerPacket | None = None,
) -> list[int]:
    """Sizes beside each at which an echo takes another number of packets, within smallest..largest (bytes of data).

    Each edge gives the sizes one and four bytes to either side as well. With `cells`, those of an IP packet by its
    length: another number of cells, and one byte to either side. Sizes that a transport cannot carry are left
    out. The message limit of a UDP handle is not applied: it is set by the workload.
    """
    check_mtu(mtu)
    steps = CELL_STEPS if cells else _STEPS
    if transport == "udp":
        most = LARGEST_UDP_ECHO - padded(credential)
        return edges(_udp(mtu, credential, cells or one), smallest, largest, 0, most, steps)
    if transport != "tcp":
        raise ValueError(f"transport {transport!r}: known are udp, tcp")
    count = _tcp(mtu, credential, timestamps, record_buffer(buffer, library), library, cells or one)
    return edges(count, smallest, largest, 0, largest + WORD, steps)


def _udp(mtu: int, credential: int, each: PerPacket) -> Count:
    def count(size: int) -> tuple[int, int]:
        call, reply = messages("echo", size, credential)
        return udp_packet_count(call, mtu, each), udp_packet_count(reply, mtu, each)

    return count


def _tcp(mtu: int, credential: int, timestamps: bool, buffer: int, library: Library, each: PerPacket) -> Count:
    segment = segment_size(mtu, timestamps)

    def packets(message: int, empty: bool) -> int:
        fragments = record_fragments(message, buffer, library, ends_in_word=empty)
        return tcp_segment_count(tuple(RECORD_MARK + length for length in fragments), segment, timestamps, each)

    def count(size: int) -> tuple[int, int]:
        call, reply = messages("echo", size, credential)
        return packets(call, size == 0), packets(reply, size == 0)

    return count
