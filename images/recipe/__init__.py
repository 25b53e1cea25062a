# SPDX-License-Identifier: Apache-2.0
"""What the recipes of images share: packages and sources in; kernel, initrd and manifest out."""
