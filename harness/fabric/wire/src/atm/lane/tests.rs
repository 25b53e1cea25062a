// SPDX-License-Identifier: Apache-2.0
//! Octets as tshark 4.0.17 takes them for what they are called here.

use proptest::prelude::*;

use super::*;
use crate::ethernet::Address;

const MAC_1: Address = Address([0x02, 0x53, 0x44, 0, 0, 1]);
const MAC_2: Address = Address([0x02, 0x53, 0x44, 0, 0, 2]);

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hexadecimal digits are ASCII");
        u8::from_str_radix(pair, 16).expect("only hexadecimal digits were kept")
    };
    digits.chunks(2).map(octet).collect()
}

/// A control frame: what comes before the ELAN name, the name, filled up with zeros.
fn control(head: &str, name: &str) -> Vec<u8> {
    let mut octets = octets(head);
    assert_eq!(octets.len(), CONTROL_OCTETS - ELAN_NAME_OCTETS);
    octets.extend(name.as_bytes());
    octets.resize(CONTROL_OCTETS, 0);
    octets
}

fn arp_request() -> ControlFrame {
    ControlFrame {
        requester: 1,
        source: LanDestination::Mac(MAC_1),
        target: LanDestination::Mac(MAC_2),
        ..ControlFrame::request(Opcode::ArpRequest, 3, AtmAddress::new(MAC_1, 0))
    }
}

/// Both ways: building gives these octets, and they are read as this frame.
fn assert_octets(frame: ControlFrame, expected: &[u8]) {
    let message = Message::Frame(Box::new(frame));
    assert_eq!(message.to_octets(), expected);
    assert_eq!(Message::parse(expected), Some(message));
}

#[test]
fn le_arp_request() {
    let expected = control(
        "ff00 01 01 0006 0000 00000003 0001 0000  0001 025344000001  0001 025344000002
         47000580ffe1 00000000000000 025344000001 00  00 00 00 00
         0000000000000000000000000000000000000000",
        "",
    );
    assert_octets(arp_request(), &expected);
}

#[test]
fn le_arp_response_of_a_proxy() {
    let expected = control(
        "ff00 01 01 0106 0000 00000003 0001 0001  0001 025344000001  0001 025344000002
         47000580ffe1 00000000000000 025344000001 00  00 00 00 00
         47000580ffe1 00000000000000 025344010001 00",
        "",
    );
    let proxy = Address([0x02, 0x53, 0x44, 1, 0, 1]);
    let frame = ControlFrame {
        flags: Flags::REMOTE,
        target_address: AtmAddress::new(proxy, 0),
        ..arp_request().response().expect("LE_ARP has a response")
    };
    assert_octets(frame, &expected);
}

#[test]
fn le_join_request_of_a_proxy() {
    let expected = control(
        "ff00 01 01 0002 0000 00000002 0000 0080  0001 025344000001  0000 000000000000
         47000580ffe1 00000000000000 025344000001 00  01 01 00 04
         0000000000000000000000000000000000000000",
        "elan",
    );
    let frame = ControlFrame {
        source: LanDestination::Mac(MAC_1),
        flags: Flags::PROXY,
        lan_type: LanType::Ethernet,
        frame_size: FrameSize::Octets1516,
        elan: ElanName::new(b"elan").expect("four octets are not more than 32"),
        ..ControlFrame::request(Opcode::JoinRequest, 2, AtmAddress::new(MAC_1, 0))
    };
    assert_octets(frame, &expected);
}

#[test]
fn a_tlv_follows_the_name() {
    // 00-A0-3E is the ATM Forum's OUI, 01 its number for the control time-out.
    let mut expected = control(
        "ff00 01 01 0101 0000 00000001 0000 0000  0000 000000000000  0000 000000000000
         47000580ffe1 00000000000000 025344000001 00  00 00 01 00
         0000000000000000000000000000000000000000",
        "",
    );
    expected.extend(octets("00a03e01 02 0078"));
    let frame = ControlFrame {
        tlvs: vec![Tlv::new(0x00a0_3e01, &[0, 120]).expect("two octets are not more than 255")],
        ..ControlFrame::request(Opcode::ConfigureResponse, 1, AtmAddress::new(MAC_1, 0))
    };
    assert_octets(frame, &expected);
}

#[test]
fn ready_frames_are_six_octets() {
    for (message, expected) in
        [(Message::ReadyQuery, "ff00 01 01 0003"), (Message::ReadyIndication, "ff00 01 01 0103")]
    {
        assert_eq!(message.to_octets(), octets(expected));
        assert_eq!(Message::parse(&octets(expected)), Some(message));
    }
    assert_eq!(Message::parse(&octets("ff00 01 01 0203")), None);
}

#[test]
fn requests_have_answers_but_for_two() {
    let response = |opcode: Opcode| opcode.response();
    assert_eq!(response(Opcode::ConfigureRequest), Some(Opcode::ConfigureResponse));
    assert_eq!(response(Opcode::FlushRequest), Some(Opcode::FlushResponse));
    assert_eq!(response(Opcode::NarpRequest), None);
    assert_eq!(response(Opcode::TopologyRequest), None);
    assert_eq!(response(Opcode::ArpResponse), None);
}

