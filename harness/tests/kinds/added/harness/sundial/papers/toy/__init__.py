# SPDX-License-Identifier: Apache-2.0
"""A paper that measured toys."""
