# SPDX-License-Identifier: Apache-2.0
"""The program of guest-apps/grpc/cpp: compiled with the host's compiler, and with headers, libraries and code generators
of packages."""

import re
from collections.abc import Sequence
from pathlib import Path

from recipe import packages
from recipe.errors import RecipeError
from recipe.image import CHECKOUT, Workspace, run_make

SOURCE = CHECKOUT / "guest-apps/grpc/cpp"
DEVELOPMENT_FILES = [("/usr/bin/g++", "g++"), ("/usr/include/jansson.h", "libjansson-dev")]
PACKAGED = [
    *("libgrpc++-dev", "libgrpc-dev", "libprotobuf-dev", "libabsl-dev"),
    *("libre2-dev", "libc-ares-dev", "zlib1g-dev"),
]
"""What it is compiled with. It is static: nothing of these is in the guest but what it is linked with."""
PROGRAM = "grpc-cpp"
NAMES = ("grpc-cpp-client", "grpc-cpp-server")
_VERSIONS = {"grpc": (Path("usr/include/grpcpp/version_info.h"), r'GRPC_CPP_VERSION_STRING "([\d.]+)"')}


def make(
    workspace: Workspace, protoc: Sequence[str], plugin: Path, release: str | None = None
) -> tuple[Path, list[packages.Package]]:
    """The program, and the packages of which parts are in it. `protoc`, `plugin`: commands of the same packages."""
    found = packages.look_up(PACKAGED, release)
    root = _root(workspace)
    packages.unpack_all(dict.fromkeys(packages.download(list(found.values()), workspace.cache).values(), root))
    out = workspace.scratch / "cpp"
    out.mkdir()
    command = out / "protoc"
    command.write_text(f'#!/bin/sh\nexec {" ".join(protoc)} --plugin=protoc-gen-grpc={plugin} "$@"\n')
    command.chmod(0o755)
    run_make(SOURCE, OUT=out, PACKAGES=root, PROTOC=command)
    return out / PROGRAM, [found[name] for name in sorted(found)]


def versions(workspace: Workspace) -> dict[str, str]:
    """Of the libraries in it, by their names in `[cpp]`. Raises RecipeError."""
    said = {}
    for name, (header, pattern) in _VERSIONS.items():
        match = re.search(pattern, (_root(workspace) / header).read_text())
        if match is None:
            raise RecipeError(f"{header.name}: says no version of {name}")
        said[name] = match[1]
    return said


def _root(workspace: Workspace) -> Path:
    return workspace.scratch / "cpp-packages"
