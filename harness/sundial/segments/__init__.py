# SPDX-License-Identifier: Apache-2.0
"""Kinds of segments, one folder each; see `sundial.kinds`."""
