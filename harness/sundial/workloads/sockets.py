# SPDX-License-Identifier: Apache-2.0
"""UDP and TCP as workloads offer them, and what they need of machines and wires."""

from __future__ import annotations

from collections.abc import Iterator

from sundial.model.invalid import Invalid, Path
from sundial.model.workload import Ends, OverSockets, Transport

UDP = Transport("udp", ("at_least_once", "at_most_once"), reliable=False)
"""A client asks again, and a server may keep its replies."""
TCP = Transport("tcp", ("at_most_once",))
"""No library sends a call twice."""
TRANSPORTS = (UDP, TCP)

LINUX = "linux"
"""The platform whose sockets programs for Linux need."""
TCP_MTU_LEAST = 88
"""Linux keeps 48 bytes for data and options in a segment (tcp_min_snd_mss), behind 40 bytes of headers: with less, IP
would cut its segments."""


def check_tcp_mtu(ends: Ends, path: Path, *, otherwise: str = "") -> list[Invalid]:
    """A finding where an MTU is too small for TCP; `otherwise`: what besides a larger one is allowed."""
    least = _least_mtu(ends)
    if least >= TCP_MTU_LEAST:
        return []
    what = f"TCP is not supported over an MTU of {least} bytes: IP would fragment Linux's segments"
    return [Invalid((*path, "transports"), what, f"an MTU of at least {TCP_MTU_LEAST}{otherwise}")]


def check_stream_mtu(system: str, ends: Ends, path: Path) -> list[Invalid]:
    """The same for a system that has no other transport than TCP."""
    least = _least_mtu(ends)
    if least >= TCP_MTU_LEAST:
        return []
    what = f"{system} is not supported over an MTU of {least} bytes: IP would fragment TCP's segments"
    return [Invalid((*path, "app"), what, f"an MTU of at least {TCP_MTU_LEAST}")]


def _least_mtu(ends: Ends) -> int:
    return min((mtu for client in ends.clients for mtu in ends.mtus(client)), default=TCP_MTU_LEAST)


def check_fixed_sockets(workload: OverSockets, ends: Ends, path: Path) -> list[Invalid]:
    """A finding for each socket option that an image at one of the ends does not have."""
    fixed = [(name, image) for name, image in ends.images.items() if image.fixed_sockets]
    if not fixed:
        return []
    name, image = fixed[0]
    who = f"{name!r}, which boots {image.name}"
    findings = []
    for field, place in (("socket_buffer", workload), ("serving.socket_buffer", workload.serving)):
        if place.socket_buffer is not None:
            what = f"{field} has no effect on {who}, whose sockets have fixed buffers"
            findings.append(Invalid((*path, *field.split(".")), what, "leave it out"))
    if not workload.tcp_nodelay or workload.serving.tcp_nodelay is False:
        what = f"tcp_nodelay has no effect on {who}, whose TCP always sends at once"
        findings.append(Invalid((*path, "tcp_nodelay"), what, "true"))
    return findings


_RECORDS = ("send_buffer", "recv_buffer", "serving.send_buffer", "serving.recv_buffer")
_OPTIONS = {
    **dict.fromkeys(("tcp_nodelay", "serving.tcp_nodelay", *_RECORDS), ("tcp",)),
    **dict.fromkeys(("socket_buffer", "serving.socket_buffer"), ("udp", "tcp")),
    "udp_message_size": ("udp",),
}
"""Fields by the transports that have what they set."""
_USUAL = (None, True)
"""Of these fields: what is not written, and what is so anyway."""


def check_options_used(workload: OverSockets, path: Path, *, records: bool = False) -> Iterator[Invalid]:
    """A finding for each option of sockets that is set where nothing has it. `records`: the workload's messages are
    records of a stream over TCP, with buffers of their own."""
    for field, having in _OPTIONS.items():
        *outer, name = field.split(".")
        place = workload.serving if outer else workload
        if getattr(place, name, None) in (_USUAL if not outer else (None,)):
            continue
        if field in _RECORDS and not records:
            what = f"{field} has no effect on {workload.app}, which has no records"
            yield Invalid((*path, *field.split(".")), what, "leave it out")
        elif not set(having) & set(workload.transports):
            what = f"{field} has no effect over {', '.join(workload.transports)}"
            yield Invalid((*path, *field.split(".")), what, f"transports: {', '.join(having)}")


def check_own_buffers(workload: OverSockets, ends: Ends, path: Path) -> list[Invalid]:
    """A finding where the buffers of a machine that calls itself over TCP are set: there half of a window is less than
    a segment, and says where TCP cuts (sundial.expect.tcp)."""
    if ends.server not in ends.clients or "tcp" not in workload.transports:
        return []
    found = []
    for field, place in (("socket_buffer", workload), ("serving.socket_buffer", workload.serving)):
        if place.socket_buffer is not None:
            who = f"{ends.server!r}, client and server"
            what = f"{field} cannot be set on {who}: it would move the segment boundaries of TCP"
            found.append(Invalid((*path, *field.split(".")), what, "leave it out, or only udp"))
    return found
