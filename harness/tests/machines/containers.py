# SPDX-License-Identifier: Apache-2.0
"""Container images made by hand: layers, an OCI layout, and an archive as Docker saves it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CONFIG: dict[str, Any] = {
    "Entrypoint": ["/usr/bin/greet"],
    "Cmd": ["--loud"],
    "Env": ["PATH=/usr/bin", "WORD=a=b"],
    "WorkingDir": "/srv",
    "User": "daemon",
}


def member(
    name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", **fields: Any
) -> tuple[tarfile.TarInfo, bytes]:
    """One entry of a layer."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def folder(name: str, mode: int = 0o755) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, tarfile.DIRTYPE, mode=mode)


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, tarfile.SYMTYPE, linkname=target)


def layer(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def config_of(layers: Sequence[bytes], config: Mapping[str, Any] = CONFIG, **fields: Any) -> bytes:
    digests = [f"sha256:{sha256(each)}" for each in layers]
    document = {"architecture": "amd64", "os": "linux", "config": config, "rootfs": {"diff_ids": digests}, **fields}
    return json.dumps(document).encode()


def layout(place: Path, *layers: bytes, packed: bool = True, tags: Sequence[str] = (), **fields: Any) -> Path:
    """An OCI layout; with `tags`, so many manifests that are the same."""
    blobs = place / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)

    def blob(data: bytes) -> dict[str, Any]:
        (blobs / sha256(data)).write_bytes(data)
        return {"digest": f"sha256:{sha256(data)}", "size": len(data)}

    config = blob(config_of(layers, **fields))
    stored = [blob(gzip.compress(each, mtime=0) if packed else each) for each in layers]
    manifest = blob(json.dumps({"schemaVersion": 2, "config": config, "layers": stored}).encode())
    named = [{**manifest, "annotations": {"org.opencontainers.image.ref.name": tag}} for tag in tags]
    (place / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": named or [manifest]}))
    (place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return place


def archive(place: Path, source: Path) -> Path:
    """The tar archive of a layout's folder."""
    with tarfile.open(place, "w") as tar:
        tar.add(source, ".")
    return place


def saved(place: Path, *layers: bytes, tag: str = "greet:1") -> Path:
    """What `docker save` writes."""
    config = config_of(layers)
    documents = {f"{sha256(config)}.json": config}
    documents |= {f"{number}/layer.tar": each for number, each in enumerate(layers)}
    names = [name for name in documents if name.endswith(".tar")]
    manifest = [{"Config": f"{sha256(config)}.json", "RepoTags": [tag], "Layers": names}]
    documents["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(place, "w") as tar:
        for name, data in documents.items():
            info, content = member(name, content=data)
            tar.addfile(info, io.BytesIO(content))
    return place
