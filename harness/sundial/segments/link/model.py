# SPDX-License-Identifier: Apache-2.0
"""A link as written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from sundial.model.fields import PORT_OR_BOTH, In, written
from sundial.model.impairments import Impairments
from sundial.model.invalid import Invalid, Path
from sundial.model.segment import LinkTime, SegmentBase, SegmentKind
from sundial.model.timeline import CUT, IMPAIR, PARTITION
from sundial.units import RATE


class Link(SegmentBase):
    """Two ports, full duplex, with the impairments of tc-netem in each direction."""

    kind: Literal["link"]
    """A point-to-point link."""
    rate: Annotated[int, In(RATE)]
    """Rate in each direction."""
    propagation: LinkTime = written("25 ns")
    """Propagation delay from end to end."""
    impairments: dict[Annotated[str, PORT_OR_BOTH], Impairments] = Field(default_factory=dict)
    """Impairments by sending port, or `both`; fields of a port override those of `both`."""

    @property
    def knobs(self) -> frozenset[str]:
        return frozenset((IMPAIR, CUT, PARTITION))

    @property
    def corrupts(self) -> bool:
        return any(each.corrupt for port in self.ports for each in self.every(port))

    def own_impairments(self, port: str) -> Impairments:
        return self.sending(port)

    def every(self, port: str) -> list[Impairments]:
        """What happens to frames sent by `port`, as the topology says and in each later state."""
        return [self.sending(port), *(state.impairments[port] for state in self.timeline)]

    def sending(self, port: str) -> Impairments:
        """What happens to frames sent by `port`, as the topology says."""
        both = self.impairments.get("both", Impairments())
        own = self.impairments.get(port, Impairments())
        return both.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})

    def rate_bps(self, port: str) -> int:
        return self.rate

    def check(self, path: Path) -> Iterator[Invalid]:
        if len(self.ports) != 2:
            yield Invalid((*path, "ports"), f"a link cannot have {len(self.ports)} ports", "exactly 2")
        yield from self.check_ports((*path, "impairments"), [key for key in self.impairments if key != "both"])
        for key in self.impairments:
            yield from self.sending(key).check((*path, "impairments", key))


class LinkKind(SegmentKind):
    model = Link


KIND: SegmentKind = LinkKind()
