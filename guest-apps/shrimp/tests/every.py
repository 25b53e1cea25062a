# SPDX-License-Identifier: Apache-2.0
"""Every type in every direction: an interface, what its types are by the reference, and a server and a client in C.

A call that comes to the outer server is passed on, by a client's stub, to an inner server; what that answers is the
answer. So Python has to know bytes only. The inner one keeps the last value that came by IN, and gives it back by OUT.
"""

from __future__ import annotations

from reference import Kind, Many, Plain, Record

INT, UNSIGNED = Plain("int", "i"), Plain("unsigned int", "I")
HYPER, LONG = Plain("hyper", "q"), Plain("unsigned hyper", "Q")
FLOAT, DOUBLE = Plain("float", "f"), Plain("double", "d")
BYTE, CHARACTER = Plain("opaque", "B"), Plain("string", "B")
COLOUR = Plain("colour", "i", -1, 7)
TIGHT = Record((INT, FLOAT, HYPER))
GAPS = Record((Many(BYTE, 3, False), INT, HYPER, INT))
NEST = Record((INT, GAPS, Many(GAPS, 2, False), UNSIGNED))
WORD = Many(CHARACTER, 6, True)
MIXED = Record(
    (Many(CHARACTER, 9, True), INT, FLOAT, GAPS, Many(INT, 4, True), Many(HYPER, 2, True), Many(WORD, 3, False))
)

DEFINITIONS = """
enum colour { COLOUR_NONE = -1, COLOUR_RED = 0, COLOUR_BLUE = 7 };
struct tight { int a; float b; hyper c; };
struct gaps { opaque a[3]; int b; hyper c; int d; };
struct nest { int first; gaps one; gaps two[2]; unsigned last; };
typedef string word<6>;
typedef int triple[3];
struct mixed { string name<9>; int age; float weight; gaps inner; int some<4>; hyper wide<2>; word words[3]; };
"""
# Name: the declaration in .x with NAME for its name, the reference's type, and the C type of an element (or of all).
TYPES: dict[str, tuple[str, Kind, str]] = {
    "t_int": ("int NAME", INT, "int32_t"),
    "t_unsigned": ("unsigned int NAME", UNSIGNED, "uint32_t"),
    "t_hyper": ("hyper NAME", HYPER, "int64_t"),
    "t_long": ("unsigned hyper NAME", LONG, "uint64_t"),
    "t_float": ("float NAME", FLOAT, "float"),
    "t_double": ("double NAME", DOUBLE, "double"),
    "t_bool": ("bool NAME", Plain("bool", "i", 0, 1), "shrimp_bool"),
    "t_colour": ("colour NAME", COLOUR, "enum colour"),
    "t_bytes": ("opaque NAME[13]", Many(BYTE, 13, False), "uint8_t"),
    "t_ints": ("int NAME[3]", Many(INT, 3, False), "int32_t"),
    "t_hypers": ("hyper NAME[2]", Many(HYPER, 2, False), "int64_t"),
    "t_text": ("string NAME<21>", Many(CHARACTER, 21, True), "char"),
    "t_data": ("opaque NAME<64>", Many(BYTE, 64, True), "uint8_t"),
    "t_numbers": ("int NAME<7>", Many(INT, 7, True), "int32_t"),
    "t_doubles": ("double NAME<5>", Many(DOUBLE, 5, True), "double"),
    "t_triples": ("triple NAME<4>", Many(Many(INT, 3, False), 4, True), "triple_of_int"),
    "t_tight": ("tight NAME", TIGHT, "struct tight"),
    "t_gaps": ("gaps NAME", GAPS, "struct gaps"),
    "t_nest": ("nest NAME", NEST, "struct nest"),
    "t_gaps_two": ("gaps NAME[2]", Many(GAPS, 2, False), "struct gaps"),
    "t_tight_some": ("tight NAME<3>", Many(TIGHT, 3, True), "struct tight"),
    "t_gaps_some": ("gaps NAME<3>", Many(GAPS, 3, True), "struct gaps"),
    "t_mixed": ("mixed NAME", MIXED, "struct mixed"),
    "t_words": ("word NAME<5>", Many(WORD, 5, True), "struct word"),
    "t_words_two": ("word NAME[2]", Many(WORD, 2, False), "struct word"),
    "t_mixed_some": ("mixed NAME<2>", Many(MIXED, 2, True), "struct mixed"),
}
# Numbers of procedures: these, and 10 for each type.
IN, OUT, INOUT, BOTH, RETURN = range(1, 6)


