# SPDX-License-Identifier: Apache-2.0
"""Many random cases, run side by side: how many runs of a thousand, all of them right, are called wrong.

    python -m tests.random.campaign --count 1000 --seed 7 --jobs 2 --out DIR    # in harness/
    python -m tests.random.campaign --only 53,80 --seed 7 --out DIR              # these cases of it
    python -m tests.random.campaign --apps rpyc --images linux-python --count 60 --seed 7 --out DIR
    python -m tests.random.campaign --shrink DIR/0042 [--runs 60]                # the smallest case with that finding

DIR has a folder for each case, with its two files, what the command said and `verdict.json`. What has a verdict is not
run again, so a campaign that was stopped goes on where it was. The runs of alarms are kept, those that passed are not.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.database import InMemoryExampleDatabase

from sundial.errors import BadInput
from sundial.machines.images import Images
from sundial.model.scenario import KINDS
from sundial.printable import printable
from sundial.run.places import Places
from tests.random.cases import IMAGES_DRAWN, SCENARIO, Case, TooLong, cases, load
from tests.run import served

BYTES = 16_384
"""Of randomness for a case; one that wants more is none."""
ATTEMPTS_MOST = 100
SECONDS_MOST = 900.0
"""When a run counts as hung, on a busy host."""
PASSED, FAILED, HUNG = 0, 1, -1
VERDICT, SAID, RUN = "verdict.json", "said.txt", "run"


@dataclass(frozen=True)
class Origin:
    """What a case is drawn from."""

    seed: int
    number: int
    attempt: int
    images: tuple[str, ...]
    apps: tuple[str, ...] | None = None
    """The only workloads that are drawn, where the machines can run them; None: all are."""

    @property
    def content(self) -> bytes:
        return Random(f"{self.seed} {self.number} {self.attempt}").randbytes(BYTES)


@dataclass(frozen=True)
class Verdict:
    """What became of a case."""

    status: int
    """The exit status of the command; HUNG: it did not end."""
    mismatches: int
    finding: str
    """The first finding, or the last line of the command; empty if it passed."""
    seconds: float
    origin: dict[str, Any]

    @property
    def kind(self) -> str:
        """What two alarms with one cause have in common, mostly: the status and the words without numbers."""
        return f"{self.status} {re.sub(r'0x[0-9a-f]+|[0-9]+', 'N', self.finding.partition(': expected')[0])}"


def built() -> tuple[str, ...]:
    """The images drawn that this checkout has."""
    images = Images(Places().checkout)

    def there(name: str) -> bool:
        return (Places().checkout / "images" / "out" / images.recipe(name) / name / "manifest.json").is_file()

    return tuple(name for name in IMAGES_DRAWN if there(name))


def draw(content: bytes, images: tuple[str, ...], **narrowed: Any) -> Case | None:
    """The case that is drawn from bytes; None: they were too few."""
    drawn: list[Case] = []

    @settings(database=None)
    @given(cases(images, **narrowed))
    def keep(case: Case) -> None:
        drawn.append(case)

    drawing: Any = keep
    drawing.hypothesis.fuzz_one_input(content)
    return drawn[0] if drawn else None


def first_valid(
    seed: int,
    number: int,
    images: tuple[str, ...],
    folder: Path,
    refused: Counter[str],
    *,
    apps: tuple[str, ...] | None = None,
    **narrowed: Any,
) -> tuple[Case, Origin]:
    """The first of a number's attempts that loads; `folder` has its files. `refused` counts the others by reason."""
    for attempt in range(ATTEMPTS_MOST):
        origin = Origin(seed, number, attempt, images, apps)
        case = draw(origin.content, images, apps=apps, **narrowed)
        if case is None:
            refused["more randomness"] += 1
            continue
        try:
            load(case, folder)
        except (BadInput, TooLong) as error:
            refused[reason(str(error))] += 1
        else:
            return case, origin
    raise RuntimeError(f"none of {ATTEMPTS_MOST} attempts at case {number} of seed {seed} loads")


