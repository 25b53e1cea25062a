// SPDX-License-Identifier: Apache-2.0
//! Expected values from sch_netem's arithmetic and from probability, with seeds that make them exact.

use super::*;

fn common(seed: u64) -> SegmentParameters {
    SegmentParameters { name: "wan".into(), seed, ..SegmentParameters::of_machines(2, 64) }
}

fn netem(settings: Impairments) -> Netem {
    settings.check().expect("sensible settings");
    Netem::new(&common(1), 0, settings)
}

fn at(ns: u64) -> Time {
    Time::from_ns(ns)
}

fn outcomes(netem: &mut Netem, now: Time, bytes: usize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    netem.enqueue(now, Frame::from(vec![0; bytes]), &mut outcomes);
    outcomes
}

/// When the frame leaves; nothing else may happen to it.
fn leaves(netem: &mut Netem, now: Time, bytes: usize) -> Time {
    match &outcomes(netem, now, bytes)[..] {
        [Outcome::Sent { at, .. }] => *at,
        other => panic!("{other:?}"),
    }
}

/// What happens to each of `count` frames a millisecond apart: true if it is lost.
fn losses(settings: Impairments, count: u64) -> Vec<bool> {
    let mut netem = netem(settings);
    (0..count)
        .map(|number| {
            matches!(outcomes(&mut netem, at(number * 1_000_000), 60)[..], [Outcome::Lost(_)])
        })
        .collect()
}

fn share(list: &[bool]) -> f64 {
    list.iter().filter(|&&happened| happened).count() as f64 / list.len() as f64
}

#[test]
fn nothing_set_does_nothing() {
    let mut netem = netem(Impairments::default());
    assert!(netem.settings.keeps_order());
    assert_eq!(netem.settings.least_delay(), Span::ZERO);
    for number in 0..10_000 {
        assert_eq!(leaves(&mut netem, at(number), 60), at(number));
    }
}

#[test]
fn a_delay_is_exact() {
    let mut netem = netem(Impairments { delay_ns: 10_000_001, ..Impairments::default() });
    assert_eq!(netem.settings.least_delay(), Span::from_ns(10_000_001));
    assert_eq!(leaves(&mut netem, at(5), 60), at(10_000_006));
    assert_eq!(leaves(&mut netem, at(6), 1514), at(10_000_007));
}

#[test]
fn losses_come_as_often_as_configured() {
    for loss in [0.01, 0.05, 0.2] {
        let lost = losses(Impairments { loss, ..Impairments::default() }, 100_000);
        // Four standard deviations of a binomial share of 100,000.
        let tolerance = 4.0 * (loss * (1.0 - loss) / 100_000.0_f64).sqrt();
        assert!((share(&lost) - loss).abs() < tolerance, "{loss}: {}", share(&lost));
    }
    assert_eq!(share(&losses(Impairments { loss: 1.0, ..Impairments::default() }, 1_000)), 1.0);
    assert_eq!(share(&losses(Impairments { loss: 0.0, ..Impairments::default() }, 1_000)), 0.0);
}

#[test]
fn correlated_losses_follow_the_recurrence() {
    // get_crandom with rho = 0.5 by hand, on the same stream.
    let settings = Impairments { loss: 0.3, loss_correlation: 0.5, ..Impairments::default() };
    let lost_frames = losses(settings, 1_000);
    let mut stream = Stream::new(1, "wan", 0, 1);
    let (threshold, weight) = (fixed(0.3), u128::from(fixed(0.5)) + 1);
    let mut last = u128::from(stream.draw());
    for (number, &lost) in lost_frames.iter().enumerate() {
        last = (u128::from(stream.draw()) * ((1 << 32) - weight) + last * weight) >> 32;
        assert_eq!(lost, last <= u128::from(threshold), "frame {number}");
    }
}

#[test]
fn gilbert_elliot_loses_in_bursts_of_the_right_length() {
    // With 1-h = 1 and 1-k = 0: bad p / (p + r) of the time, in runs of 1/r on average.
    let model = Gemodel { p: 0.02, r: Some(0.25), one_minus_h: None, one_minus_k: None };
    let lost = losses(Impairments { gemodel: Some(model), ..Impairments::default() }, 200_000);
    let expected = 0.02 / 0.27;
    assert!((share(&lost) - expected).abs() < 0.05 * expected, "{}", share(&lost));
    let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    let mean = share(&lost) * lost.len() as f64 / runs as f64;
    assert!((mean - 4.0).abs() < 0.2, "{mean}");
}

