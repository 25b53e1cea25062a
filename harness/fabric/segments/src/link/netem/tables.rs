// SPDX-License-Identifier: Apache-2.0
//! Delay distributions as tables of the inverse cumulative distribution, in 1/8192 of a deviation.
//!
//! The tables are those that tc loads from `normal.dist`, `pareto.dist` and `paretonormal.dist`, made
//! in the way of the generators in iproute2's `netem/` (from NISTnet, in the public domain): the normal
//! one by walking the cumulative distribution in steps of 0.00005, the pareto one with exponent 3 in
//! closed form, paretonormal as a quarter of the first and three quarters of the second. The
//! arithmetic is libm's port to Rust, so that the tables are the same on every host.

use std::sync::OnceLock;

use super::Distribution;

/// `NETEM_DIST_SCALE`.
pub(super) const SCALE: i64 = 8192;
/// Entries of a table.
pub(super) const SIZE: usize = 4096;

/// The table of a distribution; the uniform one has none.
pub(super) fn table(distribution: Distribution) -> Option<&'static [i16; SIZE]> {
    static NORMAL: OnceLock<[i16; SIZE]> = OnceLock::new();
    static PARETO: OnceLock<[i16; SIZE]> = OnceLock::new();
    static PARETONORMAL: OnceLock<[i16; SIZE]> = OnceLock::new();
    match distribution {
        Distribution::Uniform => None,
        Distribution::Normal => Some(NORMAL.get_or_init(normal)),
        Distribution::Pareto => Some(PARETO.get_or_init(pareto)),
        Distribution::Paretonormal => Some(PARETONORMAL.get_or_init(paretonormal)),
    }
}

fn normal() -> [i16; SIZE] {
    const STEPS: usize = 4 * SIZE;
    // The last place is that of probability 1.
    let mut quantiles = vec![0.0; STEPS + 1];
    let mut x = -10.0_f64;
    while x < 10.05 {
        let cumulative = 0.5 + 0.5 * libm::erf(x / libm::sqrt(2.0));
        quantiles[libm::rint(STEPS as f64 * cumulative) as usize] = x;
        x += 0.00005;
    }
    std::array::from_fn(|index| scaled(quantiles[4 * index]))
}

fn pareto() -> [i16; SIZE] {
    const EXPONENT: f64 = 3.0;
    std::array::from_fn(|index| {
        let survival = (65_536 - 16 * index) as f64 / 65_536.0;
        let quantile = 1.0 / libm::pow(survival, 1.0 / EXPONENT);
        // Mean 3/2 moved to 0, deviation sqrt(3)/2 taken as 3/4, as the original does.
        scaled((quantile - 1.5) * (4.0 / 3.0))
    })
}

fn paretonormal() -> [i16; SIZE] {
    let (normal, pareto) = (normal(), pareto());
    std::array::from_fn(|index| {
        let sum = i32::from(normal[index]) + 3 * i32::from(pareto[index]);
        (sum / 4) as i16
    })
}

fn scaled(deviations: f64) -> i16 {
    // A cast from float saturates.
    libm::rint(deviations * SCALE as f64) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(table: &[i16]) -> f64 {
        table.iter().map(|&value| f64::from(value)).sum::<f64>() / (SIZE as f64 * SCALE as f64)
    }

    fn deviation(table: &[i16]) -> f64 {
        let squares = table.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>();
        (squares / SIZE as f64).sqrt() / SCALE as f64
    }

    #[test]
    fn the_normal_table_has_the_quantiles_of_the_normal_distribution() {
        let table = table(Distribution::Normal).expect("a table");
        // Quantiles of 1/4, 1/2, 3/4: -0.67449, 0, 0.67449; each entry spans 1/4096 of probability.
        assert!((f64::from(table[1024]) / 8192.0 + 0.674_49).abs() < 1e-3);
        assert!((f64::from(table[2048]) / 8192.0).abs() < 1e-3);
        assert!((f64::from(table[3072]) / 8192.0 - 0.674_49).abs() < 1e-3);
        assert!(table.is_sorted());
        assert!(mean(table).abs() < 2e-3);
        assert!((deviation(table) - 1.0).abs() < 5e-3);
    }

    #[test]
    fn the_pareto_table_starts_at_the_scale_and_is_cut_at_sixteen_bits() {
        let table = table(Distribution::Pareto).expect("a table");
        // (1 - 1.5) * 4/3 * 8192 = -5461.33; survival 1/8 has quantile 2: (2 - 1.5) * 4/3 * 8192.
        assert_eq!(table[0], -5461);
        assert_eq!(table[3584], 5461);
        assert_eq!(table[4095], i16::MAX);
        assert!(table.is_sorted());
    }

    #[test]
    fn paretonormal_is_a_quarter_and_three_quarters() {
        let table = table(Distribution::Paretonormal).expect("a table");
        let (normal, pareto) = (normal(), pareto());
        // Median: 0 and (2^(1/3) - 1.5) * 4/3 * 8192 = -2622.3.
        assert!(normal[2048].abs() < 8);
        assert_eq!(pareto[2048], -2622);
        let expected = (i32::from(normal[2048]) - 3 * 2622) / 4;
        assert_eq!(i32::from(table[2048]), expected);
    }
}
