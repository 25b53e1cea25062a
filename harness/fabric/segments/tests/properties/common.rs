// SPDX-License-Identifier: Apache-2.0
//! A driver that runs a model as the fabric does and checks every promise of [`Segment`] on the way.

use std::fmt::{self, Debug};
use std::sync::Arc;

use proptest::prelude::*;
use sundial_core::{
    Blocks, Direction, Fate, Frame, Output, Segment, SegmentCounters, SegmentKind,
    SegmentParameters, Span, Time,
};
use sundial_segments::hub::{self, HubParameters};
use sundial_segments::link::{
    self, Distribution, Gemodel, Impairments, LinkChange, LinkParameters,
};
use sundial_segments::switch::{self, SwitchChange, SwitchParameters};

/// Stamp, interface, direction, bytes, fate.
pub type Recorded = (Time, usize, Direction, usize, Option<Box<Fate>>);

/// A frame that a machine hands in.
#[derive(Clone, Debug)]
pub struct Input {
    pub at: Time,
    pub port: usize,
    pub frame: Frame,
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Due, port, number of the input, bytes.
    pub deliveries: Vec<(Time, usize, usize, usize)>,
    /// Due, port.
    pub finished: Vec<(Time, usize)>,
    pub records: Vec<Recorded>,
    pub counters: SegmentCounters,
}

type Build = dyn Fn(&SegmentParameters) -> Box<dyn Segment>;

/// A kind of segment with its parameters.
#[derive(Clone)]
pub struct Model {
    parameters: Arc<dyn Debug>,
    build: Arc<Build>,
    /// Bits per second of each port's line.
    rates: Vec<u64>,
}

pub const RING: usize = 8;

impl Model {
    pub fn of<K: SegmentKind>(ports: usize, parameters: K::Parameters) -> Self
    where
        K::Parameters: Debug,
    {
        let parameters = Arc::new(parameters);
        let build = {
            let parameters = parameters.clone();
            Arc::new(move |common: &SegmentParameters| K::build(common, &parameters))
        };
        let segment = build(&SegmentParameters::of_machines(ports, RING));
        let rates = (0..ports).map(|port| segment.rate_bps(port)).collect();
        Self { parameters, build, rates }
    }

    pub fn link(parameters: LinkParameters) -> Self {
        Self::of::<link::Config>(2, parameters)
    }

    pub fn hub(parameters: HubParameters) -> Self {
        Self::of::<hub::Config>(parameters.cable_delay.len(), parameters)
    }

    pub fn switch(parameters: SwitchParameters) -> Self {
        Self::of::<switch::Config>(parameters.rate_bps.len(), parameters)
    }

    pub fn ports(&self) -> usize {
        self.rates.len()
    }

    pub fn build(&self, seed: u64) -> Box<dyn Segment> {
        self.build_with_ring(seed, RING)
    }

    pub fn build_with_ring(&self, seed: u64, ring_frames: usize) -> Box<dyn Segment> {
        let common = SegmentParameters::of_machines(self.ports(), ring_frames);
        (self.build)(&SegmentParameters { seed, ..common })
    }

    /// Bits per second of a port's line.
    pub fn rate(&self, port: usize) -> u64 {
        self.rates[port]
    }
}

impl Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parameters.fmt(f)
    }
}

/// A frame from `source` to `destination` (255: broadcast) that carries `number` three times, so that
/// it is known again with one bit inverted.
pub fn frame(number: usize, source: u8, destination: u8, bytes: usize) -> Frame {
    let to = if destination == 255 { [0xff; 6] } else { [2, 0, 0, 0, 0, destination] };
    let mut frame = Vec::from(to);
    frame.extend([2, 0, 0, 0, 0, source, 0x08, 0x00]);
    for _ in 0..3 {
        frame.extend((number as u32).to_be_bytes());
    }
    frame.resize(bytes, 0);
    Frame::from(frame)
}