#[test]
fn what_building_does_not_make_is_not_read() {
    let good = Message::Frame(Box::new(arp_request())).to_octets();
    // Marker, protocol, version, opcode, status, tag of a LAN destination, type, size.
    for (index, octet) in [(1, 1), (2, 2), (3, 2), (5, 10), (7, 3), (17, 2), (52, 2), (53, 5)] {
        let mut bad = good.clone();
        bad[index] = octet;
        assert_eq!(Message::parse(&bad), None, "octet {index}");
    }
    // An address where there is none; a name longer than its size says, or longer than 32.
    for (tag, size, name) in [(0, 0, 0), (1, 1, 2), (1, 33, 33)] {
        let mut bad = good.clone();
        (bad[17], bad[55]) = (tag, size);
        bad[76..].iter_mut().take(name).for_each(|octet| *octet = b'x');
        assert_eq!(Message::parse(&bad), None, "name of {size}");
    }
    // Too short, too long, a TLV that is not there.
    assert_eq!(Message::parse(&good[..107]), None);
    assert_eq!(Message::parse(&[&good[..], &[0]].concat()), None);
    let mut bad = good;
    bad[54] = 1;
    assert_eq!(Message::parse(&bad), None);
}

#[test]
fn short_data_frames_are_padded_to_62_octets() {
    let mut out = vec![0xa5];
    put_data(7, &[0xee; 42], &mut out);
    assert_eq!(out.len(), 1 + 62);
    assert_eq!(out[..3], [0xa5, 0, 7]);
    assert_eq!(out[3..45], [0xee; 42]);
    assert_eq!(out[45..], [0; 18]);
    assert_eq!(data_octets(60), 62);
    assert_eq!(data_octets(61), 63);
}

#[test]
fn the_frame_of_the_largest_mtu_is_the_size_of_its_code() {
    for (mtu, size) in [
        (1500, FrameSize::Octets1516),
        (4528, FrameSize::Octets4544),
        (9218, FrameSize::Octets9234),
        (18174, FrameSize::Octets18190),
    ] {
        assert_eq!(FrameSize::from_octets(data_octets(14 + mtu)), Some(size));
    }
    // LANE 2.0's.
    assert_eq!(FrameSize::from_octets(1580), None);
}

fn lan_destinations() -> impl Strategy<Value = LanDestination> {
    prop_oneof![
        Just(LanDestination::None),
        any::<[u8; 6]>().prop_map(|octets| LanDestination::Mac(Address(octets))),
    ]
}

fn known<T: std::fmt::Debug>(
    codes: std::ops::RangeInclusive<u16>,
    from_code: fn(u16) -> Option<T>,
) -> impl Strategy<Value = T> {
    codes.prop_filter_map("not every code is known", from_code)
}

prop_compose! {
    fn control_frames()(
        opcode in known(0..=0x10a, Opcode::from_code),
        status in known(0..=22, Status::from_code),
        transaction: u32,
        requester: u16,
        flags: u16,
        source in lan_destinations(),
        target in lan_destinations(),
        addresses: [[u8; 10]; 4],
        size in known(0..=4, |code| FrameSize::from_code(code as u8)),
        name in prop::collection::vec(any::<u8>(), 0..=32),
        tlvs in prop::collection::vec(
            (any::<u32>(), prop::collection::vec(any::<u8>(), 0..=255)), 0..4),
    ) -> ControlFrame {
        let address = |first: usize| {
            let octets = addresses[first..first + 2].concat();
            AtmAddress(octets.try_into().expect("twice ten octets are twenty"))
        };
        ControlFrame {
            opcode,
            status,
            transaction,
            requester,
            flags: Flags(flags),
            source,
            target,
            source_address: address(0),
            lan_type: LanType::Ethernet,
            frame_size: size,
            target_address: address(2),
            elan: ElanName::new(&name).expect("32 octets at most"),
            tlvs: tlvs
                .iter()
                .map(|(kind, value)| Tlv::new(*kind, value).expect("255 octets at most"))
                .collect(),
        }
    }
}

proptest! {
    #[test]
    fn any_frame_survives_the_round_trip(frame in control_frames()) {
        let message = Message::Frame(Box::new(frame));
        prop_assert_eq!(Message::parse(&message.to_octets()), Some(message));
    }

    #[test]
    fn what_is_read_is_built_again_octet_for_octet(
        frame in control_frames(), index: prop::sample::Index, octet: u8
    ) {
        let mut octets = Message::Frame(Box::new(frame)).to_octets();
        let index = index.index(octets.len());
        octets[index] = octet;
        if let Some(message) = Message::parse(&octets) {
            prop_assert_eq!(message.to_octets(), octets);
        }
    }

    #[test]
    fn noise_is_refused(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(Message::parse(&octets), None);
    }
}
