# SPDX-License-Identifier: Apache-2.0
"""Tables of the page of bilas97: printed beside measured."""

from __future__ import annotations

from collections.abc import Sequence

from sundial.papers.bilas97.results import CLIENT, ECHOES, FLOOR, HARDWARE, SERVER, SYSTEMS, Results
from sundial.report.tables import DASH, Column, Table, decimal, numbers, whole, words
from sundial.reproduce.cells import Cell, Row
from sundial.reproduce.page import CAPTURE, capture_links, report_link, shares
from sundial.segments.vmmc.wire import REASONS

PARTS = numbers("Hardware (us)", "Client (us)", "Server (us)", "Instructions", "Packets", "Bytes")
NAMES = {
    "shrimprpc": "ShrimpRPC", "vrpc": "vRPC", "vrpc-mbcf": "vRPC over remote WRITEs", "udp": "Sun RPC over UDP",
    "mbcf3b": "Sun RPC over MBCF", "au": "automatic update, a packet a store",
    "au-combined": "automatic update, combined", "du": "deliberate update", ECHOES: "vRPC, echoes both ways",
}  # fmt: skip
SHORT = {
    "vrpc": "vRPC", "vrpc-mbcf": "vRPC/MBCF", "udp": "UDP", "mbcf3b": "MBCF", "au": "AU", "au-combined": "combined",
    "du": "DU", ECHOES: "vRPC", **{f"ShrimpRPC {way}": way for way in ("IN", "OUT", "INOUT")},
}  # fmt: skip
"""In figures."""


def null_table(results: Results) -> Table:
    """Null calls, and the hardware alone."""
    null = results.paper.null_us
    printed = {FLOOR: results.paper.floor_us, "shrimprpc": null.shrimprpc, "vrpc": null.vrpc}
    rows = []
    for key, name in SYSTEMS.items():
        cell, said = results.null.get(key), printed.get(key)
        value = None if cell is None else cell.value
        rows.append(
            (
                name, decimal(said, 1), DASH if cell is None else report_link(cell.run, decimal(value, 2)),
                decimal(value / said, 3) if value and said else DASH, *_shares(cell),
                DASH if cell is None else capture_links(cell.run, cell.captures),
            )
        )  # fmt: skip
    head = (*words("System"), *numbers("Printed (us)", "Measured", "Ratio"), *PARTS, CAPTURE)
    return Table("Null calls", head, tuple(rows))


def _shares(cell: Cell | None) -> tuple[str, ...]:
    return (DASH,) * len(PARTS) if cell is None else shares(cell)


def rows_table(rows: Sequence[Row], title: str, of: Column) -> Table:
    """Round trips beyond the paper, with what they are made of."""
    listed = tuple(
        (
            NAMES.get(row.names[0], row.names[0]), row.names[1], report_link(row.cell.run, decimal(row.cell.value, 2)),
            *_shares(row.cell), capture_links(row.cell.run, row.cell.captures),
        )
        for row in rows
    )  # fmt: skip
    return Table(title, (*words("System"), of, *numbers("Measured (us)"), *PARTS, CAPTURE), listed)


def sizes_table(results: Results) -> Table:
    """What round trips by size are made of."""
    rows = sorted(results.sizes, key=lambda row: int(row.names[1]))
    return rows_table(rows, "What they are made of", *numbers("Size (B)"))


def grid_table(rows: Sequence[Row], title: str, of: str, digits: int) -> Table:
    """A row for each second name, a column for each first one."""
    found = {row.names: row.cell for row in rows}
    systems = list(dict.fromkeys(row.names[0] for row in rows))
    places = sorted({row.names[1] for row in rows}, key=int)
    listed = tuple(
        (
            whole(int(place)),
            *(
                DASH if (cell := found.get((system, place))) is None
                else report_link(cell.run, decimal(cell.value, digits))
                for system in systems
            ),
        )
        for place in places
    )  # fmt: skip
    return Table(title, numbers(of, *(NAMES.get(system, system) for system in systems)), listed)


def traced_table(results: Results) -> Table:
    """The median null call of each traced system, function by function, and its sums beside what is printed; an alarm
    for time that is in no step."""
    null = results.paper.null_us
    printed = {
        ("shrimprpc", HARDWARE): results.paper.floor_us, ("shrimprpc", SOFTWARE): results.paper.above_hardware_us,
        ("shrimprpc", WHOLE): null.shrimprpc, ("vrpc", WHOLE): null.vrpc,
    }  # fmt: skip
    rows: list[tuple[str, ...]] = []
    alarms: set[int] = set()
    for system, divided in results.traced.items():
        name = NAMES[system]
        for part in divided.parts:
            step = part.step or DASH
            if not part.of:
                alarms.add(len(rows))
            rows.append((name, part.of, step, part.function, _us(part.ns), _instructions(part.instructions), DASH))
        for what, who in _SUMS.items():
            ns, instructions = divided.of(*who)
            counted = DASH if what == HARDWARE else _instructions(instructions)
            of_print = decimal(printed.get((system, what)), 1)
            rows.append((name, "sum", what, "", _us(ns), counted, of_print))
        clock = "round trip, by the client's clock"
        rows.append((name, "clock", clock, "", _us(divided.rtt_ns), DASH, DASH))
    columns = (*words("System", "By", "Step"), Column("Between", "code"))
    return Table("", (*columns, *numbers("Time (us)", "Instructions", "Printed (us)")), tuple(rows), frozenset(alarms))


SOFTWARE, WHOLE = "software", "all steps"
_SUMS = {
    "client's": (CLIENT,), "server's": (SERVER,), SOFTWARE: (CLIENT, SERVER), HARDWARE: (HARDWARE,),
    WHOLE: (CLIENT, SERVER, HARDWARE, ""),
}  # fmt: skip
"""Whose steps are in each; what is in no step belongs to neither."""


def _us(ns: int) -> str:
    return decimal(ns / 1e3, 3)


def _instructions(count: float | None) -> str:
    return whole(int(count)) if count is not None and count == int(count) else decimal(count, 1)


def steps_table(results: Results) -> Table:
    """What the median null call of each system consists of, as its packets say."""
    rows = tuple(
        (SYSTEMS[system], part.step, part.of, _us(part.ns), whole(part.instructions))
        for system, parts in results.steps.items()
        for part in parts
    )
    columns = (*words("System", "Step", "By"), *numbers("Time (us)", "Instructions"))
    return Table("By packets", columns, rows)


def packets_table(results: Results) -> Table:
    """Packets of each run over a backplane by why they left; an alarm where the fabric has counted others."""
    rows, alarms = [], set()
    for number, (run, counts) in enumerate(results.packets.items()):
        each = (
            *counts.by_reason.values(), counts.deliberate, counts.control, counts.refused, counts.notified, counts.seen,
            counts.fabric,
        )  # fmt: skip
        rows.append((report_link(run, run), *map(whole, each)))
        if counts.seen != counts.fabric:
            alarms.add(number)
    heads = (*(name.capitalize() for name in REASONS.values()), "Deliberate", "Control", "NACK", "Notifying", "All",
             "Fabric's count")  # fmt: skip
    return Table("", (*words("Run"), *numbers(*heads)), tuple(rows), frozenset(alarms))
