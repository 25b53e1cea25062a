# SPDX-License-Identifier: Apache-2.0
"""The recipe of the SSS-CORE image; what both images need is in images/linux/recipe."""
