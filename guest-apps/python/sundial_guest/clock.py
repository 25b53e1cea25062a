# SPDX-License-Identifier: Apache-2.0
"""The clock that samples are read from: `now_ns()`, virtual time or the kernel's (SUNDIAL_CLOCK).

Guests have it in C. Where that is not compiled, as in tests on the host, there is only the kernel's.
"""

import os

try:
    from sundial_guest._clock import now_ns, select
except ImportError:
    import time

    def now_ns() -> int:
        """Nanoseconds since some moment before the program's start."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

    def select(name: str) -> None:
        """Raises ValueError for a clock that is not there."""
        if name != "monotonic":
            raise ValueError(f"clock {name}: must be monotonic")


def select_from_environment() -> None:
    """The one that the runner asks for."""
    select(_asked())


def is_real() -> bool:
    """Machines begin when they have booted, and not all at once: a server may still be starting."""
    return _asked() == "monotonic"


def _asked() -> str:
    return os.environ.get("SUNDIAL_CLOCK", "monotonic")
