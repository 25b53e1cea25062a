# SPDX-License-Identifier: Apache-2.0
"""Judges what was on the wire: each message is a call or a reply of the interface, down to its last byte.

Calls and replies are matched by xid. Where the client printed what it called with and what it got (the programs of
`sundial rpc new` do), the values on the wire are compared with these. Pure: messages and lines in, findings out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from sundial.interface.messages import Head, read_head
from sundial.interface.types import Field, Interface, Procedure
from sundial.interface.values import Fault, Leaf, read

LINE = "rpc"
"""First word of a client's line: rpc XID TRANSPORT PROGRAM VERSION PROCEDURE NS STATUS | ARGUMENTS | RESULTS."""
_FIELDS = 8
OK = "SUCCESS"
End = tuple[str, int]


@dataclass(frozen=True)
class Message:
    """One, whole, as its sender's port showed it."""

    transport: str
    source: End
    target: End
    data: bytes
    place: str
    """Where it begins: capture and frame."""


@dataclass(frozen=True)
class Fact:
    """What a client printed of a call."""

    addresses: tuple[str, ...]
    """Of the client's machine."""
    xid: int
    transport: str
    numbers: tuple[int, int, int]
    """Program, version, procedure."""
    ns: int
    """How long the call took, by the client's clock."""
    status: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    where: str
    expected: str
    seen: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, seen {self.seen}"


@dataclass
class Judged:
    findings: list[Finding] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    """Calls with a reply, by procedure."""
    times_ns: dict[str, list[int]] = field(default_factory=dict)
    """What clients measured, by procedure."""
    octets: int = 0
    """Bytes of calls and replies, each counted once."""


@dataclass
class _Call:
    message: Message
    head: Head
    name: str
    procedure: Procedure | None
    arguments: Sequence[Leaf] | None = None
    """None: they could not be read; so are results."""
    answer: Message | None = None
    results: Sequence[Leaf] | None = None
    status: str = ""
    flavors: frozenset[int] = frozenset()
    """Of the call and its reply."""


def facts(addresses: tuple[str, ...], text: str) -> list[Fact]:
    """Those of a client's output, without a last line that has no end. Raises ValueError for a line that begins like
    one and is not."""
    found = []
    for line in text.rpartition("\n")[0].split("\n"):
        head, *values = line.split("|")
        words = head.split()
        if words[:1] != [LINE]:
            continue
        if len(words) != _FIELDS or len(values) != 2:
            raise ValueError(line)
        numbers = (int(words[3]), int(words[4]), int(words[5]))
        arguments, results = (tuple(part.split()) for part in values)
        found.append(Fact(addresses, int(words[1], 16), words[2], numbers, int(words[6]), words[7], arguments, results))
    return found


def judge(
    interface: Interface, messages: Iterable[Message], known: Sequence[Fact], partial: Set[str] = frozenset()
) -> Judged:
    """All messages at the interface's ports, in the order in which they were sent, and what clients printed. `partial`:
    addresses of machines whose programs were ended, or printed more than was kept, so that lines may be missing."""
    return _Judge(interface).judged(messages, known, partial)


