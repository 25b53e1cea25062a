// SPDX-License-Identifier: Apache-2.0
//! The fields of an output queue.

use serde::Deserialize;
use sundial_core::Invalid;

use super::super::parameters::{Discard, QueueParameters};
use super::within;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueFields {
    cells: u64,
    discard: DiscardName,
    epd_above: Option<u64>,
    vc_cells: Option<u64>,
    clp1_above: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DiscardName {
    Tail,
    Ppd,
    Epd,
}

const MOST_CELLS: u64 = 1 << 20;

impl QueueFields {
    pub(super) fn check(&self) -> Result<QueueParameters, Invalid> {
        let cells = within(self.cells, 1..=MOST_CELLS, "queue.cells")?;
        let threshold = |value: Option<u64>, field: &str| {
            value.map(|value| within(value, 1..=cells, field)).transpose()
        };
        let above = threshold(self.epd_above, "queue.epd_above")?;
        let discard = match (self.discard, above) {
            (DiscardName::Tail, None) => Discard::Tail,
            (DiscardName::Ppd, None) => Discard::Partial,
            (DiscardName::Epd, Some(above)) => Discard::Early { above },
            (DiscardName::Epd, None) => {
                return Err(Invalid::new("queue.epd_above", "needed with discard epd"));
            }
            (_, Some(_)) => {
                return Err(Invalid::new("queue.epd_above", "only with discard epd"));
            }
        };
        Ok(QueueParameters {
            cells,
            discard,
            vc_cells: threshold(self.vc_cells, "queue.vc_cells")?,
            clp1_above: threshold(self.clp1_above, "queue.clp1_above")?,
        })
    }
}
