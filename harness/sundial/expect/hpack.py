# SPDX-License-Identifier: Apache-2.0
"""HPACK (RFC 7541): header lists to octets and back, with the table that both ends keep. Standard library only."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from sundial.expect.huffman import decode_huffman, encode_huffman

Header = tuple[bytes, bytes]
"""Name and value."""

TABLE_SIZE = 4096
"""Of a dynamic table before anything is agreed (RFC 9113, SETTINGS_HEADER_TABLE_SIZE)."""
ENTRY_OVERHEAD = 32
"""RFC 7541, 4.1."""

STATIC: tuple[Header, ...] = tuple(
    (name.encode(), value.encode())
    for name, value in (
        (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
        (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
        (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
        ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
        ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""),
        ("cache-control", ""), ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""),
        ("content-length", ""), ("content-location", ""), ("content-range", ""), ("content-type", ""),
        ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
        ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
        ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""),
        ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""),
        ("retry-after", ""), ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""),
        ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
    )
)  # fmt: skip
"""Appendix A; its first entry has index 1."""
_STATIC_INDEX = {header: place for place, header in reversed(list(enumerate(STATIC, 1)))}
_STATIC_NAME = {name: place for place, (name, _) in reversed(list(enumerate(STATIC, 1)))}


class HpackError(ValueError):
    """Octets that are no header block."""


class Form(Enum):
    """How a header field is written (section 6); the value is the first octet's pattern and its prefix's bits."""

    INDEXED = 0x80, 7
    INDEXING = 0x40, 6
    """A literal that both tables take up."""
    PLAIN = 0x00, 4
    NEVER = 0x10, 4
    RESIZE = 0x20, 5


@dataclass(frozen=True)
class Field:
    """One representation of a header block. `index`: of the whole field, or of its name; 0: the name is written, too.

    `limit` is that of a change of the table's size, which has no header.
    """

    form: Form
    index: int = 0
    header: Header = (b"", b"")
    huffman: bool = False
    """One of its strings is."""
    limit: int = 0


class Table:
    """The static and a dynamic table: the newest entry has index 62."""

    def __init__(self, limit: int = TABLE_SIZE) -> None:
        self.limit, self.size = limit, 0
        self._entries: deque[Header] = deque()

    @property
    def entries(self) -> tuple[Header, ...]:
        """The dynamic ones, newest first."""
        return tuple(self._entries)

    def resize(self, limit: int) -> None:
        """Another limit; what is beyond it goes."""
        self.limit = limit
        self._evict(limit)

    def add(self, header: Header) -> None:
        """A new entry, for which the oldest make room; one larger than the table empties it (4.4)."""
        octets = entry_size(header)
        self._evict(self.limit - octets)
        if octets <= self.limit:
            self._entries.appendleft(header)
            self.size += octets

    def header(self, index: int) -> Header:
        """What an index stands for. Raises HpackError."""
        if 0 < index <= len(STATIC):
            return STATIC[index - 1]
        place = index - len(STATIC) - 1
        if not 0 <= place < len(self._entries):
            raise HpackError(f"index {index}, but the table has entries 1 to {len(STATIC) + len(self._entries)}")
        return self._entries[place]

    def find(self, header: Header) -> int:
        """The least index of a header; 0: it has none."""
        if header in _STATIC_INDEX:
            return _STATIC_INDEX[header]
        return next((place for place, each in enumerate(self._entries, len(STATIC) + 1) if each == header), 0)

    def find_name(self, name: bytes) -> int:
        """The least index of a header of this name; 0: none has it."""
        if name in _STATIC_NAME:
            return _STATIC_NAME[name]
        return next((place for place, each in enumerate(self._entries, len(STATIC) + 1) if each[0] == name), 0)

    def _evict(self, room: int) -> None:
        while self._entries and self.size > room:
            self.size -= entry_size(self._entries.pop())


def entry_size(header: Header) -> int:
    """What an entry counts in its table."""
    return len(header[0]) + len(header[1]) + ENTRY_OVERHEAD


# ---- writing ----


def encode_integer(value: int, prefix: int, pattern: int = 0) -> bytes:
    """Section 5.1; `pattern`: the bits of the first octet before the prefix."""
    most = (1 << prefix) - 1
    if value < most:
        return bytes((pattern | value,))
    octets = [pattern | most]
    value -= most
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*octets, value))


def encode_string(text: bytes, *, huffman: bool = False) -> bytes:
    """Section 5.2."""
    octets = encode_huffman(text) if huffman else text
    return encode_integer(len(octets), 7, 0x80 if huffman else 0) + octets


def encode_field(field: Field) -> bytes:
    """One representation."""
    pattern, prefix = field.form.value
    if field.form is Form.RESIZE:
        return encode_integer(field.limit, prefix, pattern)
    octets = encode_integer(field.index, prefix, pattern)
    if field.form is Form.INDEXED:
        return octets
    name = b"" if field.index else encode_string(field.header[0], huffman=field.huffman)
    return octets + name + encode_string(field.header[1], huffman=field.huffman)


# ---- reading ----


def decode_integer(octets: bytes, at: int, prefix: int) -> tuple[int, int]:
    """The value, and where the next octet is. Raises HpackError."""
    most = (1 << prefix) - 1
    if at >= len(octets):
        raise HpackError("the block ends where an integer begins")
    value = octets[at] & most
    at += 1
    if value < most:
        return value, at
    for shift in range(0, 35, 7):
        if at >= len(octets):
            raise HpackError("the block ends within an integer")
        value += (octets[at] & 0x7F) << shift
        at += 1
        if not octets[at - 1] & 0x80:
            return value, at
    raise HpackError("an integer of more than 32 bits")


def decode_string(octets: bytes, at: int) -> tuple[bytes, bool, int]:
    """The string, whether it was in Huffman's code, and where the next octet is. Raises HpackError."""
    length, begin = decode_integer(octets, at, 7)
    if begin + length > len(octets):
        raise HpackError(f"a string of {length} octets, of which {len(octets) - begin} are there")
    text = octets[begin : begin + length]
    if not octets[at] & 0x80:
        return text, False, begin + length
    decoded = decode_huffman(text)
    if decoded is None:
        raise HpackError(f"{text.hex()} is not a string in Huffman's code")
    return decoded, True, begin + length


def decode(block: bytes, table: Table) -> Iterator[Field]:
    """The representations of a header block, which change `table` as they are read. Raises HpackError."""
    at = 0
    while at < len(block):
        form = _form(block[at])
        number, at = decode_integer(block, at, form.value[1])
        if form is Form.RESIZE:
            table.resize(number)
            yield Field(form, limit=number)
            continue
        if form is Form.INDEXED:
            yield Field(form, number, table.header(number))
            continue
        coded = False
        if number:
            name = table.header(number)[0]
        else:
            name, coded, at = decode_string(block, at)
        value, huffman, at = decode_string(block, at)
        if form is Form.INDEXING:
            table.add((name, value))
        yield Field(form, number, (name, value), coded or huffman)


def headers(fields: Iterable[Field]) -> list[Header]:
    """The headers of a block."""
    return [field.header for field in fields if field.form is not Form.RESIZE]


def _form(octet: int) -> Form:
    if octet & 0x80:
        return Form.INDEXED
    if octet & 0x40:
        return Form.INDEXING
    if octet & 0x20:
        return Form.RESIZE
    return Form.NEVER if octet & 0x10 else Form.PLAIN
