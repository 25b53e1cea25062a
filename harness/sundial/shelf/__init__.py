# SPDX-License-Identifier: Apache-2.0
"""The run directories of captures/ as a collection: what is there, notes and tags, what may be removed."""
