# SPDX-License-Identifier: Apache-2.0
# One refusal a line is easier to read than wrapped ones.
# ruff: noqa: E501
"""What the generator says of files that it refuses: one line, and status 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from generator.command import main
from rig import SHRIMP, compiled, shrimpgen

OUTSIDE = "not in ShrimpRPC's subset: "
WORD = "is taken: a word of C, of its headers or its compiler"
FUNCTION = "is taken: a function of C; members and parameters may be called so"
STUBS = "is taken: names with shrimp in them are those of stubs"
PROGRAM = "program P { version V { %s } = 1; } = 0x20000001;"
NULL = PROGRAM % "void NOTHING(void) = 0;"


def call(parameters: str) -> str:
    return PROGRAM % f"void CALL({parameters}) = 1;"


# Lines before the refused one, the refused one, what is said behind "FILE:LINE: ".
REFUSED: dict[str, tuple[str, str, str]] = {
    "unbounded string": ("", "typedef string text<>;", f"string<>: {OUTSIDE}unbounded"),
    "string without a size": ("", "typedef string text;", f"string: {OUTSIDE}unbounded; string text<N>"),
    "unbounded opaque": ("", "struct s { opaque data<>; };", f"opaque<>: {OUTSIDE}unbounded"),
    "opaque without a size": ("", call("opaque data"), f"opaque: {OUTSIDE}unbounded; opaque data<N>"),
    "unbounded array": ("", "struct s { int n<>; };", f"int<>: {OUTSIDE}unbounded"),
    "array without a size": ("", "typedef int n[];", f"int[]: {OUTSIDE}unbounded"),
    "string result": ("", PROGRAM % "string GET(void) = 1;", f"string: {OUTSIDE}unbounded; typedef string NAME<N>"),
    "optional": ("", "typedef int *maybe;", f"int *: {OUTSIDE}optional, and so recursive or of two forms"),
    "optional struct": ("", "struct *list { int a; };", f"struct *: {OUTSIDE}optional, and so recursive or of two forms"),
    "optional member": ("struct s { int a; };", "struct t { s *next; };", f"s *: {OUTSIDE}optional, and so recursive or of two forms"),
    "optional parameter": ("", call("inout int *n"), f"int *: {OUTSIDE}optional, and so recursive or of two forms"),
    "optional result": ("", PROGRAM % "int *GET(void) = 1;", f"int *: {OUTSIDE}optional, and so recursive or of two forms"),
    "recursive": ("", "struct list { int a; list next; };", f"list: {OUTSIDE}recursive"),
    "recursive array": ("", "struct tree { tree below<2>; };", f"tree: {OUTSIDE}recursive"),
    "mutually recursive": ("", "struct a { struct b other; }; struct b { struct a other; };", f"b: {OUTSIDE}unknown here; a type is defined before its use, so none is recursive"),
    "union": ("", "union u switch (int kind) { case 1: int a; default: void; };", f"union u: {OUTSIDE}a value has one form"),
    "union in a struct": ("", "struct s { union switch (bool b) { case TRUE: int a; } u; };", f"union switch: {OUTSIDE}a value has one form"),
    "quadruple": ("", "typedef quadruple wide;", f"quadruple: {OUTSIDE}C has no such type everywhere"),
    "char": ("", "struct s { char c; };", f"char: {OUTSIDE}int and hyper are the integers"),
    "unsigned short": ("", "struct s { unsigned short c; };", f"unsigned short: {OUTSIDE}int and hyper are the integers"),
    "long": ("", call("long n"), f"long: {OUTSIDE}int and hyper are the integers"),
    "unknown type": ("", call("colour c"), f"colour: {OUTSIDE}unknown here; a type is defined before its use, so none is recursive"),
    "struct without a name": ("", "struct s { struct { int a; } b; };", f"struct without a name: {OUTSIDE}define it before, by name"),
    "empty struct": ("", "struct s { };", f"struct s: {OUTSIDE}a struct has members"),
    "void member": ("", "struct s { void; };", f"void: {OUTSIDE}a member has a value"),
    "void type": ("", "typedef void nothing;", f"void: {OUTSIDE}a type has a value"),
    "void among parameters": ("", call("int a, void"), f"void: {OUTSIDE}a parameter has a value"),
    "array of void": ("", call("void n[3]"), f"void: {OUTSIDE}no array is of nothing"),
    "two dimensions": ("", "typedef int square[2][2];", f"int square: {OUTSIDE}one dimension; define the inner one by typedef"),
    "fixed string": ("", "typedef string text[5];", f"string[5]: {OUTSIDE}strings have a length; opaque has not"),
    "bound of 0": ("", "typedef int none<0>;", f"int<0>: {OUTSIDE}a size is at least 1"),
    "bound below 0": ("const LESS = -1;", "typedef int none<LESS>;", f"int<-1>: {OUTSIDE}a size is at least 1"),
    "bound beyond an export": ("", "typedef opaque data<1044473>;", f"opaque<1044473>: {OUTSIDE}a buffer holds 1,044,472 bytes below its flag"),
    "struct beyond an export": ("typedef opaque half[600000];", "struct s { half a; half b; };", f"s: {OUTSIDE}1,200,000 bytes, and a buffer holds 1,044,472 below its flag"),
    "call beyond an export": ("typedef opaque half[600000];", call("in half a, in half b"), f"procedure CALL: {OUTSIDE}1,200,000 bytes in, and a buffer holds 1,044,472 below its flag"),
    "reply beyond an export": ("typedef opaque half[600000];", call("inout half a, out half b"), f"procedure CALL: {OUTSIDE}1,200,000 bytes back, and a buffer holds 1,044,472 below its flag"),
    "nested too deeply": ("typedef int t0[1];" + "".join(f"typedef t{i - 1} t{i}[1];" for i in range(1, 50)), "struct s { t49 a; };", f"s: {OUTSIDE}more than 50 types inside of one another"),
    "two programs": (NULL, "program Q { version W { void N(void) = 0; } = 1; } = 2;", f"program Q: {OUTSIDE}one program a file"),
    "two versions": ("", "program P { version V { void N(void) = 0; } = 1; version W { } = 2; } = 2;", f"version: {OUTSIDE}one version a program"),
    "preprocessor": ("", "#define N 5", f"#define: {OUTSIDE}lines of the preprocessor and of the output"),
    "output line": ("", "%extern int n;", f"%extern: {OUTSIDE}lines of the preprocessor and of the output"),
}  # fmt: skip
# Not a matter of the subset.
WRONG: dict[str, tuple[str, str, str]] = {
    "procedure's number": ("", PROGRAM % "void N(void) = 65536;", "procedure N 65536: 0..65535"),
    "same number": ("", PROGRAM % "void N(void) = 1; void M(void) = 1;", "procedure M: number 1 is another one's"),
    "same procedure": ("", PROGRAM % "void N(void) = 1; void n(void) = 2;", "n: there is one already"),
    "same type": ("typedef int a;", "typedef hyper a;", "a: there is one already"),
    "same member": ("", "struct s { int a; hyper a; };", "a: there is one already in struct s"),
    "same parameter": ("", call("in int a, out int a"), "procedure CALL: there is a a already"),
    "name of a length": ("", call("in opaque a<4>, in int a_length"), "procedure CALL: there is a a_length already"),
    "parameter of a later constant's name": (PROGRAM % "void N(int a) = 1;", "const a = 1;", "a: there is a parameter of this name already"),
    "word of C": ("", "struct s { int register; };", f"register: {WORD}"),
    "word of GNU C": ("", call("int typeof"), f"typeof: {WORD}"),
    "word that the compiler defines": ("", "struct s { int linux; };", f"linux: {WORD}"),
    "macro": ("", "const INT32_MAX = 1;", f"INT32_MAX: {WORD}"),
    "macro in two parts": ("", "struct INT8 { int MAX<3>; };", f"INT8_MAX: {WORD}"),
    "stub that is a word of C": ("", PROGRAM % "void REGISTER(void) = 1;", f"procedure REGISTER: its stub register: {WORD}"),
    "stub that is a function of C": ("", PROGRAM % "void STRLEN(void) = 1;", f"procedure STRLEN: its stub strlen: {FUNCTION}"),
    "constant that is a function of C": ("", "const index = 1;", f"index: {FUNCTION}"),
    "name of the library": ("", "typedef int shrimp_call;", f"shrimp_call: {STUBS}"),
    "name of a generated macro": ("", "const BAD_SHRIMP_HASH = 1;", f"BAD_SHRIMP_HASH: {STUBS}"),
    "number of many digits": ("", f"const A = {'9' * 5000};", "constant A: a number of 5000 digits; 23 at most"),
    "type of a direction's name": ("", "typedef int inout;", "inout: is taken: the direction of a parameter"),
    "enumerator": ("", "enum e { A = 2147483648 };", "enumerator A 2147483648: -2147483648..2147483647"),
    "constant of more than 64 bits": ("", "const A = 0x10000000000000000;", "constant A 18446744073709551616: -9223372036854775807..18446744073709551615"),
    "octal": ("", "const A = 0128;", "constant A: 0128 is not a number; octal digits are 0 to 7"),
    "number with letters": ("", "const A = 12ab;", "constant A: 12ab is not a number"),
    "comment without its end": ("", "typedef int n; /* open", "a comment begins here and does not end; write */"),
    "comment that is its own end": ("", "/*/ typedef int n;", "a comment begins here and does not end; write */"),
    "unknown constant": ("", "typedef int n<MANY>;", "expected a size, a number or a constant, not 'MANY'"),
    "missing semicolon": ("", "typedef int n const", "expected ';', not 'const'"),
    "no definition": ("", "int n;", "expected const, typedef, enum, struct or program, not 'int'"),
    "cut off": ("", "struct s { int a;", "expected a type, not 'the file's end'"),
    "foreign sign": ("", "typedef int n@;", "'@' is nothing in this language"),
    "no program": ("", "typedef int n;", "there is no program"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "line", "reason"), [*REFUSED.values(), *WRONG.values()], ids=[*REFUSED, *WRONG])
def test_what_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    before: str,
    line: str,
    reason: str,
) -> None:
    """Behind a comment of two lines, so that lines are counted, not guessed."""
    text = f"/* two\nlines */\n{before}\n{line}" + (
        "" if reason.startswith(("there is no", "expected a type")) else "\n"
    )
    (tmp_path / "bad.x").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["--out", "out", "bad.x"])
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err) == (2, "", f"bad.x:4: {reason}\n")
    assert not (tmp_path / "out").exists()


def test_there_are_enough_of_them() -> None:
    assert len(REFUSED) >= 30


def test_what_is_no_file_or_no_name(tmp_path: Path) -> None:
    (tmp_path / "two-words.x").write_text(NULL)
    (tmp_path / "latin.x").write_bytes(b"\xe4")
    for name, reason in (
        ("none.x", "No such file or directory"),
        ("latin.x", "not UTF-8"),
        ("two-words.x", "the file's name becomes one of C: letters, digits and _, then .x"),
    ):
        done = shrimpgen(tmp_path / name, tmp_path)
        assert (done.returncode, done.stderr) == (2, f"{name}: {reason}\n")


def test_the_sun_rpc_workload_s_file_is_too_large(tmp_path: Path) -> None:
    done = shrimpgen(SHRIMP.parent / "echo" / "echo.x", tmp_path)
    refusal = "opaque<4194304>: not in ShrimpRPC's subset: a buffer holds 1,044,472 bytes below its flag"
    assert (done.returncode, done.stderr) == (2, f"echo.x:9: {refusal}\n")


def test_a_version_has_names_of_its_own(tmp_path: Path) -> None:
    """RFC 5531 section 12.3: a version's name is in the scope of its program, as rpcgen takes it."""
    text = "program SAME { version SAME { void F(void) = 0; } = 1; } = 1;"
    assert hash_of(tmp_path, text) == hash_of(tmp_path, text.replace("version SAME", "version F"))


