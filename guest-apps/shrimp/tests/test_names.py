# SPDX-License-Identifier: Apache-2.0
"""Names of all kinds in all places: each is refused, or what is generated compiles.

What C takes for itself comes from the compiler: its keywords, what it predefines, the headers that generated code
includes, on this host and in SSS-CORE, and the functions that it knows.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from generator.command import main
from generator.language import Refused, parse
from rig import FLAGS, SHRIMP

SSSCORE = SHRIMP.parent / "sss-core"
WORD = re.compile(r"\b[A-Za-z_]\w*")


def gcc(*words: str, text: str = "") -> str:
    done = subprocess.run(["gcc", *words], input=text, capture_output=True, text=True, timeout=6000, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@cache
def dialects() -> tuple[tuple[str, ...], ...]:
    """As generated code is compiled: for this host, with all that its headers have, and for SSS-CORE."""
    freestanding = ("-ffreestanding", "-fbuiltin", "-nostdinc", "-isystem", gcc("-print-file-name=include"))
    return (
        (),
        ("-std=gnu11", "-D_GNU_SOURCE"),
        (*freestanding, f"-I{SSSCORE / 'include'}", f"-I{SSSCORE / 'lib' / 'include'}"),
    )


# C11 6.4.1, C23 6.4.1, and GCC's manual, "Alternate Keywords".
KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas _Alignof
_Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local
alignas alignof bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual _BitInt _Decimal128
_Decimal32 _Decimal64 asm __asm __asm__ __attribute__ __const __extension__ __inline __label__ __restrict __typeof__
""".split()  # noqa: SIM905
# Of generated code, and of what it is linked with.
OWN = """
main M_SHRIMP_HASH M_SHRIMP_PAGES M_SHRIMP_IDENTITY m_shrimp m_shrimp_identity m_shrimp_procedure shrimp shrimp_self
shrimp_call shrimp_client SHRIMP_OK SHRIMP_PAGE length items result argument argument_1 x_length x_out x_bytes one_serve
one_reply one_results one_arguments __ _ _a _A
""".split()  # noqa: SIM905


@cache
def words() -> frozenset[str]:
    found = {*KEYWORDS, *OWN}
    include = ("-xc", "-E", f"-I{SHRIMP}", "-")
    for dialect in dialects():
        flags = (*dialect, *include)
        found |= {line.split()[1].split("(")[0] for line in gcc("-dM", *flags, text='#include "shrimp.h"').splitlines()}
        found |= set(WORD.findall(gcc("-P", *flags, text='#include "shrimp.h"')))
    return frozenset(found)


@cache
def functions() -> frozenset[str]:
    """That the compiler knows; the instructions of processors have no names without the prefix."""
    compiler = Path(gcc("-print-prog-name=cc1")).read_bytes()
    found = re.findall(rb"\0__builtin_([a-z]\w*|_exit)(?=\0)", compiler)
    return frozenset(
        name.decode() for name in found if not name.startswith((b"ia32_", b"aarch64_", b"arm_", b"goacc_"))
    )


def candidates(place: str) -> list[str]:
    return sorted(words() | functions() if place in FILE_SCOPE else words())


# In front of the program, and in it; NAME is what is tried, N a number of its own.
PLACES: dict[str, tuple[str, str]] = {
    "constant": ("const NAME = N;", ""),
    "label": ("enum e_N { NAME = N };", ""),
    "enum": ("enum NAME { LABEL_N = 1 };", "void USE_N(inout NAME x) = N;"),
    "struct": ("struct NAME { int a; };", "void USE_N(inout NAME x) = N;"),
    "counted type": ("typedef hyper NAME<3>;", "void USE_N(inout NAME x[2]) = N;"),
    "member": ("struct s_N { int NAME; };", "void USE_N(inout s_N x) = N;"),
    "counted member": ("struct s_N { opaque NAME<3>; };", "void USE_N(inout s_N x) = N;"),
    "parameter": ("", "void USE_N(inout int NAME) = N;"),
    "parameter in front": ("", "int USE_N(int NAME, int b, hyper c) = N;"),
    "array": ("typedef int row[2];", "void USE_N(in row NAME<2>, out opaque back[4]) = N;"),
    "counted parameter": ("", "void USE_N(inout string NAME<3>) = N;"),
    "nested parameter": ("struct t { opaque x<3>; };", "void USE_N(inout t NAME<2>) = N;"),
    "procedure": ("", "int NAME(int x) = N;"),
    "procedure in small letters": ("", "int LOWER(int x) = N;"),
    "procedure in capitals": ("", "int UPPER(int x) = N;"),
}
FILE_SCOPE = ("constant", "label", "procedure in small letters")
"""Where a name is one with functions'."""
PLACE = re.compile(r"(?<![a-z])(NAME|LOWER|UPPER|N)\b")
SHARED = ("array", "nested parameter")


def fill(pattern: str, number: int, name: str) -> str:
    words = {"NAME": name, "N": str(number), "LOWER": name.lower(), "UPPER": name.upper()}
    return PLACE.sub(lambda match: words[match[0]], pattern)


def written(place: str, names: list[str]) -> str:
    before, inside = ([fill(pattern, *each) for each in enumerate(names) if pattern] for pattern in PLACES[place])
    if place in SHARED:
        before = before[:1]
    return "\n".join([*before, "program THE_PROGRAM { version THE_VERSION {", *inside, "} = 1; } = 1;"])


def accepted(place: str) -> list[str]:
    found = []
    for name in candidates(place):
        try:
            parse(written(place, [name]))
        except Refused:
            continue
        found.append(name)
    return found


def files(place: str, names: list[str]) -> Iterator[str]:
    """As few as hold all of them: what cannot be beside another one, such as x_length beside x, goes into the next."""
    while names:
        later: list[str] = []
        while True:
            text = written(place, names)
            try:
                parse(text)
                break
            except Refused as refusal:
                later.append(names.pop(owner(place, names, refusal.line)))
        yield text
        names = later


def owner(place: str, names: list[str], line: int) -> int:
    before = 0 if not PLACES[place][0] else 1 if place in SHARED else len(names)
    return line - 1 if line <= before else line - before - 2


@pytest.mark.parametrize("place", PLACES)
def test_what_is_accepted_compiles(tmp_path: Path, place: str) -> None:
    names = accepted(place)
    assert 50 < len(names) < len(candidates(place)) - 100
    sources = []
    for number, text in enumerate(files(place, names)):
        (tmp_path / f"m{number}.x").write_text(text)
        assert main(["--out", str(tmp_path), str(tmp_path / f"m{number}.x")]) == 0
        sources += [str(tmp_path / f"m{number}_shrimp_{side}.c") for side in ("client", "server")]
    for dialect in dialects():
        gcc(*FLAGS, *dialect, "-fsyntax-only", f"-I{SHRIMP}", f"-I{tmp_path}", *sources)
