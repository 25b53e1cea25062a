# SPDX-License-Identifier: Apache-2.0
"""Predictor A, the paper's: how often each step is on the path, by a rule, times what it costs once. Pure.

The path of a burst is its first PDU's from the client to the server. Of each further one only what is slowest counts,
client, wire or server, for the three work at the same time; then the server's answer, a fack or the response. The
clock's interrupts come in proportion to the processor time on the path.
"""

from __future__ import annotations

from dataclasses import dataclass

from sundial.papers.khandker.costs import GAP_US, Costs, frame_us
from sundial.papers.khandker.counts import MTU, Policy, bursts
from sundial.papers.khandker.steps import TICK
from sundial.workloads.dce.expect import bodies, pdu_packets

FACK_IP, RESPONSE_IP = 124, 108
"""Bytes above Ethernet."""
FURTHER = "further PDUs"
NOT_WAKING = "S1 without waking"


@dataclass(frozen=True)
class Part:
    """A row of the sum."""

    device: str
    step: str
    cost_us: float
    count: float

    @property
    def us(self) -> float:
        return self.cost_us * self.count


@dataclass(frozen=True)
class Burden:
    """What one more PDU of a burst takes of each device, us."""

    client: float
    wire: float
    server: float

    @property
    def most(self) -> tuple[str, float]:
        """The device that takes longest."""
        return max((("client", self.client), ("network", self.wire), ("server", self.server)), key=lambda each: each[1])


def wire_us(body: int) -> float:
    """Frames of a PDU with so many bytes, gaps between them included."""
    packets = pdu_packets(body, MTU)[0]
    return sum(frame_us(packet.ip_length) for packet in packets) + GAP_US * (len(packets) - 1)


def kept_us(costs: Costs) -> float:
    """A fragment that is not answered: what a fack costs before it is sent, and the way back to the socket."""
    return costs.at("S15")


def next_us(costs: Costs) -> float:
    """S16, which no call of one PDU has: it polls, and is woken without sleep."""
    return costs.sum("S12", "S3") + costs.at("S2") / 2


def burden(costs: Costs, body: int) -> Burden:
    """One more PDU in a burst, with the clock's interrupts meanwhile."""
    packets = len(pdu_packets(body, MTU)[0])
    clients = costs.sum("C7", "C8'", "C8''", "C9", size=body) + packets * costs.at("C12", body)
    servers = (packets - 1) * _not_waking(costs) + costs.sum("S1", "S4", size=body) + kept_us(costs) + next_us(costs)

    def interrupted(machine: str, us: float) -> float:
        return us / (1 - costs.tick(machine, body) / costs.tick_every_us)

    return Burden(interrupted("client", clients), wire_us(body) + GAP_US, interrupted("server", servers))


def _not_waking(costs: Costs) -> float:
    return costs.at(NOT_WAKING, max(costs.steps[NOT_WAKING]))


def parts(costs: Costs, size: int, policy: Policy) -> list[Part]:
    """The sum's rows, those that are not 0."""
    lengths = bodies(size)
    first = lengths[0]
    begin = ("C1", "C5", "C6") if first else ("C1", "C6")
    listed = [Part("client", step, costs.at(step, first), 1) for step in begin]
    sent = bursts(len(lengths), policy)
    done = 0
    further = 0.0
    slowest = burden(costs, first).most
    for number, burst in enumerate(sent):
        head = lengths[done]
        done += burst
        further += sum(burden(costs, body).most[1] for body in lengths[done - burst + 1 : done])
        last = number == len(sent) - 1
        listed += [
            Part("client", "C7", costs.at("C7"), 1),
            Part("client", "C8'", costs.at("C8'", head), 1),
            Part("network", "wire", wire_us(head), 1),
            *(Part("server", step, costs.at(step, head), 1) for step in ("S1", "S2", "S3", "S4")),
        ]
        answer = ("S5", "S6", "S7", "S8", "S9'") if last else ("S15", "S8", "S9'")
        listed += [Part("server", step, costs.at(step, first), 1) for step in answer if step in costs.steps]
        listed.append(Part("network", "wire back", frame_us(RESPONSE_IP if last else FACK_IP), 1))
        after = ("C15", "C16", "C17", "C18", "C19" if last else "C22")
        listed += [Part("client", step, costs.at(step, first), 1) for step in after]
    more = len(lengths) - len(sent)
    if more:
        listed.append(Part(slowest[0], FURTHER, further / more, more))
    return _with_ticks(costs, size, _joined(listed))


def _joined(listed: list[Part]) -> list[Part]:
    """Equal rows as one."""
    counts: dict[tuple[str, str, float], float] = {}
    for part in listed:
        key = (part.device, part.step, part.cost_us)
        counts[key] = counts.get(key, 0) + part.count
    return [Part(*key, count) for key, count in counts.items() if key[2]]


def _with_ticks(costs: Costs, size: int, listed: list[Part]) -> list[Part]:
    for node in costs.ticks:
        cost = costs.tick(node, size)
        busy = sum(part.us for part in listed if part.device == node and part.step != FURTHER)
        # What interrupts take has interrupts, too.
        listed = [*listed, Part(node, TICK, cost, busy / (costs.tick_every_us - cost))]
    return listed


def predict(costs: Costs, size: int, policy: Policy) -> float:
    """The round trip, us."""
    return sum(part.us for part in parts(costs, size, policy))
