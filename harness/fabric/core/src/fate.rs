// SPDX-License-Identifier: Apache-2.0
//! What became of a frame that did not simply arrive: the record in its packet comment, and the words before it.
//!
//! The models of the records, their schema and their words are in `harness/sundial/seams/fate.py`, which writes
//! `fate_words.json`: by rule (of what is not dropped: by fate), one form for each set of fields.

#![expect(missing_docs, reason = "the models document the fields")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Between the words and the record.
const SEPARATOR: &str = " | ";

static WORDS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("fate_words.json")).expect("the generated file is valid")
});

/// Why a frame, a PDU or a cell is dropped. Of two that hold at one instant on one side of a switch, the lesser is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The transmit ring of the adapter was full.
    AdapterFull,
    /// Shorter than an Ethernet header.
    TooShort,
    /// Longer than the segment carries.
    TooLong,
    /// Not a packet of a backplane.
    NoPacket,
    /// A packet that names another node as its sender.
    Sender,
    /// A packet for a node that is not there.
    UnknownNode,
    /// As many collisions as attempts are allowed.
    ExcessiveCollisions,
    /// No VC leads to the address.
    NoVc,
    /// The segment carries IP only.
    NotIp,
    /// The client of LAN emulation is not a member yet.
    NotJoined,
    /// As many frames as a client holds back wait for the address.
    EightFramesWait,
    /// Nothing answered for the address.
    NoAnswer,
    /// A line lost a cell.
    CellLoss,
    /// A cell with more wrong bits in its header than can be corrected.
    HeaderError,
    /// A cell beyond its contract.
    Policed,
    /// The queue was at its threshold when the PDU began.
    EarlyPacketDiscard,
    /// A cell before was discarded.
    PartialPacketDiscard,
    /// CLP was 1 and the queue at the threshold of such cells.
    LowPriority,
    /// The channel had as many cells in the queue as it may have.
    VcFull,
    /// A queue was full.
    QueueFull,
    /// A payload bit is wrong.
    WrongCrc,
    /// The last cell of the PDU before was lost.
    Joined,
    /// The port on one side of its way was cut off.
    Cut,
    /// The ports on both sides of its way were in different groups.
    Partition,
    /// The machine that it was for was off.
    Off,
    /// The machine whose adapter had it was off.
    AdapterOff,
}

impl Rule {
    /// As records and counters name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AdapterFull => "adapter full",
            Self::TooShort => "too short",
            Self::TooLong => "too long",
            Self::NoPacket => "no packet",
            Self::Sender => "sender",
            Self::UnknownNode => "unknown node",
            Self::ExcessiveCollisions => "excessive collisions",
            Self::NoVc => "no VC",
            Self::NotIp => "not IP",
            Self::NotJoined => "not joined",
            Self::EightFramesWait => "8 frames wait",
            Self::NoAnswer => "no answer",
            Self::CellLoss => "cell loss",
            Self::HeaderError => "header error",
            Self::Policed => "policed",
            Self::EarlyPacketDiscard => "early packet discard",
            Self::PartialPacketDiscard => "partial packet discard",
            Self::LowPriority => "CLP 1",
            Self::VcFull => "VC full",
            Self::QueueFull => "queue full",
            Self::WrongCrc => "wrong CRC",
            Self::Joined => "joined to the PDU before",
            Self::Cut => "cut",
            Self::Partition => "partition",
            Self::Off => "off",
            Self::AdapterOff => "adapter off",
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Why {
    /// So many collisions.
    Attempts { attempts: u32 },
    /// The length of the frame.
    Bytes { bytes: usize },
    /// The length of the frame, and the longest that is allowed.
    Longest { bytes: usize, longest: usize },
    /// The number of a node.
    Node { node: u16 },
    /// The address that the frame is for.
    Address { address: String },
}

/// Why an adapter does not send a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule; it is counted under its name.
    pub rule: Rule,
    /// What it found, where it depends on more than the adapter.
    pub why: Option<Why>,
}

impl Refusal {
    /// For a reason that depends on the adapter alone.
    pub fn by(rule: Rule) -> Self {
        Self { rule, why: None }
    }

    /// For what `rule` found.
    pub fn with(rule: Rule, why: Why) -> Self {
        Self { rule, why: Some(why) }
    }
}

/// From one port to another, by `OWNER:INTERFACE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
}

/// Where nothing passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Gap {
    /// Between two ports.
    Between(Way),
    /// Between a port and its switch.
    Before {
        /// The port.
        from: String,
    },
}

/// On which side of a switch something was lost, and the port or service there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Between it and the switch.
    From(String),
    /// In the output queue, or between the switch and it.
    To(String),
}

/// How and where a frame was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Dropped {
    /// The adapter of this port did not send it.
    Adapter {
        adapter: String,
        #[serde(flatten)]
        why: Option<Why>,
    },
    /// On its way between two ports.
    Way(Way),
    /// Some of its cells, at one end of a switch.
    Cells {
        lost_cells: u32,
        cells: u32,
        #[serde(flatten)]
        end: End,
    },
    /// All of it, at one end of a switch.
    End(End),
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "lowercase")]
pub enum Fate {
    /// A line lost it.
    Lost(Way),
    /// Nothing passed between two ports, or from a port to its switch: a cut, a partition, or a machine that is off.
    #[serde(rename = "lost")]
    Severed {
        rule: Rule,
        #[serde(flatten)]
        gap: Gap,
    },
    /// A line made a copy of it.
    Duplicated(Way),
    /// A line inverted one bit of it: the frame is recorded as it goes on.
    Corrupted {
        bit: u8,
        byte: usize,
        #[serde(flatten)]
        way: Way,
    },
    /// An attempt to send it collided after so many bits, jam included.
    Collision { adapter: String, attempt: u32, bits: u64 },
    /// It goes nowhere.
    Dropped {
        rule: Rule,
        #[serde(flatten)]
        how: Dropped,
    },
}

