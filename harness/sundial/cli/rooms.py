# SPDX-License-Identifier: Apache-2.0
"""Where the command line calls into the house: one function for each thing a verb asks for.

Rooms are imported when they are called, so that `sundial --help` is quick and a missing libvirt hurts only those who
need it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from sundial import limits
from sundial.errors import BadInput, RunFailed
from sundial.model.catalog import DISSECTORS, INSTALLED, LAUNCHER, ROOT, WRITTEN, check_writable
from sundial.plan.request import EMBEDDED

if TYPE_CHECKING:
    from sundial.model.network import Network
    from sundial.plan.request import Kept, Progress, RunRequest, RunResult, UpRequest
    from sundial.sweep.place import Place

CAPTURES = WRITTEN.captures
LOGS = WRITTEN.state / ".sundial" / "log"
"""Tracebacks of faults of Sundial itself."""
DOWN_S = 5.0
"""So long a topology that does not answer may take to be down."""
VERIFY, REPORT = "sundial.verify", "sundial.report.build"
OTHER_RULE = "other"


def check_state() -> None:
    """Raises BadInput or HostLacks where Sundial cannot write what it keeps."""
    check_writable(WRITTEN.state)


def check_places(out: Path | None) -> None:
    """The same, and for runs without a directory of their own also where runs go."""
    check_state()
    if out is None:
        check_writable(CAPTURES)


def run(request: RunRequest, progress: Progress) -> RunResult:
    """Make one run. Raises BadInput, HostLacks, RunFailed, Interrupted."""
    check_places(request.out)
    return cast("RunResult", able_room("sundial.run.runner").run(request, progress))


def up(request: UpRequest, progress: Progress) -> Kept:
    """Bring a topology up and leave it up. Raises BadInput, HostLacks, RunFailed."""
    check_places(None)
    return cast("Kept", able_room("sundial.run.keeper").up(request, progress))


def down(topology: str | None) -> list[str]:
    """Take down one topology, or all; answers their names. Raises BadInput where that one is not up."""
    return cast("list[str]", named_room("sundial.run.keeper").down(topology))


def kept() -> list[Kept]:
    """The topologies that are up."""
    return cast("list[Kept]", named_room("sundial.run.keeper").list_())


@dataclass(frozen=True)
class Exec:
    """What `exec` was asked for."""

    machine: str
    argv: Sequence[str]
    topology: str | None
    terminal: bool
    seconds: float | None
    input_fd: int | None


def exec_(asked: Exec) -> Any:
    """Run a command in a machine and pass its output on; answers `.status`, `.timed_out`.

    Raises BadInput, RunFailed, Interrupted.
    """
    foreground = named_room("sundial.machines.foreground")
    return _exec(asked, foreground.Passed(sys.stdout.fileno(), sys.stderr.fileno()))


def exec_gathered(asked: Exec) -> Any:
    """The same with its output kept: `.status`, `.stdout`, `.stderr`, `.dropped`."""
    gathered = named_room("sundial.machines.command").Gathered()
    return gathered.result(_exec(asked, gathered))


def exec_all(
    machines: Sequence[str] | None, argv: Sequence[str], topology: str | None, seconds: float | None, *, gathered: bool
) -> dict[str, Any]:
    """Run a command in several machines (None: in all) at once: how each ended, as `exec_` or, `gathered`, as
    `exec_gathered` answers it; a RunFailed of a machine that did not answer.

    Output that is not gathered is passed on with the machine in front of each line. Raises BadInput, Interrupted.
    """
    command, several = named_room("sundial.machines.command"), named_room("sundial.machines.several")
    passed = named_room("sundial.machines.foreground").Passed(sys.stdout.fileno(), sys.stderr.fileno())
    receivers: dict[str, Any] = {}

    def outputs(names: Sequence[str]) -> dict[str, Any]:
        width = max(map(len, names))
        for name in names:
            prefix = f"{name:<{width}} | ".encode()
            receivers[name] = command.Gathered() if gathered else several.Prefixed(prefix, passed)
        return receivers

    try:
        ends = named_room("sundial.run.keeper").exec_all(machines, argv, seconds, outputs, topology)
    finally:
        if not gathered:
            for receiver in receivers.values():
                receiver.end()
    if not gathered:
        return cast("dict[str, Any]", ends)
    return {name: end if isinstance(end, RunFailed) else receivers[name].result(end) for name, end in ends.items()}


def _exec(asked: Exec, output: Any) -> Any:
    foreground = named_room("sundial.machines.foreground").Foreground(asked.input_fd, asked.terminal, asked.seconds)
    return named_room("sundial.run.keeper").exec_(asked.machine, asked.argv, foreground, output, asked.topology)


def export_table(folder: Path, table: str, form: str | None, path: Path | None) -> int:
    """Write a table of a run to a file, whole or not at all, or to standard output (None); answers its rows. Raises
    BadInput, OSError."""
    files = named_room("sundial.data.files")
    found = able_room("sundial.data.run").open_run(folder).table(table)
    chosen = files.format_of(form, "" if path is None else str(path))
    if path is None:
        files.write(found, chosen, sys.stdout.buffer)
    else:
        files.write_file(found, chosen, path)
    return int(found.height)


def change(event: Mapping[str, Any] | None, topology: str | None) -> dict[str, Any]:
    """Change a segment of what is up: the event with its instant; of None, all states. Raises BadInput, RunFailed."""
    return cast("dict[str, Any]", named_room("sundial.run.keeper").change(event, topology))


def draft(name: str) -> Any:
    """A module of the room that drafts files."""
    return named_room(f"sundial.draft.{name}")


def misread(folder: Path) -> list[str]:
    """What of known frames this host's tshark shows in another way. Raises BadInput, HostLacks."""
    return cast("list[str]", named_room("sundial.observe.known").misread(folder))


