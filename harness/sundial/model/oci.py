# SPDX-License-Identifier: Apache-2.0
"""Container images in files: an OCI layout (a folder, or its tar archive), and what `docker save` writes.

Only documents are read here; `machines/layers.py` reads layers. OCI image specification 1.1; what Docker writes has a
`manifest.json` beside or instead of the layout's `index.json`.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

OCI_ALLOWED = "the folder of an OCI layout, its tar archive, or an archive that docker save writes"
DOCUMENT_MOST = 4 << 20
"""Most bytes of an index, a manifest or a configuration."""
LAYERS_MOST = 256
NESTED_MOST = 3
"""Indices within one another."""
ARCHITECTURE, SYSTEM = "amd64", "linux"
_TAG_KEYS = ("org.opencontainers.image.ref.name", "io.containerd.image.name")


class BadImage(Exception):
    """The file is not a container image for machines; the message continues the file's name."""


@dataclass(frozen=True)
class Process:
    """What an image says of its program: the fields that `app: command` takes for defaults."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: str
    user: str


@dataclass(frozen=True)
class Layer:
    """One layer: the file of the archive that has it, its own sha256 where it is named by it, and its content's."""

    name: str
    sha256: str | None
    diff_sha256: str


@dataclass(frozen=True)
class OciImage:
    """One image of an archive."""

    digest: str
    """sha256 of its configuration, which names all layers by their contents."""
    layers: tuple[Layer, ...]
    process: Process


class Blobs:
    """Files of an image, in a folder or in a tar archive that is not compressed as a whole, or by gzip, bzip2 or xz."""

    def __init__(self, path: Path, tar: tarfile.TarFile | None) -> None:
        self._path = path
        self._tar = tar
        self._members = {} if tar is None else {posixpath.normpath(member.name): member for member in tar}

    def __contains__(self, name: str) -> bool:
        return (self._path / name).is_file() if self._tar is None else name in self._members

    def open(self, name: str) -> IO[bytes]:
        """Raises BadImage for a file that is missing."""
        if self._tar is None:
            return self._in_folder(name)
        member = self._members.get(name)
        for _ in range(NESTED_MOST):
            # Docker has links in place of layers that it has written before.
            if member is not None and (member.issym() or member.islnk()):
                at = (
                    posixpath.join(posixpath.dirname(member.name), member.linkname)
                    if member.issym()
                    else member.linkname
                )
                member = self._members.get(posixpath.normpath(at))
        content = None if member is None or not member.isreg() else self._tar.extractfile(member)
        if content is None:
            raise BadImage(f"lacks its file {name}")
        return content

    def document(self, name: str, sha256: str | None = None) -> Any:
        """A JSON document, compared with its digest. Raises BadImage."""
        with self.open(name) as file:
            data = file.read(DOCUMENT_MOST + 1)
        if len(data) > DOCUMENT_MOST:
            raise BadImage(f"is damaged: {name} has more than {DOCUMENT_MOST} bytes")
        if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
            raise BadImage(f"is damaged: {name} has another sha256")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise BadImage(f"is damaged: {name} is not JSON") from error

    def _in_folder(self, name: str) -> IO[bytes]:
        place = self._path / name
        if not place.is_file():
            raise BadImage(f"lacks its file {name}")
        return place.open("rb")


@contextmanager
def blobs(path: Path) -> Iterator[Blobs]:
    """The files of an image at `path`. Raises BadImage."""
    try:
        if path.is_dir():
            yield Blobs(path, None)
            return
        if not path.is_file():
            raise BadImage("is not a regular file" if path.exists() else "does not exist")
        with tarfile.open(path) as tar:
            yield Blobs(path, tar)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise BadImage(f"is damaged or not a tar archive: {error}") from error
    except OSError as error:
        raise BadImage(f"cannot be read: {error.strerror or error}") from error


def read_image(path: Path, tag: str | None = None) -> OciImage:
    """The image at `path`, or the one with this tag. Raises BadImage."""
    with blobs(path) as files:
        try:
            return _layout(files, tag) if "index.json" in files else _saved(files, tag)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise BadImage(f"is damaged: its documents lack {error}") from error


