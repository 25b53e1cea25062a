// SPDX-License-Identifier: Apache-2.0
//! Policing: the generic cell rate algorithm (ITU-T I.371, ATM Forum TM 4.0), as virtual scheduling.

use super::units::Units;

/// GCRA(T, tau) of one virtual channel.
#[derive(Clone, Debug)]
pub(super) struct Gcra {
    /// T: from one cell to the next at the contract's rate.
    interval: Units,
    /// tau: how much too early a cell may come.
    tolerance: Units,
    theoretical_arrival: Units,
}

impl Gcra {
    pub(super) fn new(interval: Units, tolerance: Units) -> Self {
        Self { interval, tolerance, theoretical_arrival: 0 }
    }

    /// Whether a cell that comes at `at` keeps the contract.
    pub(super) fn conforms(&mut self, at: Units) -> bool {
        if at < self.theoretical_arrival.saturating_sub(self.tolerance) {
            return false;
        }
        self.theoretical_arrival = at.max(self.theoretical_arrival) + self.interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells back to back, a cell time being 2.
    fn back_to_back(interval: Units, tolerance: Units) -> [u8; 12] {
        let mut gcra = Gcra::new(interval, tolerance);
        std::array::from_fn(|cell| gcra.conforms(2 * cell as Units).into())
    }

    #[test]
    fn cells_back_to_back_conform_as_worked_out_by_hand() {
        // T 3 and tau 4 cell times; T 4.5 and tau 7.
        assert_eq!(back_to_back(6, 8), [1, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]);
        assert_eq!(back_to_back(9, 14), [1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn cells_at_the_rate_always_conform() {
        let mut gcra = Gcra::new(7, 0);
        assert!((0..100).all(|cell| gcra.conforms(100 + 7 * cell)));
        assert!(!gcra.conforms(100 + 7 * 100 - 1));
    }
}
