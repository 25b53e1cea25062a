# SPDX-License-Identifier: Apache-2.0
"""What the kernel says that this process has used."""

import resource


def context_switches() -> int:
    """How often its threads gave the CPU up or had it taken, so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw
