# SPDX-License-Identifier: Apache-2.0
"""First files of the user's own: annotated, and they run as they are."""