def reason(refusal: str) -> str:
    """The first line of a refusal without names and numbers."""
    first = re.sub(r"^\S+:\d+: ", "", refusal.splitlines()[0]).partition("; allowed")[0]
    return re.sub(r"'[^']*'|[0-9][0-9.]*", "...", first)


def run(folder: Path, scenario: Path, origin: Origin | None = None, *, keep: bool = True) -> Verdict:
    """Run a case and judge it; what it wrote is kept in `folder` only if it is an alarm."""
    out, said = folder / RUN, folder / SAID
    shutil.rmtree(out, ignore_errors=True)
    said.unlink(missing_ok=True)
    began = time.monotonic()
    try:
        status = served.status(["run", str(scenario), "--out", str(out), "--no-report"], said, SECONDS_MOST)
    except AssertionError:
        status = HUNG
    mismatches, finding = _found(status, out, said)
    verdict = Verdict(
        status, mismatches, finding, round(time.monotonic() - began, 1), {} if origin is None else asdict(origin)
    )
    if status == PASSED or not keep:
        shutil.rmtree(out, ignore_errors=True)
    return verdict


def _found(status: int, out: Path, said: Path) -> tuple[int, str]:
    """The number of findings and the first, or what the command said last."""
    if status == PASSED:
        return 0, ""
    lines = [line for line in said.read_text(errors="replace").splitlines() if line.strip()] if said.exists() else []
    if status != FAILED or not (out / "verify.json").is_file():
        errors = [line for line in lines if line.startswith("sundial: ")] or lines[-1:] or ["nothing was said"]
        return 0, printable(errors[0])
    found = json.loads((out / "verify.json").read_text())
    first = found["problems"][0]
    return found["mismatches"], f"{first['field']}: expected {first['expected']}, seen {first['seen']}"


def shrink(
    content: bytes,
    images: tuple[str, ...],
    wrong: Callable[[Case], bool],
    apps: tuple[str, ...] | None = None,
) -> Case | None:
    """The smallest case that hypothesis finds for which `wrong` holds, beginning with that of `content`."""
    found: list[Case] = []

    class AlarmError(Exception):
        pass

    @settings(
        database=InMemoryExampleDatabase(),
        phases=[Phase.reuse, Phase.shrink],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
        report_multiple_bugs=False,
        derandomize=False,
    )
    @given(cases(images, apps=apps))
    def smaller(case: Case) -> None:
        if wrong(case):
            found.append(case)
            raise AlarmError

    try:
        drawing: Any = smaller
        drawing.hypothesis.fuzz_one_input(content)
        return None
    except AlarmError:
        pass
    while True:
        # The engine shrinks for five minutes at a time, and begins again with the smallest that it knows.
        before = found[-1].text
        try:
            smaller()
        except AlarmError:
            if found[-1].text == before:
                return found[-1]


def shrunk(folder: Path, runs: int) -> Case | None:
    """The smallest case of an alarm's kind, in at most `runs` runs. Prints each that is smaller."""
    verdict = Verdict(**json.loads((folder / VERDICT).read_text()))
    apps = verdict.origin.get("apps")
    drawn = {"images": tuple(verdict.origin["images"]), "apps": None if apps is None else tuple(apps)}
    origin = Origin(**{**verdict.origin, **drawn})
    known: dict[str, bool] = {}

    def wrong(case: Case) -> bool:
        if case.text not in known:
            known[case.text] = len(known) < runs and _alarm(case, verdict.kind)
            if known[case.text]:
                print(f"{len(known)} {len(case.text)} bytes", flush=True)
        return known[case.text]

    return shrink(origin.content, origin.images, wrong, origin.apps)


def _alarm(case: Case, kind: str) -> bool:
    """True if a case has an alarm of that kind."""
    with tempfile.TemporaryDirectory(prefix="shrink-") as name:
        folder = Path(name)
        try:
            load(case, folder)
        except (BadInput, TooLong):
            return False
        return run(folder, folder / SCENARIO, keep=False).kind == kind


