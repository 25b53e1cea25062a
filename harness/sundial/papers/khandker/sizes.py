# SPDX-License-Identifier: Apache-2.0
"""Sizes of khandker, and its wires."""

from __future__ import annotations

SIZES = (
    0, 1024, 1392, 1393, 4016, 4017, 6000, 8032, 8033, 12048, 12049, 16064, 16065, 20080, 20081, 24096, 24097, 28112,
    28113, 32128, 32129, 48192, 48193, 60240, 60241, 64256, 64257,
)  # fmt: skip
"""27 procedures, as the paper's server has: both sides of its jumps, and of those two that its list lacks."""
SUMMED = (0, 1392, 4016, 4017, 8032, 16064, 24096, 32128, 48192, 64256)
"""Of the other policy: those of table 2, those that are predicted, and the one with the least fack."""
PREDICTED = (8032, 16064, 24096, 32128, 48192, 64256)
LARGE = 4016
"""Of table 1."""
HUB, LINK = "two-hosts-10base-t", "two-hosts-10mbit-link"
