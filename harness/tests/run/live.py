# SPDX-License-Identifier: Apache-2.0
"""Real runs, made by the command line in a process of its own, to be hurt; and the proof that nothing is left."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sundial.machines import reaper
from sundial.machines.images import Images
from sundial.machines.waiting import wait_until
from sundial.model.images import IMAGES
from sundial.model.network import Network
from sundial.run.places import Places

HARNESS = Path(__file__).parents[2]
VARIABLES = {**os.environ, "PYTHONPATH": str(HARNESS), "NO_COLOR": "1"}
START_S = 600.0
"""When a run counts as not started. It may have to boot each machine for a snapshot, or wait for who does so."""
END_S = 600.0
"""When a command or a run counts as hung. A fault ends one within 30 s, and most are whole within a minute, where the
host is not too busy."""

SCENARIO = """\
description: long enough to be hurt in the middle
topology: two-hosts-10base-t
seed: 5
deadline: {deadline}
linger: 50 ms
workloads:
  - app: {app}
    clients: [client]
    server: server
    transports: [udp]
    sizes: ["{sizes}"]
    calls: {calls}
"""

WITH_FILES = """
import json, sys
from sundial.plan import build
extra = json.loads(sys.argv.pop(1))
original = build.build_jobs
def build_jobs(experiment):
    jobs = original(experiment)
    for machine, files in extra.items():
        jobs[machine] = jobs[machine].model_copy(update={"files": files})
    return jobs
build.build_jobs = build_jobs
from sundial.cli.main import main
main()
"""


def require_guests(*images: str) -> None:
    """Machines with these images (`linux` where none is named) can boot here; else skips, naming what is missing."""
    places = Places()
    for path in (places.plugin, places.fabric):
        if not path.is_file():
            pytest.skip(f"{path.relative_to(places.checkout)} is not built")
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed")
    for image in images or ("linux",):
        _require_image(image)


def night(*values: object) -> Any:
    """Values of a parameter for the nightly tier only."""
    return pytest.param(*values, marks=pytest.mark.night)


def require_nodes(network: Network) -> None:
    """The machines of `network` can boot here."""
    require_guests(*sorted({node.image for node in network.nodes}))


def _require_image(name: str) -> None:
    """It is built by the recipe that is chosen. What `make setup` builds must be: a skipped test would hide that."""
    recipe = Images(Places().checkout).recipe(name)
    if (Places().checkout / "images" / "out" / recipe / name / "manifest.json").is_file():
        return
    what = f"images/out/{recipe}/{name} is not built"
    if IMAGES[name].on_demand:
        pytest.skip(what)
    pytest.fail(f"{what}: make setup")


def write_scenario(
    folder: Path, sizes: str = "0:8192:16", calls: int = 50, deadline: str = "10 min", app: str = "sunrpc"
) -> Path:
    path = folder / "hurt.yaml"
    path.write_text(SCENARIO.format(sizes=sizes, calls=calls, deadline=deadline, app=app))
    return path


STIRRED = """
import json, sys
from dataclasses import replace
from sundial.plan.request import Stirring
from sundial.run import runner
jitter_ns, counts = int(sys.argv.pop(1)), sys.argv.pop(1)
original = runner.run
def run(request, progress):
    made = original(replace(request, trial=Stirring(jitter_ns or None)), progress)
    with open(counts, "w") as file:
        json.dump(made.clocks, file)
    return made
runner.run = run
from sundial.cli.main import main
main()
"""
"""The command line, with gates and looks of the clock at pseudo-random times beside those that are needed."""


def stirred(jitter_ns: int, scenario: Path, out: Path, *options: str) -> dict[str, int]:
    """Run `scenario` so (0: nothing added); what the clocks of all machines counted together."""
    counts = out.with_suffix(".counts")
    argv = [sys.executable, "-c", STIRRED, str(jitter_ns), str(counts), "run", str(scenario), "--out", str(out)]
    argv += ["--no-report", *options]
    done = subprocess.run(argv, cwd=HARNESS, env=VARIABLES, capture_output=True, text=True, check=False, timeout=END_S)
    assert done.returncode == 0, done.stderr
    reports = json.loads(counts.read_text()).values()
    finished = [report for report in reports if report.get("status") == "finished"]
    names = ("gates", "looks", "splits", "sent", "instructions", "stamps", "stamps_checked")
    return {name: sum(report[name] for report in finished) for name in names}


def sundial(
    *argv: str,
    given: bytes = b"",
    seconds: float = END_S,
    through: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, to its end; `given` is its input, `through` what starts it."""
    done = subprocess.run(
        [*through, sys.executable, "-m", "sundial.cli", *argv],
        cwd=HARNESS,
        env={**VARIABLES, **(variables or {})},
        input=given,
        capture_output=True,
        check=False,
        timeout=seconds,
    )
    return subprocess.CompletedProcess(argv, done.returncode, done.stdout.decode("latin-1"), done.stderr.decode())


