# SPDX-License-Identifier: Apache-2.0
"""Both machines against what the library has said, and what they say of streams that it cannot have said."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.workloads.rpyc.expect import version
from sundial.workloads.rpyc.expect_brine import Handler, Kind, Message, frame, frames, int_size, pack, text_size, unpack
from sundial.workloads.rpyc.verify_replay import left
from tests.workloads.rpyc.spoken import NAMES, Streams, calls, events, replay, streams

FIVE = "5.3.0-list-zip"


def joined(order: list[tuple[bool, bytes]]) -> Streams:
    return {reply: b"".join(data for way, data in order if way == reply) for reply in (False, True)}


def differs(order: list[tuple[bool, bytes]], name: str = FIVE) -> tuple[str, str, str, str]:
    found = replay(name, joined(order)).difference
    assert found is not None
    return ("reply" if found.reply else "request", found.field, found.expected, found.seen)


def message(data: bytes) -> Message:
    (only,) = frames(data)
    return unpack(only.data)


def place(order: list[tuple[bool, bytes]], reply: bool, kind: Kind, handler: int | None = None, turn: int = 0) -> int:
    """Where the n-th message of a kind is."""
    found = [
        number
        for number, (way, data) in enumerate(order)
        if way == reply and message(data).kind == kind and (handler is None or message(data).body[0] == handler)
    ]
    return found[turn]


@pytest.mark.parametrize("name", NAMES)
def test_every_byte_of_the_library_is_expected(name: str) -> None:
    found = replay(name)
    assert found.difference is None
    data = streams(name)
    for reply, track in found.tracks.items():
        assert track.at == len(data[reply])
    assert list(left(found)) == []
    assert found.server.executed == {each.function.name: 2 for each in calls("list", "zip")}
    assert [called.error for batch in found.client.batches for called in batch.calls] == [None] * 24


@pytest.mark.parametrize(
    ("name", "function", "each"),
    [
        # Messages of a call both ways (GRPC-RPYC: 6 of values, two more where a reference comes back, an object's too).
        ("5.3.0-tuple-zip", "int_array", 6),
        ("5.3.0-list-zip", "int_array", 8),
        ("5.3.0-list-zip", "person", 10),
        ("4.0.1-list-zip", "person", 8),
        ("5.3.0-tuple-zip", "distance", 6),
        # Of lists the method is given back by the collector: 30 and 48 without that exchange.
        ("5.3.0-list-zip", "distance", 32),
        ("5.3.0-list-numpy", "distance", 50),
        ("6.0.2-list-numpy", "distance", 50),
    ],
)
def test_exchanges_of_a_call(name: str, function: str, each: int) -> None:
    found = replay(name)
    (batch,) = [
        batch
        for planned, batch in zip(calls("list", "zip"), found.client.batches, strict=True)
        if planned.function.name == function
    ]
    ids = {called.id for called in batch.calls}
    lines = [line for track in found.tracks.values() for line in track.lines]
    later = [line for line in lines if line.call in ids]
    # What the collector gives back behind a batch belongs to no call.
    behind = 0 if each < 30 else 2 * len(ids)
    # RPyC 4 asks for the methods of a class once.
    first = 2 if name.startswith("4") and function == "person" else 0
    assert len(later) + behind == each * len(ids) + first


def test_sizes_of_rpyc_5_follow_the_formulas() -> None:
    """17 + s + R + T(name), 10 + s + M; 20 + s + M + a, 10 + s + v; 18 + s + M, 11 + s."""
    found, data = replay("5.3.0-tuple-zip"), streams("5.3.0-tuple-zip")

    def ids(reply: bool, at: int) -> tuple[str, int, int]:
        line = found.tracks[reply].lines[at]
        reference = message(data[reply][line.begin : line.end]).body[1]
        return reference

    def pack_size(reference: tuple[str, int, int]) -> int:
        return 1 + text_size(len(reference[0])) + int_size(reference[1]) + int_size(reference[2])

    root = pack_size(ids(True, 0))
    sizes = {reply: [line.end - line.begin for line in track.lines] for reply, track in found.tracks.items()}
    first = found.client.batches[0].calls[0]
    method = pack_size(ids(True, first.first))
    s = 1
    assert sizes[False][first.first : first.first + 3] == [
        17 + s + root + text_size(4), 20 + s + method + 1, 18 + s + method,
    ]  # fmt: skip
    assert sizes[True][first.first : first.first + 3] == [10 + s + method, 10 + s + 1, 11 + s]


def test_a_changed_byte_is_named() -> None:
    order = events(FIVE)
    at = next(at for at, (reply, data) in enumerate(order) if reply and message(data).body == (1, True))
    data = bytearray(order[at][1])
    data[-2] ^= 0x07
    order[at] = (True, bytes(data))
    assert differs(order)[:2] == ("reply", "bytes")


@settings(max_examples=settings.default.max_examples // 3)
@given(st.data())
def test_no_byte_can_change_unseen(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([each for each in NAMES if each.startswith("6")]))
    spoken = streams(name)
    reply = data.draw(st.booleans())
    at = data.draw(st.integers(0, len(spoken[reply]) - 1))
    changed = bytearray(spoken[reply])
    changed[at] ^= data.draw(st.integers(1, 255))
    difference = replay(name, {**spoken, reply: bytes(changed)}).difference
    if difference is None:
        # Only an id that a side has chosen, or a text that names its addresses and lines, may be another, throughout.
        with_ids = [each for each in frames(bytes(changed)) if each.begin <= at < each.end]
        assert b"Traceback" in with_ids[0].data or unpack(with_ids[0].data).body[0] == 4


def test_swapped_replies_are_named() -> None:
    order = events(FIVE)
    one, other = (place(order, True, Kind.REPLY, turn=turn) for turn in (12, 13))
    order[one], order[other] = order[other], order[one]
    number = message(order[other][1]).number
    assert differs(order) == ("reply", "number", str(number), str(number + 1))


def test_a_reply_to_another_request_is_named() -> None:
    order = events(FIVE)
    at = place(order, True, Kind.REPLY, turn=15)
    right = message(order[at][1])
    order[at] = (True, frame(pack(Message(right.kind, right.number + 7, right.body), bare_kind=False)))
    assert differs(order) == ("reply", "number", str(right.number), str(right.number + 7))


@pytest.mark.parametrize("reply", [False, True])
def test_a_missing_del_is_named(reply: bool) -> None:
    order = events(FIVE)
    at = place(order, reply, Kind.REQUEST, Handler.DEL, turn=2)
    number = message(order[at][1]).number
    del order[at]
    way, field, expected, _ = differs(order)
    assert (way, field) == ("reply" if reply else "request", "message")
    assert expected == f"request {number} ({int(Handler.DEL)}, '...')"


def test_what_the_collector_must_have_found_is_named() -> None:
    order = events(FIVE)
    at = place(order, False, Kind.REQUEST, Handler.DEL, turn=-1)
    del order[at]
    way, field, expected, _ = differs(order)
    assert (way, field, expected[:7]) == ("request", "message", "DEL of ")


def test_the_collector_may_come_at_any_place() -> None:
    """A reference that an exception's frames hold is given back amid a call, under the number behind the next one."""
    order = events(FIVE)
    at = place(order, False, Kind.REQUEST, Handler.DEL, turn=-2)
    early = message(order.pop(at)[1])
    # The request before which it came: that of the second call of distance.
    call = place(order, False, Kind.REQUEST, Handler.GETATTR, turn=-1)
    number = message(order[call][1]).number
    answer = next(
        place
        for place, (reply, data) in enumerate(order)
        if reply and message(data).kind == Kind.REPLY and message(data).number == early.number
    )
    order.pop(answer)

    def renumbered(entry: tuple[bool, bytes]) -> tuple[bool, bytes]:
        # What came behind it has one number more, up to where it was.
        reply, data = entry
        found = message(data)
        asks = reply != (found.kind == Kind.REQUEST)
        if not asks or not number < found.number < early.number:
            return entry
        return reply, frame(pack(Message(found.kind, found.number + 1, found.body), bare_kind=False))

    order[call + 1 :] = [renumbered(entry) for entry in order[call + 1 :]]
    moved = frame(pack(Message(Kind.REQUEST, number + 1, early.body), bare_kind=False))
    order.insert(call, (False, moved))
    reply_at = next(at for at in range(call + 2, len(order)) if order[at][0] and message(order[at][1]).number == number)
    order.insert(reply_at, (True, frame(pack(Message(Kind.REPLY, number + 1, (1, None)), bare_kind=False))))
    assert replay(FIVE, joined(order)).difference is None
    # The same with a count that was not passed on.
    wrong = Message(Kind.REQUEST, number + 1, (15, (2, (early.body[1][1][0], (1, 2)))))
    order[call] = (False, frame(pack(wrong, bare_kind=False)))
    assert differs(order)[:2] == ("request", "message")


