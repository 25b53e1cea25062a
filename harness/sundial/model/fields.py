# SPDX-License-Identifier: Apache-2.0
"""Field types of topologies and scenarios: each has a parser, a printer and a JSON Schema for editors.

A marker goes into `Annotated`: `rate: Annotated[int, In(RATE)]` is an int in base units, written `10 Mbit/s`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Interface, IPv4Network, NetmaskValueError
from typing import Any

from pydantic import ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from sundial import units
from sundial.described import Described
from sundial.errors import BadInput
from sundial.model.daemon import HOST_ALLOWED, DaemonUri, parse_host

NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
NAME_MOST = 32
NAME_ALLOWED = f"up to {NAME_MOST} lower-case letters, digits and single hyphens, beginning with a letter"
MAPPED_DEVICE = "vmmc0"
"""The interface of a machine to a segment that carries stores, not frames."""
DEVICE_ALLOWED = f"eth0 to eth7, {MAPPED_DEVICE}"
DEVICE_PORT_ALLOWED = "up to 15 lower-case letters and digits, beginning with a letter"
PORT_ALLOWED = "MACHINE:INTERFACE, such as 'client:eth0'"
MAC_ALLOWED = "a unicast MAC address, such as '02:00:00:00:00:01'"
ADDRESS_ALLOWED = "an IPv4 host address with its prefix length from 8 to 30, such as '10.0.0.1/24'"
NETWORK_ALLOWED = "an IPv4 network with its prefix length from 8 to 32, such as '10.1.0.0/24'"
HOST_ADDRESS_ALLOWED = "an IPv4 address, such as '10.0.0.254'"
NETEM_ALLOWED = "the words after 'netem' in a tc command line, such as 'delay 10ms loss 1%'"


class Strict(Described):
    """Base of every model here: frozen, unknown fields rejected, built at its first use."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, defer_build=True)


def written(text: str) -> Any:
    """A field's default as the user would write it; the field's parser reads it."""
    return Field(default=text)


class Marker:
    """Base of the markers: a parser of YAML values, a printer back to YAML, and a JSON Schema."""

    def parse(self, value: object) -> Any:
        raise NotImplementedError

    def show(self, value: Any) -> Any:
        return value

    def schema(self) -> dict[str, Any]:
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        printer = core_schema.plain_serializer_function_ser_schema(self.show)
        return core_schema.no_info_plain_validator_function(self.parse, serialization=printer)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return self.schema()


@dataclass(frozen=True)
class In(Marker):
    """A quantity with its unit; the value is an int in base units."""

    kind: units.Quantity

    def parse(self, value: object) -> int:
        return self.kind.parse(value)

    def show(self, value: int) -> str:
        return self.kind.show(value)

    def schema(self) -> dict[str, Any]:
        types: list[str] | str = ["string", "integer"] if self.kind.bare else "string"
        return {"type": types, "pattern": self.kind.pattern, "x-allowed": self.kind.allowed}


