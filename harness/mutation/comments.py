# SPDX-License-Identifier: Apache-2.0
"""The packet comments of fates: changed in their records with the words that follow, or in one of the two alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from pydantic import ValidationError

from sundial.seams.fate import SEPARATOR, Fate

KINDS = ("lost", "dropped", "duplicated", "corrupted", "collision")
REASONS = {
    "queue full": "VC full",
    "early packet discard": "queue full",
    "header error": "cell loss",
    "cell loss": "policed",
    "policed": "cell loss",
    "wrong CRC": "joined to the PDU before",
    "joined to the PDU before": "wrong CRC",
}
_WAYS = {"from": "to", "to": "from"}


def record_of(comment: str) -> dict[str, Any]:
    """The record of a comment."""
    return dict(json.loads(comment.partition(SEPARATOR)[2]))


def changed(comment: str, fields: Mapping[str, Any]) -> str:
    """With other fields, and the words that follow from them where there are some."""
    return _rewritten(comment, {**record_of(comment), **fields})


def _rewritten(comment: str, record: Mapping[str, Any]) -> str:
    try:
        return Fate.validate_python(record).comment
    except ValidationError:
        return f"{comment.partition(SEPARATOR)[0]}{SEPARATOR}{json.dumps(record, separators=(',', ':'))}"


def other_kind(comment: str, random: Random) -> str:
    return changed(comment, {"fate": random.choice([kind for kind in KINDS if kind != record_of(comment)["fate"]])})


def other_detail(comment: str, random: Random) -> str:
    """Another number, as an attempt; where there is none, another port."""
    record = record_of(comment)
    numbers = [name for name, value in record.items() if isinstance(value, int)]
    name = random.choice(numbers or [name for name in record if name not in ("fate", "rule")])
    return changed(comment, {name: record[name] + 1 if numbers else f"{record[name]}x"})


def other_number(comment: str, name: str) -> str:
    """One more, where the record has such a number."""
    record = record_of(comment)
    return changed(comment, {name: record[name] + 1}) if name in record else comment


def other_port(comment: str) -> str:
    record = record_of(comment)
    return changed(comment, {name: f"{record[name]}x" for name in _WAYS if name in record})


def other_reason(comment: str) -> str:
    rule = record_of(comment)["rule"]
    return changed(comment, {"rule": REASONS[rule]})


def other_way(comment: str) -> str:
    """The other side of the switch."""
    return _rewritten(comment, {_WAYS.get(name, name): value for name, value in record_of(comment).items()})


def other_words(comment: str) -> str:
    """The words alone: one port is another."""
    words, _, record = comment.partition(SEPARATOR)
    return f"{words.replace(':eth0', ':eth1', 1)}{SEPARATOR}{record}" if ":eth0" in words else f"{words} {comment}"


def other_record(comment: str) -> str:
    """The record alone."""
    words, _, record = comment.partition(SEPARATOR)
    return f"{words}{SEPARATOR}{record.replace(':eth0', ':eth1', 1)}" if ":eth0" in record else f"{words} | {{}}"


def without_record(comment: str) -> str:
    return comment.partition(SEPARATOR)[0]
