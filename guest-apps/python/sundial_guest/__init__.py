# SPDX-License-Identifier: Apache-2.0
"""What Python programs of guests share: clock, options, records, the twelve functions, serving, and how they start."""