@dataclass(frozen=True)
class Whole(Marker):
    """A whole number from `least` to `most`."""

    least: int
    most: int

    @property
    def allowed(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    def parse(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadInput(f"{value!r} is not a whole number", allowed=self.allowed)
        if not self.least <= value <= self.most:
            raise BadInput(f"{value} is out of range", allowed=self.allowed)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most, "x-allowed": self.allowed}


@dataclass(frozen=True)
class OneOrByPort(Marker):
    """One quantity for every port, or a mapping from ports to quantities."""

    kind: units.Quantity

    def parse(self, value: object) -> int | dict[str, int]:
        if not isinstance(value, dict):
            return self.kind.parse(value)
        amounts = {}
        for port, amount in value.items():
            PORT.parse(port)
            try:
                amounts[port] = self.kind.parse(amount)
            except BadInput as error:
                raise error.within(field=port) from error
        return amounts

    def show(self, value: int | dict[str, int]) -> str | dict[str, str]:
        if isinstance(value, dict):
            return {port: self.kind.show(amount) for port, amount in value.items()}
        return self.kind.show(value)

    def schema(self) -> dict[str, Any]:
        one = In(self.kind).schema()
        by_port = {"type": "object", "propertyNames": PORT.schema(), "additionalProperties": one}
        return {"anyOf": [one, by_port], "x-allowed": f"{self.kind.allowed}, or one by port"}


class Percent(Marker):
    """A percentage with its sign; the value is a Decimal from 0 to 1."""

    def parse(self, value: object) -> Any:
        return units.parse_percent(value)

    def show(self, value: Any) -> str:
        return units.show_percent(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": units.PERCENT_PATTERN, "x-allowed": units.PERCENT_ALLOWED}


class Mips(Marker):
    """Million instructions a second, from the values that virtual time supports; the value is a Decimal."""

    def parse(self, value: object) -> Any:
        return units.parse_mips(value)

    def show(self, value: Any) -> int | float:
        return int(value) if value == int(value) else float(value)

    def schema(self) -> dict[str, Any]:
        return {"enum": [self.show(mips) for mips in units.MIPS_VALUES], "x-allowed": units.MIPS_ALLOWED}


@dataclass(frozen=True)
class Text(Marker):
    """Text of a given form, at most `most` characters."""

    pattern: re.Pattern[str]
    allowed: str
    most: int = 4096

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or len(value) > self.most or not self.pattern.fullmatch(value):
            raise BadInput(f"{value!r} is invalid", allowed=self.allowed)
        return value

    def schema(self) -> dict[str, Any]:
        return {
            "type": "string",
            "pattern": f"^(?:{self.pattern.pattern})$",
            "maxLength": self.most,
            "x-allowed": self.allowed,
        }


@dataclass(frozen=True)
class NameOrFile(Text):
    """A name, or the path of a file, which the loader reads and replaces by its name before fields are checked."""

    def schema(self) -> dict[str, Any]:
        pattern = rf"^(?:{self.pattern.pattern})$|/|\.ya?ml$"
        return {"type": "string", "pattern": pattern, "x-allowed": f"{self.allowed}; or the path of a file"}


class Flag(Marker):
    """true or false, and nothing similar."""

    def parse(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise BadInput(f"{value!r} is not a truth value", allowed="true, false")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean", "x-allowed": "true, false"}


class Address(Marker):
    """An IPv4 host address with prefix length; the value is an IPv4Interface."""

    def parse(self, value: object) -> IPv4Interface:
        try:
            if not isinstance(value, str) or "/" not in value:
                raise AddressValueError
            address = IPv4Interface(value)
        except (AddressValueError, NetmaskValueError) as error:
            raise BadInput(f"{value!r} is not an IPv4 address with prefix length", allowed=ADDRESS_ALLOWED) from error
        network = address.network
        if not 8 <= network.prefixlen <= 30 or address.ip in (network.network_address, network.broadcast_address):
            raise BadInput(f"{value!r} is not a host's address", allowed=ADDRESS_ALLOWED)
        if address.is_multicast or address.is_loopback or address.ip.packed[0] in (0, 255):
            raise BadInput(f"{value!r} is not a host's address", allowed=ADDRESS_ALLOWED)
        return address

    def show(self, value: IPv4Interface) -> str:
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^[0-9.]+/[0-9]+$", "x-allowed": ADDRESS_ALLOWED}


class NetworkAddress(Marker):
    """An IPv4 network with its prefix length; the value is an IPv4Network."""

    def parse(self, value: object) -> IPv4Network:
        try:
            if not isinstance(value, str) or "/" not in value:
                raise AddressValueError
            network = IPv4Network(value)
        except ValueError as error:
            raise BadInput(f"{value!r} is not an IPv4 network", allowed=NETWORK_ALLOWED) from error
        if not 8 <= network.prefixlen <= 32 or network.network_address.packed[0] == 0:
            raise BadInput(f"{value!r} is out of range", allowed=NETWORK_ALLOWED)
        return network

    def show(self, value: IPv4Network) -> str:
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^[0-9.]+/[0-9]+$", "x-allowed": NETWORK_ALLOWED}


class HostAddress(Marker):
    """An IPv4 address without prefix length; the value is an IPv4Address."""

    def parse(self, value: object) -> IPv4Address:
        try:
            if not isinstance(value, str):
                raise AddressValueError
            return IPv4Address(value)
        except AddressValueError as error:
            raise BadInput(f"{value!r} is not an IPv4 address", allowed=HOST_ADDRESS_ALLOWED) from error

    def show(self, value: IPv4Address) -> str:
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^[0-9.]+$", "x-allowed": HOST_ADDRESS_ALLOWED}


class Mac(Marker):
    """A unicast MAC address, lower case."""

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", value):
            raise BadInput(f"{value!r} is not a MAC address", allowed=MAC_ALLOWED)
        if int(value[:2], 16) & 1 or int(value.replace(":", ""), 16) == 0:
            raise BadInput(f"{value!r} is not a unicast address", allowed=MAC_ALLOWED)
        return value.lower()

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$", "x-allowed": MAC_ALLOWED}


class HostUri(Marker):
    """A daemon on another computer, reached through ssh."""

    def parse(self, value: object) -> DaemonUri:
        if isinstance(value, DaemonUri):
            return value
        if not isinstance(value, str):
            raise BadInput(f"{value!r} is not a URI", allowed=HOST_ALLOWED)
        return parse_host(value)

    def show(self, value: Any) -> str:
        return str(value.text)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^qemu\+ssh://[^/]+/(session|system)(\?.*)?$", "x-allowed": HOST_ALLOWED}


NAMED = Text(NAME, NAME_ALLOWED, NAME_MOST)
NAMED_OR_FILE = NameOrFile(NAME, NAME_ALLOWED, NAME_MOST)
DEVICE = Text(re.compile(rf"eth[0-7]|{MAPPED_DEVICE}"), DEVICE_ALLOWED)
DEVICE_PORT = Text(re.compile(r"[a-z][a-z0-9]{0,14}"), DEVICE_PORT_ALLOWED)
"""The name of a device's port; those of machines, `DEVICE`, are such names too."""
PORT = Text(re.compile(rf"{NAME.pattern}:{DEVICE_PORT.pattern.pattern}"), PORT_ALLOWED, NAME_MOST + 16)
PORT_OR_BOTH = Text(
    re.compile(rf"both|{PORT.pattern.pattern}"), f"both, or the sending port: {PORT_ALLOWED}", PORT.most
)
NETEM = Text(re.compile(r"(?:[a-z0-9]+(?:[.][0-9]+)?[a-z%]*(?: +|$))*"), NETEM_ALLOWED, 256)
PROSE = Text(re.compile(r"[\s\S]*\S[\s\S]*"), "some text")
