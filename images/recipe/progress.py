# SPDX-License-Identifier: Apache-2.0
"""Progress of a build: lines on standard output, which the harness shows as they come."""


def say(text: str) -> None:
    """A step begins, or is that far."""
    print(text, flush=True)
