# SPDX-License-Identifier: Apache-2.0
"""Debian packages as one layer of a machine's root: README.md."""
