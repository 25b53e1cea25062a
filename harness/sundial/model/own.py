# SPDX-License-Identifier: Apache-2.0
"""A machine's own kernel and initrd, instead of its image's, and files and programs that are added to its root.

This is the topology's part; `hostfiles.py` checks that the host has these files. A recorded run needs only this part.
"""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from sundial.errors import BadInput
from sundial.model.fields import Marker, Strict, written
from sundial.model.hostpath import PATH_MOST, HostPath, too_long
from sundial.model.root import Root
from sundial.units import SIZE

FILES_MOST = 64
"""Most files of one machine."""
CONTENT_MOST = 64 << 10
"""Most bytes of a file whose content is in the topology."""
CMDLINE_MOST = 1024
ARCHIVE_END = "TRAILER!!!"
"""The name that ends a cpio archive, so a file cannot have it."""
MOUNTED = ("/dev", "/proc", "/sys")
"""Folders on which an image mounts file systems: they hide files that are copied there."""

CMDLINE_ALLOWED = f"one line of up to {CMDLINE_MOST} ASCII characters"
CONTENT_ALLOWED = f"text of up to {SIZE.show(CONTENT_MOST)}"
GUEST_PATH_ALLOWED = f"an absolute path such as '/etc/motd', without '.', '..' or '//', not below {', '.join(MOUNTED)}"
MODE_ALLOWED = "four octal digits in quotes, such as '0644' or '0755'"


class GuestPath(Marker):
    """A file in a machine."""

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not value.isprintable() or too_long(value) or not _is_normal(value):
            raise BadInput(f"{value!r} is not a path for a file in a machine", allowed=GUEST_PATH_ALLOWED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^/", "maxLength": PATH_MOST, "x-allowed": GUEST_PATH_ALLOWED}


class Mode(Marker):
    """The permissions of a file; the value is an int."""

    def parse(self, value: object) -> int:
        # YAML 1.2 reads 0644 without quotes as six hundred and forty-four.
        if not isinstance(value, str) or len(value) != 4 or set(value) - set("01234567"):
            raise BadInput(f"{value!r} is not a mode", allowed=MODE_ALLOWED)
        mode = int(value, 8)
        if mode & 0o1000:
            raise BadInput(f"{value!r} has the sticky bit, which is only for folders", allowed=MODE_ALLOWED)
        for bit, execute, who in ((0o4000, 0o100, "owner"), (0o2000, 0o010, "group")):
            if mode & bit and not mode & execute:
                what = f"{value!r} sets the {who}'s set-id bit without the {who}'s execute bit"
                raise BadInput(what, allowed=f"the {who}'s execute bit too, such as '{mode | execute:04o}'")
        return mode

    def show(self, value: int) -> str:
        return f"{value:04o}"

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^[0-7]{4}$", "x-allowed": MODE_ALLOWED}


class Words(Marker):
    """Words of a kernel's command line."""

    def parse(self, value: object) -> str:
        words = value.strip() if isinstance(value, str) else ""
        if not words or not words.isascii() or not words.isprintable() or len(words) > CMDLINE_MOST:
            raise BadInput(f"{value!r} is not valid on a command line", allowed=CMDLINE_ALLOWED)
        return words

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "maxLength": CMDLINE_MOST, "x-allowed": CMDLINE_ALLOWED}


class Content(Marker):
    """The content of a file, in UTF-8."""

    def parse(self, value: object) -> str:
        try:
            fits = isinstance(value, str) and len(value.encode()) <= CONTENT_MOST
        except UnicodeEncodeError:  # half of a surrogate pair, which YAML can write
            fits = False
        if not isinstance(value, str) or not fits:
            raise BadInput(f"{str(value)[:40]!r} is not valid content", allowed=CONTENT_ALLOWED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": CONTENT_MOST, "x-allowed": CONTENT_ALLOWED}


class LaidFile(Strict):
    """One file that is copied into a machine's root; missing folders are created."""

    model_config = ConfigDict(serialize_by_alias=True)

    source: Annotated[str, HostPath()] | None = Field(default=None, alias="from")
    """File on this host with the content."""
    content: Annotated[str, Content()] | None = None
    """The content itself, instead of `from`."""
    mode: Annotated[int, Mode()] = written("0644")
    """Permissions; the file belongs to root."""

    @model_validator(mode="after")
    def _has_one_content(self) -> Self:
        if (self.source is None) == (self.content is None):
            raise BadInput("has both from and content" if self.source else "has no content", allowed="from or content")
        return self


class OwnBoot(Strict):
    """Fields of `defaults` and of each machine."""

    kernel: Annotated[str, HostPath()] | None = None
    """Kernel to boot instead of the image's: an ELF file with a PVH note, or a bzImage."""
    initrd: Annotated[str, HostPath()] | None = None
    """Initrd to boot with instead of the image's: a cpio archive (newc), compressed or not."""
    cmdline: Annotated[str, Words()] | None = None
    """Words to add to the image's kernel command line."""
    files: dict[Annotated[str, GuestPath()], LaidFile] = Field(
        default_factory=dict, max_length=FILES_MOST, exclude_if=operator.not_
    )
    """Files to copy into the root, by their path there; a machine's add to those of `defaults` and override them."""
    root: Root | None = Field(default=None, exclude_if=operator.not_)
    """Programs of others in its file system: packages, a container image or a folder."""


def files_of(defaults: OwnBoot, machine: OwnBoot) -> Mapping[str, LaidFile]:
    """All files of a machine, by path, sorted."""
    return dict(sorted({**defaults.files, **machine.files}.items()))


def _is_normal(path: str) -> bool:
    if any(path == place or path.startswith(f"{place}/") for place in MOUNTED) or path.endswith(f"/{ARCHIVE_END}"):
        return False
    # posixpath keeps two slashes at the beginning.
    return path.startswith("/") and not path.startswith("//") and posixpath.normpath(path) == path != "/"
