// SPDX-License-Identifier: Apache-2.0
//! The same network with an event for each cell and octets in each, as simple as it
//! can be: what the fast one must agree with to the unit.

use std::collections::{BTreeMap, VecDeque};

use sundial_core::{Rule, SegmentParameters, Stream};
use sundial_wire::atm::aal5;

use super::super::faults::{Direction, Faults, Verdict};
use super::super::loss::{Loss, Side};
use super::super::network::Outcome;
use super::super::parameters::{Action, AtmParameters, Contract, Discard, Interleave};
use super::super::units::{self, Units};

/// A PDU that an adapter gets at `at`.
#[derive(Clone, Debug)]
pub(super) struct Handed {
    pub(super) at: Units,
    pub(super) from: usize,
    /// Channels of one sender take turns in the order of their numbers.
    pub(super) channel: usize,
    pub(super) to: Vec<usize>,
    pub(super) octets: Vec<u8>,
}

/// By number of the PDU and receiver: what became of it, and when its cells arrived.
pub(super) type Results = BTreeMap<(usize, usize), (Outcome, Vec<(u32, Units)>)>;

#[derive(Clone, Debug)]
struct Cell {
    pdu: usize,
    index: usize,
    is_last: bool,
    payload: Vec<u8>,
    tagged: bool,
}

/// In this order at one instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Ready { pdu: usize },
    AdapterLooks { station: usize },
    LineFree { station: usize },
    Join { input: usize },
}

/// What is known of a PDU on its way to one receiver.
#[derive(Default)]
struct Copy {
    first_loss: Option<Loss>,
    lost: u32,
    arrived: Vec<(u32, Units)>,
    /// The last cell: when it arrived, whether the PDU is good, whether cells of others are in it.
    end: Option<(Units, bool, bool)>,
}

#[derive(Default)]
struct Adapter {
    queues: BTreeMap<usize, VecDeque<Cell>>,
    fifo: VecDeque<(usize, Cell)>,
    last_channel: Option<usize>,
    free: Units,
    next_cell: BTreeMap<usize, Units>,
}

/// The bucket of a channel: how full, and when that was.
type Bucket = Option<(i128, Units)>;

struct Queue {
    cells: VecDeque<(usize, Cell)>,
    busy: bool,
    /// By channel: inside a PDU, and what becomes of the rest.
    states: BTreeMap<usize, (bool, Rest)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Passes,
    AllGoes,
    AllButTheLastGoes,
}

/// Runs the cells of `handed`, which are in order of time.
pub(super) struct Reference<'a> {
    parameters: &'a AtmParameters,
    handed: &'a [Handed],
    events: BTreeMap<(Units, What), ()>,
    joining: BTreeMap<(Units, usize), (usize, Cell)>,
    adapters: Vec<Adapter>,
    buckets: BTreeMap<usize, Bucket>,
    queues: Vec<Queue>,
    from_faults: Vec<Option<Faults>>,
    to_faults: Vec<Option<Faults>>,
    variations: Vec<(Stream, Units)>,
    buffers: BTreeMap<(usize, usize), Vec<Cell>>,
    copies: BTreeMap<(usize, usize), Copy>,
}

impl<'a> Reference<'a> {
    pub(super) fn new(
        common: &SegmentParameters,
        parameters: &'a AtmParameters,
        handed: &'a [Handed],
    ) -> Self {
        let ports = parameters.ports.len();
        let faults = |direction| {
            let ports = parameters.ports.iter().enumerate();
            ports
                .map(|(number, port)| match direction {
                    Direction::FromAdapter => {
                        Faults::new(common, number, direction, &port.from_adapter)
                    }
                    Direction::ToAdapter => {
                        Faults::new(common, number, direction, &port.to_adapter)
                    }
                })
                .collect()
        };
        let queue = || Queue { cells: VecDeque::new(), busy: false, states: BTreeMap::new() };
        let stream = |port| (Stream::new(common.seed, &common.name, port, 0x30), 0);
        let ready = handed.iter().enumerate().map(|(pdu, one)| ((one.at, What::Ready { pdu }), ()));
        Self {
            parameters,
            handed,
            events: ready.collect(),
            joining: BTreeMap::new(),
            adapters: (0..ports).map(|_| Adapter::default()).collect(),
            buckets: BTreeMap::new(),
            queues: (0..ports).map(|_| queue()).collect(),
            from_faults: faults(Direction::FromAdapter),
            to_faults: faults(Direction::ToAdapter),
            variations: (0..ports).map(stream).collect(),
            buffers: BTreeMap::new(),
            copies: BTreeMap::new(),
        }
    }

