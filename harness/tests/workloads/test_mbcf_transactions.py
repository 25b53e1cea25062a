# SPDX-License-Identifier: Apache-2.0
"""Tries of a call whose request the server READs: several may wait, at one address."""

from __future__ import annotations

from sundial.workloads.mbcf.verify_transactions import Request, Transaction, find_transactions
from sundial.workloads.mbcf.wire import CLOSE, MORE, READ, RESULT, TASKQUE

CLIENT, SERVER = 1, 2


class Frames:
    """Of one client and its server, in the order of time."""

    def __init__(self) -> None:
        self.lines: list[tuple[object, ...]] = []

    def put(
        self, op: int, node: int, *, flags: int = 0, op_id: int = 0, length: int = 8, connection: int = 0,
        address: str = "", data: str = "", close: tuple[int, int] = (0, 0), answers: int = 0, status: int = 0,
    ) -> int:  # fmt: skip
        row = len(self.lines)
        self.lines.append(
            (row, row, op, flags, status, node, 17, 3 - node, 17, op_id, length, connection, 70 + node, address, data,
             *close, answers)
        )  # fmt: skip
        return row

    def ask(self, xid: int, connection: int) -> int:
        return self.put(TASKQUE, CLIENT, connection=connection, data=f"{xid:08x}")

    def read(self, op_id: int, flags: int = 0) -> int:
        return self.put(READ, SERVER, op_id=op_id, address="0x10", flags=flags)

    def calls(self) -> list[Transaction]:
        def meaning(operation: int, data: str) -> Request | None:
            return Request(int(data, 16), "0x10") if operation == TASKQUE else None

        found = find_transactions(self.lines, meaning)
        self.unclaimed = found.unclaimed
        return [each for each in found.transactions if each.kind == "call"]


def test_each_try_is_read_though_all_were_made_before_the_first_read() -> None:
    frames = Frames()
    asked = [frames.ask(7, 1), frames.ask(7, 2)]
    first, second = frames.read(1030), frames.read(1031)
    # The second answer is seen before the first.
    answers = {at: frames.put(RESULT, CLIENT, answers=at) for at in (second, first)}
    (call,) = frames.calls()
    assert call.tries == [[asked[0], answers[first]], [asked[1], answers[second]]]
    assert (call.unread, frames.unclaimed) == (set(), [])


def test_a_try_is_not_taken_before_its_request_is_read_whole() -> None:
    frames = Frames()
    frames.ask(7, 1)
    frames.ask(7, 2)
    first, last = frames.read(1030, MORE), frames.read(1030)
    frames.put(RESULT, CLIENT, answers=first)
    assert [call.unread for call in frames.calls()] == [{0, 1}]
    refused = frames.put(RESULT, CLIENT, answers=last, status=6, length=0)
    assert [call.unread for call in frames.calls()] == [{0, 1}]
    frames.lines.pop(refused)
    frames.put(RESULT, CLIENT, answers=last)
    assert [call.unread for call in frames.calls()] == [{1}]


def test_more_reads_than_tries_have_no_reason() -> None:
    frames = Frames()
    frames.ask(7, 1)
    frames.read(1030)
    frames.read(1031)
    (call,) = frames.calls()
    # The second belongs to no call: an operation, which no sample asks for.
    assert [row for row, _ in call.frames[True]] == [1]


def test_a_try_whose_connection_the_server_has_ended_is_not_read() -> None:
    frames = Frames()
    frames.ask(7, 1)
    frames.put(CLOSE, SERVER, close=(9, 1))
    second = frames.ask(7, 2)
    read = frames.read(1030)
    answer = frames.put(RESULT, CLIENT, answers=read)
    (call,) = frames.calls()
    assert call.tries == [[0], [second, answer]]
    assert call.unread == {0}
