# SPDX-License-Identifier: Apache-2.0
"""Strategies for the fields of the models, read from their own types: what a marker allows is what is drawn.

A value is drawn as a user would write it. `NEAR` narrows ranges whose far end makes a run long and shows nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import BaseModel

from sundial.model.fields import Flag, In, Mac, Marker, Mips, OneOrByPort, Percent, Whole
from sundial.model.lists import Trace, Words
from sundial.segments.atm.model_line import LINES, RATES, LineField
from sundial.units import RATE, TIME, Quantity
from sundial.workloads import functions
from sundial.workloads.function_words import FunctionWords

Strategy = SearchStrategy[Any]
Given = Mapping[str, Any]
"""Fields with a strategy or a value of their own; None: the field is left out."""

NEAR: dict[str, tuple[str, str]] = {
    "Adapter.ring_frames": ("1", "64"),
    "Atm.cell_latency": ("0 ns", "1 ms"),
    "Atm.cdv": ("0 ns", "1 ms"),
    "Atm.shaping": ("2 Mbit/s", "149 Mbit/s"),
    "Backplane.combine_timeout": ("1 ns", "20 us"),
    "Backplane.deliberate_setup": ("1 ns", "50 us"),
    "Backplane.fifo": ("17664 B", "64 KiB"),
    "Backplane.word_latency": ("1 us", "50 us"),
    "Bridge.queue_frames": ("1", "300"),
    "Bridge.forwarding_latency": ("0 ns", "5 ms"),
    "Contract.rate": ("2 Mbit/s", "149 Mbit/s"),
    "Contract.tolerance": ("0 ns", "1 ms"),
    "Dce.ack_delay": ("1 ms", "3 s"),
    "Dce.cancel": ("10 ms", "5 s"),
    "Dce.give_up": ("10 s", "60 s"),
    "Dce.ping": ("100 ms", "5 s"),
    "Dce.resend": ("100 ms", "5 s"),
    "Dce.work": ("0", "5000"),
    "Hub.cable_delay": ("0 ns", "300 ns"),
    "Hub.repeater_delay": ("0 ns", "1 us"),
    "Impairments.delay": ("0 ns", "1200 ms"),
    "Impairments.jitter": ("0 ns", "20 ms"),
    "Impairments.packet_overhead": ("-20", "60"),
    "Impairments.cell_size": ("16", "96"),
    "Impairments.cell_overhead": ("-8", "20"),
    "Impairments.gap": ("1", "10"),
    "Impairments.limit": ("1", "1000"),
    "Impairments.rate": ("200 kbit/s", "200 Mbit/s"),
    "Iperf3.rate": ("200 kbit/s", "10 Mbit/s"),
    "Lane.ageing": ("1 s", "300 s"),
    "Lane.control_time_out": ("10 s", "120 s"),
    "Lane.flush_time_out": ("1 s", "4 s"),
    "Lane.forward_delay": ("1 s", "15 s"),
    "Lane.le_arp_response_time": ("1 s", "10 s"),
    "Lane.path_switching_delay": ("1 s", "6 s"),
    "Lane.service_latency": ("0 ns", "1 ms"),
    "Lane.unknown_frame_time": ("1 s", "60 s"),
    "Lane.vcc_time_out": ("1 s", "20 min"),
    "Lane.vc_setup": ("1 ms", "50 ms"),
    "Link.propagation": ("0 ns", "20 ms"),
    "Link.rate": ("1 Mbit/s", "1 Gbit/s"),
    "MachineAdapter.latency": ("0 ns", "1 ms"),
    "Queue.cells": ("1", "2000"),
    "Switch.forwarding_latency": ("0 ns", "5 ms"),
    "Switch.queue_frames": ("1", "300"),
    "Switch.rate": ("1 Mbit/s", "1 Gbit/s"),
}
"""By MODEL.FIELD, as written."""
TIMES, BIT_RATES = ("0 ns", "10 ms"), ("1 Mbit/s", "1 Gbit/s")
"""The same for all other times and rates whose range goes beyond these."""
PERCENTS = ("0.1 %", "0.5 %", "1 %", "2 %", "5 %", "10 %", "20 %", "0 %")
CORRELATIONS = ("25 %", "50 %", "80 %", "100 %", "0 %")
WORDS_MOST = 3

LEFT_OUT: dict[str, str] = {
    "accelerator": "KVM makes a run the host's",
    "capture": "what is recorded, not what happens",
    "check": "a program of the host",
    "check_timeout": "as check",
    "cmdline": "boots by itself, which takes long: tests/run/test_own_vm.py",
    "default_scale": "a scale is other numbers",
    "files": "as cmdline",
    "hosts": "needs other hosts: tests/run/test_hosts_vm.py",
    "initrd": "as cmdline",
    "kernel": "as cmdline",
    "memory": "as cmdline",
    "amount": "as step_clock",
    "back": "as step_clock",
    "drift_clock": "as step_clock",
    "fast": "as step_clock",
    "fill_disk": "as power_off",
    "forward": "as step_clock",
    "leave": "as step_clock",
    "path": "as step_clock",
    "slow": "as step_clock",
    "step_clock": "as power_off",
    "take_memory": "as power_off",
    "power_off": "of machines with app: command alone, which no case has: tests/run/test_programs_vm.py",
    "power_on": "refused in scenarios: tests/run/test_watch_vm.py",
    "name": "the file's",
    "on": "as hosts",
    "root": "as cmdline: tests/run/test_roots_vm.py",
    "metrics": "what is asked of figures, which are random",
    "scale": "as default_scale",
    "statistic": "a rule of the report",
    "vary": "several runs",
}
"""Fields that no case has, with the reason."""


def document(model: type[BaseModel], given: Given | None = None, *, ports: Sequence[str] = ()) -> Strategy:
    """A mapping of the fields of `model`: those that it requires, and any others.

    `ports`: keys where a value may be by port.
    """
    fields: list[tuple[str, bool, Strategy]] = []
    for name, field in model.model_fields.items():
        if given is not None and name in given:
            value = given[name]
            if value is not None:
                fields.append((name, True, value if isinstance(value, SearchStrategy) else st.just(value)))
        elif name not in LEFT_OUT:
            fields.append((name, field.is_required(), _of_field(model, name, tuple(ports))))
    return _mapping(fields)


@st.composite
def _mapping(draw: st.DrawFn, fields: Sequence[tuple[str, bool, Strategy]]) -> dict[str, Any]:
    """Fields by name, each with its value if it is always there, else now and then."""
    found = {}
    for name, always, value in fields:
        if always or draw(seldom()):
            drawn = draw(value)
            if drawn is not None:
                found[name] = drawn
    return found


@cache
def seldom(share: int = 5) -> SearchStrategy[bool]:
    """True once in `share` times; False is simpler."""
    return st.integers(0, share - 1).map(lambda number: number == share - 1)


def field(model: type[BaseModel], name: str, *, ports: Sequence[str] = ()) -> Strategy:
    """The values of one field."""
    return _of_field(model, name, tuple(ports))


@cache
def _of_field(model: type[BaseModel], name: str, ports: tuple[str, ...]) -> Strategy:
    found = model.model_fields[name]
    return _of(found.annotation, found.metadata, _near(model, name), ports)


def quantity(kind: Quantity, least: int, most: int) -> Strategy:
    """Quantities from `least` to `most` base units, as written: round ones, and any between two of them."""
    unit = kind.units[kind.whole] if kind.whole else 1
    steps = _ladder(-(-least // unit), most // unit)
    return _between(steps).map(lambda amount: amount * unit if kind.bare else kind.show(amount * unit))


def whole(least: int, most: int) -> SearchStrategy[int]:
    """Whole numbers from `least` to `most`: small ones as often as large ones."""
    return _between(_ladder(least, most))


def subset(words: Collection[Any], most: int = WORDS_MOST) -> SearchStrategy[list[Any]]:
    """One or more of `words`, in any order."""
    return st.lists(st.sampled_from(list(words)), min_size=1, max_size=min(most, len(words)), unique=True)


def _near(model: type[BaseModel], name: str) -> tuple[str, str] | None:
    return next((NEAR[key] for key in (f"{each.__name__}.{name}" for each in model.__mro__) if key in NEAR), None)


def _of(annotation: Any, markers: Sequence[Any], near: tuple[str, str] | None, ports: Sequence[str]) -> Strategy:
    marker = next((each for each in markers if isinstance(each, Marker)), None)
    if marker is not None:
        return _of_marker(marker, near, ports)
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of(parts[0], parts[1:], near, ports)
    if origin in (Union, UnionType):
        return st.one_of([_of(each, (), near, ports) for each in parts if each is not NoneType])
    if origin is Literal:
        return st.sampled_from(parts)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return document(annotation, ports=ports)
    raise LookupError(f"{annotation} has neither a marker nor a strategy of its own")


def _of_marker(marker: Marker, near: tuple[str, str] | None, ports: Sequence[str]) -> Strategy:
    match marker:
        case In(kind):
            return _of_quantity(kind, near)
        case Whole(least, most):
            low, high = map(int, near) if near else (least, most)
            return whole(max(least, low), min(most, high))
        case OneOrByPort(kind):
            return _one_or_by_port(_of_quantity(kind, near), ports)
        case LineField(by_port):
            line = st.sampled_from([*LINES, "2 Mbit/s"]) | _of_quantity(RATES, ("2 Mbit/s", "622 Mbit/s"))
            return _one_or_by_port(line, ports) if by_port else line
        case Percent():
            return st.sampled_from(PERCENTS)
        case Mips():
            return st.sampled_from(marker.schema()["enum"])
        case Flag():
            return st.booleans()
        case Mac():
            return st.integers(1, 2**24 - 1).map(lambda number: "02:00:00:" + number.to_bytes(3, "big").hex(":"))
        case Words():
            return subset(marker.words)
        case FunctionWords():
            return subset(functions.NAMES)
        case Trace():
            return st.sampled_from(marker.WORDS)
    schema = marker.schema()
    if {"type": "boolean"}.items() <= schema.get("anyOf", [{}])[0].items():
        return subset((False, True))
    raise LookupError(f"{marker} has no strategy")


def _one_or_by_port(one: Strategy, ports: Sequence[str]) -> Strategy:
    return one | st.fixed_dictionaries(dict.fromkeys(ports, one)) if ports else one


def _of_quantity(kind: Quantity, near: tuple[str, str] | None) -> Strategy:
    usual = {tuple(TIME.units): TIMES, tuple(RATE.units): BIT_RATES}
    near = near or usual.get(tuple(kind.units))
    if near is None:
        return quantity(kind, kind.least, kind.most)
    least = min(max(kind.least, _amount(kind, near[0])), kind.most)
    return quantity(kind, least, max(least, min(kind.most, _amount(kind, near[1]))))


def _amount(kind: Quantity, text: str) -> int:
    """Base units of a quantity, inside of the range or not."""
    number, _, unit = text.partition(" ")
    return int(Decimal(number) * kind.units[unit])


def _ladder(least: int, most: int) -> list[int]:
    """Both ends, and 1, 2 and 5 times the powers of ten between them."""
    steps = {least, most}
    for sign in (1, -1):
        power = 1
        while power <= max(abs(least), abs(most)):
            steps.update(sign * digit * power for digit in (1, 2, 5))
            power *= 10
    return sorted((step for step in steps if least <= step <= most), key=lambda step: (abs(step), step < 0))


def _between(steps: list[int]) -> SearchStrategy[int]:
    pairs = [(min(pair), max(pair)) for pair in pairwise(steps)]
    some = st.sampled_from(steps)
    return some | st.sampled_from(pairs).flatmap(lambda pair: st.integers(*pair)) if pairs else some
