# SPDX-License-Identifier: Apache-2.0
"""The page of a matrix: index.html, as the interop runners have it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sundial.report import palette
from sundial.reproduce.matrix import MARKS, WORDS, Matrix, counted_words

HERE = Path(__file__).parent
REPORT_STYLE = HERE.parent / "report" / "style.css"


def page(matrix: Matrix, reports: Mapping[tuple[str, str], str]) -> str:
    """The whole page. `reports`: link to the report of each cell that has one, by row and column."""
    style = REPORT_STYLE.read_text(encoding="utf-8")
    style = style.replace("LIGHT-COLOURS", palette.css_variables(dark=False))
    style = style.replace("DARK-COLOURS", palette.css_variables(dark=True))
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("matrix.html.j2").render(
        style=Markup(style),
        matrix=matrix,
        reports=reports,
        marks=MARKS,
        words=WORDS,
        counts=", ".join(counted_words(matrix)),
        good=matrix.status == 0 and not matrix.having("missing"),
        failing=matrix.having("fail", "failed", "refused"),
        command=shlex.join(matrix.command),
    )
