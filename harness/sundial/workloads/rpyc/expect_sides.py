# SPDX-License-Identifier: Apache-2.0
"""Both sides of a connection as machines: what each sends next follows from its job and from what came.

A side reads its stream only where it waits, so what it sends is a function of the messages that came and of nothing
else. Its program is a generator that yields `Send`, `Receive` or `Collect`. It knows no library: objects, references
and their counts are its own. What an exception's frames hold is given back when the collector finds it (`garbage`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sundial.workloads import functions
from sundial.workloads.rpyc import expect
from sundial.workloads.rpyc.expect import Reference, Unknown, Unlike, Version, box, introduced, no_access, resolve
from sundial.workloads.rpyc.expect_brine import STOP_ITERATION, Handler, Kind, Label, Message


@dataclass
class Thing:
    """An object of a side."""

    class_name: str
    value: Any = None
    name: str = ""
    """Of a method."""
    reference: Reference | None = None


@dataclass
class Proxy:
    """A side's reference to an object of the other."""

    reference: Reference
    count: int = 1
    """How often it was passed."""


class Stop(Exception):
    """The other end says that an iteration is over."""


class Refused(Exception):
    """The other end could not do it."""


class Ended(Exception):
    """The stream of the other end is over."""


@dataclass(frozen=True)
class Judged:
    """A message that was found right, and the call that it is for."""

    message: Message
    call: int | None


@dataclass(frozen=True)
class Send:
    """The side's next message; the caller of the machine gives a request its number."""

    kind: Kind
    body: Any
    number: int | None
    call: int | None


@dataclass(frozen=True)
class Receive:
    """The side waits for a message."""


@dataclass(frozen=True)
class Collect:
    """The side's collector finds all garbage now."""


Action = Send | Receive | Collect
Steps = Generator[Action, Any, Any]


@dataclass(frozen=True)
class Calls:
    """Calls of one function, one after another, and what is given back behind them."""

    function: functions.Function
    ids: Sequence[int]
    """A name of the caller's for each."""
    container: str = "list"
    variant: str = "numpy"

    @property
    def method(self) -> str:
        """As the client names it."""
        return f"distance_{self.variant}" if self.function.name == "distance" else self.function.name


@dataclass
class Called:
    """What a client has seen of a call of its own."""

    id: int
    first: int
    """Its messages before the call."""
    first_number: int
    """Of requests, before the call."""
    number: int = -1
    """Of its request for the method."""
    asked: int = -1
    """The place of its CALL among its messages."""
    answered: int = -1
    """The place of the result among the messages that came."""
    error: str | None = None
    unasked: bool = False
    """The connection had been over before it."""


@dataclass
class Batch:
    """Some calls of a client."""

    first_number: int
    calls: list[Called] = field(default_factory=list)
    end_number: int = -1
    """Of requests, when all was given back."""


