# SPDX-License-Identifier: Apache-2.0
"""C for one value: its declaration, its stores, how many words they are, and taking it from what has come."""

from __future__ import annotations

from .layout import Array, Member, Scalar, Struct, Type, Vector, extent

Lines = list[str]


def declare(kind: Type, name: str) -> str:
    match kind:
        case Array():
            return declare(kind.element, f"{name}[{kind.count}]")
        case Scalar():
            return f"{kind.c} {name}"
        case Struct() | Vector():
            return f"struct {kind.c} {name}"


def pointer(kind: Type, name: str, stars: str = "*") -> str:
    return declare(kind, f"({stars}{name})" if isinstance(kind, Array) else f"{stars}{name}")


def target(kind: Type) -> Type:
    """What a pointer to the value points at: of an array, its first element."""
    return kind.element if isinstance(kind, Array | Vector) else kind


def indented(lines: Lines) -> Lines:
    return [f"    {line}" if line and not line.startswith("#") else line for line in lines]


def each(kind: Type, items: str, count: str, depth: int, inner: str) -> tuple[str, str]:
    """The head of a loop over elements, and the pointer to one."""
    index = f"shrimp_i{depth}"
    step = f"for ({inner} {index} = 0; {index} < {count}; {index}++) {{"
    return step, f"{items}[{index}]" if isinstance(kind, Array) else f"&{items}[{index}]"


# ---- stores ----


def put(kind: Type, at: str, depth: int = 0) -> Lines:
    """Stores the value that `at` points to."""
    if kind.dense:
        return [f"shrimp_at = shrimp_put(shrimp_at, {at}, {kind.used});"]
    if isinstance(kind, Array):
        head, one = each(kind.element, at, str(kind.count), depth, "size_t")
        return [head, *indented(put(kind.element, one, depth + 1)), "}"]
    assert isinstance(kind, Struct | Vector)
    return [f"shrimp_at = shrimp_put_of_{kind.c}(shrimp_at, {at});"]


def size_of(kind: Vector, length: str) -> str:
    return f"(size_t){length} * {kind.element.size}" if kind.element.size > 1 else f"(size_t){length}"


def put_items(kind: Vector, items: str, length: str) -> Lines:
    element = kind.element
    if element.dense and element.used == element.size:
        return [f"shrimp_at = shrimp_put(shrimp_at, {items}, {size_of(kind, length)});"]
    head, one = each(element, items, length, 0, "uint32_t")
    return [head, *indented(put(element, one, 1)), "}"]


def put_vector(kind: Vector, items: str, length: str) -> Lines:
    if kind.items_at == 4:
        return [f"shrimp_at = shrimp_put_counted(shrimp_at, {length}, {items}, {size_of(kind, length)});"]
    return [f"shrimp_at = shrimp_put_word(shrimp_at, {length});", *put_items(kind, items, length)]


def stretches(members: tuple[Member, ...]) -> list[list[Member]]:
    """Members that one store after the other passes without a gap between them."""
    found: list[list[Member]] = []
    for member in members:
        if found and not member.gap and member.type.dense and found[-1][-1].type.dense:
            found[-1].append(member)
        else:
            found.append([member])
    return found


def of_member(member: Member) -> str:
    prefix = "" if isinstance(member.type, Array) else "&"
    return f"{prefix}shrimp_value->{member.name}"


def put_body(kind: Struct | Vector) -> Lines:
    if isinstance(kind, Vector):
        return put_vector(kind, "shrimp_value->items", "shrimp_value->length")
    lines: Lines = []
    for stretch in stretches(kind.members):
        first = stretch[0]
        if not first.type.dense:
            lines += put(first.type, of_member(first))
        else:
            # From the structure's beginning: a member's own address is that of its bytes only.
            where = f"(const uint8_t *)shrimp_value + {first.at}" if first.at else "shrimp_value"
            lines.append(f"shrimp_at = shrimp_put(shrimp_at, {where}, {stretch[-1].end - first.at});")
    return lines


# ---- counting words, which checks the lengths ----


def count(kind: Type, at: str, fail: str, depth: int = 0) -> Lines:
    """Adds the words of the value of variable size that `at` points to."""
    if isinstance(kind, Array):
        head, one = each(kind.element, at, str(kind.count), depth, "size_t")
        return [head, *indented(count(kind.element, one, fail, depth + 1)), "}"]
    assert isinstance(kind, Struct | Vector)
    return [f"if (!shrimp_count_of_{kind.c}({at}, shrimp_words))", f"    return {fail};"]


def count_vector(kind: Vector, items: str, length: str, fail: str) -> Lines:
    lines = [f"if ({length} > {kind.bound})", f"    return {fail};"]
    if kind.element.fixed:
        return [*lines, f"*shrimp_words += ({kind.items_at} + {size_of(kind, length)} + 7) / 8;"]
    head, one = each(kind.element, items, length, 0, "uint32_t")
    return [*lines, "(*shrimp_words)++;", head, *indented(count(kind.element, one, fail, 1)), "}"]


def count_body(kind: Struct | Vector) -> Lines:
    if isinstance(kind, Vector):
        return count_vector(kind, "shrimp_value->items", "shrimp_value->length", "false")
    lines: Lines = []
    for run in kind.runs():
        if run[0].type.fixed:
            lines.append(f"*shrimp_words += {-(-extent(run) // 8)};")
        else:
            lines += count(run[0].type, of_member(run[0]), "false")
    return lines


# ---- taking ----


def take(kind: Type, to: str, fail: str, depth: int = 0) -> Lines:
    """Copies a value of variable size to where `to` points."""
    if isinstance(kind, Array):
        head, one = each(kind.element, to, str(kind.count), depth, "size_t")
        return [head, *indented(take(kind.element, one, fail, depth + 1)), "}"]
    assert isinstance(kind, Struct | Vector)
    return [f"if (!shrimp_take_of_{kind.c}(shrimp_input, {to}))", f"    return {fail};"]


def address(place: str) -> str:
    return place[1:] if place.startswith("*") else f"&{place}"


def take_vector(kind: Vector, items: str, length: str, fail: str) -> Lines:
    """Copies the elements; `length` and `items` are where they go."""
    element = kind.element
    if element.fixed:
        sizes = f"{kind.bound}, {kind.items_at}, {element.size}"
        return [
            f"const void *shrimp_from = shrimp_take_counted(shrimp_input, {sizes}, {address(length)});",
            "if (!shrimp_from)",
            f"    return {fail};",
            f"memcpy({items}, shrimp_from, (size_t){length} * {element.size});",
        ]
    head, one = each(element, items, length, 0, "uint32_t")
    return [
        f"if (!shrimp_take_counted(shrimp_input, {kind.bound}, 8, 0, {address(length)}))",
        f"    return {fail};",
        head,
        *indented(take(element, one, fail, 1)),
        "}",
    ]


def take_body(kind: Struct | Vector) -> Lines:
    if isinstance(kind, Vector):
        return take_vector(kind, "shrimp_value->items", "shrimp_value->length", "false")
    lines: Lines = []
    runs = kind.runs()
    if any(run[0].type.fixed for run in runs):
        lines.append("const void *shrimp_from;")
    for run in runs:
        if not run[0].type.fixed:
            lines += take(run[0].type, of_member(run[0]), "false")
            continue
        size = extent(run)
        where = f"(uint8_t *)shrimp_value + {run[0].at}" if run[0].at else "shrimp_value"
        lines += [
            f"shrimp_from = shrimp_take(shrimp_input, {size});",
            "if (!shrimp_from)",
            "    return false;",
            f"memcpy({where}, shrimp_from, {size});",
        ]
    return lines
