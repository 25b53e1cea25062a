# SPDX-License-Identifier: Apache-2.0
"""Packet comments as the fabric writes them, by harness/schemas/README.md; nothing here imports `sundial`."""

from __future__ import annotations

import json


def comment(words: str, fate: str, **fields: object) -> str:
    """Words, and a record; its fields in their order, `from` as `from_`."""
    record = {"fate": fate, **{name.rstrip("_"): value for name, value in fields.items()}}
    return f"{words} | {json.dumps(record, separators=(',', ':'))}"


def lost(from_: str, to: str) -> str:
    return comment(f"lost: {from_} to {to}", "lost", from_=from_, to=to)


def duplicated(from_: str, to: str) -> str:
    return comment(f"duplicated: {from_} to {to}", "duplicated", from_=from_, to=to)


def corrupted(bit: int, byte: int, from_: str, to: str) -> str:
    words = f"corrupted: bit {bit} of byte {byte}, {from_} to {to}"
    return comment(words, "corrupted", bit=bit, byte=byte, from_=from_, to=to)


def collision(adapter: str, attempt: int, bits: int) -> str:
    words = f"collision: {adapter}, attempt {attempt}, {bits} bits on the wire"
    return comment(words, "collision", adapter=adapter, attempt=attempt, bits=bits)


def queue_full(from_: str, to: str) -> str:
    return comment(f"dropped: queue full, {from_} to {to}", "dropped", rule="queue full", from_=from_, to=to)


def output_full(to: str) -> str:
    return comment(f"dropped: output queue full towards {to}", "dropped", rule="queue full", to=to)


def ring_full(adapter: str) -> str:
    return comment(f"dropped: transmit ring full ({adapter})", "dropped", rule="adapter full", adapter=adapter)


def given_up(adapter: str, attempts: int = 16) -> str:
    words = f"dropped: excessive collisions, {attempts} attempts of {adapter}"
    return comment(words, "dropped", rule="excessive collisions", adapter=adapter, attempts=attempts)


def too_long(adapter: str, octets: int, longest: int) -> str:
    words = f"dropped: {octets} bytes, longest is {longest} ({adapter})"
    return comment(words, "dropped", rule="too long", adapter=adapter, bytes=octets, longest=longest)


def by_adapter(adapter: str, rule: str) -> str:
    """`not joined`, `not IP`."""
    return comment(f"dropped: {rule} ({adapter})", "dropped", rule=rule, adapter=adapter)


def for_address(adapter: str, rule: str, address: str) -> str:
    """`no VC`, `no answer`, `8 frames wait`."""
    words = f"dropped: {rule} for {address} ({adapter})"
    return comment(words, "dropped", rule=rule, adapter=adapter, address=address)


def cells(lost_cells: int, of: int, rule: str, way: str, port: str) -> str:
    """`way`: `from` or `towards`."""
    end = {"from": "from_", "towards": "to"}[way]
    words = f"dropped: {lost_cells} of {of} cells, {rule} {way} {port}"
    return comment(words, "dropped", rule=rule, lost_cells=lost_cells, cells=of, **{end: port})


def spoiled(rule: str, to: str) -> str:
    """`wrong CRC`, `joined to the PDU before`."""
    return comment(f"dropped: {rule} towards {to}", "dropped", rule=rule, to=to)


def severed(rule: str, from_: str, to: str) -> str:
    """`cut`, `partition`."""
    return comment(f"lost: {rule}, {from_} to {to}", "lost", rule=rule, from_=from_, to=to)


def machine_off(from_: str, to: str) -> str:
    """To a machine without power."""
    return comment(f"lost: {to} is off, from {from_}", "lost", rule="off", from_=from_, to=to)


def adapter_off(adapter: str) -> str:
    """In the ring of a machine without power."""
    return comment(f"dropped: {adapter} is off", "dropped", rule="adapter off", adapter=adapter)


def severed_before(rule: str, from_: str) -> str:
    """In front of a switch."""
    return comment(f"lost: {rule}, from {from_}", "lost", rule=rule, from_=from_)
