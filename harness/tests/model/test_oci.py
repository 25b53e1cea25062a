# SPDX-License-Identifier: Apache-2.0
"""Container images in files: which image, which layers, which process, and one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sundial.model.oci import BadImage, Process, read_image
from tests.machines.containers import archive, config_of, layer, layout, member, saved, sha256

LAYERS = [layer(member("etc/motd", content=b"one")), layer(member("etc/motd", content=b"two"))]
PROCESS = Process(("/usr/bin/greet", "--loud"), {"PATH": "/usr/bin", "WORD": "a=b"}, "/srv", "daemon")


@pytest.mark.parametrize("packed", ["folder", "archive", "docker save"])
def test_each_form_has_the_same_image(tmp_path: Path, packed: str) -> None:
    if packed == "docker save":
        path = saved(tmp_path / "saved.tar", *LAYERS)
    else:
        path = layout(tmp_path / "layout", *LAYERS)
        path = archive(tmp_path / "layout.tar", path) if packed == "archive" else path
    image = read_image(path)
    assert image.process == PROCESS
    assert image.digest == sha256(config_of(LAYERS))
    assert [each.diff_sha256 for each in image.layers] == [sha256(each) for each in LAYERS]


def test_an_image_that_names_no_process_has_defaults(tmp_path: Path) -> None:
    assert read_image(layout(tmp_path, *LAYERS, config=None)).process == Process((), {}, "/", "root")


def test_a_tag_chooses_among_several_images(tmp_path: Path) -> None:
    path = layout(tmp_path, *LAYERS, tags=["one", "two"])
    assert read_image(path, "two").process == PROCESS
    with pytest.raises(BadImage, match="has 2 images; write one as tag: one, two"):
        read_image(path)
    with pytest.raises(BadImage, match="has no image 'three'; it has: one, two"):
        read_image(path, "three")


def test_an_image_for_another_processor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadImage, match="is for linux/arm64, and machines are linux/amd64"):
        read_image(layout(tmp_path, *LAYERS, architecture="arm64"))
    index = json.loads((tmp_path / "index.json").read_text())
    index["manifests"][0]["platform"] = {"architecture": "s390x", "os": "linux"}
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(BadImage, match="has images for linux/s390x, and machines are linux/amd64"):
        read_image(tmp_path)


def damaged(place: Path, what: str) -> Path:
    path = layout(place, *LAYERS)
    blobs = {file.name: file for file in (path / "blobs" / "sha256").iterdir()}
    index = json.loads((path / "index.json").read_text())
    manifest = blobs[index["manifests"][0]["digest"].removeprefix("sha256:")]
    if what == "manifest changed":
        manifest.write_bytes(manifest.read_bytes() + b" ")
    elif what == "manifest missing":
        manifest.unlink()
    elif what == "not JSON":
        (path / "index.json").write_text("{")
    elif what == "no manifests":
        (path / "index.json").write_text("{}")
    elif what == "digest":
        index["manifests"][0]["digest"] = "sha256:../../../etc/passwd"
        (path / "index.json").write_text(json.dumps(index))
    elif what == "empty":
        (path / "index.json").unlink()
    return path


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("manifest changed", "is damaged: blobs/sha256/.* has another sha256"),
        ("manifest missing", "lacks its file blobs/sha256/"),
        ("not JSON", "is damaged: index.json is not JSON"),
        ("no manifests", "is damaged: its documents lack 'manifests'"),
        ("digest", r"has digest 'sha256:\.\./\.\./\.\./etc/passwd', which is not a sha256"),
        ("empty", "has neither index.json nor manifest.json"),
    ],
)
def test_a_damaged_image_is_one_line(tmp_path: Path, what: str, said: str) -> None:
    with pytest.raises(BadImage, match=said):
        read_image(damaged(tmp_path, what))


def test_a_file_that_is_not_an_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"hello")
    with pytest.raises(BadImage, match="is damaged or not a tar archive"):
        read_image(tmp_path / "file")
    with pytest.raises(BadImage, match="does not exist"):
        read_image(tmp_path / "none")