def virsh_commands() -> list[str]:
    """The commands of `sundial virsh` under the embedded driver."""
    return list(named_room("sundial.machines.virsh").COMMANDS)


def virsh_overview() -> str:
    """What they do, a line each."""
    return cast(str, named_room("sundial.machines.virsh").overview())


def connected(topology: str | None) -> str:
    """libvirt's URI of a topology that is up, or EMBEDDED. Raises BadInput."""
    return cast(str, named_room("sundial.run.keeper").connected(topology))


@contextlib.contextmanager
def ssh_uri(uri: str) -> Iterator[str]:
    """A daemon behind ssh as libvirt itself can reach it meanwhile, with all of Sundial's options. Raises HostLacks."""
    daemon = named_room("sundial.model.daemon").parse_daemon(uri)
    with tempfile.TemporaryDirectory(prefix="sundial-") as folder:
        yield daemon.through(str(named_room("sundial.machines.ssh").Ssh(daemon).write_program(Path(folder) / "ssh")))


def virsh(argv: Sequence[str], topology: str | None) -> str:
    """What virsh would print of a topology of the embedded driver's. Raises BadInput, RunFailed."""
    return cast(str, named_room("sundial.run.keeper").virsh(argv, topology))


def console(machine: str, topology: str | None) -> None:
    """Join the terminal with a machine's console until the user leaves it. Raises BadInput, RunFailed."""
    named_room("sundial.run.keeper").console(machine, topology)


def take_up_abandoned() -> None:
    """Give run directories their names whose harness was killed together with its guard."""
    if CAPTURES.is_dir():
        named_room("sundial.run.directory").take_up_abandoned(CAPTURES)


def in_the_making() -> list[Path]:
    """Directories of runs that are being made, or of what is up."""
    return cast("list[Path]", named_room("sundial.run.directory").in_the_making(CAPTURES)) if CAPTURES.is_dir() else []


def entries() -> list[Any]:
    """The finished folders of captures/ as `shelf.entries.Entry`, the oldest first.

    Those that a killed harness left get their names first.
    """
    take_up_abandoned()
    return cast("list[Any]", named_room("sundial.shelf.entries").read_entries(CAPTURES))


def entry(folder: Path) -> Any:
    """One of them, or a run elsewhere; None if the folder holds nothing of Sundial's."""
    return named_room("sundial.shelf.entries").read_entry(folder)


def shelf(name: str) -> Any:
    """A module of the room that keeps runs."""
    return named_room(f"sundial.shelf.{name}")


def captures_removed(folder: Path) -> str | None:
    """The date on which the captures of a run were removed, if they were."""
    return shelf("notes").read_notes(folder).captures_removed or None