/// The number that [`frame`] put into it; a packet of IP has it behind its header.
pub fn number_of(frame: &Frame) -> usize {
    let begin = if frame[14] == 0x45 { 34 } else { 14 };
    let copy = |index: usize| {
        let start = begin + 4 * index;
        let bytes = frame[start..start + 4].try_into().expect("four bytes");
        u32::from_be_bytes(bytes)
    };
    let (a, b, c) = (copy(0), copy(1), copy(2));
    ((a & b) | (b & c) | (a & c)) as usize
}

/// Runs `inputs`, which are in order of time, to the end.
pub fn run(segment: &mut dyn Segment, inputs: &[Input]) -> Trace {
    let checker = Checker::new(inputs, segment.counters().ports.len());
    drive(segment, checker)
}

/// The same for a model with a life of its own, which never ends, and in which a frame may free one that was handed
/// in before and waits: no promise is broken if the lookahead from the later frame is kept.
pub fn run_lively(segment: &mut dyn Segment, inputs: &[Input]) -> Trace {
    let checker = Checker::new(inputs, segment.counters().ports.len());
    drive(segment, Checker { is_lively: true, ..checker })
}

fn drive(segment: &mut dyn Segment, mut checker: Checker) -> Trace {
    let inputs = checker.inputs;
    let ports = checker.promised_finish.len();
    for (number, input) in inputs.iter().enumerate() {
        checker.run_timeouts(segment, Some(input.at));
        segment.handle_frame(input.at, input.port, input.frame.clone());
        checker.handed_in = number + 1;
        checker.after_call(segment, input.at, Some(input.port));
    }
    let end = checker.now + Span::from_ns(100_000_000);
    checker.run_timeouts(segment, checker.is_lively.then_some(end));
    for port in 0..ports {
        let left = segment.earliest_delivery(port).or(segment.earliest_tx_done(port));
        assert!(checker.is_lively || left.is_none(), "something is left inside");
    }
    // One for each frame handed in.
    for port in 0..ports {
        let offered = inputs.iter().filter(|input| input.port == port).count();
        let finished = checker.trace.finished.iter().filter(|(_, at)| *at == port).count();
        assert_eq!(finished, offered, "exactly one TxDone per frame");
    }
    // Count what was still on its way after the last call that was asked for.
    segment.handle_timeout(checker.now.max(end));
    assert!(checker.is_lively || segment.poll_output().is_none(), "nothing was undecided");
    checker.trace.counters = segment.counters();
    checker.trace
}

/// Nothing happens before `bound`.
#[derive(Clone, Copy, Default)]
struct Promise {
    bound: Time,
    /// Frames that had been handed in when it was made.
    handed_in: usize,
}

struct Checker<'a> {
    inputs: &'a [Input],
    handed_in: usize,
    now: Time,
    /// By input and port: the latest promise made while the input was inside.
    promised: Vec<Vec<Promise>>,
    /// By port: the latest promise of a finished transmission.
    promised_finish: Vec<Promise>,
    /// A later frame may free an earlier one, and timeouts do not end.
    is_lively: bool,
    trace: Trace,
}

impl<'a> Checker<'a> {
    fn new(inputs: &'a [Input], ports: usize) -> Self {
        Self {
            inputs,
            handed_in: 0,
            now: Time::ZERO,
            promised: vec![vec![Promise::default(); ports]; inputs.len()],
            promised_finish: vec![Promise::default(); ports],
            is_lively: false,
            trace: Trace::default(),
        }
    }

    fn run_timeouts(&mut self, segment: &mut dyn Segment, until: Option<Time>) {
        let mut calls = 0;
        while let Some(at) = segment.poll_timeout() {
            if until.is_some_and(|until| at > until) {
                break;
            }
            assert!(at >= self.now, "asked for a call in the past");
            segment.handle_timeout(at);
            self.after_call(segment, at, None);
            calls += 1;
            assert!(calls < 1_000_000, "no end of timeouts");
        }
    }