impl Fate {
    /// The adapter at the port `adapter` does not send the frame.
    pub fn refused(adapter: &str, refusal: Refusal) -> Self {
        let Refusal { rule, why } = refusal;
        Self::Dropped { rule, how: Dropped::Adapter { adapter: adapter.to_owned(), why } }
    }

    /// The packet comment: words, and the record.
    pub fn comment(&self) -> String {
        let record = serde_json::to_string(self).expect("a record is an object");
        format!("{}{SEPARATOR}{record}", self.words())
    }

    /// As in `lost: client:eth0 to server:eth0`.
    pub fn words(&self) -> String {
        let record = serde_json::to_value(self).expect("a record is an object");
        let rule = record.get("rule").unwrap_or(&record["fate"]);
        let forms = rule.as_str().and_then(|rule| WORDS.get(rule)).expect("every rule has words");
        forms.iter().find_map(|form| filled(form, &record)).expect("every set of fields has words")
    }
}

/// `form` with the fields of `record`; `None`: it has others.
fn filled(form: &str, record: &Value) -> Option<String> {
    let mut parts = form.split(['{', '}']);
    let mut words = parts.next()?.to_owned();
    while let (Some(name), Some(text)) = (parts.next(), parts.next()) {
        match record.get(name)? {
            Value::String(value) => words.push_str(value),
            value => words.push_str(&value.to_string()),
        }
        words.push_str(text);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One comment a line, of every record, as the harness's models write them.
    const GOLDEN: &str = include_str!("../../../tests/seams/golden/fates/comments.txt");

    fn way() -> Way {
        Way { from: "a:eth0".into(), to: "b:eth0".into() }
    }

    fn dropped(rule: Rule, how: Dropped) -> Fate {
        Fate::Dropped { rule, how }
    }

    fn refused(rule: Rule, why: Option<Why>) -> Fate {
        Fate::refused("a:eth0", Refusal { rule, why })
    }

    fn cells(rule: Rule) -> [Fate; 2] {
        let ends = [End::From("a:eth0".into()), End::To("b:eth0".into())];
        ends.map(|end| dropped(rule, Dropped::Cells { lost_cells: 2, cells: 32, end }))
    }

    fn severed(rule: Rule) -> [Fate; 2] {
        let gaps = [Gap::Between(way()), Gap::Before { from: "a:eth0".into() }];
        gaps.map(|gap| Fate::Severed { rule, gap })
    }

    fn every() -> Vec<Fate> {
        let to = || Dropped::End(End::To("b:eth0".into()));
        let address = || Some(Why::Address { address: "10.0.0.9".into() });
        let mut every = vec![
            Fate::Lost(way()),
            Fate::Duplicated(way()),
            severed(Rule::Cut)[0].clone(),
            severed(Rule::Cut)[1].clone(),
            severed(Rule::Partition)[0].clone(),
            severed(Rule::Partition)[1].clone(),
            severed(Rule::Off)[0].clone(),
            Fate::Corrupted { bit: 7, byte: 41, way: way() },
            Fate::Collision { adapter: "a:eth0".into(), attempt: 1, bits: 96 },
            refused(Rule::AdapterFull, None),
            refused(Rule::AdapterOff, None),
            dropped(Rule::QueueFull, Dropped::Way(way())),
            dropped(Rule::QueueFull, to()),
        ];
        for rule in [
            Rule::CellLoss,
            Rule::HeaderError,
            Rule::Policed,
            Rule::EarlyPacketDiscard,
            Rule::PartialPacketDiscard,
            Rule::LowPriority,
            Rule::VcFull,
            Rule::QueueFull,
        ] {
            every.extend(cells(rule));
        }
        every.extend([
            dropped(Rule::WrongCrc, to()),
            dropped(Rule::Joined, to()),
            refused(Rule::ExcessiveCollisions, Some(Why::Attempts { attempts: 16 })),
            refused(Rule::TooShort, Some(Why::Bytes { bytes: 13 })),
            refused(Rule::TooLong, Some(Why::Longest { bytes: 13, longest: 14 })),
            refused(Rule::NoPacket, Some(Why::Bytes { bytes: 13 })),
            refused(Rule::Sender, Some(Why::Node { node: 9 })),
            refused(Rule::UnknownNode, Some(Why::Node { node: 9 })),
            refused(Rule::NotIp, None),
            refused(Rule::NotJoined, None),
            refused(Rule::NoVc, address()),
            refused(Rule::NoAnswer, address()),
            refused(Rule::EightFramesWait, address()),
        ]);
        every
    }

    #[test]
    fn comments_are_those_of_the_models() {
        let written: Vec<_> = every().iter().map(Fate::comment).collect();
        assert_eq!(written, GOLDEN.lines().collect::<Vec<_>>());
    }

    #[test]
    fn words_are_those_of_the_comment() {
        for fate in every() {
            assert!(fate.comment().starts_with(&format!("{}{SEPARATOR}{{", fate.words())));
        }
    }
}
