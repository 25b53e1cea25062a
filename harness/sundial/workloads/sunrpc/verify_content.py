# SPDX-License-Identifier: Apache-2.0
"""What Sun RPC messages of the echo workload must say (RFC 5531 sections 9 and 11, RFC 4506): the header of the call or
reply, credential and verifier, arguments and results with their lengths, payload and padding, and record marks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sundial.expect import Call
from sundial.verify.sockets.pattern import pattern, words
from sundial.verify.sockets.protocol import Bytes, Part
from sundial.workloads import functions
from sundial.workloads.sunrpc import expect_functions
from sundial.workloads.sunrpc.expect import CALL, RECORD_MARK, REPLY, WORD, Identity, Options, padded

_LAST = 1 << 31
CALL_TYPE, REPLY_TYPE = 0, 1
RPC_VERSION, ACCEPTED, SUCCESS, SYSTEM_ERR = 2, 0, 0, 5
AUTH_NONE, AUTH_SYS = 0, 1
PROGRAM, VERSION = 0x20001998, 1
"""guest-apps/echo/echo.x"""
PROCEDURES = {"null": 0, "echo": 1, "echo_string": 2, "sink": 3, "source": 4}
WITH_ARGUMENTS, WITH_RESULTS = ("echo", "echo_string", "sink"), ("echo", "echo_string", "source")
"""Those whose requests and replies carry data."""
COUNTED = (*PROCEDURES, "sink_one_way")
"""What servers count apart (guest-apps/echo/echo.x)."""


def counted(procedures: Collection[str]) -> tuple[str, ...]:
    """The same of a server that was called with these: it serves one program."""
    return COUNTED if functions.BY_NAME.keys().isdisjoint(procedures) else functions.NAMES


def taken(procedure: str, size: int) -> int:
    """Bytes of the values that a request carries, as servers count them."""
    return size if procedure in WITH_ARGUMENTS or procedure in functions.BY_NAME else 0


def given(procedure: str, size: int) -> int:
    """The same of a reply."""
    if procedure in functions.BY_NAME:
        return expect_functions.result_size(procedure)
    return size if procedure in WITH_RESULTS else 0


SINK_ONE_WAY = 5
_CALL_FIELDS = ("xid", "message_type", "rpc_version", "program", "version", "procedure", "credential", "credential")
_REPLY_FIELDS = ("xid", "message_type", "reply_status", "verifier", "verifier", "accept_status")


@dataclass(frozen=True)
class _Form:
    """Messages that are alike: `fixed` bytes of the whole, and where the others are."""

    fixed: Bytes
    stamp: int | None
    """Where a word is that the caller is free to choose."""
    number: int | None
    """Where the number of the call is said."""
    payload: tuple[int, int]
    """From where to where the pattern goes."""
    text: bool


@lru_cache(maxsize=1024)
def _form(procedure: str, size: int, reply: bool, fails: str | None, options: Options) -> _Form:
    if reply:
        status = SYSTEM_ERR if fails == "reply" else SUCCESS
        head = words(0, REPLY_TYPE, ACCEPTED, AUTH_NONE, 0, status)
        if procedure in functions.BY_NAME:
            return _with_values(head, None, expect_functions.results(procedure))
        carries = procedure in WITH_RESULTS and status == SUCCESS
        return _with_data(head, None, procedure, size if carries else None)
    number = _number(procedure, one_way=options.one_way)
    credential = _credential(options.identity)
    flavour = AUTH_NONE if options.identity is None else AUTH_SYS
    first = words(0, CALL_TYPE, RPC_VERSION, *program_of(procedure), number, flavour, credential.shape[1])
    head = np.concatenate([first, credential, words(AUTH_NONE, 0)], axis=1)
    stamp = first.shape[1] if options.identity is not None else None
    if procedure in functions.BY_NAME:
        return _with_values(head, stamp, expect_functions.arguments(procedure))
    if procedure == "source":
        fixed = np.concatenate([head, words(0, size)], axis=1)[0]
        return _Form(fixed, stamp, head.shape[1], (len(fixed), len(fixed)), False)
    return _with_data(head, stamp, procedure, None if procedure == "null" else size)


def _with_data(head: Bytes, stamp: int | None, procedure: str, size: int | None) -> _Form:
    """With `size` bytes of opaque<> or string<>, or none of them."""
    if size is None:
        return _Form(head[0], stamp, None, (head.shape[1], head.shape[1]), False)
    begin = head.shape[1] + WORD
    fixed = np.concatenate([head[0], words(size)[0], np.zeros(padded(size), np.uint8)])
    return _Form(fixed, stamp, None, (begin, begin + size), procedure == "echo_string")


def program_of(procedure: str) -> tuple[int, int]:
    """Number and version of the program that has a procedure."""
    if procedure in functions.BY_NAME:
        return expect_functions.PROGRAM, expect_functions.VERSION
    return PROGRAM, VERSION


def _number(procedure: str, *, one_way: bool) -> int:
    """Of a procedure; a function's is its own."""
    function = functions.BY_NAME.get(procedure)
    if function is not None:
        return function.number
    return SINK_ONE_WAY if one_way and procedure == "sink" else PROCEDURES[procedure]