class Side:
    """What both sides have: numbers, objects, references and the handling of messages."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self.number = 0
        """Of the next request."""
        self.sent = self.received = 0
        self.call: int | None = None
        """Whose messages these are."""
        self.held: dict[int, list[Any]] = {}
        """Objects that the other side holds by their id: the thing, and how often it was passed."""
        self.class_ids: dict[str, int] = {}
        self.proxies: dict[Reference, Proxy] = {}
        self.garbage: list[Proxy] = []
        self.open: dict[int, int | None] = {}
        """Requests without an answer, and the call that each is for."""
        self.answers: dict[int, Any] = {}
        self.known_classes: set[str] = set()
        self.raised = 0
        """Exceptions at this side whose frames are held."""
        self._trace: dict[str, str] = {}

    # ---- what a program does ----

    def request(self, handler: Handler, *arguments: Any) -> Steps:
        """The result of a request."""
        number = yield from self.begin(handler, *arguments)
        while number not in self.answers:
            yield from self.serve()
        result = self.answers.pop(number)
        if isinstance(result, Exception):
            raise result
        return result

    def begin(self, handler: Handler, *arguments: Any) -> Steps:
        """The number of a request that was sent."""
        body = (int(handler), box(arguments, self.boxed))
        message: Message = yield Send(Kind.REQUEST, body, None, self.call)
        self.open[message.number] = self.call
        return message.number

    def release(self, proxy: Proxy) -> Steps:
        """Give a reference back without waiting for the answer."""
        del self.proxies[proxy.reference]
        number = yield from self.begin(Handler.DEL, proxy, proxy.count)
        self.answers[number] = None

    def serve(self) -> Steps:
        """Take one message."""
        judged: Judged = yield Receive()
        message = judged.message
        if message.kind == Kind.REQUEST:
            before, self.call = self.call, judged.call
            yield from self.dispatch(message)
            self.call = before
            return
        value: Any
        if message.kind == Kind.REPLY:
            value = yield from self.unbox(message.body)
        else:
            value = Stop() if message.body == STOP_ITERATION else Refused()
        del self.open[message.number]
        if self.answers.pop(message.number, self) is self:
            self.answers[message.number] = value

    # ---- objects and references ----

    def boxed(self, value: Any) -> tuple[Any, ...]:
        """The box of what does not cross by itself."""
        if isinstance(value, Proxy):
            return (int(Label.YOURS), value.reference.named(self.version))
        return (int(Label.MINE), Unknown(lambda seen: self._introduce(value, seen)))

    def _introduce(self, thing: Thing, seen: Any) -> Any:
        reference = introduced(seen, thing.class_name, self.version)
        if reference is None:
            raise Unlike("reference", f"an object of {thing.class_name}", repr(seen))
        class_id = self.class_ids.setdefault(thing.class_name, reference.class_id)
        if reference.class_id != class_id:
            raise Unlike("reference.class", f"{class_id}, the id of {thing.class_name}", str(reference.class_id))
        if thing.reference is not None:
            if reference != thing.reference:
                raise Unlike("reference.id", f"{thing.reference.object_id}", str(reference.object_id))
        elif reference.object_id in self.held:
            of = self.held[reference.object_id][0].class_name
            raise Unlike("reference.id", f"one that no {of} has", str(reference.object_id))
        thing.reference = reference
        self.held.setdefault(reference.object_id, [thing, 0])[1] += 1
        return reference.introduced(self.version)

    def unbox(self, boxed: Any) -> Steps:
        """What a box has in it; of a class that this side does not know it asks for the methods."""
        label, value = boxed
        if label == Label.VALUE:
            return value
        if label == Label.TUPLE:
            values = []
            for each in value:
                values.append((yield from self.unbox(each)))
            return tuple(values)
        if label == Label.YOURS:
            return self.held[value if self.version.bare_ids else value[2]][0]
        class_name = f"{value[2]}.{value[1]}" if self.version.bare_ids else value[0]
        reference = introduced(value, class_name, self.version)
        assert reference is not None, "its sender was found right"
        if reference in self.proxies:
            self.proxies[reference].count += 1
            return self.proxies[reference]
        if class_name not in expect.BUILTIN and class_name not in self.known_classes:
            yield from self.request(Handler.INSPECT, reference.named(self.version))
            if self.version.knows_classes:
                self.known_classes.add(class_name)
        return self.proxies.setdefault(reference, Proxy(reference))

    # ---- what the other side asks for ----

    def dispatch(self, message: Message) -> Steps:
        """Answer a request."""
        handler, boxed = message.body
        arguments = yield from self.unbox(boxed)
        kind = Kind.REPLY
        body: Any
        try:
            body = box((yield from self.handle(Handler(handler), *arguments)), self.boxed)
        except Stop:
            kind, body = Kind.EXCEPTION, STOP_ITERATION
        except Refused as refused:
            kind, body = Kind.EXCEPTION, no_access(str(refused), self.version, self._traceback)
        if kind == Kind.EXCEPTION:
            self.raised += 1
        yield Send(kind, body, message.number, self.call)
        yield from self.let_go(arguments)

    def _traceback(self, seen: str) -> str | None:
        return self._trace.setdefault("first", seen)

    def handle(self, handler: Handler, *arguments: Any) -> Steps:
        """What a handler of both sides returns."""
        if handler == Handler.DEL:
            self._forget(*arguments)
            return None
        if handler == Handler.INSPECT:
            (pack,) = arguments
            thing: Thing = self.held[pack if self.version.bare_ids else pack[2]][0]
            return expect.methods(thing.class_name, self.version)
        return (yield from self.own(handler, *arguments))

    def own(self, handler: Handler, *arguments: Any) -> Steps:
        """What a handler of this side alone returns."""
        raise NotImplementedError

    def _forget(self, thing: Thing, count: int) -> None:
        assert thing.reference is not None, "it was named"
        slot = self.held[thing.reference.object_id]
        slot[1] -= count
        if slot[1] <= 0:
            del self.held[thing.reference.object_id]
            if thing.class_name == expect.METHOD:
                thing.reference = None

    def let_go(self, arguments: Sequence[Any]) -> Steps:
        """References that came as arguments are given back when all is done, the last first."""
        for each in reversed(arguments):
            if isinstance(each, tuple):
                yield from self.let_go(each)
            elif isinstance(each, Proxy) and each.reference in self.proxies:
                yield from self.release(each)


class Client(Side):
    """A client that calls functions, one batch after another."""

    def __init__(self, version: Version, batches: Sequence[Calls]) -> None:
        super().__init__(version)
        self.planned = batches
        self.batches: list[Batch] = []
        self.closed = self.ended = False

    def run(self) -> Iterator[Action]:
        """Its whole life."""
        root = None
        try:
            root = yield from self.request(Handler.GETROOT)
        except Ended:
            self.ended = True
        for batch in self.planned:
            yield from self._batch(root, batch)
        if self.ended:
            return
        try:
            number = yield from self.begin(Handler.CLOSE)
            self.closed = True
            while self.version.awaits_close and number in self.open:
                yield from self.serve()
        except Ended:
            pass

    def _batch(self, root: Proxy | None, planned: Calls) -> Steps:
        arguments = tuple(_argument(value, planned) for value in planned.function.arguments)
        batch = Batch(self.number)
        self.batches.append(batch)
        for each in planned.ids:
            called = Called(each, self.sent, self.number, unasked=self.ended)
            batch.calls.append(called)
            if self.ended:
                called.error = "EOFError"
                continue
            self.call = each
            try:
                yield from self._one(root, planned.method, arguments, called)
            except Ended:
                called.error, self.ended = "EOFError", True
        self.call = None
        try:
            if not self.ended:
                yield Collect()
                while self.open:
                    yield from self.serve()
        except Ended:
            self.ended = True
        batch.end_number = self.number

    def _one(self, root: Proxy | None, name: str, arguments: tuple[Any, ...], called: Called) -> Steps:
        called.number = yield from self.begin(Handler.GETATTR, root, name)
        while called.number not in self.answers:
            yield from self.serve()
        method = self.answers.pop(called.number)
        raised, called.asked = self.raised, self.sent
        number = yield from self.begin(Handler.CALL, method, arguments, ())
        called.asked = self.sent - 1
        while number not in self.answers:
            yield from self.serve()
        self.answers.pop(number)
        called.answered = self.received - 1
        if self.raised > raised:
            del self.proxies[method.reference]
            self.garbage.append(method)
        else:
            yield from self.release(method)

    def own(self, handler: Handler, *arguments: Any) -> Steps:
        """Lists and what iterates over them are all that a server uses."""
        thing, name, *_ = arguments
        if handler == Handler.GETATTR:
            raise Refused(name)
        if name == "__iter__":
            return thing if thing.class_name == expect.LIST_ITERATOR else Thing(expect.LIST_ITERATOR, list(thing.value))
        if name in ("__len__", "__length_hint__"):
            return len(thing.value)
        if name == "__next__":
            if not thing.value:
                raise Stop
            return thing.value.pop(0)
        raise Refused(name)
        yield  # a generator, as all handlers are


def _argument(value: Any, planned: Calls) -> Any:
    if isinstance(value, functions.Person):
        return Thing(expect.PERSON)
    if planned.function.contains and planned.container == "list":
        return Thing(expect.LIST, list(value))
    return value


class Server(Side):
    """A server: the service's object and its methods."""

    def __init__(self, version: Version) -> None:
        super().__init__(version)
        self.root = Thing(expect.SERVICE)
        self.executed: dict[str, int] = {}
        self.closed = False

    def run(self) -> Iterator[Action]:
        """Until the client has closed, or is gone."""
        try:
            while not self.closed:
                yield from self.serve()
        except Ended:
            pass

    def dispatch(self, message: Message) -> Steps:
        if message.body[0] == Handler.CLOSE:
            self.closed = True
            return
        yield from super().dispatch(message)

    def own(self, handler: Handler, *arguments: Any) -> Steps:
        if handler == Handler.GETROOT:
            return self.root
        if handler == Handler.GETATTR:
            return Thing(expect.METHOD, name=arguments[1])
        method, given, _ = arguments
        variant = method.name.removeprefix("distance_")
        name = method.name if variant == method.name else "distance"
        self.executed[name] = self.executed.get(name, 0) + 1
        if name != "distance":
            return given[0] if given else None
        if isinstance(given[0], Proxy):
            yield from (self._iterate if variant == "zip" else self._convert)(*given)
        return functions.BY_NAME["distance"].result

    def _iterate(self, one: Proxy, other: Proxy) -> Steps:
        """zip asks both for their next element in turn; the first says when it has no more."""
        first = yield from self._ask(one, "__iter__")
        second = yield from self._ask(other, "__iter__")
        while (yield from self._has_next(first)):
            yield from self._ask(second, "__next__")
        yield from self.release(second)
        yield from self.release(first)

    def _convert(self, *lists: Proxy) -> Steps:
        """numpy.array asks each for an array of its own, then for its length and its elements."""
        for each in lists:
            with suppress(Refused):
                yield from self.request(Handler.GETATTR, each, "__array__")
            yield from self._ask(each, "__len__")
            elements = yield from self._ask(each, "__iter__")
            yield from self._ask(elements, "__iter__")
            yield from self._ask(elements, "__length_hint__")
            while (yield from self._has_next(elements)):
                pass
            yield from self.release(elements)

    def _ask(self, proxy: Proxy, name: str) -> Steps:
        return (yield from self.request(Handler.CALLATTR, proxy, name, (), ()))

    def _has_next(self, iterator: Proxy) -> Steps:
        try:
            yield from self._ask(iterator, "__next__")
        except Stop:
            return False
        return True


def expected(side: Side, send: Send, seen: Message) -> Message:
    """The message that a side must send, with what of it only the side knows from what was sent. Raises Unlike."""
    number = side.number if send.number is None else send.number
    return Message(send.kind, number, resolve(send.body, seen.body))
