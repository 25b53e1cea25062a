# SPDX-License-Identifier: Apache-2.0
"""The twelve functions over DCE RPC: their messages by hand from C706 chapter 14 and as Scapy reads them, calls of them
replayed, and what no call of them can be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scapy.config import conf
from scapy.fields import ByteField
from scapy.layers import dcerpc as ndr

from sundial.expect.call import Shape
from sundial.judge.replay import Item
from sundial.workloads.dce.expect import expect_call, parameters
from sundial.workloads.dce.expect_ndr import MESSAGE_MOST, lengths, messages
from sundial.workloads.dce.expect_pdu import NO_HINT, Flags, Pdu, Type
from sundial.workloads.dce.verify_client import Call
from sundial.workloads.dce.verify_names import Service, map_question
from sundial.workloads.dce.verify_server import Server
from sundial.workloads.dce.verify_stream import SUNDIAL, TWELVE, Settings
from sundial.workloads.function_lines import check_function_line
from sundial.workloads.functions import BY_NAME, ELEMENTS, FUNCTIONS, NAMES, Person
from tests.workloads.dce.dialogue import ACTIVITY, ASKING, BOOT, HINT, answer, came, client, found, pdu, question, sent

LETTERS = b"abcdefghijklmnopqrstuvwxyz"
GOLDEN = {
    # Name: request in both orders, response in both orders; guest-apps/dce/tests/twelve_test.c has the same.
    "void": ("", "", "", ""),
    "boolean": ("01", "01", "01", "01"),
    "int": ("15cd5b07", "075bcd15", "15cd5b07", "075bcd15"),
    "long": ("1581e97df4102211", "112210f47de98115", "1581e97df4102211", "112210f47de98115"),
    "string_32": (
        "210000000000000021000000" + (LETTERS + LETTERS[:6]).hex() + "00",
        "000000210000000000000021" + (LETTERS + LETTERS[:6]).hex() + "00",
    )
    * 2,
    "person": (
        "00000200 1e000000 00008d42 0a000000 00000000 0a000000" + b"Nine char\0".hex(),
        "00020000 0000001e 428d0000 0000000a 00000000 0000000a" + b"Nine char\0".hex(),
    )
    * 2,
    "distance": (
        "00000000 0000003f 0000803f 00004040 00002040 0000803f",
        "00000000 3f000000 3f800000 40400000 40200000 3f800000",
        "f35961442bd80c40",
        "400cd82b446159f3",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_short_messages_byte_by_byte(name: str) -> None:
    for place, little in enumerate((True, False)):
        request, response = (bytes.fromhex(GOLDEN[name][place + way]) for way in (0, 2))
        assert messages(name, little=little) == (request, response)


def test_long_messages_begin_and_end_as_they_must() -> None:
    request, response = messages("string_array", little=True)
    word = bytes.fromhex("07000000 00000000 07000000") + b"abcdef\0"
    assert request[:16] == bytes.fromhex("c8000000 c8000000 00000200 00000200")
    assert request[808:] == (word + b"\0") * 199 + word
    assert response == request[4:], "the number of elements is a parameter that goes in alone"
    request, response = messages("float_array", little=False)
    assert (request[:20], request[-4:]) == (bytes.fromhex("000000c8 000000c8 00000000 3f000000 3f800000"), b"B\xc7\0\0")
    assert response == request[4:]
    assert messages("int_array", little=False)[0][-8:] == bytes.fromhex("000000c6 000000c7")
    assert messages("string_1024", little=True)[0][:12] == bytes.fromhex("01040000 00000000 01040000")


def test_lengths() -> None:
    """Counted by hand: 12 bytes before a string and a NUL behind it; 4 or 8 before an array, 4 for a pointer."""
    right = [(0, 0), (1, 1), (4, 4), (8, 8), (45, 45), (525, 525), (1037, 1037)]
    right += [(808, 804), (808, 804), (4807, 4803), (34, 34), (24, 8)]
    assert [lengths(name) for name in NAMES] == [parameters(name, BY_NAME[name].size) for name in NAMES] == right
    assert MESSAGE_MOST == 4807
    call = expect_call(Shape(transport="udp", procedure="string_array", size=1200, mtu=1500))
    assert [len(leg.records) for leg in (call.request, call.reply)] == [2, 2], "two fragments of 4096"


# ---- a second reader ----


class ScapyPerson(ndr.NDRPacket):  # type: ignore[misc]
    ALIGNMENT = (4, 8)
    fields_desc = (
        ndr.NDRFullEmbPointerField(ndr.NDRConfVarStrNullField("called", "")),
        ndr.NDRSignedIntField("age", 0),
        ndr.NDRIEEEFloatField("weight", 0),
    )


def fields_of(name: str, *, request: bool) -> list[Any]:
    """What Scapy is to read, by the parameters of guest-apps/dce/twelve.idl."""
    count = [ndr.NDRSignedIntField("count", 0)] if request else []
    elements = {
        "int_array": ndr.NDRSignedIntField("", 0),
        "float_array": ndr.NDRIEEEFloatField("", 0),
        "string_array": ndr.NDRFullEmbPointerField(ndr.NDRConfVarStrNullField("", "")),
    }
    if name in elements:
        return [*count, ndr.NDRConfFieldListField("value", [], elements[name], size_is=lambda packet: 200)]
    if name == "distance":
        points = [ndr.NDRIEEEFloatField(f"value{place}", 0) for place in range(6)]
        return points if request else [ndr.NDRIEEEDoubleField("value", 0)]
    scalars = {"boolean": ByteField, "int": ndr.NDRSignedIntField, "long": ndr.NDRSignedLongField}
    if name in scalars:
        return [scalars[name]("value", 0)]
    if name == "person":
        return [ndr.NDRPacketField("value", ScapyPerson(), ScapyPerson)]
    return [ndr.NDRConfVarStrNullField("value", "")]


def plain(value: Any) -> Any:
    """A value without what Scapy has around it: pointers, room, offset and length."""
    if isinstance(value, ScapyPerson):
        return Person(plain(value.called).decode(), value.age, value.weight)
    while isinstance(value, ndr.NDRPointer | ndr.NDRConformantArray | ndr.NDRVaryingArray):
        if not isinstance(value, ndr.NDRPointer):
            value = value.value[0] if isinstance(value.value, list) and len(value.value) == 1 else value.value
        else:
            value = value.value
    return tuple(map(plain, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("name", NAMES[1:])
def test_scapy_reads_the_values(monkeypatch: pytest.MonkeyPatch, name: str, little: bool) -> None:
    monkeypatch.setattr(conf, "max_list_count", ELEMENTS)
    function = BY_NAME[name]
    for request, octets in zip((True, False), messages(name, little=little), strict=True):
        shape = type("Message", (ndr.NDRPacket,), {"fields_desc": fields_of(name, request=request)})
        read = shape(octets, ndr64=False, ndrendian="little" if little else "big")
        assert bytes(read.payload) == b""
        if name == "distance" and request:
            seen = tuple(getattr(read, f"value{place}") for place in range(6))
            assert seen == (*function.arguments[0], *function.arguments[1])  # type: ignore[misc]
            continue
        seen = plain(read.value)
        right: Any = function.result
        if isinstance(right, str):
            right = right.encode()
        elif name == "string_array":
            right = tuple(each.encode() for each in right)
        assert seen == right
        if request and function.contains:
            assert read.count == 200


# ---- replayed ----

NEW = {"boot_time": 0, "activity_hint": NO_HINT}


def of_call(kind: Type, name: str, sequence: int = 0, *, little: bool = True, **fields: object) -> Pdu:
    """The whole request or response of a function that fits in one PDU."""
    octets = messages(name, little=little)[kind == Type.RESPONSE]
    own = {"interface": TWELVE, "opnum": BY_NAME[name].number, "sequence": sequence, "body": octets}
    return pdu(kind, **({"little_endian": little} | own | fields))


def call_of(name: str, sequence: int = 0, *, little: bool = True, **fields: Any) -> Call:
    request, _ = messages(name, little=little)
    return Call(sequence, TWELVE, BY_NAME[name].number, sizes=lengths(name), body=request, start_ns=0, **fields)


TWO = (call_of("int", 0, begins=True, settles=False), call_of("person", 1))


def two_calls() -> list[Item]:
    return [
        sent(1, of_call(Type.REQUEST, "int", **NEW)),
        came(1.5, replace(question())),
        sent(1.6, answer()),
        came(2, of_call(Type.RESPONSE, "int")),
        sent(3, of_call(Type.REQUEST, "person", 1)),
        came(4, of_call(Type.RESPONSE, "person", 1)),
        sent(1004, pdu(Type.ACK, interface=TWELVE, opnum=11, sequence=1)),
    ]


def changed(octets: bytes, place: int) -> bytes:
    return octets[:place] + bytes((octets[place] ^ 1,)) + octets[place + 1 :]


def test_calls_of_functions_are_explained() -> None:
    assert not found(client(*TWO), *two_calls())


@pytest.mark.parametrize("place", [0, 9, 15, 24, 33])
def test_a_changed_byte_of_an_argument_is_found(place: int) -> None:
    items = two_calls()
    right = messages("person", little=True)[0]
    items[4] = sent(3, of_call(Type.REQUEST, "person", 1, body=changed(right, place)))
    assert [field for field, _, _ in found(client(*TWO), *items)] == ["body"]


def test_a_function_in_the_place_of_another_and_a_missing_call_are_found() -> None:
    items = two_calls()
    items[4] = sent(3, of_call(Type.REQUEST, "string_32", 1))
    assert [field for field, _, _ in found(client(*TWO), *items)] == ["opnum"]
    assert found(client(*TWO), *items[:4])


def serving(*, little: bool = True) -> Server:
    options = {"interface": "functions", "byte_order": "little" if little else "big"}
    service = Service("server", ("10.0.0.2",), "dce-server", options)
    return Server(
        service.settings, activity=ACTIVITY, boot_time=BOOT, hint=HINT, conv=ASKING, results=service.results
    )  # fmt: skip


def served(*responses: Pdu) -> list[Item]:
    """Two idempotent calls and what the server says to them."""
    once = {"flags": Flags.IDEMPOTENT, "boot_time": 0, "activity_hint": NO_HINT}
    return [
        came(1, of_call(Type.REQUEST, "int", **once)),
        sent(2, responses[0]),
        came(3, of_call(Type.REQUEST, "distance", 1, **once)),
        sent(4, responses[1]),
    ]


def results(*, little: bool) -> list[Pdu]:
    return [of_call(Type.RESPONSE, name, place, little=little) for place, name in enumerate(("int", "distance"))]


RESULTS = results(little=True)


def test_results_of_functions_are_explained_and_others_are_not() -> None:
    assert not found(serving(), *served(*RESULTS))
    wrong = replace(RESULTS[1], body=changed(RESULTS[1].body, 7))
    assert [field for field, _, _ in found(serving(), *served(RESULTS[0], wrong))] == ["body"]
    swapped = [replace(mine, body=theirs.body) for mine, theirs in zip(RESULTS, reversed(RESULTS), strict=True)]
    assert len(found(serving(), *served(*swapped))) == 2
    assert found(serving(), *served(*RESULTS)[:3], end_ms=6000), "a response that is missing"


def test_a_server_answers_in_its_own_order() -> None:
    assert not found(serving(little=False), *served(*results(little=False)))
    assert found(serving(little=False), *served(*RESULTS))


def test_a_server_has_one_interface() -> None:
    service = Service("server", ("10.0.0.2",), "dce-server", {"interface": "functions"})
    assert service.interface == TWELVE
    assert Service("server", ("10.0.0.2",), "dce-server", {}).interface == SUNDIAL
    assert service.results(of_call(Type.REQUEST, "void")) == b""
    assert service.results(of_call(Type.REQUEST, "void", opnum=0)) is None
    assert service.results(of_call(Type.REQUEST, "void", opnum=13)) is None
    asked = map_question("10.0.0.2", TWELVE, little=True)
    assert TWELVE.bytes_le in asked
    assert SUNDIAL.bytes_le not in asked


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ({"procedure": "person", "function": 11, "size": 17}, []),
        ({"procedure": "put", "size": 17}, []),
        ({"procedure": "put", "size": 17, "function": 11}, ["function"]),
        ({"procedure": "person", "size": 17}, ["function"]),
        ({"procedure": "person", "function": 12, "size": 24}, ["function", "size"]),
    ],
)
def test_a_batch_names_its_function(line: dict[str, object], wrong: list[str]) -> None:
    assert [finding[1] for finding in check_function_line("batch 0", line)] == [f"batch 0 {name}" for name in wrong]


def test_fragments_of_the_longest_message() -> None:
    assert Settings().bodies(4807) == (4016, 791)
    assert len(Settings(policy="osf").bodies(4803)) == 4
    assert [each.name for each in FUNCTIONS if max(lengths(each.name)) > 4016] == ["string_array"]
