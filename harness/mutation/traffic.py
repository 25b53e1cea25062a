# SPDX-License-Identifier: Apache-2.0
"""Frames that are missing, doubled, moved or foreign, and changes to all frames at once."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from mutation import comments, protocols
from mutation.capture import IN, OUT, Capture, Frame, transmissions
from mutation.damage import Copy, Damage, Damages
from mutation.headers import PLACES, write

Change = Callable[[dict[str, Capture], Random], None]
MS = 1_000_000


def damages(copy: Copy) -> Damages:
    """All that can be done to the frames of this run."""
    captures = copy.captures()
    every = transmissions(list(captures.values()))
    kinds = {(each.machine, protocols.kind(each.data)): None for each in every}
    for machine, kind in kinds:
        for what, change in PER_KIND.items():
            for place in PLACES:
                yield _damage(f"{what}: {kind} from {machine}, {place}", _per_kind(machine, kind, place, change))
    # A segment that was not used has no frame that could be damaged.
    for what, whole in WHOLE.items() if every else ():
        yield _damage(f"traffic: {what}", whole)
    for what, frame in FOREIGN.items() if every else ():
        for place in ("sender", "both"):
            yield _damage(f"foreign: {what}, {place}", _insert(frame, place))
    if any(protocols.is_ip(each.data) and protocols.protocol(each.data) == protocols.TCP for each in every):
        for what, frame in FORGED_TCP.items():
            yield _damage(f"foreign: {what}, both", _insert(frame, "both", "TCP data"))
        yield _damage("traffic: two TCP segments exchanged at the receiver", _exchanged)
        yield _damage("traffic: TCP acknowledgements all ones", _all_tcp(_ack_all_ones))
        yield _damage("traffic: TCP timestamps of all frames", _all_tcp(_timestamps))
    if any(protocols.is_dce(each.data) for each in every):
        for what, (kind, frame) in FORGED_DCE.items():
            if any(protocols.kind(each.data) == kind for each in every):
                yield _damage(f"foreign: {what}, both", _insert(frame, "both", kind))
        for what, whole in WHOLE_DCE.items():
            yield _damage(f"traffic: {what}", whole)
    if any(capture.is_fate(frame) for capture in captures.values() for frame in capture.frames):
        for what, whole in FATES.items():
            yield _damage(f"fates: {what}", whole)


def _damage(name: str, change: Change) -> Damage:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.captures()
        change(captures, random)
        write(copy, captures)

    return Damage(name, apply)


def _remove(captures: Sequence[Capture], frames: Sequence[Frame], random: Random) -> None:
    gone = set(map(id, frames))
    for capture in captures:
        capture.frames = [frame for frame in capture.frames if id(frame) not in gone]


def _twice(captures: Sequence[Capture], frames: Sequence[Frame], random: Random) -> None:
    for capture in captures:
        own = set(map(id, capture.frames))
        again = [replace(frame, at_ns=frame.at_ns + 2 * MS) for frame in frames if id(frame) in own]
        _insert_in_order(capture, again)


def _turn(captures: Sequence[Capture], frames: Sequence[Frame], random: Random) -> None:
    for frame in frames:
        frame.direction ^= IN | OUT


def _move(captures: Sequence[Capture], frames: Sequence[Frame], random: Random) -> None:
    for capture in captures:
        ports = [place for place, name in enumerate(capture.interfaces) if not name.endswith(":fate")]
        own = set(map(id, capture.frames))
        for frame in frames:
            if id(frame) in own and len(ports) > 1 and frame.interface in ports:
                frame.interface = random.choice([place for place in ports if place != frame.interface])


def _cut(captures: Sequence[Capture], frames: Sequence[Frame], random: Random) -> None:
    for frame in frames:
        frame.data = frame.data[:-4]


def _cut_length(captures: Sequence[Capture], frames: Sequence[Frame], random: Random) -> None:
    for frame in frames:
        frame.data = frame.data[:-4]
        frame.length = len(frame.data)


def _trailer(captures: Sequence[Capture], frames: Sequence[Frame], random: Random) -> None:
    for frame in frames:
        frame.data += bytes((0xAA, 0xBB, 0xCC, 0xDD))
        frame.length += 4


def _remark(captures: Sequence[Capture], frames: Sequence[Frame], random: Random) -> None:
    for frame in frames:
        frame.comment = "lost: client to server"


PER_KIND: dict[str, Callable[[Sequence[Capture], Sequence[Frame], Random], None]] = {
    "removed": _remove,
    "doubled": _twice,
    "direction turned": _turn,
    "at another port": _move,
    "cut": _cut,
    "cut, and so its length": _cut_length,
    "longer": _trailer,
    "with a remark": _remark,
}


def _per_kind(
    machine: str, kind: str, place: str, change: Callable[[Sequence[Capture], Sequence[Frame], Random], None]
) -> Change:
    def apply(captures: dict[str, Capture], random: Random) -> None:
        every = transmissions(list(captures.values()))
        fit = [each for each in every if (each.machine, protocols.kind(each.data)) == (machine, kind)]
        change(list(captures.values()), PLACES[place](random.choice([each for each in fit if each.received])), random)

    return apply


def _insert_in_order(capture: Capture, frames: Sequence[Frame]) -> None:
    capture.frames = sorted([*capture.frames, *frames], key=lambda frame: frame.at_ns)


def _largest(captures: dict[str, Capture]) -> Capture:
    return max(captures.values(), key=lambda capture: len(capture.frames))


# ---- Whole captures ----


def _first_missing(captures: dict[str, Capture], random: Random) -> None:
    _largest(captures).frames.pop(0)


def _last_missing(captures: dict[str, Capture], random: Random) -> None:
    _largest(captures).frames.pop()


def _no_frames(captures: dict[str, Capture], random: Random) -> None:
    for capture in captures.values():
        capture.frames = []


def _last_half_missing(captures: dict[str, Capture], random: Random) -> None:
    for capture in captures.values():
        capture.frames = capture.frames[: len(capture.frames) // 2]


def _all_twice(captures: dict[str, Capture], random: Random) -> None:
    for capture in captures.values():
        capture.frames = [again for frame in capture.frames for again in (frame, frame.copy())]


def _nothing_received(captures: dict[str, Capture], random: Random) -> None:
    every = transmissions(list(captures.values()))
    _remove(list(captures.values()), [frame for each in every for frame in each.received], random)


def _ports_exchanged(captures: dict[str, Capture], random: Random) -> None:
    capture = _largest(captures)
    for frame in capture.frames:
        if frame.interface < 2:
            frame.interface ^= 1


def _whole_exchange_missing(captures: dict[str, Capture], random: Random) -> None:
    """Two frames that follow one another, from both sides, at all ports."""
    every = transmissions(list(captures.values()))
    middle = len(every) // 2
    pair = next(place for place in range(middle, len(every) - 1) if every[place].machine != every[place + 1].machine)
    frames = [frame for each in every[pair : pair + 2] for frame in each.everywhere]
    _remove(list(captures.values()), frames, random)


def _unordered_file(captures: dict[str, Capture], random: Random) -> None:
    """Two neighbouring blocks of one port exchanged, their times with them: the file alone is out of order."""
    frames = _largest(captures).frames
    place = len(frames) // 2
    frames[place], frames[place + 1] = frames[place + 1], frames[place]


def _omnibus(captures: dict[str, Capture], random: Random) -> None:
    """What no protocol reads, in every frame at every port."""
    for capture in captures.values():
        for frame in capture.frames:
            data = bytearray(frame.data)
            data[0:12] = bytes.fromhex("025344aabbcc025344ddeeff")
            if protocols.is_ip(frame.data):
                data[15], data[22] = 0xFF, 1
                data[24:26] = b"\x12\x34"
                place = protocols.checksum_place(frame.data)
                if place is not None:
                    data[place : place + 2] = b"\x56\x78"
            frame.data = bytes(data)


def _all_ip(change: Callable[[bytearray], None]) -> Change:
    def apply(captures: dict[str, Capture], random: Random) -> None:
        for capture in captures.values():
            for frame in capture.frames:
                if protocols.is_ip(frame.data):
                    data = bytearray(frame.data)
                    change(data)
                    frame.data = protocols.with_checksums(frame.data, bytes(data))

    return apply


def _ttl_1(data: bytearray) -> None:
    data[22] = 1


def _one_id(data: bytearray) -> None:
    if not protocols.is_fragment(bytes(data)):
        data[18:20] = b"\x00\x07"


def _all_tcp(change: Callable[[bytearray], None]) -> Change:
    def of_tcp(data: bytearray) -> None:
        if protocols.protocol(bytes(data)) == protocols.TCP:
            change(data)

    return _all_ip(of_tcp)


def _ack_all_ones(data: bytearray) -> None:
    at = protocols.layer(bytes(data))
    data[at + 8 : at + 12] = b"\xff\xff\xff\xff"


def _timestamps(data: bytearray) -> None:
    for field in protocols.fields(bytes(data)):
        if field.name == "tcp.option.timestamps.value":
            data[:] = field.put(bytes(data), 4711)


def _payloads(at_receivers: bool) -> Change:
    """The second half of every payload zeroed."""

    def apply(captures: dict[str, Capture], random: Random) -> None:
        for capture in captures.values():
            for frame in capture.frames:
                if at_receivers and frame.direction == OUT:
                    continue
                begin = (protocols.payload(frame.data) + len(frame.data)) // 2
                frame.data = frame.data[:begin] + bytes(len(frame.data) - begin)

    return apply


def _exchanged(captures: dict[str, Capture], random: Random) -> None:
    every = [
        each
        for each in transmissions(list(captures.values()))
        if protocols.kind(each.data) == "TCP data" and each.received
    ]
    pairs = [
        (one, two)
        for one, two in itertools.pairwise(every)
        if one.machine == two.machine and one.data[34:38] == two.data[34:38]
    ]
    one, two = random.choice(pairs or list(itertools.pairwise(every)))
    a, b = one.received[0], two.received[0]
    a.data, b.data, a.length, b.length = b.data, a.data, b.length, a.length


WHOLE: dict[str, Change] = {
    "first frame missing": _first_missing,
    "last frame missing": _last_missing,
    "no frames": _no_frames,
    "second half missing": _last_half_missing,
    "every frame twice": _all_twice,
    "nothing received": _nothing_received,
    "ports exchanged": _ports_exchanged,
    "a request and its answer missing": _whole_exchange_missing,
    "two neighbours exchanged in the file": _unordered_file,
    "MACs, TOS, TTL and checksums of every frame": _omnibus,
    "TTL 1 in every packet": _all_ip(_ttl_1),
    "one IP id for all packets": _all_ip(_one_id),
    "half of every payload zeroed at the receivers": _payloads(True),
    "half of every payload zeroed": _payloads(False),
}


# ---- Foreign frames: made from one that is there ----


def _udp(source: bytes, target: bytes, source_mac: bytes, target_mac: bytes) -> bytes:
    segment = struct.pack(">HHHH", 4711, 4712, 16, 0) + b"foreign!"
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 9, 0, 64, protocols.UDP, 0) + source + target
    return protocols.with_ip_checksum(target_mac + source_mac + b"\x08\x00" + header + segment)


def _junk_ip(like: bytes) -> bytes:
    return like[:12] + b"\x08\x00" + bytes(50)


def _junk_arp(like: bytes) -> bytes:
    return like[:12] + b"\x08\x06" + b"\x99" * 46


def _foreign_addresses(like: bytes) -> bytes:
    return _udp(b"\x09\x09\x09\x09", b"\x08\x08\x08\x08", like[6:12], like[:6])


def _forged_mac(like: bytes) -> bytes:
    return _udp(b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02", bytes.fromhex("025344aabbcc"), like[:6])


def _forged_arp(like: bytes) -> bytes:
    body = bytes.fromhex("0001080006040002") + like[:6] + b"\x0a\x00\x00\x02" + like[6:12] + b"\x0a\x00\x00\x01"
    return like[:12] + b"\x08\x06" + body


def _control(like: bytes) -> bytes:
    return b"\xff" * 6 + like[6:12] + b"\x88\xb5" + bytes(46)


def _own_ethertype(like: bytes) -> bytes:
    return like[:12] + b"\x88\xb6" + bytes(46)


FOREIGN: dict[str, Callable[[bytes], bytes]] = {
    "junk IPv4": _junk_ip,
    "junk ARP": _junk_arp,
    "unknown addresses": _foreign_addresses,
    "unknown MAC": _forged_mac,
    "ARP reply for another": _forged_arp,
    "control frame": _control,
    "unknown EtherType": _own_ethertype,
}


def _with_tcp_flags(flags: int, seq: int) -> Callable[[bytes], bytes]:
    def forge(like: bytes) -> bytes:
        at, begin = protocols.layer(like), protocols.payload(like)
        new = bytearray(like[:begin])
        new[16:18] = (begin - 14).to_bytes(2)
        new[at + 13] = flags
        new[at + 4 : at + 8] = ((int.from_bytes(new[at + 4 : at + 8]) + seq) % 2**32).to_bytes(4)
        return protocols.with_checksums(like, bytes(new))

    return forge


FORGED_TCP: dict[str, Callable[[bytes], bytes]] = {
    "TCP reset": _with_tcp_flags(0x14, 0),
    "TCP acknowledgement with seq + 1": _with_tcp_flags(0x10, 1),
    "TCP acknowledgement once more": _with_tcp_flags(0x10, 0),
}


def _dce(change: Callable[[bytearray], None], body: bool = True) -> Callable[[bytes], bytes]:
    """A PDU made from another one in one frame; without its body where that is of no use."""

    def forge(like: bytes) -> bytes:
        begin = protocols.payload(like)
        pdu = bytearray(like[begin:] if body else like[begin : begin + protocols.DCE_HEADER])
        change(pdu)
        if not body:
            pdu[74:76] = bytes(2)
        at = protocols.layer(like)
        new = bytearray(like[:begin] + pdu)
        new[16:18] = (len(new) - 14).to_bytes(2)
        new[at + 4 : at + 6] = (len(new) - at).to_bytes(2)
        return protocols.with_checksums(like, bytes(new))

    return forge


def _put(place: int, value: int) -> Callable[[bytearray], None]:
    def change(pdu: bytearray) -> None:
        pdu[place] = value

    return change


def _add(place: int) -> Callable[[bytearray], None]:
    def change(pdu: bytearray) -> None:
        pdu[place] = (pdu[place] + 1) % 256

    return change


FORGED_DCE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a ping that was not due": ("DCE request", _dce(_put(1, 1), body=False)),
    "an ack in the middle of a batch": ("DCE request", _dce(_put(1, 7), body=False)),
    "working for a call that has ended": ("DCE response", _dce(_put(1, 4), body=False)),
    "a request once more": ("DCE request", _dce(_add(79))),
    "a response once more": ("DCE response", _dce(_add(79))),
    "a fack once more": ("DCE fack", _dce(_put(0, 4))),
    "a fack for another transmission": ("DCE fack", _dce(_add(80 + 12))),
    "a request of another activity": ("DCE request", _dce(_add(55))),
}


def _all_dce(field: int, sides: Callable[[bytes], bool]) -> Change:
    """One bit of a field in every PDU that `sides` chooses, at all ports."""

    def change(data: bytearray) -> None:
        if protocols.is_dce(bytes(data)) and not protocols.is_fragment(bytes(data)) and sides(bytes(data)):
            data[protocols.payload(bytes(data)) + field] ^= 0x20

    return _all_ip(change)


WHOLE_DCE: dict[str, Change] = {
    "the activity of all PDUs in one frame": _all_dce(55, lambda data: True),
    "the offered window of all facks": _all_dce(80 + 3, lambda data: protocols.dce_type(data) == "fack"),
    "the activity hint of all responses": _all_dce(73, lambda data: protocols.dce_type(data) == "response"),
}


def _insert(forge: Callable[[bytes], bytes], place: str, kind: str | None = None) -> Change:
    """A frame forged from one of a kind that is there, a millisecond after it."""

    def apply(captures: dict[str, Capture], random: Random) -> None:
        every = transmissions(list(captures.values()))
        fit = [each for each in every if each.received and kind in (None, protocols.kind(each.data))]
        chosen = random.choice(fit)
        data = forge(chosen.data)
        frames = PLACES[place](chosen)
        for capture in captures.values():
            own = set(map(id, capture.frames))
            new = [
                replace(frame, data=data, length=len(data), at_ns=frame.at_ns + MS)
                for frame in frames
                if id(frame) in own
            ]
            _insert_in_order(capture, new)

    return apply


# ---- Fates ----


def _fate_frames(captures: dict[str, Capture]) -> list[tuple[Capture, Frame]]:
    return [(capture, frame) for capture in captures.values() for frame in capture.frames if capture.is_fate(frame)]


def _fate_missing(captures: dict[str, Capture], random: Random) -> None:
    capture, frame = random.choice(_fate_frames(captures))
    capture.frames.remove(frame)


def _fate_twice(captures: dict[str, Capture], random: Random) -> None:
    capture, frame = random.choice(_fate_frames(captures))
    _insert_in_order(capture, [replace(frame, at_ns=frame.at_ns + 1_000)])


def _fate_that_never_was(captures: dict[str, Capture], random: Random) -> None:
    capture, like = random.choice(_fate_frames(captures))
    delivered = random.choice([each for each in transmissions([capture]) if each.received])
    _insert_in_order(
        capture, [replace(like, data=delivered.data, length=len(delivered.data), at_ns=delivered.sent[0].at_ns + 1)]
    )


def _fate_bytes(captures: dict[str, Capture], random: Random) -> None:
    _, frame = random.choice(_fate_frames(captures))
    place = random.randrange(len(frame.data))
    frame.data = frame.data[:place] + bytes([frame.data[place] ^ 1]) + frame.data[place + 1 :]


def _comment(edit: Callable[[str, Random], str]) -> Change:
    def change(captures: dict[str, Capture], random: Random) -> None:
        _, frame = random.choice(_fate_frames(captures))
        frame.comment = edit(frame.comment or "", random)

    return change


FATES: dict[str, Change] = {
    "one missing": _fate_missing,
    "one twice": _fate_twice,
    "one that never was": _fate_that_never_was,
    "bytes of one": _fate_bytes,
    "word of one": _comment(comments.other_kind),
    "detail of one": _comment(comments.other_detail),
    "words of one alone": _comment(lambda comment, _: comments.other_words(comment)),
    "record of one alone": _comment(lambda comment, _: comments.other_record(comment)),
    "record of one missing": _comment(lambda comment, _: comments.without_record(comment)),
}
