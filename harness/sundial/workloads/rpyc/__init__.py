# SPDX-License-Identifier: Apache-2.0
"""Twelve remote functions over RPyC 4, 5 and 6."""
