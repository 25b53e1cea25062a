# SPDX-License-Identifier: Apache-2.0
"""Packages with everything they depend on, as apt's own resolver finds them for a root that has nothing installed yet.

apt reads the host's package lists and an empty list of installed packages, so the host's own packages do not count.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipe.errors import HostLacks, RecipeError
from recipe.packages import Package

INSTALLING = {
    "adduser": "",
    "debconf": "debconf-2.0",
    "dpkg": "",
    "init-system-helpers": "",
    "install-info": "",
    "lsb-base": "",
    "passwd": "",
    "sysvinit-utils": "",
    "ucf": "",
    "usr-is-merged": "",
    "usrmerge": "",
}
"""What only scripts of packages use, and they are not run; each with the name that it provides. Together with what these
depend on, they would be most of a small root. One that is asked for by name is taken."""

_INSTALLED = re.compile(r"Inst (\S+) \((\S+) .*\[(\S+)\]\)")
_ERROR = re.compile(r"E: (.*)")
_UNMET = re.compile(r" (\S+) : (?:Depends|PreDepends|Conflicts|Breaks): (.*)")
_USELESS = ("Unable to correct problems", "Broken packages", "Error, pkgProblemResolver")


class Unknown(RecipeError):
    """The packages that were asked for cannot be had: the user's mistake."""

    exit_status = 2


@dataclass(frozen=True)
class Chosen:
    """One package of the answer."""

    name: str
    version: str
    architecture: str


def installing(asked: Iterable[str]) -> dict[str, str]:
    """The packages that count as installed."""
    names = {each.partition("=")[0] for each in asked}
    return {name: provided for name, provided in INSTALLING.items() if name not in names}


def status_text(installed: dict[str, str]) -> str:
    """dpkg's list of installed packages."""
    stanzas = []
    for name, provided in installed.items():
        lines = [f"Package: {name}", "Status: install ok installed", "Version: 9999", "Architecture: all"]
        lines += ["Multi-Arch: foreign", "Maintainer: none <none@localhost>", "Description: not used"]
        lines += [f"Provides: {provided}"] if provided else []
        stanzas.append("\n".join(lines) + "\n")
    return "\n".join(stanzas)


def parse_plan(said: str) -> list[Chosen]:
    """The packages in what `apt-get install --simulate` prints, by name."""
    found = (Chosen(*match.groups()) for line in said.splitlines() if (match := _INSTALLED.match(line)))
    return sorted(found, key=lambda each: each.name)


def refusal(said: str) -> str:
    """What apt says against an installation, in one line."""
    unmet = [match for line in said.splitlines() if (match := _UNMET.match(line))]
    if unmet:
        return f"package {unmet[0][1]} cannot be installed: it needs {unmet[0][2]}"
    errors = [match[1] for line in said.splitlines() if (match := _ERROR.match(line))]
    errors = [line for line in errors if not line.startswith(_USELESS)] or errors or ["apt-get gave no reason"]
    return errors[0].rstrip(".")


def resolve(asked: Sequence[str], scratch: Path) -> list[Package]:
    """The packages (NAME or NAME=VERSION) and their dependencies, without recommendations, by name.

    Raises Unknown, HostLacks.
    """
    status = scratch / "status"
    status.write_text(status_text(installing(asked)))
    options = [f"Dir::State::status={status}", f"Dir::Cache::pkgcache={scratch / 'pkgcache.bin'}"]
    options += ["Debug::NoLocking=1", "APT::Install-Recommends=0", "APT::Install-Suggests=0"]
    said = _apt(["apt-get", *(word for each in options for word in ("-o", each)), "install", "--simulate", *asked])
    chosen = parse_plan(said.stdout)
    if said.returncode != 0 or not chosen:
        if not parse_stanzas(_apt(["apt-cache", "show", "libc6"]).stdout):
            raise HostLacks("apt has no package lists (run: apt-get update)")
        raise Unknown(refusal(said.stdout + said.stderr))
    exact = [f"{each.name}={each.version}" for each in chosen]
    shown = {(each.name, each.version): each for each in parse_stanzas(_apt(["apt-cache", "show", *exact]).stdout)}
    for each in chosen:
        if each.architecture not in ("amd64", "all"):
            raise Unknown(f"package {each.name} is for architecture {each.architecture}, and machines are amd64")
        if (each.name, each.version) not in shown:
            raise HostLacks(f"package {each.name}: version {each.version} has no sha256 in apt's lists")
    return [shown[each.name, each.version] for each in chosen]


def parse_stanzas(said: str) -> list[Package]:
    """The packages in what `apt-cache show` prints."""
    found = []
    for stanza in said.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and line[0] != " ")
        if {"Package", "Version", "Architecture", "SHA256"} <= fields.keys():
            names = (fields[name] for name in ("Package", "Version", "Architecture", "SHA256"))
            found.append(Package(*names, depends=()))
    return found


def _apt(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except FileNotFoundError:
        raise HostLacks(f"{command[0]} not found: packages come from Debian's lists (package apt)") from None
