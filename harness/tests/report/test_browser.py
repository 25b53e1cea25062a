# SPDX-License-Identifier: Apache-2.0
"""The page in headless Chromium: it renders, in light and dark and on paper, and nothing sticks out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sundial.report.build import build_report
from tests.report import synthetic

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
]  # fmt: skip

WIDTHS = (360, 768, 1200, 1900)
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body><script>
for (const width of WIDTHS) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `border:0;width:${width}px;height:900px`;
  frame.onload = () => {
    const page = frame.contentDocument.documentElement;
    const out = [...frame.contentDocument.querySelectorAll("body *")].filter(element => {
      const box = element.getBoundingClientRect();
      return box.width > 0 && box.right > width + 1 && !element.closest(".scroll, .canvas, pre");
    });
    document.title += ` probe=${width} scroll=${page.scrollWidth} out=${out.length} tall=${page.scrollHeight}`;
  };
  frame.src = "report.html";
  document.body.append(frame);
}
</script>"""


def browse(profile: Path, *arguments: str) -> str:
    """Runs Chromium once with a profile of its own and returns what it printed."""
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *arguments],
        capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "run"
    plan = synthetic.office(series=2, calls=4, sizes=[16, 1024, 1472, 4096, 8192], mismatched_sizes=[4096])
    synthetic.make(folder, plan)
    return build_report(folder).html


def shot(
    report: Path, tmp_path: Path, *arguments: str, width: int = 1200
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    picture = tmp_path / "page.png"
    browse(tmp_path / "profile", f"--screenshot={picture}", f"--window-size={width},3000", *arguments, report.as_uri())
    with Image.open(picture) as image:
        return np.asarray(image.convert("RGB"))


def test_the_page_is_not_blank(report: Path, tmp_path: Path) -> None:
    pixels = shot(report, tmp_path)
    assert pixels.shape[:2] == (3000, 1200)
    assert pixels[5, 5].min() > 250
    for band in np.split(pixels, 6):
        assert 0.005 < (band.min(axis=2) < 200).mean() < 0.6


@pytest.mark.night
def test_dark_is_dark(report: Path, tmp_path: Path) -> None:
    pixels = shot(report, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert pixels[5, 5].max() < 60
    assert (pixels.max(axis=2) > 150).mean() > 0.005
    assert (pixels.min(axis=2) > 245).mean() < 0.01


def test_nothing_sticks_out(report: Path, tmp_path: Path) -> None:
    probe = report.parent / "probe.html"
    probe.write_text(PROBE.replace("WIDTHS", str(list(WIDTHS))), encoding="utf-8")
    found = browse(
        tmp_path / "profile",
        "--allow-file-access-from-files",
        "--virtual-time-budget=5000",
        "--dump-dom",
        probe.as_uri(),
    )
    probed = re.findall(r"probe=(\d+) scroll=(\d+) out=(\d+) tall=(\d+)", found)
    assert sorted(int(width) for width, *_ in probed) == list(WIDTHS), found[:300]
    for width, scroll, out, tall in (map(int, each) for each in probed):
        assert scroll <= width
        assert out == 0, width
        assert tall > 3000, width


@pytest.mark.night
def test_it_prints_on_a4(report: Path, tmp_path: Path) -> None:
    paper = tmp_path / "page.pdf"
    browse(tmp_path / "profile", "--no-pdf-header-footer", f"--print-to-pdf={paper}", report.as_uri())
    content = paper.read_bytes()
    pages = len(re.findall(rb"/Type\s*/Page[^s]", content))
    assert 4 <= pages <= 14
    sizes = {
        tuple(round(float(value)) for value in box.split()) for box in re.findall(rb"/MediaBox\s*\[([^\]]+)\]", content)
    }
    assert sizes == {(0, 0, 595, 842)} or sizes == {(0, 0, 596, 842)}, sizes
