# SPDX-License-Identifier: Apache-2.0
"""Lines of an ATM switch: three by name, any other by its rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sundial.errors import BadInput
from sundial.expect.atm import CELL_OCTETS, cell_time_units
from sundial.model.fields import PORT, Marker
from sundial.units import RATE


@dataclass(frozen=True)
class Line:
    """The rate of a line, and what it carries for each cell."""

    rate_bps: int
    cell_octets: int = CELL_OCTETS

    @property
    def cell_time_units(self) -> int:
        """Time of a cell in units of 1/117 ps."""
        return cell_time_units(self.rate_bps, self.cell_octets)


LINES = {
    "oc-3c": Line(149_760_000),
    "atm-25": Line(25_600_000, CELL_OCTETS + 1),
    "taxi-100": Line(100_000_000, CELL_OCTETS + 1),
}
"""STS-3c less its overhead (260 of 270 columns); af-phy-0040 and TAXI send a start-of-cell code with each cell."""

RATES = RATE.between("64 kbit/s", "10 Gbit/s", example="155 Mbit/s")
ALLOWED = f"{', '.join(LINES)}, or {RATES.allowed}"


@dataclass(frozen=True)
class LineField(Marker):
    """A line; with `by_port` also a mapping from ports to lines."""

    by_port: bool = False

    def parse(self, value: object) -> Line | dict[str, Line]:
        if self.by_port and isinstance(value, dict):
            lines = {}
            for port, line in value.items():
                PORT.parse(port)
                try:
                    lines[port] = _parse(line)
                except BadInput as error:
                    raise error.within(field=port) from error
            return lines
        return _parse(value)

    def show(self, value: Line | dict[str, Line]) -> str | dict[str, str]:
        return {port: _show(line) for port, line in value.items()} if isinstance(value, dict) else _show(value)

    def schema(self) -> dict[str, Any]:
        one: dict[str, Any] = {
            "anyOf": [{"enum": list(LINES)}, {"type": "string", "pattern": RATES.pattern}],
            "x-allowed": ALLOWED,
        }
        if not self.by_port:
            return one
        each = {"type": "object", "propertyNames": PORT.schema(), "additionalProperties": one}
        return {"anyOf": [*one["anyOf"], each], "x-allowed": f"{ALLOWED}; or one by port"}


def _parse(value: object) -> Line:
    if isinstance(value, str) and value in LINES:
        return LINES[value]
    try:
        return Line(RATES.parse(value))
    except BadInput as error:
        raise BadInput(error.problems[0].what, allowed=ALLOWED) from error


def _show(line: Line) -> str:
    return next((name for name, known in LINES.items() if known == line), RATES.show(line.rate_bps))