def usage() -> list[Any]:
    """What of Sundial takes how much of the disk: `shelf.usage.Usage`, a row each."""
    room, places = shelf("usage"), named_room("sundial.run.places").Places()
    out, private = places.snapshots.parent, places.private
    images = [path for path in out.glob("*") if path != places.snapshots and path.name != "cache"]
    built = [ROOT / "harness" / each for each in ("fabric/target", "clock/build", "confine/build")]
    caches = [out / "cache", *private.glob("*")]
    shared = os.environ.get("SUNDIAL_CACHE")
    rows = [
        *room.of_captures(CAPTURES, in_the_making()),
        room.of_places("images", images, "sundial images build makes them again"),
        room.of_places("snapshots", [places.snapshots], "the next run makes those that it needs again"),
        room.of_places("caches", caches, "what is used again is made again"),
        room.of_places("programs", [path for path in built if not INSTALLED], "make setup builds them again"),
        room.of_places("python", [Path(sys.prefix)], "make setup installs it again"),
    ]
    if shared:
        rows.append(room.of_places("shared cache", [Path(shared)], "may be removed at any time"))
    return rows


def verify_run(path: Path) -> dict[str, Any]:
    """Verify a run directory; answers what was written to verify.json. Raises BadInput."""
    return cast("dict[str, Any]", able_room(VERIFY).verify_run(path).to_json())


@dataclass(frozen=True)
class Mismatch:
    """One mismatch of a document like verify.json, or several frames of one conversation."""

    words: str
    open: str | None
    """The command that shows its frames."""
    rule: str | None
    joined: int
    """How many mismatches it is."""


def mismatches(run: str, document: dict[str, Any], most: int) -> list[Mismatch]:
    """The first mismatches of a document like verify.json."""
    words = named_room("sundial.verify.words")
    problems = words.grouped(document.get("problems") or [])
    return [
        Mismatch(words.in_words(each), words.open_command(run, each), each.get("rule"), words.joined_in(each))
        for each in problems[:most]
    ]


def junit(ended: list[dict[str, Any]]) -> str:
    """Runs as they ended, as JUnit XML."""
    room = named_room("sundial.verify.junit")
    return cast(str, room.document([room.Ended(**each) for each in ended]))


def summary(ended: list[dict[str, Any]]) -> str:
    """The same as Markdown."""
    ended_of = named_room("sundial.verify.junit").Ended
    return cast(str, named_room("sundial.verify.markdown").document([ended_of(**each) for each in ended]))


def first_mismatch(run: str, document: dict[str, Any]) -> Mismatch | None:
    """The one to begin with."""
    words = named_room("sundial.verify.words")
    each = words.to_show(document.get("problems") or [])
    return None if each is None else Mismatch(words.in_words(each), words.open_command(run, each), each.get("rule"), 1)


def rules() -> dict[str, Any]:
    """The rules of verification by name."""
    return cast("dict[str, Any]", named_room("sundial.verify.rules").rules())


def rule_of(field: str) -> Any:
    """The rule of a finding's field; OTHER_RULE where no rule names it."""
    return named_room("sundial.verify.rules").rule_of(field)


def forget_verdict(path: Path) -> None:
    """Remove what an earlier verification wrote into a run directory."""
    for name in ("verify.json", "observed.parquet"):
        (path / name).unlink(missing_ok=True)


def verifiable() -> list[str]:
    """What a capture from elsewhere may hold, as `sundial verify --protocol` says it."""
    return cast("list[str]", named_room(VERIFY).offered())


def verify_pcap(path: Path, protocol: str, mtu: int | None, port: int | None) -> dict[str, Any]:
    """Verify a foreign capture; answers a document like verify.json. Raises BadInput."""
    found = able_room(VERIFY).verify_pcap(path, protocol=protocol, mtu=mtu, port=port)
    return cast("dict[str, Any]", found.to_json())


def build_report(path: Path, *, png: bool = False, drawn: bool = True) -> Path:
    """Write the report of a run directory from verify.json as it is; answers its HTML file. Raises BadInput.

    Not `drawn`, its figures are said in words alone.
    """
    return cast(Path, able_room(REPORT).build_report(path, png=png, drawn=drawn).html)


def compare(runs: Sequence[tuple[Path, str]], by: Sequence[str], limits: Sequence[str]) -> Any:
    """What differs between runs, given by directory and name: a `seams.compare.Comparison`. Raises BadInput."""
    bounds = [named_room("sundial.compare.bounds").parse(limit) for limit in limits]
    room = able_room("sundial.compare.build")
    return room.compare([room.Compared(path, name) for path, name in runs], by, bounds)[0]


def comparison_words() -> Any:
    """The module that makes text of a comparison."""
    return named_room("sundial.compare.words")


def comparison_text(found: Any, form: str) -> str:
    """A comparison as `csv_text` or `markdown`."""
    return cast(str, getattr(comparison_words(), form)(found))


