# SPDX-License-Identifier: Apache-2.0
"""Protocols of foreign programs: what their bytes must be, and which message answers which. Pure, of bytes and times.

`captures`, `gathered` and `registry` are not: they read frames and know the decoders.
"""
