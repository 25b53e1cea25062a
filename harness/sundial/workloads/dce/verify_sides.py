# SPDX-License-Identifier: Apache-2.0
"""The two sides of each activity: its datagrams given to the machines that replay them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from sundial.judge.machine import NEVER, UNREAD_NS
from sundial.judge.replay import LATE_NS, Item, Replay, Sent
from sundial.workloads.dce.expect_pdu import BadPdu, Fack, Pdu, Type, parse, parse_fack
from sundial.workloads.dce.verify_calls import Exchange
from sundial.workloads.dce.verify_client import Call, Client, conv_question
from sundial.workloads.dce.verify_datagrams import Datagram, Endpoint
from sundial.workloads.dce.verify_executors import Executors, replay_together
from sundial.workloads.dce.verify_names import Activity, Service, conv_activity
from sundial.workloads.dce.verify_places import Party, Table
from sundial.workloads.dce.verify_server import Server
from sundial.workloads.dce.verify_stream import CONV, Arrival

REAL_EARLY_NS = 200_000_000
"""Under the real clock a call begins at most so long before its first frame: the time axes of guests are their own."""
REAL_LATE_NS = 3_600_000_000_000
EXECUTORS = 8
"""Of a server whose options name no number (guest-apps/dce/dce_server.c)."""
REAL_UNREAD_NS = 10_000_000_000
"""A machine waits for the host, too."""
_END_NS = 100_000_000
"""What is due later than so long before the end of a run need not be in it."""


@dataclass
class Side:
    """Of one machine in one activity."""

    sent: list[tuple[int, Datagram, Pdu]] = field(default_factory=list)
    """With the number of the datagram."""
    arrived: list[tuple[int, Datagram, Pdu]] = field(default_factory=list)

    def items(self) -> list[Item]:
        """In order of time: of one instant what came, then what was sent."""
        found: list[tuple[int, int, Item]] = []
        for _, each, pdu in self.arrived:
            found.append((each.whole_ns, 0, Arrival(each.whole_ns, pdu, fack_of(pdu))))
        for _, each, pdu in self.sent:
            found.append((each.at_ns, 1, Sent(each.at_ns, pdu, each.payload, tuple(each.rows))))
        return [item for *_, item in sorted(found, key=lambda each: each[:2])]


def fack_of(pdu: Pdu) -> Fack | None:
    """What a fack or a nocall says; None where it says nothing that can be read."""
    if pdu.type not in (Type.FACK, Type.NOCALL):
        return None
    try:
        return parse_fack(pdu)
    except BadPdu:
        return None


@dataclass
class Sides:
    """Both, and what of their datagrams belongs to which call."""

    activity: Activity
    client: Side = field(default_factory=Side)
    server: Side = field(default_factory=Side)

    def exchanges(self) -> dict[int, Exchange]:
        """By the number of the call: all that was said about it."""
        found: dict[int, Exchange] = defaultdict(Exchange)
        for side in (self.client, self.server):
            for _, each, pdu in side.sent:
                if pdu.interface != CONV:
                    found[pdu.sequence].sent.append((each, pdu))
            for _, each, pdu in side.arrived:
                if pdu.interface != CONV:
                    found[pdu.sequence].arrived.append((each, pdu))
        for exchange in found.values():
            exchange.sent.sort(key=lambda each: each[0].at_ns)
            exchange.arrived.sort(key=lambda each: each[0].whole_ns)
        return found


@dataclass(frozen=True)
class Unowned:
    """A datagram of no activity, and why."""

    datagram: Datagram
    reason: str


def divide(datagrams: Sequence[Datagram], activities: Sequence[Activity]) -> tuple[dict[UUID, Sides], list[Unowned]]:
    """Datagrams by activity. Questions of servers name theirs in their body, and the answers are to a question."""
    known = {each.uuid: Sides(each) for each in activities}
    asked: dict[tuple[Endpoint, UUID, int], UUID] = {}
    others: list[Unowned] = []
    order = sorted(range(len(datagrams)), key=lambda number: datagrams[number].whole_ns)
    read: dict[int, Pdu] = {}
    for number in order:
        try:
            read[number] = parse(datagrams[number].payload)
        except BadPdu as error:
            others.append(Unowned(datagrams[number], str(error)))
            continue
        pdu = read[number]
        question = conv_question(pdu) if pdu.interface == CONV and pdu.type == Type.REQUEST else None
        if question is not None:
            asked.setdefault((datagrams[number].source, pdu.activity, pdu.sequence), question[0])
    for number, pdu in read.items():
        each = datagrams[number]
        uuid: UUID | None = pdu.activity
        if pdu.interface == CONV:
            asking = each.source if pdu.type == Type.REQUEST else each.target
            uuid = asked.get((asking, pdu.activity, pdu.sequence))
        sides = known.get(uuid) if uuid is not None else None
        if sides is None:
            others.append(Unowned(each, f"activity {uuid}"))
        elif not _between(each, sides.activity):
            others.append(Unowned(each, f"activity {uuid} from {_end(each.source)} to {_end(each.target)}"))
        else:
            # By its end, not by its machine: both may be on one.
            at_client = (each.source if each.sent else each.target) == sides.activity.own_end
            side = sides.client if at_client else sides.server
            (side.sent if each.sent else side.arrived).append((number, each, pdu))
    return known, others


def _between(each: Datagram, activity: Activity) -> bool:
    """Whether a datagram travels between the ends of an activity."""
    if activity.own_end is None:
        calls = each.machine == activity.client and each.sent and each.source[1] != activity.server_end[1]
        activity.own_end = each.source if calls else None
    if each.machine not in (activity.client, activity.server):
        return False
    to_server = each.source == activity.own_end
    to_client = each.target == activity.own_end
    port = (each.target if to_server else each.source)[1]
    return (to_server or to_client) and port == activity.server_end[1]


def _end(endpoint: Endpoint) -> str:
    return f"{endpoint[0]}:{endpoint[1]}"


def clients_of(sides: Sides, asked_ns: Sequence[int], *, exact: bool) -> list[Client]:
    """The machine of a client, with its calls at their times: where these are not known, as any of several. `asked_ns`:
    when its ARP asked for an address."""
    unread_ns = UNREAD_NS if exact else REAL_UNREAD_NS
    one = partial(Client, sides.activity.settings, unread_ns=unread_ns, activity=sides.activity.uuid)
    if exact:
        first: dict[int, int] = {}
        for _, each, pdu in sides.client.sent:
            if pdu.type == Type.REQUEST:
                first.setdefault(pdu.sequence, each.at_ns)
        starts = [min(call.start_ns, first.get(call.sequence, NEVER)) for call in sides.activity.calls]
        return [one(calls=_at(sides.activity.calls, starts))]
    spoken: dict[int, tuple[int, bool]] = {}
    for _, each, pdu in sides.client.sent:
        if pdu.interface != CONV:
            spoken.setdefault(pdu.sequence, (each.at_ns, (pdu.type, pdu.serial) == (Type.REQUEST, 0)))
    times = sorted(item.at_ns for item in sides.client.items())
    calls = sides.activity.calls
    prompt = [spoken.get(call.sequence, (NEVER, False))[0] for call in calls]
    # The first packet may have waited for ARP, while the call's timers went on.
    held = [_held(times, asked_ns, first_ns) for first_ns in prompt]
    begun = [spoken.get(call.sequence, (NEVER, False))[1] for call in calls]
    held = _reckoned(calls, held, begun)
    every = [prompt] if held == prompt else [prompt, held]
    return [one(calls=_at(calls, [each - REAL_EARLY_NS for each in starts])) for starts in every]


def _reckoned(calls: Sequence[Call], starts_ns: Sequence[int], begun: Sequence[bool]) -> list[int]:
    """`starts_ns` of calls, where the first request was not seen (`begun`) by its client's own clock: by how much that
    is ahead, the others show."""
    ahead_ns = min(
        (at_ns - call.start_ns for call, at_ns, one in zip(calls, starts_ns, begun, strict=True) if one), default=NEVER
    )
    return [
        at_ns if one else min(at_ns, call.start_ns + ahead_ns)
        for call, at_ns, one in zip(calls, starts_ns, begun, strict=True)
    ]


def _at(calls: Sequence[Call], starts_ns: Sequence[int]) -> list[Call]:
    return [replace(call, start_ns=start_ns) for call, start_ns in zip(calls, starts_ns, strict=True)]


def _held(times_ns: Sequence[int], asked_ns: Sequence[int], first_ns: int) -> int:
    """The first question of ARP since anything was sent or came before a packet; its own time if there is none."""
    place = bisect_left(times_ns, first_ns)
    asked = bisect_right(asked_ns, times_ns[place - 1] if place else -NEVER)
    return min(asked_ns[asked], first_ns) if asked < len(asked_ns) else first_ns


def replay_servers(
    every: Sequence[Sides],
    service: Service,
    seed: int,
    *,
    memory: int | None,
    marks: Sequence[int],
    end_ns: int,
    drops: Callable[[int], bool],
    exact: bool,
) -> Iterator[tuple[Sides, Replay[Server]]]:
    """All activities of one server, each in the place that it gets when it comes.

    `memory`: bytes that its tables may have, None: enough; `marks`: when its counts are asked for; `end_ns`: of the
    run; `drops`: as of Replay.
    """
    unread_ns = UNREAD_NS if exact else REAL_UNREAD_NS
    late_ns = LATE_NS if exact else REAL_LATE_NS
    work_ns = int(service.options.get("work_ms") or 0) * 1_000_000
    executors = Executors(int(service.options.get("executors") or EXECUTORS), late_ns) if work_ns else None
    own = [each for each in every if _is_at(service, each.activity)]
    boot_time = _boot_time(own)
    called: list[tuple[Sides, Party]] = []
    for port in service.ports:
        table = Table(service.places(port, memory), unread_ns, partial(conv_activity, seed, service.machine, port))
        for sides in (each for each in own if each.activity.server_end[1] == port and _is_called(each)):
            machine = Server(
                service.settings,
                unread_ns=unread_ns,
                activity=sides.activity.uuid,
                boot_time=boot_time,
                results=partial(service.results, asked=sides.activity.server_end[0]),
                work_ns=work_ns if port == service.port else 0,
                waits=executors is not None,
            )
            replay = Replay([machine], late_ns, drops=drops, marks_ns=marks)
            called.append((sides, Party(replay, sides.server.items(), table)))
    replay_together([party for _, party in called], executors, boot_time, end_ns - (_END_NS if exact else late_ns))
    yield from ((sides, party.replay) for sides, party in called)


def _is_at(service: Service, activity: Activity) -> bool:
    return activity.server == service.machine and activity.server_end[1] in service.ports


def _is_called(sides: Sides) -> bool:
    return any(pdu.interface != CONV for _, _, pdu in sides.server.arrived)


def _boot_time(every: Iterable[Sides]) -> int:
    """What the server says in headers, and in its questions who_are_you: it is its own."""
    said = ((each.at_ns, pdu.boot_time or _asked_with(pdu)) for sides in every for _, each, pdu in sides.server.sent)
    return min((each for each in said if each[1]), default=(0, 0))[1]


def _asked_with(pdu: Pdu) -> int:
    question = conv_question(pdu) if pdu.interface == CONV and pdu.type == Type.REQUEST else None
    return question[1] if question is not None else 0


def replay_client(
    sides: Sides,
    agrees: Callable[[Client], bool],
    drops: Callable[[int], bool],
    asked_ns: Sequence[int] = (),
    *,
    exact: bool,
) -> Replay[Client]:
    """Its calls are all over when its step is. `agrees`: whether a history agrees with its counters; `drops`: as of
    Replay; `asked_ns`: when its machine's ARP asked for an address."""
    replay = Replay(clients_of(sides, asked_ns, exact=exact), LATE_NS if exact else REAL_LATE_NS, agrees, drops)
    replay.run(sides.client.items(), NEVER - 1)
    return replay
