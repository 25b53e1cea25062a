# SPDX-License-Identifier: Apache-2.0
"""samples.jsonl to a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sundial.errors import BadInput, GuestFault
from sundial.observe import SAMPLE_COLUMNS, Node, NodeInterface, Samples, open_run, read_samples
from tests.verify.mbcf_bed import MbcfBed

CLIENT = Node(
    "client",
    1_000_000,
    (NodeInterface("eth0", "", "192.168.0.9/24", "other", 1500), NodeInterface("eth1", "", "10.0.0.1/24", "lan", 1500)),
)
BATCH = {
    "type": "batch", "step": 2, "app": "echo-client", "series": 1, "transport": "udp", "procedure": "echo", "size": 16,
    "thread": 0, "server": "10.0.0.2", "server_port": 1025, "client_port": 700, "warmup": 1,
    "columns": ["call", "start", "end", "ok", "retransmits", "xid", "error"],
}  # fmt: skip
LINES = [
    json.dumps({"type": "hello", "version": 1}),
    json.dumps({"type": "binding", "step": 2, "start": 1_000_500, "end": 1_000_900, "ok": True, "port": 1025}),
    json.dumps(BATCH),
    "[0,1001000,1002000,1,0,3735928559,null]",
    '[1,1003000,1009000,0,2,3735928560,"timed out"]',
    json.dumps({**BATCH, "size": 32}),
    "[0,1011000,1012000,1,0,null,null]",
    json.dumps({"type": "done", "status": 0}),
]


def read(path: Path, lines: list[str], end: str = "\n") -> Samples:
    file = path / "samples.jsonl"
    file.write_text("\n".join(lines) + end)
    return read_samples(file, scenario="quickstart", client=CLIENT, names={"10.0.0.2": "server"})


def test_rows_belong_to_the_batch_above_them(tmp_path: Path) -> None:
    samples = read(tmp_path, LINES)
    table = samples.table
    assert dict(table.schema) == {name: kind() for name, kind in SAMPLE_COLUMNS.items()}
    assert table["size"].to_list() == [16, 16, 32]
    assert table["batch"].to_list() == [0, 0, 1]
    assert table["warmup"].to_list() == [True, False, True]
    assert table["xid"].to_list() == [3735928559, 3735928560, None]
    assert table["error"].to_list() == [None, "timed out", None]


def test_times_are_on_the_axis_of_the_run(tmp_path: Path) -> None:
    samples = read(tmp_path, LINES)
    assert samples.table["start_ns"].to_list() == [1_000, 3_000, 11_000]
    assert samples.table["rtt_ns"].to_list() == [1_000, 6_000, 1_000]
    binding = next(record for record in samples.records if record["type"] == "binding")
    assert (binding["start"], binding["end"]) == (500, 900)


def test_ends_are_named_and_the_interface_is_that_of_the_server_network(tmp_path: Path) -> None:
    row = read(tmp_path, LINES).table.row(0, named=True)
    assert (row["client"], row["client_address"], row["server"]) == ("client", "10.0.0.1", "server")


def test_that_a_guest_is_alive_ends_no_batch(tmp_path: Path) -> None:
    alive = '{"type":"alive"}'
    samples = read(tmp_path, [LINES[0], alive, *LINES[1:4], alive, *LINES[4:], alive])
    plain = read(tmp_path, LINES)
    assert samples.table.equals(plain.table)
    assert samples.records == plain.records


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    whole, cut = read(tmp_path, LINES[:4]), read(tmp_path, [*LINES[:4], "[1,1003000,10"], end="")
    assert (whole.truncated, cut.truncated) == (False, True)
    assert cut.table.equals(whole.table)


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (["[0,1,2,1,0,1,null]"], 1, "before any batch"),
        ([*LINES[:3], "[0,1,2,1,0"], 4, "is not JSON"),
        ([*LINES[:3], "[0,1,2]"], 4, "a row of 7 values"),
        ([*LINES[:3], '[0,"x",2,1,0,1,null]'], 3, "not a batch"),
        (["[" * 500_000], 1, "before any batch"),
        ([*LINES[:3], "[" * 500_000], 4, "nested too deeply"),
        (['{"type":' * 50_000], 1, "nested too deeply"),
        (['{"type":' + "[" * 100_000 + "]" * 100_000 + "}"], 1, "nested too deeply"),
        (['{"type":"\\udead' + "x" * (1 << 20)], 1, "a line of more than 1048576 bytes"),
        ([*LINES[:3], f"[0,{10**30},2,1,0,1,null]"], 3, "not a batch"),
        ([*LINES[:3], f"[0,{'9' * 5000},2,1,0,1,null]"], 4, "is not JSON"),
        ([*LINES[:3], "[{},1,2,1,0,1,[]]"], 3, "not a batch"),
        ([json.dumps({**BATCH, "size": 10**30}), "[0,1,2,1,0,1,null]"], 1, "not a batch"),
        (['{"type":"binding"}'], 1, "not a record"),
        (['{"type":"binding","start":"x","end":[]}'], 1, "not a record"),
        (["{}"], 1, "neither a row nor a record"),
        ([json.dumps({"type": "batch", "columns": BATCH["columns"]})], 1, "the batch has no 'server'"),
    ],
)
def test_what_is_no_sample_is_named_with_its_line(tmp_path: Path, lines: list[str], line: int, said: str) -> None:
    with pytest.raises(GuestFault, match=said) as error:
        read(tmp_path, lines)
    assert f"samples.jsonl:{line}: " in str(error.value)


def test_words_of_a_guest_are_printable(tmp_path: Path) -> None:
    said = "\x1b[2J\x9b31m\u202egnorw\n"
    row = json.dumps([1, 1003000, 1009000, 0, 2, 1, said])
    samples = read(tmp_path, [json.dumps({"type": "error", "message": said, said: 1}), LINES[2], row])
    assert samples.table["error"].to_list() == ["\\x1b[2J\\x9b31m\\u202egnorw\\n"]
    assert "".join(f"{name}{value}" for name, value in samples.records[0].items()).isprintable()


def test_a_batch_may_be_longer_than_what_is_read_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"[{call},{1_001_000 + call},{1_002_000 + call},1,0,{call},null]" for call in range(10)]
    whole = read(tmp_path, [*LINES[:3], *rows, *LINES[5:]])
    monkeypatch.setattr("sundial.observe.samples.ROWS_AT_A_TIME", 4)
    assert read(tmp_path, [*LINES[:3], *rows, *LINES[5:]]).table.equals(whole.table)
    assert whole.table["batch"].to_list() == [0] * 10 + [1]


def test_plain_rows_are_read_at_once_as_each_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [[call, 10**17 + call, 2 * 10**17 + call, call % 2, call % 9, None, None] for call in range(5_000)]
    for call, value in enumerate(values[:4_000]):
        value[5] = 4294967295 - call
    spaced, plain = (
        [json.dumps(value) for value in values],
        [json.dumps(value, separators=(",", ":")) for value in values],
    )
    alone = read(tmp_path, [*LINES[:3], *spaced, *LINES[5:]]).table
    assert alone.height == 5_001
    assert read(tmp_path, [*LINES[:3], *plain[:70], *spaced[70:80], *plain[80:], *LINES[5:]]).table.equals(alone)
    monkeypatch.setattr(
        "sundial.observe.samples._rows", lambda _, lines: [] if not lines else pytest.fail("one by one")
    )
    assert read(tmp_path, [*LINES[:3], *plain, *LINES[5:6], *LINES[7:]]).table.equals(alone.head(5_000))


@pytest.mark.parametrize(
    "row",
    ["[2,+3,4,1,0,5,null]", "[2,3,4,1,0,05,null]", "[2,3,4,true,0,5,null]", "[2,,4,1,0,5,null]", "[2,3,4,1,0,5]"],
)
def test_a_row_that_is_almost_plain_is_judged_by_itself(tmp_path: Path, row: str) -> None:
    plain = ["[0,1001000,1002000,1,0,3,null]", "[1,1003000,1004000,1,0,4,null]"]

    def said(rows: list[str]) -> str:
        try:
            return str(read(tmp_path, [*LINES[:3], *rows]).table.to_dicts())
        except GuestFault as fault:
            return str(fault)

    # A space makes a row be read by itself, and changes nothing else.
    assert said([*plain, row, *plain]) == said([f"{each} " for each in (*plain, row, *plain)])


def test_a_file_without_batches_has_no_calls(tmp_path: Path) -> None:
    assert read(tmp_path, LINES[:1]).table.is_empty()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        read_samples(tmp_path / "none.jsonl", scenario="", client=CLIENT, names={})


def test_samples_over_mbcf_name_nodes_and_tasks(tmp_path: Path) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    made.batch("mbcf3", 16)
    made.call("mbcf3", 9, 16)
    run = open_run(made.write())
    assert run.node_ids == {"client": 1, "server": 2}
    file = run.path / "nodes" / "client" / "samples.jsonl"
    (row,) = read_samples(file, scenario="test", client=run.nodes["client"], names=run.names).table.to_dicts()
    assert (row["server"], row["server_address"], row["transport"], row["xid"]) == ("server", "2", "mbcf3", 9)
    assert (row["client_address"], row["client_port"], row["server_port"]) == ("10.0.0.1", 272, 288)
