# SPDX-License-Identifier: Apache-2.0
"""The tests that a change asks for: `python -m tests.changed [--since REVISION] [--tier gate|all]`, in harness/.

The law of direction (test_architecture.py) says which tests a module can break: those that import it, directly or not.
No stage names a kind, so a kind can break its own tests, those that name it, and runs that use it. Everything outside
Python has a suite by folder.
"""

from __future__ import annotations

import argparse
import functools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from sundial.model.catalog import names
from sundial.model.load import load_experiments, load_topology
from tests.test_architecture import FAMILIES, imports

HARNESS = Path(__file__).resolve().parents[1]
CHECKOUT = HARNESS.parent
Tier = Literal["gate", "all"]
IMAGE_TESTS = {
    "linux": "images/linux/tests",
    "linux-python": "images/linux-python/tests",
    "ssscore": "images/ssscore/tests",
}
LOAD = re.compile(r"\bload\(\"(segments|workloads|papers)\", \"(\w+)\"")
"""How a stage asks for the modules of all kinds."""
CRATES = {
    "wire": "sundial-wire",
    "core": "sundial-core",
    "segments": "sundial-segments",
    "io": "sundial-io",
    "cli": "sundial-fabric",
}
"""The fabric's folders and their crates, each before those that use it."""
SHARED_WITH_SSS_CORE = frozenset({"common", "dce", "echo", "job", "shrimp"})
"""Folders of guest-apps/ that SSS-CORE and its tests compile, too."""


class Step(NamedTuple):
    """A command that runs tests, or that builds what the next one needs."""

    suite: str
    argv: tuple[str, ...]
    """Run from the checkout's root."""


class Selection(NamedTuple):
    """What a change asks for, before it becomes commands."""

    steps: dict[str, Step]
    """By suite: what boots no machine and is not the harness's."""
    files: set[str]
    """Test files of the harness, relative to harness/."""
    scenarios: set[str]
    topologies: set[str]
    recorded: set[str]
    """Parts of names of recorded runs that damages are tried on."""
    folders: set[str]
    """Folders whose booted tests run: images, SSS-CORE's kernel."""


def steps(paths: Sequence[str], tier: Tier = "gate", checkout: Path = CHECKOUT) -> list[Step]:
    """Commands for changed files (relative to the checkout), cheap ones first; `all` adds what runs at night."""
    chosen = Selection({}, set(), set(), set(), set(), set())
    for path in paths:
        _choose(path, chosen, checkout)
    return list(_commands(chosen, tier))