    pub(super) fn run(mut self) -> Results {
        while let Some(((now, what), ())) = self.events.pop_first() {
            match what {
                What::Ready { pdu } => self.ready(now, pdu),
                What::AdapterLooks { station } => self.adapter_looks(now, station),
                What::LineFree { station } => {
                    self.queues[station].busy = false;
                    self.start_next(now, station);
                }
                What::Join { input } => {
                    let (channel, cell) = self.joining.remove(&(now, input)).expect("it joins now");
                    let to = self.handed[cell.pdu].to.clone();
                    for station in to {
                        self.join(now, station, channel, cell.clone());
                    }
                }
            }
        }
        let mut results = Results::new();
        for (key, copy) in self.copies {
            let outcome = match (copy.end, copy.first_loss) {
                (Some((at, true, _)), _) => Outcome::Received { at },
                (_, Some(loss)) => Outcome::Lost { loss, cells: copy.lost },
                (Some((at, false, is_joined)), None) => {
                    let rule = if is_joined { Rule::Joined } else { Rule::WrongCrc };
                    Outcome::Spoiled { at, rule }
                }
                (None, None) => panic!("a PDU without losses ends"),
            };
            results.insert(key, (outcome, copy.arrived));
        }
        results
    }

    fn ready(&mut self, now: Units, pdu: usize) {
        let Handed { from, channel, octets, .. } = &self.handed[pdu];
        let count = octets.len() / 48;
        for (index, payload) in octets.chunks(48).enumerate() {
            let is_last = index + 1 == count;
            let cell = Cell { pdu, index, is_last, payload: payload.to_vec(), tagged: false };
            match self.parameters.interleave {
                Interleave::Pdu => self.adapters[*from].fifo.push_back((*channel, cell)),
                Interleave::Cells => {
                    self.adapters[*from].queues.entry(*channel).or_default().push_back(cell);
                }
            }
        }
        self.events.insert((now, What::AdapterLooks { station: *from }), ());
    }

    /// Sends a cell if the line is free and the spacing allows one; else looks again when that may be.
    fn adapter_looks(&mut self, now: Units, station: usize) {
        let port = &self.parameters.ports[station];
        let adapter = &mut self.adapters[station];
        let look = What::AdapterLooks { station };
        if adapter.free > now {
            self.events.insert((adapter.free, look), ());
            return;
        }
        let waiting: Vec<usize> = match adapter.fifo.front() {
            Some((channel, _)) => vec![*channel],
            None => adapter
                .queues
                .iter()
                .filter(|(_, queue)| !queue.is_empty())
                .map(|(&c, _)| c)
                .collect(),
        };
        let allowed = |channel: &usize| adapter.next_cell.get(channel).copied().unwrap_or(0);
        let Some(earliest) = waiting.iter().map(allowed).min() else { return };
        if earliest > now {
            self.events.insert((earliest, look), ());
            return;
        }
        let mut able: Vec<usize> =
            waiting.into_iter().filter(|channel| allowed(channel) <= now).collect();
        // After the last one and around.
        able.sort_by_key(|&channel| {
            (adapter.last_channel.is_some_and(|last| channel <= last), channel)
        });
        let channel = able[0];
        let cell = match adapter.fifo.pop_front() {
            Some((_, cell)) => cell,
            None => {
                adapter.queues.get_mut(&channel).and_then(VecDeque::pop_front).expect("it waits")
            }
        };
        adapter.last_channel = Some(channel);
        adapter.free = now + port.line.cell;
        adapter.next_cell.insert(channel, now + port.line.cell.max(port.shaping.unwrap_or(0)));
        self.events.insert((adapter.free, look), ());
        self.cross(now + port.line.cell + units::of(port.propagation), station, channel, cell);
    }

    fn lose(&mut self, at: Units, pdu: usize, to: usize, rule: Rule, side: Side) {
        let copy = self.copies.entry((pdu, to)).or_default();
        copy.lost += 1;
        let loss = Loss { at, side, rule };
        if copy.first_loss.is_none_or(|first| loss < first) {
            copy.first_loss = Some(loss);
        }
    }

    fn lose_all(&mut self, at: Units, cell: &Cell, rule: Rule) {
        for to in self.handed[cell.pdu].to.clone() {
            self.lose(at, cell.pdu, to, rule, Side::From);
        }
    }

