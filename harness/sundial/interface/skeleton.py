# SPDX-License-Identifier: Apache-2.0
"""The C of an interface: its types and filters, stubs, and a server and a client to be changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sundial.errors import BadInput
from sundial.interface.language import inside
from sundial.interface.types import (
    Arm,
    Array,
    Enum,
    Field,
    Interface,
    Named,
    Opaque,
    Optional,
    Plain,
    Procedure,
    String,
    Struct,
    Type,
    Union,
)

MESSAGE_MOST = 1 << 20
"""Bytes that arguments or results may have at least: a message is held in memory."""
_C = {
    "int": ("int32_t", "xdr_int"),
    "unsigned int": ("uint32_t", "xdr_unsigned"),
    "hyper": ("int64_t", "xdr_hyper"),
    "unsigned hyper": ("uint64_t", "xdr_unsigned_hyper"),
    "float": ("float", "xdr_float"),
    "double": ("double", "xdr_double"),
    "quadruple": ("struct xdr_quadruple", "xdr_quadruple"),
    "bool": ("bool", "xdr_bool"),
}
_TAKEN = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof
    bool true false errno stdin stdout stderr
    """.split()  # noqa: SIM905
)
"""Words of C and macros of its headers, of which a member cannot have the name."""
_DISCRIMINANT_OTHER = "arm"
"""The member of a union's struct that has its forms."""


@dataclass(frozen=True)
class Stub:
    """One procedure as C has it."""

    name: str
    program: int
    version: int
    procedure: Procedure


