# SPDX-License-Identifier: Apache-2.0
"""What a run recorded of its topology, with other values: a network, or one line that says what is wrong."""

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.recorded import recorded_network

RECORDED = Path(__file__).parents[1] / "seams/golden/run/complete.json"
VALUES: tuple[Any, ...] = (None, [], {}, "x", 7, -1)


def _places(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in pairs:
        yield (*path, key)
        yield from _places(value, (*path, key))


DOCUMENT = json.loads(RECORDED.read_text())
PLACES = list(_places(DOCUMENT["topology"]))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_a_topology_with_another_value_is_a_network_or_bad_input(place: tuple[Any, ...]) -> None:
    for value in (*VALUES, "gone"):
        document = copy.deepcopy(DOCUMENT)
        part = document["topology"]
        for key in place[:-1]:
            part = part[key]
        if value == "gone":
            del part[place[-1]]
        else:
            part[place[-1]] = value
        with contextlib.suppress(BadInput):
            recorded_network(document)
