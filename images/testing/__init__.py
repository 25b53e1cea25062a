# SPDX-License-Identifier: Apache-2.0
"""What tests of images share: building one, and booting it in plain QEMU."""
