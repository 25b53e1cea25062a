# SPDX-License-Identifier: Apache-2.0
"""A bridge in a guest's kernel that impairs frames with its own tc-netem."""
