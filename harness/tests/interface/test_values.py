# SPDX-License-Identifier: Apache-2.0
"""Each byte of a value has its place: what is encoded by another hand is read again, and nothing else is."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.interface.language import parse
from sundial.interface.types import (
    PLAIN,
    Array,
    Enum,
    Field,
    Interface,
    Named,
    Opaque,
    Optional,
    Plain,
    String,
    Struct,
    Type,
    Union,
)
from sundial.interface.values import Fault, read

EVERY = parse((Path(__file__).parent / "every.x").read_text(), "every.x")
FORMS = {"int": ">i", "unsigned int": ">I", "hyper": ">q", "unsigned hyper": ">Q", "bool": ">I"}
Encoded = tuple[bytes, list[str]]
DEEPEST = 4


@st.composite
def encoded(draw: st.DrawFn, interface: Interface, kind: Type, depth: int = 0) -> Encoded:
    """Bytes of a value, written as RFC 4506 says, and its leaves."""
    kind = interface.bare(kind)
    match kind:
        case Plain() if kind.name in FORMS:
            bits = kind.size * 8
            low, high = (0, (1 << bits) - 1) if kind.name.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
            value = draw(st.integers(0, 1) if kind.name == "bool" else st.integers(low, high))
            return struct.pack(FORMS[kind.name], value), [str(value)]
        case Plain():
            raw = draw(st.binary(min_size=kind.size, max_size=kind.size))
            return raw, [f"x{raw.hex()}"]
        case Enum():
            value = draw(st.sampled_from(sorted(kind.labels.values())))
            return struct.pack(">i", value), [str(value)]
        case Opaque() | String():
            fixed = isinstance(kind, Opaque) and kind.fixed
            raw = draw(st.binary(min_size=kind.most if fixed else 0, max_size=min(kind.most, 20)))
            head = b"" if fixed else struct.pack(">I", len(raw))
            return head + raw + bytes(-len(raw) % 4), [f"x{raw.hex()}"]
        case Array():
            most = kind.most if kind.fixed else 0 if depth > DEEPEST else min(kind.most, 3)
            number = draw(st.integers(kind.most if kind.fixed else 0, most))
            data, leaves = (b"", []) if kind.fixed else (struct.pack(">I", number), [str(number)])
            return joined((data, leaves), *(draw(encoded(interface, kind.element, depth + 1)) for _ in range(number)))
        case Optional():
            if depth > DEEPEST or not draw(st.booleans()):
                return struct.pack(">I", 0), ["0"]
            return joined((struct.pack(">I", 1), ["1"]), draw(encoded(interface, kind.element, depth + 1)))
        case Struct():
            return joined(*(draw(encoded(interface, each.type, depth)) for each in kind.fields))
    assert isinstance(kind, Union)
    arm = draw(st.sampled_from(kind.forms))
    value = draw(st.sampled_from(arm.values)) if arm.values else 77
    which = (struct.pack(">q", value)[4:], [str(value)])
    return which if arm.field is None else joined(which, draw(encoded(interface, arm.field.type, depth)))


def joined(*parts: Encoded) -> Encoded:
    return b"".join(data for data, _ in parts), [leaf for _, leaves in parts for leaf in leaves]


@given(st.data())
def test_a_value_is_read_as_its_leaves(data: st.DataObject) -> None:
    kind = Named(data.draw(st.sampled_from(["every", "tree", "list", "shape", "code", "table"])))
    raw, leaves = data.draw(encoded(EVERY, kind))
    found = read(EVERY, (Field("v", kind),), raw)
    assert [leaf.text for leaf in found] == leaves
    places = [0, *(leaf.end for leaf in found)]
    assert [leaf.begin for leaf in found] == places[:-1]
    assert places[-1] == len(raw)
    for wrong in (raw[:-1], raw[:-4], raw + bytes(4)):
        with pytest.raises(Fault):
            read(EVERY, (Field("v", kind),), wrong)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_fault(data: bytes) -> None:
    with contextlib.suppress(Fault):
        assert read(EVERY, (Field("v", Named("every")),), data)[-1].end == len(data)


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        (PLAIN["bool"], "00000002", "v, byte 0: bool 2"),
        (Named("colour"), "00000003", "v, byte 0: enum 3"),
        (Named("digest"), "0102030405000001", "v, byte 5: padding 000001"),
        (Named("name"), "00000006" + "61" * 8, "v, byte 0: length 6"),
        (Named("numbers"), "00000008" + "00" * 32, "v, byte 0: length 8"),
        (Named("blob"), "ffffffff", "v, byte 4: 0 bytes left"),
        (Named("table"), "7fffffff00000000", "v, byte 4: 4 bytes left"),
        (Named("strict"), "00000002", "v.which, byte 0: discriminant 2"),
        (Named("maybe"), "00000001", "v.text, byte 4: 0 bytes left"),
        (Named("list"), "00000001" + "00000005" + "00000002", "v.next present, byte 8: bool 2"),
    ],
)
def test_a_fault_has_its_path_and_place(kind: Type, data: str, words: str) -> None:
    with pytest.raises(Fault, match=words):
        read(EVERY, (Field("v", kind),), bytes.fromhex(data))


def test_a_long_list_is_read() -> None:
    """It is as deep as it is long; paths stay short."""
    leaves = read(EVERY, (Field("v", Named("list")),), struct.pack(">II", 1, 7) * 50_000 + bytes(4))
    assert len(leaves) == 100_001
    assert max(len(leaf.path) for leaf in leaves) < 220
