# SPDX-License-Identifier: Apache-2.0
"""Whether the figures of a report are painted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sundial.report import plotting
from sundial.report.build import build_report
from tests.report import synthetic


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "quickstart"
    return synthetic.make(folder, synthetic.two_hosts(series=2, calls=2, sizes=range(256, 8193, 512)))


@pytest.fixture
def widths(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Of what this process paints."""
    seen: list[float] = []
    paint = plotting._painted

    def counted(width_in: float, *others: object) -> object:
        seen.append(width_in)
        return paint(width_in, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(plotting, "_painted", counted)
    return seen


def test_figures_in_words(made: Path, tmp_path: Path, widths: list[float]) -> None:
    """As in a reproduction, below whose folder the run is what commands call it."""
    run = shutil.copytree(made, tmp_path / ".paper-1-001.partial" / "runs" / "sweep")
    (tmp_path / ".paper-1-001.partial" / "reproduce.json").write_text(json.dumps({}))
    build_report(run, drawn=False)
    page = (run / "report.html").read_text("utf-8")
    assert widths == []
    assert [path.name for path in (run / "figures").iterdir()] == ["topology.svg"]
    assert '<pre class="paste">./sundial report paper-1-001/runs/sweep</pre>' in page
    assert "./sundial open paper-1-001/runs/sweep lan\n" in page
    assert "Sun RPC / UDP: median round trip " in page
    for part in ("speed", "packets", "time", "spread"):
        assert f'<h2 id="{part}">' in page
    assert "figures/stages.svg" not in page
    build_report(run)
    figures = ("latency-throughput", "packets", "stages", "distributions", "series-spread", "topology")
    assert {path.name for path in (run / "figures").iterdir()} >= {f"{stem}.svg" for stem in figures}
    assert "sundial report" not in (run / "report.html").read_text("utf-8")