    fn after_call(&mut self, segment: &mut dyn Segment, now: Time, handed_in_at: Option<usize>) {
        self.now = now;
        while let Some(output) = segment.poll_output() {
            match output {
                Output::Deliver { due, port, frame } => self.delivered(segment, due, port, &frame),
                Output::TxDone { due, port } => {
                    assert!(due >= now);
                    if handed_in_at != Some(port) {
                        let promised = self.promised_finish[port];
                        self.check_promise(segment, due, port, promised);
                    }
                    self.trace.finished.push((due, port));
                }
                Output::Record { at, interface, direction, frame, fate } => {
                    assert!(at >= now.back(segment.record_lag()), "recorded too late");
                    self.trace.records.push((at, interface, direction, frame.len(), fate));
                }
                Output::Note { at, .. } => assert!(at <= now, "noted before it happens"),
                Output::Train { capture, at, train, .. } => {
                    let lag = segment.further_captures()[capture].record_lag;
                    assert!(at >= now.back(lag), "recorded too late");
                    let rest = (0..).map_while(|index| train.after(index));
                    assert!(
                        std::iter::once(at).chain(rest).is_sorted(),
                        "a train goes back in time"
                    );
                }
            }
        }
        for port in 0..self.promised_finish.len() {
            let promise = |bound| Promise { bound, handed_in: self.handed_in };
            let delivery = promise(segment.earliest_delivery(port).unwrap_or(Time::MAX));
            for promised in &mut self.promised[..self.handed_in] {
                promised[port].raise(delivery);
            }
            let finish = promise(segment.earliest_tx_done(port).unwrap_or(Time::ZERO));
            let promised = &mut self.promised_finish[port];
            if handed_in_at == Some(port) {
                // The new frame may be through before those inside.
                *promised = Promise::default();
            }
            promised.raise(finish);
        }
    }

    fn delivered(&mut self, segment: &dyn Segment, due: Time, port: usize, frame: &Frame) {
        let number = number_of(frame);
        let input = &self.inputs[number];
        assert_ne!(input.port, port, "a port receives its own frame");
        assert!(due >= self.now, "delivered {due}, called {}", self.now);
        let promised = self.promised[number][port];
        self.check_promise(segment, due, port, promised);
        let lookahead = segment.lookahead(input.port, port);
        assert!(due >= input.at + lookahead, "delivered {due}, lookahead {lookahead:?}");
        self.trace.deliveries.push((due, port, number, frame.len()));
    }
}

impl Promise {
    fn raise(&mut self, other: Self) {
        if other.bound > self.bound {
            *self = other;
        }
    }
}

impl Checker<'_> {
    /// What happens at `port` at `due` may, for all that was promised.
    fn check_promise(&self, segment: &dyn Segment, due: Time, port: usize, promised: Promise) {
        let Promise { bound, handed_in } = promised;
        if due >= bound {
            return;
        }
        let ports = self.promised_finish.len();
        let way = |from: usize| {
            // There and back, from a port to itself.
            let back = (0..ports)
                .filter(|&other| other != from)
                .map(|other| segment.lookahead(from, other) + segment.lookahead(other, from));
            if from == port { back.min() } else { Some(segment.lookahead(from, port)) }
        };
        let mut later = self.inputs[handed_in..self.handed_in].iter();
        let is_hastened =
            later.any(|input| way(input.port).is_some_and(|way| due >= input.at + way));
        assert!(self.is_lively && is_hastened, "at {due} at port {port}, promised {bound}");
    }
}

/// Frames at random times and ports: some at the same instant, some in a burst, some far apart.
pub fn inputs(ports: usize, most: usize) -> impl Strategy<Value = Vec<Input>> {
    let pause = prop_oneof![
        3 => Just(0_u64),
        3 => 0_u64..30_000_000,
        3 => 0_u64..2_000_000_000,
        1 => 0_u64..20_000_000_000,
    ];
    let bytes = prop_oneof![2 => 26_usize..100, 1 => 100_usize..1514, 1 => Just(1514_usize)];
    let destination = prop_oneof![6 => 0..ports as u8, 1 => Just(255_u8)];
    let one = (pause, 0..ports, bytes, destination);
    prop::collection::vec(one, 1..most).prop_map(|list| {
        let mut at = Time::ZERO;
        let input = |(number, (pause, port, bytes, destination))| {
            at += Span::from_ps(pause);
            Input { at, port, frame: frame(number, port as u8, destination, bytes) }
        };
        list.into_iter().enumerate().map(input).collect()
    })
}

