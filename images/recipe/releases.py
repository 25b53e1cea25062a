# SPDX-License-Identifier: Apache-2.0
"""Package lists of one Debian release on a host of another one, fetched from the mirrors that the host's apt has."""

import functools
import os
import re
import subprocess
from pathlib import Path

from recipe.errors import HostLacks
from recipe.locks import locked

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_TARGETS = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"]
_DEBIAN = re.compile(r"^(\S+) [a-z]+(|-updates|-security) main Debian$")
"""A target of the release itself; backports are not."""


def sources(targets: str, release: str) -> str:
    """apt's sources of the release, from the host's `apt-get indextargets`. Empty if the host has none of Debian."""
    found = [match for line in targets.splitlines() if (match := _DEBIAN.match(line.strip()))]
    lines = [f"deb [signed-by={KEYS}] {match[1]} {release}{match[2]} main\n" for match in found]
    return "".join(dict.fromkeys(lines))


@functools.cache
def options(release: str, folder: Path) -> tuple[str, ...]:
    """The options with which apt reads the release's lists, which are kept in `folder` and brought up to date once.

    Without a network those of the last time do. Raises HostLacks."""
    said = _apt([*_TARGETS, "Created-By: Packages"])
    text = sources(said.stdout, release)
    if not text:
        raise HostLacks(f"apt has no lists of Debian here, from whose mirrors {release}'s come (run: apt-get update)")
    lists, file = folder / "lists", folder / "sources.list"
    found = (
        *("-o", f"Dir::Etc::sourcelist={file}", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache::pkgcache={folder / 'lists.bin'}"),
        # Else apt prefers what is installed, which is newer.
        *("-o", "Dir::State::status=/dev/null"),
        *("-o", "Dir::Cache::srcpkgcache=", "-o", "Acquire::Languages=none", "-o", "APT::Sandbox::User=root"),
    )
    with locked(folder / ".lock", f"another build that reads the lists of {release}"):
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        updated = _apt(["apt-get", *found, "-q", "update"])
    if updated.returncode != 0:
        reason = [line for line in updated.stderr.splitlines() if line.startswith("E: ")] or ["no reason given"]
        raise HostLacks(f"apt cannot read the lists of {release}: {reason[0].removeprefix('E: ')}")
    return found


def _apt(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
