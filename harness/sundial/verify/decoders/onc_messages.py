# SPDX-License-Identifier: Apache-2.0
"""Messages of ONC RPC (RFC 5531 section 9), with the encoding of RFC 4506: calls and replies up to their arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sundial.verify.decoders.traffic import Wrong

VERSION = 2
AUTH_SYS, RPCSEC_GSS = 1, 6
SUCCESS, PROG_MISMATCH = 0, 2
RPC_MISMATCH, AUTH_ERROR = 0, 1
_ACCEPT_MOST, _AUTH_MOST = 5, 14
_OPAQUE_MOST, _NAME_MOST, _GROUPS_MOST = 400, 255, 16


class Xdr:
    """Reads items one after another. `what`: of which field; Wrong says so."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def rest(self) -> bytes:
        """What has not been read."""
        return self._data[self._at :]

    def word(self, what: str) -> int:
        """An unsigned integer (RFC 4506 section 4.2)."""
        return int.from_bytes(self._take(4, what), "big")

    def opaque(self, what: str, most: int) -> bytes:
        """Bytes of variable length, padded to words with zeros (section 4.10)."""
        size = self.word(what)
        if size > most:
            raise Wrong(what, f"at most {most} bytes", f"{size} bytes")
        data = self._take(size, what)
        padding = self._take(-size % 4, what)
        if any(padding):
            raise Wrong(what, "padding of zeros", padding.hex(" "))
        return data

    def end(self, what: str) -> None:
        """Raises Wrong if there is more."""
        if self.rest:
            raise Wrong(what, "its end", f"{len(self.rest)} bytes more")

    def _take(self, size: int, what: str) -> bytes:
        data = self._data[self._at : self._at + size]
        if len(data) < size:
            raise Wrong(what, f"{size} bytes", f"{len(data)} bytes until the message ends")
        self._at += size
        return data


@dataclass(frozen=True)
class Call:
    """A call. Of another version of RPC than 2 nothing else is known but its xid."""

    xid: int
    rpc: int
    program: int = 0
    version: int = 0
    procedure: int = 0
    flavor: int = 0
    """Of its credential."""
    arguments: bytes = b""

    asks = True

    @property
    def key(self) -> int:
        return self.xid

    @property
    def words(self) -> str:
        return f"call 0x{self.xid:08x}"

    @property
    def about(self) -> str:
        return ".".join(map(str, self.called))

    @property
    def called(self) -> tuple[int, int, int]:
        """Program, version and procedure."""
        return self.program, self.version, self.procedure


@dataclass(frozen=True)
class Reply:
    """A reply. `status` is that of an accepted call, or why it was denied."""

    xid: int
    denied: bool
    status: int
    low: int = 0
    high: int = 0
    """Versions that are supported, where another one was called."""
    results: bytes = b""

    asks = False

    @property
    def key(self) -> int:
        return self.xid

    @property
    def words(self) -> str:
        return f"reply 0x{self.xid:08x}"

    @property
    def about(self) -> str:
        return ""

    @property
    def succeeded(self) -> bool:
        """Whether there are results."""
        return not self.denied and self.status == SUCCESS


def read_message(data: bytes) -> Call | Reply:
    """Raises Wrong."""
    items = Xdr(data)
    xid, kind = items.word("xid"), items.word("type")
    if kind > 1:
        raise Wrong("type", "0 (call) or 1 (reply)", str(kind))
    message = _call(xid, items) if kind == 0 else _reply(xid, items)
    if len(data) % 4 and not (isinstance(message, Call) and message.rpc != VERSION):
        raise Wrong("length", "a multiple of 4 bytes", f"{len(data)} bytes")
    return message


def _call(xid: int, items: Xdr) -> Call:
    rpc = items.word("RPC version")
    if rpc != VERSION:
        return Call(xid, rpc)
    program, version, procedure = (items.word(what) for what in ("program", "version", "procedure"))
    flavor = items.word("credential")
    credential = items.opaque("credential", _OPAQUE_MOST)
    if flavor == AUTH_SYS:
        _check_auth_sys(credential)
    items.word("verifier")
    items.opaque("verifier", _OPAQUE_MOST)
    # By convention, procedure 0 takes no arguments (RFC 5531 section 12.1); RPCSEC_GSS makes its contexts with it.
    if procedure == 0 and flavor != RPCSEC_GSS:
        items.end("arguments of procedure 0")
    return Call(xid, rpc, program, version, procedure, flavor, items.rest)


def _check_auth_sys(credential: bytes) -> None:
    """RFC 5531 appendix A."""
    items = Xdr(credential)
    items.word("AUTH_SYS stamp")
    items.opaque("AUTH_SYS machine name", _NAME_MOST)
    items.word("AUTH_SYS uid")
    items.word("AUTH_SYS gid")
    groups = items.word("AUTH_SYS gids")
    if groups > _GROUPS_MOST:
        raise Wrong("AUTH_SYS gids", f"at most {_GROUPS_MOST}", str(groups))
    for _ in range(groups):
        items.word("AUTH_SYS gids")
    items.end("AUTH_SYS credential")


def _reply(xid: int, items: Xdr) -> Reply:
    stat = items.word("reply status")
    if stat > 1:
        raise Wrong("reply status", "0 (accepted) or 1 (denied)", str(stat))
    if stat:
        return _denied(xid, items)
    items.word("verifier")
    items.opaque("verifier", _OPAQUE_MOST)
    status = items.word("accept status")
    if status > _ACCEPT_MOST:
        raise Wrong("accept status", f"0 to {_ACCEPT_MOST}", str(status))
    if status == SUCCESS:
        return Reply(xid, False, status, results=items.rest)
    low, high = _versions(items) if status == PROG_MISMATCH else (0, 0)
    items.end("reply without results")
    return Reply(xid, False, status, low, high)


def _denied(xid: int, items: Xdr) -> Reply:
    status = items.word("reject status")
    if status > 1:
        raise Wrong("reject status", "0 (RPC_MISMATCH) or 1 (AUTH_ERROR)", str(status))
    low, high = (0, 0)
    if status == RPC_MISMATCH:
        low, high = _versions(items)
    else:
        why = items.word("auth status")
        if not 1 <= why <= _AUTH_MOST:
            raise Wrong("auth status", f"1 to {_AUTH_MOST}", str(why))
    items.end("denial")
    return Reply(xid, True, status, low, high)


def _versions(items: Xdr) -> tuple[int, int]:
    low, high = items.word("lowest version"), items.word("highest version")
    if low > high:
        raise Wrong("versions", "the lowest first", f"{low} to {high}")
    return low, high


def check_answer(call: Call, reply: Reply) -> Iterator[Wrong]:
    """Where a reply cannot be that of the call, whatever the program does."""
    mismatch = reply.denied and reply.status == RPC_MISMATCH
    if call.rpc != VERSION and not mismatch:
        yield Wrong("RPC version", f"{VERSION}, or RPC_MISMATCH in answer", f"{call.rpc}, and another answer")
    if mismatch and reply.low <= call.rpc <= reply.high:
        yield Wrong("RPC_MISMATCH", f"versions without {call.rpc}, which was called", f"{reply.low} to {reply.high}")
    void = call.rpc == VERSION and call.procedure == 0 and call.flavor != RPCSEC_GSS
    if void and reply.results:
        yield Wrong("results of procedure 0", "none", f"{len(reply.results)} bytes")