def test_a_constant_has_64_bits(tmp_path: Path) -> None:
    """As NFS version 4 has some (RFC 7531)."""
    numbers = "const MOST = 0xffffffffffffffff; const FIRST = 0x8000000000000000; const SIGNED = 0x7fffffffffffffff;"
    hash_of(tmp_path, f"{numbers} const OCTAL = 010;" + NULL)
    source = '#include "one_shrimp.h"\n' + "".join(
        f"_Static_assert({test}, \"\");\n" for test in ("OCTAL == 8", "sizeof MOST == 8", "sizeof SIGNED == 8")
    )
    source += "_Static_assert(_Generic(MOST, uint64_t: 1, default: 0) && _Generic(FIRST, uint64_t: 1, default: 0), \"\");\n"
    (tmp_path / "one.c").write_text(source)
    compiled(tmp_path, "one.o", flags=("-r", "-nostdlib", str(tmp_path / "one.c")))
    assert "MOST = UINT64_C(18446744073709551615);" in (tmp_path / "one_shrimp.h").read_text()


def test_the_twelve_functions_are_taken_as_rpcgen_takes_them(tmp_path: Path) -> None:
    done = shrimpgen(SHRIMP.parent / "echo" / "function_calls.x", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for side in ("client", "server"):
        compiled(tmp_path, f"{side}.o", flags=("-r", "-nostdlib", str(tmp_path / f"function_calls_shrimp_{side}.c")))


def hash_of(folder: Path, text: str) -> str:
    (folder / "one.x").write_text(text)
    assert main(["--out", str(folder), str(folder / "one.x")]) == 0
    (line,) = [line for line in (folder / "one_shrimp.h").read_text().splitlines() if "define ONE_SHRIMP_HASH" in line]
    return line


def test_the_hash_is_of_what_was_parsed(tmp_path: Path) -> None:
    base = hash_of(tmp_path, "typedef int n<4>;" + call("in n a, out hyper b"))
    same = "const FOUR = 0x4; /* four */\ntypedef int n<FOUR>;\n" + call("n a , out hyper b")
    assert hash_of(tmp_path, same) == base
    others = {
        hash_of(tmp_path, "typedef int n<5>;" + call("in n a, out hyper b")),
        hash_of(tmp_path, "typedef int n<4>;" + call("inout n a, out hyper b")),
        hash_of(tmp_path, "typedef int n<4>;" + call("in n a, out unsigned hyper b")),
        hash_of(tmp_path, "typedef int n<4>;" + call("in n a, out hyper c")),
        hash_of(tmp_path, "typedef unsigned n<4>;" + call("in n a, out hyper b")),
        hash_of(tmp_path, "typedef int n<4>;" + PROGRAM % "void CALL(in n a, out hyper b) = 2;"),
    }
    assert len(others) == 6
    assert base not in others


COLOUR = "enum colour { %s };\n"


def test_the_hash_is_of_what_an_enum_s_labels_mean(tmp_path: Path) -> None:
    """Wherever in a type the enum is; the order of its labels is layout."""
    uses = [
        call("in colour a"),
        call("out colour a<4>"),
        "struct s { int n; colour a[2]; };" + call("in s a"),
        "typedef colour c; struct s { c a; }; struct t { s some<2>; };" + PROGRAM % "t GET(void) = 1;",
    ]
    for use in uses:
        base = hash_of(tmp_path, COLOUR % "RED = 1, BLUE = 2" + use)
        assert hash_of(tmp_path, "const ONE = 1;" + COLOUR % "BLUE = 2, RED = ONE" + use) == base
        others = (
            "RED = 2, BLUE = 1",
            "RED = 1, BLUE = 3",
            "RED = 1, GREEN = 2",
            "RED = 1",
            "RED = 1, BLUE = 2, GREEN = 3",
        )
        hashes = {hash_of(tmp_path, COLOUR % other + use) for other in others}
        assert len(hashes) == len(others)
        assert base not in hashes
    named = [hash_of(tmp_path, f"enum {name} {{ A = 1 }};" + call(f"in {name} a[4]")) for name in ("byte", "character")]
    assert len({*named, hash_of(tmp_path, call("in opaque a[4]"))}) == 3


def test_the_hash_is_of_members_in_their_order(tmp_path: Path) -> None:
    use = call("in s a")
    bodies = ("int a; int b;", "int b; int a;", "int a; unsigned b;", "int a; int b[1];", "int a; int b<1>;", "int a;")
    hashes = {hash_of(tmp_path, f"struct s {{ {body} }};{use}") for body in bodies}
    assert len(hashes) == len(bodies)
    bounds = {hash_of(tmp_path, f"const N = {n}; typedef opaque d<N>; struct s {{ d a; }};{use}") for n in (3, 4)}
    assert len(bounds) == 2
    assert hash_of(tmp_path, f"typedef opaque d<3>; typedef d e; struct s {{ e a; }};{use}") in bounds


def test_the_hash_of_an_interface_without_enums_stays(tmp_path: Path) -> None:
    """Captures have it."""
    assert shrimpgen(SHRIMP / "echo.x", tmp_path).returncode == 0
    assert "ECHO_SHRIMP_HASH UINT64_C(0xbe49850972249e28)" in (tmp_path / "echo_shrimp.h").read_text()


def test_what_is_largest_fits_a_pair_of_vmmc(tmp_path: Path) -> None:
    (tmp_path / "most.x").write_text(PROGRAM % "void PUT(opaque data[1044472]) = 1;")
    assert shrimpgen(tmp_path / "most.x", tmp_path).returncode == 0
    source = '#include "sss/vmmc_pair.h"\n#include "most_shrimp.h"\n'
    source += '_Static_assert(MOST_SHRIMP_PAGES == VMMC_PAIR_PAGES, "the largest buffer");\n'
    (tmp_path / "most.c").write_text(source)
    include = SHRIMP.parent / "sss-core" / "include"
    compiled(tmp_path, "most.o", flags=("-r", "-nostdlib", f"-I{include}", str(tmp_path / "most.c")))


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for folder in ("a", "b"):
        assert shrimpgen(SHRIMP / "echo.x", tmp_path / folder).returncode == 0
        made.append({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == {"echo_shrimp.h", "echo_shrimp_client.c", "echo_shrimp_server.c"}