def _choose(path: str, chosen: Selection, checkout: Path) -> None:
    room = path.split("/")
    match room:
        case ["harness", "fabric", *rest]:
            _fabric(rest, chosen)
        case ["harness", "clock" | "confine" as name, *_]:
            _make(f"harness/{name}", "test", chosen)
            if name == "clock":  # the fabric compiles what it shares with the plugin
                _crate("io", chosen)
            chosen.files.add(
                "tests/run/test_machines_vm.py" if name == "clock" else "tests/machines/test_confinement.py"
            )
            chosen.files.add("tests/run/test_faults_vm.py")
            chosen.scenarios.update(_using(images={"linux", "ssscore"}))
        case ["harness", "sundial", *rest] if path.endswith(".py"):
            _module(rest, chosen, checkout)
        case ["harness", "tests", *_] if path.endswith(".py"):
            chosen.files.update(_importing(path, checkout))
        case ["harness", "mutation" | "planted" | "benchmarks" as name, *_]:
            chosen.files.update(_in_folder(f"tests/{name}"))
        case ["harness", "scenarios", file] if file.endswith(".yaml"):
            chosen.files.update(("tests/model/test_shipped.py", "tests/plan/test_jobs.py"))
            chosen.scenarios.add(Path(file).stem)
        case ["harness", "wireshark", *_]:
            chosen.files.update(file for file in _tests(checkout) if re.search("dissector|tshark", Path(file).name))
        case ["harness", *_]:
            chosen.files.update(_mentioning(room[-1], checkout))
        case ["topologies", file, *_] if (name := Path(file).stem) in names("topology"):
            chosen.files.add("tests/model/test_shipped.py")
            chosen.topologies.add(name)
            chosen.scenarios.update(_using(topologies={name}))
        case ["guest-apps", "sss-core", *_]:
            _make("guest-apps/sss-core", "check", chosen)
            chosen.folders.update(("guest-apps/sss-core/tests", IMAGE_TESTS["ssscore"]))
            chosen.files.update(_booting("ssscore|sss-core|backplane", checkout))
            chosen.scenarios.update(_using(images={"ssscore"}))
        case ["guest-apps", name, *_]:
            _make("guest-apps", "check", chosen)
            if name in SHARED_WITH_SSS_CORE:
                _make("guest-apps/sss-core", "check", chosen)
            chosen.scenarios.update(_using(kinds={{"echo": "sunrpc", "shrimp": "shrimprpc"}.get(name, name)}))
            if name in ("runner", "common", "job", "python"):
                chosen.folders.update((IMAGE_TESTS["linux"], IMAGE_TESTS["linux-python"]))
                chosen.files.add("tests/run/test_faults_vm.py")
                chosen.scenarios.update(("quickstart", "santos18-local"))
        case ["images", name, *_]:
            chosen.folders.update([f"images/{name}/tests"] if name in IMAGE_TESTS else IMAGE_TESTS.values())
            chosen.steps["images"] = _pytest("images", "images", "not vm and not night")
            chosen.scenarios.update(_using(images={name}))
        case ["buildroot-configs", *_]:
            chosen.steps["buildroot-configs"] = _pytest("buildroot-configs", "buildroot-configs", "not night")
        case [("README.md" | "CONTRIBUTING.md" | "ARCHITECTURE.md" | "LIMITATIONS.md") as page] | ["docs", page]:
            chosen.files.update(_mentioning(page, checkout))


def _fabric(rest: Sequence[str], chosen: Selection) -> None:
    """The crate's own tests, then those of the crates that use it, then runs over its wires."""
    folders = list(CRATES)
    first = folders.index(rest[0]) if rest and rest[0] in CRATES else 0
    for folder in folders[first:]:
        _crate(folder, chosen)
    kind = rest[2] if len(rest) > 3 and rest[:2] == ["segments", "src"] else None
    chosen.scenarios.update(_using(kinds={kind}) if kind else _using(images={"linux", "ssscore"}))
    if kind:
        chosen.topologies.update(_topologies(kind))


def _crate(folder: str, chosen: Selection) -> None:
    argv = ("make", "--no-print-directory", "check-fabric", f"CRATES=-p {CRATES[folder]}")
    chosen.steps[f"fabric/{folder}"] = Step(f"fabric/{folder}", argv)


def _module(rest: Sequence[str], chosen: Selection, checkout: Path) -> None:
    """A kind's own tests and those that name it; of a stage, every test that can reach it."""
    chosen.files.add("tests/test_architecture.py")
    chosen.files.update(_importing("/".join(("harness", "sundial", *rest)), checkout))
    if rest[0] in FAMILIES and len(rest) > 2:
        family, kind = rest[0], rest[1]
        chosen.files.update(_in_folder(f"tests/{family}/{kind}"), _naming(kind, checkout))
        chosen.scenarios.update(_using(kinds={kind}))
        chosen.topologies.update(_topologies(kind))
        chosen.recorded.add(kind)
    elif rest[0] in ("expect", "observe", "verify", "judge"):
        # Kinds use them, and are found by folder: no import leads there.
        chosen.files.add("tests/mutation/test_gate.py")
        chosen.scenarios.update(("quickstart", "lane-edges"))
    elif rest[0] in ("run", "machines", "plan"):
        chosen.files.add("tests/run/test_faults_vm.py")
        chosen.scenarios.update(("quickstart", "lane-control", "mbcf-operations", "santos18-local"))
    else:
        chosen.scenarios.add("quickstart")


