# SPDX-License-Identifier: Apache-2.0
"""Every type in every direction, between two pairs of stubs; every byte against the reference."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any

import every
import pytest
from every import BOTH, IN, INOUT, OUT, RETURN, TYPES, number
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Many, flag, passed
from rig import compiled, shrimpgen

SETTINGS = settings(max_examples=15, deadline=None, database=None)
GARBAGE, BAD_PROCEDURE = 0xFF01, 0xFF00


class Pair:
    """The outer buffers as a client would have them, and the inner ones, to look at."""

    def __init__(self, library: Path) -> None:
        self.c = ctypes.CDLL(str(library))
        self.c.buffer.restype = ctypes.c_void_p
        self.size = self.c.pages() * 4096
        self.sequence = 0
        self.reset()

    def reset(self) -> None:
        self.c.reset()
        self.sequence = 0

    def bytes_of(self, index: int) -> Any:
        return (ctypes.c_uint8 * self.size).from_address(self.c.buffer(index))

    def call(self, procedure: int, arguments: bytes) -> tuple[int, bytes]:
        """Status, and all that is in the buffer that comes back, but its flag."""
        self.sequence += 1
        message = arguments + flag(self.sequence, procedure)
        ctypes.memset(self.c.buffer(1), 0xEE, self.size)
        ctypes.memmove(self.c.buffer(0) + self.size - len(message), message, len(message))
        assert self.c.serve() == 1
        assert self.c.serve() == 0
        back = bytes(self.bytes_of(1))
        (word,) = struct.unpack("<Q", back[-8:])
        assert word >> 16 == self.sequence
        return word & 0xFFFF, back[:-8]

    def inner(self, index: int, length: int) -> bytes:
        return bytes(self.bytes_of(index))[self.size - 8 - length : self.size - 8]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    out = tmp_path_factory.mktemp("every")
    (out / "every.x").write_text(every.interface())
    done = shrimpgen(out / "every.x", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (out / "glue.c").write_text(every.glue())
    sources = [out / "every_shrimp_client.c", out / "every_shrimp_server.c", out / "glue.c"]
    # Undefined behaviour ends the process.
    flags = ("-O1", "-shared", "-fPIC", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
    return Pair(compiled(out, "every.so", *sources, flags=flags))


def exactly(back: bytes, expected: bytes) -> None:
    """The results are there, and nothing was stored below them."""
    assert back[len(back) - len(expected) :] == expected
    assert set(back[: len(back) - len(expected)]) <= {0xEE}


@pytest.mark.parametrize("name", TYPES)
def test_every_type_passes_in_every_direction(pair: Pair, name: str) -> None:
    _, kind, _ = TYPES[name]

    @SETTINGS
    @given(kind.values(), st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
    def check(value: Any, a: int, b: int) -> None:
        one = passed((kind, value))
        status, back = pair.call(number(name, IN), one)
        assert status == 0
        exactly(back, b"")
        assert pair.inner(2, len(one)) == one
        status, back = pair.call(number(name, OUT), b"")
        assert status == 0
        exactly(back, one)
        for way in (INOUT, RETURN):
            status, back = pair.call(number(name, way), one)
            assert status == 0
            exactly(back, one)
            assert pair.inner(2, len(one)) == one
        arguments = passed((every.INT, a), (kind, value), (every.HYPER, b))
        status, back = pair.call(number(name, BOTH), arguments)
        assert status == 0
        (xor,) = struct.unpack("<i", struct.pack("<I", (a ^ b) & 0xFFFFFFFF))
        exactly(back, passed((kind, value), (kind, value), (every.INT, xor)))
        assert pair.inner(2, len(arguments)) == arguments

    check()


@pytest.mark.parametrize("name", [name for name, (_, kind, _) in TYPES.items() if not kind.fixed])
def test_arguments_that_are_not_the_procedure_s_are_refused(pair: Pair, name: str) -> None:
    _, kind, _ = TYPES[name]

    @SETTINGS
    @given(kind.values(), st.data())
    def check(value: Any, data: st.DataObject) -> None:
        body = passed((kind, value))[:-8]
        if isinstance(kind, Many) and kind.element.fixed:
            wrong = data.draw(st.integers(kind.count + 1, (1 << 32) - 1))
            assert pair.call(number(name, IN), body + struct.pack("<Q", wrong))[0] == GARBAGE
        else:
            longer = body + bytes(8)
            assert pair.call(number(name, IN), longer + struct.pack("<Q", len(longer)))[0] == GARBAGE
            wrong = data.draw(st.integers(0, (1 << 32) - 1).filter(lambda size: size > pair.size or size % 8))
            assert pair.call(number(name, IN), body + struct.pack("<Q", wrong))[0] == GARBAGE
        # Whatever is there: an answer, and nothing touched beyond the buffer.
        noise = data.draw(st.binary(min_size=8, max_size=160))
        noise = noise[: len(noise) // 8 * 8]
        assert pair.call(number(name, IN), noise + struct.pack("<Q", len(noise)))[0] in (0, GARBAGE)

    check()


def test_one_element_above_a_bound_is_refused_wherever_it_is(pair: Pair) -> None:
    gaps = ([1, 2, 3], 4, 5, 6)
    words: list[list[int]] = [[], [], []]
    mixed: tuple[Any, ...] = ([65] * 9, 1, 2.0, gaps, [1] * 4, [2] * 2, words)
    longer: list[tuple[str, Any]] = [
        ("t_mixed", ([65] * 10, *mixed[1:])),
        ("t_mixed", (*mixed[:4], [1] * 5, *mixed[5:])),
        ("t_mixed", (*mixed[:5], [2] * 3, words)),
        ("t_mixed", (*mixed[:6], [[], [], [65] * 7])),
        ("t_mixed_some", [mixed] * 3),
        ("t_words", [[65]] * 6),
        ("t_words", [[65] * 7]),
        ("t_gaps_some", [gaps] * 4),
        ("t_text", [65] * 22),
    ]
    assert pair.call(number("t_mixed", IN), passed((TYPES["t_mixed"][1], mixed)))[0] == 0
    for name, value in longer:
        assert pair.call(number(name, IN), passed((TYPES[name][1], value)))[0] == GARBAGE, (name, value)


def test_a_procedure_that_is_not_there_is_refused(pair: Pair) -> None:
    for wrong in (0, 9, 10 * len(TYPES) + 1, 0xFFFF):
        assert pair.call(wrong, b"")[0] == BAD_PROCEDURE
