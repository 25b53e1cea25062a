# SPDX-License-Identifier: Apache-2.0
"""What calls over a backplane have stored in memory, read from the packets that carried it: hellos, calls and replies
of ShrimpRPC, records, tails and heads of the rings of vRPC, and Sun RPC's messages in them.

By itself, as all readers here: a fault of the verifier's must not hide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mutation.capture import Capture, Transmission, transmissions

HEADER = 32
AU, DU, CONTROL = 1, 2, 3
_IMPORT, _ANSWER = 1, 2
_OWN = 256
"""Bytes of a control page that hello and welcome are in."""
_HELLO = {
    "hash": (0, 8), "key": (8, 8), "name": (16, 8), "end of the name": (40, 8), "node": (48, 2), "task": (50, 2),
    "notify": (52, 4), "said": (56, 8),
}  # fmt: skip
_WELCOME = {"said": (0, 4), "status": (4, 4)}
_TAIL, _HEAD, _RING_AT, _RING = 256, 264, 4096, 131072
_SKIP = 0xFFFFFFFF
_SHRIMP_END = 6 * 4096
_SHRIMP_PROCEDURES = ("null", "in", "out", "inout", "in_64", "out_64", "inout_64")
_RPC_PROCEDURES = ("null", "echo", "echo_string", "sink", "source")
_CALL = (
    "xid",
    "type",
    "version of RPC",
    "program",
    "version",
    "procedure",
    "credential's flavour",
    "credential's length",
)
_REPLY = ("xid", "type", "status", "verifier's flavour", "verifier's length", "accept status")
_VERIFIER = ("verifier's flavour", "verifier's length")


@dataclass(frozen=True)
class Write:
    """One packet into a buffer."""

    of: Transmission
    offset: int

    @property
    def end(self) -> int:
        return self.offset + len(self.of.data) - HEADER


@dataclass
class Stored:
    """One call, reply, record or word, with the packets that carried it."""

    kind: str
    machine: str
    line: int
    """Which two ways belong together."""
    writes: list[Write]
    fields: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Offset in the buffer, and bytes."""
    data: tuple[int, int] = (0, 0)
    """Of the arguments or results: from where to where."""
    reply: bool = False

    def place(self, offset: int) -> tuple[Transmission, int]:
        """The packet that carried a byte last, and where it is in that."""
        write = next(each for each in reversed(self.writes) if each.offset <= offset < each.end)
        return write.of, HEADER + offset - write.offset


def read(captures: Sequence[Capture]) -> list[Stored]:
    """Everything, in the order of time of its last packet."""
    every = [each for each in transmissions(captures) if each.received and len(each.data) >= HEADER]
    ways: dict[bytes, list[Write]] = {}
    for each in every:
        if each.data[1] in (AU, DU):
            (offset,) = struct.unpack_from("<I", each.data, 20)
            ways.setdefault(_way(each.data), []).append(Write(each, offset))
    found: list[Stored] = []
    for line, (service, there, back) in enumerate(_lines(every, ways)):
        for kind, fields, way in (("hello", _HELLO, there), ("welcome", _WELCOME, back)):
            own = [each for each in way if each.end <= _OWN]
            found.append(Stored(kind, own[0].of.machine, line, own, fields, reply=kind == "welcome"))
        take = {"shrimp": _shrimp, "vrpc": _vrpc}.get(service)
        if take is not None:
            found += take(line, *([each for each in way if each.offset >= _OWN] for way in (there, back)))
    return sorted(found, key=lambda each: each.writes[-1].of.sent[0].at_ns)


def _way(data: bytes) -> bytes:
    """Sender, receiver, export and generation."""
    return data[4:8] + data[12:20]


def _lines(
    every: Sequence[Transmission], ways: Mapping[bytes, list[Write]]
) -> Iterator[tuple[str, list[Write], list[Write]]]:
    """What a server's offer is called in front of the first dot, and both ways."""
    asked: dict[bytes, bytes] = {}
    imports: dict[bytes, str] = {}
    for each in every:
        if each.data[1] != CONTROL:
            continue
        kind, request = struct.unpack_from("<II", each.data, HEADER)
        sender, receiver = each.data[4:6], each.data[6:8]
        number = struct.pack("<I", request)
        if kind == _IMPORT:
            asked[sender + receiver + number] = each.data[HEADER + 16 : HEADER + 48].rstrip(b"\0")
        elif kind == _ANSWER and not struct.unpack_from("<I", each.data, HEADER + 48)[0]:
            export = each.data[HEADER + 52 : HEADER + 60]
            imports[receiver + sender + export] = asked[receiver + sender + number].decode()
    for way, name in imports.items():
        for there in _clients(ways.get(way, [])):
            hello = bytearray(_OWN)
            for write in there:
                if write.end <= _OWN:
                    hello[write.offset : write.end] = write.of.data[HEADER:]
            own = bytes(hello[16:48]).rstrip(b"\0").decode()
            turned = way[2:4] + way[:2]
            back = next((each for each, said in imports.items() if own and said == own and each[:4] == turned), None)
            if back is not None:
                yield name.partition(".")[0], there, ways.get(back, [])


