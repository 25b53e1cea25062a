# SPDX-License-Identifier: Apache-2.0
"""Interfaces of your own: reads .x files, writes programs of them, and judges what was on the wire."""
