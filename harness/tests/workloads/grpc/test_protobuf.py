# SPDX-License-Identifier: Apache-2.0
"""Messages against the protobuf library, which has the same types from a descriptor of our own."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from sundial.workloads.functions import BY_NAME, NAMES, Person
from sundial.workloads.grpc import expect_protobuf as expect

_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "string": _FIELD.TYPE_STRING,
    "float": _FIELD.TYPE_FLOAT,
}
_MESSAGES = {
    **{f"One_{name}": [("value", name, False)] for name in _TYPES},
    **{f"Many_{name}": [("values", name, True)] for name in ("int32", "float", "string")},
    "Person": [("name", "string", False), ("age", "int32", False), ("weight", "float", False)],
    "Points": [("first", "float", True), ("second", "float", True)],
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="trial.proto", package="trial", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field, kind, repeated) in enumerate(fields, 1):
            label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
            message.field.add(name=field, number=number, type=_TYPES[kind], label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"trial.{name}")) for name in _MESSAGES}


CLASSES = _classes()
_INT32 = st.integers(-(2**31), 2**31 - 1)
_FLOAT = st.floats(width=32, allow_nan=False)
_TEXT = st.text(st.characters(codec="utf-8"), max_size=300)


def _one(kind: str, value: Any) -> bytes:
    return bytes(CLASSES[f"One_{kind}"](value=value).SerializeToString())


def _many(kind: str, values: Any) -> bytes:
    return bytes(CLASSES[f"Many_{kind}"](values=values).SerializeToString())


@given(st.booleans(), _INT32, st.integers(-(2**63), 2**63 - 1), _TEXT, _FLOAT)
def test_single_values(flag: bool, small: int, large: int, text: str, real: float) -> None:
    assert expect.integer(1, flag) == _one("bool", flag)
    assert expect.integer(1, small) == _one("int32", small)
    assert expect.integer(1, large) == _one("int64", large)
    assert expect.text(1, text) == _one("string", text)
    assert expect.real(1, real) == _one("float", real)


@given(st.lists(_INT32, max_size=80), st.lists(_FLOAT, max_size=80), st.lists(_TEXT, max_size=5))
def test_arrays(whole: list[int], reals: list[float], texts: list[str]) -> None:
    assert expect.integers(1, whole) == _many("int32", whole)
    assert expect.reals(1, reals) == _many("float", reals)
    assert expect.texts(1, texts) == _many("string", texts)


@given(_TEXT, _INT32, _FLOAT)
def test_persons(name: str, age: int, weight: float) -> None:
    written = CLASSES["Person"](name=name, age=age, weight=weight).SerializeToString()
    assert expect.person(Person(name, age, weight)) == written


def _library(name: str, value: Any) -> bytes:
    """The message of an argument or a result as the library writes it."""
    kinds = {"boolean": "bool", "int": "int32", "long": "int64"}
    if value is None:
        return b""
    if isinstance(value, Person):
        return bytes(CLASSES["Person"](**vars(value)).SerializeToString())
    if isinstance(value, tuple):
        return _many({"int_array": "int32", "float_array": "float", "string_array": "string"}[name], value)
    if isinstance(value, float):
        return _one("float", value)
    return _one(kinds.get(name, "string"), value)


@pytest.mark.parametrize("name", NAMES)
def test_the_twelve(name: str) -> None:
    function = BY_NAME[name]
    request, reply = expect.messages(name)
    assert reply == _library(name, function.result)
    if name == "distance":
        first, second = function.arguments
        assert request == CLASSES["Points"](first=first, second=second).SerializeToString()
    else:
        assert request == reply
