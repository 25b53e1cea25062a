# SPDX-License-Identifier: Apache-2.0
"""Frames that Linux discards below a node that is a process, and processes that have ended: right inputs, and the same
where the reason is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest

from sundial.verify.contention import contention_of
from sundial.workloads.mbcf.verify import at_once, own_instructions, with_refused
from sundial.workloads.mbcf.verify_channels import Channels, check_channels
from sundial.workloads.mbcf.verify_kernels import SEND_BUFFER, Congested, buffered, congested, ended_ns
from sundial.workloads.mbcf.verify_tags import resolved
from sundial.workloads.mbcf.wire import (
    ACK,
    ACK_NOW,
    DEFINES,
    OPENED,
    PROBE,
    RESULT,
    RETX,
    SYN,
    SYNACK,
    WRITE,
)

MS = 1_000_000
FULL = Congested([0], [400 * MS])
"""A line that was never idle for so long."""


def test_a_frame_takes_memory_of_a_power_of_two() -> None:
    assert [buffered(length) for length in (60, 176, 177, 1466)] == [768, 768, 1280, 2304]


def spans(frames: int, pause_ns: int = 0) -> Congested:
    """Of so many full frames, 1 ms each, and a pause before the last."""
    begins = [at * MS for at in range(frames - 1)] + [(frames - 1) * MS + pause_ns]
    return congested(contention_of([(at, at + MS) for at in begins]), [(at, 1466) for at in begins])


def test_a_socket_may_be_full_where_a_buffer_full_of_frames_leaves_without_a_break() -> None:
    most = -(-SEND_BUFFER // 2304)
    assert spans(most) == Congested([0], [most * MS])
    assert spans(most - 1) == Congested()
    assert spans(most, pause_ns=1) == Congested()


@pytest.mark.parametrize(("low", "high", "meets"), [(401, 500, False), (400, 500, True), (-5, -1, False), (1, 2, True)])
def test_when_two_instants_meet_a_congested_time(low: int, high: int, meets: bool) -> None:
    assert FULL.meets(low * MS, high * MS) == meets


def test_a_process_ends_with_its_step() -> None:
    assert ended_ns(5, [3, 9, 20]) == 9 + 100 * MS
    assert ended_ns(25, [3, 9, 20]) == 25 + 100 * MS


@dataclass
class Lines:
    """Frames between the nodes 1 and 2, whose channel is open; each arrives 1 ms after it was sent."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.put(0, SYN, 1, nonce=1, target_epoch=0)
        self.put(2, SYNACK, 2, nonce=1, echo=1)
        self.put(4, OPENED, 1, echo=1)

    def put(self, ms: int, op: int, source: int, seq: int = 0, ack: int = 0, flags: int = 0, **more: Any) -> None:
        target, digest = 3 - source, more.pop("digest", 100 * source + seq)
        arrives, more = more.pop("arrives", True), {"nonce": 0, "echo": 0, "target_epoch": 70 + target, **more}
        line = {
            "mbcf_op": op, "mbcf_flags": flags, "mbcf_source": source, "mbcf_target": target, "mbcf_seq": seq,
            "mbcf_epoch": 70 + source, "mbcf_ack": ack, "mbcf_digest": digest, "mbcf_op_id": 0, "mbcf_status": 0,
            "mbcf_last": 0, "mbcf_target_task": 17, **{f"mbcf_{name}": value for name, value in more.items()},
        }  # fmt: skip
        self.rows.append({"time_ns": ms * MS, "view": "sent", **line})
        if arrives:
            self.rows.append({"time_ns": (ms + 1) * MS, "view": "received", **line})

    def check(self, **more: Any) -> Channels:
        frames = pl.DataFrame(self.rows).with_row_index("row")
        waits = {"contentions": {}, "own_ns": {1: MS, 2: MS}, "end_ns": {}}
        return check_channels(frames, exact_time=True, **{**waits, **more})

    def found(self, **more: Any) -> list[str]:
        return self.check(**more).findings["field"].to_list()