def _layout(files: Blobs, tag: str | None) -> OciImage:
    index = files.document("index.json")
    for _ in range(NESTED_MOST):
        manifest = files.document(*_blob(_chosen(index["manifests"], tag)))
        if "layers" in manifest:
            name, digest = _blob(manifest["config"])
            layers = [_blob(layer) for layer in manifest["layers"]]
            return _image(files.document(name, digest), digest, layers)
        index, tag = manifest, None
    raise BadImage(f"has more than {NESTED_MOST} indices within one another")


def _saved(files: Blobs, tag: str | None) -> OciImage:
    if "manifest.json" not in files:
        raise BadImage("has neither index.json nor manifest.json")
    found = [each for each in files.document("manifest.json") if tag is None or tag in (each.get("RepoTags") or [])]
    tags = [name for each in files.document("manifest.json") for name in each.get("RepoTags") or []]
    manifest = _only(found, tag, tags)
    name = posixpath.normpath(manifest["Config"])
    digest = posixpath.basename(name).removesuffix(".json")
    return _image(
        files.document(name, digest), digest, [(posixpath.normpath(each), None) for each in manifest["Layers"]]
    )


def _chosen(manifests: Sequence[Mapping[str, Any]], tag: str | None) -> Mapping[str, Any]:
    """The only manifest of an index for these machines, or with this tag. Raises BadImage."""
    fitting = [each for each in manifests if _fits(each.get("platform") or {})]
    if not fitting and manifests:
        has = ", ".join(sorted({_platform(each.get("platform") or {}) for each in manifests}))
        raise BadImage(f"has images for {has}, and machines are {SYSTEM}/{ARCHITECTURE}")
    tags = [each.get("annotations", {}).get(key) for each in fitting for key in _TAG_KEYS]
    found = [
        each for each in fitting if tag is None or tag in [each.get("annotations", {}).get(key) for key in _TAG_KEYS]
    ]
    return _only(found, tag, [name for name in tags if name])


def _only(found: Sequence[Mapping[str, Any]], tag: str | None, tags: Sequence[str]) -> Mapping[str, Any]:
    if len(found) == 1:
        return found[0]
    names = ", ".join(dict.fromkeys(tags)) or "none"
    if not found:
        raise BadImage("has no images" if tag is None else f"has no image {tag!r}; it has: {names}")
    raise BadImage(f"has {len(found)} images; write one as tag: {names}")


def _fits(platform: Mapping[str, Any]) -> bool:
    return (platform.get("architecture", ARCHITECTURE), platform.get("os", SYSTEM)) == (ARCHITECTURE, SYSTEM)


def _platform(platform: Mapping[str, Any]) -> str:
    return f"{platform.get('os', SYSTEM)}/{platform.get('architecture', ARCHITECTURE)}"


def _blob(descriptor: Mapping[str, Any]) -> tuple[str, str]:
    """File and sha256 of what a descriptor describes. Raises BadImage."""
    return f"blobs/sha256/{_sha256(descriptor['digest'])}", _sha256(descriptor["digest"])


def _sha256(digest: object) -> str:
    algorithm, _, value = str(digest).partition(":")
    if algorithm != "sha256" or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise BadImage(f"has digest {str(digest)[:80]!r}, which is not a sha256")
    return value


def _image(config: Mapping[str, Any], digest: str, layers: Sequence[tuple[str, str | None]]) -> OciImage:
    platform = {"os": config.get("os", SYSTEM), "architecture": config.get("architecture", ARCHITECTURE)}
    if not _fits(platform):
        raise BadImage(f"is for {_platform(platform)}, and machines are {SYSTEM}/{ARCHITECTURE}")
    contents = [_sha256(each) for each in config["rootfs"]["diff_ids"]]
    if len(contents) != len(layers) or len(layers) > LAYERS_MOST:
        raise BadImage(f"is damaged: {len(layers)} layers and {len(contents)} digests of their contents")
    process = config.get("config") or {}
    env = dict(str(each).partition("=")[::2] for each in process.get("Env") or [])
    return OciImage(
        digest,
        tuple(Layer(name, sha256, content) for (name, sha256), content in zip(layers, contents, strict=True)),
        Process(
            tuple(map(str, [*(process.get("Entrypoint") or []), *(process.get("Cmd") or [])])),
            env,
            str(process.get("WorkingDir") or "/"),
            str(process.get("User") or "root"),
        ),
    )
