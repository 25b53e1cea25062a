# SPDX-License-Identifier: Apache-2.0
"""Observations against expectations: a run, or any capture."""

from sundial.verify.captured import offered, verify_pcap
from sundial.verify.result import Verification
from sundial.verify.run import verify_run

__all__ = ["Verification", "offered", "verify_pcap", "verify_run"]
