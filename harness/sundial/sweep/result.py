# SPDX-License-Identifier: Apache-2.0
"""What became of a run, as the store keeps it beside the run directory. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sundial.errors import Whose
from sundial.sweep.identity import digest

Verdict = Literal["pass", "fail", "failed"]
"""failed: the run did not reach its end."""
FORMAT = 1
NOT_BYTES = ("domain.xml",)
"""Files of a run that name paths of this host."""


@dataclass(frozen=True)
class Result:
    """One run. Everything but `host` is the same wherever it is made."""

    key: str
    verifier: str
    """Digest of what verified it."""
    verdict: Verdict
    calls: int = 0
    mismatches: int = 0
    retransmissions: int = 0
    virtual_ns: int | None = None
    first: str | None = None
    """The first mismatch in words, or the error."""
    whose: Whose | None = None
    """Of a run that failed."""
    files: Mapping[str, str] = field(default_factory=dict)
    """sha256 of each file whose bytes repeat, by name in the run directory."""
    host: Mapping[str, Any] = field(default_factory=dict)
    """Where it was made, and what that took: `name`, `worker` of a cluster, `wall_s`, `cpu_s`; `making` is unique."""

    @property
    def bytes(self) -> str:
        """One digest of all files; of a run that failed, of its error."""
        return digest([self.verdict == "failed" and self.first, dict(self.files)])

    def to_json(self) -> dict[str, Any]:
        """result.json."""
        return {"format": FORMAT, **asdict(self)}


def result_of(document: Mapping[str, Any]) -> Result | None:
    """From result.json; None for one of another format."""
    if document.get("format") != FORMAT:
        return None
    return Result(**{name: document[name] for name in Result.__dataclass_fields__})


def repeating(run: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the files that repeat, from run.json."""
    digests = {**run.get("captures", {}), **run.get("files", {})}
    return {name: each for name, each in sorted(digests.items()) if not name.endswith(NOT_BYTES)}


def different(one: Result, other: Result) -> Sequence[str]:
    """Names of files that differ between two makings of one run; empty if it was made equal twice."""
    if one.bytes == other.bytes:
        return ()
    names = sorted({*one.files, *other.files})
    return [name for name in names if one.files.get(name) != other.files.get(name)] or ["error"]
