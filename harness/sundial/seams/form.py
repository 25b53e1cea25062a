# SPDX-License-Identifier: Apache-2.0
"""Common parts of all formats."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import ConfigDict, Field, Strict

from sundial.described import Described

ItemT = TypeVar("ItemT")

Items = Annotated[tuple[ItemT, ...], Strict(False)]
"""A JSON array."""
Natural = Annotated[int, Field(ge=0, strict=True)]
Instant = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""Nanoseconds for guests: 0 to 2^63 - 1."""
Mac = Annotated[str, Field(pattern=r"^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$")]
"""A unicast MAC address."""
_OCTET = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_ADDRESS = rf"{_OCTET}(\.{_OCTET}){{3}}"
Address = Annotated[str, Field(pattern=rf"^{_ADDRESS}$")]
Network = Annotated[str, Field(pattern=rf"^{_ADDRESS}/([1-9]|[12]\d|3[0-2])$")]
"""An address with its prefix length."""
Device = Annotated[str, Field(pattern=r"^(eth[0-7]|vmmc0)$")]
DevicePort = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,14}$")]
"""An interface of a device without a guest."""


class Form(Described):
    """An object with exactly these fields. Nothing is converted: "1" is not an integer."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)


class OpenForm(Form):
    """An object to which a kind or an application adds further fields."""

    model_config = ConfigDict(extra="allow")
