# SPDX-License-Identifier: Apache-2.0
"""Imports as kernels ask for them on the backplane, and that nothing is written but through one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from sundial.observe.octets import Octets
from sundial.segments.vmmc.wire import (
    ANSWER,
    AU,
    CONTROL,
    DU,
    EXPORT_PAGES,
    EXPORTS,
    GONE,
    HEADER,
    IMPORT,
    MESSAGE_BYTES,
    MESSAGE_FORMAT,
    NACK,
    PAGE,
    REFUSALS,
    UNIMPORT,
    USES,
)
from sundial.verify.findings import FINDING, Finding
from sundial.workloads.vmmc.verify_evidence import STREAM, Import

_FORMAT = struct.Struct(MESSAGE_FORMAT)
_TYPES = {IMPORT: "IMPORT", ANSWER: "ANSWER", GONE: "GONE", UNIMPORT: "UNIMPORT"}
_Request = tuple[int, int, int]
"""Importer, exporter, number of the request."""
_Given = tuple[int, int, int, int]
"""Importer, exporter, export, generation."""

UNPROVEN: tuple[str, ...] = (
    "vmmc: that a name, a key or a list of nodes is what an import was refused for",
    "vmmc: when a kernel removed an export or an import from its adapter",
)


@dataclass(frozen=True)
class _Message:
    """One control message."""

    row: int
    sent_ns: int
    arrived_ns: int | None
    sender: int
    receiver: int
    type: int
    request: int
    key: int
    name: bytes
    status: int
    export: int
    generation: int
    pages: int
    use: int


OWN_INSTRUCTIONS = 10_000
"""A kernel's own work in one system call, in which it takes no interrupt: the end of an export of 256 pages, say. Then
it tells an importer that an export is gone whose farewell is there already (seen: 80)."""


@dataclass
class _Found:
    """Imports so far, and what is wrong with the messages."""

    asked: dict[_Request, Import] = field(default_factory=dict)
    given: dict[_Given, list[_Request]] = field(default_factory=dict)
    """Those that were granted."""
    gone: set[_Given] = field(default_factory=set)
    """Exports whose end an importer has learnt."""
    given_up: dict[_Request, int | None] = field(default_factory=dict)
    """When the exporter heard so."""
    deaf_ns: Mapping[int, float] = field(default_factory=dict)
    """Of each node, how long its kernel may do other work before it takes a message that has come."""
    faults: list[Finding] = field(default_factory=list)

    def heard_before(self, number: _Request, message: _Message) -> bool:
        """Whether the exporter surely knew that the import was given up when it sent the message."""
        heard = self.given_up.get(number)
        return heard is not None and heard + self.deaf_ns.get(message.sender, 0) < message.sent_ns

    def fault(self, message: _Message, what: str, expected: str, seen: object) -> None:
        self.faults.append(Finding(None, f"vmmc.{what}", expected, str(seen), [message.row]))


def find_imports(
    packets: pl.DataFrame, octets: Callable[[pl.DataFrame], Octets], mips: Mapping[int, float]
) -> tuple[list[Import], list[Finding]]:
    """All imports that were asked for, in the order of time, and what is wrong with the messages about them. `octets`
    gives the bytes of packets; `mips`: of each node."""
    found = _Found(deaf_ns={node: 1000 * OWN_INSTRUCTIONS / speed for node, speed in mips.items()})
    control = packets.filter(pl.col("kind") == CONTROL)
    for message in _messages(control, octets, found):
        known = _TYPES.get(message.type)
        if known is None:
            found.fault(message, "control.type", "1 to 4", message.type)
            continue
        _check_unused(found, message)
        {IMPORT: _asked, ANSWER: _answered, GONE: _gone, UNIMPORT: _given_up}[message.type](found, message)
    return list(found.asked.values()), found.faults


def _messages(control: pl.DataFrame, octets: Callable[[pl.DataFrame], Octets], found: _Found) -> Iterator[_Message]:
    bytes_of = octets(control)
    for place, packet in enumerate(control.iter_rows(named=True)):
        data = bytes_of.frame(place)[HEADER:]
        row = packet["row"]
        head = [packet[name] for name in ("flags", "reason", "export", "generation", "offset", "count")]
        if any(head):
            found.faults.append(Finding(None, "vmmc.control.header", "zeros", str(head), [row]))
        if len(data) != MESSAGE_BYTES:
            found.faults.append(Finding(None, "vmmc.control.length", str(MESSAGE_BYTES), str(len(data)), [row]))
            continue
        kind, request, key, name, status, export, generation, pages, use = _FORMAT.unpack(data)
        yield _Message(
            row, packet["sent_ns"], packet["arrived_ns"], packet["sender"], packet["receiver"], kind, request, key,
            name, status, export, generation, pages, use,
        )  # fmt: skip


_USED = {
    IMPORT: {"request", "key", "name"},
    ANSWER: {"request", "status", "export", "generation", "pages", "use"},
    GONE: {"export", "generation"},
    UNIMPORT: {"export", "generation"},
}


def _check_unused(found: _Found, message: _Message) -> None:
    """Fields that a message of its type does not have are 0; so are all of a refusal but its status."""
    used = _USED[message.type]
    if message.type == ANSWER and message.status:
        used = {"request", "status"}
    for name in ("request", "key", "status", "export", "generation", "pages", "use"):
        if name not in used and getattr(message, name):
            found.fault(message, f"control.{name}", "0", getattr(message, name))
    text, _, rest = message.name.partition(b"\0")
    if "name" not in used:
        if any(message.name):
            found.fault(message, "control.name", "zeros", message.name)
    elif not text or any(rest) or len(text) == len(message.name):
        found.fault(message, "control.name", "a name and zeros", message.name)


def _asked(found: _Found, message: _Message) -> None:
    number = (message.sender, message.receiver, message.request)
    if number in found.asked:
        found.fault(message, "control.request", "a number of its own", message.request)
        return
    name = message.name.partition(b"\0")[0].decode("ascii", "replace")
    found.asked[number] = Import(
        message.sender, message.receiver, name, message.key, message.row, message.sent_ns, message.arrived_ns
    )


def _answered(found: _Found, message: _Message) -> None:
    number = (message.receiver, message.sender, message.request)
    asked = found.asked.get(number)
    if asked is None or asked.answer is not None or not _before(asked.heard_ns, message.sent_ns):
        found.fault(message, "control.answer", "one, to a request that has come", f"request {message.request}")
        return
    if message.status not in (0, *REFUSALS):
        found.fault(message, "control.status", f"0 to {max(REFUSALS)}", message.status)
    if message.status == 0:
        for name, least, most in (
            ("export", 0, EXPORTS - 1), ("generation", 1, (1 << 32) - 1), ("pages", 1, EXPORT_PAGES),
            ("use", 0, max(USES)),
        ):  # fmt: skip
            if not least <= getattr(message, name) <= most:
                found.fault(message, f"control.{name}", f"{least} to {most}", getattr(message, name))
    found.asked[number] = replace(
        asked, answer=message.row, answered_ns=message.arrived_ns, status=message.status, export=message.export,
        generation=message.generation, pages=message.pages, use=message.use,
    )  # fmt: skip
    if message.status == 0:
        found.given.setdefault(found.asked[number].stream, []).append(number)


def _before(moment: int | None, other: int) -> bool:
    return moment is not None and moment <= other


def _gone(found: _Found, message: _Message) -> None:
    """The exporter says it once to each node that has imported, unless it has heard that the import was given up."""
    key = (message.receiver, message.sender, message.export, message.generation)
    open_ = [number for number in found.given.get(key, []) if not found.heard_before(number, message)]
    if not open_ or key in found.gone:
        found.fault(message, "control.gone", "an export that its receiver has imported", f"export {message.export}")
    found.gone.add(key)
    for number in open_:
        ended = found.asked[number].ended_ns
        if ended is None or ended > (message.arrived_ns or ended):
            found.asked[number] = replace(found.asked[number], ended_ns=message.arrived_ns, gone=True)


def _given_up(found: _Found, message: _Message) -> None:
    """An importer gives up each import once, be it gone or not."""
    key = (message.sender, message.receiver, message.export, message.generation)
    number = next((each for each in found.given.get(key, []) if each not in found.given_up), None)
    if number is None:
        found.fault(message, "control.unimport", "an import of its own", f"export {message.export}")
        return
    found.given_up[number] = message.arrived_ns
    if not found.asked[number].gone:
        found.asked[number] = replace(found.asked[number], ended_ns=message.sent_ns)


def check_imports(imports: Sequence[Import], packets: pl.DataFrame) -> pl.DataFrame:
    """What is written is within an import of its sender's, from its answer until it is given up; what is
    refused was sent to an export that its sender once had. Of one that is gone its sender learns some time later."""
    granted = pl.DataFrame(
        [
            (*each.stream, each.pages, each.answered_ns, None if each.gone else each.ended_ns)
            for each in imports
            if each.granted
        ],
        schema={
            **dict.fromkeys(STREAM, pl.UInt32), "pages": pl.Int64, "from_ns": pl.Int64, "ended_ns": pl.Int64,
        },
        orient="row",
    ).group_by(STREAM).agg(
        pl.col("pages", "from_ns").min(),
        # One that has not ended is open at any time.
        until_ns=pl.when(pl.col("ended_ns").is_null().any()).then(None).otherwise(pl.col("ended_ns").max()),
    )  # fmt: skip
    written = packets.filter(pl.col("kind").is_in([AU, DU])).join(granted, on=STREAM, how="left")
    end = pl.col("offset").cast(pl.Int64) + pl.col("length").cast(pl.Int64)
    early = (pl.col("sent_ns") < pl.col("from_ns")).fill_null(True)
    late = (pl.col("sent_ns") > pl.col("until_ns")).fill_null(False)
    import_ = pl.format("export {}, generation {} of node {}", "export", "generation", "receiver")
    refused = packets.filter(pl.col("kind") == NACK).join(
        granted, left_on=["receiver", "sender", "export", "generation"], right_on=STREAM, how="anti"
    )
    parts = [
        (written.filter(early | late), "vmmc.import", pl.lit("an import of its sender's"), import_),
        (
            written.filter(end > pl.col("pages") * PAGE),
            "vmmc.offset",
            pl.format("within {} pages", "pages"),
            pl.format("{} bytes from {}", "length", "offset"),
        ),
        (refused, "vmmc.refused", pl.lit("what its receiver had imported"), import_),
    ]
    return pl.concat(
        table.select(
            pl.lit(None, pl.UInt32).alias("call"),
            pl.lit(name).alias("field"),
            expected.cast(pl.String).alias("expected"),
            seen.alias("seen"),
            pl.concat_list("row").alias("rows"),
        ).cast(dict(FINDING))  # type: ignore[arg-type]
        for table, name, expected, seen in parts
    )
