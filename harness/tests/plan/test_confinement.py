# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from sundial.plan.confinement import FILE_BYTES_MOST, Allowed, policy_text


def test_a_policy_names_everything_once() -> None:
    text = policy_text(
        Allowed(Path("/usr/bin/qemu"), [Path("/images/kernel")], [Path("/run/client")], kvm=True, user=7)
    )
    lines = text.splitlines()
    assert lines[0] == "emulator /usr/bin/qemu"
    for line in ("read /images/kernel", "write /run/client", "device /dev/kvm", "user 7 7"):
        assert lines.count(line) == 1
    assert f"file_bytes {FILE_BYTES_MOST}" in lines


def test_nothing_more_than_asked() -> None:
    lines = policy_text(Allowed(Path("/usr/bin/qemu"), [], [])).splitlines()
    assert [line for line in lines if line.startswith(("write ", "device ", "user "))] == ["device /dev/null"]


@pytest.mark.parametrize("name", ["/a\nuser 0 0", "/a\0b", "/a\x1b"])
def test_a_path_that_would_be_another_line_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be written"):
        policy_text(Allowed(Path("/usr/bin/qemu"), [Path(name)], []))
