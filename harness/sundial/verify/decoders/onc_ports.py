# SPDX-License-Identifier: Apache-2.0
"""What the port mapper is asked and answers (RFC 1833): the ports at which programs are called."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address

from sundial.verify.decoders.onc_messages import Call, Reply, Xdr
from sundial.verify.decoders.traffic import Service, Wrong
from sundial.verify.sockets.conversations import End

PORT = 111
PROGRAM = 100_000
_GETPORT, _GETADDR, _GETVERSADDR = (2, 3), (3, 3), (4, 9)
_SILENT = 5
"""PMAPPROC_CALLIT, RPCBPROC_CALLIT and RPCBPROC_BCAST: answered if and only if the call behind it succeeded."""
_TRANSPORTS = {6: "tcp", 17: "udp"}
_STRING_MOST = 1 << 16
_PORT_MOST = 65535


def may_be_silent(call: Call) -> bool:
    """Whether a port mapper may leave a call without an answer."""
    return call.program == PROGRAM and call.procedure == _SILENT


def _asked(call: Call) -> str | None:
    """GETPORT, GETADDR, or None."""
    if call.program != PROGRAM:
        return None
    if (call.version, call.procedure) == _GETPORT:
        return "GETPORT"
    addresses = {_GETADDR, (4, 3), _GETVERSADDR}
    return "GETADDR" if (call.version, call.procedure) in addresses else None


def check_question(call: Call) -> Iterator[Wrong]:
    """The arguments of a question for a port."""
    asked = _asked(call)
    items = Xdr(call.arguments)
    try:
        if asked == "GETPORT":
            for what in ("program", "version", "protocol", "port"):
                items.word(f"GETPORT {what}")
            items.end("GETPORT arguments")
        elif asked == "GETADDR":
            items.word("GETADDR program")
            items.word("GETADDR version")
            for what in ("netid", "address", "owner"):
                items.opaque(f"GETADDR {what}", _STRING_MOST)
            items.end("GETADDR arguments")
    except Wrong as wrong:
        yield wrong


def answered(call: Call, reply: Reply, transport: str, server: End) -> Service | None:
    """The service that an answer names; None: it names none. Raises Wrong."""
    asked = _asked(call)
    if asked is None or not reply.succeeded or any(check_question(call)):
        return None
    items = Xdr(reply.results)
    if asked == "GETPORT":
        number = items.word("GETPORT port")
        items.end("GETPORT result")
        if number > _PORT_MOST:
            raise Wrong("GETPORT port", f"0 to {_PORT_MOST}", str(number))
        protocol = _TRANSPORTS.get(int.from_bytes(call.arguments[8:12], "big"))
        return Service(protocol, server[0], number) if number and protocol else None
    text = items.opaque("GETADDR address", _STRING_MOST).decode("latin-1")
    items.end("GETADDR result")
    if not text or ":" in text or text.startswith("/"):  # not registered, of IPv6, or a socket of the machine
        return None
    address, number = _universal(text)
    # The network is that of the question (RFC 1833 section 2.2.1), whatever its netid says.
    return Service(transport, server[0] if address == "0.0.0.0" else address, number) if number else None


def _universal(text: str) -> tuple[str, int]:
    """Address and port of a universal address of IPv4: h1.h2.h3.h4.p1.p2."""
    parts = text.split(".")
    try:
        high, low = (int(part) for part in parts[4:])
        address = str(IPv4Address(".".join(parts[:4])))
    except (ValueError, AddressValueError):
        raise Wrong("GETADDR address", "h1.h2.h3.h4.p1.p2", repr(text)) from None
    if not (0 <= high <= 255 and 0 <= low <= 255):
        raise Wrong("GETADDR address", "p1 and p2 up to 255", repr(text))
    return address, high * 256 + low
