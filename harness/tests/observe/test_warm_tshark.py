# SPDX-License-Identifier: Apache-2.0
"""A child of the one tshark of the tests answers what a tshark that was started by itself does."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.observe.tshark import ENVIRONMENT, dissect
from tests.verify.bed import RPC_PORT, Bed, capture
from tests.warm_tshark.client import MOST_ARGUMENTS, WarmTshark, each_by_itself, warm

FIELDS = ("frame.number", "ip.id", "udp.length", "rpc.xid", "rpc.msgtyp", "_ws.expert.message")
RPC = (f"-d udp.port=={RPC_PORT},rpc", "-o rpc.dissect_unknown_programs:TRUE")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmTshark]:
    with warm(tmp_path_factory.mktemp("warm")) as tshark:
        list(dissect([], ["ip.id"], name=Path("first")))
        if not tshark.served:
            pytest.skip("this Wireshark begins in another way: each test starts it by itself")
        yield tshark


@pytest.fixture
def traffic(tmp_path: Path) -> bytes:
    bed = Bed(tmp_path)
    bed.batch("echo-client", "udp", 2000, RPC_PORT, 853)
    for xid, size in enumerate((0, 40, 3000), start=1):
        bed.udp_call(size, xid)
    return capture(["client", "server", "lan"], bed.records)


def answers(traffic: bytes, options: Sequence[str], **more: Any) -> object:
    try:
        tables = list(dissect([traffic], FIELDS, options=options, name=Path("capture"), **more))
    except BadInput as error:
        return str(error)
    return [table.to_dict(as_series=False) for table in tables]


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ((), {}),
        (RPC, {}),
        (RPC, {"whole": True}),
        (RPC, {"display_filter": "rpc.msgtyp == 1"}),
        ((*RPC, "-M 4"), {}),
        (("-o ip.defragment:FALSE",), {}),
        (("-o no.such.preference:1",), {}),
        ((), {"display_filter": "no such filter"}),
    ],
)
def test_it_answers_the_same(
    served: WarmTshark, traffic: bytes, options: Sequence[str], more: Mapping[str, Any]
) -> None:
    with each_by_itself():
        wanted = answers(traffic, options, **more)
    before = served.served
    assert answers(traffic, options, **more) == wanted
    assert served.served == before + 1


@pytest.mark.parametrize("damage", [lambda data: data[:-7], lambda data: b"junk" + data, lambda data: b""])
def test_it_refuses_the_same(served: WarmTshark, traffic: bytes, damage: Callable[[bytes], bytes]) -> None:
    with each_by_itself():
        wanted = answers(damage(traffic), ())
    assert answers(damage(traffic), ()) == wanted
    assert isinstance(wanted, str) or not damage(traffic)


def test_one_capture_leaves_nothing_for_the_next(served: WarmTshark, traffic: bytes) -> None:
    """Neither frames nor options: a port that is RPC's for one is not for another."""
    plain, rpc = answers(traffic, ()), answers(traffic, RPC)
    assert plain != rpc
    assert [answers(traffic, ()), answers(traffic, RPC)] == [plain, rpc]


def test_several_at_once(served: WarmTshark, traffic: bytes) -> None:
    """Each waits for its own, in whatever order they are read."""
    wanted = answers(traffic, RPC)
    several = [dissect([traffic], FIELDS, options=RPC, name=Path("capture")) for _ in range(3)]
    first = [next(each) for each in several]
    rest = [list(each) for each in reversed(several)]
    assert rest == [[], [], []]
    assert [[table.to_dict(as_series=False)] for table in first] == [wanted] * 3


def test_what_is_not_wanted_any_more_is_killed(served: WarmTshark, traffic: bytes) -> None:
    """While it waits for more of a capture that does not end; its feeder gets an error."""
    last = traffic[-int.from_bytes(traffic[-4:], "little") :]
    ended = []

    def without_end() -> Iterator[bytes]:
        yield traffic
        try:
            while True:
                yield last * 1000
        finally:
            ended.append(True)

    tables = dissect(without_end(), FIELDS, options=("-o ip.defragment:FALSE",), name=Path("capture"))
    assert next(tables).height > 0
    tables.close()
    gc.collect()
    assert ended == [True]
    assert answers(traffic, RPC) != []


def test_what_the_server_cannot_do_is_done_by_a_tshark_of_its_own(served: WarmTshark, traffic: bytes) -> None:
    before = served.served
    many = [f"-o udp.calculate_timestamps:{each}" for each in ("TRUE", "FALSE") * (MOST_ARGUMENTS // 4)]
    assert answers(traffic, RPC) == answers(traffic, (*RPC, *many))
    assert served.served == before + 1
    assert answers(traffic, ("-X read_format:none",)) != answers(traffic, ())
    assert served.served == before + 2


def test_another_environment_is_another_tshark(
    served: WarmTshark, traffic: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = served.served
    monkeypatch.setenv("WIRESHARK_PLUGIN_DIR", str(tmp_path))
    assert answers(traffic, ()) is not None
    program = tmp_path / "tshark"
    program.write_text("#!/bin/sh\necho 'tshark: is another one' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert "is another one" in str(answers(traffic, ()))
    assert served.served == before


def test_the_names_that_no_tshark_reads_are_not_shown(
    served: WarmTshark, traffic: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither Wireshark's data, nor what preload.c keeps from it, changes a field."""
    found = answers(traffic, RPC)
    monkeypatch.delitem(ENVIRONMENT, "WIRESHARK_DATA_DIR")
    with each_by_itself():
        assert answers(traffic, RPC) == found
