# SPDX-License-Identifier: Apache-2.0
"""Programs of others in a machine's file system: Debian packages, an OCI image, a folder of the host; and modules of
the image's kernel.

This is the topology's part; `hostfiles.py` checks that the host has these files, `machines/roots.py` makes the root.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sundial.errors import BadInput
from sundial.model.fields import Flag, Marker, Strict
from sundial.model.hostpath import HostPath

PACKAGES_MOST = 64
MODULES_MOST = 64
PACKAGE_ALLOWED = "a Debian package such as redis-server, or with its version, redis-server=5:7.0.15-1~deb12u10"
TAG_ALLOWED = "a tag of the archive, such as redis:7"

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}(=[0-9][A-Za-z0-9.+:~-]{0,99})?")
_FOREIGN = re.compile(r"[a-z0-9][a-z0-9+.-]+:([a-z0-9-]+)(=.*)?")
LOCKED = {
    "name": re.compile(r"[a-z0-9][a-z0-9+.-]+"),
    "version": re.compile(r"[0-9][A-Za-z0-9.+:~-]*"),
    "architecture": re.compile(r"amd64|all"),
    "sha256": re.compile(r"[0-9a-f]{64}"),
}
"""Fields of a package in a lock."""
MODULE_ALLOWED = "a module of Linux, such as nfsd"
_MODULE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
OPTION_ALLOWED = "an option of the kernel's configuration without CONFIG_, such as NFS_DISABLE_UDP_SUPPORT"
_OPTION = re.compile(r"[A-Z0-9][A-Z0-9_]{0,99}")
_TAG = re.compile(r"[\w./:@-]{1,255}")


class PackageName(Marker):
    """A package's name, with or without a version."""

    def parse(self, value: object) -> str:
        if isinstance(value, str) and (other := _FOREIGN.fullmatch(value)):
            what = f"{value!r} names architecture {other[1]}, and machines are amd64"
            raise BadInput(what, allowed=PACKAGE_ALLOWED)
        if not isinstance(value, str) or not _PACKAGE.fullmatch(value):
            raise BadInput(f"{value!r} is not a package", allowed=PACKAGE_ALLOWED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{_PACKAGE.pattern}$", "x-allowed": PACKAGE_ALLOWED}


class ModuleName(Marker):
    """A module of the kernel; `-` and `_` are one character, as for Linux."""

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not _MODULE.fullmatch(value):
            raise BadInput(f"{value!r} is not a module", allowed=MODULE_ALLOWED)
        return value.replace("-", "_")

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{_MODULE.pattern}$", "x-allowed": MODULE_ALLOWED}


class OptionName(Marker):
    """An option of the kernel's configuration."""

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not _OPTION.fullmatch(value) or value.startswith("CONFIG_"):
            raise BadInput(f"{value!r} is not an option", allowed=OPTION_ALLOWED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^(?!CONFIG_){_OPTION.pattern}$", "x-allowed": OPTION_ALLOWED}


def read_lock(text: str, packages: Sequence[str]) -> list[dict[str, str]]:
    """The packages of a lock, which must be for these words. Raises ValueError, which says what is wrong."""
    try:
        document = json.loads(text)
        asked, listed = document["asked"], document["packages"]
        found = [{name: str(each[name]) for name in LOCKED} for each in listed]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError("is not a lock of packages") from error
    for each in found:
        if not all(pattern.fullmatch(each[name]) for name, pattern in LOCKED.items()):
            raise ValueError(f"has an invalid package {each['name'][:60]!r}")
    if sorted(set(map(str, asked))) != sorted(set(packages)):
        raise ValueError(f"is for packages {' '.join(map(str, asked))}")
    return found


class Tag(Marker):
    """Which image of an archive."""

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not _TAG.fullmatch(value):
            raise BadInput(f"{value!r} is not a tag", allowed=TAG_ALLOWED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^[A-Za-z0-9_./:@-]{1,255}$", "x-allowed": TAG_ALLOWED}


class Root(Strict):
    """Programs to add to the image's file system, in their usual paths; later sources override earlier ones."""

    model_config = ConfigDict(serialize_by_alias=True)

    packages: list[Annotated[str, PackageName()]] = Field(default_factory=list, max_length=PACKAGES_MOST)
    """Debian packages, with all packages that they depend on."""
    lock: Annotated[str, HostPath()] | None = None
    """Their versions and SHA-256, as `sundial images packages --lock` writes them. Default: apt's choice."""
    oci: Annotated[str, HostPath()] | None = None
    """Container image: the folder of an OCI layout, its tar archive, or an archive that `docker save` writes."""
    tag: Annotated[str, Tag()] | None = None
    """The image to take from `oci`, if there are several."""
    folder: Annotated[str, HostPath()] | None = None
    """Folder on this host; its files belong to root."""
    modules: list[Annotated[str, ModuleName()]] = Field(default_factory=list, max_length=MODULES_MOST)
    """Modules of the image's kernel, with those that they depend on, for modprobe. Recipe distribution only."""
    rebuild: dict[
        Annotated[str, ModuleName()],
        Annotated[dict[Annotated[str, OptionName()], Annotated[bool, Flag()]], Field(min_length=1)],
    ] = Field(default_factory=dict, max_length=MODULES_MOST, exclude_if=operator.not_)
    """Of these modules, those to compile again from the kernel's source, each with options of the kernel's
    configuration that are on (true) or off (false) in it."""
    held: Literal["memory", "disk"] = Field(default="memory", alias="as")
    """memory: in the machine's main memory. disk: on a read-only device that all machines map; what is written is in
    memory."""

    @property
    def sources(self) -> list[str]:
        """Names of its sources, the lowest first."""
        named = {"packages": self.packages, "oci": self.oci, "folder": self.folder, "modules": self.modules}
        return [name for name, value in named.items() if value]

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if not self.sources:
            raise BadInput("has no source", allowed="packages, oci, folder or modules")
        if self.lock is not None and not self.packages:
            raise BadInput("has no packages", field="lock", allowed="packages in addition")
        for name in self.rebuild:
            if name not in self.modules:
                raise BadInput(
                    f"{name!r} is not one of modules", field="rebuild", allowed="modules: [NAME] in addition"
                )
        if self.tag is not None and self.oci is None:
            raise BadInput("has no archive", field="tag", allowed="oci in addition")
        return self