pub fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(10_000_000_u64),
        Just(100_000_000),
        Just(155_520_000),
        1_000_000..1_000_000_000_u64
    ]
}

pub fn impairments() -> impl Strategy<Value = Impairments> {
    let fraction = || prop_oneof![2 => Just(0.0), 1 => 0.0..1.0_f64];
    let distribution = prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::Normal),
        Just(Distribution::Pareto),
        Just(Distribution::Paretonormal),
    ];
    let delay =
        (0..2_000_000_u64, prop_oneof![Just(0_u64), 1..2_000_000_u64], fraction(), distribution);
    let chances = (fraction(), fraction(), fraction(), fraction(), prop::option::of(0.0..1.0_f64));
    let order = (fraction(), prop::option::of(1..5_u32));
    let rate = prop::option::of((
        100_000..50_000_000_u64,
        -10..50_i32,
        prop_oneof![Just(0_u32), Just(48)],
    ));
    (delay, chances, order, rate, 1..20_u32).prop_map(
        |(
            (delay_ns, jitter_ns, delay_correlation, shape),
            chances,
            (reorder, gap),
            rate,
            limit,
        )| {
            let (loss, loss_correlation, duplicate, corrupt, p) = chances;
            let gemodel =
                p.map(|p| Gemodel { p, r: None, one_minus_h: Some(0.5), one_minus_k: None });
            let reorder = if delay_ns > 0 { reorder } else { 0.0 };
            let (rate_bps, packet_overhead_bytes, cell_size_bytes) = match rate {
                Some((rate, overhead, cell)) => (Some(rate), overhead, cell),
                None => (None, 0, 0),
            };
            let settings = Impairments {
                delay_ns,
                jitter_ns,
                delay_correlation,
                distribution: if jitter_ns > 0 { shape } else { Distribution::Uniform },
                loss: if gemodel.is_some() { 0.0 } else { loss },
                loss_correlation,
                gemodel,
                duplicate,
                corrupt,
                reorder,
                gap: if reorder > 0.0 { gap } else { None },
                rate_bps,
                packet_overhead_bytes,
                cell_size_bytes,
                cell_overhead_bytes: if cell_size_bytes > 0 { 5 } else { 0 },
                limit_frames: Some(limit),
                ..Impairments::default()
            };
            settings.check().expect("the strategy makes only sensible settings");
            settings
        },
    )
}

pub fn link() -> impl Strategy<Value = Model> {
    link_parameters().prop_map(Model::link)
}

fn link_parameters() -> impl Strategy<Value = LinkParameters> {
    (rate(), 0..1_000_000_u64, ways()).prop_map(|(rate_bps, propagation_ns, impairments)| {
        let propagation = Span::from_ns(propagation_ns);
        LinkParameters { rate_bps, propagation, impairments, timeline: vec![], by_hand: false }
    })
}

fn ways() -> impl Strategy<Value = [Option<Box<Impairments>>; 2]> {
    let way = || prop::option::of(impairments().prop_map(Box::new));
    (way(), way()).prop_map(|(a, b)| [a, b])
}

/// A link that is cut, heals and is impaired in other ways, and whose machines are off.
pub fn changing_link() -> impl Strategy<Value = LinkParameters> {
    let blocks = prop_oneof![
        3 => Just(Blocks::default()),
        1 => Just(Blocks::new(2, &[0], &[]).expect("valid")),
        1 => Just(Blocks::new(2, &[], &[vec![1], vec![0]]).expect("valid")),
        1 => (0..2_usize).prop_map(|port| {
            Blocks::new(2, &[], &[]).and_then(|blocks| blocks.with_off(&[port])).expect("valid")
        }),
    ];
    let change = (prop_oneof![1..1_000_000_u64, 1..20_000_000_u64], blocks, ways());
    (link_parameters(), prop::collection::vec(change, 0..6)).prop_map(|(parameters, changes)| {
        let mut at = Time::ZERO;
        let change = |(pause_ns, blocks, impairments)| {
            at += Span::from_ns(pause_ns);
            LinkChange { at, note: String::new(), blocks, impairments }
        };
        LinkParameters { timeline: changes.into_iter().map(change).collect(), ..parameters }
    })
}

