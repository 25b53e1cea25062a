# SPDX-License-Identifier: Apache-2.0
"""Messages of RPC (RFC 5531): heads by the RFC's own definitions, and records in streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sundial.interface.language import parse
from sundial.interface.types import PLAIN, UNIT, Field, Named
from sundial.interface.values import Fault, Leaf, read

MARK, LAST = 4, 1 << 31
_DEFINITIONS = """
enum msg_type { CALL = 0, REPLY = 1 };
enum reply_stat { MSG_ACCEPTED = 0, MSG_DENIED = 1 };
enum accept_stat {
    SUCCESS = 0, PROG_UNAVAIL = 1, PROG_MISMATCH = 2, PROC_UNAVAIL = 3, GARBAGE_ARGS = 4, SYSTEM_ERR = 5
};
enum reject_stat { RPC_MISMATCH = 0, AUTH_ERROR = 1 };
struct opaque_auth { int flavor; opaque body<400>; };
struct authsys_parms {
    unsigned int stamp; string machinename<255>; unsigned int uid; unsigned int gid; unsigned int gids<16>;
};
struct mismatch_info { unsigned int low; unsigned int high; };
enum rpc_version { RPC_VERSION = 2 };
struct call_body {
    rpc_version rpcvers; unsigned int prog; unsigned int vers; unsigned int proc; opaque_auth cred; opaque_auth verf;
};
union accepted switch (accept_stat stat) { case PROG_MISMATCH: mismatch_info versions; default: void; };
struct accepted_reply { opaque_auth verf; accepted data; };
union rejected_reply switch (reject_stat stat) {
case RPC_MISMATCH: mismatch_info versions;
case AUTH_ERROR: int auth;
};
union reply_body switch (reply_stat stat) {
case MSG_ACCEPTED: accepted_reply accepted;
case MSG_DENIED: rejected_reply denied;
};
union message switch (msg_type type) { case CALL: call_body call; case REPLY: reply_body reply; };
"""
"""RFC 5531 section 9 and appendix A. A call of another version of RPC is a fault."""
_NONE, _SYS = 0, 1
"""Flavors of authentication whose bodies are read."""
_HEADS = parse(_DEFINITIONS, "RFC 5531")
_MESSAGE = (Field("xid", PLAIN["unsigned int"]), Field("rpc", Named("message")))
_ACCEPT = {value: name for name, value in _HEADS.types["accept_stat"].labels.items()}  # type: ignore[union-attr]
_REJECT = {value: name for name, value in _HEADS.types["reject_stat"].labels.items()}  # type: ignore[union-attr]


@dataclass(frozen=True)
class Head:
    """What a message is."""

    xid: int
    numbers: tuple[int, int, int]
    """Of a call: program, version and procedure; zeros of a reply."""
    flavors: frozenset[int]
    """Of its authentication."""
    status: str | None
    """Of a reply: SUCCESS, or why there is no result; None: a call."""
    end: int
    """Bytes of it: arguments or results follow."""


def read_head(data: bytes) -> Head:
    """The head of a message. Raises Fault."""
    leaves = read(_HEADS, _MESSAGE, data, head=True)
    known = {leaf.path: leaf.text for leaf in leaves}
    flavors = frozenset(_flavor(leaf, known) for leaf in leaves if leaf.path.endswith(".body"))
    xid, end = int(known["xid"]), leaves[-1].end
    if "rpc.call.prog" in known:
        program, version, procedure = (int(known[f"rpc.call.{name}"]) for name in ("prog", "vers", "proc"))
        return Head(xid, (program, version, procedure), flavors, None, end)
    accepted, denied = known.get("rpc.reply.accepted.data.stat"), known.get("rpc.reply.denied.stat")
    status = _REJECT[int(denied)] if denied is not None else _ACCEPT[int(accepted or 0)]
    return Head(xid, (0, 0, 0), flavors, status, end)


def _flavor(body: Leaf, known: Mapping[str, str]) -> int:
    """The flavor that a body of authentication belongs to. Raises Fault for a body that is not of it."""
    path = body.path.removesuffix(".body")
    flavor, data = int(known[f"{path}.flavor"]), bytes.fromhex(body.text[1:])
    if flavor == _NONE and data:
        raise Fault(body.path, body.begin, f"AUTH_NONE with {len(data)} bytes", "none")
    if flavor == _SYS:
        try:
            read(_HEADS, (Field("sys", Named("authsys_parms")),), data)
        except Fault as fault:
            raise Fault(f"{path}.{fault.path}", body.begin + UNIT + fault.at, fault.what, fault.expected) from None
    return flavor


@dataclass(frozen=True)
class Record:
    """A message in a stream of TCP: where it begins and ends there, with its marks."""

    begin: int
    end: int
    data: bytes


def records(stream: bytes) -> Iterator[Record]:
    """The records of a stream (RFC 5531 section 11). Raises Fault behind the last whole one."""
    at = 0
    while at < len(stream):
        begin, data, last = at, bytearray(), False
        while not last:
            mark = int.from_bytes(stream[at : at + MARK])
            length, last = mark & ~LAST, bool(mark & LAST)
            if len(stream) - at < MARK + length:
                what = f"{len(stream) - at} bytes left of the stream"
                raise Fault("record mark", at, what, f"a mark and a fragment of {length} bytes")
            data += stream[at + MARK : at + MARK + length]
            at += MARK + length
        yield Record(begin, at, bytes(data))
