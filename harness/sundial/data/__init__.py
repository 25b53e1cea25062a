# SPDX-License-Identifier: Apache-2.0
"""A run as tables for notebooks and other programs: `sundial.open_run`, `sundial export --table`."""
