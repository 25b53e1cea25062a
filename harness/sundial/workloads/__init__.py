# SPDX-License-Identifier: Apache-2.0
"""Families of workloads, one folder each; see `sundial.kinds`."""
