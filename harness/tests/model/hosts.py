# SPDX-License-Identifier: Apache-2.0
"""The head of topologies in which one segment is tried."""

TWO_HOSTS = """\
description: Two hosts
machines:
  client:
    interfaces:
      eth0: {address: 10.0.0.1/24}
  server:
    interfaces:
      eth0: {address: 10.0.0.2/24}
"""
