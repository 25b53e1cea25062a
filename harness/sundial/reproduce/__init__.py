# SPDX-License-Identifier: Apache-2.0
"""Experiments of papers, run again: what was printed beside what is measured, and why they differ.

A paper is data (`NAME.yaml`: what it printed) and a list of runs (`NAME.py`). Start at `perform.perform`.
"""