class _Judge:
    def __init__(self, interface: Interface) -> None:
        self._interface = interface
        self._procedures: Mapping[tuple[int, int, int], tuple[str, Procedure]] = {
            (program.number, version.number, procedure.number): (f"{procedure.name}_{version.number}", procedure)
            for program, version, procedure in interface.procedures()
        }
        self._calls: dict[tuple[str, End, End, int], _Call] = {}
        self._result = Judged()

    def judged(self, messages: Iterable[Message], known: Sequence[Fact], partial: Set[str]) -> Judged:
        for message in messages:
            try:
                head = read_head(message.data)
            except Fault as fault:
                self._fault("message", message, fault)
                continue
            if head.status is None:
                self._call(message, head)
            else:
                self._reply(message, head)
        for call in self._calls.values():
            if call.answer is None:
                self._add(_named(call), "a reply", "none")
        self._compare(known, {each for fact in known for each in fact.addresses} - partial)
        for name in dict.fromkeys(call.name for call in self._calls.values()):
            answered = [call for call in self._calls.values() if call.name == name and call.answer is not None]
            self._result.calls[name] = len(answered)
        return self._result

    def _add(self, where: str, expected: str, seen: str) -> None:
        self._result.findings.append(Finding(where, expected, seen))

    def _fault(self, name: str, message: Message, fault: Fault) -> None:
        self._add(f"{name} {fault.path} at byte {fault.at} of {message.place}", fault.expected, fault.what)

    def _call(self, message: Message, head: Head) -> None:
        key = (message.transport, message.source, message.target, head.xid)
        before = self._calls.get(key)
        if before is not None and before.message.data == message.data:
            return  # sent again
        if before is not None and message.transport == "udp" and before.answer is None:
            self._add(f"{_named(before)} sent again in {message.place}", "the same bytes", "others")
            return
        numbers = head.numbers
        name, procedure = self._procedures.get(numbers, ("", None))
        call = _Call(message, head, name or _dotted(numbers), procedure, flavors=head.flavors)
        if before is not None:
            self._calls[(*key[:3], -len(self._calls) - 1)] = before  # an xid that comes again
        self._calls[key] = call
        self._result.octets += len(message.data)
        fields: Sequence[Field] = ()
        if procedure is not None:
            fields = procedure.arguments
        elif numbers[2] != 0:
            return  # of what is not in the file only the head is known; the reply says whether the server has it
        try:
            call.arguments = read(self._interface, fields, message.data, head.end)
        except Fault as fault:
            self._fault(f"{call.name} argument", message, fault)

    def _reply(self, message: Message, head: Head) -> None:
        call = self._calls.get((message.transport, message.target, message.source, head.xid))
        if call is None:
            self._add(f"reply 0x{head.xid:08x} in {message.place}", "a call with its xid before it", "none")
            return
        if call.answer is not None:
            if call.answer.data != message.data:
                self._add(f"{_named(call)} answered again in {message.place}", "the same bytes", "others")
            return
        call.answer, call.status, call.flavors = message, str(head.status), call.flavors | head.flavors
        self._result.octets += len(message.data)
        fields: Sequence[Field] = ()
        if head.status == OK and call.procedure is not None and call.procedure.result is not None:
            fields = (Field("result", call.procedure.result),)
        elif head.status == OK and call.procedure is None and call.head.numbers[2] != 0:
            self._add(_named(call), "a procedure of the interface", "a result of one that is not in it")
            return
        try:
            call.results = read(self._interface, fields, message.data, head.end)
        except Fault as fault:
            self._fault(f"{call.name}", message, fault)

    def _compare(self, known: Sequence[Fact], complete: Set[str]) -> None:
        """What clients printed with what was sent. `complete`: addresses of clients that printed all their calls."""
        waiting: dict[tuple[str, int], list[_Call]] = {}
        for call in self._calls.values():
            waiting.setdefault((call.message.transport, call.head.xid), []).append(call)
        for fact in known:
            calls = waiting.get((fact.transport, fact.xid), [])
            own = [call for call in calls if call.message.source[0] in fact.addresses]
            name, _ = self._procedures.get(fact.numbers, (_dotted(fact.numbers), None))
            if not own:
                self._add(f"{name} 0x{fact.xid:08x} over {fact.transport}", "a call in the capture", "none")
                continue
            # Programs of one machine may use one xid: the line is of the call that it fits, if there is one.
            call = next((each for each in own if _fits(each, fact)), own[0])
            calls.remove(call)
            self._result.times_ns.setdefault(name, []).append(fact.ns)
            self._compare_one(call, fact)
        for call in (each for calls in waiting.values() for each in calls):
            if call.message.source[0] in complete and call.answer is not None:
                self._add(_named(call), "a line of its client", "none")

    def _compare_one(self, call: _Call, fact: Fact) -> None:
        if call.head.numbers != fact.numbers:
            said = f"procedure {_dotted(fact.numbers)}, as its client says"
            self._add(_named(call), said, _dotted(call.head.numbers))
        elif call.flavors - {0}:
            self._add(_named(call), "AUTH_NONE", f"flavors {sorted(call.flavors)}")
        elif call.answer is not None and call.status != fact.status:
            self._add(_named(call), f"status {fact.status}, as its client says", call.status)
        else:
            self._values(call, "argument", call.message, call.arguments, fact.arguments)
            if call.answer is not None:
                self._values(call, "value", call.answer, call.results, fact.results)

    def _values(
        self, call: _Call, what: str, message: Message, leaves: Sequence[Leaf] | None, said: Sequence[str]
    ) -> None:
        if leaves is None:
            return
        for leaf, text in zip(leaves, said, strict=False):
            if leaf.text != text:
                place = f"{call.name} {what} {leaf.path} at byte {leaf.begin} of {message.place}"
                self._add(place, f"{_short(text)}, as its client says", _short(leaf.text))
                return
        if len(leaves) != len(said):
            self._add(f"{_named(call)} {what}s", f"{len(said)}, as its client says", str(len(leaves)))


def _fits(call: _Call, fact: Fact) -> bool:
    said = (fact.arguments, fact.results)
    return said == tuple(tuple(leaf.text for leaf in leaves or ()) for leaves in (call.arguments, call.results))


def _dotted(numbers: tuple[int, int, int]) -> str:
    return ".".join(map(str, numbers))


def _named(call: _Call) -> str:
    return f"{call.name} 0x{call.head.xid:08x} in {call.message.place}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}... of {len(text)} characters"
