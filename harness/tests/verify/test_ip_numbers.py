# SPDX-License-Identifier: Apache-2.0
"""IPv4's identification, and fragments: a count that goes round, what ARP or an adapter drops."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import polars as pl
import pytest

from sundial.verify.frames import CUT_NS, INBOUND, OUTBOUND, cut_off
from sundial.verify.headers import ip
from sundial.verify.headers.arp import Stretches
from sundial.verify.headers.ip import _check_datagrams, _linux_tcp, _steps, _without_unnumbered
from sundial.verify.sockets.messages import check_datagrams

MS = 1_000_000


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ([65534, 65535, 0, 1], [65534, 65535, 0, 1]),
        ([7, 0, 8], [7, 8]),
        ([65535, 1], [65535, 1]),
        ([0, 5], [5]),
    ],
)
def test_a_count_goes_round_through_zero(numbers: list[int], kept: list[int]) -> None:
    table = pl.DataFrame(
        {"ip_id": numbers, "time_ns": range(len(numbers)), "row": range(len(numbers)), "socket": [1] * len(numbers)}
    )
    assert _without_unnumbered(table, pl.col("ip_id") == 0, ["socket"])["ip_id"].to_list() == kept


def steps(*packets: tuple[int, int], waits: Stretches | None = None) -> list[str]:
    """What is expected of the numbers of one socket's packets: when each left, in ms, and its number."""
    table = pl.DataFrame(
        [(row, "m", "flow", at * MS, number) for row, (at, number) in enumerate(packets)],
        {"row": pl.UInt32, "machine": pl.String, "flow": pl.String, "time_ns": pl.Int64, "ip_id": pl.UInt32},
        orient="row",
    ).with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"), least=pl.lit(1), most=pl.lit(1))
    return _steps(table, ["flow"], waits or {})["expected"].to_list()


@pytest.mark.parametrize(
    ("waits", "found"),
    [
        ({}, ["1 to 1 more than 7"]),
        ({"m": [(5 * MS, 3000 * MS)]}, []),
        ({"other": [(5 * MS, 3000 * MS)]}, ["1 to 1 more than 7"]),
        ({"m": [(3001 * MS, 9000 * MS)]}, ["1 to 1 more than 7"]),  # it began behind the step
    ],
)
def test_what_is_dropped_while_arp_has_no_answer_had_its_number(waits: Stretches, found: list[str]) -> None:
    assert steps((0, 6), (1, 7), (3000, 12), (3001, 13), waits=waits) == found


def test_while_arp_has_no_answer_a_number_does_not_come_twice() -> None:
    assert steps((0, 6), (3000, 6), waits={"m": [(0, 3000 * MS)]}) == ["1 to 65535 more than 6"]


def fragments(*sent: tuple[int, int, bool, str | None], cut: tuple[int, ...] = ()) -> list[str]:
    """The findings of one datagram's fragments: offset, bytes, whether more follow, and the fate. `cut`: places of
    those behind which the run ended."""
    table = pl.DataFrame(
        [(row, row, at, 20 + size, more, fate) for row, (at, size, more, fate) in enumerate(sent)],
        {"row": pl.UInt32, "time_ns": pl.Int64, "fragment_offset": pl.Int64, "ip_length": pl.UInt32,
         "more": pl.Boolean, "fate": pl.String},
        orient="row",
    ).with_columns(
        end=pl.lit("m"), source=pl.lit("10.0.0.1"), target=pl.lit("10.0.0.2"), protocol=pl.lit(17), ip_id=pl.lit(9),
        ip_header=pl.lit(20), offloads=pl.lit(False), inner=pl.lit(False), udp_length=pl.lit(2000), machine=pl.lit("n"),
        udp_checksum=pl.lit(0), ip_payload_sum=pl.lit(None, pl.UInt32),
    )  # fmt: skip
    return _check_datagrams(table, {}, pl.Series(cut, dtype=pl.UInt32))["field"].to_list()