    /// The cell's last bit is at the switch at `at`.
    fn cross(&mut self, at: Units, station: usize, channel: usize, mut cell: Cell) {
        if let Some(faults) = &mut self.from_faults[station] {
            match faults.strike() {
                Verdict::Lost(rule) => return self.lose_all(at, &cell, rule),
                Verdict::Passed { flipped, .. } => flip(&mut cell, flipped),
            }
        }
        if let Some(contract) = self.parameters.ports[station].contract
            && !conforms(self.buckets.entry(channel).or_default(), contract, at)
        {
            match contract.action {
                Action::Drop => return self.lose_all(at, &cell, Rule::Policed),
                Action::Tag => cell.tagged = true,
            }
        }
        let mut joins = at + units::of(self.parameters.cell_latency);
        let cdv = units::of(self.parameters.cdv);
        if cdv > 0 {
            let (stream, last) = &mut self.variations[station];
            let delay = (u128::from(cdv) + 1) * u128::from(stream.draw()) / (1 << 32);
            joins = (joins + delay as Units).max(*last + 1);
            *last = joins;
        }
        self.events.insert((joins, What::Join { input: station }), ());
        self.joining.insert((joins, station), (channel, cell));
    }

    fn join(&mut self, now: Units, station: usize, channel: usize, cell: Cell) {
        let policy = self.parameters.queue;
        let queue = &mut self.queues[station];
        let waiting = queue.cells.len() as u64;
        let of_channel = queue.cells.iter().filter(|(other, _)| *other == channel).count() as u64;
        let (inside, rest) = queue.states.entry(channel).or_insert((false, Rest::Passes));
        let begins = !*inside;
        *inside = !cell.is_last;
        if begins {
            *rest = Rest::Passes;
        }
        let rule = if *rest == Rest::AllGoes {
            Some(Rule::EarlyPacketDiscard)
        } else if *rest == Rest::AllButTheLastGoes && !cell.is_last {
            Some(Rule::PartialPacketDiscard)
        } else if let Discard::Early { above } = policy.discard
            && begins
            && waiting >= above
        {
            *rest = Rest::AllGoes;
            Some(Rule::EarlyPacketDiscard)
        } else {
            let rule = if cell.tagged && policy.clp1_above.is_some_and(|above| waiting >= above) {
                Some(Rule::LowPriority)
            } else if policy.vc_cells.is_some_and(|places| of_channel >= places) {
                Some(Rule::VcFull)
            } else if waiting >= policy.cells && queue.busy {
                Some(Rule::QueueFull)
            } else {
                None
            };
            if rule.is_some() && policy.discard != Discard::Tail {
                *rest = Rest::AllButTheLastGoes;
            }
            rule
        };
        match rule {
            Some(rule) => self.lose(now, cell.pdu, station, rule, Side::Towards),
            None => {
                queue.cells.push_back((channel, cell));
                if !queue.busy {
                    self.start_next(now, station);
                }
            }
        }
    }

    fn start_next(&mut self, now: Units, station: usize) {
        let port = &self.parameters.ports[station];
        let Some((channel, mut cell)) = self.queues[station].cells.pop_front() else { return };
        self.queues[station].busy = true;
        self.events.insert((now + port.line.cell, What::LineFree { station }), ());
        if let Some(faults) = &mut self.to_faults[station] {
            match faults.strike() {
                Verdict::Lost(rule) => {
                    return self.lose(now, cell.pdu, station, rule, Side::Towards);
                }
                Verdict::Passed { flipped, .. } => flip(&mut cell, flipped),
            }
        }
        let at = now + port.line.cell + units::of(port.propagation);
        let copy = self.copies.entry((cell.pdu, station)).or_default();
        copy.arrived.push((cell.index as u32, at));
        let (pdu, is_last) = (cell.pdu, cell.is_last);
        let buffer = self.buffers.entry((channel, station)).or_default();
        buffer.push(cell);
        if is_last {
            let octets: Vec<u8> = buffer.iter().flat_map(|cell| cell.payload.clone()).collect();
            let is_joined = buffer.iter().any(|cell| cell.pdu != pdu);
            copy.end = Some((at, aal5::parse(&octets).is_ok(), is_joined));
            buffer.clear();
        }
    }
}

fn flip(cell: &mut Cell, bit: Option<u16>) {
    if let Some(bit) = bit {
        cell.payload[usize::from(bit / 8)] ^= 0x80 >> (bit % 8);
    }
}

/// GCRA as I.371's other form of it, the continuous-state leaky bucket.
fn conforms(bucket: &mut Bucket, contract: Contract, at: Units) -> bool {
    let filled = bucket.map_or(0, |(filled, last)| (filled - i128::from(at - last)).max(0));
    if filled > i128::from(contract.tolerance) {
        return false;
    }
    *bucket = Some((filled + i128::from(contract.interval), at));
    true
}
