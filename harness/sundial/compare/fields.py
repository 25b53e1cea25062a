# SPDX-License-Identifier: Apache-2.0
"""Which field of a frame differs, from what tshark dissects (PDML)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import environ
from pathlib import Path
from xml.etree import ElementTree

from sundial.compare.frames import Frame, first_octet
from sundial.model.catalog import ROOT
from sundial.observe.tshark import ENVIRONMENT
from sundial.printable import printable

_SECONDS = 60.0
_PREFERENCES = ("-o", "ip.defragment:FALSE", "-o", "rpc.dissect_unknown_programs:TRUE")
_LONG = 16
"""Bytes of a field of which only the octet that differs is shown."""
_NO_FIELDS = ("geninfo", "frame", "fake-field-wrapper")
DISSECTORS = tuple(ROOT / "harness" / "wireshark" / name for name in ("mbcf.lua", "rpyc.lua", "vmmc.lua"))


@dataclass(frozen=True)
class Field:
    """A field of a dissected frame: where its octets are, and its value in words."""

    name: str
    begin: int
    size: int
    value: str


def differing_field(first: Frame, other: Frame) -> tuple[str, str | None, str | None]:
    """(field, value in the first frame, value in the other one) of two frames that differ."""
    if first.port != other.port:
        return "port", first.port, other.port
    place = first_octet(first.octets, other.octets)
    if place is not None:
        return _of_octet(first, other, place)
    if first.time_ns != other.time_ns:
        return "time", None, None
    return "comment", _comment(first.rest), _comment(other.rest)


def choose(ours: Sequence[Field], theirs: Sequence[Field], place: int) -> tuple[Field, str] | None:
    """The smallest field at an octet whose value is another one in the other frame, and that; else the smallest."""
    values = {field.name: field.value for field in reversed(theirs)}
    there = [field for field in ours if field.begin <= place < field.begin + field.size and field.name in values]
    there.sort(key=lambda field: (values[field.name] == field.value, field.size))
    return (there[0], values[there[0].name]) if there else None


def read_pdml(text: bytes) -> list[Field]:
    """The fields of the first frame, in order. Protocols, which have no value, are left out."""
    try:
        tree = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return []
    packet = tree.find("packet")
    return [] if packet is None else list(_fields(packet))


def _fields(element: ElementTree.Element) -> Iterator[Field]:
    for inner in element:
        name = inner.get("name", "")
        if inner.tag == "proto" and name in _NO_FIELDS:
            continue
        if inner.tag == "field" and name and name not in _NO_FIELDS:
            value = inner.get("show") or inner.get("value") or ""
            yield Field(name, int(inner.get("pos", 0)), int(inner.get("size", 0)), printable(value))
        yield from _fields(inner)


def _of_octet(first: Frame, other: Frame, place: int) -> tuple[str, str | None, str | None]:
    chosen = choose(read_pdml(_dissected(first)), read_pdml(_dissected(other)), place)
    if chosen is not None and chosen[0].size <= _LONG:
        return chosen[0].name, chosen[0].value, chosen[1]
    values = [f"{frame.octets[place]:#04x}" if place < len(frame.octets) else None for frame in (first, other)]
    if chosen is not None:
        return f"octet {place - chosen[0].begin} of {chosen[0].name}", values[0], values[1]
    return f"octet {place}", values[0], values[1]


def _dissected(frame: Frame) -> bytes:
    """PDML of the frame; empty without tshark."""
    program = shutil.which("tshark")
    if program is None:
        return b""
    scripts = [word for path in DISSECTORS for word in ("-X", f"lua_script:{path}") if Path(path).is_file()]
    command = [program, "-n", *scripts, "-r", "-", "-T", "pdml", *_PREFERENCES]
    done = subprocess.run(
        command, input=frame.alone, capture_output=True, timeout=_SECONDS, check=False, env={**environ, **ENVIRONMENT}
    )
    return done.stdout


def _comment(rest: bytes) -> str:
    """The readable text of a record's options."""
    text = "".join(chr(octet) for octet in rest if 32 <= octet < 127).strip()
    return text or "none"
