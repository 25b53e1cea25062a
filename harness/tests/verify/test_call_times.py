# SPDX-License-Identifier: Apache-2.0
"""Starts and ends of calls against their frames, on one clock and on two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from sundial.verify import verify_run
from sundial.verify.contention import Contention, contention_of
from sundial.verify.run import _ahead_ns
from sundial.verify.segment import HELD_BACK
from sundial.verify.sockets.call_times import DRIFT, check_call_times, check_late_requests
from sundial.verify.sockets.udp import _begun_in_order
from tests.verify.bed import CLIENT, RPC_PORT, SERVER, Bed, Stream, rpc_call, rpc_reply

AHEAD_NS = 1_500_000_000
CALLS = 100


def calls(ahead_ns: int, drift: float = 0.0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Calls of 1 ms every 2 ms, whose frames are 100 us from their ends; the captures' clock is ahead."""
    start = [2_000_000 * number for number in range(CALLS)]
    ids = pl.int_range(CALLS, dtype=pl.UInt32, eager=True)
    table = pl.DataFrame({"id": ids, "call": ids, "client": "client", "ok": True, "start_ns": start}).with_columns(
        end_ns=pl.col("start_ns") + 1_000_000
    )
    on_wire = {name: pl.col(name) + ahead_ns + (pl.col(name) * drift).cast(pl.Int64) for name in ("start_ns", "end_ns")}
    stamps = table.select(
        call="id", call_first_tx_ns=on_wire["start_ns"] + 100_000, reply_last_rx_ns=on_wire["end_ns"] - 100_000
    )
    return table, stamps


def moved(table: pl.DataFrame, call: int, column: str, by: int) -> pl.DataFrame:
    return table.with_columns(pl.when(pl.col("id") == call).then(pl.col(column) + by).otherwise(column).alias(column))


@pytest.mark.parametrize("drift", [0.0, 0.4 * DRIFT, -0.4 * DRIFT])
def test_a_clock_that_is_elsewhere_and_runs_a_little_wrong_is_no_finding(drift: float) -> None:
    assert check_call_times(*calls(AHEAD_NS, drift), exact_time=False).is_empty()


@pytest.mark.parametrize(("column", "by", "field"), [("start_ns", 400_000, "start"), ("end_ns", -400_000, "end")])
@pytest.mark.parametrize("exact", [True, False])
def test_what_contradicts_the_frames_is_found(column: str, by: int, field: str, exact: bool) -> None:
    table, stamps = calls(0 if exact else AHEAD_NS)
    found = check_call_times(moved(table, 40, column, by), stamps, exact)
    assert found.select("call", "field").rows() == [(40, field if exact else "rtt")]


def test_one_nanosecond_is_found_on_one_clock() -> None:
    table, stamps = calls(0)
    assert check_call_times(moved(table, 1, "end_ns", -100_000), stamps, True).is_empty()
    assert check_call_times(moved(table, 1, "end_ns", -100_001), stamps, True)["field"].to_list() == ["end"]


def test_a_failed_call_may_end_before_its_reply_arrives() -> None:
    table, stamps = calls(0)
    failed = moved(table, 1, "end_ns", -500_000).with_columns(ok=pl.col("id") != 1)
    assert check_call_times(failed, stamps, True).is_empty()


def fields(bed: Bed) -> set[str]:
    return {problem["field"] for problem in verify_run(bed.write()).problems}


def test_a_reply_in_a_stream_before_its_request_is_found(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    stream = Stream(bed, 800, RPC_PORT, {CLIENT: 1000, SERVER: 2000})
    stream.open()
    bed.batch("echo-client", "tcp", 16, RPC_PORT, 800)
    stream.call(16, 7, [4 + len(rpc_call(7, 16))], [4 + len(rpc_reply(7, 16))])
    request = next(record for record in bed.records if len(record.frame) > 100 and record.interface == 1)
    request.at += 1_000_000
    assert "reply.sent" in fields(bed)


def test_names_that_come_again_go_to_calls_by_order() -> None:
    key = {"flow": pl.UInt32, "key": pl.Int64}
    table = pl.DataFrame(
        {"id": [0, 1, 2], "flow": [0, 0, 0], "key": [-1, -1, -1], "start_ns": [5, 6, 7], "retransmits": [0, 1, 0]},
        schema_overrides=key,
    )
    heads = pl.DataFrame(
        {"row": range(4), "flow": 0, "key": -1, "view": "sent", "reply": False, "time_ns": [100, 200, 300, 400]},
        schema_overrides=key,
    )
    begun = _begun_in_order(heads, table).sort("id")
    assert begun["start_ns"].to_list() == [100, 200, 400], "the second call was sent twice"


def late(
    lines: dict[str, Contention] | None = None,
    held: Sequence[tuple[int, int]] = (),
    asked: Sequence[tuple[int, int]] = (),
) -> list[tuple[str, str]]:
    """Findings about a call that ends at 1,000 ns, and whose request, row 3, leaves at 2,000."""
    ended = pl.DataFrame({"id": [7], "end_ns": [1_000]}, schema_overrides={"id": pl.UInt32})
    sent = pl.DataFrame(
        {"call": [7], "reply": [False], "first_ns": [2_000], "rows": [[3]]},
        schema_overrides={"call": pl.UInt32, "rows": pl.List(pl.UInt32)},
    )
    ports = pl.DataFrame({"interface": ["c:eth0"], "row": [3]}, schema_overrides={"row": pl.UInt32})
    kept = pl.DataFrame(held, HELD_BACK, orient="row")
    waits = {"c": [("10.0.0.1", *each) for each in asked]}
    return check_late_requests(ended, sent, ports, lines or {}, lambda: kept, waits).select("field", "seen").rows()


LATE = [("request.sent", "at 2000 ns")]


@pytest.mark.parametrize(("free_ns", "found"), [(0, []), (1, LATE)])
def test_a_request_leaves_after_its_call_only_where_its_line_was_never_free(
    free_ns: int, found: list[tuple[str, str]]
) -> None:
    lines = {"c:eth0": contention_of([(0, 1_500), (1_500 + free_ns, 2_500)])}
    assert late(lines) == found
    assert late() == LATE


@pytest.mark.parametrize(("row", "since_ns", "found"), [(3, 1_000, 0), (3, 1_001, 1), (4, 1_000, 1)])
def test_a_request_that_an_adapter_had_before_its_call_was_over_may_leave_later(
    row: int, since_ns: int, found: int
) -> None:
    assert len(late(held=[(row, since_ns)])) == found


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ([(900, 1_990)], 0),
        ([(1_001, 1_990)], 1),
        ([(900, 2_001)], 1),
        ([(900, 999)], 1),
        ([], 1),
    ],
)
def test_a_request_that_waited_for_arp_when_its_call_was_over_may_leave_with_the_answer(
    asked: list[tuple[int, int]], found: int
) -> None:
    assert len(late(asked=asked)) == found


def test_frames_that_wait_behind_others_do_not_move_their_clients_clock() -> None:
    """The captures' clock is 700 ns ahead; most first frames wait."""
    begun = pl.DataFrame({"id": [0, 1, 2], "client": "client", "start_ns": [0, 1_000, 2_000]})
    left = pl.DataFrame({"call": [0, 1, 2], "call_first_tx_ns": [90_000, 1_700, 80_000]})
    analysis = SimpleNamespace(calls=begun, observed=left)
    assert _ahead_ns(analysis) == {"client": 700}  # type: ignore[arg-type]
