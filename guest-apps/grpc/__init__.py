# SPDX-License-Identifier: Apache-2.0
"""The twelve functions over gRPC. The image's build puts the modules of functions.proto beside these."""
