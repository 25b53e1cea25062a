# SPDX-License-Identifier: Apache-2.0
"""Datagrams that come back, each with a name and a number in front."""