def output_of(topology: Path, machine: str, *words: str) -> str:
    """What a command printed in a machine of a topology that is up."""
    done = sundial("exec", "--topology", topology.stem, machine, "--", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def up(topology: Path, *options: str) -> Iterator[dict[str, Any]]:
    """What `sundial up --json` says of a topology, which is down afterwards; its captures are the caller's."""
    try:
        done = sundial("up", str(topology), "--json", *options)
    except subprocess.TimeoutExpired:
        sundial("down", topology.stem)  # it would come up yet
        raise
    assert done.returncode == 0, done.stderr
    kept = json.loads(done.stdout)
    try:
        yield kept
    finally:
        down = sundial("down", kept["topology"])
    assert down.returncode == 0, down.stderr


_started: list[subprocess.Popen[Any]] = []


def start(argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """A process that does not outlive the test that has started it, however that ends."""
    _started.append(subprocess.Popen(argv, **options))
    return _started[-1]


def end_what_was_started() -> None:
    """An open pipe would fail a later test; a run's guard ends the machines of one that is killed here."""
    while _started:
        process = _started.pop()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@contextmanager
def hog() -> Iterator[None]:
    """Every core has something else to do."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for process in hogs:
            process.kill()
            process.wait()


def evidence(folder: Path) -> dict[str, bytes]:
    """Every file that must be the same whenever the run is repeated."""
    files = [path for path in (folder / "wire").rglob("*") if path.is_file()]
    files += [*folder.glob("nodes/*/samples.jsonl"), *folder.glob("nodes/*/console.log"), folder / "samples.parquet"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class LiveRun:
    """One `sundial run`. `files` are put into guests before anything else: by machine, path to content.

    `through` begins the command line, and executes the rest of it.
    """

    def __init__(
        self,
        scenario: Path,
        out: Path | None,
        *options: str,
        files: dict[str, dict[str, str]] | None = None,
        through: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        report: bool = False,
    ) -> None:
        self.out = out
        argv = [*through, sys.executable, "-m", "sundial.cli"]
        if files is not None:
            argv = [*through, sys.executable, "-c", WITH_FILES, json.dumps(files)]
        argv += ["run", str(scenario), "--report", "now" if report else "no", *options]
        argv += () if out is None else ("--out", str(out))
        self.process = start(
            argv,
            cwd=HARNESS,
            env={**VARIABLES, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @property
    def partial(self) -> Path:
        assert self.out is not None
        return self.out.with_name(f".{self.out.name}.partial")

    def wait_batches(self, number: int = 1) -> None:
        """Until the client has written so many batches of samples."""
        samples = self.partial / "nodes" / "client" / "samples.jsonl"

        def written() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"the run has ended: {self.said()}")
            return samples.is_file() and samples.read_bytes().count(b'"type":"batch"') >= number

        wait_until(written, seconds=START_S, what="the first samples")
        self.remember()

    def remember(self) -> None:
        """Learn what would have to be gone: the token, the runtime folder, the shared memory."""
        path = self.partial / "nodes" / "client" / "domain.xml"
        # It may be there and not yet be written.
        domain = wait_until(lambda: self._whole(path), seconds=START_S, what="the machines")
        self.token = re.findall(r"<name>(sundial-[0-9a-f]{12})-", domain)[0]
        self.runtime = Path(re.findall(r"(/[^,\s]*)/\d+/job-client", domain)[0])
        self.shm = [Path(path) for path in re.findall(r"shm=([^,\"]+)", domain)]

    @staticmethod
    def _whole(path: Path) -> str | None:
        text = path.read_text() if path.is_file() else ""
        return text if "</domain>" in text else None

    def pid_of(self, part: str) -> int:
        """The one process of this run with `part` in its command line."""
        (pid,) = [pid for pid in reaper.processes_of(self.token) if part.encode() in reaper.command_line(pid)]
        return pid

    def kill(self, part: str, number: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.pid_of(part), number)

    def guard(self) -> int:
        """The guard's process, a child of the harness's."""
        harness = self.process.pid
        children = map(int, Path(f"/proc/{harness}/task/{harness}/children").read_text().split())
        (pid,) = [pid for pid in children if b"reaper.py" in reaper.command_line(pid)]
        return pid

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def end(self, seconds: float = END_S) -> tuple[int, str]:
        """Its exit status and all it said. A run that does not end in time is ended, and the test has failed."""
        try:
            output, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AssertionError(f"not ended within {seconds:g} s") from None
        return self.process.returncode, output

    def leftovers(self) -> Sequence[object]:
        """What is left of it and should not be."""
        folders: list[Path] = [] if self.out is None else [self.partial]
        paths = [path for path in (self.runtime, *self.shm, *folders) if path.exists()]
        return [*paths, *(reaper.command_line(pid) for pid in reaper.processes_of(self.token))]

    def record(self) -> dict[str, Any]:
        assert self.out is not None
        return self.read(self.out)

    @staticmethod
    def read(folder: Path) -> dict[str, Any]:
        found = json.loads((folder / "run.json").read_text())
        assert isinstance(found, dict)
        return found

    def kept_batches(self) -> int:
        assert self.out is not None
        return (self.out / "nodes" / "client" / "samples.jsonl").read_bytes().count(b'"type":"batch"')
