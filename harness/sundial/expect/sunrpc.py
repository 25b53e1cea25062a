# SPDX-License-Identifier: Apache-2.0
"""Lengths of Sun RPC messages and of the records that carry them over TCP.

Sources: ONC RPC version 2, RFC 5531 (call and reply bodies section 9, record marking section 11, AUTH_SYS appendix A);
XDR, RFC 4506 (opaque section 4.10, string section 4.11); port mapper version 2, RFC 1833 section 3. How libtirpc 1.3.3
and glibc's older code fill their record buffers was measured; see `record_fragments`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

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