FIRST, SECOND, LAST = (0, 800, True), (800, 800, True), (1600, 400, False)
GONE = "dropped"


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ([(*FIRST, None), (*SECOND, None), (*LAST, None)], []),
        # An adapter that holds frames back refuses what it has no place for before it sends the first.
        ([(*LAST, GONE), (*FIRST, None), (*SECOND, None)], []),
        ([(*SECOND, GONE), (*LAST, GONE), (*FIRST, None)], []),
        ([(*LAST, GONE), (*SECOND, GONE), (*FIRST, None)], ["ip.fragments"]),
        ([(*FIRST, None), (*LAST, None), (*SECOND, None)], ["ip.fragments"]),
        ([(*FIRST, None), (*LAST, None)], ["ip.fragments"]),
        ([(*FIRST, None), (*SECOND, None)], ["ip.fragments"]),
        ([(*SECOND, GONE), (*FIRST, None)], ["ip.fragments"]),
    ],
)
def test_fragments_leave_in_order_and_so_do_those_that_are_refused(
    sent: list[tuple[int, int, bool, str | None]], found: list[str]
) -> None:
    assert fragments(*sent) == found


@pytest.mark.parametrize(
    ("sent", "found"),
    [([FIRST], []), ([FIRST, SECOND], []), ([SECOND], ["ip.fragments"]), ([FIRST, LAST], ["ip.fragments"])],
)
def test_a_datagram_that_is_cut_off_by_the_end_of_the_run_has_its_first_fragments(
    sent: list[tuple[int, int, bool]], found: list[str]
) -> None:
    assert fragments(*((*each, None) for each in sent), cut=(len(sent) - 1,)) == found


@pytest.mark.parametrize(("end_ns", "rows"), [(None, []), (CUT_NS + 2, [1, 2]), (CUT_NS + 3, [2]), (CUT_NS + 9, [])])
def test_what_ports_sent_last_before_the_end_is_cut_off(end_ns: int | None, rows: list[int]) -> None:
    frames = pl.DataFrame(
        [(0, "a", 1, OUTBOUND, None), (1, "a", 3, OUTBOUND, None), (2, "b", 4, OUTBOUND, None),
         (3, "b", 5, INBOUND, None), (4, "b", 6, OUTBOUND, "dropped")],
        {"row": pl.UInt32, "end": pl.String, "time_ns": pl.Int64, "direction": pl.UInt8, "fate": pl.String},
        orient="row",
    )  # fmt: skip
    assert sorted(cut_off(frames, end_ns)) == rows


@pytest.mark.parametrize(
    ("layout", "cut", "found"),
    [("0:8+", [5], []), ("0:8+", [], ["request.fragments"]), ("8:8+", [5], ["request.fragments"])],
)
def test_a_request_that_is_cut_off_by_the_end_of_the_run_has_its_first_fragments(
    layout: str, cut: list[int], found: list[str]
) -> None:
    sent = pl.DataFrame(
        {"call": [1], "reply": [False], "layout": [layout], "count": [1], "rows": [[5]]},
        schema_overrides={"rows": pl.List(pl.UInt32)},
    )
    expected = pl.DataFrame({"call": [1], "reply": [False], "layout": ["0:8+,8:8+,16:4"], "packets": [3],
                             "unsent": [False], "reply_unsent": [False]})  # fmt: skip
    dropped = pl.DataFrame(schema={"call": pl.Int64, "reply": pl.Boolean, "dropped": pl.Int64})
    table = check_datagrams(sent, expected, dropped, pl.Series(cut, dtype=pl.UInt32))
    assert table["field"].to_list() == found


def step_of_the_next(length: int, windows: tuple[int, int], *, inner: bool) -> int:
    """The largest step of the number behind a packet of `length` bytes, where both ends opened with `windows`."""
    flow = {"source": "a", "target": "b", "source_port": 1, "target_port": 2}
    back = {"source": "b", "target": "a", "source_port": 2, "target_port": 1}
    sent = pl.DataFrame([{**flow, "tcp_length": each, "inner": inner, "offloads": False} for each in (length, 10)])
    opening = pl.DataFrame([{**each, "tcp_window": window} for window in windows for each in (flow, back)])
    return int(_linux_tcp(sent, opening, ["source", "source_port"])["most"][1])


