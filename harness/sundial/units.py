# SPDX-License-Identifier: Apache-2.0
"""Quantities as people write them, parsed exactly into integer base units (Decimal only for fractions).

No value passes through a binary float on its way in. A missing or wrong unit, a negative value, one that is not a whole
number of base units and one outside the allowed range are BadInput; the message names what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sundial.errors import BadInput

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_TEXT = re.compile(rf"\s*(?P<number>[+-]?{NUMBER})\s*(?P<unit>[^\d\s.+-]\S*)?\s*")

NS_PER_S = 10**9
MAX_SHIFT = 10


@dataclass(frozen=True, eq=False)
class Quantity:
    """A kind of quantity: its units with their factors to the base unit, and the range allowed."""

    noun: str
    units: Mapping[str, int]
    least: int
    most: int
    example: str
    bare: str | None = None
    """The unit meant when none is written; None: a unit is required."""
    whole: str | None = None
    """The unit of which there must be a whole number; None: the base unit."""

    def between(self, least: str | None = None, most: str | None = None, example: str | None = None) -> Quantity:
        """The same kind with a narrower range, its ends written as quantities."""
        return replace(
            self,
            least=self.least if least is None else self.parse(least),
            most=self.most if most is None else self.parse(most),
            example=self.example if example is None else example,
        )

    @property
    def allowed(self) -> str:
        noun = self.noun if self.whole is None else f"{self.noun} in whole {self.whole}"
        return f"{noun} from {self.show(self.least)} to {self.show(self.most)}, such as {self.example!r}"

    def parse(self, value: object) -> int:
        """`value` in base units.

        Raises BadInput when it is not such a quantity or is outside the range.
        """
        number, unit = split(value)
        if number is None:
            raise BadInput(f"{value!r} is not {self.noun}", allowed=self.allowed)
        unit = unit or self.bare
        if unit is None:
            raise BadInput(f"{str(value)!r} has no unit", allowed=self.allowed)
        if unit not in self.units:
            names = ", ".join(self.units)
            raise BadInput(f"{str(value)!r} has the wrong unit {unit!r} (known: {names})", allowed=self.allowed)
        exact = number * self.units[unit]
        if exact < 0:
            raise BadInput(f"{str(value)!r} is negative", allowed=self.allowed)
        whole = self.whole or self._base
        if exact != int(exact) or int(exact) % self.units[whole]:
            raise BadInput(f"{str(value)!r} is not a whole number of {whole}", allowed=self.allowed)
        if not self.least <= exact <= self.most:
            raise BadInput(f"{str(value)!r} is out of range", allowed=self.allowed)
        return int(exact)

    def show(self, amount: int) -> str:
        """`amount` base units in the largest unit that shows it exactly and at least 1 of it; `parse` reads it back."""
        for unit, factor in sorted(self.units.items(), key=lambda item: -item[1]):
            if amount >= factor:
                exact = Decimal(amount) / factor
                if exact * factor == amount and -int(exact.as_tuple().exponent) <= 3:
                    return f"{exact:f} {unit}"
        return f"{amount} {self._base}"

    @property
    def _base(self) -> str:
        return next(unit for unit, factor in self.units.items() if factor == 1)

    @property
    def pattern(self) -> str:
        """A regular expression for editors: it checks form and unit, not the range."""
        names = "|".join(re.escape(unit) for unit in self.units)
        return rf"^{NUMBER} ?({names}){'?' if self.bare else ''}$"


TIME = Quantity(
    "a time",
    {"ns": 1, "us": 10**3, "ms": 10**6, "s": NS_PER_S, "min": 60 * NS_PER_S, "h": 3600 * NS_PER_S},
    least=0,
    most=24 * 3600 * NS_PER_S,
    example="10 ms",
)
"""Times in ns."""

RATE = Quantity(
    "a rate",
    {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9},
    least=1000,
    most=100 * 10**9,
    example="10 Mbit/s",
)
"""Rates in bit/s; prefixes are powers of 1000."""

SIZE = Quantity(
    "a size",
    {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    least=0,
    most=2**40,
    example="1500",
    bare="B",
)
"""Sizes in bytes; prefixes are powers of 1024; a bare number means bytes."""

PERCENT_ALLOWED = "a percentage from 0 % to 100 %, such as '0.1 %'"
PERCENT_PATTERN = rf"^{NUMBER} ?%$"

MIPS_VALUES = tuple(Decimal(1000) / 2**shift for shift in range(MAX_SHIFT + 1))
"""Million instructions a second that virtual time can give: 2^shift ns an instruction."""

MIPS_ALLOWED = ", ".join(f"{mips.normalize():f}" for mips in MIPS_VALUES)


def split(value: object) -> tuple[Decimal | None, str | None]:
    """Number and unit of `value`; number is None when it does not begin with one. Booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None, None
    match = _TEXT.fullmatch(str(value))
    if match is None:
        return None, None
    return Decimal(match["number"]), match["unit"]


def parse_percent(value: object) -> Decimal:
    """A fraction from 0 to 1, exact, from text such as `5 %`; the sign is required."""
    number, unit = split(value)
    if number is None:
        raise BadInput(f"{value!r} is not a percentage", allowed=PERCENT_ALLOWED)
    if unit != "%":
        wrong = "no unit" if unit is None else f"the wrong unit {unit!r}"
        raise BadInput(f"{str(value)!r} has {wrong}", allowed=PERCENT_ALLOWED)
    if number < 0:
        raise BadInput(f"{str(value)!r} is negative", allowed=PERCENT_ALLOWED)
    if number > 100:
        raise BadInput(f"{str(value)!r} is out of range", allowed=PERCENT_ALLOWED)
    return number / 100


def show_percent(fraction: Decimal) -> str:
    """The percentage that `parse_percent` reads as `fraction`."""
    return f"{(fraction * 100).normalize():f} %"


def parse_mips(value: object) -> Decimal:
    """Instructions a microsecond, one of MIPS_VALUES."""
    number, unit = split(value)
    if number is None or unit is not None:
        raise BadInput(f"{value!r} is not a number of mips", allowed=MIPS_ALLOWED)
    if number not in MIPS_VALUES:
        raise BadInput(f"{value!s} mips is not a power of two of ns an instruction", allowed=MIPS_ALLOWED)
    return number.normalize()


def icount_shift(mips: Decimal) -> int:
    """log2 of the ns an instruction takes at `mips` (QEMU's `-icount shift`)."""
    return MIPS_VALUES.index(mips)


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 call`, `2 calls`, `3 mismatches`, `4 entries`."""
    plural = (
        f"{noun}es"
        if noun.endswith("ch")
        else f"{noun[:-1]}ies"
        if noun.endswith(("try", "ply", "ery"))
        else f"{noun}s"
    )
    return f"{count} {noun if count == 1 else plural}"