def write_comparison(found: Any, page: Path) -> None:
    """Write its page. Raises OSError."""
    named_room("sundial.compare.page").write_page(found, page)


def ports(capture: Path) -> list[str]:
    """The ports that a capture has, in its order. Raises BadInput."""
    return cast("list[str]", named_room("sundial.observe.follow").ports(capture))


def stream_view(capture: Path, port: str | None, to: BinaryIO, keeper_pid: int | None = None) -> None:
    """Write a capture as a port saw it (None: as it is); with `keeper_pid`, until that process has ended. Raises
    BadInput."""
    named_room("sundial.observe.follow").stream_view(capture, port, to, keeper_pid)


def write_view(capture: Path, port: str | None, path: Path, keeper_pid: int | None = None) -> None:
    """The same into a file that is written whole or not at all. Raises BadInput, OSError."""
    named_room("sundial.observe.follow").write_view(capture, port, path, keeper_pid)


def watch(
    capture: Path, port: str | None, columns: Sequence[str], shown: str | None, keeper_pid: int | None
) -> Iterator[list[str]]:
    """The packet list of a capture as a port saw it, in these columns; with `keeper_pid`, of what is appended until
    that process has ended. Raises BadInput, HostLacks."""
    feed = partial(named_room("sundial.observe.follow").stream_view, capture, port)
    scripts, preferences = dissection(capture)
    listed = able_room("sundial.observe.tshark").list_frames(
        lambda to: feed(to, keeper_pid),
        columns,
        name=capture,
        options=[*scripts, *preferences],
        display_filter=shown,
        before=viewer_user(),
    )
    return cast("Iterator[list[str]]", listed)


def port_counts(kept: Kept) -> Sequence[Any] | None:
    """What each port of a topology has counted; None: it is down."""
    try:
        counters = named_room("sundial.run.keeper").status(kept.topology)["counters"]
    except (BadInput, RunFailed):
        if ended(kept.pid, DOWN_S):
            return None
        raise
    return cast("Sequence[Any]", named_room("sundial.observe.counted").port_counts(counters))


def ended(pid: int, seconds: float) -> bool:
    """True if a process has ended, or does within so many seconds."""
    reaper = named_room("sundial.machines.reaper")
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    return cast(bool, reaper.wait_gone(handle, seconds))


def link_and_ports(capture: Path) -> tuple[int, list[str]]:
    """The link type of a capture, and its ports in its order. Raises BadInput."""
    return cast("tuple[int, list[str]]", named_room("sundial.observe.follow").link_and_ports(capture))


def viewer_places(listed: str) -> dict[str, Path] | None:
    """Where Wireshark looks for what is installed, from what `tshark -G folders` prints."""
    room = named_room("sundial.report.viewer_profile")
    return cast("dict[str, Path] | None", room.places(room.folders(listed)))


def viewer_files(columns: Sequence[tuple[str, str]]) -> tuple[str, str, dict[str, str]]:
    """What is installed: the program for extcap, the loader of dissectors, the files of the profile."""
    room = named_room("sundial.report.viewer_profile")
    return room.extcap_script(LAUNCHER), room.loader(DISSECTORS), room.profile(columns)


def viewer_mark() -> str:
    """What each installed file has in it."""
    return cast(str, named_room("sundial.report.viewer_profile").MARK)


def dissection(capture: Path) -> tuple[list[str], list[str]]:
    """Words of Wireshark's and tshark's command line that make them dissect a capture of Sundial: scripts, the rest."""
    viewer = named_room("sundial.report.viewer")
    return viewer.scripts(), viewer.preferences(capture)


def ladder(folder: Path, asked: str, *, everything: bool) -> Any:
    """The ladder of a call: `.title`, and what the functions below draw. Raises BadInput, HostLacks."""
    return able_room("sundial.report.ladder_read").read_ladder(
        folder, asked, everything=everything, before=viewer_user()
    )


def ladder_text(ladder: Any, *, width: int, unicode: bool) -> str:
    """A ladder for a terminal."""
    return cast(str, named_room("sundial.report.ladder_text").draw(ladder, width=width, unicode=unicode))


def ladder_svg(ladder: Any) -> str:
    """A ladder as an SVG document."""
    return cast(str, named_room("sundial.report.ladder_svg").draw(ladder))


def ladder_json(ladder: Any) -> dict[str, Any]:
    """A ladder as data, all of its frames."""
    return cast("dict[str, Any]", named_room("sundial.report.ladder_json").document(ladder))


