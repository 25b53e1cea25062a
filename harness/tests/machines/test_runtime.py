# SPDX-License-Identifier: Apache-2.0
import json
import stat
from pathlib import Path

import pytest

from sundial.errors import HostLacks
from sundial.machines.runtime import OWNER, RuntimeFolder, default_base


def test_paths_are_short_enough_for_sockets() -> None:
    longest = "lib/qemu/domain-99-sundial-0123456789ab/monitor.sock"
    folder = RuntimeFolder()
    try:
        assert len(str(folder.path / longest)) < 107
        assert stat.S_IMODE(folder.path.stat().st_mode) & 0o077 in (0o011, 0)
    finally:
        folder.remove()
    assert not folder.path.exists()


def test_the_users_own_runtime_folder_is_taken_when_it_is_short(tmp_path: Path) -> None:
    short = Path("/tmp")
    assert default_base({"XDG_RUNTIME_DIR": str(short)}, user=1000) == short / "sundial"
    assert default_base({"XDG_RUNTIME_DIR": "/run/" + "x" * 60}, user=1000) == Path("/tmp/sundial-1000")
    assert default_base({"XDG_RUNTIME_DIR": str(short)}, user=0) == Path("/tmp/sundial-0")


def test_two_folders_at_once_have_nothing_in_common(tmp_path: Path) -> None:
    base = tmp_path / "b"
    one, two = RuntimeFolder(base), RuntimeFolder(base)
    assert one.path != two.path
    assert one.token != two.token
    assert not one.is_alone()
    one.remove()
    assert two.is_alone()
    assert two.path.is_dir()


def test_what_a_dead_harness_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    base = tmp_path / "b"
    living = RuntimeFolder(base)
    dead, before_boot, elsewhere = base / "00dead", base / "0boot", base / "0pids"
    owner = {**json.loads((living.path / OWNER).read_text()), "started": 1, "token": "sundial-0123456789ab"}
    for path, changes in ((dead, {}), (before_boot, {"boot": "another", "pids": 1}), (elsewhere, {"pids": 1})):
        path.mkdir()
        (path / OWNER).write_text(json.dumps({**owner, **changes}))
    unknown = base / "unknown"
    unknown.mkdir()
    assert not living.is_alone(), "of another container nothing is known"
    next_one = RuntimeFolder(base)
    assert next_one.path.is_dir()
    assert not dead.exists()
    assert not before_boot.exists()
    assert elsewhere.is_dir()
    assert stat.S_IMODE((living.path / OWNER).stat().st_mode) == 0o600
    assert living.path.is_dir()
    assert unknown.is_dir()


def test_a_base_that_others_can_write_is_refused(tmp_path: Path) -> None:
    base = tmp_path / "b"
    base.mkdir()
    base.chmod(0o777)
    with pytest.raises(HostLacks, match="written by others"):
        RuntimeFolder(base)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(HostLacks):
        RuntimeFolder(link)
