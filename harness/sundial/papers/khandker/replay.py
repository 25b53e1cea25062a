# SPDX-License-Identifier: Apache-2.0
"""Predictor B: a call replayed on three resources, with unit costs as service times. Pure.

Each machine has one processor, which interrupts take from the steps of the runtime; the wire carries one frame at a
time, with the gap of the standard after each. The client sends as its policy's machine says (`expect_window`), the
server answers each fragment that asks. The clock interrupts both machines every so often, at a phase that a call does
not choose: the prediction is the mean over phases. Nothing collides: while a fack is under way the sender is silent
or has its frames in the adapter, whose wait is the wire's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from statistics import mean

from sundial.papers.khandker.costs import GAP_US, Costs, frame_us
from sundial.papers.khandker.counts import MTU, Policy
from sundial.papers.khandker.predict_sum import FACK_IP, NOT_WAKING, RESPONSE_IP, kept_us, next_us
from sundial.workloads.dce.expect import bodies, pdu_packets
from sundial.workloads.dce.expect_window import Sender

PHASES = 20
PROPAGATION_US = 0.85
CLIENT, SERVER = "client", "server"

_Action = Callable[[], None]
_Program = Generator[float | None, None, None]
"""What a machine's runtime does: us of its processor, or None for sleep until something has come."""


class _Clock:
    """Events in order of time; equal ones in the order in which they were asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, _Action]] = []
        self._numbers = count()

    def at(self, when: float, action: _Action) -> None:
        heappush(self._queue, (when, next(self._numbers), action))

    def step(self) -> None:
        self.now, _, action = heappop(self._queue)
        action()


@dataclass
class _Cpu:
    """A processor: interrupts first, then its program."""

    clock: _Clock
    program: _Program | None = None
    asleep: bool = True
    _interrupts: deque[tuple[float, _Action | None]] = field(default_factory=deque)
    _left: float = 0.0
    """Of the program's present step."""
    _since: float | None = None
    """When it went on with that; None: interrupted or asleep."""
    _token: int = 0

    def interrupt(self, us: float, then: _Action | None = None) -> None:
        """A handler that takes so long, after those that wait already."""
        self._interrupts.append((us, then))
        if len(self._interrupts) > 1:
            return
        if self._since is not None:
            self._left -= self.clock.now - self._since
            self._since = None
            self._token += 1
        self._handle()

    def wake(self) -> None:
        """What the program waited for has come."""
        if self.asleep:
            self.asleep = False
            if not self._interrupts:
                self._go_on()

    def _handle(self) -> None:
        us, then = self._interrupts[0]

        def done() -> None:
            if then is not None:
                then()
            self._interrupts.popleft()
            if self._interrupts:
                self._handle()
            elif not self.asleep:
                self._go_on()

        self.clock.at(self.clock.now + us, done)

    def _go_on(self) -> None:
        """With the present step, else with the next one that takes time."""
        while self._left <= 0:
            assert self.program is not None
            following = next(self.program, None)
            if following is None:
                self.asleep = True
                return
            self._left = following
            if self._interrupts:
                return
        self._token += 1
        token, self._since = self._token, self.clock.now
        self.clock.at(self.clock.now + self._left, lambda: self._ended(token))

    def _ended(self, token: int) -> None:
        if token == self._token and self._since is not None:
            self._left, self._since = 0.0, None
            self._go_on()


@dataclass(frozen=True)
class Span:
    """What occupied a resource, and when; for tests and pictures."""

    resource: str
    what: str
    start_us: float
    end_us: float


