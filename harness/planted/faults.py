# SPDX-License-Identifier: Apache-2.0
"""The faults, in `faults/*.yaml`: each a patch of one to three lines, with the sentence that it breaks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from ruamel.yaml import YAML

FOLDER = Path(__file__).with_name("faults")
ROOMS = (
    ("fabric", "harness/fabric/"),
    ("clock", "harness/clock/"),
    ("confine", "harness/confine/"),
    ("mbcf", "guest-apps/sss-core/mbcf/"),
    ("kernel", "guest-apps/sss-core/kernel/"),
    ("rpc", "guest-apps/sss-core/rpc/"),
    ("dce", "guest-apps/dce/"),
    ("runner", "guest-apps/runner/"),
    ("echo", "guest-apps/echo/"),
    ("common", "guest-apps/common/"),
    ("job", "guest-apps/job/"),
    ("python", "guest-apps/python/"),
    ("model", "harness/sundial/model/"),
    ("plan", "harness/sundial/plan/"),
    ("machines", "harness/sundial/machines/"),
    ("run", "harness/sundial/run/"),
    ("observe", "harness/sundial/observe/"),
    ("verify", "harness/sundial/verify/"),
    ("segments", "harness/sundial/segments/"),
    ("workloads", "harness/sundial/workloads/"),
    ("report", "harness/sundial/report/"),
    ("reproduce", "harness/sundial/reproduce/"),
    ("papers", "harness/sundial/papers/"),
    ("replay", "harness/sundial/replay/"),
    ("cli", "harness/sundial/cli/"),
    ("errors", "harness/sundial/errors.py"),
    ("images", "images/"),
    ("wireshark", "harness/wireshark/"),
)
"""Each room with the beginning of its files' paths."""


class DoesNotFit(Exception):
    """A fault whose text is not in the file exactly once."""


@dataclass(frozen=True)
class Fault:
    """A patch to one file, given by its path from the checkout."""

    name: str
    file: str
    before: str
    after: str
    promise: str
    """What it breaks, word for word."""
    of: str = "README.md"
    """The page that promises it."""
    happened: str | None = None
    """The commit that mended this fault, or one like it."""
    only_at_night: bool = False
    """The gate is not expected to catch it."""

    @property
    def room(self) -> str:
        """The room of its file."""
        return next(room for room, beginning in ROOMS if self.file.startswith(beginning))

    @property
    def lines(self) -> int:
        """How many lines differ."""
        matcher = SequenceMatcher(None, self.before.splitlines(), self.after.splitlines(), autojunk=False)
        return sum(max(a2 - a1, b2 - b1) for tag, a1, a2, b1, b2 in matcher.get_opcodes() if tag != "equal")

    def planted(self, text: str) -> str:
        """The file's text with the fault in it. Raises DoesNotFit."""
        if text.count(self.before) != 1:
            raise DoesNotFit(f"{self.name}: {self.file} has its text {text.count(self.before)} times instead of once")
        return text.replace(self.before, self.after)


def load(folder: Path = FOLDER) -> list[Fault]:
    """All faults, in the order of the files."""
    yaml = YAML(typ="safe")
    return [Fault(**entry) for path in sorted(folder.glob("*.yaml")) for entry in yaml.load(path)]


def chosen(faults: Iterable[Fault], words: Iterable[str]) -> list[Fault]:
    """Those whose name or room is among the words; without words, all. Raises KeyError for a word that fits none."""
    everything, wanted = list(faults), list(words)
    known = {name for fault in everything for name in (fault.name, fault.room)}
    for word in wanted:
        if word not in known:
            raise KeyError(word)
    return [fault for fault in everything if not wanted or {fault.name, fault.room} & set(wanted)]
