# SPDX-License-Identifier: Apache-2.0
"""Reads RPC language (RFC 5531 section 12, RFC 4506 section 6) as far as ShrimpRPC's subset goes, and refuses the rest.

Procedures take any number of parameters, each with `in` (or nothing), `out` or `inout` before its type, and a name
behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from .layout import NESTED, ROOM, Array, Parameter, Procedure, Program, Scalar, Struct, Type, Vector, structure
from .words import function, taken

TOKEN = re.compile(
    r"(?P<space>[ \t\r\f\v]+)|(?P<line>\n)|(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<open>/\*)|(?P<foreign>^[%\#][^\n]*)"
    r"|(?P<number>-?[0-9][0-9A-Za-z_]*)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[{}()<>\[\]=;,*:])",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
DIRECTIONS = ("in", "out", "inout")
XDR_WORDS = frozenset(
    """
    bool case const default double enum float hyper int opaque program quadruple string struct switch typedef
    union unsigned version void
    """.split()  # noqa: SIM905
)
STRANGERS = frozenset(["char", "short", "long", "signed"])
"""rpcgen takes them, XDR has no such types."""
SCALARS = {
    "int": Scalar("int32_t", 4, "int"),
    "unsigned int": Scalar("uint32_t", 4, "unsigned int"),
    "hyper": Scalar("int64_t", 8, "hyper"),
    "unsigned hyper": Scalar("uint64_t", 8, "unsigned hyper"),
    "float": Scalar("float", 4, "float"),
    "double": Scalar("double", 8, "double"),
    "bool": Scalar("shrimp_bool", 4, "bool"),
}
BYTE = Scalar("uint8_t", 1, "byte")
CHARACTER = Scalar("char", 1, "character")
PROCEDURES = 1 << 16
DIGITS = 23
"""Of a number at most, as octal has them for 64 bits."""
HOLDS = f"a buffer holds {ROOM:,}"


class Refused(Exception):
    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


class Token:
    def __init__(self, kind: str, text: str, line: int) -> None:
        self.kind, self.text, self.line = kind, text, line


def tokens(text: str) -> Iterator[Token]:
    at, line = 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise Refused(line, f"{text[at]!a} is nothing in this language")
        kind, found = str(match.lastgroup), match.group()
        if kind == "open":
            raise Refused(line, "a comment begins here and does not end; write */")
        if kind == "foreign":
            outside(line, found.split()[0], "lines of the preprocessor and of the output")
        if kind not in ("space", "line", "comment"):
            yield Token(kind, found, line)
        line += found.count("\n")
        at = match.end()
    yield Token("end", "the file's end", line)


def outside(line: int, kind: str, reason: str) -> NoReturn:
    raise Refused(line, f"{kind}: not in ShrimpRPC's subset: {reason}")


def parse(text: str) -> Program:
    return Reader(text).program()


class Reader:
    def __init__(self, text: str) -> None:
        self.tokens = list(tokens(text))
        self.at = 0
        self.result = Program()
        self.types: dict[str, Type] = {}
        self.names: set[str] = set()
        """Of constants, enumerators and functions."""
        self.tags: set[str] = set()
        """Of types: a space of their own, as in C."""
        self.passed: set[str] = set()
        """Names of parameters, and what stubs derive from them."""
        self.open = ""
        """The structure that is being read."""

    # ---- tokens ----

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self, text: str) -> bool:
        if self.next.text != text or self.next.kind == "end":
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise Refused(self.next.line, f"expected '{text}', not '{self.next.text}'")

    def name(self, what: str) -> str:
        token = self.next
        if token.kind != "word" or token.text in XDR_WORDS:
            raise Refused(token.line, f"expected the name of {what}, not '{token.text}'")
        self.free(token.line, token.text)
        self.at += 1
        return token.text

    def free(self, line: int, name: str, of: str = "") -> None:
        owner = taken(name)
        if owner:
            raise Refused(line, f"{of}{name}: is taken: {owner}")

    def new_name(self, what: str) -> str:
        line, name = self.next.line, self.name(what)
        self.claim_name(line, name)
        if name in self.passed:
            # Whose declaration would hide it.
            raise Refused(line, f"{name}: there is a parameter of this name already")
        return name

    def new_tag(self, what: str) -> str:
        line, name = self.next.line, self.name(what)
        self.claim_tag(line, name)
        return name

    def claim(self, line: int, name: str, names: set[str]) -> None:
        if name in names:
            raise Refused(line, f"{name}: there is one already")
        names.add(name)

    def claim_name(self, line: int, name: str, of: str = "") -> None:
        self.free(line, name, of)
        if function(name):
            raise Refused(line, f"{of}{name}: is taken: a function of C; members and parameters may be called so")
        self.claim(line, name, self.names)

    def claim_tag(self, line: int, name: str) -> None:
        self.free(line, name)
        if name in DIRECTIONS:
            raise Refused(line, f"{name}: is taken: the direction of a parameter")
        self.claim(line, name, self.tags)

    def value(self, what: str) -> int:
        token = self.next
        self.at += 1
        if token.kind == "number":
            digits = token.text.lstrip("-")
            if len(digits) > DIGITS:
                raise Refused(token.line, f"{what}: a number of {len(digits)} digits; {DIGITS} at most")
            if not NUMBER.fullmatch(token.text):
                form = "; octal digits are 0 to 7" if digits.startswith("0") and digits.isdigit() else ""
                raise Refused(token.line, f"{what}: {token.text} is not a number{form}")
            base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") else 10
            return int(token.text, base)
        if token.kind == "word" and token.text in self.result.constants:
            return self.result.constants[token.text]
        raise Refused(token.line, f"expected {what}, a number or a constant, not '{token.text}'")

    def ranged(self, what: str, least: int, most: int) -> int:
        line, value = self.next.line, self.value(what)
        if not least <= value <= most:
            raise Refused(line, f"{what} {value}: {least}..{most}")
        return value

    # ---- definitions ----

    def program(self) -> Program:
        while self.next.kind != "end":
            token = self.next
            self.at += 1
            match token.text:
                case "const":
                    self.constant()
                case "typedef":
                    self.alias()
                case "enum":
                    self.enumeration()
                case "struct":
                    self.struct()
                case "union":
                    outside(token.line, f"union {self.next.text}", "a value has one form")
                case "program":
                    self.remote_program(token.line)
                case _:
                    raise Refused(token.line, f"expected const, typedef, enum, struct or program, not '{token.text}'")
        if not self.result.name:
            raise Refused(self.next.line, "there is no program")
        return self.result

    def constant(self) -> None:
        name = self.new_name("a constant")
        self.expect("=")
        self.result.constants[name] = self.ranged(f"constant {name}", -((1 << 63) - 1), (1 << 64) - 1)
        self.expect(";")

    def alias(self) -> None:
        line = self.next.line
        kind, name = self.declaration("", "a type")
        if kind is None:
            outside(line, "void", "a type has a value")
        self.claim_tag(line, name)
        if isinstance(kind, Vector):
            kind = Vector(kind.element, kind.bound, name, kind.form)
            self.result.structures[name] = kind
        self.types[name] = kind
        self.expect(";")

    def enumeration(self) -> None:
        name = self.new_tag("an enum")
        values: dict[str, int] = {}
        self.expect("{")
        while True:
            label = self.new_name("an enumerator")
            self.expect("=")
            values[label] = self.ranged(f"enumerator {label}", -(1 << 31), (1 << 31) - 1)
            self.result.constants[label] = values[label]
            if not self.take(","):
                break
        self.expect("}")
        self.expect(";")
        self.result.enums[name] = values
        self.types[name] = Scalar(f"enum {name}", 4, name, tuple(sorted(values.items())))

    def struct(self) -> None:
        if self.next.text == "*":
            outside(self.next.line, "struct *", "optional, and so recursive or of two forms")
        line, name = self.next.line, self.new_tag("a struct")
        self.open = name
        fields: dict[str, Type] = {}
        self.expect("{")
        while not self.take("}"):
            member_line = self.next.line
            kind, label = self.declaration(name, "a member")
            if kind is None:
                outside(member_line, "void", "a member has a value")
            if label in fields:
                raise Refused(member_line, f"{label}: there is one already in struct {name}")
            if isinstance(kind, Vector) and not kind.c:
                kind = Vector(kind.element, kind.bound, f"{name}_{label}", kind.form)
                self.claim_tag(member_line, kind.c)
                self.result.structures[kind.c] = kind
            fields[label] = kind
            self.expect(";")
        self.expect(";")
        self.open = ""
        if not fields:
            outside(line, f"struct {name}", "a struct has members")
        made = structure(name, list(fields.items()))
        self.room(line, made)
        self.types[name] = made
        self.result.structures[name] = made

    def room(self, line: int, kind: Type) -> None:
        if kind.depth > NESTED:
            outside(line, kind.label, f"more than {NESTED} types inside of one another")
        if max(kind.most, kind.size) > ROOM:
            outside(line, kind.label, f"{max(kind.most, kind.size):,} bytes, and {HOLDS} below its flag")

    # ---- declarations ----

    def specifier(self) -> tuple[Type | None, str]:
        """A type's name; None: void. With the word itself, for `string` and `opaque` need a size."""
        token = self.next
        self.at += 1
        word = token.text
        if token.kind != "word":
            raise Refused(token.line, f"expected a type, not '{word}'")
        if word == "unsigned":
            word = "unsigned hyper" if self.take("hyper") else "unsigned int"
            if word == "unsigned int" and not self.take("int") and self.next.text in STRANGERS:
                outside(token.line, f"unsigned {self.next.text}", "int and hyper are the integers")
        if word in SCALARS:
            return SCALARS[word], word
        match word:
            case "void":
                return None, word
            case "string":
                return CHARACTER, word
            case "opaque":
                return BYTE, word
            case "union":
                outside(token.line, f"union {self.next.text}", "a value has one form")
            case "quadruple":
                outside(token.line, word, "C has no such type everywhere")
            case "struct" | "enum":
                if self.next.text == "{":
                    outside(token.line, f"{word} without a name", "define it before, by name")
                token = self.next
                word = self.name("a type")
        if word in self.types:
            return self.types[word], word
        if word == self.open:
            outside(token.line, word, "recursive")
        if word in STRANGERS:
            outside(token.line, word, "int and hyper are the integers")
        outside(token.line, word, "unknown here; a type is defined before its use, so none is recursive")

    def declaration(self, inside: str, what: str, default: str = "") -> tuple[Type | None, str]:
        """A type and a name. `inside`: of which structure; `default`: the name, where there need not be one."""
        line = self.next.line
        kind, word = self.specifier()
        if self.take("*"):
            outside(line, f"{word} *", "optional, and so recursive or of two forms")
        nameless = bool(default) and (self.next.kind != "word" or self.next.text in XDR_WORDS)
        name = default if nameless else self.name(what) if kind is not None or self.next.kind == "word" else ""
        if self.take("*"):
            outside(line, f"{word} *", "optional, and so recursive or of two forms")
        if self.next.text in ("[", "<"):
            if kind is None:
                outside(line, "void", "no array is of nothing")
            kind = self.sized(line, kind, word)
            if self.next.text in ("[", "<"):
                outside(line, f"{word} {name}", "one dimension; define the inner one by typedef")
        elif word in ("string", "opaque"):
            outside(line, word, f"unbounded; {word} {name}<N>")
        if kind is not None:
            self.room(line, kind)
        return kind, name

    def sized(self, line: int, element: Type, word: str) -> Type:
        opening = self.next.text
        self.at += 1
        closing = {"[": "]", "<": ">"}[opening]
        if self.take(closing):
            outside(line, f"{word}{opening}{closing}", "unbounded")
        bound = self.value("a size")
        self.expect(closing)
        label = f"{word}{opening}{bound}{closing}"
        if bound < 1:
            outside(line, label, "a size is at least 1")
        if word == "string" and opening == "[":
            outside(line, label, "strings have a length; opaque has not")
        if bound * element.size > ROOM:
            outside(line, label, f"{HOLDS} bytes below its flag")
        return Array(element, bound) if opening == "[" else Vector(element, bound, "", word)

    # ---- procedures ----

    def remote_program(self, line: int) -> None:
        if self.result.name:
            outside(line, f"program {self.next.text}", "one program a file")
        self.result.name = self.new_name("a program")
        self.expect("{")
        self.expect("version")
        self.name("a version")  # a space of its own, and stubs do not have it (RFC 5531 section 12.3)
        self.expect("{")
        while not self.take("}"):
            self.procedure()
        self.expect("=")
        self.result.version = self.ranged("version", 0, (1 << 32) - 1)
        self.expect(";")
        if self.next.text == "version":
            outside(self.next.line, "version", "one version a program")
        self.expect("}")
        self.expect("=")
        self.result.number = self.ranged("program", 0, (1 << 32) - 1)
        self.expect(";")

    def procedure(self) -> None:
        line = self.next.line
        result, word = self.specifier()
        if self.take("*"):
            outside(line, f"{word} *", "optional, and so recursive or of two forms")
        if word in ("string", "opaque"):
            outside(line, word, f"unbounded; typedef {word} NAME<N>")
        line, name = self.next.line, self.new_name("a procedure")
        self.claim_stubs(line, name)
        parameters = self.parameters()
        self.expect("=")
        number = self.ranged(f"procedure {name}", 0, PROCEDURES - 1)
        self.expect(";")
        if any(other.number == number for other in self.result.procedures):
            raise Refused(line, f"procedure {name}: number {number} is another one's")
        if result is not None:
            parameters.append(Parameter("result", "out", result))
        made = Procedure(name, number, tuple(parameters))
        self.check(line, made)
        self.result.procedures.append(made)

    def claim_stubs(self, line: int, name: str) -> None:
        """Stubs have the name in small letters."""
        stub = name.lower()
        for one in sorted({stub, f"{stub}_serve", f"{stub}_reply", f"{stub}_results"} - {name}):
            self.claim_name(line, one, f"procedure {name}: its stub ")
        for one in (f"{stub}_arguments", f"{stub}_results"):
            self.claim_tag(line, one)

    def parameters(self) -> list[Parameter]:
        self.expect("(")
        if self.take(")"):
            return []
        parameters: list[Parameter] = []
        alone = True
        while True:
            line = self.next.line
            direction = self.next.text if self.next.text in DIRECTIONS else "in"
            self.take(direction)
            default = f"argument_{len(parameters) + 1}"
            kind, name = self.declaration("", "a parameter", default)
            if kind is None:
                if not alone or direction != "in" or self.next.text != ")":
                    outside(line, "void", "a parameter has a value")
                self.expect(")")
                return []
            parameters.append(Parameter(name, direction, kind))
            alone = False
            if not self.take(","):
                break
        self.expect(")")
        if len(parameters) == 1 and parameters[0].name == "argument_1":
            parameters[0] = Parameter("argument", parameters[0].direction, parameters[0].type)
        return parameters

    def check(self, line: int, procedure: Procedure) -> None:
        seen: set[str] = set()
        for back in (False, True):
            for name, kind in procedure.passed(back):
                for one in (name,) if kind.fixed else (name, f"{name}_length", f"{name}_bytes"):
                    if one in seen or one in self.names:
                        raise Refused(line, f"procedure {procedure.name}: there is a {one} already")
                    seen.add(one)
            if procedure.most(back) > ROOM:
                way = "back" if back else "in"
                reason = f"{procedure.most(back):,} bytes {way}, and {HOLDS} below its flag"
                outside(line, f"procedure {procedure.name}", reason)
        self.passed |= seen


def describe(kind: Type) -> str:
    """A type by what it is, not by how it is spelled."""
    match kind:
        case Scalar():
            labels = ",".join(f"{label}={value}" for label, value in kind.labels)
            return f"{kind.label}{{{labels}}}" if labels else kind.label
        case Array():
            return f"{describe(kind.element)}[{kind.count}]"
        case Vector():
            form = kind.form if kind.form in ("string", "opaque") else describe(kind.element)
            return f"{form}<{kind.bound}>"
        case Struct():
            return "{" + ",".join(f"{describe(m.type)} {m.name}" for m in kind.members) + "}"
