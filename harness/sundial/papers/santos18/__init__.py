# SPDX-License-Identifier: Apache-2.0
"""santos18: twelve remote functions over gRPC and RPyC, local and remote."""
