# SPDX-License-Identifier: Apache-2.0
"""Experiments of papers, run again: what was printed beside what is measured, and why they differ.

This stage runs experiments, measures them and renders the page. Which experiments, and what to say about them, is in
`sundial/papers/NAME/`. Start at `perform.perform`.
"""
