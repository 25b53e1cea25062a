// SPDX-License-Identifier: Apache-2.0
//! The checks of impairments.

use sundial_core::Invalid;

use super::super::parameters::Impairments;
use super::within;

impl Impairments {
    /// `field` is where they stand.
    pub(super) fn check(&self, field: &str) -> Result<(), Invalid> {
        let gemodel = self.gemodel.as_ref();
        let fractions = [
            ("cell_loss", Some(self.cell_loss)),
            ("payload_bit", Some(self.payload_bit)),
            ("header_bit", Some(self.header_bit)),
            ("gemodel.p", gemodel.map(|model| model.p)),
            ("gemodel.r", gemodel.and_then(|model| model.r)),
            ("gemodel.one_minus_h", gemodel.and_then(|model| model.one_minus_h)),
            ("gemodel.one_minus_k", gemodel.and_then(|model| model.one_minus_k)),
        ];
        for (name, value) in fractions {
            if let Some(value) = value {
                within(value, 0.0..=1.0, &format!("{field}.{name}"))?;
            }
        }
        if gemodel.is_some() && self.cell_loss > 0.0 {
            let field = format!("{field}.gemodel");
            return Err(Invalid::new(field, "not together with cell_loss"));
        }
        Ok(())
    }
}
