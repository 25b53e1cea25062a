# SPDX-License-Identifier: Apache-2.0
"""Records of ONC RPC in a stream (RFC 5531 section 11), wherever TCP cut it."""

from __future__ import annotations

import re

from sundial.verify.sockets.protocol import Message
from sundial.verify.sockets.stream import NotRecorded, Stream

MARK = 4
LAST = 1 << 31
_CALL = bytes(4) + (2).to_bytes(4)
_REPLY = (1).to_bytes(4)
_MESSAGE = re.compile(b"(?=" + re.escape(_CALL) + b"|" + re.escape(_REPLY) + b"\\x00\\x00\\x00[\\x00\\x01])", re.DOTALL)
"""From the type of a message on (RFC 5531 section 9): a call of version 2; a reply, accepted or denied."""
_CREDENTIAL, _VERIFIER, _AUTHENTIC_MOST = 24, 12, 400
"""From the type of a call or reply on: how long its credential or verifier is; 400 bytes at most (section 8.2)."""
_XID, _HEAD = 4, 24
"""Bytes in front of the type; up to the procedure of a call, which is as much as the shortest reply has."""


def captured_record(stream: Stream, begin: int) -> Message | None:
    """The record at `begin` of a captured stream, if the message in it says that it is a call or a reply.

    Its marks are read as far as the capture goes. Raises NotRecorded.
    """
    fragments: list[int] = []
    head, length, at, last = b"", 0, begin, False
    while not last:
        mark = stream.need(at, MARK)
        if len(mark) < MARK:
            at += MARK
            break
        value = int.from_bytes(mark, "big")
        fragments.append(value & ~LAST)
        length += fragments[-1]
        last = bool(value & LAST)
        if fragments[-1] and len(head) < _HEAD:
            head += stream.read(at + MARK, min(fragments[-1], _HEAD - len(head)))
            if len(head) < min(length, 2 * _XID):
                stream.need(at + MARK, fragments[-1])
                return None
        at += MARK + fragments[-1]
    if last and length == 0:
        return Message(None, begin, at, 0, tuple(fragments))
    kind = int.from_bytes(head[_XID : 2 * _XID], "big")
    if len(head) < 2 * _XID or kind > 1:
        return None
    key, procedure = int.from_bytes(head[:_XID], "big"), head[5 * _XID : _HEAD]
    name = str(int.from_bytes(procedure, "big")) if kind == 0 and len(procedure) == 4 else "unknown"
    return Message(key, begin, at, length, tuple(fragments), bool(kind), name)


def find_record(stream: Stream, begin: int) -> int | None:
    """The first place from `begin` on where a record begins: its mark fits the message in it, the message has a
    credential or verifier as long as one may be, and what is behind it is another one, or not in the capture."""
    for place in stream.search(_MESSAGE, begin + MARK + _XID):
        at = place - MARK - _XID
        value = int.from_bytes(stream.read(at, MARK), "big")
        size = value & ~LAST
        authentic = place + (_CREDENTIAL if stream.read(place, MARK) == bytes(MARK) else _VERIFIER)
        if size < 2 * _XID or (value & LAST and size % 4):
            continue
        if int.from_bytes(stream.read(authentic, 4), "big") > _AUTHENTIC_MOST:
            continue
        try:
            message = captured_record(stream, at)
            if message and message.finish > stream.end and not value & LAST:
                continue
            if message and message.finish < stream.end and not stream.missing(message.finish, message.finish + 1):
                message = captured_record(stream, message.finish)
        except NotRecorded:
            return at
        if message:
            return at
    return None


class Records:
    """How a stream of records is read (`captured_streams.Units`)."""

    unit = "record"

    def parse(self, stream: Stream, begin: int) -> Message | None:
        return captured_record(stream, begin)

    def find(self, stream: Stream, begin: int) -> int | None:
        return find_record(stream, begin)


def message_of(stream: Stream, record: Message) -> bytes:
    """What a record has without its marks, as far as the stream has it."""
    found, at = bytearray(), record.begin
    for size in record.fragments:
        found += stream.read(at + MARK, size)
        at += MARK + size
    return bytes(found)
