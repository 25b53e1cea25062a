# SPDX-License-Identifier: Apache-2.0
"""Functions of Linux between which the time of a message divides: system calls, protocols, driver, scheduler.

Names are those of 6.1. A tail call has no exit, so what ends in one is stamped where it is entered. Which are there
depends on the kernel's configuration: a step that lacks its end is part of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from sundial.plan.trace import Function, Stamps

TRANSMIT = "start_xmit"
"""Of virtio_net: the frame is the adapter's when it returns."""

_COMMON: tuple[tuple[str, Stamps], ...] = (
    ("__x64_sys_sendto", "both"),
    ("__x64_sys_sendmsg", "entry"),
    ("__x64_sys_recvfrom", "both"),
    ("__x64_sys_recvmsg", "entry"),
    ("__x64_sys_read", "entry"),
    ("__x64_sys_write", "entry"),
    ("do_sys_poll", "both"),
    ("ip_output", "entry"),
    ("__schedule", "both"),
    ("asm_common_interrupt", "entry"),
    ("asm_exc_page_fault", "entry"),
    ("virtnet_poll", "entry"),
    ("ip_list_rcv", "entry"),
    ("sock_def_readable", "entry"),
)
_OF_TRANSPORT: dict[str, tuple[tuple[str, Stamps], ...]] = {
    "udp": (("udp_sendmsg", "both"), ("udp_queue_rcv_skb", "entry"), ("udp_recvmsg", "both")),
    "tcp": (("tcp_sendmsg", "both"), ("tcp_v4_rcv", "entry"), ("tcp_recvmsg", "both")),
    "packet": (("packet_sendmsg", "both"), ("packet_rcv", "entry"), ("packet_recvmsg", "both")),
}


def kernel_functions(*transports: Literal["udp", "tcp", "packet"]) -> Iterator[Function]:
    """Those of messages over these transports; packet: of a program that sends frames of its own."""
    of_transports = (each for transport in transports for each in _OF_TRANSPORT[transport])
    for name, stamps in (*_COMMON, *of_transports):
        yield Function((name,), stamps=stamps)
    yield Function((TRANSMIT,), role="transmit")
