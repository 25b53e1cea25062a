# SPDX-License-Identifier: Apache-2.0
"""What calls and operations over a backplane are judged by, and what a protocol over it must provide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl

from sundial import kinds
from sundial.observe import RunDirectory
from sundial.observe.octets import Octets, octets_of
from sundial.segments.vmmc.model import Backplane, duration_ps
from sundial.segments.vmmc.wire import AU, DU, HEADER
from sundial.verify.findings import Finding
from sundial.verify.samples import RunSamples
from sundial.verify.sockets.served import PAUSE_NS, WRITING_INSTRUCTIONS

OWN_PREFIX = "client."
"""Of names of what clients export for their servers."""

STREAM = ("sender", "receiver", "export", "generation")
"""What the packets of one import have in common."""

_NUMBERS = (
    "sender", "receiver", "kind", "flags", "reason", "sequence", "export", "generation", "offset", "length", "count",
)  # fmt: skip
PACKETS: dict[str, type[pl.DataType]] = {
    "row": pl.UInt32,
    "arrived_row": pl.UInt32,
    "sent_ns": pl.Int64,
    "arrived_ns": pl.Int64,
    **dict.fromkeys(_NUMBERS, pl.UInt32),
    "cut": pl.Boolean,
    "capture": pl.String,
    "octets_begin": pl.Int64,
    "captured_length": pl.UInt32,
}
"""Of `Evidence.packets`. `row` and `sent_ns`: where it left its sender; `arrived_row` and `arrived_ns`: in its
receiver's memory, null where it was not there before the end of the run. `cut`: it left by the timer, or for what
something else at its node sent, so its sender may have been interrupted before it had stored all that was to be
combined. The last three: its bytes in the capture."""


@dataclass(frozen=True)
class Import:
    """One import that was asked for, as the kernels of both nodes said it on the backplane."""

    importer: int
    exporter: int
    name: str
    key: int
    request: int
    """Row of the request as it was sent."""
    asked_ns: int
    heard_ns: int | None = None
    """When the request was at the exporter."""
    answer: int | None = None
    """Row of the answer as it was sent; None: there was none."""
    answered_ns: int | None = None
    """When the answer was at the importer."""
    status: int | None = None
    """0: granted; else why not (`wire.REFUSALS`)."""
    export: int = 0
    generation: int = 0
    pages: int = 0
    use: int = 0
    ended_ns: int | None = None
    """When its importer gave it up, or learnt that the export is gone; None: neither."""
    gone: bool = False
    """The latter."""

    @property
    def granted(self) -> bool:
        return self.status == 0

    @property
    def stream(self) -> tuple[int, int, int, int]:
        """Whose packets are written through it: sender, receiver, export, generation."""
        return self.importer, self.exporter, self.export, self.generation


@dataclass(frozen=True)
class Evidence:
    """Calls, and the packets that passed."""

    run: RunDirectory
    nodes: Mapping[str, int]
    """Numbers of machines."""
    records: Mapping[str, Sequence[Mapping[str, Any]]]
    """What nodes wrote besides samples."""
    samples: pl.DataFrame
    """Calls and operations over a backplane, with `id`, in the order of time."""
    batches: Mapping[tuple[str, int], Mapping[str, Any]]
    """The lines above them, by client and batch."""
    imports: Sequence[Import]
    """All that were asked for, in the order of time; those with `granted` are imports."""
    packets: pl.DataFrame
    """All of them (PACKETS), in the order in which they left."""
    backplanes: Mapping[int, Backplane]
    """What each node's adapter is plugged into."""
    mips: Mapping[int, float] = field(default_factory=dict)
    """Of each node, where the run has a record of its topology."""

    def instructions_ns(self, node: int, count: float) -> float | None:
        """How long so many take a node; None where that is not known."""
        return 1000 * count / self.mips[node] if node in self.mips else None

    def wrote_counts(self, node: int) -> bool:
        """False if a run of the virtual clock ended before a server there had the time to write its last counts."""
        end_ns = (self.run.counters or {}).get("virtual_ns")
        if self.run.clock != "virtual" or not isinstance(end_ns, int):
            return True
        times = (self.packets["arrived_ns"].max(), self.samples["end_ns"].max())
        last_ns = max((int(each) for each in times if isinstance(each, int)), default=0)
        return end_ns - last_ns >= PAUSE_NS + (self.instructions_ns(node, WRITING_INSTRUCTIONS) or 0)

    def deliberate_ns(self, node: int, length: int) -> float:
        """How long the node's adapter takes from the start of a deliberate update until so many bytes leave."""
        backplane = self.backplane(node)
        return backplane.deliberate_setup + duration_ps(length, backplane.dma_rate) / 1000

    @cached_property
    def serving(self) -> frozenset[int]:
        """Nodes that others have imported from, but for the replies to calls of their own, and those with services of
        other kinds."""
        exporters = {each.exporter for each in self.imports if not each.name.startswith(OWN_PREFIX)}
        jobs = ((self.nodes.get(name), job.get("services") or ()) for name, job in self.run.jobs.items())
        return frozenset(exporters | {node for node, services in jobs if node is not None and services})

    def backplane(self, node: int) -> Backplane:
        """The same of one node; that of no field where the run has no record of its topology."""
        return self.backplanes.get(node) or Backplane(kind="vmmc", ports=["client:vmmc0", "server:vmmc0"])

    @property
    def files(self) -> list[tuple[Path, str]]:
        """The captures, and their names in the table of frames."""
        return self.run.capture_files

    def octets(self, packets: pl.DataFrame) -> Octets:
        """The bytes of some packets, header included, in their order."""
        return octets_of(packets, self.files)

    def contents(self, packets: pl.DataFrame) -> bytes:
        """The data of some packets, concatenated."""
        if packets.is_empty():
            return b""
        octets = self.octets(packets)
        return octets.flat(HEADER, octets.length)[0].tobytes()

    def data(self, row: int) -> bytes:
        """The data of one packet."""
        place = int(np.searchsorted(self._rows, row))
        if place == len(self._rows) or self._rows[place] != row:
            raise KeyError(row)
        return self.contents(self._by_row[place])

    @cached_property
    def _by_row(self) -> pl.DataFrame:
        return self.packets.sort("row")

    @cached_property
    def _rows(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        return self._by_row["row"].to_numpy()

    @cached_property
    def _streams(self) -> dict[tuple[Any, ...], pl.DataFrame]:
        written = self.packets.filter(pl.col("kind").is_in([AU, DU]))
        return written.partition_by(*STREAM, as_dict=True, maintain_order=True)

    def stream(self, sender: int, receiver: int, export: int, generation: int) -> pl.DataFrame:
        """What was written through one import (AU and DU), in the order in which it left."""
        return self._streams.get((sender, receiver, export, generation), self.packets.clear())

    def through(self, one: Import) -> pl.DataFrame:
        """The same of one import; a node may have one export several times, one after the other."""
        stream = self.stream(*one.stream)
        begins = sorted(each.answered_ns for each in self._again.get(one.stream, ()) if each.answered_ns is not None)
        if len(begins) < 2 or one.answered_ns is None:
            return stream
        following = [at for at in begins if at > one.answered_ns]
        found = stream.filter(pl.col("sent_ns") >= one.answered_ns)
        return found.filter(pl.col("sent_ns") < following[0]) if following else found

    @cached_property
    def _again(self) -> dict[tuple[int, int, int, int], list[Import]]:
        found: dict[tuple[int, int, int, int], list[Import]] = {}
        for each in self.imports:
            if each.granted:
                found.setdefault(each.stream, []).append(each)
        return found

    def step(self, client: str, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options of the step that a line of a client's samples is about."""
        steps = self.run.jobs.get(client, {}).get("steps", [])
        number = int(line.get("step", -1))
        options: Mapping[str, Any] = steps[number].get("options", {}) if 0 <= number < len(steps) else {}
        return options


@dataclass(frozen=True)
class Expected:
    """Packets of one way of a call: bytes of data of each. Where `fewest` is given only that many and `most` bind."""

    lengths: tuple[int, ...] = ()
    fewest: int | None = None
    most: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As in verify.json; a backplane has neither padding nor gaps."""
        count, data = len(self.lengths), sum(self.lengths)
        whole = data + count * HEADER
        return {
            "message": data, "payload": data, "packets": count, "lengths": list(self.lengths), "offsets": [],
            "records": [], "frame_bytes": whole, "padded_frame_bytes": whole, "wire_bytes": whole,
            "exact": self.fewest is None, "fewest": count if self.fewest is None else self.fewest,
            "most": count if self.most is None else self.most,
        }  # fmt: skip


@dataclass
class Judgement:
    """What came of judging: written by the functions that judge."""

    findings: list[Finding] = field(default_factory=list)
    owner: dict[int, int | None] = field(default_factory=dict)
    """Rows of packets, as they were sent, that are explained -> the call, where there is one."""
    observed: list[tuple[Any, ...]] = field(default_factory=list)
    """Rows of `workload.OBSERVED` (`observed_row`)."""
    impossible: list[int] = field(default_factory=list)
    """Calls that their transport cannot carry."""
    expected: dict[tuple[str, str, int], tuple[Expected, Expected]] = field(default_factory=dict)
    """Packets of client and server, by transport, procedure and size."""

    def attribute(self, rows: Iterable[int], call: int | None) -> None:
        """These packets are explained."""
        self.owner.update(dict.fromkeys(rows, call))


@runtime_checkable
class VmmcProtocol(Protocol):
    """What a kind speaks over a backplane: `KIND` of `sundial.workloads.NAME.verify_vmmc`."""

    def speaks(self, transport: str) -> bool:
        """Whether samples of `transport` are of this kind."""

    def judge(self, evidence: Evidence) -> Judgement:
        """Its calls, and all packets that belong to it; those of imports (control messages, refusals) are judged for
        all."""

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        """A Wireshark display filter for a call, from its row."""


def protocols() -> Mapping[str, VmmcProtocol]:
    """Of all kinds that speak over a backplane."""
    return kinds.load("workloads", "verify_vmmc", VmmcProtocol)


def judged(parts: Iterable[Judgement]) -> Judgement:
    """All together."""
    whole = Judgement()
    for part in parts:
        whole.findings += part.findings
        whole.owner |= part.owner
        whole.observed += part.observed
        whole.impossible += part.impossible
        whole.expected |= part.expected
    return whole


def samples_over_vmmc(samples: RunSamples) -> pl.DataFrame:
    """Calls and operations over a backplane."""
    speakers = list(protocols().values())
    transports = [name for name in samples.table["transport"].unique() if any(each.speaks(name) for each in speakers)]
    return samples.table.filter(pl.col("transport").is_in(transports))


def observed_row(
    sample: Mapping[str, Any], there: pl.DataFrame, back: pl.DataFrame, expected: tuple[Expected, Expected]
) -> tuple[Any, ...]:
    """One row of `workload.OBSERVED`: packets of both ways of a call."""
    return (
        sample["id"], sample["transport"], there["sent_ns"].min(), there["arrived_ns"].max(), back["sent_ns"].min(),
        back["arrived_ns"].max(), there.height, len(expected[0].lengths), 0, 0, 0, back.height,
        len(expected[1].lengths), 0, 0, 0,
    )  # fmt: skip


def check_in_time(sample: Mapping[str, Any], there: pl.DataFrame, back: pl.DataFrame) -> Iterable[Finding]:
    """A call begins before its first packet leaves, and has ended when its last answer is in memory, not before."""
    if not sample["ok"]:
        return
    began, ended = there["sent_ns"].min(), back["arrived_ns"].max()
    if isinstance(began, int) and began < sample["start_ns"]:
        early = f"{sample['start_ns'] - began} ns before its start"
        yield Finding(sample["id"], "vmmc.began", "after its start", early, there["row"].to_list()[:1])
    if isinstance(ended, int) and ended > sample["end_ns"]:
        late = f"{ended - sample['end_ns']} ns after its end"
        yield Finding(sample["id"], "vmmc.answered", "before its end", late, back["row"].to_list()[-1:])


def check_soon(
    evidence: Evidence,
    sample: Mapping[str, Any],
    sent: tuple[list[int], int],
    answered: tuple[list[int], int],
    most: tuple[float, float],
    since_ns: int | None = None,
) -> Iterable[Finding]:
    """A client does nothing else between its readings of the clock: its first packet leaves at once, and it ends with
    the answer.

    `sent`, `answered`: rows and time of the first packet and of the last one's arrival; `most`: instructions before the
    one and behind the other; `since_ns`: before that it had to wait. Where a server shares the node it takes turns.
    """
    client = evidence.nodes.get(str(sample["client"]), 0)
    before_ns, behind_ns = (evidence.instructions_ns(client, count) for count in most)
    if before_ns is None or behind_ns is None or client in evidence.serving:
        return
    began, ended = sent[1] - max(sample["start_ns"], since_ns or 0), sample["end_ns"] - answered[1]
    if began > before_ns:
        yield Finding(
            sample["id"], "sample.start", f"at most {before_ns:.0f} ns before a packet", f"{began} ns", sent[0]
        )
    if ended > behind_ns:
        yield Finding(
            sample["id"], "sample.end", f"at most {behind_ns:.0f} ns after the answer", f"{ended} ns", answered[0]
        )
