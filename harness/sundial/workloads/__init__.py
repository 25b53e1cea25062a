# SPDX-License-Identifier: Apache-2.0
"""Kinds of workloads, one folder each, and what several of them share; see README.md and `sundial.kinds`."""