@dataclass
class Sources:
    """Writes the C of one interface. `prefix` is before each name of it."""

    interface: Interface
    prefix: str
    file: str
    """The interface's, as errors name it."""
    types: dict[str, Type] = field(default_factory=dict)
    """All with names: those of the file, and those that its types and procedures have inside."""
    stubs: list[Stub] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, kind in self.interface.types.items():
            self._define(name, self._inner(kind, name))
        many = len(self.interface.programs) > 1
        for program, version, procedure in self.interface.procedures():
            name = f"{program.name}_{procedure.name}" if many else procedure.name
            stub = Stub(f"{name}_{version.number}", program.number, version.number, procedure)
            self.stubs.append(stub)
            result = () if procedure.result is None else (Field("result", procedure.result),)
            for what, fields in (("arguments", procedure.arguments), ("results", result)):
                self._message(f"{stub.name}_{what}", fields)
        self._order = self._ordered()

    def _message(self, name: str, fields: Sequence[Field]) -> None:
        if not fields:
            return
        least = self.interface.least(Struct(fields))
        if least > MESSAGE_MOST:
            allowed = f"up to {MESSAGE_MOST}, or an array of variable length"
            raise BadInput(f"{name} has at least {least} bytes", file=self.file, allowed=allowed)
        self._define(name, self._inner(Struct(fields), name))

    def _define(self, name: str, kind: Type) -> None:
        if name in self.types or (name in self.interface.constants):
            raise BadInput(f"{name} would be the name of two types in C", file=self.file, allowed="another name")
        self.types[name] = kind

    def _inner(self, kind: Type, name: str) -> Type:
        """The type with names for what it defines inside."""
        match kind:
            case Array() | Optional():
                return replace(kind, element=self._outer(kind.element, f"{name}_item"))
            case Struct():
                return Struct(tuple(self._field(each, name) for each in kind.fields))
            case Union():
                arms = [replace(arm, field=arm.field and self._field(arm.field, name)) for arm in kind.forms]
                count = len(kind.arms)
                return Union(self._field(kind.discriminant, name), arms[:count], next(iter(arms[count:]), None))
        return kind

    def _field(self, each: Field, name: str) -> Field:
        part = f"{name}_{each.name}"
        outer = isinstance(each.type, Enum | Struct | Union)
        return Field(each.name, self._outer(each.type, part) if outer else self._inner(each.type, part))

    def _outer(self, kind: Type, name: str) -> Type:
        if isinstance(kind, Plain | Named):
            return kind
        self._define(name, self._inner(kind, name))
        return Named(name)

    # ---- order ----

    def _ordered(self) -> list[str]:
        """Types, each behind those that C must know first."""
        order: list[str] = []
        open_: list[str] = []

        def visit(name: str) -> None:
            if name in order:
                return
            if name in open_:
                what = f"{name} is only pointers to itself, which C cannot say"
                raise BadInput(what, file=self.file, line=self.interface.lines.get(name), allowed="a struct in between")
            open_.append(name)
            for other in self._needs(self.types[name]):
                visit(other)
            open_.pop()
            order.append(name)

        for name in self.types:
            visit(name)
        return order

    def _needs(self, kind: Type) -> Iterator[str]:
        yield from inside(kind)
        parts: list[Type] = [kind]
        if isinstance(kind, Struct):
            parts = [each.type for each in kind.fields]
        elif isinstance(kind, Union):
            parts = [arm.field.type for arm in kind.forms if arm.field]
        for part in parts:
            if (
                isinstance(part, Optional | Array)
                and isinstance(part.element, Named)
                and not self._tagged(part.element.name)
            ):
                yield part.element.name

    def _tagged(self, name: str) -> bool:
        """Whether a type is a struct in C, which can be declared before it is defined."""
        kind = self.types[name]
        return isinstance(kind, Struct | Union) or (isinstance(kind, Array) and not kind.fixed)

    # ---- declarations ----

    def _name(self, name: str) -> str:
        return f"{self.prefix}_{name}"

    def _type(self, kind: Type) -> str:
        return _C[kind.name][0] if isinstance(kind, Plain) else self._name(kind.name)  # type: ignore[union-attr]

    def _declared(self, kind: Type, name: str) -> str:
        """The declaration of a member or a typedef."""
        match kind:
            case Opaque() if kind.fixed:
                return f"uint8_t {name}[{kind.most}]"
            case Opaque() | String():
                return f"struct xdr_bytes {name}"
            case Array() if kind.fixed:
                return f"{self._type(kind.element)} {name}[{kind.most}]"
            case Array():
                return f"struct {{ uint32_t length; {self._type(kind.element)} *items; }} {name}"
            case Optional():
                return f"{self._type(kind.element)} *{name}"
        return f"{self._type(kind)} {name}"

    def _definition(self, name: str) -> str:
        kind, own = self.types[name], self._name(name)
        match kind:
            case Struct():
                return f"struct {own} {{\n{self._members(kind.fields)}}};\n"
            case Union():
                forms = [arm.field for arm in kind.forms if arm.field]
                inner = "".join(f"        {self._declared(each.type, member(each.name))};\n" for each in forms)
                both = f"    union {{\n{inner}    }} {self._forms(kind)};\n" if forms else ""
                return f"struct {own} {{\n{self._members([kind.discriminant])}{both}}};\n"
            case Enum():
                labels = "".join(f"    {self._name(label)} = {value},\n" for label, value in kind.labels.items())
                return f"typedef enum {own} {{\n{labels}}} {own};\n"
            case Array() if not kind.fixed:
                return f"struct {own} {{\n    uint32_t length;\n    {self._type(kind.element)} *items;\n}};\n"
        return f"typedef {self._declared(kind, own)};\n"

    def _members(self, fields: Sequence[Field]) -> str:
        return "".join(f"    {self._declared(each.type, member(each.name))};\n" for each in fields)

    def _forms(self, kind: Union) -> str:
        name = _DISCRIMINANT_OTHER
        return f"{name}s" if kind.discriminant.name == name else name

    def header(self) -> str:
        """PREFIX.h."""
        guard = f"{self.prefix.upper()}_H"
        constants = "".join(
            f"#define {self._name(name)} {number(value)}\n" for name, value in self.interface.constants.items()
        )
        forward = "".join(
            f"typedef struct {self._name(name)} {self._name(name)};\n" for name in self._order if self._tagged(name)
        )
        definitions = "\n".join(self._definition(name) for name in self._order)
        filters = "".join(f"xdr_filter {self._filter(Named(name))};\n" for name in self._order)
        calls = "".join(f"{self._call(stub)};\n" for stub in self.stubs)
        serves = "".join(f"{self.serve(stub)};\n" for stub in self.stubs)
        return (
            f"// From {self.file}, by `sundial rpc new`.\n#ifndef {guard}\n#define {guard}\n\n"
            f'#include "rpc.h"\n\n{constants}\n{forward}\n{definitions}\n{filters}\n'
            f"// Of a client: NULL, or what failed. Results are good until xdr_forget(&client->memory).\n{calls}\n"
            "// Of a server, in server.c: false is SYSTEM_ERR. What results point to is from xdr_new(memory, ...).\n"
            f"{serves}\nint {self.prefix}_serve(const char *port);\n\n#endif\n"
        )

    # ---- filters ----

    def _filter(self, kind: Type) -> str:
        return _C[kind.name][1] if isinstance(kind, Plain) else f"xdr_{self._name(kind.name)}"  # type: ignore[union-attr]

    def _filtered(self, kind: Type, at: str) -> str:
        """The call that filters a value."""
        match kind:
            case Opaque() if kind.fixed:
                return f"xdr_opaque(xdr, {at}, {kind.most})"
            case Opaque() | String():
                return f"xdr_bytes(xdr, &{at}, {kind.most}u, {'true' if isinstance(kind, String) else 'false'})"
            case Array() if kind.fixed:
                return f"xdr_vector(xdr, {at}, {kind.most}u, sizeof {at}[0], {self._filter(kind.element)})"
            case Array():
                sizes = f"{kind.most}u, sizeof *{at}.items, {self._least(kind.element)}u"
                return f"xdr_array(xdr, &{at}.length, (void **)&{at}.items, {sizes}, {self._filter(kind.element)})"
            case Optional():
                return f"xdr_optional(xdr, (void **)&{at}, sizeof *{at}, {self._filter(kind.element)})"
        return f"{self._filter(kind)}(xdr, &{at})"

    def _least(self, kind: Type) -> int:
        whole = Interface(types=self.types)
        return whole.least(kind)

    def _filter_of(self, name: str) -> str:
        kind, own = self.types[name], self._name(name)
        begin = f"bool {self._filter(Named(name))}(struct xdr *xdr, void *value)\n{{\n"
        match kind:
            case Enum():
                values = ", ".join(number(value) for value in dict.fromkeys(kind.labels.values()))
                count = len(set(kind.labels.values()))
                body = f"    static const int32_t values[] = {{{values}}};\n"
                body += f"    return xdr_enum(xdr, value, values, {count});\n"
            case Struct():
                parts = [self._filtered(each.type, f"own->{member(each.name)}") for each in kind.fields]
                body = f"    {own} *own = value;\n    return " + " &&\n        ".join(parts) + ";\n"
            case Union():
                body = f"    {own} *own = value;\n{self._switch(kind)}"
            case _:
                body = f"    {own} *own = value;\n    return {self._filtered(kind, '(*own)')};\n"
        return f"{begin}{body}}}\n"

    def _switch(self, kind: Union) -> str:
        which = f"own->{member(kind.discriminant.name)}"
        cases = ", ".join(number(arm.values[0]) for arm in kind.arms)
        text = (
            f"    static const int64_t cases[] = {{{cases}}};\n"
            f"    if (xdr->operation == XDR_SAMPLE)\n        {which} = cases[xdr_choice(xdr, {len(kind.arms)})];\n"
            f"    else if (!{self._filtered(kind.discriminant.type, which)})\n        return false;\n"
            f"    switch ((int64_t){which}) {{\n"
        )
        for arm in kind.arms:
            text += "".join(f"    case {number(value)}:\n" for value in arm.values) + self._form(kind, arm)
        last = "        return false;\n" if kind.default is None else self._form(kind, kind.default)
        return f"{text}    default:\n{last}    }}\n"

    def _form(self, kind: Union, arm: Arm) -> str:
        if arm.field is None:
            return "        return true;\n"
        return (
            f"        return {self._filtered(arm.field.type, f'own->{self._forms(kind)}.{member(arm.field.name)}')};\n"
        )

    # ---- stubs ----

    def _call(self, stub: Stub) -> str:
        words = ["struct rpc_client *client", *self._given(stub, "")]
        return f"const char *{self.prefix}_call_{stub.name}({', '.join(words)})"

    def serve(self, stub: Stub) -> str:
        """The prototype of a server's procedure."""
        words = [*self._given(stub, "const "), "struct xdr *memory"]
        return f"bool {self.prefix}_serve_{stub.name}({', '.join(words)})"

    def _given(self, stub: Stub, constant: str) -> Iterator[str]:
        if stub.procedure.arguments:
            yield f"{constant}{self._name(stub.name)}_arguments *arguments"
        if stub.procedure.result is not None:
            yield f"{self._name(stub.name)}_results *results"

    def _row(self, stub: Stub, serve: str) -> str:
        procedure = stub.procedure
        words = [f"{stub.program}u", f"{stub.version}u", f"{procedure.number}u", f'"{stub.name}"']
        takes = (("arguments", bool(procedure.arguments)), ("results", procedure.result is not None))
        words += [f"xdr_{self._name(stub.name)}_{what}" if there else "NULL" for what, there in takes]
        words += [f"sizeof({self._name(stub.name)}_{what})" if there else "0" for what, there in takes]
        return f"{{{', '.join([*words, serve])}}}"

    def rpc(self) -> str:
        """PREFIX_rpc.c: filters and the stubs of clients."""
        text = f'// From {self.file}, by `sundial rpc new`.\n#include "{self.prefix}.h"\n'
        for name in self._order:
            text += f"\n{self._filter_of(name)}"
        for stub in self.stubs:
            there = ["arguments" if stub.procedure.arguments else "NULL"]
            there.append("NULL" if stub.procedure.result is None else "results")
            text += (
                f"\n{self._call(stub)}\n{{\n"
                f"    static const struct rpc_procedure procedure =\n        {self._row(stub, 'NULL')};\n"
                f"    return rpc_call(client, &procedure, {', '.join(there)});\n}}\n"
            )
        return text

    def service(self) -> str:
        """PREFIX_serve.c: the table of a server."""
        text = f'// From {self.file}, by `sundial rpc new`.\n#include "{self.prefix}.h"\n'
        rows = ""
        for stub in self.stubs:
            there = ["arguments"] if stub.procedure.arguments else []
            there += [] if stub.procedure.result is None else ["results"]
            text += (
                f"\nstatic bool serve_{stub.name}(void *arguments, void *results, struct xdr *memory)\n{{\n"
                f"    return {self.prefix}_serve_{stub.name}({', '.join([*there, 'memory'])});\n}}\n"
            )
            rows += f"    {self._row(stub, f'serve_{stub.name}')},\n"
        return (
            f"{text}\nint {self.prefix}_serve(const char *port)\n{{\n"
            f"    static const struct rpc_procedure procedures[] = {{\n{rows.replace('    {', '        {')}    }};\n"
            "    return rpc_serve(procedures, sizeof procedures / sizeof *procedures, port);\n}\n"
        )

    # ---- what is to be changed ----

    def server(self) -> str:
        """server.c."""
        text = (
            f"// The procedures of {self.file}. They answer with samples: other numbers and texts in each part.\n"
            f'// Put your own code in their places.\n#include "{self.prefix}.h"\n'
        )
        for stub in self.stubs:
            if stub.procedure.result is None:
                body = "    return true;\n"
            else:
                body = (
                    "    // Your own: results->result = ...; return true;\n"
                    f"    return xdr_sample(memory, xdr_{self._name(stub.name)}_results, results);\n"
                )
            text += f"\n{self.serve(stub)}\n{{\n{body}}}\n"
        return (
            f"{text}\nint main(int argc, char **argv)\n{{\n    if (argc != 2) {{\n"
            f'        fprintf(stderr, "usage: {self.prefix}-server PORT\\n");\n        return 2;\n    }}\n'
            f"    return {self.prefix}_serve(argv[1]);\n}}\n"
        )

    def client(self) -> str:
        """client.c."""
        text = (
            f"// Calls each procedure of {self.file}, with samples as arguments.\n"
            "// Put your own in their places.\n#include <stdlib.h>\n#include <string.h>\n\n"
            f'#include "{self.prefix}.h"\n'
        )
        for stub in self.stubs:
            there, begin = ["client"], ""
            if stub.procedure.arguments:
                there.append("&arguments")
                begin += f"    {self._name(stub.name)}_arguments arguments;\n"
            if stub.procedure.result is not None:
                there.append("&results")
                begin += f"    {self._name(stub.name)}_results results;\n"
            if stub.procedure.arguments:
                begin += (
                    f"    // Your own: arguments.{member(stub.procedure.arguments[0].name)} = ...;\n"
                    f"    if (!xdr_sample(&client->memory, xdr_{self._name(stub.name)}_arguments, &arguments))\n"
                    '        return "no memory";\n'
                )
            text += (
                f"\nstatic const char *call_{stub.name}(struct rpc_client *client)\n{{\n{begin}"
                f"    return {self.prefix}_call_{stub.name}({', '.join(there)});\n}}\n"
            )
        rows = "".join(f'        {{"{stub.name}", call_{stub.name}}},\n' for stub in self.stubs)
        return text + _MAIN.replace("PREFIX", self.prefix).replace("ROWS", rows)


