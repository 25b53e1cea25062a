# SPDX-License-Identifier: Apache-2.0
"""A run made again up to an instant or a frame, where all of its machines stand."""
