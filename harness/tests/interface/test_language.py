# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501
"""Files in the language of RFC 4506 and RFC 5531: what they define, and what is refused in one line."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.errors import BadInput
from sundial.interface.language import parse
from sundial.interface.types import PLAIN, UNBOUNDED, Array, Enum, Field, Named, Opaque, Optional, String, Struct, Union

PROGRAM = "program P { version V { %s } = 1; } = 1;"
NULL = PROGRAM % "void N(void) = 0;"

# Kinds of files that other tools stumble over. First those that are taken.
TAKEN = {
    "constants of 64 bits, as NFS version 4 has some": "const A = 0xffffffffffffffff; const B = 4294967295; const C = -2147483648;" + NULL,
    "a type that is defined behind its use": PROGRAM % "res A(int) = 1;" + "struct res { int a; };",
    "a program and a version of one name": "program SAME { version SAME { void F(void) = 0; } = 1; } = 1;",
    "hyper of both kinds, and two parameters": "typedef unsigned hyper u; typedef hyper s; struct p { u a; s b; };"
    + PROGRAM % "p SWAP(p) = 1; u MOST(u a, u b) = 2;",
    "lines for the output of rpcgen": "%#include <stdio.h>\n" + NULL,
    "types of rpcgen": "struct s { char a; unsigned short b; u_long c; unsigned long d; long e; u_int f; };" + NULL,
    "a recursive list": "typedef node *list; struct node { int a; list next; }; struct tree { tree *below; tree more<>; };" + NULL,
    "struct and enum before a name": "enum e { A = 1 }; struct s { enum e a; struct t *b; }; struct t { int a; };" + NULL,
    "results of a string and of a pointer": "struct s { int a; };" + PROGRAM % "string A(string) = 1; s *B(void) = 2;",
    "two programs": NULL + "program Q { version V { void N(void) = 0; } = 1; version W { void N(void) = 0; } = 2; } = 2;",
}  # fmt: skip
# Then those that are not: the line, and what it says.
REFUSED = {
    "octal digits": ("const A = 010;\nconst B = 08;\n" + NULL, 2, "constant B: 08 is not a number; allowed: decimal, 0x and hexadecimal, 0 and octal digits"),
    "struct *": ("struct m { int a; };\nstruct *list { m a; list next; };\n" + NULL, 2, "struct *: an optional type has no body of its own; allowed: struct NODE {...}; typedef NODE *NAME;"),
    "a comment without an end": (NULL + "\n/* open", 2, "a comment begins here and does not end; allowed: */ at its end"),
    "constant of 65 bits": ("const A = 18446744073709551616;" + NULL, 1, "constant A: 18446744073709551616 is out of range; allowed: -9223372036854775808 to 18446744073709551615"),
    "preprocessor": ("#define N 5\n" + NULL, 1, "#define: a line for the preprocessor; allowed: the file without lines for the preprocessor, as `cpp -P` writes it"),
    "sign": ("typedef int n@;", 1, "'@' is not in this language"),
    "unknown type": ("struct s { int a; };\nstruct t { colour b; };" + NULL, 2, "'colour' is not a type that is defined in this file; allowed: s, t"),
    "unknown constant": ("typedef int n<MANY>;" + NULL, 1, "bound: 'MANY' is not a number or a constant; allowed: a number, or a constant defined above"),
    "recursion without an end": ("struct a { b x; };\nstruct b { a y; };" + NULL, 1, "a contains itself; allowed: the part as a *, or in an array a<>"),
    "typedefs in a circle": ("typedef b a;\ntypedef a b;" + NULL, 1, "a contains itself; allowed: the part as a *, or in an array a<>"),
    "one name twice": ("typedef int a;\nconst a = 1;", 2, "a is defined already; allowed: another name: constants, labels, types and programs share one space"),
    "member twice": ("struct s {\nint a; int a; };", 2, "a is there twice; allowed: another name"),
    "empty struct": ("struct s { };", 1, "a struct without members; allowed: one or more"),
    "case twice": ("union u switch (int k) { case 1: void;\ncase 1: void; };", 2, "case 1 is there twice; allowed: another value"),
    "case of no label": ("enum e { A = 1, B = 4 }; union u switch (e k) {\ncase 2: void; };" + NULL, 2, "case 2 is not a value of k; allowed: 1, 4"),
    "discriminant": ("union u switch (hyper k) { case 2: void; };" + NULL, 1, "discriminant k has another type; allowed: int, unsigned int, bool or an enum"),
    "fixed string": ("typedef string s[4];", 1, "string s[]: a string has a bound, not a size; allowed: string s<N>"),
    "no size": ("struct s { opaque a; };", 1, "opaque a: without a size; allowed: opaque a[N] or opaque a<N>"),
    "size of 0": ("typedef int a[0];", 1, "size: 0 is out of range; allowed: 1 to 4294967295"),
    "two dimensions": ("typedef int a[2][2];", 1, "a: a second dimension; allowed: a typedef of the first, then NAME[N]"),
    "number twice": (PROGRAM % "void A(void) = 1;\nvoid B(void) = 1;", 2, "procedure B = 1: its name or number is there twice; allowed: another one"),
    "void": (PROGRAM % "void A(int a, void) = 1;", 1, "void among parameters; allowed: void alone"),
    "no procedure": ("program P { version V { } = 1; } = 1;", 1, "version V has no procedure; allowed: one or more"),
    "cut off": ("struct s { int a;", 1, "'the end of the file' is not a type; allowed: int, unsigned int, hyper, unsigned hyper, float, double, quadruple, bool, string, opaque or a defined name"),
    "bytes": ("typedef int a[4294967295]; typedef a b[4];\n" + NULL, 1, "a has more than 4294967295 bytes; allowed: less"),
}  # fmt: skip


@pytest.mark.parametrize("text", TAKEN.values(), ids=TAKEN)
def test_a_file_is_taken(text: str) -> None:
    assert parse(text, "f.x").programs


@pytest.mark.parametrize(("text", "line", "words"), REFUSED.values(), ids=REFUSED)
def test_a_file_is_refused_in_one_line(text: str, line: int, words: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse(text, "f.x")
    assert str(raised.value) == f"f.x:{line}: {words}"


def test_types_are_those_of_the_file() -> None:
    text = """
    const MANY = 010;
    enum colour { RED = 1, BLUE = -2 };
    typedef opaque fixed[3];
    typedef opaque free<>;
    typedef string name<MANY>;
    typedef unsigned hyper row[2];
    typedef colour some<0x10>;
    typedef free *perhaps;
    union u switch (colour c) { case RED: case BLUE: int a; default: void; };
    struct s { struct { bool b; } inner; };
    """
    found = parse(text, "f.x")
    assert found.constants == {"MANY": 8}
    types = found.types
    assert types["colour"] == Enum({"RED": 1, "BLUE": -2})
    assert (types["fixed"], types["free"]) == (Opaque(3, fixed=True), Opaque(UNBOUNDED, fixed=False))
    assert types["name"] == String(8)
    assert types["row"] == Array(PLAIN["unsigned hyper"], 2, fixed=True)
    assert types["some"] == Array(Named("colour"), 16, fixed=False)
    assert types["perhaps"] == Optional(Named("free"))
    union = types["u"]
    assert isinstance(union, Union)
    assert [arm.values for arm in union.forms] == [(1, -2), ()]
    assert types["s"] == Struct((Field("inner", Struct((Field("b", PLAIN["bool"]),))),))
    assert [found.least(types[name]) for name in ("fixed", "free", "row", "u", "s")] == [4, 4, 16, 4, 4]


WORDS = "program version { } < > [ ] ( ) ; = , * : a b 1 08 union switch case struct enum int void /* %"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=40))
def test_no_text_is_more_than_refused(words: list[str]) -> None:
    with contextlib.suppress(BadInput):
        parse(" ".join(words), "f.x")


def test_many_types_in_one_another_take_no_time() -> None:
    pairs = "".join(f"struct t{n} {{ t{n + 1} a; t{n + 1} b; }};\n" for n in range(28))
    assert parse(pairs + "struct t28 { int a; };" + NULL, "f.x").least(Named("t0")) == 4 << 28
    deep = "".join(f"typedef t{n + 1} t{n};\n" for n in range(20_000)) + "typedef int t20000;" + NULL
    with pytest.raises(BadInput, match="nested too deeply"):
        parse(deep, "f.x")
    with pytest.raises(BadInput, match="nested too deeply"):
        parse("struct s { " + "struct { " * 5000, "f.x")