class _Call:
    """One call in replay."""

    def __init__(self, costs: Costs, size: int, policy: Policy, phase_us: float) -> None:
        self._costs = costs
        self._lengths = bodies(size)
        self._sender = Sender(policy, len(self._lengths))
        self._clock = _Clock()
        self._wire_free = 0.0
        self._waiting: deque[tuple[float, _Action]] = deque()
        self.wire: list[Span] = []
        self.client = _Cpu(self._clock)
        self.server = _Cpu(self._clock)
        self._datagrams: deque[tuple[int, bool, int]] = deque()
        """At the server's socket: fragment, whether it asks, its serial."""
        self._answers: deque[tuple[int, int] | None] = deque()
        """At the client's: fragment and serial of a fack; None: the response."""
        self.ended: float | None = None
        self.client.program, self.server.program = self._calling(), self._serving()
        for name, cpu in ((CLIENT, self.client), (SERVER, self.server)):
            if costs.tick(name, size):
                self._tick(phase_us, cpu, costs.tick(name, size))

    def run(self) -> float:
        """The round trip, us."""
        self.client.wake()
        while self.ended is None:
            self._clock.step()
        return self.ended

    def _tick(self, when: float, cpu: _Cpu, us: float) -> None:
        def strike() -> None:
            cpu.interrupt(us)
            self._tick(when + self._costs.tick_every_us, cpu, us)

        self._clock.at(when, strike)

    # ---- the wire ----

    def _hand_in(self, sender: str, ip_bytes: int, arrived: _Action) -> None:
        """A frame to the wire, behind those that were handed in before."""
        begin = max(self._clock.now, self._wire_free)
        end = begin + frame_us(ip_bytes)
        self._wire_free = end + GAP_US
        self.wire.append(Span("wire", sender, begin, end))
        self._clock.at(end + PROPAGATION_US, arrived)

    # ---- the client ----

    def _calling(self) -> _Program:
        costs, lengths = self._costs, self._lengths
        yield costs.at("C1")
        if lengths[0]:
            yield costs.at("C5", lengths[0])
        yield costs.at("C6")
        serial = 0
        copied = 1
        while True:
            sent = False
            while (following := self._sender.next()) is not None:
                fragment, asks = following
                if sent:
                    yield costs.at("C9")
                if fragment >= copied:
                    yield costs.at("C5", lengths[fragment])
                    copied = fragment + 1
                yield from self._sending(fragment, asks, serial)
                self._sender.sent(fragment, serial, asks)
                serial += 1
                sent = True
            if sent:
                yield costs.at("C10")
                while copied < min(len(lengths), self._sender.window + serial - self._sender.outstanding):
                    yield costs.at("C5", lengths[copied])
                    copied += 1
            yield costs.at("C11")
            if not self._answers:
                yield costs.at("C14") / 2  # the switch away; the one back is C16's
                while not self._answers:
                    yield None
            yield costs.sum("C16", "C17", "C18")
            answer = self._answers.popleft()
            if answer is None:
                yield costs.at("C19")
                self.ended = self._clock.now
                return
            yield costs.at("C22")
            self._sender.fack(answer[0], (), answer[1])

    def _sending(self, fragment: int, asks: bool, serial: int) -> _Program:
        costs, body = self._costs, self._lengths[fragment]
        packets = pdu_packets(body, MTU)[0]
        yield costs.sum("C7", "C8'", size=body)
        # After the first frame is handed in the others follow, each at its driver's call.
        between = (costs.at("C8''", body) - costs.at("C8''")) / (len(packets) - 1) if len(packets) > 1 else 0.0
        for number, packet in enumerate(packets):
            last = number == len(packets) - 1
            what = (fragment, asks, serial) if last else None
            self._hand_in(CLIENT, packet.ip_length, lambda what=what, body=body: self._at_server(what, body))  # type: ignore[misc]
            yield costs.at("C12")
            if not last:
                yield between
        yield costs.at("C8''")

    def _at_client(self, answer: tuple[int, int] | None) -> None:
        def readable() -> None:
            self._answers.append(answer)
            self.client.wake()

        self.client.interrupt(self._costs.at("C15", self._lengths[0]), readable)

    # ---- the server ----

    def _at_server(self, datagram: tuple[int, bool, int] | None, body: int) -> None:
        costs = self._costs
        if datagram is None:
            self.server.interrupt(costs.at(NOT_WAKING, max(costs.steps[NOT_WAKING])))
            return

        def readable() -> None:
            self._datagrams.append(datagram)
            self.server.wake()

        self.server.interrupt(costs.at("S1", body), readable)

    def _serving(self) -> _Program:
        costs, last = self._costs, len(self._lengths) - 1
        while True:
            while not self._datagrams:
                yield None
            yield costs.sum("S2", "S3", size=self._lengths[0])
            while self._datagrams:
                fragment, asks, serial = self._datagrams.popleft()
                yield costs.at("S4", self._lengths[fragment])
                if fragment == last:
                    yield costs.at("S5", self._lengths[0]) + costs.sum("S7", "S8", "S9'")
                    self._hand_in(SERVER, RESPONSE_IP, lambda: self._at_client(None))
                    return
                if asks:
                    yield costs.sum("S15", "S8", "S9'")
                    answer = fragment, serial
                    self._hand_in(SERVER, FACK_IP, lambda answer=answer: self._at_client(answer))  # type: ignore[misc]
                    yield costs.sum("S13", "S9''", "S10")
                else:
                    yield kept_us(costs)
                if self._datagrams:
                    yield next_us(costs)
            yield costs.at("S12")


def replay(costs: Costs, size: int, policy: Policy, phase_us: float) -> float:
    """The round trip of one call, us; `phase_us`: when the clock interrupts first."""
    return _Call(costs, size, policy, phase_us).run()


def predict(costs: Costs, size: int, policy: Policy) -> float:
    """The round trip, us: the mean over phases of the clock."""
    every = costs.tick_every_us
    return mean(replay(costs, size, policy, every * (number + 0.5) / PHASES) for number in range(PHASES))
