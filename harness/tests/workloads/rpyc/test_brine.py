# SPDX-License-Identifier: Apache-2.0
"""Brine, messages and frames: bytes of the format by hand, and any value against the library."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rpyc.core import brine

from sundial.workloads.rpyc.expect_brine import (
    COMPRESSED_ABOVE,
    Kind,
    Malformed,
    Message,
    decode,
    encode,
    frame,
    frames,
    int_size,
    pack,
    text_size,
    unpack,
    writes,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=6).map(tuple),
    max_leaves=20,
)


@given(VALUES)
@example((1,) * 255)
@example((1,) * 256)
@example("x" * 255)
@example(b"x" * 256)
@example(10**300)
@example((-48, -49, 159, 160))
def test_values_are_as_the_library_writes_them(value: Any) -> None:
    data = encode(value)
    assert data == brine.dump(value)
    assert encode(decode(data)) == data
    assert repr(decode(data)) == repr(brine.load(data))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_malformed(data: bytes) -> None:
    try:
        value = decode(data)
    except Malformed:
        return
    assert brine.dump(value)[:1] or value is None


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "00"), ("", "0801"), (b"", "01"), ((), "02"), (True, "03"), (False, "04"), (0, "50"), (-48, "20"),
        (159, "ef"), (160, "1603313630"), (-49, "16032d3439"), (b"abcd", "0d61626364"), (b"abcde", "0e056162636465"),
        ((1, 2, 3, 4), "1351525354"), ((0,) * 5, "14055050505050"), (0.5, "183fe0000000000000"), ("a", "080a61"),
        ((0,) * 256, "1500000100" + "50" * 256),
    ],
)  # fmt: skip
def test_each_type_by_hand(value: Any, written: str) -> None:
    assert encode(value).hex() == written
    assert decode(bytes.fromhex(written)) == value


@pytest.mark.parametrize("value", [[1], {1}, 1j, object()])
def test_what_crosses_by_reference_is_no_value(value: Any) -> None:
    with pytest.raises(TypeError, match="brine has no"):
        encode(value)


MESSAGES = [
    ("00000008001251501153115102" + "0a", Message(Kind.REQUEST, 0, (3, (1, ())))),
    (
        "0000003d0012515311571152121153" + "12080e0f" + b"builtins.method".hex() + "1607" + b"9763296".hex()
        + "160f" + b"140360988115520".hex() + "1151021151020a",
        Message(Kind.REQUEST, 3, (7, (2, ((3, ("builtins.method", 9763296, 140360988115520)), (1, ()), (1, ()))))),
    ),
    ("00000006001252531151000a", Message(Kind.REPLY, 3, (1, None))),
]  # fmt: skip


@pytest.mark.parametrize(("written", "message"), MESSAGES)
def test_frames_of_rpyc_5_as_they_were_measured(written: str, message: Message) -> None:
    data = bytes.fromhex(written)
    assert frame(pack(message, bare_kind=False)) == data
    (only,) = frames(data)
    assert unpack(only.data) == message
    assert (only.begin, only.end, only.compressed) == (0, len(data), False)


@given(st.sampled_from(Kind), st.integers(0, 20_000), VALUES)
def test_rpyc_6_has_the_kind_before_the_brine_and_no_other_length(kind: Kind, number: int, body: Any) -> None:
    message = Message(kind, number, body)
    five, six = pack(message, bare_kind=False), pack(message, bare_kind=True)
    assert six == bytes([kind]) + brine.dump((number, body))
    assert len(five) == len(six)
    assert repr(unpack(five)) == repr(unpack(six)) == repr(Message(int(kind), number, body))


@pytest.mark.parametrize(("length", "compressed"), [(COMPRESSED_ABOVE, False), (COMPRESSED_ABOVE + 1, True)])
def test_more_than_3000_plain_bytes_are_compressed(length: int, compressed: bool) -> None:
    data = bytes(length)
    (only,) = frames(frame(data))
    assert (only.compressed, only.data) == (compressed, data)
    if compressed:
        assert zlib.decompress(frame(data)[5:-1]) == data
    else:
        assert len(frame(data)) == length + 6


@pytest.mark.parametrize(
    ("length", "parts"), [(7, (7,)), (64_000, (64_000,)), (64_001, (64_000, 0, 1)), (70_000, (64_000, 5_999, 1))]
)
def test_frames_above_64000_bytes_take_three_writes(length: int, parts: tuple[int, ...]) -> None:
    assert writes(length) == parts
    assert sum(writes(length)) == length


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, 400))
def test_a_stream_has_its_whole_frames_wherever_it_is_cut(parts: list[bytes], cut: int) -> None:
    stream = b"".join(map(frame, parts))[:cut]
    found = list(frames(stream))
    assert [each.data for each in found] == parts[: len(found)]
    assert len(found) == sum(sum(len(each) + 6 for each in parts[: place + 1]) <= cut for place in range(len(parts)))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("0000000100020a", "no value"), ("0000000100530a", "no message"), ("000000010002ff", "0xff ends the frame"),
        ("0000000102020a", "flag 2"), ("0000000101020a", "does not inflate"),
    ],
)  # fmt: skip
def test_frames_that_are_none_are_told(written: str, words: str) -> None:
    with pytest.raises(Malformed, match=words):
        _ = [unpack(each.data) for each in frames(bytes.fromhex(written))]


@pytest.mark.parametrize(
    "written", ["", "12", "07", "1010", "1602", "16013a", "160131ff", "0850", "15ffffffff", "18", "08" * 2000, "0e0561"]
)
def test_values_that_are_none_are_malformed(written: str) -> None:
    with pytest.raises(Malformed):
        decode(bytes.fromhex(written))


@given(st.integers(), st.text(max_size=300))
def test_sizes(value: int, text: str) -> None:
    assert int_size(value) == len(brine.dump(value))
    assert text_size(len(text.encode())) == len(brine.dump(text))


@pytest.mark.parametrize(("number", "size"), [(159, 1), (160, 5), (999, 5), (1000, 6), (9999, 6), (10_000, 7)])
def test_numbers_grow(number: int, size: int) -> None:
    assert int_size(number) == size
