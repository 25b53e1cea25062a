# SPDX-License-Identifier: Apache-2.0
"""What a capture shows of calls: IP packets of each PDU, and the bursts between acknowledgements."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial import EPOCH_NS
from sundial.expect.ip import ETHERNET_HEADER, IP_HEADER, UDP_HEADER
from sundial.observe import open_capture
from sundial.workloads.dce.expect_pdu import HEADER, BadPdu, Pdu, Type, parse

_IPV4, _UDP = b"\x08\x00", 17
_MORE = 0x2000


@dataclass(frozen=True)
class Datagram:
    """A PDU as its packets left a machine."""

    sent_ns: int
    """Of its first packet."""
    pdu: Pdu
    packets: tuple[int, ...]
    """IP lengths."""

    @property
    def data(self) -> tuple[int, ...]:
        """Bytes of the call in each packet."""
        first, *others = self.packets
        return (first - IP_HEADER - UDP_HEADER - HEADER, *(length - IP_HEADER for length in others))


@dataclass(frozen=True)
class OnWire:
    """The packets of one call."""

    requests: tuple[Datagram, ...]
    facks: tuple[Datagram, ...]
    responses: tuple[Datagram, ...]

    @property
    def packets(self) -> int:
        """Of the request."""
        return sum(len(each.packets) for each in self.requests)

    @property
    def bursts(self) -> tuple[int, ...]:
        """PDUs before the first fack, between facks, and after the last."""
        cuts = [fack.sent_ns for fack in self.facks]
        sent = [each.sent_ns for each in self.requests]
        places = [bisect_left(sent, cut) for cut in cuts]
        return tuple(end - begin for begin, end in zip([0, *places], [*places, len(sent)], strict=True))


class Wire:
    """A run's capture, by what leaves two machines."""

    def __init__(self, folder: Path, run: Mapping[str, Any], client: str, server: str) -> None:
        epoch_ns = int(run.get("epoch_ns") or EPOCH_NS)
        self._sent = {name: list(_datagrams(folder, f"{name}:", run, name, epoch_ns)) for name in (client, server)}
        self._times = {name: [each.sent_ns for each in of] for name, of in self._sent.items()}
        self._client, self._server = client, server

    def during(self, start_ns: int, end_ns: int) -> OnWire:
        """What was sent in this time."""
        back = self._between(self._server, start_ns, end_ns)
        return OnWire(
            tuple(each for each in self._between(self._client, start_ns, end_ns) if each.pdu.type is Type.REQUEST),
            tuple(each for each in back if each.pdu.type is Type.FACK),
            tuple(each for each in back if each.pdu.type is Type.RESPONSE),
        )

    def _between(self, name: str, start_ns: int, end_ns: int) -> Sequence[Datagram]:
        times = self._times[name]
        return self._sent[name][bisect_left(times, start_ns) : bisect_right(times, end_ns)]


def _datagrams(folder: Path, port: str, run: Mapping[str, Any], name: str, epoch_ns: int) -> Iterator[Datagram]:
    """PDUs that a machine sent, at its own port."""
    own = {bytes.fromhex(nic["mac"].replace(":", "")) for nic in run["nodes"][name]["interfaces"]}
    for path in sorted((folder / "wire").glob("*.pcapng")):
        capture = open_capture(path)
        try:
            for interface in capture.interfaces:
                if not interface.name.startswith(port) or interface.name.endswith(":fate"):
                    continue
                ticks = capture.ticks(interface)
                assert ticks is not None, "the fabric stamps every frame"
                frames = (capture.packet(block) for block in interface.each())
                yield from _joined(zip((ticks - epoch_ns).tolist(), frames, strict=True), own)
        finally:
            capture.close()


def _joined(frames: Iterator[tuple[int, bytes]], own: set[bytes]) -> Iterator[Datagram]:
    """The packets of a datagram leave one after another, each behind the one before."""
    begun: tuple[int, bytes, list[int]] | None = None
    for at_ns, frame in frames:
        if frame[6:12] not in own or frame[12:14] != _IPV4 or frame[23] != _UDP:
            continue
        length, flags = int.from_bytes(frame[16:18], "big"), int.from_bytes(frame[20:22], "big")
        offset = 8 * (flags & 0x1FFF)
        payload = frame[ETHERNET_HEADER + IP_HEADER : ETHERNET_HEADER + length]
        if offset == 0:
            begun = at_ns, payload[UDP_HEADER:], [length]
        elif begun is not None:
            begun = begun[0], begun[1] + payload, [*begun[2], length]
        if begun is not None and not flags & _MORE:
            # What is of another protocol is left out: the verdict on the run is not given here.
            with suppress(BadPdu):
                yield Datagram(begun[0], parse(begun[1]), tuple(begun[2]))
            begun = None
