# SPDX-License-Identifier: Apache-2.0
"""Every field of every control frame of LAN emulation: what a client writes into a request, and what an answer keeps of
it and adds (af-lane-0021, tables of clauses 5 to 9).

All clients number their requests from 1, give their own MAC address as source, and name the emulated LAN only to join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

from sundial.segments.atm.verify_lane_messages import (
    ARP,
    BROADCAST,
    BUS,
    CONFIGURE,
    ETHERNET,
    FLUSH,
    JOIN,
    NAMES,
    NO_ATM,
    NO_LAN,
    NO_NAME,
    ON_CHANNELS,
    ON_DATA_DIRECT,
    PREFIX,
    PROXY,
    READY,
    REMOTE,
    RESPONSE,
    SERVER,
    Clients,
    Fields,
    Message,
    is_data_direct,
    lan_destination,
)

Problem = tuple[Message, str, str, str]
"""A control frame, which field, what it should be and what it is."""

Key = tuple[int, int, int]
"""A request: port of its client, opcode, transaction."""


@dataclass
class Book:
    """What has been said so far, in the order of the capture."""

    clients: Clients
    lec_ids: dict[int, int] = field(default_factory=dict)
    """By port, of those that have joined."""
    requests: dict[Key, Message] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    """By port: the transaction of its last request."""


def check_fields(clients: Clients, messages: list[Message]) -> Iterator[Problem]:
    """Problems of all frames that were not lost; those that were are the ones that were sent (`verify_frames`)."""
    book = Book(clients)
    for message in messages:
        if message.lost:
            continue
        if not message.whole:
            yield message, "form", f"{PREFIX.hex()} and 108 octets, or 6 of READY", f"{len(message.octets)} octets"
            continue
        allowed = (
            ON_DATA_DIRECT
            if is_data_direct(message.vci, len(clients.macs))
            else ON_CHANNELS.get((message.vci, message.out), ())
        )
        if message.opcode not in allowed:
            yield message, "opcode", _names(allowed), NAMES.get(message.opcode, f"{message.opcode:#06x}")
        elif message.opcode not in READY:
            yield from _frame(book, message)


def _frame(book: Book, message: Message) -> Iterator[Problem]:
    seen = message.fields
    assert seen is not None
    if message.out and message.opcode < RESPONSE:
        yield from _number(book, message, seen)
        due = _request(book, message, seen)
    else:
        asked = _asked(book, message, seen)
        if asked is None:
            yield message, "transaction", "that of a request before it", str(seen.transaction)
            return
        due = _copy(book, message, asked, seen)
    if message.opcode == JOIN + RESPONSE:
        book.lec_ids.setdefault(message.port, seen.requester)
    for name, value in asdict(due).items():
        if getattr(seen, name) != value:
            yield message, name, _text(value), _text(getattr(seen, name))


def _number(book: Book, message: Message, seen: Fields) -> Iterator[Problem]:
    last = book.numbers.get(message.port, 0)
    if seen.transaction != last + 1:
        yield message, "transaction", str(last + 1), str(seen.transaction)
    book.numbers[message.port] = seen.transaction
    book.requests[message.port, message.opcode, seen.transaction] = message


def _request(book: Book, message: Message, seen: Fields) -> Fields:
    """What a client asks."""
    clients, port = book.clients, message.port
    plain = Fields(
        message.opcode, 0, seen.transaction, book.lec_ids.get(port, 0), 0, lan_destination(clients.macs[port]), NO_LAN,
        clients.addresses[port], 0, 0, 0, 0, NO_ATM, NO_NAME,
    )  # fmt: skip
    if message.opcode == CONFIGURE:
        return replace(plain, requester=0, lan_type=ETHERNET, size=clients.size)
    if message.opcode == JOIN:
        return replace(
            plain, requester=0, flags=PROXY if clients.relays[port] else 0, lan_type=ETHERNET, size=clients.size,
            name_length=len(clients.name), name=clients.name.ljust(len(NO_NAME), b"\0"),
        )  # fmt: skip
    if message.opcode == ARP:
        return replace(plain, target=_mac_of(seen.target))
    others = [address for number, address in enumerate(clients.addresses) if number != port]
    other = seen.target_address if seen.target_address in others else others[0]
    if message.opcode == FLUSH:
        return replace(plain, source=NO_LAN, target_address=other)
    return replace(plain, target=_mac_of(seen.target), target_address=other)


def _mac_of(seen: bytes) -> bytes:
    """A LAN destination is a MAC address behind its tag."""
    return b"\0\1" + seen[2:]


def _asked(book: Book, message: Message, seen: Fields) -> Message | None:
    """The request that a frame answers or passes on."""
    opcode = seen.opcode & ~RESPONSE
    answers = message.opcode >= RESPONSE
    port = message.port if answers and not message.out else book.clients.peer(seen.source_address)
    return book.requests.get((port, opcode, seen.transaction))


def _copy(book: Book, message: Message, asked: Message, seen: Fields) -> Fields:
    """What is passed on or answered: the request, and what the answer adds."""
    request = asked.fields
    assert request is not None
    clients = book.clients
    kept = replace(request, opcode=message.opcode)
    if message.opcode == CONFIGURE + RESPONSE:
        return replace(
            kept, lan_type=ETHERNET, size=clients.size, target_address=SERVER, name_length=len(clients.name),
            name=clients.name.ljust(len(NO_NAME), b"\0"),
        )  # fmt: skip
    if message.opcode == JOIN + RESPONSE:
        return replace(kept, requester=_lec_id(book, message.port, seen.requester))
    if message.opcode == ARP + RESPONSE:
        flags, address = _resolved(book, message, asked, seen)
        return replace(kept, flags=flags, target_address=address)
    return kept


def _lec_id(book: Book, port: int, seen: int) -> int:
    """A number of its own from 1 on, always the same for a client that asks again."""
    if port in book.lec_ids:
        return book.lec_ids[port]
    free = [each for each in range(1, len(book.clients.macs) + 1) if each not in book.lec_ids.values()]
    return seen if seen in free else free[0]


def _resolved(book: Book, message: Message, asked: Message, seen: Fields) -> tuple[int, bytes]:
    """Flags and ATM address for a MAC: the BUS for the broadcast address, a client's own, else behind a proxy."""
    clients, mac = book.clients, asked.target_mac
    if mac == BROADCAST:
        return 0, BUS
    if message.out:
        return REMOTE, clients.addresses[message.port]
    if mac in clients.macs:
        return 0, clients.addresses[clients.macs.index(mac)]
    proxies = [
        address
        for port, address in enumerate(clients.addresses)
        if clients.relays[port] and port in book.lec_ids and port != asked.port
    ]
    return REMOTE, seen.target_address if seen.target_address in proxies or not proxies else proxies[0]


def _names(opcodes: tuple[int, ...]) -> str:
    return ", ".join(NAMES[opcode] for opcode in opcodes) or "no control frame"


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def lec_ids_of(clients: Clients, messages: list[Message]) -> Mapping[int, int]:
    """LEC IDs by port, as the first response to each client's JOIN gives them."""
    found: dict[int, int] = {}
    for message in messages:
        fields = message.fields
        if message.opcode == JOIN + RESPONSE and not message.out and not message.lost and fields is not None:
            found.setdefault(message.port, fields.requester)
    return found
