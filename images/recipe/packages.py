# SPDX-License-Identifier: Apache-2.0
"""Distribution packages: which version apt would install, its file, its contents; without root.

Of the host's own release, unless another Debian release is named (`releases`).
"""

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from recipe import releases
from recipe.errors import HostLacks, RecipeError
from recipe.image import IMAGES, cores
from recipe.locks import locked


APT_CACHE = "apt-lists.bin"


@dataclass(frozen=True)
class Package:
    """One version of one package, as apt's signed lists describe it."""

    name: str
    version: str
    architecture: str
    sha256: str
    depends: tuple[str, ...]
    release: str | None = None
    """Where it is not the host's."""

    @property
    def file_name(self) -> str:
        """The name apt-get download gives the file (a colon is not allowed in one)."""
        version = self.version.replace(":", "%3a")
        return f"{self.name}_{version}_{self.architecture}.deb"

    def listed(self) -> dict[str, str]:
        """As manifests list it."""
        return {"name": self.name, "version": self.version, "sha256": self.sha256}


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _dependency_names(field: str) -> tuple[str, ...]:
    """The first alternative of each dependency, without version and architecture."""
    names = []
    for clause in filter(None, (part.strip() for part in field.split(","))):
        first = clause.split("|")[0]
        names.append(re.split(r"[\s(:]", first.strip())[0])
    return tuple(names)


def _parse(stanza: str, release: str | None) -> Package:
    fields = {}
    for line in stanza.splitlines():
        key, colon, value = line.partition(": ")
        if colon and not line.startswith(" "):
            fields[key] = value
    try:
        return Package(
            name=fields["Package"],
            version=fields["Version"],
            architecture=fields["Architecture"],
            sha256=fields["SHA256"],
            depends=_dependency_names(fields.get("Pre-Depends", "") + "," + fields.get("Depends", "")),
            release=release,
        )
    except KeyError as missing:
        raise HostLacks(
            f"package {fields.get('Package', '?')}: no {missing.args[0]} in apt's lists (run: apt-get update)"
        ) from None


def _options(release: str | None) -> list[str]:
    """Which lists apt reads, and where it keeps what it made of them, if it may not in its own folder: else it reads them
    for each question.

    apt itself sees whether it is still right. Raises HostLacks.
    """
    folder = IMAGES / "out/cache"
    folder.mkdir(parents=True, exist_ok=True)
    if release is not None:
        return list(releases.options(release, folder / f"apt-{release}"))
    return ["-o", f"Dir::Cache::pkgcache={folder / APT_CACHE}"]


def _reason(said: str) -> str:
    """What apt-cache's errors say of a package that it did not show; what it could not write is removed."""
    errors = [line.removeprefix("E: ") for line in said.splitlines() if line.startswith("E: ")]
    errors = [line for line in errors if line != "No packages found"]
    if not errors:
        return "not in apt's lists (run: apt-get update)"
    for left in (IMAGES / "out/cache").glob(f"{APT_CACHE}.*"):
        left.unlink(missing_ok=True)
    return f"apt-cache: {errors[0]}"


def look_up(names: list[str], release: str | None = None) -> dict[str, Package]:
    """The candidate version of each package, or the one of NAME=VERSION, asked for at once: apt takes a second a question.

    Raises HostLacks, naming the package, where apt knows none.
    """
    if not names:
        return {}
    try:
        shown = subprocess.run(
            ["apt-cache", *_options(release), "show", "--no-all-versions", *names],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        what = "apt-cache not found: images are made from Debian's packages"
        raise HostLacks(f"{what}; copy images/out from the same checkout on a Debian host") from None
    stanzas = filter(str.strip, shown.stdout.split("\n\n"))
    found = {package.name: package for package in (_parse(stanza, release) for stanza in stanzas)}
    for name in names:
        if name.partition("=")[0] not in found:
            raise HostLacks(f"package {name}: {_reason(shown.stderr)}")
    return found


def library_closure(names: list[str], release: str | None = None) -> list[Package]:
    """The packages with all library packages they need, by name."""
    found: dict[str, Package] = {}
    waiting = sorted(set(names))
    while waiting:
        level = look_up(waiting, release)
        found.update(level)
        waiting = sorted(
            {
                name
                for package in level.values()
                for name in package.depends
                if name.startswith(("lib", "zlib")) and name not in found
            }
        )
    return [found[name] for name in sorted(found)]


def download(packages: list[Package], cache: Path) -> dict[str, Path]:
    """The package files by package name, from the cache where they are whole, else from apt."""
    with locked(cache / ".lock", "the downloads of another build"):
        return _download(packages, cache)


def _download(packages: list[Package], cache: Path) -> dict[str, Path]:
    files = {package.name: cache / package.file_name for package in packages}
    missing = [
        package
        for package in packages
        if not files[package.name].is_file() or sha256_of(files[package.name]) != package.sha256
    ]
    if missing:
        for package in missing:
            files[package.name].unlink(missing_ok=True)
        for release in {package.release for package in missing}:
            _fetch([package for package in missing if package.release == release], release, cache)
    for package in missing:
        path = files[package.name]
        if not path.is_file() or sha256_of(path) != package.sha256:
            raise RecipeError(f"{path.name}: is not the file that apt's lists describe")
    return files


def _fetch(packages: list[Package], release: str | None, cache: Path) -> None:
    versions = [f"{package.name}={package.version}" for package in packages]
    which = [] if release is None else _options(release)
    fetched = subprocess.run(
        ["apt-get", *which, "download", "-q", *versions], cwd=cache, capture_output=True, text=True, check=False
    )
    if fetched.returncode != 0:
        reason = (fetched.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise HostLacks(f"cannot download {', '.join(versions)}: {reason}")


def unpack_all(folders: Mapping[Path, Path]) -> None:
    """Each file into its folder, several at once: dpkg-deb has one core busy with each."""
    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(unpack, folders.keys(), folders.values()))


def unpack(file: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["dpkg-deb", "-x", file, folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RecipeError(f"{file.name}: cannot unpack: {done.stderr.strip()}")