def campaign(
    numbers: Sequence[int],
    seed: int,
    jobs: int,
    out: Path,
    *,
    images: tuple[str, ...] | None = None,
    apps: tuple[str, ...] | None = None,
) -> list[tuple[Path, Verdict]]:
    """The verdicts of the cases with these numbers, in their order. `images`: None for all that are built; `apps`: as
    of `Origin`."""
    images, refused = images or built(), Counter[str]()
    out.mkdir(parents=True, exist_ok=True)

    def one(number: int) -> tuple[Path, Verdict]:
        folder = out / f"{number:04}"
        file = folder / VERDICT
        if file.is_file():
            return folder, Verdict(**json.loads(file.read_text()))
        folder.mkdir(exist_ok=True)
        _, origin = first_valid(seed, number, images, folder, refused, apps=apps)
        verdict = run(folder, folder / SCENARIO, origin)
        file.write_text(json.dumps(asdict(verdict), indent=1) + "\n")
        return folder, verdict

    done = []
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(one, number) for number in numbers]):
            folder, verdict = future.result()
            done.append((folder, verdict))
            print(line(folder, verdict), flush=True)
    for why, times in refused.most_common():
        print(f"refused {times}: {why}")
    return sorted(done, key=lambda each: each[0])


def line(folder: Path, verdict: Verdict) -> str:
    """One case in one line."""
    word = {PASSED: "pass", FAILED: "ALARM", HUNG: "HUNG"}.get(verdict.status, f"STATUS {verdict.status}")
    return f"{folder.name} {word} {verdict.seconds:.0f} s {verdict.finding[:200]}".rstrip()


def summary(done: list[tuple[Path, Verdict]]) -> Iterator[str]:
    """False alarms and failed runs by kind, then the figure."""
    kinds: dict[str, list[Path]] = {}
    for folder, verdict in done:
        if verdict.status != PASSED:
            kinds.setdefault(verdict.kind, []).append(folder)
    for kind, folders in sorted(kinds.items(), key=lambda each: -len(each[1])):
        yield f"{len(folders)} times {kind}: {', '.join(str(folder) for folder in folders[:5])}"
    alarms = sum(verdict.status == FAILED for _, verdict in done)
    ended = sum(verdict.status not in (PASSED, FAILED) for _, verdict in done)
    rate = 1000 * alarms / max(1, len(done))
    yield f"{len(done)} runs: {rate:.1f} false alarms per 1,000, {ended} runs that did not end"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


def _apps(text: str) -> tuple[str, ...]:
    return _names(text, KINDS, "a workload")


def _images(text: str) -> tuple[str, ...]:
    return _names(text, built(), "an image that is built")


def _names(text: str, allowed: Iterable[str], what: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in allowed:
            raise argparse.ArgumentTypeError(f"{name!r} is not {what}; allowed: {', '.join(dict.fromkeys(allowed))}")
    return names


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.random.campaign", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="number of cases")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what the cases are drawn from")
    parser.add_argument("--only", type=_numbers, metavar="N,N", help="numbers of cases, in place of --count")
    parser.add_argument("--apps", type=_apps, metavar="APP,APP", help="draw only these workloads")
    parser.add_argument("--images", type=_images, metavar="NAME,NAME", help="draw only these images")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="runs side by side")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the cases")
    parser.add_argument("--shrink", type=Path, metavar="CASE", help="folder of a case with an alarm")
    parser.add_argument("--runs", type=int, default=60, metavar="N", help="most runs for shrinking")
    given = parser.parse_args(argv)
    if given.shrink is not None:
        smallest = shrunk(given.shrink.resolve(), given.runs)
        if smallest is None:
            print("the case has that finding no longer")
            return 1
        small = given.shrink / "small"
        small.mkdir(exist_ok=True)
        print(smallest.write(small.resolve()))
        return 0
    if given.out is None:
        parser.error("--out is missing")
    numbers = given.only if given.only is not None else range(given.count)
    done = campaign(numbers, given.seed, given.jobs, given.out.resolve(), images=given.images, apps=given.apps)
    for each in summary(done):
        print(each)
    return 0 if all(verdict.status == PASSED for _, verdict in done) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
