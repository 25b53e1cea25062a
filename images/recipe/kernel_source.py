# SPDX-License-Identifier: Apache-2.0
"""A kernel built from the distribution's source package and a configuration as `make savedefconfig` writes it.

Built once for each package, configuration and compiler: what a build leaves is kept in the cache under a digest of
everything that it is made of, and takes its name there when it is complete.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recipe import kernel_config, packages
from recipe.elf import Elf, is_elf
from recipe.errors import HostLacks, RecipeError
from recipe.image import Workspace
from recipe.locks import locked
from recipe.progress import say

SOURCE_PACKAGE = "linux-source"
VMLINUX, CONFIG, BUILT_IN, MADE = "vmlinux", "config", "modules.builtin", "made.json"

# Else the kernel would say who built it, where and when.
BUILT_BY = {
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01T00:00:00Z",
    "KBUILD_BUILD_USER": "sundial",
    "KBUILD_BUILD_HOST": "sundial",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
    "TZ": "UTC",
}

DEVELOPMENT_FILES = [
    ("/usr/bin/gcc", "gcc"),
    ("/usr/bin/make", "make"),
    ("/usr/bin/ld", "binutils"),
    ("/usr/bin/perl", "perl-base"),
    ("/usr/bin/xz", "xz-utils"),
    ("/usr/bin/flex", "flex"),
    ("/usr/bin/bison", "bison"),
    ("/usr/bin/bc", "bc"),
    ("/usr/include/libelf.h", "libelf-dev"),
]

FILES_A_LINE = 100
"""Compiled files between two lines of progress."""
_SYMBOL = re.compile(r"CONFIG_\w+(?==)|(?<=# )CONFIG_\w+(?= is not set)")
_COMPILED = re.compile(r"\s+(CC|AS)\s+\S+")


@dataclass(frozen=True)
class Kernel:
    """A kernel that was built."""

    vmlinux: bytes
    release: str
    hz: int
    built_in: bytes
    """modules.builtin: what would be a module elsewhere."""


def source_package() -> packages.Package:
    """The package with the source of the kernel that the distribution has."""
    for name in packages.look_up([SOURCE_PACKAGE])[SOURCE_PACKAGE].depends:
        if name.startswith(f"{SOURCE_PACKAGE}-"):
            return packages.look_up([name])[name]
    raise RecipeError(f"package {SOURCE_PACKAGE}: names no package with a source")


def symbols(config: str) -> dict[str, str]:
    """Symbol -> its line, of a configuration."""
    return {found[0]: line for line in config.splitlines() if (found := _SYMBOL.search(line))}


def not_taken(asked: str, made: str) -> list[str]:
    """The lines of the configuration asked for that the kernel's own tools did not take over."""
    resulting = symbols(made)
    return [
        line
        for symbol, line in symbols(asked).items()
        # A symbol that does not exist here, or whose menu is off, is not set either.
        if resulting.get(symbol, f"# {symbol} is not set") != line
    ]


def build(package: packages.Package, config: Path, workspace: Workspace) -> Kernel:
    """The kernel, from the cache where it is there. Raises RecipeError."""
    made_of = {
        "source": package.sha256,
        "config": packages.sha256_of(config),
        "environment": BUILT_BY,
        "tools": [_version_of(tool) for tool in ("gcc", "ld", "as")],
    }
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
    kept = workspace.cache / f"kernel-{key[:32]}"
    with locked(kept.with_name(f".{kept.name}.lock"), "another build of the same kernel"):
        if (kernel := _read(kept)) is not None:
            return kernel
        folder = workspace.scratch / "kernel"
        folder.mkdir()
        _compile(_unpacked(package, workspace), config.read_text(), folder)
        shutil.rmtree(kept, ignore_errors=True)
        folder.rename(kept)
        kernel = _read(kept)
        assert kernel is not None, "just written"
        return kernel


def _read(folder: Path) -> Kernel | None:
    """What a complete build left, if it is still what it left."""
    try:
        made = json.loads((folder / MADE).read_text())
        if any(packages.sha256_of(folder / name) != digest for name, digest in made["sha256"].items()):
            return None
        return Kernel((folder / VMLINUX).read_bytes(), made["release"], made["hz"], (folder / BUILT_IN).read_bytes())
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _unpacked(package: packages.Package, workspace: Workspace) -> Path:
    archive = packages.download([package], workspace.cache)[package.name]
    folder, source = workspace.scratch / "source-package", workspace.scratch / "linux"
    say(f"kernel: unpacking {package.name} {package.version}")
    packages.unpack(archive, folder)
    found = sorted((folder / "usr/src").glob("linux-source-*.tar.*"))
    if len(found) != 1:
        raise RecipeError(f"package {package.name}: expected one archive in /usr/src, found {len(found)}")
    source.mkdir()
    command = ["tar", "-xf", str(found[0]), "-C", str(source), "--strip-components=1", "--no-same-owner"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RecipeError(f"{found[0].name}: cannot unpack: {done.stderr.strip().splitlines()[-1]}")
    shutil.rmtree(folder)
    return source


def _compile(source: Path, asked: str, folder: Path) -> None:
    """Builds in the source's own folder, so that no path of the host comes into the kernel."""
    (source / ".config").write_text(asked)
    for _ in make(source, "olddefconfig"):
        pass
    config = (source / ".config").read_text()
    if lines := not_taken(asked, config):
        raise RecipeError(f"kernel: its source does not take these lines of the configuration: {'; '.join(lines)}")
    say("kernel: compiling some 1,050 files, which takes 8 minutes of processor time")
    jobs = len(os.sched_getaffinity(0))
    compiled = 0
    for line in make(source, f"-j{jobs}", "vmlinux"):
        compiled += bool(_COMPILED.match(line))
        if compiled and compiled % FILES_A_LINE == 0 and _COMPILED.match(line):
            say(f"kernel: {compiled} files are compiled")
    release = "".join(make(source, "-s", "kernelrelease")).strip()
    if not is_elf(vmlinux := (source / VMLINUX).read_bytes()) or not Elf(vmlinux).has_pvh_entry():
        raise RecipeError("kernel: has no PVH entry (CONFIG_PVH)")
    shutil.copy(source / VMLINUX, folder / VMLINUX)
    shutil.copy(source / BUILT_IN, folder / BUILT_IN)
    (folder / CONFIG).write_text(config)
    digests = {name: packages.sha256_of(folder / name) for name in (VMLINUX, BUILT_IN, CONFIG)}
    made = {"release": release, "hz": kernel_config.hz(config), "sha256": digests}
    (folder / MADE).write_text(json.dumps(made, indent=1) + "\n")


def make(source: Path, *words: str) -> Iterator[str]:
    """Lines that make writes in the source's folder. Raises RecipeError with the first line of an error."""
    # make ends with this process, however that ends, and takes its compilers with it.
    command = ["setpriv", "--pdeathsig", "TERM", "make", "--no-print-directory", *words]
    inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")}
    try:
        process = subprocess.Popen(
            command,
            cwd=source,
            env=inherited | BUILT_BY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except FileNotFoundError:
        raise HostLacks("setpriv not found (package util-linux)") from None
    errors = []
    with process:
        assert process.stdout is not None, "asked for above"
        for line in process.stdout:
            if "rror:" in line or "***" in line or "No space left" in line:
                errors.append(line.strip())
            yield line
    if process.returncode != 0:
        raise RecipeError(f"kernel: make {words[-1]}: {errors[0] if errors else f'status {process.returncode}'}")


def _version_of(tool: str) -> str:
    try:
        done = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise HostLacks(f"{tool} not found") from None
    return done.stdout.partition("\n")[0]
