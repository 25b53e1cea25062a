# SPDX-License-Identifier: Apache-2.0
"""Python packages that the distribution does not have in this version, by pip and pinned by hash in a `wheels.lock`."""

import hashlib
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

from recipe.errors import HostLacks, RecipeError
from recipe.image import CHECKOUT
from recipe.locks import locked
from recipe.packages import sha256_of

LOCK = "wheels.lock"
PIP = CHECKOUT / ".venv/bin/python"
"""The checkout's own environment has one; that of the host need not."""

_PINNED = re.compile(r"^([\w.-]+)==(\S+)((?:\s+--hash=sha256:[0-9a-f]{64})+)$")
_FOR_GUESTS = ["--platform", "manylinux2014_x86_64", "--python-version", "3.11", "--implementation", "cp"]
_FOR_GUESTS += [word for abi in ("cp311", "abi3", "none") for word in ("--abi", abi)]


def pinned(lock: Path) -> list[dict[str, str]]:
    """What the lock lists, as manifests list it. Raises RecipeError for a line without a version and one hash."""
    found = []
    for line in lock.read_text().replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith(("#", "--")):
            continue
        match = _PINNED.match(line.strip())
        hashes = match[3].split() if match else []
        if match is None or len(hashes) != 1:
            raise RecipeError(f"{lock.name}: {line.strip()!r} is not NAME==VERSION --hash=sha256:...")
        found.append({"name": match[1], "version": match[2], "sha256": hashes[0].partition(":")[2]})
    return found


def download(lock: Path, cache: Path) -> list[Path]:
    """The files of the lock, in its order; from the cache where they are whole."""
    wanted = pinned(lock)
    folder = cache / f"wheels-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    with locked(cache / ".lock", "the downloads of another build"):
        if not (found := _complete(folder, wanted)):
            _fetch(lock, folder)
            found = _complete(folder, wanted)
    if not found:
        raise RecipeError(f"{lock.name}: pip has not left what it lists")
    return found


def _complete(folder: Path, wanted: list[dict[str, str]]) -> list[Path] | None:
    files = {sha256_of(path): path for path in sorted(folder.glob("*"))}
    found = [files.get(each["sha256"]) for each in wanted]
    return [path for path in found if path is not None] if None not in found else None


def _fetch(lock: Path, folder: Path) -> None:
    if not PIP.is_file():
        raise HostLacks(f"{PIP.relative_to(CHECKOUT)} is not there, whose pip downloads {lock.name}: make setup")
    # Sources name no platform, and pip asks them for their metadata: with what the environment has, not with more.
    which = ["--no-build-isolation"] if "--no-binary" in lock.read_text() else ["--only-binary=:all:", *_FOR_GUESTS]
    command = [PIP, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    done = subprocess.run(
        [*command, *which, "--requirement", lock, "--dest", folder], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise HostLacks(f"pip cannot download {lock.name}: {said[-1] if said else 'no reason given'}")


def unpack(file: Path, scratch: Path) -> Path:
    """A folder that holds its packages as they are imported."""
    target = scratch / file.name
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(target)
        return target
    with tarfile.open(file) as source:
        source.extractall(target, filter="data")
    (inside,) = target.iterdir()
    return inside / "src" if (inside / "src").is_dir() else inside
