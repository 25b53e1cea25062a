# SPDX-License-Identifier: Apache-2.0
"""What figures take of matplotlib. It is imported when the first one is painted: that takes longer than all else of a
report, and most reports say their figures in words."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib import rc_context
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

__all__ = [
    "Artist",
    "Axes",
    "Figure",
    "FigureCanvasAgg",
    "FixedLocator",
    "FuncFormatter",
    "Line2D",
    "LogLocator",
    "MaxNLocator",
    "NullFormatter",
    "Patch",
    "rc_context",
]
_MODULES = {
    "Artist": "matplotlib.artist",
    "Axes": "matplotlib.axes",
    "Figure": "matplotlib.figure",
    "FigureCanvasAgg": "matplotlib.backends.backend_agg",
    "Line2D": "matplotlib.lines",
    "Patch": "matplotlib.patches",
    "rc_context": "matplotlib",
}
"""Of what is not in matplotlib.ticker."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "matplotlib.ticker")), name)
