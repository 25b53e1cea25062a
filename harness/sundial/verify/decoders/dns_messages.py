# SPDX-License-Identifier: Apache-2.0
"""Messages of DNS (RFC 1035 section 4, with EDNS of RFC 6891): all sections, and the data of common types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sundial.verify.decoders.traffic import Wrong

HEADER = 12
_PLAIN_MOST = 512
_LABEL_MOST, _NAME_MOST = 63, 255
_QUERY, _UPDATE = 0, 5
_A, _SOA, _MX, _TXT, _AAAA, _SRV, _OPT = 1, 6, 15, 16, 28, 33, 41
_NAMES = {2: "NS", 5: "CNAME", 12: "PTR", 39: "DNAME"}
_KINDS = {**_NAMES, _A: "A", _SOA: "SOA", _MX: "MX", _TXT: "TXT", _AAAA: "AAAA", _SRV: "SRV", 251: "IXFR", 252: "AXFR"}
_TRANSFERS = (251, 252)
"""IXFR and AXFR, which have several answers (RFC 5936)."""
_RESPONSE, _RD, _RESERVED = 0x8000, 0x0100, 0x0040

Question = tuple[bytes, int, int]
"""Name in lower case, type and class."""


@dataclass(frozen=True)
class Dns:
    """A message."""

    number: int
    flags: int
    questions: tuple[Question, ...]
    size: int
    """Bytes."""
    takes: int
    """Bytes of the longest answer over UDP that its sender takes."""

    @property
    def key(self) -> int:
        return self.number

    @property
    def asks(self) -> bool:
        return not self.flags & _RESPONSE

    @property
    def words(self) -> str:
        return f"{'query' if self.asks else 'response'} 0x{self.number:04x}"

    @property
    def about(self) -> str:
        kinds = [_KINDS.get(kind, f"TYPE{kind}") for _, kind, _ in self.questions]
        return " ".join(kinds) if self.opcode == _QUERY else f"OPCODE{self.opcode}"

    @property
    def opcode(self) -> int:
        """What is asked."""
        return self.flags >> 11 & 0xF

    @property
    def is_transfer(self) -> bool:
        """Whether it asks for a zone."""
        return any(kind in _TRANSFERS for _, kind, _ in self.questions)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, size: int, what: str) -> int:
        return int.from_bytes(self.take(size, what), "big")

    def take(self, size: int, what: str) -> bytes:
        data = self.data[self.at : self.at + size]
        if len(data) < size:
            raise Wrong(what, f"{size} bytes", f"{len(data)} bytes until the message ends")
        self.at += size
        return data

    def name(self, what: str) -> bytes:
        """Labels with their lengths, in lower case; a pointer leads to an earlier name (section 4.1.4)."""
        found, at, before, behind = bytearray(), self.at, self.at, None
        while True:
            if at >= len(self.data):
                raise Wrong(what, "labels and the root", "the end of the message")
            size = self.data[at]
            if size >> 6 == 3:
                target = int.from_bytes(self.data[at : at + 2], "big") & 0x3FFF
                if at + 2 > len(self.data) or not HEADER <= target < before:
                    raise Wrong(what, f"a pointer to a name before byte {before}", f"one to byte {target}")
                behind = at + 2 if behind is None else behind
                at = before = target
                continue
            if size > _LABEL_MOST:
                raise Wrong(what, "a label of at most 63 bytes, or a pointer", f"0x{size:02x} at byte {at}")
            label = self.data[at : at + 1 + size]
            found += label.lower()
            at += 1 + size
            if at > len(self.data) or len(found) > _NAME_MOST:
                raise Wrong(what, f"at most {_NAME_MOST} bytes within the message", f"{len(found)} bytes and no root")
            if size == 0:
                self.at = at if behind is None else behind
                return bytes(found)


def read_message(data: bytes) -> Dns:
    """Raises Wrong."""
    reader = _Reader(data)
    number, flags = reader.number(2, "header"), reader.number(2, "header")
    counts = [reader.number(2, "header") for _ in range(4)]
    if flags & _RESERVED:
        raise Wrong("Z", "0", "1")
    opcode = flags >> 11 & 0xF
    if opcode == _QUERY and counts[0] > 1:
        raise Wrong("QDCOUNT", "at most 1", str(counts[0]))
    questions = tuple(
        (reader.name("question"), reader.number(2, "question"), reader.number(2, "question")) for _ in range(counts[0])
    )
    sizes: list[int] = []
    for section, count in zip(("answer", "authority", "additional"), counts[1:], strict=True):
        for _ in range(count):
            sizes += _record(reader, section, opcode)
    if reader.at < len(data):
        raise Wrong("length", f"{reader.at} bytes, by its counts", f"{len(data)} bytes")
    if len(sizes) > 1:
        raise Wrong("OPT", "one", str(len(sizes)))
    return Dns(number, flags, questions, len(data), max(_PLAIN_MOST, *sizes, 0))


def _record(reader: _Reader, section: str, opcode: int) -> Iterator[int]:
    """Reads a record; yields the size of payloads that OPT tells."""
    name = reader.name(f"{section} name")
    kind, class_ = reader.number(2, f"{section} type"), reader.number(2, f"{section} class")
    reader.number(4, f"{section} TTL")
    size = reader.number(2, f"{section} RDLENGTH")
    end = reader.at + size
    if end > len(reader.data):
        raise Wrong(f"{section} RDLENGTH", f"at most {len(reader.data) - reader.at}", str(size))
    if kind == _OPT:
        if section != "additional" or name != b"\0":
            raise Wrong("OPT", "in the additional section, of the root", f"in the {section} section")
        yield class_
    # What an update removes has no data (RFC 2136 section 2.5).
    if opcode != _UPDATE:
        _data(reader, kind, end, section)
    reader.at = end


def _data(reader: _Reader, kind: int, end: int, section: str) -> None:
    """The data of a record, to its end."""
    what = f"{section} RDATA"
    if kind in _NAMES:
        reader.name(what)
    elif kind in (_A, _AAAA):
        reader.take(4 if kind == _A else 16, what)
    elif kind == _MX:
        reader.take(2, what)
        reader.name(what)
    elif kind == _SRV:
        reader.take(6, what)
        reader.name(what)
    elif kind == _SOA:
        reader.name(what)
        reader.name(what)
        reader.take(20, what)
    elif kind in (_TXT, _OPT):
        while reader.at < end:
            reader.take(reader.number(1, what) if kind == _TXT else _option(reader, what), what)
    else:
        return
    if reader.at != end:
        raise Wrong(what, f"its end at byte {end}, by RDLENGTH", f"at byte {reader.at}")


def _option(reader: _Reader, what: str) -> int:
    """The size of an option of EDNS (RFC 6891 section 6.1.2)."""
    reader.take(2, what)
    return reader.number(2, what)


def check_answer(asked: Dns, answer: Dns, transport: str) -> Iterator[Wrong]:
    """Where a response cannot be that of the query (section 4.1.1)."""
    if answer.opcode != asked.opcode:
        yield Wrong("opcode", str(asked.opcode), str(answer.opcode))
    if (answer.flags ^ asked.flags) & _RD:
        yield Wrong("RD", f"{asked.flags >> 8 & 1}, as in the query", f"{answer.flags >> 8 & 1}")
    error = answer.flags & 0xF
    if not fits(asked, answer) or (not answer.questions and asked.questions and not error and not asked.is_transfer):
        yield Wrong("question", _shown(asked), _shown(answer))
    if transport == "udp" and answer.size > asked.takes:
        yield Wrong("length", f"at most {asked.takes} bytes, as the query says", f"{answer.size} bytes")


def fits(asked: Dns, answer: Dns) -> bool:
    """Whether an answer has the question of a query, or none."""
    return answer.questions in ((), asked.questions)


def _shown(message: Dns) -> str:
    return (
        "; ".join(f"{_dotted(name)} type {kind} class {class_}" for name, kind, class_ in message.questions) or "none"
    )


def _dotted(name: bytes) -> str:
    labels, at = [], 0
    while name[at]:
        labels.append(name[at + 1 : at + 1 + name[at]].decode("ascii", "backslashreplace"))
        at += 1 + name[at]
    return ".".join(labels) + "."
