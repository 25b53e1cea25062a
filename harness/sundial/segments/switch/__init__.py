# SPDX-License-Identifier: Apache-2.0
"""A learning store-and-forward switch."""
