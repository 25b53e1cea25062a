# SPDX-License-Identifier: Apache-2.0
"""What reports show of ATM: cells of calls, one call as cells, the first exchange, channels and losses, the drawing."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.expect import atm
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.report import (
    cells,
    drawings,
    expected,
    tables_run,
    topology_narrow,
    topology_read,
    topology_svg,
    topology_text,
    wire_time,
)
from sundial.report.build import build_report
from sundial.report.registry import legs
from sundial.report.topology_view import Topology, cells_between
from sundial.report.workload import Setting
from sundial.segments.atm import report_call, report_lane, report_tables
from tests import fates as comments
from tests.report import synthetic_atm
from tests.report.test_topology_drawing import texts

UDP = ("echo-client", "udp", "echo")
SHIPPED = ("two-hosts-lane", "two-hosts-lane-25", "two-hosts-clip", "pc-hub-lane", "lane-office")
ENDS = {"client": [int(IPv4Address("10.0.0.1"))], "server": [int(IPv4Address("10.0.0.2"))]}


def shipped(name: str) -> Topology:
    return topology_read.of_network(build_network(load_topology(name)))


# The drawing


@pytest.mark.parametrize("name", SHIPPED)
def test_both_drawings_name_everything(name: str) -> None:
    topology = shipped(name)
    for svg in (topology_svg.draw(topology), topology_narrow.draw(topology)):
        words = texts(svg)
        for machine in topology.machines:
            assert machine.name in words
            assert {nic.mac for nic in machine.nics} <= set(words)
        for segment in topology.segments:
            assert {segment.name, *segment.services} <= set(words)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_narrow_drawing_fits_a_phone(name: str) -> None:
    assert topology_svg.natural_width(topology_narrow.draw(shipped(name))) <= 400


def test_an_atm_switch_in_words() -> None:
    (segment,) = shipped("two-hosts-lane").segments
    assert segment.lines[:3] == ("ATM switch", "OC-3c, 149.76 Mb/s", "LAN emulation 1516, LE_ARP")
    assert segment.services == ("LECS, LES, BUS", "OC-3c, 149.76 Mb/s", "each message 50 µs")
    assert segment.mesh == 0


def test_classical_ip_has_a_mesh_and_no_services() -> None:
    (segment,) = shipped("two-hosts-clip").segments
    assert "classical IP (RFC 2225)" in segment.lines
    assert segment.lines[-1] == "mesh of 1 channel"
    assert segment.services == ()


def test_the_mixed_path_as_text() -> None:
    assert topology_text.draw(shipped("pc-hub-lane")) == (
        "   client  linux, 7.8125 mips\n"
        "┌─   eth0  10.0.0.1/24        02:53:44:00:00:01\n"
        "├─ hub     hub, half duplex; 10 Mb/s; cable 25 ns; repeater 800 ns\n"
        "│  edge    bridge; no CPU; 20 µs to forward; queues of 128 frames\n"
        "└─   e0                       02:53:44:01:00:01\n"
        "┌─   a0                       02:53:44:01:01:01\n"
        "├─ elan    ATM switch; OC-3c, 149.76 Mb/s; LAN emulation 1516, LE_ARP; cable 25 ns; cells through the\n"
        "│          switch 10 µs; queues of 1024 cells; inside: LECS, LES, BUS, OC-3c, 149.76 Mb/s, each message 50\n"
        "│          µs\n"
        "│  server  linux, 62.5 mips\n"
        "└─   eth0  10.0.0.2/24        02:53:44:00:00:02\n"
    )


# The wire minimum over a device


def test_the_mixed_path_counts_each_latency() -> None:
    path = wire_time.hops(shipped("pc-hub-lane"), "client", "server")
    assert path is not None
    # Hub: 1526 B at 10 Mb/s, two cables and the repeater; bridge; 33 cell times, cable, switch, cable.
    hub = 1526 * 800 + 2 * 25 + 800
    cell = 331_250_000 / 117_000
    assert wire_time.transit_ns([1514], path) == pytest.approx(hub + 20_000 + 33 * cell + 25 + 10_000 + 25, abs=0.01)


def test_a_device_adds_to_each_frame_and_holds_none_up() -> None:
    path = wire_time.hops(shipped("pc-hub-lane"), "server", "client")
    assert path is not None
    one, two = (wire_time.transit_ns([1514] * count, path) for count in (1, 2))
    assert two - one == pytest.approx((1526 + 12) * 800, abs=0.01)


# Cells of calls


def setting() -> Setting:
    return Setting(UDP, packet_cells=lambda ip_length: atm.packet_cells(atm.LANE, ip_length))


def test_expected_cells_step_where_a_cell_is_added() -> None:
    """By hand, byte by byte: N mod 48 is 1 for a call over UDP and 17 for its reply, in the first packet."""
    lines = expected.cell_lines(setting(), [0, 1400])
    for direction, rest in (("request", 1), ("reply", 17)):
        line = lines[direction]
        pairs = list(zip(line.sizes, line.most, strict=True))
        steps = [size for (size, count), (_, before) in zip(pairs[1:], pairs, strict=False) if count > before]
        assert steps == list(range(rest, 1401, 48))
        assert line.fewest == line.most


def test_the_wire_minimum_has_both_sides_of_each_step() -> None:
    topology = shipped("two-hosts-lane")
    out, back = wire_time.hops(topology, "client", "server"), wire_time.hops(topology, "server", "client")
    assert out is not None
    assert back is not None
    floor = expected.wire_minimum(setting(), [16, 1400], out, back)
    assert floor is not None
    assert {48, 49, 64, 65} <= set(floor.sizes)
    us = dict(zip(floor.sizes, floor.us, strict=True))
    assert us[49] - us[48] == pytest.approx(331_250 / 117_000, abs=1e-6)


def test_cells_are_not_said_where_tcp_is_free_to_cut() -> None:
    tcp = Setting(("raw-client", "tcp", "echo"), packet_cells=setting().packet_cells)
    lines = expected.cell_lines(tcp, [16, 60_000])
    assert max(lines["request"].sizes) < 20_000


def test_a_wide_range_is_drawn_without_its_steps() -> None:
    line = expected.cell_lines(setting(), [0, 60_000])["request"]
    assert len(line.sizes) < 700


def test_wires_of_frames_have_no_cells() -> None:
    assert cells_between(shipped("two-hosts-10base-t"), "client", "server") is None
    assert expected.cell_lines(Setting(UDP), [0, 1400]) == {}
    found = cells_between(shipped("pc-hub-lane"), "client", "server")
    assert found is not None
    assert (found[0], found[1](1500)) == ("elan", 32)


def call(number: int, first: int, **changes: Any) -> dict[str, Any]:
    return {"client": "client", "server": "server", "app": "echo-client", "transport": "udp", "procedure": "echo",
            "size": 16, "batch": 0, "call": number, "verdict": "pass", "retransmissions": 0,
            "call_first_tx_ns": first, "call_last_rx_ns": first + 30, "reply_first_tx_ns": first + 50,
            "reply_last_rx_ns": first + 70, **changes}  # fmt: skip


def packet(at: int, count: int, *, back: bool = False, **changes: Any) -> dict[str, Any]:
    ends = [ENDS["client"][0], ENDS["server"][0]]
    source, target = reversed(ends) if back else ends
    fields = {"at_ns": at, "source": source, "target": target, "protocol": 17, "payload": 100, "cells": count}
    return {**fields, **changes}


def seen(calls: list[dict[str, Any]], packets: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    sent = pl.DataFrame(packets, schema=cells.SENT)
    table = cells.seen(pl.DataFrame(calls), sent, ENDS)
    return table.select("direction", "cells", "calls", "wrong").rows()


def test_cells_are_counted_by_call_and_direction() -> None:
    packets = [packet(0, 32), packet(5, 3), packet(50, 2, back=True), packet(100, 32), packet(107, 4),
               packet(155, 2, back=True)]  # fmt: skip
    assert seen([call(0, 0), call(1, 100, verdict="fail")], packets) == [
        ("reply", 2, 2, 1), ("request", 35, 1, 0), ("request", 36, 1, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "stray",
    [
        packet(40, 9),  # after the request has arrived
        packet(5, 9, protocol=6),
        packet(5, 9, payload=0),
        packet(5, 9, source=1),
        packet(5, 9, back=True),
    ],
)
def test_what_belongs_to_no_call_is_not_counted(stray: dict[str, Any]) -> None:
    assert seen([call(0, 0)], [packet(0, 3), stray]) == [("request", 3, 1, 0)]


def test_calls_that_cannot_be_told_apart_are_left_out() -> None:
    packets = [packet(0, 3), packet(10, 3), packet(200, 4), packet(400, 5)]
    calls = [call(0, 0), call(1, 10), call(2, 200), call(3, 400, retransmissions=1)]
    assert seen(calls, packets) == [("request", 4, 1, 0)]


def test_without_stamps_no_cells_are_seen() -> None:
    assert cells.seen(pl.DataFrame(), pl.DataFrame([packet(0, 1)], schema=cells.SENT), ENDS).is_empty()


# One call


def on_the_wire(*rows: tuple[int, str, int, int, bool]) -> pl.DataFrame:
    names = ("at_ns", "interface", "direction", "vci", "last")
    return pl.DataFrame([dict(zip(names, row, strict=True)) for row in rows]).with_columns(count=pl.lit(1, pl.Int64))


def test_cells_begin_at_their_stamp_at_the_sender_and_end_there_at_the_receiver() -> None:
    table = on_the_wire((0, "a:eth0", 2, 65, False), (1000, "a:eth0", 2, 65, True), (3000, "b:eth0", 1, 64, False))
    own = [("a:eth0", 65), ("b:eth0", 64)]
    drawn = report_call.spans(table, {"a:eth0": 1000.0, "b:eth0": 2000.0}, own)
    assert drawn.select("row", "start_us", "wide_us", "pdu").rows() == [
        ("a:eth0 out", 0.0, 1.0, 0), ("a:eth0 out", 1.0, 1.0, 0), ("b:eth0 in", 1.0, 2.0, 0)
    ]  # fmt: skip


def test_pdus_are_told_apart_by_channel_and_last_cell() -> None:
    table = on_the_wire(
        (0, "a:e", 2, 65, False), (1, "a:e", 2, 66, True), (2, "a:e", 2, 65, True), (3, "a:e", 2, 65, True)
    )
    drawn = report_call.spans(table, {"a:e": 1.0}, [("a:e", 65)])
    assert drawn.select("vci", "pdu", "own").rows() == [(65, 0, True), (66, 0, False), (65, 0, True), (65, 1, True)]


def test_the_channels_of_a_call_are_those_between_its_machines() -> None:
    found = report_call.choose(pl.DataFrame([call(0, 0)]))
    assert found is not None
    ports = ["server:eth0", "other:eth0", "client:eth0"]
    assert report_call.own_channels(found, ports, 64) == [("client:eth0", 64), ("server:eth0", 66)]
    behind = report_call.own_channels(found, ["edge:a0", "server:eth0"], 64)
    assert set(behind) == {("edge:a0", 65), ("server:eth0", 64)}


def test_the_call_that_is_drawn_is_the_last_one_next_to_two_packets() -> None:
    calls = [call(number, 1000 * size + number, size=size) for size in (16, 1024, 2000, 8192) for number in range(3)]
    calls.append(call(3, 9_000_000, size=2000, retransmissions=1))
    found = report_call.choose(pl.DataFrame(calls))
    assert found is not None
    assert (found.label, found.request) == ("Sun RPC / UDP, 2000 B", (2_000_002, 2_000_032))
    assert report_call.choose(pl.DataFrame()) is None
    assert report_call.choose(pl.DataFrame(calls).clear()) is None


# The first exchange


def test_control_frames_are_named_as_the_standard_has_them() -> None:
    assert report_lane.words(bytes.fromhex("ff0001010006") + bytes(10)) == ("LE_ARP_REQUEST", True)
    assert report_lane.words(bytes.fromhex("ff0001010103")) == ("READY_IND", True)
    assert report_lane.words(bytes.fromhex("ff0001010999") + bytes(10)) == ("control frame 0x0999", True)
    assert report_lane.words(bytes.fromhex("0001") + bytes(12) + bytes.fromhex("0806")) == ("ARP", False)


def test_the_first_exchange_ends_when_both_send_directly() -> None:
    records = sorted(synthetic_atm.first_exchange(synthetic_atm.arp(1)), key=lambda record: record.at_ns)
    ports = ["client:eth0", "server:eth0"]
    table = pl.DataFrame(
        [(each.at_ns, ports[each.interface], each.direction, each.vci, len(each.payload) // 48) for each in records],
        schema=["time_ns", "interface", "direction", "vci", "cells"], orient="row",
    )  # fmt: skip
    found = report_lane.events(table, [record.payload[:16] for record in records], ports)
    assert [event.text.partition(",")[0] for event in found] == [
        "ARP", "ARP", "ARP", "LE_ARP_REQUEST", "ARP", "LE_ARP_RESPONSE", "ARP", "READY_IND", "LE_FLUSH_REQUEST",
        "LE_FLUSH_REQUEST", "LE_FLUSH_RESPONSE", "LE_FLUSH_RESPONSE", "ARP", "ARP",
    ]  # fmt: skip
    assert found[0] == report_lane.Event(300_000, ports[0], "LES, BUS", "ARP, 2 cells, multicast send", False)
    assert found[7] == report_lane.Event(2_500_000, ports[1], ports[0], "READY_IND, 1 cell, data direct", True)


def test_without_a_frame_there_is_no_first_exchange() -> None:
    empty = pl.DataFrame(schema={"time_ns": pl.Int64, "interface": pl.String, "direction": pl.UInt8, "vci": pl.UInt16,
                                 "cells": pl.Int64})  # fmt: skip
    assert report_lane.events(empty, [], ["a:e", "b:e"]) == []


# Channels and losses

CHANNELS = {
    "sun2:eth0 0.64": {"cells_in": 32, "cells_out": 32, "dropped": {}},
    "sun1:eth0 0.65": {"cells_in": 96, "cells_out": 94, "dropped": {"queue full": 2, "policed": 0}},
    "service 0.36": {"cells_in": 4, "cells_out": 8, "dropped": {}},
}


def test_channels_stand_by_port_with_the_causes_that_occurred() -> None:
    table = report_tables.channels(CHANNELS, ["sun1:eth0", "sun2:eth0"], permanent=False)
    assert table is not None
    assert [column.title for column in table.columns] == [
        "from", "VPI.VCI", "purpose", "cells in", "cells out", "dropped: queue full"
    ]  # fmt: skip
    assert table.rows == (
        ("sun1:eth0", "0.65", "data direct, to sun2:eth0", "96", "94", "2"),
        ("sun2:eth0", "0.64", "data direct, to sun1:eth0", "32", "32", "0"),
        ("service", "0.36", "multicast forward", "4", "8", "0"),
    )
    assert report_tables.channels({}, ["a:e"], permanent=False) is None


def test_of_very_many_channels_those_that_lost_are_shown() -> None:
    many = {f"a:e 0.{vci}": {"cells_in": vci, "cells_out": vci, "dropped": {}} for vci in range(100, 200)}
    many["a:e 0.99"] = {"cells_in": 1, "cells_out": 0, "dropped": {"policed": 1}}
    table = report_tables.channels(many, ["a:e", "b:e"], permanent=True)
    assert table is not None
    assert len(table.rows) == report_tables.MOST_CHANNELS
    assert table.rows[0][:2] == ("a:e", "0.99")
    assert table.title.endswith("60 of 101")


def test_losses_are_added_up_by_cause() -> None:
    ports = {"sun1:eth0": {"dropped": {"queue full": 1, "wrong CRC": 2}}, "sun2:eth0": {"dropped": {"queue full": 3}}}
    fates = [
        (None, 0),
        (comments.cells(2, 32, "queue full", "towards", "sun2:eth0"), 2),
        (comments.cells(30, 32, "queue full", "towards", "sun1:eth0"), 30),
        (comments.cells(1, 32, "cell loss", "from", "sun1:eth0"), 1),
        (comments.spoiled("wrong CRC", "sun2:eth0"), 0),
        (comments.spoiled("joined to the PDU before", "sun2:eth0"), 0),
    ]
    pdus = pl.DataFrame(fates, schema={"comment": pl.String, "lctr": pl.UInt16}, orient="row")
    table = report_tables.losses(pdus, ports)
    assert table is not None
    assert table.rows == (
        ("cell loss", "1", "1", "0"),
        ("joined to the PDU before", "1", "0", "0"),
        ("queue full", "2", "32", "4"),
        ("wrong CRC", "1", "0", "2"),
    )
    assert report_tables.losses(pdus.head(1), {}) is None


def test_without_a_capture_no_pdus_are_said() -> None:
    table = report_tables.losses(None, {"a:e": {"dropped": {"policed": 5, "not IP": 0}}})
    assert table is not None
    assert table.rows == (("policed", "\u2013", "\u2013", "5"),)


def test_devices_have_their_counters() -> None:
    ports = {"edge:e0": {"received_frames": 5, "filtered_frames": 1}, "edge:a0": {"received_frames": 4}}
    table = tables_run.devices({"devices": {"edge": {"kind": "bridge", "ports": ports}}})
    assert table is not None
    assert [column.title for column in table.columns[3:]] == ["received frames", "filtered frames"]
    assert table.rows == (("edge", "bridge", "edge:e0", "5", "1"), ("edge", "bridge", "edge:a0", "4", "0"))
    assert tables_run.devices({}) is None


# The page


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("atm") / "lane-sweep-two-hosts-lane-42-001"
    plan = synthetic_atm.two_hosts_lane(sizes=[16, 64, 2048], calls=3, warmup=1)
    build_report(synthetic_atm.make(folder, plan))
    return folder


def test_a_run_over_atm_has_its_figures_and_tables(run: Path) -> None:
    made = {path.stem for path in (run / "figures").iterdir()}
    assert {"cells", "cells-saw", "call-elan", "lane-elan", "topology"} <= made
    html = (run / "report.html").read_text(encoding="utf-8")
    for words in ("Segment elan", "Virtual channels at the switch", "data direct, to server:eth0", "LE_FLUSH_REQUEST",
                  "elan.cells", "2 to 46 cells a direction, as expected at every size"):  # fmt: skip
        assert words in html, words


def test_the_headline_counts_the_cells_that_were_sent(run: Path) -> None:
    html = (run / "report.html").read_text(encoding="utf-8")
    found = re.search(r"<dt>cells</dt><dd>([^<]+)<small>([^<]+) PDUs", html)
    assert found
    # Of each call both legs, of TCP an acknowledgement of 2 cells besides; of the first exchange 29 cells, 11 PDUs.
    want, pdus = 29, 11
    for curve in synthetic_atm.two_hosts_lane().curves:
        for size in (16, 64, 2048):
            pair = legs(Setting(curve), size)
            assert pair is not None
            acknowledged = curve[1] == "tcp"
            want += 4 * (sum(atm.leg_cells(atm.LANE, leg) for leg in pair) + 2 * acknowledged)
            pdus += 4 * (sum(len(leg.packets) for leg in pair) + acknowledged)
    assert [int(re.sub(r"\D", "", part)) for part in found.groups()] == [want, pdus]


def test_without_cells_a_call_is_drawn_from_its_pdus(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    plan = synthetic_atm.two_hosts_lane(sizes=[64], calls=2, warmup=0, curves=[UDP])
    build_report(synthetic_atm.make(folder, plan, with_cells=False))
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "Cells were not captured" in html
    assert "client:eth0 out 4 cells, server:eth0 in 4 cells" in html


@pytest.mark.parametrize("content", [None, b"", b"garbage"])
def test_captures_may_be_missing_or_broken(tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "run"
    plan = synthetic_atm.two_hosts_lane(sizes=[64], calls=2, warmup=0, curves=[UDP])
    synthetic_atm.make(folder, plan)
    for path in sorted((folder / "wire" / "atm").iterdir()):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
    build_report(folder)
    assert not (folder / "figures" / "call-elan.svg").exists()
    assert "Virtual channels at the switch" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "words"), [("pc-hub-lane", "delay)."), ("two-hosts-netem", "no time for guests")])
def test_the_caption_tells_what_stands_between(name: str, words: str) -> None:
    assert words in drawings.floor_remark(shipped(name), "client", "server")
