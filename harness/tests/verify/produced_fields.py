# SPDX-License-Identifier: Apache-2.0
"""The fields of findings that the sources can produce, read from the calls of `Finding` and `findings`.

A part that is known only when a run is verified is `*`. The walk follows constants, loops over literals, assignments
and parameters within one module; what it cannot follow is an `Unknown` with its place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "sundial"
ROOMS = ("verify", "judge", "workloads", "segments")
ANY = "*"
DEEPEST = 6


@dataclass(frozen=True)
class Produced:
    """A field, or the expression that the walk cannot follow, and where it is written."""

    place: str
    field: str | None
    expression: str


def produced() -> Iterator[Produced]:
    """Of all rooms that make findings."""
    for path in sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")):
        module = Module(path.read_text())
        for call, argument, of_a_leg in module.sites():
            place, text = str(path.relative_to(PACKAGE)), ast.unparse(argument)
            fields = module.resolve(argument, module.function_of(call), of_a_leg=of_a_leg)
            for field in sorted(fields):
                yield Produced(place, None if not field.strip(ANY + " .") else field, text)


class Module:
    """One module, with the function around each of its nodes."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self._function: dict[ast.AST, ast.FunctionDef | None] = {}
        self._note(self.tree, None)
        self.functions = {node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)}
        self.calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]

    def _note(self, node: ast.AST, function: ast.FunctionDef | None) -> None:
        self._function[node] = function
        inner = node if isinstance(node, ast.FunctionDef) else function
        for child in ast.iter_child_nodes(node):
            self._note(child, inner)

    def function_of(self, node: ast.AST) -> ast.FunctionDef | None:
        return self._function[node]

    def sites(self) -> Iterator[tuple[ast.Call, ast.expr, bool]]:
        """Calls that make findings, the expression of the field, and whether a plain text is that of a direction."""
        for call in self.calls:
            name = name_of(call.func)
            if name == "Finding" and len(call.args) > 1:
                yield call, call.args[1], False
            elif name == "findings" and len(call.args) > 2:
                yield call, call.args[2], True
            elif name == "problem" and isinstance(call.func, ast.Name):
                yield call, ast.JoinedStr([ast.Constant("time on the wire: "), call.args[0]]), False
            elif name == "with_columns":
                yield from ((call, each.value, False) for each in call.keywords if each.arg == "field")

    def resolve(
        self, node: ast.expr, function: ast.FunctionDef | None, *, of_a_leg: bool = False, depth: int = 0
    ) -> set[str]:
        if depth > DEEPEST:
            return {ANY}

        def inner(part: ast.expr, where: ast.FunctionDef | None = function) -> set[str]:
            return self.resolve(part, where, of_a_leg=of_a_leg, depth=depth + 1)

        match node:
            case ast.Constant(value=str(text)):
                return {f"request.{text}", f"reply.{text}"} if of_a_leg else {text}
            case ast.JoinedStr(values=parts):
                known = [self.resolve(part, function, depth=depth + 1) for part in parts]
                return {"".join(chosen) for chosen in product(*known)}
            case ast.FormattedValue(value=value):
                return self.resolve(value, function, depth=depth + 1)
            case ast.IfExp(body=one, orelse=other):
                return inner(one) | inner(other)
            case ast.Starred(value=ast.Tuple(elts=[first, *_])):
                return inner(first)
            case ast.Name(id=name):
                return self._named(name, function, of_a_leg, depth)
            case ast.Call(func=func, args=args):
                return self._called(name_of(func), args, function, depth)
        return {ANY}

    def _called(self, name: str, args: list[ast.expr], function: ast.FunctionDef | None, depth: int) -> set[str]:
        if name == "lit" and args:
            return self.resolve(args[0], function, depth=depth + 1)
        if name == "format" and args and isinstance(args[0], ast.Constant):
            return {str(args[0].value).replace("{}", ANY)}
        if name == "leg_field" and args:
            return self.resolve(args[0], function, of_a_leg=True, depth=depth + 1)
        return {ANY}

    def _named(self, name: str, function: ast.FunctionDef | None, of_a_leg: bool, depth: int) -> set[str]:
        found: set[str] = set()
        for scope in (function, self.tree):
            for value in self._values(name, scope) if scope is not None else ():
                found |= self.resolve(value, function, of_a_leg=of_a_leg, depth=depth + 1)
            if found:
                return found
        parameters = [each.arg for each in function.args.args] if function is not None else []
        if function is not None and name in parameters:
            place = parameters.index(name) - (parameters[0] == "self")
            for call in self.calls:
                if name_of(call.func) == function.name:
                    given = next((each.value for each in call.keywords if each.arg == name), None)
                    given = given or (call.args[place] if place < len(call.args) else None)
                    if given is not None and not isinstance(given, ast.Starred):
                        found |= self.resolve(given, self.function_of(call), of_a_leg=of_a_leg, depth=depth + 1)
        return found or {ANY}

    def _values(self, name: str, scope: ast.AST) -> Iterator[ast.expr]:
        """What a name may be within a scope: assigned, or taken from a literal that a loop goes through."""
        nodes = ast.iter_child_nodes(scope) if isinstance(scope, ast.Module) else ast.walk(scope)
        for node in nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from taken(name, target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                yield from taken(name, node.target, node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                for each in self._items(node.iter):
                    yield from taken(name, node.target, each)

    def _items(self, node: ast.expr) -> list[ast.expr]:
        """The items of a literal, or of a constant of the module."""
        if isinstance(node, ast.Name):
            for value in self._values(node.id, self.tree):
                return self._items(value)
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return [part for item in node.elts for part in ([item] if not isinstance(item, ast.Starred) else [])]
        if isinstance(node, ast.Dict):
            return [key for key in node.keys if key is not None]
        if isinstance(node, ast.Call) and name_of(node.func) == "items" and isinstance(node.func, ast.Attribute):
            return [ast.Tuple([key, ast.Constant(None)]) for key in self._items(node.func.value)]
        return []


def name_of(func: ast.expr) -> str:
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


def taken(name: str, target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    """The part of `value` that `target = value` gives to a name."""
    if isinstance(target, ast.Name) and target.id == name:
        yield value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from taken(name, inner, part)
    elif isinstance(target, ast.Tuple) and any(getattr(each, "id", "") == name for each in target.elts):
        yield ast.Name("?")  # not a literal: unknown