#[test]
fn the_state_moves_before_the_loss_that_the_old_state_decides() {
    // p = 1, r = 1: good and bad take turns; bad loses all, good nothing.
    let model = Gemodel { p: 1.0, r: Some(1.0), one_minus_h: Some(1.0), one_minus_k: Some(0.0) };
    let lost = losses(Impairments { gemodel: Some(model), ..Impairments::default() }, 6);
    assert_eq!(lost, [false, true, false, true, false, true]);
}

#[test]
fn a_copy_goes_ahead_of_the_original_and_is_not_copied() {
    let mut netem = netem(Impairments { duplicate: 1.0, delay_ns: 100, ..Impairments::default() });
    let frame = Frame::from(vec![0; 60]);
    let sent = Outcome::Sent { at: at(100), frame: frame.clone(), ahead: false };
    assert_eq!(outcomes(&mut netem, at(0), 60), [Outcome::Duplicated(frame), sent.clone(), sent]);
}

#[test]
fn a_frame_both_copied_and_lost_just_goes_on() {
    let mut netem = netem(Impairments { duplicate: 1.0, loss: 1.0, ..Impairments::default() });
    assert_eq!(leaves(&mut netem, at(0), 60), at(0));
}

#[test]
fn corruption_inverts_one_bit_anywhere_in_the_frame() {
    let mut netem = netem(Impairments { corrupt: 1.0, ..Impairments::default() });
    let (mut bytes_hit, mut bits_hit) = ([false; 60], [false; 8]);
    for number in 0..2_000 {
        let outcomes = outcomes(&mut netem, at(number), 60);
        let [Outcome::Corrupted { frame, byte, bit }, Outcome::Sent { frame: sent, .. }] =
            &outcomes[..]
        else {
            panic!("{outcomes:?}")
        };
        assert_eq!(frame, sent, "it arrives as it was made");
        assert_eq!(frame[*byte], 1 << bit);
        assert_eq!(frame.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        bytes_hit[*byte] = true;
        bits_hit[usize::from(*bit)] = true;
    }
    assert!(bytes_hit.iter().chain(&bits_hit).all(|&hit| hit));
}

#[test]
fn every_gapth_frame_goes_ahead_where_reordering_is_certain() {
    let mut netem = netem(Impairments {
        delay_ns: 1_000,
        reorder: 1.0,
        gap: Some(3),
        ..Impairments::default()
    });
    assert!(!netem.settings.keeps_order());
    assert_eq!(netem.settings.least_delay(), Span::ZERO);
    let delays: Vec<u64> = (0..7)
        .map(|number| leaves(&mut netem, at(number * 10), 60).since(at(number * 10)).as_ns_floor())
        .collect();
    assert_eq!(delays, [1_000, 1_000, 0, 1_000, 1_000, 0, 1_000]);
}

#[test]
fn the_queue_holds_limit_frames_until_their_time() {
    let settings = Impairments { delay_ns: 1_000, limit_frames: Some(2), ..Impairments::default() };
    let mut netem = netem(settings);
    assert_eq!(leaves(&mut netem, at(0), 60), at(1_000));
    assert_eq!(leaves(&mut netem, at(500), 60), at(1_500));
    assert!(matches!(outcomes(&mut netem, at(999), 60)[..], [Outcome::Full(_)]));
    // At 1000 ns the first has left.
    assert_eq!(leaves(&mut netem, at(1_000), 60), at(2_000));
}

#[test]
fn a_rate_sends_one_frame_after_the_other_without_drift() {
    // 3 Mbit/s: 100 bytes take 266.666.. us.
    let mut netem = netem(Impairments { rate_bps: Some(3_000_000), ..Impairments::default() });
    let last = (0..900).map(|_| leaves(&mut netem, at(0), 100)).last();
    assert_eq!(last, Some(at(240_000_000)));
    // A queue that has run empty starts again.
    assert_eq!(leaves(&mut netem, at(300_000_000), 100), Time::from_ps(300_266_666_667));
}

#[test]
fn the_delay_is_spent_while_frames_wait_for_the_rate() {
    let settings =
        Impairments { rate_bps: Some(8_000_000), delay_ns: 150_000, ..Impairments::default() };
    let mut netem = netem(settings);
    // 100 us a frame. The first: 150 us of delay, then 100 us. The second, at once: after the first.
    assert_eq!(leaves(&mut netem, at(0), 100), at(250_000));
    assert_eq!(leaves(&mut netem, at(0), 100), at(350_000));
    // At 240 us the delay is over at 390 us, after the last frame in the queue has gone at 350 us.
    assert_eq!(leaves(&mut netem, at(240_000), 100), at(490_000));
}

#[test]
fn overheads_and_cells_are_counted_as_in_atm() {
    // 100 + 18 = 118 bytes fill three cells of 48, each 53 on the line: 159 bytes at 8 Mbit/s.
    let settings = Impairments {
        rate_bps: Some(8_000_000),
        packet_overhead_bytes: 18,
        cell_size_bytes: 48,
        cell_overhead_bytes: 5,
        ..Impairments::default()
    };
    let mut atm = netem(settings.clone());
    assert_eq!(leaves(&mut atm, at(0), 100), at(159_000));
    // 96 bytes exactly are two cells.
    let mut exact = netem(Impairments { packet_overhead_bytes: -4, ..settings });
    assert_eq!(leaves(&mut exact, at(0), 100), at(106_000));
}

#[test]
fn uniform_jitter_stays_within_its_bounds_and_fills_them() {
    let settings = Impairments { delay_ns: 1_000, jitter_ns: 400, ..Impairments::default() };
    let mut netem = netem(settings);
    assert!(!netem.settings.keeps_order());
    assert_eq!(netem.settings.least_delay(), Span::from_ns(600));
    let delays: Vec<u64> = (0..20_000)
        .map(|number| {
            let now = at(number * 10_000);
            leaves(&mut netem, now, 60).since(now).as_ns_floor()
        })
        .collect();
    assert_eq!(delays.iter().min(), Some(&600));
    assert_eq!(delays.iter().max(), Some(&1_399));
    let mean = delays.iter().sum::<u64>() as f64 / 20_000.0;
    // Deviation 800 / sqrt(12) = 231 ns; four standard errors of 20,000 are 6.5 ns.
    assert!((mean - 999.5).abs() < 6.5, "{mean}");
}

#[test]
fn normal_jitter_has_the_mean_and_the_deviation_that_are_asked_for() {
    let settings = Impairments {
        delay_ns: 1_000_000,
        jitter_ns: 100_000,
        distribution: Distribution::Normal,
        ..Impairments::default()
    };
    let mut netem = netem(settings);
    let delays: Vec<f64> = (0..50_000)
        .map(|number| {
            let now = at(number * 10_000_000);
            leaves(&mut netem, now, 60).since(now).as_ps() as f64 / 1e3
        })
        .collect();
    let mean = delays.iter().sum::<f64>() / 50_000.0;
    let variance = delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / 50_000.0;
    assert!((mean - 1e6).abs() < 2_000.0, "{mean}");
    assert!((variance.sqrt() - 1e5).abs() < 1_500.0, "{}", variance.sqrt());
}

#[test]
fn tables_are_scaled_as_the_kernel_scales_them() {
    // x = (sigma % 8192) * t, half of 8192 towards its sign, / 8192, + sigma / 8192 * t.
    assert_eq!(scaled_entry(8192, 8192), 8192);
    assert_eq!(scaled_entry(10_000, -5461), (1808 * -5461 - 4096) / 8192 - 5461);
    assert_eq!(scaled_entry(1, 4096), 1);
    assert_eq!(scaled_entry(1, -4096), -1);
    assert_eq!(scaled_entry(1, 4095), 0);
}

#[test]
fn turning_on_jitter_does_not_change_which_frames_are_lost() {
    let calm = Impairments { loss: 0.1, delay_ns: 500_000, ..Impairments::default() };
    let shaky = Impairments { jitter_ns: 400_000, corrupt: 0.5, ..calm.clone() };
    let lost = |settings| {
        let mut netem = netem(settings);
        (0..1_000_u64)
            .map(|number| {
                let outcomes = outcomes(&mut netem, at(number * 1_000_000), 60);
                outcomes.iter().any(|outcome| matches!(outcome, Outcome::Lost(_)))
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(lost(calm), lost(shaky));
}

#[test]
fn settings_that_tc_refuses_are_refused() {
    let field = |settings: Impairments| settings.check().expect_err("nonsense").field;
    let plain = Impairments::default;
    assert_eq!(field(Impairments { loss: 1.5, ..plain() }), "loss");
    assert_eq!(field(Impairments { loss: f64::NAN, ..plain() }), "loss");
    assert_eq!(field(Impairments { reorder: 0.5, ..plain() }), "reorder");
    assert_eq!(field(Impairments { gap: Some(5), ..plain() }), "gap");
    assert_eq!(field(Impairments { jitter_ns: 1 << 31, ..plain() }), "jitter_ns");
    assert_eq!(field(Impairments { limit_frames: Some(0), ..plain() }), "limit_frames");
    assert_eq!(field(Impairments { cell_size_bytes: 48, ..plain() }), "rate_bps");
    let normal = Impairments { distribution: Distribution::Normal, ..plain() };
    assert_eq!(field(normal), "distribution");
    let model = Gemodel { p: 0.1, r: None, one_minus_h: None, one_minus_k: None };
    assert_eq!(field(Impairments { loss: 0.1, gemodel: Some(model), ..plain() }), "gemodel");
}
