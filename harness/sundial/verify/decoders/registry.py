# SPDX-License-Identifier: Apache-2.0
"""All decoders."""

from __future__ import annotations

from collections.abc import Mapping

from sundial.verify.decoders import dns, http2, onc_rpc
from sundial.verify.decoders.traffic import Decoder

DECODERS: Mapping[str, Decoder] = {each.name: each for each in (onc_rpc.DECODER, dns.DECODER, http2.DECODER)}
"""By name."""