def number(name: str, way: int) -> int:
    return 10 * list(TYPES).index(name) + way


def interface() -> str:
    """BOTH has a value of the type between two others, so that no type is only ever the last."""
    lines = [DEFINITIONS]
    procedures = []
    for name, (declaration, _, _) in TYPES.items():
        value, again = declaration.replace("NAME", "v"), declaration.replace("NAME", "w")
        lines.append("typedef " + declaration.replace("NAME", f"{name}_type") + ";")
        procedures += [
            f"void {name}_IN(in {value}) = {number(name, IN)};",
            f"void {name}_OUT(out {value}) = {number(name, OUT)};",
            f"void {name}_INOUT(inout {value}) = {number(name, INOUT)};",
            f"int {name}_BOTH(int a, inout {value}, out {again}, hyper b) = {number(name, BOTH)};",
            f"{name}_type {name}_RETURN({name}_type) = {number(name, RETURN)};",
        ]
    return "\n".join([*lines, "program EVERY { version FIRST {", *procedures, "} = 1; } = 0x20000001;"])


HEAD = """
#define _GNU_SOURCE
#include <sys/mman.h>
#include "every_shrimp.h"
typedef int32_t triple_of_int[3];
enum { BUFFER = EVERY_SHRIMP_PAGES * SHRIMP_PAGE };
static uint8_t *buffers[4];
static uint64_t scratches[2][EVERY_SHRIMP_SCRATCH / 8 + 1];
static struct shrimp_server outer, inner;
static struct shrimp_client between;
uint8_t *buffer(int index);
void reset(void);
int serve(void);
uint32_t pages(void);
static uint16_t idle(struct shrimp_client *client) { (void)client; return shrimp_serve(&inner) ? SHRIMP_OK : SHRIMP_GONE; }
uint8_t *buffer(int index) { return buffers[index]; }
int serve(void) { return shrimp_serve(&outer); }
uint32_t pages(void) { return EVERY_SHRIMP_PAGES; }
void reset(void)
{
    for (int i = 0; i < 4; i++) {
        if (buffers[i])
            munmap(buffers[i] - SHRIMP_PAGE, BUFFER + 2 * SHRIMP_PAGE);
        uint8_t *all = mmap(NULL, BUFFER + 2 * SHRIMP_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        buffers[i] = all + SHRIMP_PAGE;
        mprotect(buffers[i], BUFFER, PROT_READ | PROT_WRITE);
    }
    shrimp_server_init(&outer, &every_shrimp, buffers[0], buffers[1], scratches[0], &between);
    shrimp_server_init(&inner, &every_shrimp, buffers[2], buffers[3], scratches[1], NULL);
    shrimp_client_init(&between, EVERY_SHRIMP_PAGES, buffers[3], buffers[2], idle, NULL);
    between.turns = 1;
}
"""


def glue() -> str:
    return HEAD + "".join(glue_of(name, kind, c) for name, (_, kind, c) in TYPES.items())


