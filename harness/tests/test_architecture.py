# SPDX-License-Identifier: Apache-2.0
"""The law of direction (ARCHITECTURE.md, rule 3): a room imports only what is below it.

Walks the imports of all sources, those inside functions and by `import_module` included.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sundial"

ROOMS: dict[str, set[str]] = {
    "": set(),
    "printable": set(),
    "whole": set(),
    "errors": {"printable"},
    "faults": {"errors", "printable"},
    "limits": {"errors"},
    "kinds": set(),
    "units": {"errors", "printable"},
    "described": set(),
    "seams": {"described"},
    "expect": set(),
    "model": {"", "described", "errors", "printable", "kinds", "units", "expect"},
    "plan": {"", "errors", "printable", "kinds", "units", "seams", "model"},
    "observe": {"", "errors", "printable", "whole", "kinds", "seams", "expect"},
    "machines": {"", "errors", "printable", "whole", "model", "plan"},
    "run": {
        "",
        "errors",
        "faults",
        "limits",
        "printable",
        "whole",
        "units",
        "model",
        "plan",
        "seams",
        "machines",
        "observe",
    },
    "verify": {"", "errors", "printable", "whole", "kinds", "units", "seams", "expect", "model", "plan", "observe"},
    "judge": {"", "errors", "kinds", "seams", "expect", "model", "observe", "verify"},
    "report": {"", "errors", "printable", "whole", "kinds", "units", "expect", "model", "plan", "observe", "verify"},
    "shelf": {"", "errors", "whole"},
    "data": {"", "described", "errors", "whole", "model", "observe", "verify"},
    "draft": {"errors", "whole", "model"},
    "interface": {"", "errors", "observe", "verify"},
    "compare": {"", "errors", "printable", "whole", "units", "seams", "model", "observe", "report"},
    "reproduce": {
        "",
        "errors",
        "printable",
        "whole",
        "kinds",
        "units",
        "expect",
        "model",
        "plan",
        "run",
        "observe",
        "report",
    },
    "sweep": {
        "",
        "errors",
        "printable",
        "whole",
        "units",
        "model",
        "plan",
        "machines",
        "run",
        "observe",
        "verify",
        "report",
        "compare",
        "shelf",
        "reproduce",
    },
    "replay": {"", "errors", "units", "model", "plan", "machines", "run", "observe", "sweep"},
    "cli": {
        "",
        "described",
        "errors",
        "faults",
        "limits",
        "printable",
        "whole",
        "kinds",
        "units",
        "model",
        "plan",
        "machines",
        "run",
        "observe",
        "verify",
        "report",
        "shelf",
        "draft",
        "interface",
        "data",
        "compare",
        "reproduce",
        "sweep",
        "replay",
    },
}
"""What each room of sundial/ may import beside itself; "" is the package's own page."""

OF_NOTEBOOKS = {"data"}
"""What the package's own page offers to notebooks. It imports that when it is asked for."""
OF_KINDS = {"verify": {"judge"}}
"""What the modules of a kind may import beside that: the verifiers of kinds stand above `judge`, the stage below it."""

FAMILIES = ("segments", "workloads", "papers")
STAGES = ("expect", "model", "plan", "observe", "verify", "report", "reproduce")
RANKS = {
    # Modules of kinds whose names are no stage's: the stage whose rules they keep.
    "sunrpc/limits": "model",
    "sunrpc/scenario": "model",
    "mbcf/transports": "model",
    "mbcf/wire": "expect",
    "vmmc/wire": "expect",
    "kedziera98/statistic": "model",
    "functions": "expect",
    "function_words": "model",
    "server_death": "model",
    "libraries": "verify",
    "reporting": "verify",
    "switches": "verify",
    "function_calls": "model",
    "function_options": "plan",
    "function_lines": "verify",
    "function_table": "report",
    "sockets": "model",
    "linux_functions": "plan",
    "sss_functions": "plan",
}
SHARED = {
    # A kind uses another one's vocabulary: the whole list.
    ("papers", "bilas97"): {"vmmc"},
    ("segments", "link"): {"netem"},
    ("workloads", "shrimprpc"): {"vmmc"},
    ("workloads", "sunrpc"): {"mbcf", "vmmc"},
}


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each module of ours that is imported, names of modules taken apart."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("import_module", "__import__", "named_room", "able_room"):
                yield node.lineno, str(node.args[0].value)


