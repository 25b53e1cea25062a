# SPDX-License-Identifier: Apache-2.0
"""Validated user input: topologies and scenarios, with file, line and field in every error.

Start at `load.load_experiments`. Nothing here starts anything or looks at the host: a file that is valid here is valid
everywhere.
"""
