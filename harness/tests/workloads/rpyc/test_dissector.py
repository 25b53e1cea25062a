# SPDX-License-Identifier: Apache-2.0
"""rpyc.lua in tshark as a user calls it, against the harness's own decoder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sundial.model.catalog import DISSECTORS
from sundial.workloads.rpyc.expect_brine import Kind, Message, frame, frames, pack, unpack
from tests.verify.bed import CLIENT, SERVER, Bed, Stream
from tests.warm_tshark.reader import unprivileged
from tests.workloads.rpyc.spoken import events, streams

PORT, CLIENT_PORT = 18861, 40_000
(DISSECTOR,) = [path for path in DISSECTORS if path.name == "rpyc.lua"]
Order = list[tuple[bool, bytes]]


def shown(folder: Path, order: Order, cut: int, *fields: str) -> list[list[str]]:
    """The given fields of each frame in which tshark finds messages, sent in segments of `cut` bytes at most."""
    bed = Bed(folder / "run")
    stream = Stream(bed, CLIENT_PORT, PORT, {CLIENT: 100, SERVER: 900})
    stream.open()
    while order:
        reply = order[0][0]
        data = b""
        # What one side says in a row is one write, so that segments hold several messages, and parts of some.
        while order and order[0][0] == reply:
            data += order.pop(0)[1]
        sizes = [cut] * (len(data) // cut) + ([len(data) % cut] if len(data) % cut else [])
        stream.write(SERVER if reply else CLIENT, data, sizes)
    stream.close()
    capture = bed.write() / "wire/lan.pcapng"
    command = [*unprivileged(), "tshark", "-X", f"lua_script:{DISSECTOR}", "-n", "-2", "-r", str(capture),
               "-Y", "rpyc", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|"]  # fmt: skip
    for name in fields:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Lua" not in done.stderr, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def flat(lines: list[list[str]], place: int) -> list[str]:
    return [part for line in lines for part in line[place].split("|") if part]


def number(text: str) -> int:
    return int(text, 0)


@pytest.mark.parametrize("cut", [1448, 31])
@pytest.mark.parametrize("name", ["4.0.1-list-numpy", "5.3.0-list-zip", "6.0.2-tuple-zip"])
def test_messages_are_those_of_the_decoder(tmp_path: Path, name: str, cut: int) -> None:
    lines = shown(
        tmp_path, events(name), cut, "tcp.srcport", "rpyc.kind", "rpyc.seq", "rpyc.handler", "rpyc.form",
        "rpyc.length", "_ws.malformed", "rpyc.malformed",
    )  # fmt: skip
    for reply, data in streams(name).items():
        own = [line for line in lines if line[0] == str(PORT if reply else CLIENT_PORT)]
        whole = list(frames(data))
        messages = [unpack(each.data) for each in whole]
        assert list(map(number, flat(own, 1))) == [each.kind for each in messages]
        assert list(map(number, flat(own, 2))) == [each.number for each in messages]
        handlers = [int(each.body[0]) for each in messages if each.kind == Kind.REQUEST]
        assert list(map(number, flat(own, 3))) == handlers
        assert set(flat(own, 4)) == {"6" if name.startswith("6") else "4 or 5"}
        assert list(map(number, flat(own, 5))) == [len(each.data) for each in whole]
    assert flat(lines, 6) == flat(lines, 7) == []


def test_replies_are_linked_to_their_requests(tmp_path: Path) -> None:
    lines = shown(tmp_path, events("5.3.0-tuple-zip"), 1448, "frame.number", "rpyc.seq", "rpyc.reply_in",
                  "rpyc.request_in", "rpyc.class", "rpyc.object", "rpyc.attribute")  # fmt: skip
    by_frame = {line[0]: line for line in lines}
    asked = [(line[0], answer) for line in lines for answer in line[2].split("|") if answer]
    assert len(asked) > 60
    for request, reply in asked:
        assert request in by_frame[reply][3].split("|")
    assert {"sundial.Functions", "builtins.method"} <= set(flat(lines, 4))
    assert "140" in {text[:3] for text in flat(lines, 5)}
    assert {"void", "string_1024", "distance_zip"} <= set(flat(lines, 6))


def test_long_messages_are_inflated(tmp_path: Path) -> None:
    message = Message(Kind.REPLY, 7, (1, ("abcdef",) * 600))
    data = frame(pack(message, bare_kind=True))
    assert len(data) < 3000
    ((kind, seq, compressed, body),) = shown(
        tmp_path, [(True, data)], 1448, "rpyc.kind", "rpyc.seq", "rpyc.compressed", "rpyc.body"
    )
    assert (number(kind), number(seq), number(compressed)) == (2, 7, 1)
    assert body.startswith("(1, ('abcdef', 'abcdef', ")


def test_what_is_no_brine_is_told(tmp_path: Path) -> None:
    ((malformed,),) = shown(tmp_path, [(True, frame(b"\x02\x07"))], 1448, "rpyc.malformed")
    assert malformed


TYPES = {
    "19 12 51 52 53": "slice(1, 2, 3)",
    "19 12 00 16 03 393030 00": "slice(None, 900, None)",
    "1a 12 55 56 57": "frozenset(5, 6, 7)",
    "1a 02": "frozenset()",
    "1b 402a000000000000 4032000000000000": "(13+18j)",
    "1b 402a000000000000 c032000000000000": "(13-18j)",
    "09 57": "7",
    "09 16 03 393030": "900",
    "11 1a 10 19 12 51 52 53 08 0a 61": "(frozenset(slice(1, 2, 3),), 'a')",
}
"""Of tags of rpyc/core/brine.py in RPyC 6.0.1, and 0x09 of 5.3.1, a long of Python 2."""


def reply_with(value: str) -> tuple[bool, bytes]:
    return True, frame(bytes.fromhex("02 11 57 11 51" + value))


def test_each_type_of_brine_has_a_text(tmp_path: Path) -> None:
    lines = shown(tmp_path, [reply_with(value) for value in TYPES], 1448, "rpyc.malformed", "rpyc.body")
    assert flat(lines, 0) == []
    assert flat(lines, 1) == [f"(1, {text})" for text in TYPES.values()]


def test_what_brine_does_not_have_is_malformed(tmp_path: Path) -> None:
    values = ["19 51", "1a 0a 61", "07", "1c 51", "1b 402a000000000000"]
    lines = shown(tmp_path, [reply_with(value) for value in values], 1448, "rpyc.malformed")
    assert len(flat(lines, 0)) == len(values)
