# SPDX-License-Identifier: Apache-2.0
"""What the plugins of a run's machines have counted: figures of lock-step that hardly depend on the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Counts:
    """Of all machines of a run together, or the difference of two runs. What a plugin does not count is None."""

    instructions: int | None = None
    gates: int | None = None
    """How often the horizon was looked at, in gates and at blocks' entries."""
    exits: int | None = None
    """Of these, gates: the CPU's loop was left."""
    sleeps: int | None = None
    """Waits that slept."""
    translations: int | None = None
    """Blocks that QEMU translated."""

    @classmethod
    def of(cls, reports: Iterable[Mapping[str, Any]]) -> Counts:
        """From what each machine's plugin reported at the end of the run."""
        every = [_counted(report) for report in reports]
        sums: dict[str, int | None] = {}
        for name in cls.__dataclass_fields__:
            values = [report.get(name) for report in every]
            counted = [value for value in values if isinstance(value, int)]
            sums[name] = sum(counted) if counted and len(counted) == len(values) else None
        return cls(**sums)

    def less(self, shorter: Counts) -> Counts:
        """What a longer run has counted more."""
        found: dict[str, int | None] = {}
        for name in self.__dataclass_fields__:
            more, less = getattr(self, name), getattr(shorter, name)
            found[name] = None if more is None or less is None else more - less
        return Counts(**found)

    def sleeps_by(self, calls: float) -> float | None:
        """Sleeping waits for each call."""
        return None if self.sleeps is None or calls <= 0 else self.sleeps / calls

    def gates_by_quanta(self, instruction_ns: float, lookahead_ns: float | None) -> float | None:
        """Gates by the least that there can be: the time for which guests computed, by the lookahead."""
        if self.gates is None or not self.instructions or not lookahead_ns:
            return None
        return self.gates / (self.instructions * instruction_ns / lookahead_ns)

    def translations_by_gates(self) -> float | None:
        return None if self.translations is None or not self.gates else self.translations / self.gates

    def exits_by_gates(self) -> float | None:
        return None if self.exits is None or not self.gates else self.exits / self.gates


def _counted(report: Mapping[str, Any]) -> dict[str, Any]:
    """A plugin's report by the names that are used here."""
    gates, looks = report.get("gates"), report.get("looks")
    both = gates + looks if isinstance(gates, int) and isinstance(looks, int) else None
    return {**report, "gates": both, "exits": gates}
