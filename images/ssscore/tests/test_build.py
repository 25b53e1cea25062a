# SPDX-License-Identifier: Apache-2.0
"""The recipe: reproducible, checked sources, small."""

import hashlib
import json
from pathlib import Path

import pytest
from conftest import build
from recipe.errors import RecipeError
from ssscore import sources


def test_the_manifest_describes_the_files(image: Path) -> None:
    manifest = json.loads((image / "manifest.json").read_text())
    for name in ("kernel", "initrd"):
        data = (image / name).read_bytes()
        assert manifest["sha256"][name] == hashlib.sha256(data).hexdigest()
        assert manifest["bytes"][name] == len(data)
    assert {"init", "portmapper", "echo-server", "echo-client", "mbcf-server", "mbcf-client"} <= set(manifest["tasks"])
    assert manifest["kernel_release"].startswith("sss-core ")
    assert manifest["packages"], "where lwIP comes from"


def test_the_kernel_is_small(image: Path) -> None:
    assert (image / "kernel").stat().st_size < 256 * 1024


def test_another_build_gives_the_same_bytes(image: Path, tmp_path: Path) -> None:
    build(tmp_path / "a-folder-with-another-name", umask=0o077)
    for name in ("kernel", "initrd", "manifest.json"):
        assert (tmp_path / "a-folder-with-another-name" / name).read_bytes() == (image / name).read_bytes(), name


def test_lists_of_packages_become_lists_of_source_packages(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("# a comment\ndeb [signed-by=/k.gpg] mirror one main\n")
    (tmp_path / "sources.list.d/more.list").write_text("deb mirror two main\ndeb-src mirror two main\n")
    (tmp_path / "sources.list.d/new.sources").write_text("Types: deb\nURIs: mirror\n\nTypes: deb deb-src\n")
    lists = dict(sources.source_lists(tmp_path))
    assert lists["sources-one-line.list"].splitlines()[1] == "deb-src [signed-by=/k.gpg] mirror one main"
    assert lists["more-one-line.list"].splitlines() == ["deb-src mirror two main"] * 2
    assert lists["new.sources"].count("Types: deb-src\n") == 2


DESCRIPTION = """Format: 3.0 (quilt)
Checksums-Sha1:
 0000 4 thing_1.orig.tar.xz
Checksums-Sha256:
 {digest} 4 thing_1.orig.tar.xz
Files:
 0000 4 thing_1.orig.tar.xz
"""


def test_only_whole_packages_are_taken_from_the_cache(tmp_path: Path) -> None:
    folder = tmp_path / "source-thing"
    folder.mkdir()
    digest = hashlib.sha256(b"good").hexdigest()
    (folder / "thing_1.dsc").write_text(DESCRIPTION.format(digest=digest))
    (folder / "thing_1.orig.tar.xz").write_bytes(b"good")
    assert sources.listed_files((folder / "thing_1.dsc").read_text()) == {"thing_1.orig.tar.xz": digest}
    assert sources.download("thing", tmp_path) == folder / "thing_1.dsc"
    (folder / "thing_1.orig.tar.xz").write_bytes(b"evil")
    assert sources._complete(folder, "thing") is None


def test_a_package_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thing_1.dsc").write_text(DESCRIPTION.format(digest="0" * 64))
    with pytest.raises(RecipeError, match="one upstream and one Debian"):
        sources.unpack(tmp_path / "thing_1.dsc", tmp_path / "out")
