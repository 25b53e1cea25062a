# SPDX-License-Identifier: Apache-2.0
"""Each file of a run directory missing, cut or changed, and files that do not belong there; sealed and not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mutation.damage import Copy, Damage, Damages

FOREIGN = {
    "a capture": "wire/other.pcapng",
    "a capture of another form": "wire/other.pcap",
    "a file in wire": "wire/notes.txt",
    "a capture of another kind": "wire/atm/other.pdus.pcapng",
    "a node": "nodes/stranger/samples.jsonl",
    "a file of a node": "nodes/{node}/other.jsonl",
    "a folder": "other/notes.txt",
    "a file": "notes.txt",
}


def damages(copy: Copy) -> Damages:
    """`sealed` damages have right hashes: that a file is missing or foreign must be known otherwise."""
    for sealed in (True, False):
        words = "sealed" if sealed else "not sealed"
        for name in copy.names:
            if name == "run.json":
                continue
            for what, change in CHANGES.items():
                if copy.read(name) or what in ("missing", "longer"):
                    yield Damage(f"file {name}: {what}, {words}", _of(name, change), sealed)
        for what, name in FOREIGN.items():
            yield Damage(f"foreign file: {what}, {words}", _add(name), sealed)
    yield Damage("file run.json: without hashes", _without_hashes, sealed=False)
    yield Damage("file run.json: with a capture outside", _outside, sealed=False)


def _of(name: str, change: Callable[[Copy, str, Random], None]) -> Callable[[Copy, Random], None]:
    return lambda copy, random: change(copy, name, random)


def _missing(copy: Copy, name: str, random: Random) -> None:
    copy.remove(name)


def _empty(copy: Copy, name: str, random: Random) -> None:
    copy.write(name, b"")


def _cut(copy: Copy, name: str, random: Random) -> None:
    copy.write(name, copy.read(name)[: len(copy.read(name)) // 2])


def _longer(copy: Copy, name: str, random: Random) -> None:
    copy.write(name, copy.read(name) + b"\n{}\n")


def _one_bit(copy: Copy, name: str, random: Random) -> None:
    data = bytearray(copy.read(name))
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    copy.write(name, bytes(data))


CHANGES = {"missing": _missing, "empty": _empty, "cut": _cut, "longer": _longer, "one bit": _one_bit}


def _add(name: str) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        node = next(each for each in copy.names if each.startswith("nodes/")).split("/")[1]
        data = copy.read(copy.wires[0]) if ".pcap" in name else b""
        copy.write(name.format(node=node), data)

    return apply


def _without_hashes(copy: Copy, random: Random) -> None:
    document = copy.json("run.json")
    document["captures"] = {}
    document.pop("files", None)
    copy.write_json("run.json", document)


def _outside(copy: Copy, random: Random) -> None:
    document = copy.json("run.json")
    document["captures"] = {**document["captures"], "../../etc/passwd": "0" * 64}
    copy.write_json("run.json", document)
