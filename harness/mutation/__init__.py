# SPDX-License-Identifier: Apache-2.0
"""Damages a run's directory in every way that is known, and prints what verification does not notice."""