def discarded() -> Lines:
    """Node 1 sends five frames; no port shows the second and the third before they are sent again."""
    lines = Lines()
    for ms, seq, flags in ((10, 1, 0), (12, 4, 0), (14, 5, 0), (40, 2, RETX | ACK_NOW), (42, 3, RETX), (44, 4, RETX)):
        lines.put(ms, WRITE, 1, seq, flags=flags)
    return lines


def test_what_a_full_socket_had_no_room_for_is_seen_when_it_is_sent_again() -> None:
    lines = discarded()
    lines.put(46, WRITE, 1, 5, flags=RETX)
    lines.put(48, ACK, 2, ack=5)
    made = lines.check(congested={1: FULL})
    assert [row for row in made.findings["field"] if row in ("mbcf.sequence", "mbcf.retx")] == []
    assert len(made.first) == 5
    assert set(made.filling) >= {row for row in made.first if lines.rows[row]["mbcf_seq"] in (2, 3)}


@pytest.mark.parametrize("cause", [{}, {"congested": {2: FULL}}, {"congested": {1: Congested([500 * MS], [900 * MS])}}])
def test_without_a_full_socket_they_are_missing(cause: dict[str, Any]) -> None:
    found = discarded().found(**cause)
    assert found.count("mbcf.sequence") >= 1
    assert found.count("mbcf.retx") >= 2


def test_what_no_port_has_shown_says_that_it_is_sent_again() -> None:
    lines = discarded()
    lines.rows[:] = [
        {**row, "mbcf_flags": 0} if row["mbcf_seq"] == 3 and row["mbcf_op"] == WRITE else row for row in lines.rows
    ]
    assert lines.found(congested={1: FULL}).count("mbcf.retx") == 1


def test_numbers_further_ahead_than_a_window_are_not_discarded_ones() -> None:
    lines = Lines()
    lines.put(10, WRITE, 1, 1)
    lines.put(12, WRITE, 1, 200)
    assert "mbcf.sequence" in lines.found(congested={1: FULL})


def asked() -> Lines:
    """Node 2 sends a frame, then again, for node 1 does not acknowledge it."""
    lines = Lines()
    lines.put(10, WRITE, 2, 1)
    lines.put(300, WRITE, 2, 1, flags=RETX | ACK_NOW)
    return lines


@pytest.mark.parametrize(
    ("gone_ms", "found"), [(None, ["mbcf.retransmission"]), (200, ["mbcf.retransmission"]), (12, [])]
)
def test_a_process_that_has_ended_acknowledges_nothing(gone_ms: int | None, found: list[str]) -> None:
    gone = {} if gone_ms is None else {"gone_ns": {(1, 71): gone_ms * MS}}
    assert [name for name in asked().found(**gone) if name == "mbcf.retransmission"] == found


def test_a_full_socket_discards_acknowledgements() -> None:
    assert "mbcf.retransmission" not in asked().found(congested={1: FULL})
    assert "mbcf.retransmission" in asked().found(congested={2: FULL})


@pytest.mark.parametrize(("op", "found"), [(PROBE, []), (RESULT, ["mbcf.ack"])])
def test_a_probe_leaves_owed_what_is_owed(op: int, found: list[str]) -> None:
    lines = Lines()
    lines.put(10, WRITE, 1, 1)
    lines.put(13, op, 2, seq=0 if op == PROBE else 1, ack=1, arrives=False)
    lines.put(14, ACK, 2, ack=1)
    assert [name for name in lines.found() if name == "mbcf.ack"] == found


def test_what_a_frame_behind_a_gap_acknowledges_is_known_and_completes_nothing() -> None:
    lines = Lines()
    lines.put(10, WRITE, 1, 1)
    lines.put(12, WRITE, 2, 1, ack=1, arrives=False)
    lines.put(14, WRITE, 2, 2, ack=1)
    made = lines.check()
    assert (made.findings.height, made.sure_ns) == (0, {})
    lines.put(100, WRITE, 1, 1, flags=RETX | ACK_NOW)
    assert "1 was acknowledged before" in lines.check().findings["seen"].to_list()


