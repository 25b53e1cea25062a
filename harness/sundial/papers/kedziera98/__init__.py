# SPDX-License-Identifier: Apache-2.0
"""Kedziera 1998: how it averaged its series."""
