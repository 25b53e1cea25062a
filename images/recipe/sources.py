# SPDX-License-Identifier: Apache-2.0
"""A source package of the distribution: found in apt's own sources, checked, unpacked, patched; without root."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from recipe.errors import HostLacks, RecipeError
from recipe.locks import locked
from recipe.packages import sha256_of

_APT_FOLDER = Path("/etc/apt")
_ONE_LINE = re.compile(r"^\s*deb(\s)", re.MULTILINE)
_TYPES = re.compile(r"^Types:.*$", re.MULTILINE | re.IGNORECASE)


def source_lists(apt_folder: Path) -> Iterator[tuple[str, str]]:
    """This machine's lists of packages, as lists of source packages: (file name, contents)."""
    one_line = [apt_folder / "sources.list", *sorted((apt_folder / "sources.list.d").glob("*.list"))]
    for path in one_line:
        if path.is_file():
            yield f"{path.stem}-one-line.list", _ONE_LINE.sub(r"deb-src\1", path.read_text())
    for path in sorted((apt_folder / "sources.list.d").glob("*.sources")):
        yield path.name, _TYPES.sub("Types: deb-src", path.read_text())


def _apt(private: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """apt-get with every folder that it would write to below `private`."""
    (private / "lists/partial").mkdir(parents=True, exist_ok=True)
    (private / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
    options = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": private / "sources",
        "Dir::State::lists": private / "lists",
        "Dir::Cache": private / "cache",
    }
    settings = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    try:
        return subprocess.run(
            ["apt-get", "-q", *settings, *words], cwd=cwd, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise HostLacks("apt-get not found: sources come from Debian's source packages") from None


def listed_files(description: str) -> dict[str, str]:
    """File name -> sha256, of a .dsc."""
    found = {}
    inside = False
    for line in description.splitlines():
        if line.startswith("Checksums-Sha256:"):
            inside = True
        elif inside and line.startswith(" "):
            digest, _, name = line.split()
            found[name] = digest
        else:
            inside = False
    return found


def _complete(folder: Path, name: str) -> Path | None:
    """The .dsc of the package in `folder` where every file that it lists is there and is the one listed."""
    for description in sorted(folder.glob(f"{name}_*.dsc")):
        files = listed_files(description.read_text())
        if files and all(
            (folder / file).is_file() and sha256_of(folder / file) == digest for file, digest in files.items()
        ):
            return description
    return None


def download(name: str, cache: Path) -> Path:
    """The package's .dsc, beside the files that it lists, all of them checked; from the cache where they are whole.

    apt checks the .dsc against the distribution's signed lists. Lists of others that do not answer do no harm.
    """
    with locked(cache / ".lock", "the downloads of another build"):
        return _download(name, cache)


def _download(name: str, cache: Path) -> Path:
    folder = cache / f"source-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    if (kept := _complete(folder, name)) is not None:
        return kept
    with tempfile.TemporaryDirectory(prefix="apt-", dir=cache) as private_name:
        private = Path(private_name)
        (private / "sources").mkdir()
        for file, text in source_lists(_APT_FOLDER):
            (private / "sources" / file).write_text(text)
        updated = _apt(private, "update", cwd=private)
        fetched = _apt(private, "source", "--download-only", name, cwd=folder)
    if fetched.returncode != 0:
        said = [line for line in (updated.stderr + fetched.stderr).splitlines() if line.strip()]
        raise HostLacks(f"cannot download the source package {name}: {said[-1] if said else 'no reason given'}")
    description = _complete(folder, name)
    if description is None:
        raise RecipeError(f"the source package {name} is not what its .dsc lists")
    return description


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise HostLacks(f"{command[0]} not found: it is needed to {what}") from None
    if done.returncode != 0:
        raise RecipeError(f"cannot {what}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


def _series(debian: Path) -> list[Path]:
    """The patches that the distribution applies, in order."""
    series = debian / "patches/series"
    if not series.is_file():
        return []
    lines = (line.split("#")[0].strip() for line in series.read_text().splitlines())
    return [debian / "patches" / line.split()[0] for line in lines if line]


def unpack(description: Path, target: Path) -> None:
    """Fills `target` with the sources as the distribution builds them."""
    files = listed_files(description.read_text())
    archives = {kind: [name for name in files if f".{kind}.tar" in name] for kind in ("orig", "debian")}
    if any(len(names) != 1 for names in archives.values()):
        raise RecipeError(f"{description.name}: expected one upstream and one Debian archive")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for kind, strip in (("orig", "1"), ("debian", "0")):
        archive = description.parent / archives[kind][0]
        command = ["tar", "-xf", str(archive), "-C", str(target), f"--strip-components={strip}", "--no-same-owner"]
        _run(command, f"unpack {archive.name}")
    for patch in _series(target / "debian"):
        _run(["patch", "-s", "-p1", "-f", "-d", str(target), "-i", str(patch)], f"apply {patch.name}")
