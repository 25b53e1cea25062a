# SPDX-License-Identifier: Apache-2.0
"""Machines: libvirt, images, snapshots, consoles, and the guard that cleans up after a killed harness."""