def test_a_value_that_is_another_is_named() -> None:
    order = events("6.0.2-tuple-zip")
    at = next(at for at, (reply, data) in enumerate(order) if reply and message(data).body == (1, 123456789))
    right = message(order[at][1])
    order[at] = (True, frame(pack(Message(right.kind, right.number, (1, 123456780)), bare_kind=True)))
    way, field, expected, seen = differs(order, "6.0.2-tuple-zip")
    assert (way, field) == ("reply", "bytes")
    assert (expected[-10:], seen[-10:]) == ("123456789)", "123456780)")


def test_what_is_sent_behind_the_end_is_named() -> None:
    order = events(FIVE)
    order.append((False, frame(pack(Message(Kind.REQUEST, 999, (1, (1, ()))), bare_kind=False))))
    assert differs(order)[:3] == ("request", "message", "none")


def test_an_object_that_comes_under_another_id_is_named() -> None:
    order = events(FIVE)
    at = place(order, False, Kind.REQUEST, Handler.CALL, turn=15)
    right = message(order[at][1])
    method, (label, ((mine, (name, class_id, object_id)),)), named = right.body[1][1]
    for wrong, field in (((name, class_id, object_id + 16), "reference.id"),
                         ((name, class_id + 1, object_id), "reference.class"),
                         (("builtins.tuple", class_id, object_id), "reference")):  # fmt: skip
        body = (7, (2, (method, (label, ((mine, wrong),)), named)))
        damaged = [*order]
        damaged[at] = (False, frame(pack(Message(right.kind, right.number, body), bare_kind=False)))
        assert differs(damaged)[:2] == ("request", field)


