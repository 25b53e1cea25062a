# SPDX-License-Identifier: Apache-2.0
"""Twelve functions over gRPC: protobuf messages in HTTP/2 streams."""
