# SPDX-License-Identifier: Apache-2.0
"""Papers whose experiments can be run again, one folder each; see `sundial.kinds`."""
