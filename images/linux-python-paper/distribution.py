# SPDX-License-Identifier: Apache-2.0
"""The recipe `distribution` of the Linux guest, with Python over it."""

from linux import distribution

from recipe import python
from recipe.image import Contents, Workspace

DEVELOPMENT_FILES = [*distribution.DEVELOPMENT_FILES, *python.DEVELOPMENT_FILES]


def make(workspace: Workspace) -> Contents:
    return distribution.with_swap(python.over(distribution.make(workspace), workspace, "linux-python-paper"), workspace)