/// A link, and the same with changes to what it is already.
pub fn steady_links() -> impl Strategy<Value = [Model; 2]> {
    let times = prop::collection::btree_set(0..20_000_000_u64, 1..6);
    (link_parameters(), times).prop_map(|(plain, times)| {
        let change = |at_ns| LinkChange {
            at: Time::from_ns(at_ns),
            note: String::new(),
            blocks: Blocks::default(),
            impairments: plain.impairments.clone(),
        };
        let timeline = times.into_iter().map(change).collect();
        [Model::link(plain.clone()), Model::link(LinkParameters { timeline, ..plain })]
    })
}

pub fn hub() -> impl Strategy<Value = Model> {
    // At 10 Mb/s a way may take 23 us, at 100 Mb/s 2.225 us.
    (any::<bool>(), prop::collection::vec(0..7_400_u64, 2..6), 0..7_400_u64).prop_map(
        |(fast, cables, repeater)| {
            let scale = |ns: u64| Span::from_ns(if fast { ns / 10 } else { ns });
            Model::hub(HubParameters {
                rate_bps: if fast { 100_000_000 } else { 10_000_000 },
                cable_delay: cables.into_iter().map(scale).collect(),
                repeater_delay: scale(repeater),
            })
        },
    )
}

pub fn switch_parameters() -> impl Strategy<Value = SwitchParameters> {
    let port = (rate(), 0..100_000_u64);
    let times = (0..100_000_u64, 1..5_000_000_u64);
    (prop::collection::vec(port, 2..6), times, 0..10_usize, 0..6_usize).prop_map(
        |(ports, (latency, ageing), queue_frames, mac_table_entries)| SwitchParameters {
            rate_bps: ports.iter().map(|(rate, _)| *rate).collect(),
            propagation: ports.iter().map(|(_, ns)| Span::from_ns(*ns)).collect(),
            forwarding_latency: Span::from_ns(latency),
            queue_frames,
            mac_table_entries,
            ageing: Span::from_ns(ageing),
            timeline: vec![],
        },
    )
}

/// A switch whose cables are cut, whose ports are parted, and whose machines are off.
pub fn changing_switch() -> impl Strategy<Value = SwitchParameters> {
    switch_parameters().prop_flat_map(|parameters| {
        let ports = parameters.rate_bps.len();
        let change = (
            prop_oneof![1..1_000_000_u64, 1..20_000_000_u64],
            prop::collection::vec(any::<bool>(), ports),
            prop::option::of(prop::collection::vec(0..2_usize, ports)),
            prop::option::of(0..ports),
        );
        prop::collection::vec(change, 0..6).prop_map(move |changes| {
            let mut at = Time::ZERO;
            type Drawn = (u64, Vec<bool>, Option<Vec<usize>>, Option<usize>);
            let change = |(pause_ns, cut, groups, off): Drawn| {
                at += Span::from_ns(pause_ns);
                let cut: Vec<_> = (0..ports).filter(|&port| cut[port]).collect();
                let group = |groups: &Vec<usize>, number| {
                    (0..ports).filter(|&port| groups[port] == number).collect()
                };
                let partition: Vec<Vec<usize>> =
                    groups.iter().flat_map(|it| [group(it, 0), group(it, 1)]).collect();
                let blocks = Blocks::new(ports, &cut, &partition).expect("valid");
                let blocks = blocks.with_off(off.as_slice()).expect("valid");
                SwitchChange { at, note: String::new(), blocks }
            };
            let timeline = changes.into_iter().map(change).collect();
            SwitchParameters { timeline, ..parameters.clone() }
        })
    })
}

pub fn switch() -> impl Strategy<Value = Model> {
    switch_parameters().prop_map(Model::switch)
}

/// A model with inputs for it.
pub fn with_inputs(
    model: impl Strategy<Value = Model>,
    most: usize,
) -> impl Strategy<Value = (Model, Vec<Input>)> {
    model.prop_flat_map(move |model| {
        let inputs = inputs(model.ports(), most);
        (Just(model), inputs)
    })
}
