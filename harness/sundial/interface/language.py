# SPDX-License-Identifier: Apache-2.0
"""Reads the language of XDR and RPC (RFC 4506 section 6, RFC 5531 section 12).

Beside it, what rpcgen's files have: `unsigned` and its short forms, char, short and long as integers of four bytes,
`struct NAME` for NAME, parameters with names, and lines for the output (`%`), which define nothing here. Definitions
may be in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from sundial.errors import BadInput
from sundial.interface.types import (
    PLAIN,
    UNBOUNDED,
    Arm,
    Array,
    Enum,
    Field,
    Interface,
    Named,
    Opaque,
    Optional,
    Procedure,
    Program,
    String,
    Struct,
    Type,
    Union,
    Version,
    parts,
)

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\f\v]+)|(?P<line>\n)|(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<open>/\*)|(?P<output>^%[^\n]*)"
    r"|(?P<number>-?[0-9][0-9A-Za-z_]*)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[{}()<>\[\]=;,*:])",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|0[0-7]{0,22}|[1-9][0-9]{0,19})")
_WORDS = frozenset(
    """
    bool case const default double enum float hyper int opaque program quadruple string struct switch typedef
    union unsigned version void
    """.split()  # noqa: SIM905
)
_INT, _UNSIGNED = PLAIN["int"], PLAIN["unsigned int"]
_RPCGEN = {
    **dict.fromkeys(("char", "short", "long"), _INT),
    **dict.fromkeys(("u_char", "u_short", "u_int", "u_long"), _UNSIGNED),
    **dict.fromkeys(("int8_t", "int16_t", "int32_t"), _INT),
    **dict.fromkeys(("uint8_t", "uint16_t", "uint32_t"), _UNSIGNED),
    **dict.fromkeys(("longlong_t", "int64_t", "quad_t"), PLAIN["hyper"]),
    **dict.fromkeys(("u_longlong_t", "uint64_t", "u_quad_t"), PLAIN["unsigned hyper"]),
}
"""Types of rpcgen that the RFCs do not have. A long has four bytes on the wire."""
_DEFINITIONS = "const, typedef, enum, struct, union, program"
_TYPES = "int, unsigned int, hyper, unsigned hyper, float, double, quadruple, bool, string, opaque or a defined name"
_NEST_MOST = 200


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


def parse(text: str, file: str) -> Interface:
    """What a file defines. Raises BadInput for the first line that is not in the language."""
    reader = _Reader(text, file)
    try:
        reader.definitions()
        reader.complete()
    except RecursionError:
        reader.refuse(reader.next.line, "definitions are nested too deeply", f"{_NEST_MOST} in one another")
    return reader.result


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._tokens = list(self._split(text))
        self._at = 0
        self.result = Interface()
        self._values = {"TRUE": 1, "FALSE": 0}
        """Of constants and labels."""
        self._names: set[str] = set()
        """Constants, labels, types and programs have one space of names (RFC 4506 section 6.4)."""
        self._depth = 0
        self._used: list[tuple[int, str]] = []
        """Names of types, and where they are used."""
        self._cases: list[tuple[int, Field, dict[int, int]]] = []
        """Of unions: line, discriminant, and the line of each case."""

    def refuse(self, line: int, what: str, allowed: str | None = None) -> NoReturn:
        raise BadInput(what, file=self._file, line=line, allowed=allowed)

    # ---- tokens ----

    def _split(self, text: str) -> Iterator[_Token]:
        at, line = 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                if text[at] == "#":
                    allowed = "the file without lines for the preprocessor, as `cpp -P` writes it"
                    self.refuse(line, f"{text[at:].split()[0]}: a line for the preprocessor", allowed)
                self.refuse(line, f"{text[at]!a} is not in this language")
            kind, found = str(match.lastgroup), match.group()
            if kind == "open":
                self.refuse(line, "a comment begins here and does not end", "*/ at its end")
            if kind in ("number", "word", "sign"):
                yield _Token(kind, found, line)
            line += found.count("\n")
            at = match.end()
        yield _Token("end", "the end of the file", line)

    @property
    def next(self) -> _Token:
        return self._tokens[self._at]

    def _step(self) -> _Token:
        token = self.next
        if token.kind != "end":
            self._at += 1
        return token

    def _take(self, text: str) -> bool:
        if self.next.kind == "end" or self.next.text != text:
            return False
        self._at += 1
        return True

    def _expect(self, *texts: str) -> str:
        token = self._step()
        if token.kind == "end" or token.text not in texts:
            self.refuse(token.line, f"'{token.text}' is not expected here", " or ".join(texts))
        return token.text

    def _name(self, what: str) -> str:
        token = self._step()
        if token.kind != "word" or token.text in _WORDS:
            self.refuse(token.line, f"'{token.text}' is not the name of {what}", "a name that is not a word of XDR")
        return token.text

    def _new(self, what: str) -> str:
        line, name = self.next.line, self._name(what)
        self._claim(line, name)
        return name

    def _claim(self, line: int, name: str) -> None:
        if name in self._names or name in ("TRUE", "FALSE"):
            self.refuse(
                line,
                f"{name} is defined already",
                "another name: constants, labels, types and programs share one space",
            )
        self._names.add(name)

    def _value(self, what: str, least: int, most: int) -> int:
        token = self._step()
        if token.kind == "number":
            if not _NUMBER.fullmatch(token.text):
                self.refuse(
                    token.line,
                    f"{what}: {token.text} is not a number",
                    "decimal, 0x and hexadecimal, 0 and octal digits",
                )
            digits = token.text.lstrip("-")
            base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") else 10
            value = int(token.text, base)
        elif token.kind == "word" and token.text in self._values:
            value = self._values[token.text]
        else:
            self.refuse(
                token.line,
                f"{what}: '{token.text}' is not a number or a constant",
                "a number, or a constant defined above",
            )
        if not least <= value <= most:
            self.refuse(token.line, f"{what}: {value} is out of range", f"{least} to {most}")
        return value

    # ---- definitions ----

    def definitions(self) -> None:
        """All of the file."""
        while self.next.kind != "end":
            token = self._step()
            match token.text:
                case "const":
                    self._constant()
                case "typedef":
                    self._typedef()
                case "enum" | "struct" | "union":
                    self._definition(token)
                case "program":
                    self._program()
                case _:
                    self.refuse(token.line, f"'{token.text}' does not begin a definition", _DEFINITIONS)
            self._expect(";")

    def _constant(self) -> None:
        name = self._new("a constant")
        self._expect("=")
        self._values[name] = self.result.constants[name] = self._value(f"constant {name}", -(1 << 63), (1 << 64) - 1)

    def _typedef(self) -> None:
        line = self.next.line
        field = self._declaration("a type")
        if field is None:
            self.refuse(line, "typedef void", "a type with a value")
        self._claim(line, field.name)
        self._define(line, field.name, field.type)

    def _define(self, line: int, name: str, kind: Type) -> None:
        self.result.types[name] = kind
        self.result.lines[name] = line

    def _definition(self, word: _Token) -> None:
        if self.next.text == "*":
            allowed = "struct NODE {...}; typedef NODE *NAME;"
            self.refuse(word.line, f"{word.text} *: an optional type has no body of its own", allowed)
        name = self._new(f"a {word.text}")
        self._define(word.line, name, self._body(word))

    def _body(self, word: _Token) -> Type:
        self._depth += 1
        if self._depth > _NEST_MOST:
            raise RecursionError
        match word.text:
            case "enum":
                kind: Type = self._enum()
            case "struct":
                kind = self._struct(word.line)
            case _:
                kind = self._union()
        self._depth -= 1
        return kind

    def _enum(self) -> Enum:
        self._expect("{")
        labels: dict[str, int] = {}
        while True:
            label = self._new("a label")
            self._expect("=")
            labels[label] = self._values[label] = self._value(f"label {label}", -(1 << 31), (1 << 31) - 1)
            if self._expect(",", "}") == "}":
                return Enum(labels)

    def _struct(self, line: int) -> Struct:
        self._expect("{")
        fields: list[Field] = []
        while not self._take("}"):
            fields.append(self._member(fields))
        if not fields:
            self.refuse(line, "a struct without members", "one or more")
        return Struct(tuple(fields))

    def _member(self, others: list[Field]) -> Field:
        line = self.next.line
        field = self._declaration("a member")
        if field is None:
            self.refuse(line, "a member that is void", "a member with a value")
        self._once(line, field.name, others)
        self._expect(";")
        return field

    def _once(self, line: int, name: str, others: list[Field]) -> None:
        if any(each.name == name for each in others):
            self.refuse(line, f"{name} is there twice", "another name")

    def _union(self) -> Union:
        self._expect("switch")
        self._expect("(")
        line = self.next.line
        discriminant = self._declaration("a discriminant")
        if discriminant is None:
            self.refuse(line, "a discriminant that is void", "int, unsigned int, bool or an enum")
        self._expect(")")
        self._expect("{")
        arms: list[Arm] = []
        lines: dict[int, int] = {}
        names: list[Field] = [discriminant]
        default = None
        while not self._take("}"):
            values: list[int] = []
            here = self.next.line
            if self._expect("case", "default") == "default":
                self._expect(":")
                if default is not None:
                    self.refuse(here, "a second default", "one")
                default = Arm((), self._arm(names))
                continue
            while True:
                value = self._value("case", -(1 << 31), UNBOUNDED)
                if value in lines:
                    self.refuse(here, f"case {value} is there twice", "another value")
                lines[value] = here
                values.append(value)
                self._expect(":")
                if not self._take("case"):
                    break
            arms.append(Arm(tuple(values), self._arm(names)))
        if not arms:
            self.refuse(line, "a union without a case", "one or more")
        self._cases.append((line, discriminant, lines))
        return Union(discriminant, tuple(arms), default)

    def _arm(self, names: list[Field]) -> Field | None:
        line = self.next.line
        field = self._declaration("an arm")
        self._expect(";")
        if field is not None:
            self._once(line, field.name, names)
            names.append(field)
        return field

    def _check_cases(self, line: int, discriminant: Field, lines: dict[int, int]) -> None:
        kind = self.result.bare(discriminant.type)
        if isinstance(kind, Enum):
            known = set(kind.labels.values())
        elif kind == PLAIN["bool"]:
            known = {0, 1}
        elif kind in (_INT, _UNSIGNED):
            low = 0 if kind == _UNSIGNED else -(1 << 31)
            high = UNBOUNDED if kind == _UNSIGNED else (1 << 31) - 1
            for value, here in lines.items():
                if not low <= value <= high:
                    self.refuse(here, f"case {value} is out of range", f"{low} to {high}")
            return
        else:
            self.refuse(
                line, f"discriminant {discriminant.name} has another type", "int, unsigned int, bool or an enum"
            )
        for value, here in lines.items():
            if value not in known:
                self.refuse(
                    here, f"case {value} is not a value of {discriminant.name}", ", ".join(map(str, sorted(known)))
                )

    # ---- declarations ----

    def _declaration(self, what: str, default: str | None = None) -> Field | None:
        """A type and a name; None: void. `default`: the name of a parameter that has none."""
        token = self.next
        if self._take("void"):
            return None
        kind = self._specifier()
        starred = self._take("*")
        nameless = default is not None and (self.next.kind != "word" or self.next.text in _WORDS)
        name = str(default) if nameless else self._name(what)
        sized = self.next.text if self.next.text in ("[", "<") else ""
        if starred:
            if sized or token.text in ("opaque", "string"):
                self.refuse(token.line, f"{name}: an optional array", "a typedef of the array, then NAME *")
            return Field(name, Optional(kind))
        if token.text == "string":
            if sized == "[":
                self.refuse(token.line, f"string {name}[]: a string has a bound, not a size", f"string {name}<N>")
            return Field(name, String(self._size(sized)))
        if token.text == "opaque":
            if not sized:
                self.refuse(token.line, f"opaque {name}: without a size", f"opaque {name}[N] or opaque {name}<N>")
            return Field(name, Opaque(self._size(sized), sized == "["))
        if not sized:
            return Field(name, kind)
        field = Field(name, Array(kind, self._size(sized), sized == "["))
        if self.next.text in ("[", "<"):
            self.refuse(token.line, f"{name}: a second dimension", "a typedef of the first, then NAME[N]")
        return field

    def _size(self, sign: str) -> int:
        """The size behind a sign; without one, as rpcgen takes a string, there is no bound."""
        if not sign or (self._take(sign) and sign == "<" and self._take(">")):
            return UNBOUNDED
        size = self._value("size" if sign == "[" else "bound", 1 if sign == "[" else 0, UNBOUNDED)
        self._expect("]" if sign == "[" else ">")
        return size

    def _specifier(self) -> Type:
        token = self._step()
        word = token.text
        if token.kind != "word":
            self.refuse(token.line, f"'{word}' is not a type", _TYPES)
        if word == "unsigned":
            if self._take("hyper"):
                return PLAIN["unsigned hyper"]
            if self.next.text in ("int", "char", "short", "long"):
                self._step()
            return _UNSIGNED
        if word in PLAIN:
            return PLAIN[word]
        if word in ("string", "opaque"):
            return String(UNBOUNDED)  # its size follows its name
        if word in ("enum", "struct", "union"):
            if self.next.text in ("{", "switch"):
                return self._body(token)
            return self._named(self.next.line, self._name("a type"))
        if word in _WORDS:
            self.refuse(token.line, f"'{word}' is not a type", _TYPES)
        return self._named(token.line, word)

    def _named(self, line: int, name: str) -> Type:
        self._used.append((line, name))
        return Named(name)

    def _check_known(self, line: int, name: str) -> None:
        if name in self.result.types:
            return
        if name in _RPCGEN:
            self._define(line, name, _RPCGEN[name])
            return
        known = ", ".join(each for each in self.result.types if each not in _RPCGEN)
        self.refuse(line, f"{name!r} is not a type that is defined in this file", known or _TYPES)

    # ---- programs ----

    def _program(self) -> None:
        line, name = self.next.line, self._new("a program")
        self._expect("{")
        versions: list[Version] = []
        while not self._take("}"):
            self._version(versions)
        if not versions:
            self.refuse(line, f"program {name} has no version", "one or more")
        self._expect("=")
        here = self.next.line
        number = self._value(f"program {name}", 0, UNBOUNDED)
        if any(each.number == number for each in self.result.programs):
            self.refuse(here, f"program {name}: number {number} is there twice", "another number")
        self.result.programs.append(Program(name, number, tuple(versions)))

    def _version(self, others: list[Version]) -> None:
        self._expect("version")
        line, name = self.next.line, self._name("a version")
        self._expect("{")
        procedures: list[Procedure] = []
        while not self._take("}"):
            self._procedure(procedures)
        self._expect("=")
        number = self._value(f"version {name}", 0, UNBOUNDED)
        self._expect(";")
        if not procedures:
            self.refuse(line, f"version {name} has no procedure", "one or more")
        if any(each.name == name or each.number == number for each in others):
            self.refuse(line, f"version {name} = {number}: its name or number is there twice", "another one")
        others.append(Version(name, number, tuple(procedures)))

    def _procedure(self, others: list[Procedure]) -> None:
        line = self.next.line
        result = self._result()
        name = self._name("a procedure")
        self._expect("(")
        arguments: list[Field] = []
        while True:
            here = self.next.line
            field = self._declaration("a parameter", f"argument{len(arguments) + 1}")
            if field is None and (arguments or self.next.text != ")"):
                self.refuse(here, "void among parameters", "void alone")
            if field is not None:
                self._once(here, field.name, arguments)
                arguments.append(field)
            if self._expect(",", ")") == ")":
                break
        self._expect("=")
        number = self._value(f"procedure {name}", 0, UNBOUNDED)
        self._expect(";")
        if any(each.name == name or each.number == number for each in others):
            self.refuse(line, f"procedure {name} = {number}: its name or number is there twice", "another one")
        others.append(Procedure(name, number, tuple(arguments), result))

    def _result(self) -> Type | None:
        token = self.next
        if self._take("void"):
            return None
        kind = self._specifier()
        if token.text == "opaque":
            self.refuse(token.line, "opaque as a result: without a size", "a typedef of it")
        if token.text == "string" and self._take("<"):
            kind = String(UNBOUNDED if self._take(">") else self._value("bound", 0, UNBOUNDED))
            if kind.most != UNBOUNDED:
                self._expect(">")
        return Optional(kind) if self._take("*") else kind

    # ---- all of it ----

    def complete(self) -> None:
        """What can be checked only when everything is defined."""
        for line, name in self._used:
            self._check_known(line, name)
        done: set[str] = set()
        for name in self.result.types:
            self._check_ends(name, [], done)
        for line, discriminant, lines in self._cases:
            self._check_cases(line, discriminant, lines)
        for name, line in self.result.lines.items():
            if self.result.least(Named(name)) > UNBOUNDED:
                self.refuse(line, f"{name} has more than {UNBOUNDED} bytes", "less")

    def _check_ends(self, name: str, around: list[str], done: set[str]) -> None:
        """A type that contains itself by value has no end."""
        if name in around:
            allowed = f"the part as {name} *, or in an array {name}<>"
            self.refuse(self.result.lines[name], f"{name} contains itself", allowed)
        if name in done:
            return
        done.add(name)
        for each in inside(self.result.types[name]):
            self._check_ends(each, [*around, name], done)


def inside(kind: Type) -> Iterator[str]:
    """Names of the types that a type has inside by value."""
    if isinstance(kind, Named):
        yield kind.name
    elif isinstance(kind, Struct | Union) or (isinstance(kind, Array) and kind.fixed):
        for part in parts(kind):
            yield from inside(part)
