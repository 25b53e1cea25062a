# SPDX-License-Identifier: Apache-2.0
"""HPACK against the examples of RFC 7541, appendix C, and against itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.expect.hpack import (
    STATIC,
    Field,
    Form,
    Header,
    HpackError,
    Table,
    decode,
    decode_integer,
    encode_field,
    encode_integer,
    encode_string,
    entry_size,
    headers,
)
from sundial.expect.huffman import decode_huffman, encode_huffman


def octets(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


@pytest.mark.parametrize(("value", "prefix", "encoded"), [(10, 5, "0a"), (1337, 5, "1f9a0a"), (42, 8, "2a")])
def test_integers_of_c_1(value: int, prefix: int, encoded: str) -> None:
    assert encode_integer(value, prefix) == octets(encoded)
    assert decode_integer(octets(encoded), 0, prefix) == (value, len(encoded) // 2)


@pytest.mark.parametrize(
    ("block", "form", "header", "entries"),
    [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            Form.INDEXING,
            (b"custom-key", b"custom-header"),
            1,
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", Form.PLAIN, (b":path", b"/sample/path"), 0),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", Form.NEVER, (b"password", b"secret"), 0),
        ("82", Form.INDEXED, (b":method", b"GET"), 0),
    ],
)
def test_literals_of_c_2(block: str, form: Form, header: Header, entries: int) -> None:
    table = Table()
    (field,) = decode(octets(block), table)
    assert (field.form, field.header) == (form, header)
    assert len(table.entries) == entries
    assert encode_field(field) == octets(block)


REQUESTS = [
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
]
_DATES = ["Mon, 21 Oct 2013 20:13:21 GMT", "Mon, 21 Oct 2013 20:13:22 GMT"]
_COOKIE = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
_LOCATION = ("location", "https://www.example.com")
RESPONSES = [
    [(":status", "302"), ("cache-control", "private"), ("date", _DATES[0]), _LOCATION],
    [(":status", "307"), ("cache-control", "private"), ("date", _DATES[0]), _LOCATION],
    [
        (":status", "200"),
        ("cache-control", "private"),
        ("date", _DATES[1]),
        _LOCATION,
        ("content-encoding", "gzip"),
        ("set-cookie", _COOKIE),
    ],
]
EXAMPLES = {
    "c.3": (
        4096,
        REQUESTS,
        ["8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", "8286 84be 5808 6e6f 2d63 6163 6865",
         "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65"],
        [57, 110, 164],
    ),
    "c.4": (
        4096,
        REQUESTS,
        ["8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", "8286 84be 5886 a8eb 1064 9cbf",
         "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"],
        [57, 110, 164],
    ),
    "c.5": (
        256,
        RESPONSES,
        ["4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d"
         "546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
         "4803 3330 37c1 c0bf",
         "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f"
         "6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b"
         "2076 6572 7369 6f6e 3d31"],
        [222, 222, 215],
    ),
    "c.6": (
        256,
        RESPONSES,
        ["4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7"
         "8f0b 97c8 e9ae 82ae 43d3",
         "4883 640e ffc1 c0bf",
         "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335"
         "dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07"],
        [222, 222, 215],
    ),
}  # fmt: skip
"""Limit of the table, header lists, blocks, and the size of the table after each."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_dialogues_of_c_3_to_c_6(name: str) -> None:
    limit, lists, blocks, sizes = EXAMPLES[name]
    table = Table(limit)
    for expected, block, size in zip(lists, blocks, sizes, strict=True):
        fields = list(decode(octets(block), table))
        assert headers(fields) == [(one.encode(), two.encode()) for one, two in expected]
        assert table.size == size == sum(map(entry_size, table.entries))
        assert b"".join(map(encode_field, fields)) == octets(block)
        literals = [field for field in fields if field.form is not Form.INDEXED]
        assert all(field.huffman == (name in ("c.4", "c.6")) for field in literals)


def test_the_newest_entries_stay() -> None:
    """What the third response of C.5 leaves, in its order."""
    limit, _, blocks, _ = EXAMPLES["c.5"]
    table = Table(limit)
    for block in blocks:
        list(decode(octets(block), table))
    assert [name for name, _ in table.entries] == [b"set-cookie", b"content-encoding", b"date"]
    assert table.find((b"set-cookie", _COOKIE.encode())) == len(STATIC) + 1
    assert table.find_name(b"date") == STATIC.index((b"date", b"")) + 1


def test_an_entry_larger_than_the_table_empties_it() -> None:
    table = Table(64)
    table.add((b"a", b"b"))
    table.add((b"a" * 40, b"b"))
    assert (table.entries, table.size) == ((), 0)


def test_a_smaller_table_forgets() -> None:
    table = Table()
    table.add((b"a", b"1"))
    table.add((b"a", b"2"))
    assert [field.limit for field in decode(b"\x3f\x03", table)] == [34]
    assert table.entries == ((b"a", b"2"),)


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("be", "index 62"),
        ("80", "index 0"),
        ("40", "ends where an integer begins"),
        ("4003 6162", "a string of 3 octets"),
        ("ff", "within an integer"),
        ("ff80", "within an integer"),
        ("ffff ffff ffff 7f", "more than 32 bits"),
        ("0001 6181 00", "not a string in Huffman"),
    ],
)
def test_what_is_no_block(block: str, why: str) -> None:
    with pytest.raises(HpackError, match=why):
        list(decode(octets(block), Table()))


def test_padding_of_huffman() -> None:
    assert decode_huffman(b"\xff") is None  # eight bits of padding
    assert decode_huffman(encode_huffman(b"0")) == b"0"
    assert decode_huffman(b"\x00") is None  # zeros after the 0


@given(st.binary(max_size=60))
def test_huffman_there_and_back(text: bytes) -> None:
    assert decode_huffman(encode_huffman(text)) == text


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_integers_there_and_back(value: int, prefix: int) -> None:
    encoded = encode_integer(value, prefix)
    assert decode_integer(encoded, 0, prefix) == (value, len(encoded))


_TEXT = st.binary(min_size=1, max_size=20)


@given(st.lists(st.tuples(st.sampled_from([Form.INDEXING, Form.PLAIN, Form.NEVER]), _TEXT, _TEXT, st.booleans())))
def test_fields_there_and_back(fields: list[tuple[Form, bytes, bytes, bool]]) -> None:
    written = [Field(form, 0, (name, value), huffman) for form, name, value, huffman in fields]
    block = b"".join(map(encode_field, written))
    assert list(decode(block, Table(128))) == written
    assert encode_string(b"abc") == b"\x03abc"
