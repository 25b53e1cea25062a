# SPDX-License-Identifier: Apache-2.0
"""Functions of SSS-CORE's kernel between which the time of a message divides: system calls, MBCF, sockets, driver.

The kernel is compiled as one, so many a function is a part of its caller: those stand here that are left, and what a
compiler has made a part of another is left out. What ends in a jump is stamped at its entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sundial.plan.trace import Function, Stamps

TRANSMIT = "virtio_net_send"
"""The frame is the adapter's when it returns, and nothing else of the kernel sends one."""

_COMMON: tuple[tuple[str, Stamps], ...] = (
    ("call_wait", "entry"),
    ("schedule_next", "both"),
    ("ethernet_received", "both"),
)
_OF_PROTOCOL: dict[str, tuple[tuple[str, Stamps], ...]] = {
    "backplane": (
        ("vmmc_call", "entry"),
        ("vmmc_received", "both"),
    ),
    "sockets": (
        ("call_sockets", "entry"),
        ("socket_send_to", "both"),
        ("socket_receive_from", "both"),
        ("socket_send", "entry"),
        ("socket_receive", "both"),
        ("ethernet_output", "entry"),
        ("ip4_input", "entry"),
        ("udp_received", "entry"),
        ("tcp_input", "entry"),
        ("tcp_received", "entry"),
    ),
    "mbcf": (
        ("call_operate_short", "both"),
        ("call_operate", "entry"),
        ("mbcf_operate", "both"),
        ("mbcf_operate_quick", "both"),
        ("mbcf_operate_any", "both"),
        ("mbcf_receive", "both"),
        ("mbcf_execute", "entry"),
        ("mbcf_execute_quick", "entry"),
        ("mbcf_answer_quick", "entry"),
        ("mbcf_operation_done_quick", "entry"),
        ("mbcf_channel_timeout", "entry"),
    ),
}


def kernel_functions(*protocols: Literal["sockets", "mbcf", "backplane"]) -> Iterator[Function]:
    """Those of messages by these protocols."""
    for name, stamps in (*_COMMON, *(each for protocol in protocols for each in _OF_PROTOCOL[protocol])):
        yield Function((name,), stamps=stamps, needed=False)
    yield Function((TRANSMIT,), role="transmit")
