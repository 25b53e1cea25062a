// SPDX-License-Identifier: Apache-2.0
//! A segment for trying the model out: in benchmarks and tests.

use serde_json::{Value, json};

/// The fields of a segment of `ports` ports of OC-3c that bridges, without latencies, contracts, faults and the
/// capture of cells.
pub fn plain_fields(ports: usize) -> Value {
    json!({
        "lines": vec![json!({ "rate_bps": 149_760_000, "cell_octets": 53 }); ports],
        "propagation_ns": vec![0; ports],
        "tx_latency_ns": vec![0; ports],
        "rx_latency_ns": vec![0; ports],
        "encapsulation": "bridged",
        "interleave": "pdu",
        "cell_latency_ns": 0,
        "cdv_ns": 0,
        "queue": { "cells": 1024, "discard": "tail", "epd_above": null, "vc_cells": null, "clp1_above": null },
        "contracts": vec![Value::Null; ports],
        "shaping_bps": vec![Value::Null; ports],
        "impairments": { "from": vec![Value::Null; ports], "to": vec![Value::Null; ports] },
        "capture": { "cells": false, "cells_most": 1_000_000 },
    })
}
