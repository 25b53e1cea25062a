# SPDX-License-Identifier: Apache-2.0
"""ShrimpRPC, calls by stores into bound memory."""