def _commands(chosen: Selection, tier: Tier) -> Iterator[Step]:
    yield from chosen.steps.values()
    night = "" if tier == "all" else " and not night"
    gate = "tests/mutation/test_gate.py"
    files = sorted(file for file in chosen.files if (HARNESS / file).is_file())
    plain = [file for file in files if file != gate]
    if plain:
        yield _pytest("python", " ".join(plain), f"not vm{night}", "-n", "2", folder="harness")
    if gate in files:
        yield _pytest("damages", gate, f"not vm{night}", folder="harness")
    elif chosen.recorded:
        words = " or ".join(sorted(chosen.recorded))
        yield _pytest("damages", gate, f"not vm{night}", "-k", words, folder="harness")
    booted = [file for file in plain if file.endswith("_vm.py")]
    if not (booted or chosen.scenarios or chosen.topologies or chosen.folders):
        return
    yield Step("setup", ("make", "--no-print-directory", "setup-tests"))
    for folder in sorted(chosen.folders):
        yield _pytest(folder, folder, f"vm{night}")
    for file, selected in (("test_smoke_vm", chosen.scenarios), ("test_smoke_topologies_vm", chosen.topologies)):
        if selected:
            words = " or ".join(f"[{name}]" for name in sorted(selected))
            yield _pytest(file, f"tests/run/{file}.py", f"vm{night}", "-k", words, "-n", "2", folder="harness")
    if booted:
        yield _pytest("booted", " ".join(booted), f"vm{night}", "-n", "2", folder="harness")


def _pytest(suite: str, what: str, marks: str, *more: str, folder: str = "") -> Step:
    python = CHECKOUT / ".venv" / "bin" / "python"
    command = [str(python.relative_to(CHECKOUT)), "-m", "pytest", "-q", "-m", marks, *more, *what.split()]
    if not folder:
        return Step(suite, tuple(command))
    command[0] = f"../{command[0]}"
    # No test of the tier may be in the chosen files, or under the chosen words.
    return Step(suite, ("sh", "-c", f"cd {folder} && {shlex.join(command)} || [ $? = 5 ]"))


def _make(folder: str, target: str, chosen: Selection) -> None:
    chosen.steps[folder] = Step(folder, ("make", "--no-print-directory", "-s", "-C", folder, target))


def _using(
    kinds: Iterable[str | None] = (), images: Iterable[str] = (), topologies: Iterable[str] = ()
) -> Iterator[str]:
    """Scenarios that have one of these workloads, segments or images, or run on one of these topologies."""
    wanted = {*kinds, *images, *(f"topology {name}" for name in topologies)}
    return (name for name in names("scenario") if _parts(name) & wanted)


@functools.cache
def _parts(scenario: str) -> frozenset[str]:
    experiment = load_experiments(scenario)[0]
    return frozenset(
        {
            *(workload.app for workload in experiment.scenario.workloads),
            *(segment.kind for segment in experiment.topology.segments.values()),
            *(node.image for node in experiment.network.nodes),
            f"topology {experiment.scenario.topology}",
        }
    )


def _topologies(kind: str) -> Iterator[str]:
    """Topologies with a segment of this kind."""
    return (name for name in names("topology") if kind in _segments(name))


@functools.cache
def _segments(topology: str) -> frozenset[str]:
    return frozenset(segment.kind for segment in load_topology(topology).segments.values())


def _in_folder(folder: str) -> Iterator[str]:
    return (str(path.relative_to(HARNESS)) for path in (HARNESS / folder).rglob("test_*.py"))


def _mentioning(word: str, checkout: Path) -> Iterator[str]:
    """Test files that hold a word, such as the name of a file."""
    return (file for file, text in _tests(checkout).items() if word in text)


