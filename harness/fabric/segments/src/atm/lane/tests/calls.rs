// SPDX-License-Identifier: Apache-2.0
//! Unicast frames: the first by the BUS, the others by a data direct VC.

use super::rig::{Rig, at, ms, settings};

#[test]
fn the_first_frame_goes_by_the_bus_and_the_next_by_a_channel_of_its_own() {
    let mut rig = Rig::new(2, settings()).joined();
    rig.frame_at(at(ms(10)), 0, 1, 1);
    rig.frame_at(at(ms(11)), 0, 1, 2);
    rig.frame_at(at(ms(20)), 0, 1, 3);
    rig.run_until(at(ms(30)));
    let expected = [
        "10000 us, 0 to 2 on 33: ArpRequest 4 of 02:53:44:00:00:02",
        "10000 us, 0 to 2 on 35: frame 1",
        "10060 us, 2 to 0 on 33: ArpResponse 4 of 02:53:44:00:00:02",
        "10060 us, 2 to 0 on 36: frame 1",
        "10060 us, 2 to 1 on 36: frame 1",
        // Called at 10070 us; frame 2 waits.
        "12070 us, 0 to 1 on 65: ReadyIndication",
        "12070 us, 0 to 2 on 35: FlushRequest 5",
        "12130 us, 2 to 0 on 36: FlushRequest 5",
        "12130 us, 2 to 1 on 36: FlushRequest 5",
        "12140 us, 1 to 2 on 33: FlushResponse 5",
        "12200 us, 2 to 0 on 33: FlushResponse 5",
        "12210 us, 0 to 1 on 65: frame 2",
        "20000 us, 0 to 1 on 65: frame 3",
    ];
    assert_eq!(rig.lines(), expected);
    let us = |microseconds: u64| at(sundial_core::Span::from_ns(1_000 * microseconds));
    assert_eq!(rig.delivered, [(us(10_070), 1, 1), (us(12_220), 1, 2), (us(20_010), 1, 3)]);
}