def test_a_server_that_ends_leaves_calls_that_fail() -> None:
    order = events(FIVE)
    cut = place(order, True, Kind.REPLY, turn=20)
    found = replay(FIVE, joined(order[:cut]))
    assert found.difference is None
    errors = [called.error for batch in found.client.batches for called in batch.calls]
    assert set(errors) == {None, "EOFError"}
    assert errors == sorted(errors, key=lambda error: error is not None)


def test_a_stream_that_was_not_ended_lacks_its_next_message() -> None:
    order = events(FIVE)
    cut = place(order, True, Kind.REPLY, turn=20)
    found = replay(FIVE, joined(order[:cut]), over=False).difference
    assert found is not None
    assert (found.reply, found.field, found.seen) == (True, "message", "none")


@pytest.mark.parametrize("name", ["3.4.4", "7.0.0"])
def test_other_versions_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"RPyC {name}: known are 4, 5, 6"):
        version(name)


@pytest.mark.parametrize("body", [None, True, 7, 1.5, "text", ()])
def test_a_request_whose_body_is_none(body: object) -> None:
    order = events(FIVE)
    at = place(order, False, Kind.REQUEST, Handler.CALL)
    number = message(order[at][1]).number
    order[at] = (False, frame(pack(Message(Kind.REQUEST, number, body), bare_kind=False)))
    way, field, expected, _ = differs(order)
    assert (way, field) == ("request", "message")
    assert f"({int(Handler.CALL)}, " in expected
