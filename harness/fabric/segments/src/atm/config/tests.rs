// SPDX-License-Identifier: Apache-2.0
//! Wrong fields are named, and what is allowed is said.

use serde_json::{Value, json};
use sundial_core::SegmentKind;

use super::Config;

fn right() -> Value {
    json!({
        "lines": vec![json!({ "rate_bps": 149_760_000, "cell_octets": 53 }); 2],
        "propagation_ns": [0, 0],
        "tx_latency_ns": [0, 0],
        "rx_latency_ns": [0, 0],
        "encapsulation": "lane",
        "interleave": "pdu",
        "cell_latency_ns": 10_000,
        "cdv_ns": 0,
        "queue": { "cells": 1024, "discard": "epd", "epd_above": 512, "vc_cells": null, "clp1_above": null },
        "contracts": [null, { "rate_bps": 50_000_000, "tolerance_ns": 100_000, "action": "tag" }],
        "shaping_bps": [null, 20_000_000],
        "impairments": { "from": [null, { "cell_loss": 0.01 }], "to": [{ "gemodel": { "p": 0.1 } }, null] },
        "lane": {
            "frame_size": 1516, "resolution": "le_arp", "vc_setup_ns": 2_000_000,
            "service_latency_ns": 50_000, "service_line": { "rate_bps": 149_760_000, "cell_octets": 53 },
            "unknown_frames": 1, "unknown_frame_time_ns": 1_000_000_000,
            "control_time_out_ns": 120_000_000_000_u64, "vcc_time_out_ns": 1_200_000_000_000_u64,
            "retries": 1, "ageing_ns": 300_000_000_000_u64, "forward_delay_ns": 15_000_000_000_u64,
            "le_arp_response_time_ns": 1_000_000_000, "flush_time_out_ns": 4_000_000_000_u64,
            "path_switching_delay_ns": 6_000_000_000_u64, "elan": "elan",
        },
        "capture": { "cells": true, "cells_most": 1_000_000 },
    })
}

/// The field and the message of the error, as in `field: message`.
fn error(pointer: &str, value: Value) -> String {
    let mut fields = right();
    *fields.pointer_mut(pointer).unwrap_or_else(|| panic!("there is no {pointer}")) = value;
    error_of(fields)
}

fn error_of(fields: Value) -> String {
    let config: Config = match serde_json::from_value(fields) {
        Ok(config) => config,
        Err(error) => return error.to_string(),
    };
    let invalid = config.check(2).expect_err("something is wrong");
    format!("{}: {}", invalid.field, invalid.message)
}

#[test]
fn what_the_planner_writes_is_right() {
    let config: Config = serde_json::from_value(right()).expect("the fields are right");
    config.check(2).expect("the fields are right");
}

#[test]
fn every_error_names_its_field_and_what_is_allowed() {
    let line = json!({ "rate_bps": 149_760_000, "cell_octets": 53 });
    let cases = [
        ("/lines", json!([line]), "lines: 1 values for 2 ports"),
        ("/lines/1/rate_bps", json!(1), "lines[1].rate_bps: 1 is outside 64000 to 1000000000000"),
        ("/lines/0/cell_octets", json!(52), "lines[0].cell_octets: 52 is outside 53 to 128"),
        (
            "/propagation_ns/1",
            json!(10_000_000_001_u64),
            "propagation_ns[1]: 10000000001 is outside 0 to 10000000000",
        ),
        ("/tx_latency_ns", json!([]), "tx_latency_ns: 0 values for 2 ports"),
        ("/queue/cells", json!(0), "queue.cells: 0 is outside 1 to 1048576"),
        ("/queue/epd_above", json!(1025), "queue.epd_above: 1025 is outside 1 to 1024"),
        ("/queue/epd_above", json!(null), "queue.epd_above: needed with discard epd"),
        ("/queue/discard", json!("tail"), "queue.epd_above: only with discard epd"),
        ("/queue/vc_cells", json!(0), "queue.vc_cells: 0 is outside 1 to 1024"),
        ("/queue/clp1_above", json!(2000), "queue.clp1_above: 2000 is outside 1 to 1024"),
        (
            "/contracts/1/rate_bps",
            json!(3),
            "contracts[1].rate_bps: 3 is outside 64000 to 1000000000000",
        ),
        ("/shaping_bps/1", json!(3), "shaping_bps[1]: 3 is outside 64000 to 1000000000000"),
        (
            "/impairments/from/1/cell_loss",
            json!(1.5),
            "impairments.from[1].cell_loss: 1.5 is outside 0 to 1",
        ),
        (
            "/impairments/to/0/gemodel/p",
            json!(-0.5),
            "impairments.to[0].gemodel.p: -0.5 is outside 0 to 1",
        ),
        (
            "/impairments/to/0",
            json!({ "cell_loss": 0.1, "gemodel": { "p": 0.1 } }),
            "impairments.to[0].gemodel: not together with cell_loss",
        ),
        ("/encapsulation", json!("bridged"), "lane: only with encapsulation lane"),
        ("/lane", json!(null), "lane: needed with encapsulation lane"),
        (
            "/lane/frame_size",
            json!(1580),
            "lane.frame_size: 1580 is none of 1516, 4544, 9234, 18190",
        ),
        ("/lane/unknown_frames", json!(11), "lane.unknown_frames: 11 is outside 1 to 10"),
        ("/lane/retries", json!(3), "lane.retries: 3 is outside 0 to 2"),
        ("/lane/ageing_ns", json!(0), "lane.ageing_ns: 0 is outside 1 to 86400000000000"),
        (
            "/lane/elan",
            json!("a name that has more than 32 octets"),
            "lane.elan: \"a name that has more than 32 octets\" is longer than 32 octets",
        ),
        // 10 us and three cells of 2.8312 us.
        (
            "/lane/vc_setup_ns",
            json!(1000),
            "lane.vc_setup_ns: 1000 is less than the way of the shortest frame, 18494",
        ),
        (
            "/capture/cells_most",
            json!(0),
            "capture.cells_most: 0 is outside 1 to 18446744073709551615",
        ),
    ];
    for (pointer, value, expected) in cases {
        assert_eq!(error(pointer, value), expected);
    }
    let unknown = error("/capture", json!({ "cells": true, "cells_most": 1, "cellls": 1 }));
    assert!(unknown.starts_with("unknown field `cellls`, expected"), "{unknown}");
}

#[test]
fn addresses_belong_to_classical_ip_and_to_one_port() {
    let mut fields = right();
    fields["encapsulation"] = "routed".into();
    fields["lane"] = Value::Null;
    assert_eq!(error_of(fields.clone()), "addresses: needed with encapsulation routed");
    fields["addresses"] = json!([["10.0.0.1"], ["10.0.0.1"]]);
    assert_eq!(error_of(fields.clone()), "addresses: 10.0.0.1 is there twice");
    fields["addresses"] = json!([["10.0.0.1"]]);
    assert_eq!(error_of(fields), "addresses: 1 values for 2 ports");
}
