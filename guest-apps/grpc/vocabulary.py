# SPDX-License-Identifier: Apache-2.0
"""The twelve functions as gRPC has them: the method, the request and the reply of each."""

from typing import Any

from sundial_grpc import functions_pb2 as pb
from sundial_guest.functions import BY_NAME, Person

PORT = 50051
METHODS = {
    "void": "Void",
    "boolean": "Boolean",
    "int": "Int",
    "long": "Long",
    "string_32": "String32",
    "string_512": "String512",
    "string_1024": "String1024",
    "int_array": "IntArray",
    "float_array": "FloatArray",
    "string_array": "StringArray",
    "person": "Person",
    "distance": "Distance",
}
_TYPES = {
    "boolean": pb.BooleanValue,
    "int": pb.IntValue,
    "long": pb.LongValue,
    **dict.fromkeys(("string_32", "string_512", "string_1024"), pb.StringValue),
}
_ARRAYS = {"int_array": pb.IntArrayValue, "float_array": pb.FloatArrayValue, "string_array": pb.StringArrayValue}


def messages(name: str) -> tuple[Any, Any]:
    """What a function is asked, and what it has to answer."""
    function = BY_NAME[name]
    if name == "void":
        return pb.Empty(), pb.Empty()
    if name == "distance":
        first, second = function.arguments
        return pb.Points(first=first, second=second), pb.FloatValue(value=function.result)
    (argument,) = function.arguments
    if isinstance(argument, Person):
        same = pb.PersonValue(name=argument.name, age=argument.age, weight=argument.weight)
    elif name in _ARRAYS:
        same = _ARRAYS[name](values=argument)
    else:
        same = _TYPES[name](value=argument)
    return same, same


def prepare() -> None:
    """Encode and decode each message once: what the library does on the first time only is done then."""
    for name in METHODS:
        for message in messages(name):
            type(message).FromString(message.SerializeToString())
