# SPDX-License-Identifier: Apache-2.0
"""The layers of a container image as one tree. Each is compared with its digests, packed and unpacked."""

from __future__ import annotations

import hashlib
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from sundial.errors import HostLacks
from sundial.machines.tree import BadTree, Tree, add_layer
from sundial.model.oci import BadImage, Layer, OciImage, blobs

BYTES_MOST = 16 << 30
"""Of all layers together, unpacked."""
_PIECE = 1 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def read_layers(path: Path, image: OciImage, scratch: Path) -> Tree:
    """The tree of an image. Layers are unpacked into `scratch`, which entries refer to. Raises BadTree, HostLacks."""
    tree: Tree = {}
    left = BYTES_MOST
    try:
        with blobs(path) as files:
            for number, layer in enumerate(image.layers):
                target = scratch / f"layer-{number}.tar"
                with files.open(layer.name) as packed:
                    left -= _unpack(packed, target, layer, left)
                add_layer(tree, target, f"layer {layer.diff_sha256[:12]}")
    except BadImage as error:
        raise BadTree(f"{path} {error}") from error
    return tree


def _unpack(packed: IO[bytes], target: Path, layer: Layer, most: int) -> int:
    """Write a layer's content; its bytes."""
    named, content, written = hashlib.sha256(), hashlib.sha256(), 0
    what = f"layer {layer.diff_sha256[:12]}"

    def pieces() -> Iterator[bytes]:
        while piece := packed.read(_PIECE):
            named.update(piece)
            yield piece

    with target.open("wb") as out:
        for piece in _plain(pieces(), what):
            written += len(piece)
            if written > most:
                raise BadTree(f"{what}: the image has more than {BYTES_MOST} bytes")
            content.update(piece)
            out.write(piece)
    for _ in pieces():
        pass  # behind the end of the compressed data
    if layer.sha256 is not None and named.hexdigest() != layer.sha256:
        raise BadTree(f"{what} is damaged: its file has another sha256 than the manifest says")
    if content.hexdigest() != layer.diff_sha256:
        raise BadTree(f"{what} is damaged: its content has another sha256 than the configuration says")
    return written


def _plain(pieces: Iterator[bytes], what: str) -> Iterator[bytes]:
    first = next(pieces, b"")
    if first.startswith(_GZIP):
        yield from _gunzipped(first, pieces, what)
    elif first.startswith(_ZSTD):
        yield from _unzstd([first, *pieces], what)
    else:
        yield first
        yield from pieces


def _gunzipped(first: bytes, pieces: Iterator[bytes], what: str) -> Iterator[bytes]:
    """The content of gzip data; members may follow one another."""
    unpacker, data = zlib.decompressobj(wbits=31), first
    try:
        while data:
            yield unpacker.decompress(data, _PIECE)
            data = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            data = data or next(pieces, b"")
            if data and unpacker.eof:
                unpacker = zlib.decompressobj(wbits=31)
    except zlib.error as error:
        raise BadTree(f"{what} is damaged: {error}") from error
    if not unpacker.eof:
        raise BadTree(f"{what} is cut off")


def _unzstd(pieces: list[bytes], what: str) -> Iterator[bytes]:
    try:
        done = subprocess.run(["zstd", "-dcq"], input=b"".join(pieces), capture_output=True, check=False)
    except FileNotFoundError:
        raise HostLacks(f"{what} is compressed by Zstandard", hint="install the package zstd") from None
    if done.returncode != 0:
        raise BadTree(f"{what} is damaged: {done.stderr.decode(errors='replace').strip()[:80]}")
    yield done.stdout