def _booting(pattern: str, checkout: Path) -> Iterator[str]:
    """Test files that boot machines and hold a pattern, such as the name of an image."""
    return (file for file, text in _tests(checkout).items() if file.endswith("_vm.py") and re.search(pattern, text))


def _naming(kind: str, checkout: Path) -> Iterator[str]:
    """Test files that name a kind: as a package, in YAML or as a string."""
    name = re.escape(kind)
    pattern = re.compile(
        rf"sundial\.(?:{'|'.join(FAMILIES)})\.{name}\b|\b(?:app|kind)[\"']?: *[\"']?{name}\b|[\"']{name}[\"']"
    )
    return (file for file, text in _tests(checkout).items() if pattern.search(text))


@functools.cache
def _tests(checkout: Path) -> dict[str, str]:
    harness = checkout / "harness"
    return {str(path.relative_to(harness)): path.read_text() for path in sorted((harness / "tests").rglob("test_*.py"))}


def _importing(path: str, checkout: Path) -> set[str]:
    """Test files that import a module, through whatever is between.

    A stage loads kinds by folder. Such a load counts as an import unless a kind itself has changed: no stage depends on
    one kind.
    """
    graph = _graph(checkout, loads=path.split("/")[2] not in FAMILIES)
    reached, new = {path}, {path}
    while new:
        new = {file for file, imported in graph.items() if imported & new} - reached
        reached |= new
    tests = (Path(file).relative_to("harness") for file in reached if file.startswith("harness/tests/"))
    return {str(file) for file in tests if file.name.startswith("test_")}


@functools.cache
def _graph(checkout: Path, loads: bool) -> dict[str, frozenset[str]]:
    """Files that each file of the harness imports, or also loads, by path from the checkout."""
    harness = checkout / "harness"
    rooms = ("sundial", "tests", "mutation", "planted", "benchmarks")
    files = [path for room in rooms for path in harness.glob(f"{room}/**/*.py")]
    return {
        str(path.relative_to(checkout)): frozenset(
            [*_imported(path, harness), *(_loaded(path, harness) if loads else ())]
        )
        for path in files
    }


def _loaded(path: Path, harness: Path) -> Iterator[str]:
    for family, stage in LOAD.findall(path.read_text()):
        for module in harness.glob(f"sundial/{family}/*/{stage}.py"):
            yield f"harness/{module.relative_to(harness)}"


@functools.cache
def _imported(path: Path, harness: Path) -> frozenset[str]:
    return frozenset(_modules(path, harness))


def _modules(path: Path, harness: Path) -> Iterator[str]:
    for _, name in imports(path.read_text()):
        parts = name.split(".")
        while parts:
            module = harness.joinpath(*parts)
            file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
            if file.is_file():
                yield f"harness/{file.relative_to(harness)}"
                break
            parts.pop()


def changed_since(revision: str, checkout: Path = CHECKOUT) -> list[str]:
    """Files that differ from a revision, those that git does not know yet included."""
    listed: list[str] = []
    for command in (["diff", "--name-only", revision], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", *command], cwd=checkout, capture_output=True, text=True, check=True)
        listed += done.stdout.splitlines()
    return sorted(set(listed))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.changed", description="Run the tests that a change asks for."
    )
    parser.add_argument("paths", nargs="*", help="changed files; otherwise those that differ from --since")
    parser.add_argument("--since", default="HEAD", metavar="REVISION")
    parser.add_argument("--tier", choices=("gate", "all"), default="gate")
    parser.add_argument("--list", action="store_true", help="print the commands and run nothing")
    options = parser.parse_args()
    chosen = steps(options.paths or changed_since(options.since), options.tier)
    for step in chosen:
        print(f"{step.suite}: {shlex.join(step.argv)}", flush=True)
        if not options.list and (status := subprocess.run(step.argv, cwd=CHECKOUT, check=False).returncode):
            print(f"{step.suite}: failed with status {status}", file=sys.stderr)
            return 1
    if not chosen:
        print("no tests are asked for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
