# SPDX-License-Identifier: Apache-2.0
"""Wireshark's extcap protocol: lines that describe interfaces, link types and options. Pure.

An interface of Sundial is a segment of a topology that is up, as all its ports saw it, or one of its ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

PREFIX = "sundial"
ALL = "all"
"""The value of --at for all ports."""
_LINKS = {
    1: ("EN10MB", "Ethernet"),
    197: ("ERF", "Extensible Record Format: PDUs or cells of ATM"),
    148: ("USER1", "packets of a backplane"),
}
"""By link type. Nothing is imported for them: Wireshark calls this several times when it starts."""


@dataclass(frozen=True)
class Source:
    """What Wireshark lists as an interface. `port` is None for a segment."""

    topology: str
    segment: str
    port: str | None
    link: int
    ports: Sequence[str]
    """All ports of the segment."""

    @property
    def value(self) -> str:
        """Its name on a command line."""
        return ":".join((PREFIX, self.topology, self.segment, *(() if self.port is None else (self.port,))))

    @property
    def display(self) -> str:
        """Its name in a list."""
        what = f"segment {self.segment}" if self.port is None else f"{self.port} on {self.segment}"
        return f"Sundial: {self.topology}, {what}"


def is_of_port(value: str) -> bool:
    """True for the name of a port's interface, false for a segment's."""
    return value.count(":") > 2


def interfaces(sources: Iterable[Source], version: str) -> Iterator[str]:
    """The answer to --extcap-interfaces."""
    yield f"extcap {{version={version}}}{{display=Sundial}}"
    for source in sources:
        yield f"interface {{value={source.value}}}{{display={source.display}}}"


def link_types(source: Source) -> Iterator[str]:
    """The answer to --extcap-dlts."""
    name, display = _LINKS.get(source.link, (f"LINK{source.link}", f"link type {source.link}"))
    yield f"dlt {{number={source.link}}}{{name={name}}}{{display={display}}}"


def config(source: Source) -> Iterator[str]:
    """The answer to --extcap-config: whose point of view a segment is shown from."""
    if source.port is not None:
        return
    yield "arg {number=0}{call=--at}{display=Point of view}{type=selector}{tooltip=Frames as one port saw them}"
    yield f"value {{arg=0}}{{value={ALL}}}{{display=all ports (each frame once a port)}}{{default=true}}"
    for port in source.ports:
        yield f"value {{arg=0}}{{value={port}}}{{display={port}}}{{default=false}}"
