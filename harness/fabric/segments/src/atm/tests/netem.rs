// SPDX-License-Identifier: Apache-2.0
//! A link of 10 Gbit/s whose netem counts cells (149.76 Mbit/s, 10 bytes of overhead, cells of 48 and 5) was what stood
//! for LAN emulation over OC-3c before there was `atm`. On both, a call and its reply take the same time, but for one
//! cell, the latencies and the first frame's serialisation at 10 Gbit/s. Only netem does not pad: a last fragment of 38
//! octets is one cell there, and two over LAN emulation.

use serde_json::json;
use sundial_core::{Frame, Segment, SegmentKind, SegmentParameters, Span, Time};

use super::lane::{emulated_lan_of, lane_fields};
use super::{finish, oc3c};
use crate::link;

/// Lengths of the frames of a UDP datagram in packets of 1500 octets (RFC 791: fragments of 1480).
fn frames(datagram: usize) -> Vec<usize> {
    (0..datagram).step_by(1480).map(|at| 14 + 20 + (datagram - at).min(1480)).collect()
}

/// When frames that are handed in together at 0 arrive.
fn arrivals(segment: &mut dyn Segment, lengths: &[usize]) -> Vec<Time> {
    for &bytes in lengths {
        let mut frame = vec![2, 0x53, 0x44, 0, 0, 2, 2, 0x53, 0x44, 0, 0, 1, 8, 0];
        frame.resize(bytes, 0);
        segment.handle_frame(Time::ZERO, 0, Frame::from(frame));
    }
    finish(segment).arrivals().into_iter().map(|(due, _)| due).collect()
}

#[test]
fn a_link_that_counts_cells_differs_by_a_cell_and_what_is_constant() {
    let mut fields = lane_fields(2);
    fields["lines"] = json!([{ "rate_bps": 149_760_000, "cell_octets": 53 }, { "rate_bps": 149_760_000, "cell_octets": 53 }]);
    fields["lane"]["resolution"] = "static".into();
    fields["cell_latency_ns"] = 10_000.into();
    fields["propagation_ns"] = json!([25, 25]);
    let netem = json!({ "rate_bps": 149_760_000, "packet_overhead_bytes": 10, "cell_size_bytes": 48, "cell_overhead_bytes": 5 });
    let config = json!({
        "rate_bps": 10_000_000_000_u64, "propagation_ns": 50, "impairments": { "0": netem, "1": netem },
    });
    let config: link::Config = serde_json::from_value(config).expect("the fields are right");
    let parameters = config.check(2).expect("the fields are right");
    let mut short = 0;
    for size in (0..=8192).step_by(16) {
        // Call and reply of Sun RPC (RFC 5531): 40 and 24 octets, the length of the argument, the argument.
        for header in [40 + 4, 24 + 4] {
            let lengths = frames(8 + header + size);
            let over_atm = arrivals(&mut emulated_lan_of(fields.clone()), &lengths);
            let mut link =
                link::Config::build(&SegmentParameters::of_machines(2, 128), &parameters);
            let over_link = arrivals(&mut *link, &lengths);
            assert_eq!(over_link.len(), lengths.len());
            // Preamble, padding and FCS; a byte takes 800 ps.
            let first = Span::from_ps((8 + lengths[0].max(60) as u64 + 4) * 800);
            let mut more = 1;
            for (number, (atm, link)) in over_atm.iter().zip(&over_link).enumerate() {
                // LAN emulation pads the last fragment to 60 octets, two cells; netem counts one below 39.
                more += u64::from(lengths[number] < 39);
                short += usize::from(lengths[number] < 39);
                // Both are rounded up to whole ps.
                let least = *link + Span::from_ns(10_000) + (oc3c(more) - Span::from_ps(1));
                let seen = *atm + first;
                assert!(
                    least <= seen && seen <= least + Span::from_ps(1),
                    "{size} octets, frame {number}: {atm} over atm, {link} over the link"
                );
            }
            assert_eq!(over_atm.len(), over_link.len());
        }
    }
    // Datagrams of 1480 n + 4 octets: calls of 2912 and 5872, replies of 2928 and 5888.
    assert_eq!(short, 4);
}
