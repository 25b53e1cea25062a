# SPDX-License-Identifier: Apache-2.0
"""Runs compared with the first of them: inputs, captures, figures."""
