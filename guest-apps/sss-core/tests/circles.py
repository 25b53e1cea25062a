#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of one folder that name each other in a circle, measured from their object files.

    circles.py [--allow "NAME NAME ..."]... [--upcall NAME]... FOLDER | OBJECT...

FOLDER holds the object files (*.o) of one folder of C sources, compiled with or without -flto. An arrow goes from the
file that uses a function or variable to the one that defines it. A circle is a largest set of files in which each leads
to each other one. Exits with 1 unless the circles are exactly those that --allow writes down, and shows the arrows:
cut one of them; or, where a written circle has become smaller, write down the smaller one. An upcall is a function
that lower files call by its name on purpose: its arrows do not count.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

Arrows = dict[str, dict[str, set[str]]]
"""File -> other file -> the names it uses of it."""


def arrows_between(
    defined: Mapping[str, set[str]], used: Mapping[str, set[str]], upcalls: Iterable[str] = ()
) -> Arrows:
    """Arrows among files that define and use these names; upcalls and names from elsewhere are left out."""
    home = {name: file for file, names in defined.items() for name in names - set(upcalls)}
    arrows: Arrows = {file: {} for file in defined}
    for file, names in used.items():
        for name in names:
            target = home.get(name, file)
            if target != file:
                arrows[file].setdefault(target, set()).add(name)
    return arrows


def circles_in(arrows: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Strongly connected components of more than one file, sorted."""
    reached = {file: _reachable(arrows, file) for file in arrows}
    circles = {frozenset(other for other in seen if file in reached[other]) for file, seen in reached.items()}
    return sorted(sorted(circle) for circle in circles if len(circle) > 1)


def _reachable(arrows: Mapping[str, Iterable[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(arrows[start])
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            waiting.extend(arrows[file])
    return seen


def complaints(arrows: Arrows, allowed: Iterable[Iterable[str]]) -> list[str]:
    """Lines about circles that are not written down, and about written ones that are not there."""
    found = circles_in(arrows)
    written = sorted(sorted(circle) for circle in allowed)
    lines: list[str] = []
    for circle in found:
        if circle in written:
            continue
        lines.append(f"circle of {len(circle)} files: {' '.join(circle)}")
        for file in circle:
            for target in sorted(set(arrows[file]) & set(circle)):
                lines.append(f"  {file} -> {target}: {' '.join(sorted(arrows[file][target]))}")
    lines += [f"allowed, but not there: {' '.join(circle)}" for circle in written if circle not in found]
    return lines


def symbols(path: Path) -> tuple[set[str], set[str]]:
    """The names that an object file defines, and those that it uses from others."""
    done = subprocess.run(["gcc-nm", "-P", str(path)], capture_output=True, text=True, check=True)
    defined: set[str] = set()
    used: set[str] = set()
    for line in done.stdout.splitlines():
        name, kind = line.split()[:2]
        if kind in "Uwv":
            used.add(name)
        elif kind.isupper():
            defined.add(name)
    return defined, used


def objects_of(paths: list[Path]) -> list[Path]:
    return [path for given in paths for path in (sorted(given.glob("*.o")) if given.is_dir() else [given])]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="circles.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--allow", action="append", default=[], metavar="NAMES", help="files that may be one circle")
    parser.add_argument("--upcall", action="append", default=[], metavar="NAME", help="a function called upwards")
    parser.add_argument("objects", nargs="+", type=Path, metavar="FOLDER | OBJECT")
    options = parser.parse_args(arguments)
    objects = objects_of(options.objects)
    if not objects:
        parser.error("no object files there")
    names = {path.stem: symbols(path) for path in objects}
    defined = {file: own for file, (own, _) in names.items()}
    arrows = arrows_between(defined, {file: used for file, (_, used) in names.items()}, options.upcall)
    lines = complaints(arrows, [circle.split() for circle in options.allow])
    lines += [f"upcall, but not defined: {name}" for name in options.upcall if name not in set().union(*defined.values())]
    if lines:
        print(*lines, sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
