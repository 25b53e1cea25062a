# SPDX-License-Identifier: Apache-2.0
"""Field types of programs."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sundial.errors import BadInput
from sundial.model.fields import NAME, Marker, Text

PORT_MOST = 65535

VARIABLE = Text(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "a name such as LANG", 64)
FILE = Text(re.compile(r"(?:/[\w.+@-]+)+"), "an absolute path such as /srv/index.html", 250)


class Names(Marker):
    """Names in a list or with commas between."""

    ALLOWED = "names of programs"

    def parse(self, value: object) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            raise BadInput(f"{value!r} is not a list of names", allowed=self.ALLOWED)
        names = [part.strip() for part in parts]
        for name in names:
            if not NAME.fullmatch(name):
                raise BadInput(f"{name!r} is not a name", allowed=self.ALLOWED)
        return tuple(dict.fromkeys(names))

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        text = {"type": "string"}
        return {"anyOf": [text, {"type": "array", "items": text}], "x-allowed": self.ALLOWED}


class PortOrName(Marker):
    """A port by its number, or by a name of `ports`."""

    ALLOWED = f"a number from 1 to {PORT_MOST}, or a name of `ports`"

    def parse(self, value: object) -> int | str:
        if isinstance(value, str) and NAME.fullmatch(value):
            return value
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= PORT_MOST:
            raise BadInput(f"{value!r} is not a port", allowed=self.ALLOWED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": ["integer", "string"], "x-allowed": self.ALLOWED}


class Ports(Marker):
    """A port, or ports from one to another."""

    MOST: ClassVar[int] = 1024
    ALLOWED = f"a number from 1 to {PORT_MOST}, or up to {MOST} ports such as 5000-5010"

    def parse(self, value: object) -> int | str:
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= PORT_MOST:
            return value
        if isinstance(value, str) and (found := re.fullmatch(r"([1-9]\d{0,4})\s*-\s*([1-9]\d{0,4})", value)):
            low, high = map(int, found.groups())
            if low < high <= PORT_MOST and high - low < self.MOST:
                return f"{low}-{high}"
        raise BadInput(f"{value!r} is not a port", allowed=self.ALLOWED)

    def schema(self) -> dict[str, Any]:
        return {"type": ["integer", "string"], "x-allowed": self.ALLOWED}


def numbers_of(ports: int | str | None) -> range:
    """The ports of a value of `Ports`."""
    if ports is None:
        return range(0)
    low, _, high = str(ports).partition("-")
    return range(int(low), int(high or low) + 1)


class EtherType(Marker):
    """A type of frames; the value is an int."""

    ARP: ClassVar[int] = 0x0806
    _OTHERS: ClassVar[frozenset[int]] = frozenset({0x0800, 0x88B5})
    """IPv4, whose frames have ports, and what Sundial's machines say to one another."""
    ALLOWED = "arp, or a number from 0x0600 to 0xffff, other than 0x0800 (use tcp, udp or icmp) and 0x88b5"

    def parse(self, value: object) -> int:
        if value == "arp":
            return self.ARP
        if isinstance(value, str) and re.fullmatch("0x[0-9a-fA-F]{1,8}", value):
            value = int(value, 16)
        known = isinstance(value, int) and not isinstance(value, bool)
        if not known or not 0x0600 <= value <= 0xFFFF or value in self._OTHERS:  # type: ignore[operator]
            raise BadInput(f"{value!r} is not a type of frames", allowed=self.ALLOWED)
        return int(value)  # type: ignore[call-overload, no-any-return]

    def show(self, value: int) -> str:
        return "arp" if value == self.ARP else f"0x{value:04x}"

    def schema(self) -> dict[str, Any]:
        return {"type": ["integer", "string"], "x-allowed": self.ALLOWED}


class Pattern(Marker):
    """A regular expression of Python."""

    ALLOWED = "a regular expression"

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not value:
            raise BadInput(f"{value!r} is not a regular expression", allowed=self.ALLOWED)
        try:
            re.compile(value)
        except re.error as error:
            raise BadInput(f"{value!r} is not a regular expression: {error}", allowed=self.ALLOWED) from None
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "x-allowed": self.ALLOWED}


class Figure(Pattern):
    """A regular expression of Python with one group, for a number."""

    ALLOWED = r"a regular expression with one group, such as '(\d+) requests'"

    def parse(self, value: object) -> str:
        text = super().parse(value)
        if re.compile(text).groups != 1:
            raise BadInput(f"{text!r} has {re.compile(text).groups} groups", allowed=self.ALLOWED)
        return text


class Unused(Marker):
    """A field of other workloads that this one does not have: it keeps its default."""

    def __init__(self, name: str, default: object, instead: str) -> None:
        self._name, self._default, self._instead = name, default, instead

    def parse(self, value: object) -> Any:
        if value != self._default:
            raise BadInput(f"app: command has no field {self._name}", allowed=self._instead)
        return self._default

    def schema(self) -> dict[str, Any]:
        return {"const": self._default, "x-allowed": self._instead}
