// SPDX-License-Identifier: Apache-2.0
//! Kinds of segment, as a configuration names them, and the way from its fields to a model.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Segment, SegmentParameters};

/// A kind of segment: its own fields in the configuration, beside those that all kinds have.
///
/// Implemented by the type that the fields are read into. Let it `deny_unknown_fields`: a field that is
/// ignored is a mistake that nothing reports.
pub trait SegmentKind: DeserializeOwned {
    /// As `kind` in the configuration.
    const NAME: &'static str;

    /// What its models are built from: nothing in it can be wrong any more.
    type Parameters: Send + Sync + 'static;

    /// Checks the fields of a segment with `ports` ports.
    fn check(self, ports: usize) -> Result<Self::Parameters, Invalid>;

    /// A new model.
    fn build(common: &SegmentParameters, parameters: &Self::Parameters) -> Box<dyn Segment>;
}

/// A field of the configuration and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// As in `ports[1].nic`; empty: the whole of what was checked.
    pub field: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl Invalid {
    /// That `field` is wrong.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// The same, seen from where the field is inside `outer`.
    pub fn within(self, outer: &str) -> Self {
        let field = match self.field.as_str() {
            "" => outer.to_owned(),
            inner => format!("{outer}.{inner}"),
        };
        Self { field, ..self }
    }
}

/// The kinds that a program knows.
#[derive(Clone, Debug)]
pub struct Kinds(Vec<Kind>);

/// A [`SegmentKind`] among others.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    name: &'static str,
    check: fn(Map<String, Value>, usize) -> Result<Builder, Invalid>,
}

impl Kind {
    /// The kind that reads its fields into `K`.
    pub const fn of<K: SegmentKind>() -> Self {
        Self { name: K::NAME, check: check::<K> }
    }

    /// As `kind` in the configuration.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Checks the kind's own fields of a segment with `ports` ports.
    pub fn check(&self, fields: Map<String, Value>, ports: usize) -> Result<Builder, Invalid> {
        (self.check)(fields, ports)
    }
}

fn check<K: SegmentKind>(fields: Map<String, Value>, ports: usize) -> Result<Builder, Invalid> {
    let kind: K = serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let field = error.path().to_string();
        // The path of the whole.
        let field = if field == "." { String::new() } else { field };
        Invalid { field, message: format!("{} (kind {})", error.into_inner(), K::NAME) }
    })?;
    let parameters = kind.check(ports)?;
    Ok(Builder { kind: K::NAME, build: Arc::new(move |common| K::build(common, &parameters)) })
}

impl Kinds {
    /// All of `kinds`, whose names differ.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Self {
        kinds.into_iter().fold(Self(Vec::new()), Self::with)
    }

    /// These and `kind`.
    pub fn with(mut self, kind: Kind) -> Self {
        assert!(self.find(kind.name).is_none(), "two kinds are called {}", kind.name);
        self.0.push(kind);
        self
    }

    /// The kind called `name`.
    pub fn find(&self, name: &str) -> Option<&Kind> {
        self.0.iter().find(|kind| kind.name == name)
    }

    /// In the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|kind| kind.name)
    }
}

/// Checked parameters, ready for models to be built from them.
#[derive(Clone)]
pub struct Builder {
    kind: &'static str,
    build: Arc<Build>,
}

type Build = dyn Fn(&SegmentParameters) -> Box<dyn Segment> + Send + Sync;

impl Builder {
    /// The name of the kind.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// A new model.
    pub fn build(&self, common: &SegmentParameters) -> Box<dyn Segment> {
        (self.build)(common)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A field with one value for all ports, or one for each.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a list of one number for each port")]
pub enum OneOrEach {
    /// For all.
    One(u64),
    /// In port order.
    Each(Vec<u64>),
}

impl OneOrEach {
    /// One for each of `ports` ports; `field` is its name.
    pub fn each(self, ports: usize, field: &str) -> Result<Vec<u64>, Invalid> {
        match self {
            Self::One(value) => Ok(vec![value; ports]),
            Self::Each(values) if values.len() == ports => Ok(values),
            Self::Each(values) => {
                Err(Invalid::new(field, format!("{} values for {ports} ports", values.len())))
            }
        }
    }
}

/// 1 bit/s to 1 Tbit/s: beyond that a bit is shorter than a picosecond.
pub fn check_rate(rate_bps: u64, field: &str) -> Result<(), Invalid> {
    if (1..=1_000_000_000_000).contains(&rate_bps) {
        return Ok(());
    }
    Err(Invalid::new(field, format!("{rate_bps} is outside 1 to 1000000000000")))
}
