# SPDX-License-Identifier: Apache-2.0
"""What each of RPC's semantics is worth: on bad lines, with lost replies, with servers that die."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sundial.papers.kamesawa98.paper import Extent
from sundial.papers.kamesawa98.results import FaultRow
from sundial.reproduce.measure import Measured
from sundial.reproduce.runs import Spec

KINDS = (("at_least_once", "udp"), ("at_most_once", "udp"), ("exactly_once", "mbcf3"))
"""Semantics, and the transport that gives it without help or with a reply cache."""
LONG_RATE = 30
DYING_CALL, DYING_CALLS = 10, 20


@dataclass(frozen=True)
class Fault:
    """Of one run."""

    semantics: str
    transport: str
    text: str


def fault_specs(extent: Extent) -> Iterator[tuple[Spec, Fault]]:
    """All runs with faults."""
    for rate in extent.rates:
        for semantics, transport in KINDS:
            fault = Fault(semantics, transport, f"{rate} % lost, doubled, reordered")
            yield _on_a_bad_line(f"faults-{rate}-{_dashed(semantics)}", fault, extent.fault_calls, _line(rate)), fault
    for semantics, transport in KINDS:
        fault = Fault(semantics, transport, "30 % of the replies lost")
        line = 'segments.lan.impairments={"server:eth0": {loss: 30 %}}'
        yield _on_a_bad_line(f"replies-lost-{_dashed(semantics)}", fault, extent.fault_calls, (line,)), fault
    for when in extent.deaths:
        for semantics, transport in KINDS:
            fault = Fault(semantics, transport, f"server killed {when} call {DYING_CALL}")
            yield _dying(f"killed-{when}-{_dashed(semantics)}", fault, when), fault
    fault = Fault("exactly_once", "mbcf3", f"{LONG_RATE} % lost, doubled, reordered, {extent.long_calls:,} calls")
    yield _on_a_bad_line("exactly-once-long", fault, extent.long_calls, _line(LONG_RATE), depth=8), fault


def fault_rows(run: Measured, spec: Spec, fault: Fault) -> FaultRow:
    """The client's view of all calls against what the server has counted."""
    calls = run.calls()
    executed = run.counted("server", "echo-server").get("executed")
    return FaultRow(
        fault.semantics,
        fault.transport,
        fault.text,
        calls.height,
        int(calls["ok"].sum()),
        int(calls["retransmits"].sum()),
        executed,
        spec.name,
        run.captures,
    )


def _on_a_bad_line(name: str, fault: Fault, calls: int, settings: tuple[str, ...], **more: Any) -> Spec:
    workload = _calls(fault, calls) | {"retry_timeout": "100 ms", "total_timeout": "60 s", **more}
    expect = {"retransmissions": "allowed", "failures": "allowed"}
    return Spec(name, f"{fault.semantics}, {fault.text}", "sss-two-lossy", [workload], settings, expect, "24 h")


def _dying(name: str, fault: Fault, when: str) -> Spec:
    workload = _calls(fault, DYING_CALLS) | {"retry_timeout": "200 ms", "total_timeout": "1 s"}
    workload["die"] = {"when": when, "call": DYING_CALL}
    expect = {"retransmissions": "allowed", "failures": "allowed"}
    return Spec(name, f"{fault.semantics}, {fault.text}", "sss-two-100base-tx", [workload], (), expect)


def _calls(fault: Fault, calls: int) -> dict[str, Any]:
    return {
        "app": "sunrpc",
        "transports": [fault.transport],
        "procedures": ["echo"],
        "sizes": [64],
        "calls": calls,
        "warmup": 0,
        "semantics": fault.semantics,
    }


def _line(rate: int) -> tuple[str, ...]:
    both = "segments.lan.impairments.both"
    return tuple(f"{both}.{what}={rate} %" for what in ("loss", "duplicate", "reorder"))


def _dashed(words: str) -> str:
    return words.replace("_", "-")