@pytest.mark.parametrize(
    ("length", "window", "inner", "most"),
    # 62,035 bytes over a loopback of Linux 6.12: two segments, since the window was 65,483.
    [(62_035, 65_483, True, 2), (32_741, 65_483, True, 1), (65_483, 65_483, True, 3), (1_000, 600, True, 4),
     (62_035, 65_483, False, 1), (0, 65_483, True, 1)],
)  # fmt: skip
def test_a_packet_that_would_be_cut_has_a_number_for_each_segment(
    length: int, window: int, inner: bool, most: int
) -> None:
    assert step_of_the_next(length, (window, window + 10), inner=inner) == most


def test_a_connection_whose_opening_was_not_captured_has_single_steps() -> None:
    sent = pl.DataFrame(
        [{"source": "a", "target": "b", "source_port": 1, "target_port": 2, "tcp_length": 60_000, "inner": True,
          "offloads": False}] * 2
    )  # fmt: skip
    opening = sent.clear().select("source", "target", "source_port", "target_port", tcp_window=pl.lit(0))
    assert _linux_tcp(sent, opening, ["source"])["most"].to_list() == [1, 1]


def datagrams(random: Random, damage: str | None) -> pl.DataFrame:
    """Some datagrams in one or more fragments, of few identifications that come again, each with its length and
    checksum; of one, something is damaged."""
    rows: list[dict[str, object]] = []
    count = 40
    for number in range(count):
        sizes = [800] * random.choice([0, 0, 1, 2, 5]) + [random.randrange(8, 800)]
        sums, length = [random.randrange(1 << 16) for _ in sizes], sum(sizes)
        pseudo = 2 * (0x0A00) + 1 + 2 + 17 + length
        rest = (sum(sums) + pseudo) % 0xFFFF
        sums[-1] += 0xFFFF - rest
        place = 0
        for part, size in enumerate(sizes):
            rows.append(
                {
                    "datagram": number, "part": part, "ip_id": number % 7, "fragment_offset": place,
                    "ip_length": 20 + size, "more": part < len(sizes) - 1, "ip_payload_sum": sums[part],
                    "udp_length": length if not part else None, "udp_checksum": 7 if not part else None,
                    "source": "10.0.0.1", "fate": None,
                }
            )  # fmt: skip
            place += size
    hit = random.choice([place for place, row in enumerate(rows) if not row["part"] and row["more"]])
    last = max(place for place, row in enumerate(rows) if row["datagram"] == rows[hit]["datagram"])
    match damage:
        case "length":
            rows[hit]["udp_length"] = 5
        case "checksum":
            rows[last]["ip_payload_sum"] = int(str(rows[last]["ip_payload_sum"])) + 1
        case "no checksum":
            rows[hit]["udp_checksum"] = 0
        case "last missing":
            rows[last]["more"] = True
        case "first missing":
            rows[hit]["fragment_offset"] = 8
        case "two at once":
            rows.insert(hit, dict(rows[hit]))
        case "turned round":
            rows[hit], rows[hit + 1] = rows[hit + 1], rows[hit]
    table = pl.DataFrame(rows, infer_schema_length=None).with_row_index("row").drop("datagram", "part")
    kinds = {"fragment_offset": pl.UInt32, "ip_length": pl.UInt32, "ip_id": pl.UInt32, "udp_length": pl.UInt32}
    return table.cast({**kinds, "fate": pl.String}).with_columns(
        time_ns=pl.col("row").cast(pl.Int64) * MS, end=pl.lit("m"), target=pl.lit("10.0.0.2"), machine=pl.lit("n"),
        protocol=pl.lit(17), ip_header=pl.lit(20), offloads=pl.lit(False), inner=pl.lit(False),
    )  # fmt: skip


@pytest.mark.parametrize(
    "damage",
    [None, "length", "checksum", "no checksum", "last missing", "first missing", "two at once", "turned round"],
)
def test_what_sums_show_to_be_right_would_be_right_one_by_one(damage: str | None) -> None:
    nothing = pl.Series([], dtype=pl.UInt32)
    for seed in range(8):
        table = datagrams(Random(seed), damage)
        quick = _check_datagrams(table, {}, nothing)
        with patch.object(ip, "_plainly_whole", lambda udp: pl.repeat(False, udp.height, eager=True)):
            slow = _check_datagrams(table, {}, nothing)
        assert quick.equals(slow)
        assert quick.is_empty() is (damage is None)
        assert ip._plainly_whole(table.with_columns(data=pl.col("ip_length").cast(pl.Int64) - 20, number="ip_id")).any()