def glue_of(name: str, kind: Kind, c: str) -> str:
    scalar, record = isinstance(kind, Plain), isinstance(kind, Record)
    counted = isinstance(kind, Many) and kind.counted
    in_place = kind.fixed or (isinstance(kind, Many) and kind.counted and kind.element.fixed)
    if scalar:
        give, slot, keep, kept = f"{c} v", f"static {c} slot_{name};", f"slot_{name} = v;", f"slot_{name}"
    elif record:
        give, slot, keep, kept = f"const {c} *v", f"static {c} slot_{name};", f"slot_{name} = *v;", f"&slot_{name}"
    else:
        assert isinstance(kind, Many)
        give, slot, kept = f"const {c} *v", f"static {c} slot_{name}[{kind.count}];", f"slot_{name}"
        keep = f"memcpy(slot_{name}, v, sizeof slot_{name});"
    if name == "t_triples":
        # What C says of an array of arrays with `const` in front: the array itself is not.
        give = "const int32_t (*v)[3]"
    passed = "v"
    if counted:
        give += ", uint32_t v_length"
        slot += f" static uint32_t slot_{name}_length;"
        keep = f"slot_{name}_length = v_length; memcpy(slot_{name}, v, v_length * sizeof *v);"
        kept += f", slot_{name}_length"
        passed = "v, v_length"
    if scalar:
        local = f"{c} NAME;"
        fill, use = "&NAME", "NAME"
    elif in_place:
        local = f"const {'int32_t (*NAME)[3]' if name == 't_triples' else f'{c} *NAME'};"
        fill, use = "&NAME", "NAME"
    elif record:
        local, fill, use = f"static {c} NAME;", "&NAME", "&NAME"
    else:
        assert isinstance(kind, Many)
        local, fill, use = f"static {c} NAME[{kind.count}];", "NAME", "NAME"
    if counted:
        local, fill, use = local + " uint32_t NAME_length;", fill + ", &NAME_length", use + ", NAME_length"

    def of(template: str, label: str) -> str:
        return template.replace("NAME", label)

    call = "uint16_t status = {0}; if (status) return status;"
    lower = name
    if name == "t_triples":
        kept, passed = f"(const int32_t (*)[3])slot_{name}, slot_{name}_length", "v, v_length"
    return f"""
{slot}
uint16_t {lower}_in_serve(struct shrimp_server *self, {give})
{{
    if (self->context)
        return {lower}_in(self->context, {passed});
    {keep}
    return 0;
}}
uint16_t {lower}_out_serve(struct shrimp_server *self)
{{
    if (!self->context)
        return {lower}_out_reply(self, {kept});
    {of(local, "o")}
    {call.format(f"{lower}_out(self->context, {of(fill, 'o')})")}
    return {lower}_out_reply(self, {of(use, "o")});
}}
uint16_t {lower}_inout_serve(struct shrimp_server *self, {give})
{{
    if (!self->context)
        return {lower}_inout_reply(self, {passed});
    {of(local, "o")}
    {call.format(f"{lower}_inout(self->context, {passed}, {of(fill, 'o')})")}
    return {lower}_inout_reply(self, {of(use, "o")});
}}
uint16_t {lower}_both_serve(struct shrimp_server *self, int32_t a, {give}, int64_t b)
{{
    if (!self->context)
        return {lower}_both_reply(self, {passed}, {passed}, (int32_t)((uint32_t)a ^ (uint32_t)b));
    {of(local, "o")} {of(local, "w")} int32_t r;
    {call.format(f"{lower}_both(self->context, a, {passed}, b, {of(fill, 'o')}, {of(fill, 'w')}, &r)")}
    return {lower}_both_reply(self, {of(use, "o")}, {of(use, "w")}, r);
}}
uint16_t {lower}_return_serve(struct shrimp_server *self, {give.replace("v_length", "argument_length")})
{{
    {"uint32_t v_length = argument_length;" if counted else ""}
    if (!self->context)
        return {lower}_return_reply(self, {passed});
    {of(local, "o")}
    {call.format(f"{lower}_return(self->context, {passed}, {of(fill, 'o')})")}
    return {lower}_return_reply(self, {of(use, "o")});
}}
"""
