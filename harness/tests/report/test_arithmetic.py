# SPDX-License-Identifier: Apache-2.0
"""Wire time, expected lines, stages, and placing of labels, against numbers known from elsewhere."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sundial.report import expected, headline, plotting, registry, settings, stages, wire_time
from sundial.report.figures import PacketLine
from sundial.report.wire_time import Hop
from sundial.report.workload import Curve, Setting
from sundial.workloads.sunrpc.expect import Options

UDP = ("echo-client", "udp", "echo")
RAW_TCP = ("raw-client", "tcp", "echo")
TEN = Hop(10_000_000)


def test_one_frame_takes_its_bits() -> None:
    # Preamble 8, frame 1514, FCS 4: 1526 bytes at 0.8 us.
    assert wire_time.transit_ns([1514], [TEN]) == pytest.approx(1_220_800)


def test_cells_are_counted_whole() -> None:
    # AAL5 on an STM-1 (149.76 Mb/s): 1514 bytes and 8 + 2 of overhead are 31.75 cells of 48, so 32 of 53 bytes.
    atm = Hop(149_760_000, 0.0, False, 10, 48, 5)
    assert wire_time.transit_ns([1514], [atm]) == pytest.approx(32 * 53 * 8e9 / 149_760_000)
    assert wire_time.transit_ns([1514], [atm]) == pytest.approx(90_598, abs=1)
    # 48 bytes fill one cell, 49 want two.
    assert [wire_time.transit_ns([size], [Hop(8 * 10**9, 0.0, False, 0, 48, 5)]) for size in (48, 49)] == [53, 106]
    # An overhead that takes all of the frame leaves nothing to send.
    assert wire_time.transit_ns([40], [Hop(8 * 10**9, 0.0, False, -50)]) == 0


def test_small_frames_are_padded_and_gaps_lie_between_frames() -> None:
    assert wire_time.transit_ns([42], [TEN]) == pytest.approx(72 * 800)
    assert wire_time.transit_ns([42, 42], [TEN]) == pytest.approx((72 + 12 + 72) * 800)
    assert wire_time.transit_ns([], [TEN]) == 0


def test_store_and_forward_pipelines_frames() -> None:
    # The second hop sends the first frame while the first one sends the second.
    one = wire_time.transit_ns([1514], [TEN, TEN])
    two = wire_time.transit_ns([1514, 1514], [TEN, TEN])
    assert one == pytest.approx(2 * 1_220_800)
    assert two - one == pytest.approx(1_220_800 + 9_600)


def test_a_delay_is_no_queue() -> None:
    delayed = wire_time.transit_ns([1514, 1514], [TEN, Hop(wire_time.INSTANT_BPS, 5e6, False)])
    assert delayed == pytest.approx(2 * 1_220_800 + 9_600 + 5e6, abs=1)


def test_wire_minimum_of_the_papers_largest_echo() -> None:
    """PROTOCOLS.md section 9: a UDP echo of 8192 over 10 Mb/s cannot beat 13.715 ms."""
    floor = expected.wire_minimum(Setting(UDP), [8192], [TEN], [TEN])
    assert floor is not None
    assert floor.us == [pytest.approx(13_715.2)]


def test_packet_lines_step_at_the_edges_between_run_sizes() -> None:
    lines = expected.packet_lines(Setting(UDP), [0, 8192])
    assert _steps(lines["request"]) == [1429, 2909, 4389, 5869, 7349]
    assert _steps(lines["reply"]) == [1445, 2925, 4405, 5885, 7365]


def _steps(line: PacketLine) -> list[int]:
    pairs = list(zip(line.sizes, line.most, strict=True))
    return [size for (size, count), (_, before) in zip(pairs[1:], pairs, strict=False) if count != before]


def test_unknown_traffic_has_no_line() -> None:
    curve: Curve = ("mbcf-client", "mbcf", "echo")
    assert expected.packet_lines(Setting(curve), [16, 1024]) == {}
    assert expected.wire_minimum(Setting(curve), [16], [TEN], [TEN]) is None


def test_sizes_that_cannot_be_sent_are_left_out() -> None:
    floor = expected.wire_minimum(Setting(RAW_TCP), [0, 16], [TEN], [TEN])
    assert floor is not None
    assert floor.sizes == [16]


def test_each_direction_has_its_own_mtu() -> None:
    legs = registry.legs(Setting(UDP, mtu=576, reply_mtu=1500), 1000)
    assert legs is not None
    assert (len(legs[0].packets), len(legs[1].packets)) == (2, 1)


def test_lines_must_agree_with_verification() -> None:
    verify = {"groups": [{"app": UDP[0], "transport": "udp", "procedure": "echo", "size": 1420,
                          "expected": {"request": {"packets": 2}, "reply": {"packets": 1}}}]}  # fmt: skip
    counts = settings.verified_counts(verify, UDP)
    assert counts == {1420: (2, 1)}
    assert not settings.agrees(Setting(UDP), counts)
    assert settings.agrees(Setting(UDP, options=Options(credential=24)), counts)
    assert settings.lines_of_counts(counts)["request"] == PacketLine([1420], [2], [2])


def call(number: int, **changes: object) -> dict[str, object]:
    return {"client": "c", "batch": 0, "call": number, "warmup": False, "ok": True, "retransmits": 0, "size": 16,
            "start_ns": 1_000, "end_ns": 91_000, "rtt_ns": 90_000, **changes}  # fmt: skip


def seen(number: int, **changes: object) -> dict[str, object]:
    return {"client": "c", "batch": 0, "call": number, "call_first_tx_ns": 11_000, "call_last_rx_ns": 31_000,
            "reply_first_tx_ns": 61_000, "reply_last_rx_ns": 76_000, "retransmissions": 0, **changes}  # fmt: skip


def test_stages_add_up_to_the_round_trip() -> None:
    joined = stages.join(pl.DataFrame([call(0)]), pl.DataFrame([seen(0)]))
    row = stages.stages(joined, ["size"], True).row(0, named=True)
    assert [row[name] for name in stages.STAGES] == [10, 20, 30, 15, 15]
    assert sum(row[name] for name in stages.STAGES) == row["rtt"] == 90
    assert row["client"] == 25


def test_stages_leave_out_what_was_sent_twice_failed_or_warmed_up() -> None:
    samples = pl.DataFrame([call(0), call(1, ok=False), call(2, warmup=True), call(3, retransmits=1), call(4), call(5)])
    observed = pl.DataFrame([seen(5), seen(4, retransmissions=1), seen(3), seen(2), seen(1), seen(0)])
    table = stages.stages(stages.join(samples, observed), ["size"], False)
    assert table["calls"].to_list() == [2]
    assert "client_call" not in table.columns


def test_stages_need_all_four_stamps() -> None:
    joined = stages.join(pl.DataFrame([call(0), call(1)]), pl.DataFrame([seen(0), seen(1, reply_last_rx_ns=None)]))
    assert joined["call"].to_list() == [0]
    assert stages.join(pl.DataFrame([call(0)]), pl.DataFrame()).is_empty()


@pytest.mark.parametrize(
    ("wanted", "placed"),
    [
        ([0, 100], [0, 100]),
        ([50, 50], [45, 55]),
        ([48, 50, 52], [40, 50, 60]),
        ([98, 99], [88, 98]),
        ([0, 1], [2, 12]),
        ([], []),
    ],
)
def test_labels_are_moved_apart_and_stay_inside(wanted: list[float], placed: list[float]) -> None:
    low, high = (0, 100) if wanted == [0, 100] else (2, 98)
    assert plotting.spread(wanted, 10, low, high) == pytest.approx(placed)


def test_size_ticks() -> None:
    assert plotting.size_ticks(0, 8192) == [0, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192]
    assert plotting.size_ticks(16, 8192, 1480) == [1480, 2960, 4440, 5920, 7400]
    assert plotting.size_ticks(0, 65536) == list(range(0, 65537, 8192))


def test_scale_of_sizes() -> None:
    assert plotting.geometric([16, 32, 64, 128, 256, 512])
    assert not plotting.geometric(list(range(16, 8193, 16)))
    assert not plotting.geometric([0, 16])


def test_the_command_names_the_launcher_wherever_it_lay() -> None:
    words = ["/somewhere/harness/sundial/cli/__main__.py", "run", "quickstart", "--set", "sizes=16, 32"]
    assert headline.command({"command": words}) == "./sundial run quickstart --set 'sizes=16, 32'"
    assert headline.command({}) == ""


def test_an_image_is_named_with_what_it_was_made_of() -> None:
    libraries = {"python": {"python": "3.11.2", "rpyc": "5.3.0"}, "cpp": {"grpc": "1.51.1"}}
    images = {"linux-python": {"recipe": "tuned", "hz": 250, "libraries": libraries}, "other": {"recipe": "own"}}
    said = dict(headline.setup({"images": images}))["images"]
    assert said == "linux-python (tuned, HZ=250, python 3.11.2, rpyc 5.3.0, cpp grpc 1.51.1); other (own)"


LABELS = [f"client of kind {number} / MBCF3 procedure{number}" for number in range(48)]


@pytest.mark.parametrize("width", [9.6, 4.4])
@pytest.mark.parametrize("labels", [LABELS, LABELS[:31], ["short"] * 40])
def test_a_legend_of_many_curves_is_inside_its_figure_and_leaves_room(width: float, labels: list[str]) -> None:
    figure = Figure(figsize=(width, 3.1))
    columns, more = plotting.legend_rows(figure, labels)
    place = plotting.margins(figure, left=0.75, right=0.2, top=0.75 + more, bottom=0.52)
    assert (place["top"] - place["bottom"]) * figure.get_figheight() == pytest.approx(3.1 - 0.75 - 0.52)
    plotting.legend(figure, [Line2D([], [], label=label) for label in labels], columns)
    box = figure.legends[0].get_window_extent(FigureCanvasAgg(figure).get_renderer())
    assert box.x1 <= figure.bbox.x1
    assert box.y0 >= figure.bbox.y1 - (0.72 + more) * figure.dpi


def test_a_legend_takes_as_many_columns_as_fit() -> None:
    figure = Figure(figsize=(9.6, 3.1))
    assert plotting.legend_rows(figure, ["a", "b", "c"]) == (3, 0)
    assert plotting.legend_rows(figure, LABELS[:4])[0] < 4
    assert plotting.legend_rows(figure, []) == (1, 0)
