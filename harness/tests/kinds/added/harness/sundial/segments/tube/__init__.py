# SPDX-License-Identifier: Apache-2.0
"""A tube between two machines: what goes in at one end comes out at the other."""
