# SPDX-License-Identifier: Apache-2.0
"""What became of a frame or PDU: the packet comment on a segment's fate interface. Written by sundial-fabric.

A comment is words, ` | ` and the record as compact JSON. The words follow from the record: each model has one form of
words for each set of its fields, and `python -m sundial.seams.write` writes the forms for the fabric, too.
"""

from __future__ import annotations

import json
from functools import cache
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, TypeAdapter, model_validator

from sundial.seams.form import Form

SEPARATOR = " | "
Number = Annotated[int, Field(ge=0, le=2**32 - 1)]
Port = Annotated[str, Field(pattern=r"^\S+$")]
"""`OWNER:INTERFACE` of a port; of the services of an ATM segment `service`."""


class _Fate(Form):
    words: ClassVar[tuple[str, ...]]
    """Forms of the words, with fields in braces: the first is right whose fields are all there."""

    @property
    def record(self) -> dict[str, Any]:
        """The fields as they are written."""
        return self.model_dump(by_alias=True, exclude_none=True)

    @property
    def comment(self) -> str:
        """The packet comment."""
        record = self.record
        form = next(form for form in self.words if _fields(form) <= record.keys())
        return f"{form.format_map(record)}{SEPARATOR}{json.dumps(record, ensure_ascii=False, separators=(',', ':'))}"


class OnLine(_Fate):
    """A line lost the frame, or made a copy of it."""

    words = ("{fate}: {from} to {to}",)
    fate: Literal["lost", "duplicated"]
    from_: Port = Field(alias="from")
    """The port that the frame comes from."""
    to: Port
    """The port that the frame is on its way to."""


class Severed(_Fate):
    """Nothing passed between two ports, or from a port to its switch, when the frame began: a cut, or a partition."""

    words = ("lost: {rule}, {from} to {to}", "lost: {rule}, from {from}")
    fate: Literal["lost"]
    rule: Literal["cut", "partition"]
    """As `wire/counters.json` counts what it lost."""
    from_: Port = Field(alias="from")
    to: Port | None = None
    """The port that it did not pass to; left out where it did not come to the switch."""


class MachineOff(_Fate):
    """The machine that the frame was for was off when its transmission began: on the wire to it."""

    words = ("lost: {to} is off, from {from}",)
    fate: Literal["lost"]
    rule: Literal["off"]
    """As `wire/counters.json` counts what it lost."""
    from_: Port = Field(alias="from")
    to: Port
    """The port of the machine that is off."""


class Corrupted(_Fate):
    """A line inverted one bit of the frame, which is recorded as it goes on."""

    words = ("corrupted: bit {bit} of byte {byte}, {from} to {to}",)
    fate: Literal["corrupted"]
    bit: Annotated[int, Field(ge=0, le=7)]
    """Its value is 2 to the power of this."""
    byte: Number
    """Place in the frame, from 0."""
    from_: Port = Field(alias="from")
    to: Port


class Collision(_Fate):
    """An attempt to send the frame collided."""

    words = ("collision: {adapter}, attempt {attempt}, {bits} bits on the wire",)
    fate: Literal["collision"]
    adapter: Port
    """The port whose adapter had the frame."""
    attempt: Number
    """From 1, of this frame."""
    bits: Number
    """Sent until the end of the jam."""


class _Dropped(_Fate):
    fate: Literal["dropped"]


class QueueFull(_Dropped):
    """The queue of a line was full."""

    words = ("dropped: queue full, {from} to {to}",)
    rule: Literal["queue full"]
    """As `wire/counters.json` counts what it dropped."""
    from_: Port = Field(alias="from")
    to: Port


class OutputFull(_Dropped):
    """The queue of an output of a switch was full."""

    words = ("dropped: output queue full towards {to}",)
    rule: Literal["queue full"]
    to: Port


class RingFull(_Dropped):
    """The transmit ring of the adapter was full."""

    words = ("dropped: transmit ring full ({adapter})",)
    rule: Literal["adapter full"]
    adapter: Port


class AdapterOff(_Dropped):
    """The transmit ring of the adapter had the frame when its machine lost its power. Stamped when its transmission
    would have begun."""

    words = ("dropped: {adapter} is off",)
    rule: Literal["adapter off"]
    adapter: Port


class TooShort(_Dropped):
    """Shorter than an Ethernet header."""

    words = ("dropped: {bytes} bytes are no Ethernet frame ({adapter})",)
    rule: Literal["too short"]
    adapter: Port
    bytes: Number
    """The length of the frame."""


class TooLong(_Dropped):
    """Longer than the segment carries."""

    words = ("dropped: {bytes} bytes, longest is {longest} ({adapter})",)
    rule: Literal["too long"]
    adapter: Port
    bytes: Number
    longest: Number
    """The longest frame that the segment carries."""


