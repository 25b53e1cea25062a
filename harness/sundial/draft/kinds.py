# SPDX-License-Identifier: Apache-2.0
"""The files of a new kind of workload or image: those of the toy, renamed. Reads them; the renaming is pure."""

from __future__ import annotations

import re
from pathlib import Path

from sundial.errors import BadInput

TOYS = Path("harness/tests/kinds/added")
"""In a checkout: kinds that tests lay over a copy of the tree, build and run."""
FOLDERS = {
    "workload": ("harness/sundial/workloads/toy", "guest-apps/toy", "harness/scenarios/toy.yaml"),
    "image": ("images/toy",),
}
NAME = re.compile(r"[a-z][a-z0-9]{1,15}")
NAME_ALLOWED = "2 to 16 lower-case letters and digits, beginning with a letter"
_TOPOLOGY = "two-hosts-10base-t"
_MAGIC = "TOY1"
"""Four bytes in each datagram of a toy, which stay."""
_OF_THE_TESTS = re.compile(r"^statistic: toy\n", re.MULTILINE)


def files(kind: str, name: str, checkout: Path) -> dict[Path, tuple[str, int]]:
    """Text and mode of each file of the new kind, by path in the checkout. Raises BadInput."""
    if not NAME.fullmatch(name) or "toy" in name:
        raise BadInput(f"{name!r} is not a name of a kind", field="NAME", allowed=NAME_ALLOWED)
    toys = checkout / TOYS
    if not toys.is_dir():
        raise BadInput(f"this package has no sources, so it takes no {kind}", field="KIND", allowed="a checkout")
    found: dict[Path, tuple[str, int]] = {}
    for part in FOLDERS[kind]:
        place = toys / part
        for path in [place] if place.is_file() else sorted(place.iterdir()):
            if path.is_file():
                inner = path.relative_to(toys).as_posix()
                found[Path(renamed(inner, name))] = renamed(path.read_text(), name), path.stat().st_mode & 0o777
    return found


def renamed(text: str, name: str) -> str:
    """The toy's text, or a path of it, as the new kind's."""
    text = _OF_THE_TESTS.sub("", text).replace("two-toys", _TOPOLOGY)
    parts = text.split(_MAGIC)
    for old, new in (("toys", f"{name} datagrams"), ("Toys", f"{name.capitalize()} datagrams")):
        parts = [re.sub(rf"\b{old}\b(?! ?[=+;,)\]])", new, part) for part in parts]
    for old, new in (("toy", name), ("Toy", name.capitalize()), ("TOY", name.upper())):
        parts = [part.replace(old, new) for part in parts]
    return _MAGIC.join(parts)
