# SPDX-License-Identifier: Apache-2.0
"""What a store has of one run as one value, for a store of another host."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from sundial.sweep.result import Result, result_of
from sundial.sweep.store import RESULT, RUN, Kept, Store

Parcel = Mapping[str, bytes]
"""Compressed contents of all files, by their paths below the folder of the key."""
LEVEL = 1


def packed(place: Path) -> Parcel:
    """The results below the folder of a key. Raises OSError."""
    paths = [place / RESULT, *place.glob(f"{RUN}/**/*"), *place.glob("again/*.json"), *place.glob("differs/**/*")]
    names = {path.relative_to(place).as_posix(): path for path in paths if path.is_file() and not path.is_symlink()}
    return {name: zlib.compress(path.read_bytes(), LEVEL) for name, path in names.items()}


def put_all(parcel: Parcel, key: str, store: Store) -> Kept | None:
    """Keep each making of a run that a parcel has; the store compares them. What is not of this key is left out."""
    kept = None
    for folder in sorted({PurePosixPath(name).parent for name in parcel if PurePosixPath(name).name == RESULT}):
        try:
            result = result_of(json.loads(zlib.decompress(parcel[str(folder / RESULT)])))
        except (ValueError, KeyError, TypeError, zlib.error):
            continue
        if result is not None and result.key == key:
            kept = _put(parcel, folder / RUN, result, store)
    if kept is not None and not kept.differing:
        store.add_again(key, _again(parcel, kept))
        kept = store.find(key)
    return kept


def _again(parcel: Parcel, kept: Kept) -> dict[str, bytes]:
    """Makings with equal bytes that the sender has noted, but the one that is kept here."""
    own = f"{kept.result.host.get('making')}.json"
    noted = {PurePosixPath(name): content for name, content in parcel.items()}
    there = {path.name: content for path, content in noted.items() if path.parent == PurePosixPath("again")}
    return {name: zlib.decompress(content) for name, content in there.items() if name != own}


def _put(parcel: Parcel, run: PurePosixPath, result: Result, store: Store) -> Kept:
    with store.making() as folder:
        made = folder / "made"
        made.mkdir()
        for name, content in parcel.items():
            path = PurePosixPath(name)
            if path.is_relative_to(run) and ".." not in path.parts:
                target = made / path.relative_to(run)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(zlib.decompress(content))
        captures = all((made / name).is_file() for name in result.files)
        return store.put(result, made, captures=captures)
