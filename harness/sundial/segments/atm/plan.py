# SPDX-License-Identifier: Apache-2.0
"""An ATM segment in fabric.json."""

from __future__ import annotations

from typing import Any

from sundial.model.network import Network
from sundial.model.segment import GilbertElliott
from sundial.plan.segment import SegmentPlan
from sundial.segments.atm.model import Atm
from sundial.segments.atm.model_line import Line
from sundial.segments.atm.model_parts import Contract, Faults, Lane

_TIMERS = (
    "unknown_frame_time",
    "control_time_out",
    "vcc_time_out",
    "ageing",
    "forward_delay",
    "le_arp_response_time",
    "flush_time_out",
    "path_switching_delay",
)


class AtmPlan(SegmentPlan[Atm]):
    def fabric(self, segment: Atm, name: str, network: Network) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "lines": [_line(segment.line_of(port)) for port in segment.ports],
            "propagation_ns": segment.by_port(segment.propagation),
            "tx_latency_ns": segment.by_port(segment.tx_latency),
            "rx_latency_ns": segment.by_port(segment.rx_latency),
            "encapsulation": segment.encapsulation,
            "interleave": segment.interleave,
            "cell_latency_ns": segment.cell_latency,
            "cdv_ns": segment.cdv,
            "queue": {
                "cells": segment.queue.cells,
                "discard": segment.queue.discard,
                "epd_above": segment.queue.early_cells,
                "vc_cells": segment.queue.vc_cells,
                "clp1_above": segment.queue.clp1_above,
            },
            "contracts": [_contract(segment.contracts.get(port)) for port in segment.ports],
            "shaping_bps": [segment.shaping_bps(port) for port in segment.ports],
            "impairments": {
                way: [_faults(segment.faults(f"{way} {port}")) for port in segment.ports] for way in ("from", "to")
            },
        }
        if segment.encapsulation == "lane":
            fields["lane"] = {
                "frame_size": segment.lane_frame_size,
                **_lane(segment.lan_emulation),
                "elan": name,
            }
        if segment.encapsulation == "routed":
            fields["addresses"] = [_addresses(network, port) for port in segment.ports]
        return {**fields, "capture": segment.capture.model_dump()}


def _line(line: Line) -> dict[str, int]:
    return {"rate_bps": line.rate_bps, "cell_octets": line.cell_octets}


def _contract(written: Contract | None) -> dict[str, Any] | None:
    if written is None:
        return None
    return {"rate_bps": written.rate, "tolerance_ns": written.tolerance, "action": written.action}


def _faults(written: Faults) -> dict[str, Any] | None:
    if not any(value is not None for _, value in written):
        return None
    model = written.gemodel
    return {
        "cell_loss": float(written.cell_loss or 0),
        "gemodel": model and {name: float(getattr(model, name)) for name in GilbertElliott.model_fields},
        "payload_bit": float(written.payload_bit or 0),
        "header_bit": float(written.header_bit or 0),
    }


def _lane(written: Lane) -> dict[str, Any]:
    return {
        "resolution": written.resolution,
        "vc_setup_ns": written.vc_setup,
        "service_latency_ns": written.service_latency,
        "service_line": _line(written.service_line),
        "unknown_frames": written.unknown_frames,
        "retries": written.retries,
        **{f"{timer}_ns": getattr(written, timer) for timer in _TIMERS},
    }


def _addresses(network: Network, port: str) -> list[str]:
    address = network.nic(port).address
    return [] if address is None else [str(address.ip)]


KIND: SegmentPlan[Atm] = AtmPlan()
