# SPDX-License-Identifier: Apache-2.0
"""Where Sundial writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.errors import BadInput, HostLacks
from sundial.model.catalog import Written, check_writable, typed, written

HERE, CHECKOUT = Path("/work"), Path("/checkout")


@pytest.mark.parametrize(
    ("environment", "checkout", "expected"),
    [
        ({}, CHECKOUT, Written(CHECKOUT, CHECKOUT / "captures")),
        ({"SUNDIAL_STATE": ""}, CHECKOUT, Written(CHECKOUT, CHECKOUT / "captures")),
        ({"SUNDIAL_STATE": "/s"}, CHECKOUT, Written(Path("/s"), Path("/s/captures"))),
        ({"SUNDIAL_STATE": "s"}, CHECKOUT, Written(HERE / "s", HERE / "s/captures")),
        ({"SUNDIAL_STATE": "/s", "XDG_STATE_HOME": "/x"}, None, Written(Path("/s"), Path("/s/captures"))),
        ({"XDG_STATE_HOME": "/x"}, CHECKOUT, Written(CHECKOUT, CHECKOUT / "captures")),
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, None, Written(Path("/x/sundial"), HERE / "captures")),
        ({"XDG_STATE_HOME": "x", "HOME": "/h"}, None, Written(Path("/h/.local/state/sundial"), HERE / "captures")),
        ({"HOME": "/h"}, None, Written(Path("/h/.local/state/sundial"), HERE / "captures")),
    ],
)
def test_folders_by_the_environment(environment: dict[str, str], checkout: Path | None, expected: Written) -> None:
    assert written(environment, HERE, checkout) == expected


def test_a_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b", {})
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_bad_input_where_the_user_named_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"^SUNDIAL_STATE: .*/file/x cannot be written to: Not a directory; allowed: "):
        check_writable(tmp_path / "file" / "x", {"SUNDIAL_STATE": "file/x"})


def test_a_usual_folder_that_cannot_be_written_to_is_a_lack_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostLacks, match=r"/file/x cannot be written to: Not a directory") as caught:
        check_writable(tmp_path / "file" / "x", {})
    assert caught.value.hint == "set SUNDIAL_STATE to a folder that this user may write to"


def test_commands_in_a_text_are_those_of_the_installation() -> None:
    text = "run ./sundial up T, then ./sundial down"
    assert typed(text, "sundial") == "run sundial up T, then sundial down"
    assert typed(text, "./sundial") == text