def place(parts: tuple[str, ...]) -> tuple[str, str, str]:
    """(room, family, kind) of a module, given by its names below the package; a kind's module has its stage's room."""
    if not parts or parts[0] not in FAMILIES:
        known = parts[0] if parts and parts[0] in ROOMS else ""
        return known, "", ""
    family, rest = parts[0], parts[1:]
    if not rest:
        return "kinds", family, ""
    if (PACKAGE / family / f"{rest[0]}.py").is_file():
        return RANKS[rest[0]], family, ""
    kind = rest[0]
    if len(rest) == 1:
        return "kinds", family, kind
    stage = next((stage for stage in STAGES if rest[1] == stage or rest[1].startswith(f"{stage}_")), None)
    if stage is None:
        # A paper's own pages are the last stage's.
        stage = RANKS.get(f"{kind}/{rest[1]}", "reproduce" if family == "papers" else "")
        assert stage, f"name {'/'.join(parts)} after a stage, or give it a rank"
    return stage, family, kind


def _shared(family: str, kind: str, target_family: str, target_kind: str) -> bool:
    """A paper may use the workloads that it runs; other kinds what SHARED lists."""
    return (family, target_family) == ("papers", "workloads") or target_kind in SHARED.get((family, kind), set())


def violations(path: Path, source: str) -> Iterator[str]:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    room, family, kind = place(parts)
    for line, name in imports(source):
        names = tuple(name.split("."))
        if names[0] != "sundial":
            continue
        target, target_family, target_kind = place(names[1:])
        where = f"{path.relative_to(ROOT)}:{line}: {name}"
        if path == PACKAGE / "__init__.py" and target in OF_NOTEBOOKS:
            continue
        if target_family and not family:
            yield f"{where}: a stage names a kind"
        elif target_kind not in ("", kind) and not _shared(family, kind, target_family, target_kind):
            yield f"{where}: kind {kind} uses kind {target_kind}"
        elif target != room and target not in ROOMS[room] | (OF_KINDS.get(room, set()) if family else set()):
            yield f"{where}: {room or 'the package'} must not import {target}"


def test_every_room_keeps_the_law() -> None:
    found = [line for path in sorted(PACKAGE.rglob("*.py")) for line in violations(path, path.read_text())]
    assert found == []


def test_the_table_has_no_circle() -> None:
    placed: set[str] = set()
    while len(placed) < len(ROOMS):
        free = {room for room, below in ROOMS.items() if room not in placed and below <= placed}
        assert free, f"a circle among {sorted(set(ROOMS) - placed)}"
        placed |= free


def test_every_room_is_in_the_table() -> None:
    there = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    there |= {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert there == (set(ROOMS) - {""}) | set(FAMILIES)


def test_expect_needs_the_standard_library_alone() -> None:
    import sys

    allowed = set(sys.stdlib_module_names) | {"sundial"}
    for path in [*PACKAGE.glob("expect/*.py"), *PACKAGE.glob("workloads/*/expect*.py")]:
        for line, name in imports(path.read_text()):
            assert name.split(".")[0] in allowed, f"{path.relative_to(ROOT)}:{line}: {name}"


@pytest.mark.parametrize(
    ("file", "source", "words"),
    [
        ("model/x.py", "def f():\n    from sundial.plan.jobs import encode_job\n", "model must not import plan"),
        ("plan/x.py", "from sundial import run\n", "plan must not import run"),
        ("run/x.py", "room = import_module('sundial.report.build')\n", "run must not import report"),
        ("verify/x.py", "from sundial.judge.replay import Replay\n", "verify must not import judge"),
        ("verify/x.py", "from sundial.workloads.raw.expect import expect_call\n", "a stage names a kind"),
        ("workloads/raw/model.py", "from sundial.workloads.sunrpc.model import KIND\n", "kind raw uses kind sunrpc"),
        ("workloads/raw/model.py", "import sundial.workloads.raw.verify\n", "model must not import verify"),
        ("segments/hub/plan.py", "from sundial.segments.hub import report\n", "plan must not import report"),
    ],
)
def test_the_walk_sees(file: str, source: str, words: str) -> None:
    (found,) = violations(PACKAGE / file, source)
    assert words in found
