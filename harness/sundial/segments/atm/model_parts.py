# SPDX-License-Identifier: Apache-2.0
"""Parts of an ATM segment as written: output queues, LAN emulation, contracts, faults of lines, captures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Literal

from sundial.model.fields import PORT, PORT_ALLOWED, Flag, In, Percent, Strict, Text, Whole, written
from sundial.model.invalid import Invalid, Path
from sundial.model.segment import GilbertElliott
from sundial.segments.atm.model_line import RATES, Line, LineField
from sundial.units import TIME

LATENCY = TIME.between(most="10 s", example="10 us")
Latency = Annotated[int, In(LATENCY)]
Cells = Annotated[int, Whole(1, 1_000_000)]
Timer = Annotated[int, In(TIME.between("1 ms", "1 h", example="4 s"))]
_Percent = Annotated[Decimal, Percent()]

WAY = Text(
    re.compile(rf"both|(?:from|to) {PORT.pattern.pattern}"),
    f"both, or from or to a port: 'from client:eth0'; a port is {PORT_ALLOWED}",
    len("from ") + PORT.most,
)
"""A direction of a line, or both of all lines."""


class Queue(Strict):
    """The output queue at every port of the switch."""

    cells: Cells = 1024
    """Places for cells; the one being sent takes none."""
    discard: Literal["tail", "ppd", "epd"] = "tail"
    """Cells that find no place; with the rest of their PDU but its last cell (partial packet discard); and whole PDUs
    beforehand (early packet discard)."""
    epd_above: Cells | None = None
    """epd: a PDU whose first cell finds so many cells waiting is discarded; left out: half of `cells`."""
    vc_cells: Cells | None = None
    """Places that one virtual channel may take."""
    clp1_above: Cells | None = None
    """Cells with CLP 1 are dropped when so many wait."""

    @property
    def early_cells(self) -> int | None:
        """At how many waiting cells early packet discard begins; None: never."""
        if self.discard != "epd":
            return None
        return max(1, self.cells // 2) if self.epd_above is None else self.epd_above

    def check(self, path: Path) -> Iterator[Invalid]:
        """Thresholds that can never be met, or have no effect."""
        if self.epd_above is not None and self.discard != "epd":
            yield Invalid((*path, "epd_above"), "epd_above has no effect without early packet discard", "discard: epd")
        for name in ("epd_above", "vc_cells", "clp1_above"):
            value = getattr(self, name)
            if value is not None and value > self.cells:
                yield Invalid(
                    (*path, name), f"{value} cells never wait in a queue of {self.cells}", f"1 to {self.cells}"
                )


class Lane(Strict):
    """LAN emulation 1.0 (af-lane-0021): clients in the adapters, LECS, LES and BUS behind a port of the switch."""

    resolution: Literal["le_arp", "static"] = "le_arp"
    """Data direct channels set up by LE_ARP and flush, or all there from the start."""
    vc_setup: Latency = written("2 ms")
    """From a client's wish for a channel until both ends have it; stands for signalling."""
    service_latency: Latency = written("50 us")
    """LECS, LES and BUS: from a message's last cell to the first of what they send."""
    service_line: Annotated[Line, LineField()] = written("oc-3c")
    """The line of their port."""
    unknown_frames: Annotated[int, Whole(1, 10)] = 1
    """C10: frames to an unknown station that a client sends by the BUS within `unknown_frame_time`."""
    unknown_frame_time: Timer = written("1 s")
    """C11."""
    control_time_out: Timer = written("120 s")
    """C7: of a request to LECS or LES."""
    vcc_time_out: Timer = written("20 min")
    """C12: a data direct channel that carries nothing is released after this."""
    retries: Annotated[int, Whole(0, 2)] = 1
    """C13: LE_ARP requests sent again."""
    ageing: Timer = written("300 s")
    """C17: an LE_ARP entry is verified or forgotten after this."""
    forward_delay: Timer = written("15 s")
    """C18: the same while the topology changes."""
    le_arp_response_time: Timer = written("1 s")
    """C20: after this an LE_ARP request is sent again."""
    flush_time_out: Timer = written("4 s")
    """C21: after this a flush request is sent again."""
    path_switching_delay: Timer = written("6 s")
    """C22: after this without a flush response a client changes to the data direct channel all the same."""


class Contract(Strict):
    """What the switch polices on each virtual channel from a port: GCRA(53 octets at `rate`, `tolerance`)."""

    rate: Annotated[int, In(RATES)]
    """Peak rate, cells of 53 octets."""
    tolerance: Latency = written("0 ns")
    """How much too early a cell may come."""
    action: Literal["drop", "tag"] = "drop"
    """What happens to a cell that comes earlier: dropped, or tagged with CLP 1."""


class Faults(Strict):
    """What a line does to cells of one direction."""

    cell_loss: _Percent | None = None
    """Cells lost at random."""
    gemodel: GilbertElliott | None = None
    """Losses in bursts instead of `cell_loss`."""
    payload_bit: _Percent | None = None
    """Cells with one bit of the payload flipped: the PDU's CRC is wrong."""
    header_bit: _Percent | None = None
    """Cells with bits of the header flipped: HEC corrects one, of more the cell is lost."""

    @property
    def loses(self) -> bool:
        """Whether losses are written here, of either kind."""
        return self.cell_loss is not None or self.gemodel is not None

    def check(self, path: Path) -> Iterator[Invalid]:
        """Fields that exclude each other."""
        if self.cell_loss is not None and self.gemodel is not None:
            yield Invalid((*path, "gemodel"), "cell_loss and gemodel exclude each other", "one of the two")


class Capture(Strict):
    """What is recorded in wire/atm beside the PDUs."""

    cells: Annotated[bool, Flag()] = True
    """Every cell."""
    cells_most: Annotated[int, Whole(1, 100_000_000)] = 1_000_000
    """Records after which the capture of cells ends; one takes 112 bytes."""
