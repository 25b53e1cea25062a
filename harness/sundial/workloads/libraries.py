# SPDX-License-Identifier: Apache-2.0
"""Which versions of libraries a run's machines had."""

from __future__ import annotations

from collections.abc import Mapping

from sundial.model.images import IMAGES
from sundial.observe import RunDirectory


def libraries_of(run: RunDirectory, image: str) -> Mapping[str, Mapping[str, str]]:
    """Versions by name, for each language that an image has libraries of: as the run recorded them, for today's image
    may have others. What a run without such a record had is taken from the image's declaration."""
    recorded = (run.document.get("images") or {}).get(image) or {}
    if "libraries" in recorded:
        return dict(recorded["libraries"])
    declared = IMAGES.get(image)
    return {} if declared is None else declared.libraries