class GivenUp(_Dropped):
    """The frame collided as often as a station tries to send one."""

    words = ("dropped: excessive collisions, {attempts} attempts of {adapter}",)
    rule: Literal["excessive collisions"]
    adapter: Port
    attempts: Number


class NoPacket(_Dropped):
    """Not a packet of a backplane."""

    words = ("dropped: {bytes} bytes are no packet ({adapter})",)
    rule: Literal["no packet"]
    adapter: Port
    bytes: Number


class WrongSender(_Dropped):
    """A packet that names another node as its sender."""

    words = ("dropped: sent as node {node} ({adapter})",)
    rule: Literal["sender"]
    adapter: Port
    node: Number
    """The number in the packet."""


class UnknownNode(_Dropped):
    """A packet for a node that is not there."""

    words = ("dropped: node {node} is not there ({adapter})",)
    rule: Literal["unknown node"]
    adapter: Port
    node: Number


class OfAdapter(_Dropped):
    """The segment carries IP only, or the client of LAN emulation is not a member yet."""

    words = ("dropped: {rule} ({adapter})",)
    rule: Literal["not IP", "not joined"]
    adapter: Port


class ForAddress(_Dropped):
    """No channel leads to the address; or a client of LAN emulation got no answer for it in time, or holds back as many
    frames for it as it may."""

    words = ("dropped: {rule} for {address} ({adapter})",)
    rule: Literal["no VC", "no answer", "8 frames wait"]
    adapter: Port
    address: str
    """IPv4 or MAC address that the frame is for."""


class Cells(_Dropped):
    """Some cells of the PDU were lost; the rule is that of the first."""

    words = (
        "dropped: {lost_cells} of {cells} cells, {rule} from {from}",
        "dropped: {lost_cells} of {cells} cells, {rule} towards {to}",
    )
    rule: Literal[
        "cell loss", "header error", "policed", "early packet discard", "partial packet discard", "CLP 1", "VC full",
        "queue full",
    ]  # fmt: skip
    lost_cells: Annotated[int, Field(ge=1, le=2**32 - 1)]
    cells: Number
    """Of the whole PDU."""
    from_: Port | None = Field(default=None, alias="from")
    """Between this port and the switch; a record has this or `to`."""
    to: Port | None = None
    """In the output queue towards this port, or between the switch and it."""

    @model_validator(mode="after")
    def _one_end(self) -> Cells:
        if (self.from_ is None) == (self.to is None):
            raise ValueError("from or to, not both")
        return self


class Spoiled(_Dropped):
    """All cells came, and the receiver discarded what they made."""

    words = ("dropped: {rule} towards {to}",)
    rule: Literal["wrong CRC", "joined to the PDU before"]
    to: Port


Dropped = (
    RingFull
    | AdapterOff
    | QueueFull
    | OutputFull
    | Cells
    | Spoiled
    | GivenUp
    | TooShort
    | TooLong
    | NoPacket
    | WrongSender
    | UnknownNode
    | OfAdapter
    | ForAddress
)
Record = OnLine | Severed | MachineOff | Corrupted | Collision | Dropped
Fate: TypeAdapter[Record] = TypeAdapter(Record)


def read_comment(comment: str) -> Record | None:
    """The record of a comment; None: it has no valid one, or other words than follow from it."""
    _, _, text = comment.partition(SEPARATOR)
    try:
        record = json.loads(text)
        models = _models()[record.get("rule", record["fate"])]
        model = next(model for model, required, names in models if required <= record.keys() <= names)
        fate: Record = model.model_validate(record)
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration, RecursionError):
        return None
    return fate if fate.comment == comment else None


def words() -> dict[str, list[str]]:
    """By rule, and by fate of what was not dropped: the forms of its words, those with the most fields first."""
    return {
        value: sorted((form for model, *_ in models for form in model.words), key=lambda form: -form.count("{"))
        for value, models in _models().items()
    }


@cache
def _models() -> dict[str, list[tuple[type[Record], frozenset[str], frozenset[str]]]]:
    """By rule, and by fate of what was not dropped; each with the fields that it must and that it may have."""
    found: dict[str, list[tuple[type[Record], frozenset[str], frozenset[str]]]] = {}
    for model in get_args(Record):
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        required = frozenset(name for name, field in fields.items() if field.is_required())
        for value in get_args(fields["rule" if "rule" in fields else "fate"].annotation):
            found.setdefault(value, []).append((model, required, frozenset(fields)))
    return found


@cache
def _fields(form: str) -> frozenset[str]:
    return frozenset(name for _, name, *_ in Formatter().parse(form) if name)
