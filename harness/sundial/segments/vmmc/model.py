# SPDX-License-Identifier: Apache-2.0
"""A backplane as written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from sundial.model.fields import In, Whole, written
from sundial.model.invalid import Invalid, Path
from sundial.model.segment import SegmentBase, SegmentKind
from sundial.segments.vmmc.wire import HEADER, MESSAGE_MOST, PAGE, WORD
from sundial.units import NS_PER_S, RATE, SIZE, TIME

PACKET_MOST = HEADER + PAGE
PS_PER_S = 1000 * NS_PER_S


def least_fifo(combine_bytes: int) -> int:
    """Bytes without which what a node may send could overflow its FIFO (`vmmc_check` of clock/vmmc.c): what is combined
    leaves just before something else does, be that a page, which waits until both fit below three quarters, or a store
    or message, for which there is the last quarter."""
    combined = HEADER + combine_bytes
    return 4 * max(-(-(combined + PACKET_MOST) // 3), combined + HEADER + MESSAGE_MOST)


LATENCY = TIME.between("100 ns", "1 ms", example="4.25 us")
SHORT = TIME.between("1 ns", "1 ms", example="1 us")
FAST = RATE.between("1 Mbit/s", "4 Gbit/s", example="1600 Mbit/s")
FIFO = SIZE.between(f"{least_fifo(WORD)} B", "1 MiB", example="32 KiB")


def duration_ps(data_bytes: int, rate_bps: int) -> int:
    """The time that bytes take at a rate, rounded up."""
    return -(-8 * data_bytes * PS_PER_S // rate_bps)


class Backplane(SegmentBase):
    """A store into bound memory of one node is performed in the memory of another (SHRIMP)."""

    kind: Literal["vmmc"]
    """A backplane for virtual memory-mapped communication."""
    word_latency: Annotated[int, In(LATENCY)] = written("4.25 us")
    """Time from a store of 8 bytes until it is in the other memory of an idle backplane. The default is half of
    8.5 us, the round trip that the null call of ShrimpRPC exceeded by about 1 us."""
    link_rate: Annotated[int, In(FAST)] = written("1600 Mbit/s")
    """Rate of each node's line into the backplane."""
    dma_rate: Annotated[int, In(FAST)] = written("184 Mbit/s")
    """Rate at which a node writes arriving data, and reads the data of a deliberate update: 23 Mbyte/s."""
    deliberate_setup: Annotated[int, In(SHORT)] = written("2.8 us")
    """Time from the start of a deliberate update until its data are read."""
    combine_bytes: Annotated[int, Whole(WORD, PAGE)] = 1024
    """Most bytes of consecutive stores in one packet."""
    combine_timeout: Annotated[int, In(SHORT)] = written("1 us")
    """Time after the last store at which combined stores leave."""
    fifo: Annotated[int, In(FIFO)] = written("32 KiB")
    """Bytes of packets that wait in a node until they have left; one byte more ends the run. At least 6912 B with 1024
    combine_bytes, 17664 B with 4096."""

    @property
    def mapped(self) -> bool:
        return True

    @property
    def way_ps(self) -> int:
        """Time from leaving until the receiver can begin to write."""
        return 1000 * self.word_latency - duration_ps(WORD, self.dma_rate)

    def rate_bps(self, port: str) -> int:
        return self.link_rate

    def check(self, path: Path) -> Iterator[Invalid]:
        # A run's own record of its topology has every field.
        for field in ("mtu", "adapter"):
            if getattr(self, field) != type(self).model_fields[field].default:
                yield Invalid((*path, field), "a backplane carries stores, not frames", "leave it out")
        if self.way_ps <= 0:
            least = TIME.show(duration_ps(WORD, self.dma_rate) // 1000 + 1)
            yield Invalid((*path, "word_latency"), "is less than the time to write one word", f"at least {least}")
        if self.fifo < least_fifo(self.combine_bytes):
            what = f"is too small for a packet of {self.combine_bytes} combined bytes followed by a page or message"
            yield Invalid((*path, "fifo"), what, f"at least {least_fifo(self.combine_bytes)} B")
        if 8 * NS_PER_S % self.link_rate:
            yield Invalid(
                (*path, "link_rate"), "does not give a whole number of ns a byte", "8 Gbit/s divided by a whole number"
            )
        elif self.link_rate < self.dma_rate:
            what = "is less than dma_rate, so a packet would be in memory before it has left"
            yield Invalid((*path, "link_rate"), what, f"at least {RATE.show(self.dma_rate)} (dma_rate)")
        elif duration_ps(HEADER + WORD, self.link_rate) > 1000 * self.word_latency:
            yield Invalid(
                (*path, "link_rate"),
                "is too slow: the packet of one word takes longer than word_latency",
                "a higher rate",
            )

    def refuses_bridge(self, of: Literal["machine", "device"]) -> str | None:
        return "a backplane does not carry frames"


class BackplaneKind(SegmentKind):
    model = Backplane


KIND: SegmentKind = BackplaneKind()