_MAIN = r"""
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        const char *(*call)(struct rpc_client *client);
    } calls[] = {
ROWS    };
    if (argc != 5 || (strcmp(argv[3], "udp") && strcmp(argv[3], "tcp"))) {
        fprintf(stderr, "usage: PREFIX-client SERVER PORT udp|tcp TIMES\n");
        return 2;
    }
    struct rpc_client client;
    const char *failure = rpc_open(&client, argv[1], argv[2], !strcmp(argv[3], "tcp"));
    if (failure) {
        fprintf(stderr, "%s port %s: %s\n", argv[1], argv[2], failure);
        return 1;
    }
    int status = 0;
    for (long i = strtol(argv[4], NULL, 10); i > 0; i--)
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
            failure = calls[k].call(&client);
            if (failure) {
                fprintf(stderr, "%s: %s\n", calls[k].name, failure);
                status = 1;
            }
            xdr_forget(&client.memory);
        }
    rpc_close(&client);
    return status;
}
"""


def member(name: str) -> str:
    """The name of a member in C: with one more _ where C or a macro has it."""
    bare = name.rstrip("_")
    return f"{name}_" if bare in _TAKEN or (bare.isupper() and len(bare) > 1) else name


def number(value: int) -> str:
    """A number in C."""
    if value > (1 << 63) - 1:
        return f"UINT64_C({value})"
    if value == -(1 << 63):
        return f"(-INT64_C({(1 << 63) - 1}) - 1)"
    return f"(-INT64_C({-value}))" if value < 0 else f"INT64_C({value})" if value > (1 << 31) - 1 else str(value)


def datagrams(interface: Interface) -> bool:
    """Whether all calls and replies fit into datagrams, as far as their fixed parts go."""
    fields = [(procedure.arguments, procedure.result) for _, _, procedure in interface.procedures()]
    sizes = [max(sum(interface.least(each.type) for each in some), interface.least(result)) for some, result in fields]
    return max(sizes) <= _DATAGRAM


_DATAGRAM = 32_000
"""Half of a datagram: samples have variable parts, too."""