def _clients(way: list[Write]) -> Iterator[list[Write]]:
    """An offer that one client has left is another's, who says hello, too."""
    begins = [place for place, write in enumerate(way) if write.offset == 0]
    return (way[begin:end] for begin, end in zip(begins, [*begins[1:], len(way)], strict=True))


# ---- ShrimpRPC ----


def _shrimp(line: int, there: list[Write], back: list[Write]) -> Iterator[Stored]:
    called: dict[int, str] = {}
    for reply, way in ((False, there), (True, back)):
        run: list[Write] = []
        for write in way:
            run.append(write)
            if write.end == _SHRIMP_END:
                yield _shrimp_call(line, run, reply, called)
                run = []


def _shrimp_call(line: int, run: list[Write], reply: bool, called: dict[int, str]) -> Stored:
    word = int.from_bytes(run[-1].of.data[-8:], "little")
    sequence, low = word >> 16, word & 0xFFFF
    if not reply:
        called[sequence] = _SHRIMP_PROCEDURES[low]
    procedure = called.get(sequence, "nothing")
    begin, flag = run[0].offset, _SHRIMP_END - 8
    fields = {"flag.low": (flag, 2), "flag.sequence": (flag + 2, 6)}
    if begin < flag:
        fields |= {"word below the flag": (flag - 8, 8), "first word": (begin, 8)}
        fields |= {"middle byte": ((begin + flag) // 2, 1), "byte below the last word": (flag - 9, 1)}
    counted = procedure == "inout" or procedure == ("out" if reply else "in")
    end = flag - 8 if counted else flag
    name = f"{'reply' if reply else 'call'} {procedure}"
    return Stored(name, run[0].of.machine, line, run, _inside(fields, begin), (begin, max(begin, end)), reply)


def _inside(fields: dict[str, tuple[int, int]], begin: int) -> dict[str, tuple[int, int]]:
    return {name: place for name, place in fields.items() if place[0] >= begin}


# ---- vRPC ----


def _vrpc(line: int, there: list[Write], back: list[Write]) -> Iterator[Stored]:
    procedures: dict[bytes, str] = {}
    for reply, way in ((False, there), (True, back)):
        memory, tail, pending = bytearray(_RING), 0, list[Write]()
        for write in way:
            data = write.of.data[HEADER:]
            if write.offset >= _RING_AT:
                memory[write.offset - _RING_AT : write.end - _RING_AT] = data
                pending.append(write)
            elif write.offset == _HEAD:
                fields = {"position": (_HEAD, 4), "mark": (_HEAD + 4, 4)}
                yield Stored("head", write.of.machine, line, [write], fields, reply=reply)
            elif write.offset == _TAIL:
                (new,) = struct.unpack_from("<I", data)
                yield from _records(line, memory, tail, new, [*pending, write], reply, procedures)
                tail, pending = new, []


def _records(
    line: int, memory: bytearray, tail: int, new: int, writes: list[Write], reply: bool, procedures: dict[bytes, str]
) -> Iterator[Stored]:
    """What one tail has shown."""
    machine = writes[-1].of.machine
    while tail < new:
        at = tail % _RING
        (length,) = struct.unpack_from("<I", memory, at)
        head = {"record.length": (_RING_AT + at, 4), "record.sequence": (_RING_AT + at + 4, 4)}
        if length == _SKIP:
            own = [each for each in writes if each.offset <= _RING_AT + at < each.end]
            yield Stored("skip", machine, line, own, head, reply=reply)
            tail += _RING - at
            continue
        begin = _RING_AT + at + 8
        end = begin + length
        message = bytes(memory[at + 8 : at + 8 + length])
        if not reply:
            procedures[message[:4]] = _RPC_PROCEDURES[struct.unpack_from(">I", message, 20)[0]]
        procedure = procedures.get(message[:4], "nothing")
        names, first = _head_of(message, reply)
        fields = {"tail.position": (_TAIL, 4), "tail.mark": (_TAIL + 4, 4), **head}
        fields |= {name: (begin + 4 * place, 4) for place, name in enumerate(names)}
        data = (begin + first, end)
        if data[0] < end:
            fields |= {"data's first word": (data[0], 4), "data's second word": (data[0] + 4, 4)}
            fields |= {"data's middle byte": (sum(data) // 2, 1), "last byte": (end - 1, 1)}
        if length % 8:
            fields["padding of the record"] = (end, 1)
        own = [each for each in writes if each.offset == _TAIL or (each.offset < end and each.end > begin - 8)]
        fields = {name: place for name, place in fields.items() if _carried(own, place)}
        yield Stored(f"{'reply' if reply else 'call'} {procedure}", machine, line, own, fields, data, reply)
        tail += 8 + (length + 7) // 8 * 8


def _head_of(message: bytes, reply: bool) -> tuple[tuple[str, ...], int]:
    """Names of the words in front of arguments or results, and how many bytes those have."""
    if reply:
        return _REPLY, 4 * len(_REPLY)
    (credential,) = struct.unpack_from(">I", message, 28)
    own = tuple(f"credential[{place}]" for place in range(credential // 4))
    names = (*_CALL, *own, *_VERIFIER)
    return names, 4 * len(names)


def _carried(writes: list[Write], place: tuple[int, int]) -> bool:
    """Whether one packet has all of a field."""
    at, size = place
    return any(each.offset <= at and at + size <= each.end for each in writes)
