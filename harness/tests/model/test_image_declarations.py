# SPDX-License-Identifier: Apache-2.0
"""What images declare of themselves: the shipped ones, and one line for each thing that is wrong."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from sundial.errors import BadInput
from sundial.model.images import FOLDER, IMAGES, ImageKinds, read_image

TOY = """description = "A toy"
platform = "toy-os"
roles = ["host"]
memory = "8 MiB"
memory_least = "4 MiB"
memory_most = "64 MiB"
start = "10 ms"
translations_mib = 4
greeting = ["true"]
binder = "portmapper"
"""


def declared(folder: Path, text: str, name: str = "toy") -> Path:
    path = folder / name / "image.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_a_folder_is_an_image(tmp_path: Path) -> None:
    declared(tmp_path, TOY)
    declared(tmp_path, TOY + "fixed_sockets = true\n", "ant")
    (tmp_path / "recipe").mkdir()
    kinds = ImageKinds(tmp_path)
    assert list(kinds) == ["ant", "toy"]
    toy = kinds["toy"]
    assert (toy.name, toy.platform, toy.roles, toy.memory, toy.start_ns) == ("toy", "toy-os", ("host",), 8 << 20, 10**7)
    assert toy.memory_sizes.allowed == "a size in whole MiB from 4 MiB to 64 MiB, such as '8 MiB'"
    assert (toy.fixed_sockets, kinds["ant"].fixed_sockets) == (False, True)


@pytest.mark.parametrize("name", IMAGES)
def test_a_shipped_image_follows_the_schema(name: str) -> None:
    text = (FOLDER / name / "image.toml").read_text()
    schema = json.loads((FOLDER / "image.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(tomllib.loads(text))
    assert text.splitlines()[0] == "#:schema ../image.schema.json"


@pytest.mark.parametrize(
    ("written", "instead", "line"),
    [
        ("binder =", "bindr =", ": binder is missing; allowed: up to 32 lower-case letters"),
        ('binder = "portmapper"', 'binder = "portmapper"\nmips = 125', ":11: mips: unknown field; allowed: name, "),
        ('memory = "8 MiB"', 'memory = "2 MiB"', ":4: memory: 2 MiB is out of range; allowed: memory_least to memory"),
        ('["host"]', '["router"]', ":3: roles.0: 'router' is unknown; allowed: host, bridge"),
        ('["host"]', '"host"', ":3: roles: must be a list, such as [A, B]"),
        ('["true"]', "[]", ":9: greeting: has 0 entries; allowed: 1 or more"),
        ('"10 ms"', "10", ":7: start: '10' has no unit; allowed: a time from 0 ns to 1 min"),
        ("= 4\n", "= 0.5\n", ":8: translations_mib: Decimal('0.5') is not a whole number; allowed: a whole number"),
        ("binder", 'keeps_replies = "yes"\nbinder', ":10: keeps_replies: 'yes' is not a truth value; allowed: tr"),
        ("binder", 'name = "ant"\nbinder', ": name: 'ant' differs from the folder's name; allowed: toy"),
        ("binder =", "binder", ": is not TOML: Expected '=' after a key"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, written: str, instead: str, line: str) -> None:
    assert written in TOY
    path = declared(tmp_path, TOY.replace(written, instead))
    with pytest.raises(BadInput) as caught:
        read_image(path)
    assert caught.value.message.splitlines()[0].startswith(f"{path}{line}")


def test_a_folder_that_cannot_be_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'Toy_1' is not a valid image name; allowed: up to 32"):
        read_image(declared(tmp_path, TOY, "Toy_1"))
