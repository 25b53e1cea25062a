# SPDX-License-Identifier: Apache-2.0
"""Tables of the page of kedziera98."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sundial.papers.kedziera98 import names
from sundial.papers.kedziera98.curves import Curve, Point
from sundial.papers.kedziera98.results import Results
from sundial.papers.kedziera98.statements import STATEMENTS
from sundial.report.tables import DASH, Column, Table, decimal, numbers, whole, words
from sundial.reproduce.page import report_link, table_of_captures
from sundial.reproduce.verdicts import judge

SHOWN = (16, 64, 256, 1024, 2048, 3968, 4096, 6144, 8192)
"""Sizes of tables, or those next to them that were measured."""
COUNTED = ("tx_pdus", "rx_pdus", "tx_cells", "rx_cells", "bad_pdus")
"""What adapters of ATM count."""


def printed_table(results: Results) -> Table:
    """Every number of the text, and what the statement about it found."""
    measured = {each.statement.id: each.measured for each in judge(STATEMENTS, results)}
    rows = tuple(
        (
            DASH if value.figure is None else str(value.figure),
            value.quantity,
            value.text,
            f"{value.statement}: {measured[value.statement]}",
        )
        for value in results.paper.values
    )
    head = (*words("Figure"), *(Column(title, "prose") for title in ("Quantity", "Printed", "Measured")))
    return Table("Numbers of the text", head, rows)


def fits_table(results: Results) -> Table:
    """Every speed that was tried."""
    rows = []
    for fit in results.fits:
        value = results.paper.value(fit.value)
        for tried in fit.tried:
            (measured,) = tried.measured.values()
            rows.append(
                (
                    getattr(results.paper.machines, fit.machine),
                    f"{fit.of}: {value.text}",
                    f"{tried.mips.normalize():f}" + (" (taken)" if tried is fit.best else ""),
                    decimal(fit.printed_us, 0),
                    decimal(measured, 0),
                    f"{100 * (measured / fit.printed_us - 1):+.0f} %",
                )
            )
    head = (
        Column("Machine", "prose"), Column("Fitted to", "prose"),
        *numbers("mips", "T printed (us)", "T measured (us)", "Beside it"),
    )  # fmt: skip
    return Table("Speeds", head, tuple(rows))


def near(sizes: Iterable[int]) -> list[int]:
    """Of the sizes measured those that are nearest to the ones shown, each once."""
    there = sorted(sizes)
    found = (min(there, key=lambda size: abs(size - shown)) for shown in SHOWN if there)
    return list(dict.fromkeys(found))


def curve_table(curves: Sequence[Curve]) -> Table:
    """The paper's statistic and ours, and the wires' bound, at some sizes."""
    rows = tuple(_row(size, curve, curve.points[size]) for size, curve in _shown(curves))
    head = (
        *numbers("Size (B)"), *words("Curve"),
        *numbers("kB/s, the paper's statistic", "kB/s, mean", "sd (%)", "The wires allow (kB/s)", "Of it"),
    )  # fmt: skip
    return Table("At some sizes", head, rows)


def _shown(curves: Sequence[Curve]) -> list[tuple[int, Curve]]:
    sizes = near({size for curve in curves for size in curve.rates_kBps})
    return [(size, curve) for size in sizes for curve in curves if size in curve.rates_kBps]


def _row(size: int, curve: Curve, point: Point) -> tuple[str, ...]:
    bound_us = curve.bound_us.get(size)
    return (
        whole(size),
        report_link(curve.key, curve.name),
        decimal(point.paper_kBps),
        decimal(point.mean_kBps),
        decimal(point.sd_pct, 2),
        *((decimal(2000 * size / bound_us), f"{bound_us / point.time_us:.0%}") if bound_us else (DASH, DASH)),
    )


def parts_table(curves: Sequence[Curve]) -> Table:
    """What the call in the middle is made of, at the same sizes."""
    rows = []
    for size, curve in _shown(curves):
        point = curve.points[size]
        if point.wire is not None:
            parts = point.wire.parts
            times = (parts.total_ns, parts.wire_ns, parts.client_ns, parts.server_ns)
            counts = (point.wire.packets, point.wire.cells)
            name = report_link(curve.key, curve.name)
            rows.append((whole(size), name, *(decimal(ns / 1e3) for ns in times), *map(whole, counts)))
    head = (
        *numbers("Size (B)"), *words("Curve"),
        *numbers("T (us)", "Wire (us)", "Client (us)", "Server (us)", "Packets with data", "Cells of them"),
    )  # fmt: skip
    return Table("What the call in the middle is made of", head, tuple(rows))


def ratios_table(results: Results) -> Table:
    """Raw sockets by RPC, and the streams below."""
    rows = []
    ratios = results.ratios()
    for raw, rpc in names.PAIRS:
        for size, ratio in ratios[raw].items():
            over, under = results.curves[raw], results.curves[rpc]
            rows.append(
                (
                    report_link(raw, over.name),
                    whole(size),
                    decimal(over.points[size].paper_kBps),
                    decimal(under.points[size].paper_kBps),
                    decimal(ratio, 2),
                )
            )
    head = (*words("Raw sockets"), *numbers("Size (B)", "Raw (kB/s)", "RPC (kB/s)", "Ratio"))
    return Table("Raw sockets by RPC", head, tuple(rows))


def streams_table(results: Results) -> Table:
    """What iperf3 found."""
    rows = tuple(
        (
            report_link(stream.run, stream.name),
            decimal(stream.megabits_per_s, 2),
            decimal(stream.megabits_per_s * 125),
            whole(stream.retransmits),
        )
        for stream in results.streams
    )
    head = (*words("iperf3 over TCP"), *numbers("Mbit/s, one way", "kB/s, one way", "Retransmissions"))
    return Table("A stream one way", head, rows)


def control_table(results: Results) -> Table:
    """What the adapters carried before and during the first calls."""
    ports = {} if results.control is None else results.control.ports
    rows = tuple((port, *(whole(counts.get(name)) for name in COUNTED)) for port, counts in ports.items())
    head = (*words("Port"), *numbers(*(name.replace("_", " ").replace("pdus", "PDUs") for name in COUNTED)))
    return Table("Adapters", head, rows)


def captures_table(results: Results) -> Table:
    """Captures of each run, by segment: Ethernet at the ports, PDUs, cells."""
    rows = [(each.key, (each.name, each.transport.upper()), each.captures) for each in results.curves.values()]
    if (control := results.control) is not None:
        rows.append((control.run, ("LAN emulation at the first calls", "UDP"), control.captures))
    return table_of_captures(rows, "Curve", "Transport")
