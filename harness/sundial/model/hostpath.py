# SPDX-License-Identifier: Apache-2.0
"""A path on this host, as a topology writes it; `load.py` makes it absolute."""

from __future__ import annotations

from typing import Any

from sundial.errors import BadInput
from sundial.model.fields import Marker

PATH_MOST = 1024
"""Most bytes of a path on the host or in a machine; each name in it has at most NAME_MOST."""
NAME_MOST = 255
HOST_PATH_ALLOWED = "a path on this host, from the folder of the file that names it"


class HostPath(Marker):
    """A file or folder on the host."""

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not value or not value.isprintable() or too_long(value):
            raise BadInput(f"{value!r} is not a path", allowed=HOST_PATH_ALLOWED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "maxLength": PATH_MOST, "x-allowed": HOST_PATH_ALLOWED}


def too_long(path: str) -> bool:
    """True if Linux rejects the path for its length."""
    encoded = path.encode()
    return len(encoded) > PATH_MOST or max(map(len, encoded.split(b"/"))) > NAME_MOST