def notable_calls(folder: Path) -> list[dict[str, Any]]:
    """The calls of a run that are worth a look. Raises BadInput."""
    return cast("list[dict[str, Any]]", able_room("sundial.report.ladder_json").notable_calls(folder))


def viewer_user() -> tuple[str, ...]:
    """Words in front of tshark and Wireshark: since 4.4 they load no dissector in Lua for root, and say nothing."""
    checks = named_room("sundial.cli.checks")
    return cast("tuple[str, ...]", checks.started_by(checks.Host()))


def topology_drawing(network: Network, *, as_svg: bool) -> str:
    """A topology drawn as text or as SVG."""
    drawn = named_room("sundial.report.topology_read").of_network(network)
    return cast(str, named_room(f"sundial.report.topology_{'svg' if as_svg else 'text'}").draw(drawn))


def papers() -> list[tuple[Any, list[str]]]:
    """The papers whose experiments can be reproduced, each with the scales that it has."""
    room = named_room("sundial.reproduce.paper")
    found = [room.reproduction(name).paper() for name in room.papers()]
    return [(paper, list(paper.scales)) for paper in found]


def reproduce(
    name: str,
    scale: str,
    seed: int,
    out: Path | None,
    connect: str,
    recipe: str | None,
    place: Place,
    command: tuple[str, ...],
    progress: Progress,
) -> Any:
    """Run a paper's experiments at a place and write their report; answers a `Reproduced`.

    Raises BadInput, HostLacks, RunFailed, Interrupted.
    """
    check_places(out)
    room = able_room("sundial.reproduce.perform")
    known = images(recipe)

    def pin(folder: Path, shown: Progress, names: Iterable[str] | None) -> dict[str, dict[str, str]]:
        pinned = named_room("sundial.machines.images").pin(known, folder, shown.say, names)
        return cast("dict[str, dict[str, str]]", pinned)

    request = room.Request(name, scale, seed, CAPTURES, out, connect, command)
    return room.perform(request, room.Doors(makers(place, recipe), pin), progress)


def makers(place: Place, recipe: str | None) -> Any:
    """What makes the runs of a reproduction or a matrix at a place: by the engine of sweeps, but for one at a time."""
    worker = named_room("sundial.reproduce.worker")
    slots = place.slots or named_room("sundial.reproduce.workers").jobs_of_this_host()
    if place.is_here and slots == 1:
        return lambda progress: contextlib.nullcontext(worker.OneByOne(making()))

    def placed(progress: Progress) -> Any:
        store = named_room("sundial.sweep.store").Store(named_room("sundial.run.places").Places().store)
        identities = named_room("sundial.sweep.known").Identities(recipe, say=progress.say)
        placing = named_room("sundial.sweep.engines").Placing(making(), place, slots, store, identities, progress)
        return named_room("sundial.sweep.tasks").Tasks(placing).placed()

    return placed


@dataclass(frozen=True)
class MatrixAsked:
    """What `matrix` was asked for; axes as typed."""

    scenario: str | None
    runs: dict[str, Path]
    """Runs that are there, by what the user calls them; empty: runs are made."""
    rows: str | None
    columns: str | None
    """Both None: those of the scenario."""
    overrides: tuple[str, ...]
    topology: str | None
    scale: str | None
    seed: int | None
    measure: str
    out: Path | None
    connect: str
    recipe: str | None
    skip_refused: bool
    place: Place
    command: tuple[str, ...]


def matrix(asked: MatrixAsked, progress: Progress) -> tuple[Path, Any, list[list[str]]]:
    """Make a matrix of runs; answers its folder, its document, and its table as text.

    Raises BadInput before anything is started; HostLacks, Interrupted.
    """
    check_places(asked.out)
    pure, room = named_room("sundial.reproduce.matrix"), able_room("sundial.reproduce.matrix_make")
    try:
        measure = named_room("sundial.model.bounds").parse_measure(asked.measure)
    except BadInput as error:
        raise error.within(file="--measure") from None
    bounds = named_room("sundial.verify.bounds")

    def measured(path: Path) -> tuple[str, float] | None:
        found = bounds.measured(path, measure)
        return None if found is None or found.seen is None else (found.seen_text, found.to_json()["seen"])

    def first(name: str, document: dict[str, Any]) -> str | None:
        shown = first_mismatch(name, document)
        return None if shown is None else shown.words

    doors = room.Doors(makers(asked.place, asked.recipe), measured, first)
    made = not asked.runs
    if not made:
        axes = (pure.Axis("", (), ()),) * 2
    elif asked.rows is None or asked.columns is None:
        axes = room.axes_of(asked.scenario or "")
    else:
        axes = pure.parse_axis(asked.rows, "--rows"), pure.parse_axis(asked.columns, "--columns")
    request = room.Request(
        asked.scenario or "",
        *axes,
        asked.overrides,
        asked.topology,
        asked.scale,
        asked.seed,
        f"{measure.of}{measure.conditions}",
        CAPTURES,
        asked.out,
        asked.connect,
        asked.recipe,
        asked.skip_refused,
        asked.command,
    )
    if made:
        folder, found = room.make(request, doors, progress)
    else:
        folder, found = room.collect(asked.runs, asked.rows, asked.columns, request, doors, progress)
    return folder, pure.to_json(found), pure.to_text(found)