def test_tags_mean_what_was_defined_before_in_the_sequence() -> None:
    fields = ("key", "high", "source", "target")
    none = {f"mbcf_defined_{name}": None for name in fields}
    first = {f"mbcf_defined_{name}": value for name, value in zip(fields, (5, 1, 17, 18), strict=True)}
    common = {"view": "sent", "mbcf_source": 1, "mbcf_target": 2, "mbcf_epoch": 71, "mbcf_target_epoch": 72}
    frames = [
        {"row": 0, "time_ns": 10, "mbcf_seq": 2, "mbcf_flags": 0, **none},
        {"row": 1, "time_ns": 20, "mbcf_seq": 1, "mbcf_flags": DEFINES | RETX, **first},
    ]
    rows = [{**common, "mbcf_op": WRITE, "mbcf_tag": 0, "mbcf_last": 64, **frame} for frame in frames]
    found = resolved(pl.DataFrame(rows, infer_schema_length=None))
    assert found.select("mbcf_key", "mbcf_address", "mbcf_turn_ns").rows() == [
        (5, "0x0000000100000040", 10), (5, "0x0000000100000040", 9),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("app", "sent_ms", "late"),
    [("echo-server", 14, False), ("echo-server", 21, True), ("dce-server", 21, False), ("dce-server", 31, True)],
)
def test_an_acknowledgement_waits_for_the_table_of_a_dce_server_and_no_longer(
    app: str, sent_ms: int, late: bool
) -> None:
    lines = Lines()
    lines.put(10, WRITE, 1, 1)
    lines.put(sent_ms, ACK, 2, ack=1)
    own_ns = own_instructions({"services": [{"app": "portmapper"}, {"app": app}]}) * 8  # at 125 mips
    assert ("mbcf.ack" in lines.found(own_ns={1: MS, 2: own_ns})) is late


@pytest.mark.parametrize(
    ("fate", "adapter", "found"),
    [("dropped", "client:eth0", 0), ("dropped", "joint:eth0", 3), ("lost", "client:eth0", 3), (None, None, 3)],
)
def test_what_the_adapter_of_a_node_drops_was_sent(fate: str | None, adapter: str | None, found: int) -> None:
    lines = Lines()
    for ms, seq, flags in ((10, 1, 0), (12, 2, 0), (14, 3, 0), (40, 2, RETX | ACK_NOW), (42, 3, RETX)):
        lines.put(ms, WRITE, 1, seq, flags=flags, arrives=ms != 12)
    lines.put(46, ACK, 2, ack=3)
    of_node = {"fate": None, "fate_adapter": None}
    refused = {"view": "fate", "fate": fate, "fate_adapter": adapter}
    rows = [{**row, **(refused if row["time_ns"] == 12 * MS else of_node)} for row in lines.rows]
    frames = pl.DataFrame(rows, schema_overrides={"fate": pl.String, "fate_adapter": pl.String})
    made = check_channels(
        with_refused(frames.with_row_index("row"), {"client": 1, "server": 2}),
        exact_time=True, contentions={}, own_ns={1: MS, 2: MS}, end_ns={},
    )  # fmt: skip
    names = made.findings["field"].to_list()
    assert names.count("mbcf.sequence") + names.count("mbcf.retx") == found, names


@pytest.mark.parametrize(
    ("services", "threads", "programs"), [(1, [], 1), (0, [1], 1), (1, [1], 2), (2, [1, 4, 2], 6), (0, [], 1)]
)
def test_programs_of_one_machine_share_its_processor(services: int, threads: list[int], programs: int) -> None:
    steps = [{"app": "raw-client", "options": {"threads": count}} for count in threads]
    assert at_once({"services": [{"app": "raw-server"}] * services, "steps": steps}) == programs
