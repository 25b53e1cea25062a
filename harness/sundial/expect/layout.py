# SPDX-License-Identifier: Apache-2.0
"""Where fields of packets are, as guest-apps/sss-core/wiregen.py writes it."""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """Where a field is, in bytes behind the head that it belongs to."""

    offset: int
    size: int

    @property
    def bytes(self) -> slice:
        """The part of that head, or of what begins with it."""
        return slice(self.offset, self.offset + self.size)