def making() -> Any:
    """What workers do for one run."""
    report = partial(build_report, drawn=False)  # `sundial report` draws what is looked at
    return named_room("sundial.reproduce.worker").Making(run=run, verify=verify_run, report=report)


def certify(progress: Progress, *, again: bool) -> dict[str, Any]:
    """Certify the emulator for virtual time unless it is known, or `again`; answers its version and on what that rests.

    Raises HostLacks where it does not keep virtual time, Interrupted.
    """
    found = None if again else certificate()
    if found is None or found.difference is not None:
        session = named_room("sundial.run.session").open_session(EMBEDDED)
        certification, runner = named_room("sundial.run.certification"), named_room("sundial.run.runner")
        found = certification.require(session, progress, runner.run, again=again)
    return {"version": found.version, "tested": found.tested}


def certificate() -> Any:
    """What is known of the emulator: `.version`, `.difference`, `.tested`; None: nothing yet. Raises HostLacks."""
    places = named_room("sundial.run.places")
    where = places.Places()
    return named_room("sundial.run.session").certificates(where).find(places.emulator(), where.plugin)


def images(recipe: str | None = None) -> Any:
    """The images of this checkout: `.names()`, `.list()`, `.build(name, say)`, `.ensure(name, say)`.

    Made by the recipe that is chosen unless one is given. Raises BadInput for one that no image has.
    """
    return _images(named_room("sundial.machines.recipes").asked(WRITTEN.state, recipe))


def images_by(recipe: str, release: Path | None) -> tuple[Any, Callable[[], None]]:
    """The same, made by a recipe from a Buildroot release, and what makes both the choice of commands to come."""
    room = named_room("sundial.machines.recipes")
    choice = room.asked(WRITTEN.state, recipe) if release is None else room.Choice(recipe, release)
    return _images(choice), lambda: room.choose(WRITTEN.state, choice)


def fetch_images(archive: Path, sha256: str | None) -> Any:
    """The images that were taken out of an archive, with this SHA-256 if one is given. Raises BadInput."""
    if sha256 is not None:
        try:
            found = named_room("sundial.machines.seals").sha256_of(archive)
        except OSError as error:
            raise BadInput(f"cannot be read: {error.strerror}", file=str(archive)) from error
        if found != sha256.lower():
            raise BadInput(f"its SHA-256 is {found}", file=str(archive), allowed=sha256)
    return images().fetch(archive)


def locks() -> list[dict[str, Any]]:
    """The packages that were chosen for roots, by the words that asked for them."""
    return cast("list[dict[str, Any]]", named_room("sundial.machines.roots").Roots(ROOT, WRITTEN.state).locks())


def _images(choice: Any) -> Any:
    return named_room("sundial.machines.images").Images(ROOT, choice, WRITTEN.state)


def open_embedded_libvirt(root: Path, cache: Path) -> str:
    """Open libvirt's embedded driver and close it again; answers its version. Raises HostLacks, RunFailed."""
    connection = named_room("sundial.machines.connection")
    connection.open_hypervisor(connection.EMBEDDED, root, cache, "doctor").close()
    return cast(str, connection.dotted(connection.load_libvirt().getVersion()))


def libvirt_daemons() -> dict[str, str]:
    """The usual daemons of this computer that are running, by URI, with their versions or what is wrong."""
    libvirt = named_room("sundial.machines.connection").load_libvirt()
    return cast("dict[str, str]", named_room("sundial.machines.daemon").running(libvirt, os.environ, os.geteuid()))


def able_room(name: str) -> Any:
    """A room whose work takes much of the host. Raises HostLacks where the host's limits do not allow it."""
    limits.require()
    return named_room(name)


def named_room(name: str) -> Any:
    loader: Callable[[str], Any] = import_module
    return loader(name)
