# SPDX-License-Identifier: Apache-2.0
"""`sundial wireshark`: Sundial's ports as interfaces of Wireshark and tshark."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

import sundial
from sundial.cli import extcap as lines
from sundial.cli import rooms
from sundial.cli.open_ import COLUMNS
from sundial.cli.runs import captures as captures_of
from sundial.cli.talk import Verb, say
from sundial.errors import BadInput, HostLacks

_EXECUTABLE = 0o755
_EXTCAP_HINT = "run it as root, or set WIRESHARK_EXTCAP_DIR to a folder of yours, here and for Wireshark"


@click.group()
def wireshark() -> None:
    """List Sundial's segments and ports as interfaces of Wireshark and tshark.

    \b
    Examples:
      sundial wireshark install
      tshark -i sundial:two-hosts-10base-t:lan:client:eth0
    """


@wireshark.command(cls=Verb)
@click.option("--print", "only_print", is_flag=True, help="Print the files that would be written, and write nothing.")
def install(only_print: bool) -> None:
    """Write an extcap program, the dissectors and a profile into Wireshark's folders.

    Then Wireshark and `tshark -D` list each segment and each port of what is up. The profile "Sundial" has columns for
    calls, fragments and fates, and colours frames by what became of them: `wireshark -C Sundial`.

    \b
    Examples:
      sundial wireshark install
      sundial wireshark install --print
    """
    files = _files()
    for path in files:
        if path.exists() and not _is_ours(path):
            raise BadInput("was not written by Sundial", file=str(path), allowed="remove or rename it first")
    for path, text in files.items():
        if not only_print:
            _write(path, text)
        click.echo(str(path))
    if not only_print:
        say("start Wireshark, or list the interfaces with: tshark -D")


@wireshark.command(cls=Verb)
def uninstall() -> None:
    """Remove what `install` wrote.

    \b
    Examples:
      sundial wireshark uninstall
      sundial wireshark install --print
    """
    removed = [path for path in _files() if _is_ours(path)]
    for path in removed:
        try:
            path.unlink()
        except OSError as error:
            raise BadInput(f"cannot be removed: {error.strerror}", file=str(path)) from error
        click.echo(str(path))
    profile = _places()["profile"]
    if profile.is_dir() and not any(profile.iterdir()):
        profile.rmdir()
    if not removed:
        say("nothing was installed")


@wireshark.command(cls=Verb, hidden=True)
@click.option("--extcap-interfaces", "interfaces", is_flag=True)
@click.option("--extcap-dlts", "dlts", is_flag=True)
@click.option("--extcap-config", "config", is_flag=True)
@click.option("--capture", "capture", is_flag=True)
@click.option("--extcap-interface", "interface", metavar="NAME")
@click.option("--extcap-version", "version", metavar="VERSION")
@click.option("--extcap-capture-filter", "filtered", metavar="FILTER")
@click.option("--fifo", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--at", "port", metavar="PORT")
def extcap(
    interfaces: bool, dlts: bool, config: bool, capture: bool, interface: str | None, version: str | None,
    filtered: str | None, fifo: Path | None, port: str | None,
) -> None:  # fmt: skip
    """Answer Wireshark, which calls this.

    \b
    Examples:
      sundial wireshark extcap --extcap-interfaces
      sundial wireshark extcap --capture --extcap-interface sundial:TOPOLOGY:lan --fifo FILE
    """
    if interfaces:
        _print(lines.interfaces([source for source, _, _ in _sources()], sundial.__version__))
        return
    if config and interface is not None and lines.is_of_port(interface):
        return  # nothing to choose, and Wireshark asks for each when it starts
    if not (dlts or config or capture):
        raise BadInput(
            "extcap has nothing to do", allowed="--extcap-interfaces, --extcap-dlts, --extcap-config or --capture"
        )
    if filtered:
        raise BadInput(f"capture filter {filtered!r} is not supported", allowed="a display filter (-Y)")
    source, path, keeper_pid = _find(interface)
    if dlts:
        _print(lines.link_types(source))
    elif config:
        _print(lines.config(source))
    else:
        _capture(source, path, keeper_pid, fifo, port)


def _capture(source: lines.Source, path: Path, keeper_pid: int, fifo: Path | None, port: str | None) -> None:
    """Write what is captured into the pipe, until the topology is down or the reader has enough."""
    if fifo is None:
        raise BadInput("--fifo is missing", allowed="--fifo FILE")
    at = source.port if source.port is not None else None if port in (None, lines.ALL) else port
    if at is not None and at not in source.ports:
        raise BadInput(f"{at!r} is not a port of {source.segment}", field="--at", allowed=", ".join(source.ports))
    try:
        with fifo.open("wb") as to:
            rooms.stream_view(path, at, to, keeper_pid)
    except BrokenPipeError:
        return
    except OSError as error:
        raise BadInput(f"--fifo cannot be written: {error.strerror}", file=str(fifo), allowed="a pipe") from error


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(line)


def _sources() -> Iterator[tuple[lines.Source, Path, int]]:
    """What is listed, each with its capture and the process that writes it."""
    for kept in rooms.kept():
        for segment, path in captures_of(kept.captures).items():
            link, ports = rooms.link_and_ports(path)
            for port in (None, *ports):
                yield lines.Source(kept.topology, segment, port, link, ports), path, kept.pid


def _find(interface: str | None) -> tuple[lines.Source, Path, int]:
    known = {source.value: (source, path, pid) for source, path, pid in _sources()}
    if interface not in known:
        raise BadInput(
            f"interface {interface!r} is not up",
            field="--extcap-interface",
            allowed=", ".join(known) or "nothing is up",
        )
    return known[str(interface)]


# ---- files ----


def _places() -> Mapping[str, Path]:
    """Raises HostLacks without tshark."""
    if shutil.which("tshark") is None:
        raise HostLacks("tshark is not installed", hint="apt-get install tshark")
    done = subprocess.run(["tshark", "-G", "folders"], capture_output=True, text=True, check=False)
    found = rooms.viewer_places(done.stdout)
    if found is None:
        raise HostLacks("tshark -G folders does not name the folders for extcap, Lua and profiles")
    return found


def _files() -> dict[Path, str]:
    """The text of each file."""
    places = _places()
    script, loader, profile = rooms.viewer_files(COLUMNS)
    return {
        places["extcap"]: script,
        places["loader"]: loader,
        **{places["profile"] / name: text for name, text in profile.items()},
    }


def _is_ours(path: Path) -> bool:
    try:
        return rooms.viewer_mark() in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(_EXECUTABLE)
    except OSError as error:
        hint = _EXTCAP_HINT if text.startswith("#!") else None
        raise BadInput(f"cannot be written: {error.strerror}", file=str(path), hint=hint) from error