def _with_values(head: Bytes, stamp: int | None, values: bytes) -> _Form:
    """With what a function is given or returns, the same in each call."""
    fixed = np.concatenate([head[0], np.frombuffer(values, np.uint8)])
    return _Form(fixed, stamp, None, (len(fixed), len(fixed)), False)


def _credential(identity: Identity | None) -> Bytes:
    """The body of AUTH_SYS: stamp, machine name, uid, gid, gids (RFC 5531 appendix A)."""
    if identity is None:
        return np.zeros((1, 0), np.uint8)
    name = np.zeros((1, padded(len(identity.machine))), np.uint8)
    name[0, : len(identity.machine)] = list(identity.machine)
    who = words(identity.uid, identity.gid, len(identity.groups), *identity.groups)
    return np.concatenate([words(0, len(identity.machine)), name, who], axis=1)


@lru_cache(maxsize=256)
def _places(length: int, records: tuple[int, ...]) -> tuple[NDArray[np.int64], Bytes]:
    """For each byte as it is handed to the transport: its place in the message, or -1, and what a mark has there."""
    if not records:
        return np.arange(length), np.zeros(length, np.uint8)
    places, marks, done = [], [], 0
    for number, fragment in enumerate(records):
        last = _LAST if number == len(records) - 1 else 0
        places += [np.full(RECORD_MARK, -1), np.arange(done, done + fragment)]
        marks += [words(last | fragment)[0], np.zeros(fragment, np.uint8)]
        done += fragment
    return np.concatenate(places), np.concatenate(marks)


def content(part: Part, seen: Bytes) -> Bytes:
    """The bytes of a part of some messages."""
    form = _form_of(part)
    places, marks = _places(len(form.fixed), part.records)
    here = slice(part.begin, part.begin + part.length)
    places, marks = places[here], marks[here]
    if len(places) < part.length or places.max(initial=0) >= len(form.fixed):
        # Longer than the message that it should be: that is said by `bytes` or `fragments`.
        return seen
    right: Bytes = np.broadcast_to(np.where(places < 0, marks, form.fixed[places]), seen.shape).copy()
    _put(right, places, 0, words(part.numbers["xid"], height=len(seen)))
    if form.number is not None:
        _put(right, places, form.number, words(part.numbers["number"], height=len(seen)))
    first, end = form.payload
    inside = np.flatnonzero((places >= first) & (places < end))
    if len(inside):
        low, high = int(places[inside[0]]) - first, int(places[inside[-1]]) - first + 1
        filled = pattern(part.numbers["number"], low, high, text=form.text)
        # Nearly always one stretch, which numpy copies at once.
        if inside[-1] - inside[0] + 1 == len(inside):
            right[:, inside[0] : inside[-1] + 1] = filled
        else:
            right[:, inside] = filled
    if form.stamp is not None:
        free = (places >= form.stamp) & (places < form.stamp + WORD)
        right[:, free] = seen[:, free]
    return right


def _put(right: Bytes, places: NDArray[np.int64], begin: int, value: Bytes) -> None:
    """Put a word of each message where its bytes are, as far as they are in this part."""
    inside = np.flatnonzero((places >= begin) & (places < begin + WORD))
    right[:, inside] = value[:, places[inside] - begin]


def _form_of(part: Part) -> _Form:
    call: Call = part.call
    return _form(part.procedure, part.size, part.reply, call.fails, part.options)


def content_field(part: Part, place: int) -> str:
    """The part of the message at a place."""
    form = _form_of(part)
    at = int(_places(len(form.fixed), part.records)[0][place])
    if at < 0:
        return "record_mark"
    fields, head = (_REPLY_FIELDS, REPLY) if part.reply else (_CALL_FIELDS, CALL)
    if at // WORD < len(fields):
        return fields[at // WORD]
    credential = 0 if part.reply else part.options.credential
    if at < head + credential:
        return "credential" if at < head - 2 * WORD + credential else "verifier"
    if part.procedure in functions.BY_NAME:
        return "value"
    first, end = form.payload
    return "payload" if first <= at < end else "padding" if at >= end > first else "length"
