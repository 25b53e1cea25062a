# SPDX-License-Identifier: Apache-2.0
"""What the report of bilas97 shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sundial.papers.bilas97 import tables
from sundial.papers.bilas97.results import FLOOR, Results
from sundial.report import palette
from sundial.report.plotting import Drawing
from sundial.report.tables import decimal, numbers, whole, words
from sundial.reproduce.cells import Row
from sundial.reproduce.figures import draw_rows
from sundial.reproduce.page import Page, Section, statements_section
from sundial.reproduce.verdicts import Verdict, counted


def make_page(results: Results, verdicts: Sequence[Verdict], figures: Path) -> Page:
    """The page; its figures are drawn into the folder."""
    paper = results.paper
    return Page(
        name=paper.name,
        reference=f"{paper.authors}: {paper.title}. {paper.published}.",
        key_figures=[counted(verdicts), *_key_figures(results)],
        sections=list(_sections(results, verdicts)),
        drawings=_drawings(results, figures),
        files=("summary.csv", "steps.csv", "packets.csv", "statements.csv"),
    )


def _drawings(results: Results, folder: Path) -> dict[str, Drawing]:
    drawings = [
        draw_rows(_named(rows), _colours(rows), stem, title, "data size (bytes)", folder)
        for rows, stem, title in (
            (results.sizes, "sizes", "Round trip by size"),
            (results.streams, "streams", "Bandwidth by size"),
        )
    ]
    return {drawing.stem: drawing for drawing in drawings if drawing is not None}


def _named(rows: Sequence[Row]) -> list[Row]:
    """With short names, by size."""
    named = [Row((tables.SHORT.get(row.names[0], row.names[0]), row.names[1]), row.cell) for row in rows]
    return sorted(named, key=lambda row: int(row.names[1]))


def _colours(rows: Sequence[Row]) -> dict[str, str]:
    names = list(dict.fromkeys(row.names[0] for row in _named(rows)))
    return dict(zip(names, palette.SPARE, strict=False))


def _key_figures(results: Results) -> Iterator[tuple[str, str, str]]:
    null = results.paper.null_us
    for system, name, printed in (("shrimprpc", "ShrimpRPC", null.shrimprpc), ("vrpc", "vRPC", null.vrpc)):
        cell = results.null.get(system)
        if cell is not None and cell.value is not None:
            yield f"null call, {name}", f"{decimal(cell.value, 2)} us", f"printed {printed:g} us"
        if cell is not None and cell.instructions is not None:
            yield f"software of it, {name}", whole(cell.instructions), "instructions of both ends"


def _sections(results: Results, verdicts: Sequence[Verdict]) -> Iterator[Section]:
    rate_bps = results.dma_rate_bps
    memory = "" if rate_bps is None else f" Memory takes {decimal(rate_bps / 8e6, 1)} MB/s."
    yield statements_section(
        verdicts,
        "Each is judged by code from the runs below. Only the abstract of the paper is public; nothing is fitted. The "
        "reasons are below the table.",
    )
    yield Section("choices", "Machines and choices", "Choices", _choices(results))
    yield Section(
        "null", "Table 1: null calls", "Null calls",
        "Hardware: from the store that a packet waits for until it is in the other memory, the time for which the "
        "adapter combines included; of Ethernet, every instant in which a frame is on the wire. All else is "
        "software. What polls takes part of a loop's turn, six instructions, before it sees what has come.",
        table=tables.null_table(results),
    )  # fmt: skip
    yield Section(
        "sizes", "Table 2: round trips by size", "By size",
        "IN sends so many bytes and gets nothing back, OUT the reverse, INOUT both, as an echo of Sun RPC does.",
        "sizes", tables.grid_table(results.sizes, "Round trips (us)", "Size (B)", 1),
        tables.rows_table(
            sorted(results.sizes, key=lambda row: int(row.names[1])), "What they are made of", *numbers("Size (B)")
        ),
    )  # fmt: skip
    yield Section(
        "streams", "Table 3: bandwidth by size", "Bandwidth",
        "Updates one after the other, from the client's clock before it fills the first message until the receiver's "
        "word, that all of it is there, has come back; and echoes over vRPC, one at a time, bytes of both ways by "
        f"time.{memory}",
        "streams", tables.grid_table(results.streams, "MB/s", "Size (B)", 2),
    )  # fmt: skip
    yield Section(
        "latencies", "Table 4: null calls by the latency of a word", "By latency",
        "From a store of 8 bytes until it is in the other memory: 3.7 us, 4.25 us (half of what the null call of "
        "ShrimpRPC was above by about 1 us), and 4.8 us, which the project says.",
        table=tables.rows_table(results.latencies, "", *numbers("Word latency (ns)")),
    )  # fmt: skip
    yield Section(
        "waits", "Table 5: polling against notification", "Waiting",
        "Both ends poll their own memory, or sleep until the adapter tells their kernel.",
        table=tables.rows_table(results.waits, "", *words("Wait")),
    )  # fmt: skip
    yield from _of_steps(results)
    yield Section(
        "packets", "Table 7: packets by reason", "Packets",
        "All that left in each run, calls before the measurement, imports and hellos included, as captured; and as the "
        "fabric has counted them. An update leaves since the next store is not behind it (gap), its page ends, it is "
        "full, its timer is over, its page does not combine, or the kernel asks for it (flushed). A refusal (NACK) "
        "answers a packet for what is no longer exported.",
        table=tables.packets_table(results),
    )  # fmt: skip


def _of_steps(results: Results) -> Iterator[Section]:
    exact, calls = results.traced_calls
    held = f" So it is for {whole(exact)} of {whole(calls)} calls of this run, warm-ups included." if calls else ""
    yield Section(
        "steps", "Table 6: the steps of a null call", "Steps",
        "Of the median call, from stamps of functions in exact virtual time, which change nothing of the run; the wire "
        "is apart. A step is what is between two functions (entered, or left: end), the store that a message ends "
        "with (handed in) and its arrival (receive). Steps have no gap, and their sum is what the client's clock says, "
        f"to the nanosecond.{held} Instructions are whole but where a message comes between two turns of a loop that "
        "polls. The paper's abstract prints no step: only the whole, and by how much ShrimpRPC is above the hardware. "
        "What the compiler has made a part of its caller has no step of its own: of ShrimpRPC's client, all of the "
        "stub.",
        table=tables.traced_table(results), parts=tables.steps_table(results),
        remarks="The second table divides a call by its packets alone, whatever it goes over. A message of vRPC is "
        "several packets, which leave while the rest of it is encoded: what an end does meanwhile is the hardware's "
        "time there, and that end's in the first table.",
    )  # fmt: skip


def _choices(results: Results) -> str:
    paper = results.paper
    floor = results.null.get(FLOOR)
    measured = (
        f" (measured: {floor.parts.wire_ns / 1e3:.2f} us)" if floor is not None and floor.parts is not None else ""
    )
    return (
        f"The paper measured on PCs with Pentium processors and a prototype of the SHRIMP network interface, which is "
        f"{paper.hardware.latency_us:g} us from user memory to user memory and {paper.hardware.megabytes_per_s:g} MB/s "
        "by its project's own account. Here a processor executes "
        f"{results.mips.normalize():f} million instructions a second, each of which costs the same, and a word takes "
        f"4.25 us: half of {paper.floor_us:g} us, by which the paper's null call is above by about "
        f"{paper.above_hardware_us:g} us{measured}. Both systems are our own, over the same kernel, library and "
        "adapter; vRPC keeps the messages of Sun RPC, ShrimpRPC keeps nothing but the interface. Scale: "
        f"{results.scale}."
    )
