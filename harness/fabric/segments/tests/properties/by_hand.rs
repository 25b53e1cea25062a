// SPDX-License-Identifier: Apache-2.0
//! A change that comes while a segment runs has the outcome that the same change has in a timeline.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use sundial_core::{
    Frame, Invalid, Kind, LinkType, Output, Segment, SegmentCounters, SegmentParameters, Span, Time,
};
use sundial_segments::{link, switch};

use super::common::{Input, RING, Trace, inputs, run};

/// A segment that someone changes while it runs.
struct ByHand {
    segment: Box<dyn Segment>,
    /// What is still to come, the latest first.
    changes: Vec<(Time, Value)>,
    /// What has come, with its instant.
    done: Vec<Value>,
}

impl ByHand {
    fn change_until(&mut self, now: Time) {
        while let Some((at, mut change)) = self.changes.pop_if(|(at, _)| *at <= now) {
            let begins = self.segment.change_by_hand(at, change.clone()).expect("valid");
            assert!(begins >= at);
            change["at_ns"] = begins.as_ns_ceil().into();
            self.done.push(change);
        }
    }
}

impl Segment for ByHand {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        self.change_until(now);
        self.segment.handle_frame(now, port, frame);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.change_until(now);
        self.segment.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        let change = self.changes.last().map(|(at, _)| *at);
        change.into_iter().chain(self.segment.poll_timeout()).min()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.segment.poll_output()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        self.segment.lookahead(from, to)
    }

    fn earliest_delivery(&self, port: usize) -> Option<Time> {
        self.segment.earliest_delivery(port)
    }

    fn earliest_tx_done(&self, port: usize) -> Option<Time> {
        self.segment.earliest_tx_done(port)
    }

    fn counters(&self) -> SegmentCounters {
        self.segment.counters()
    }

    fn rate_bps(&self, port: usize) -> u64 {
        self.segment.rate_bps(port)
    }

    fn link_type(&self) -> LinkType {
        self.segment.link_type()
    }

    fn change_by_hand(&mut self, now: Time, change: Value) -> Result<Time, Invalid> {
        self.segment.change_by_hand(now, change)
    }
}

fn build(kind: Kind, fields: &Map<String, Value>, ports: usize) -> Box<dyn Segment> {
    let builder = kind.check(fields.clone(), ports).expect("valid");
    builder.build(&SegmentParameters::of_machines(ports, RING))
}

/// What came of it, whenever each part was decided.
fn sorted(mut trace: Trace) -> Trace {
    trace.deliveries.sort();
    trace.records.sort_by_key(|record| (record.0, record.1, record.3));
    trace
}

/// The outcome with `changes` by hand, and with the same in the timeline from the start.
fn both_ways(
    kind: Kind,
    fields: Value,
    ports: usize,
    changes: Vec<(u64, Value)>,
    inputs: &[Input],
) -> [Trace; 2] {
    let Value::Object(mut fields) = fields else { panic!("fields are an object") };
    let changes = changes.into_iter().map(|(at_ns, change)| (Time::from_ns(at_ns), change));
    let mut live = ByHand {
        segment: build(kind, &fields, ports),
        changes: changes.rev().collect(),
        done: Vec::new(),
    };
    let by_hand = run(&mut live, inputs);
    live.change_until(Time::MAX);
    fields.insert("timeline".into(), live.done.into());
    let planned = run(&mut *build(kind, &fields, ports), inputs);
    [by_hand, planned].map(sorted)
}

fn impairments() -> impl Strategy<Value = Value> {
    let delay = (0..2_000_000_u64, 0..500_000_u64);
    let shaped = prop::option::of(1_000_000..200_000_000_u64);
    (delay, 0.0..0.3, 0.0..0.3, 0.0..0.3, shaped).prop_map(
        |((delay, jitter), loss, duplicate, reorder, rate)| {
            json!({
                "delay_ns": delay + 1, "jitter_ns": jitter, "loss": loss, "duplicate": duplicate,
                "reorder": reorder, "rate_bps": rate, "limit_frames": 20,
            })
        },
    )
}

fn ways() -> impl Strategy<Value = Value> {
    let way = || prop::option::of(impairments());
    (way(), way()).prop_map(|(a, b)| {
        let ways = [("0", a), ("1", b)].into_iter();
        ways.filter_map(|(port, way)| Some((port.to_owned(), way?))).collect()
    })
}

/// Changes in order of time; those of links impair frames, too.
fn changes(ports: usize, ways: BoxedStrategy<Value>) -> impl Strategy<Value = Vec<(u64, Value)>> {
    let cut = prop::collection::btree_set(0..ports, 0..2);
    let change = (0..1_000_000_u64, cut, any::<bool>(), ways).prop_map(
        move |(pause, cut, apart, impairments)| {
            let groups: Vec<Vec<usize>> =
                if apart { vec![vec![0], (1..ports).collect()] } else { vec![] };
            let mut change = json!({"at_ns": 0, "note": "n", "cut": cut, "partition": groups});
            if impairments.is_object() {
                change["impairments"] = impairments;
            }
            (pause, change)
        },
    );
    prop::collection::vec(change, 1..6).prop_map(|mut changes| {
        let mut at_ns = 0;
        for (pause, _) in &mut changes {
            at_ns += *pause;
            *pause = at_ns;
        }
        changes
    })
}

proptest! {
    #[test]
    fn a_link(
        rate_bps in 1_000_000..1_000_000_000_u64,
        first in ways(),
        changes in changes(2, ways().boxed()),
        inputs in inputs(2, 60),
    ) {
        let fields = json!({
            "rate_bps": rate_bps, "propagation_ns": 700, "impairments": first, "by_hand": true
        });
        let [by_hand, planned] = both_ways(Kind::of::<link::Config>(), fields, 2, changes, &inputs);
        prop_assert_eq!(by_hand, planned);
    }

    #[test]
    fn a_switch(changes in changes(4, Just(Value::Null).boxed()), inputs in inputs(4, 60)) {
        let fields = json!({
            "rate_bps": 10_000_000, "forwarding_latency_ns": 5_000, "queue_frames": 8,
            "mac_table_entries": 64, "ageing_ns": 1_000_000_000_u64,
        });
        let [by_hand, planned] = both_ways(Kind::of::<switch::Config>(), fields, 4, changes, &inputs);
        prop_assert_eq!(by_hand, planned);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let mut fields = Map::new();
    fields.insert("rate_bps".into(), 10_000_000.into());
    let plain = |fields: &Map<String, Value>| build(Kind::of::<link::Config>(), fields, 2);
    let change = json!({"at_ns": 0, "note": "n", "cut": [0]});
    assert!(plain(&fields).change_by_hand(Time::ZERO, change.clone()).is_err());
    fields.insert("by_hand".into(), true.into());
    assert_eq!(plain(&fields).change_by_hand(Time::ZERO, change.clone()), Ok(Time::ZERO));
    let wrong = |change: Value| {
        plain(&fields).change_by_hand(Time::ZERO, change).expect_err("refused").field
    };
    assert_eq!(wrong(json!({"at_ns": 0, "note": "n", "cut": [2]})), "cut[0]");
    let impairments = json!({"0": {"loss": 2.0}});
    let field = wrong(json!({"at_ns": 0, "note": "n", "impairments": impairments}));
    assert_eq!(field, "impairments.0.loss");
}
