# SPDX-License-Identifier: Apache-2.0
"""The recipe of the Linux guest: packages and sources in, kernel, initrd and manifest out."""
