// SPDX-License-Identifier: Apache-2.0
//! What the servers answer to requests that no client here sends, and when.

use sundial_core::{Frame, Span};
use sundial_wire::atm::lane::{ElanName, Flags, LanDestination};

use super::*;
use crate::atm::lane::{CONTROL_DISTRIBUTE, Resolution};

const MAC_A: Address = Address([2, 0, 0, 0, 0, 0x0a]);
const MAC_B: Address = Address([2, 0, 0, 0, 0, 0x0b]);

fn elan() -> ElanName {
    ElanName::new(b"elan").expect("four octets are not more than 32")
}

fn services() -> Services {
    let second = Span::from_ns(1_000_000_000);
    let settings = LaneSettings {
        resolution: Resolution::LeArp,
        frame_size: FrameSize::Octets1516,
        elan: elan(),
        control_time_out: second,
        unknown_frames: 1,
        unknown_frame_time: second,
        vcc_time_out: second,
        retries: 1,
        ageing: second,
        forward_delay: second,
        le_arp_response_time: second,
        flush_time_out: second,
        path_switching_delay: second,
        service_latency: Span::ZERO,
    };
    Services::new(Arc::new(settings), 3)
}

fn request(opcode: Opcode, requester: u16, mac: Address) -> ControlFrame {
    ControlFrame {
        requester,
        source: LanDestination::Mac(mac),
        ..ControlFrame::request(opcode, 7, AtmAddress::new(mac, 0))
    }
}

fn join_request(mac: Address) -> ControlFrame {
    ControlFrame { elan: elan(), ..request(Opcode::JoinRequest, 0, mac) }
}

/// Where the answer to `frame` goes, and what it is; `None`: there is none.
fn ask(
    services: &mut Services,
    port: usize,
    vci: u16,
    frame: ControlFrame,
) -> Option<(u16, Destination, ControlFrame)> {
    services.handle_sdu(Time::ZERO, port, vci, message(frame));
    let ServiceAction::Send { vci, to, sdu } = services.poll_action()?;
    let Sdu::Control(octets) = sdu else { panic!("a control frame is answered by data") };
    let Some(Message::Frame(frame)) = Message::parse(&octets) else {
        panic!("an answer cannot be read")
    };
    Some((vci, to, *frame))
}

fn status(services: &mut Services, port: usize, frame: ControlFrame) -> Status {
    let (vci, to, answer) = ask(services, port, CONTROL_DIRECT, frame).expect("it is answered");
    assert_eq!((vci, to), (CONTROL_DIRECT, Destination::One(port)));
    answer.status
}

/// Ports 0 and 1 have joined as 1 and 2, port 1 as a proxy.
fn joined() -> Services {
    let mut services = services();
    assert_eq!(status(&mut services, 0, join_request(MAC_A)), Status::Success);
    let proxy = ControlFrame { flags: Flags::PROXY, ..join_request(MAC_B) };
    assert_eq!(status(&mut services, 1, proxy), Status::Success);
    services
}

#[test]
fn the_configuration_tells_what_the_emulated_lan_is() {
    let mut services = services();
    let frame = request(Opcode::ConfigureRequest, 0, MAC_A);
    let answer = ask(&mut services, 2, CONFIGURATION_DIRECT, frame.clone());
    let expected = ControlFrame {
        opcode: Opcode::ConfigureResponse,
        lan_type: LanType::Ethernet,
        frame_size: FrameSize::Octets1516,
        elan: elan(),
        target_address: AtmAddress::new(Address([0x02, 0x53, 0x44, 0x02, 0, 0]), 1),
        ..frame
    };
    assert_eq!(answer, Some((CONFIGURATION_DIRECT, Destination::One(2), expected)));
}

#[test]
fn for_another_size_there_is_no_configuration() {
    let frame = ControlFrame {
        frame_size: FrameSize::Octets9234,
        ..request(Opcode::ConfigureRequest, 0, MAC_A)
    };
    let (_, _, answer) =
        ask(&mut services(), 0, CONFIGURATION_DIRECT, frame).expect("it is answered");
    assert_eq!(answer.status, Status::NoConfiguration);
}

#[test]
fn a_client_that_joins_again_keeps_its_id() {
    let mut services = joined();
    for (port, mac, lec_id) in [(2, Address([2, 0, 0, 0, 0, 0x0c]), 3), (0, MAC_A, 1)] {
        let (_, _, answer) =
            ask(&mut services, port, CONTROL_DIRECT, join_request(mac)).expect("it is answered");
        assert_eq!((answer.status, answer.requester), (Status::Success, lec_id));
        assert_eq!(
            (answer.lan_type, answer.frame_size),
            (LanType::Ethernet, FrameSize::Octets1516)
        );
    }
}

#[test]
fn who_does_not_fit_does_not_join() {
    let mut services = joined();
    let unnamed = ControlFrame { source: LanDestination::None, ..join_request(MAC_A) };
    let group = join_request(Address::BROADCAST);
    let elsewhere = ControlFrame { elan: ElanName::default(), ..join_request(MAC_A) };
    let long = ControlFrame { frame_size: FrameSize::Octets4544, ..join_request(MAC_A) };
    let second = ControlFrame {
        source_address: AtmAddress::new(MAC_A, 0),
        ..join_request(Address([2, 0, 0, 0, 0, 0x0c]))
    };
    for (frame, refusal) in [
        (unnamed, Status::InvalidLanDestination),
        (group, Status::InvalidLanDestination),
        (elsewhere, Status::InvalidParameters),
        (long, Status::InvalidParameters),
        (join_request(MAC_A), Status::DuplicateLanDestination),
        (second, Status::DuplicateAtmAddress),
    ] {
        assert_eq!(status(&mut services, 2, frame), refusal);
    }
    // Nothing of it was kept.
    let third = join_request(Address([2, 0, 0, 0, 0, 0x0c]));
    assert_eq!(status(&mut services, 2, third), Status::Success);
}

#[test]
fn a_member_may_register_further_addresses_and_take_them_back() {
    let mut services = joined();
    let other = Address([2, 0, 0, 0, 0, 0x0d]);
    let arp = |target| ControlFrame {
        target: LanDestination::Mac(target),
        ..request(Opcode::ArpRequest, 2, MAC_B)
    };
    assert_eq!(
        status(&mut services, 0, request(Opcode::RegisterRequest, 1, other)),
        Status::Success
    );
    let (vci, to, answer) =
        ask(&mut services, 1, CONTROL_DIRECT, arp(other)).expect("it is registered");
    assert_eq!((vci, to), (CONTROL_DIRECT, Destination::One(1)));
    assert_eq!(answer.target_address, AtmAddress::new(other, 0));
    let take_back = |id| request(Opcode::UnregisterRequest, id, other);
    assert_eq!(status(&mut services, 1, take_back(2)), Status::InvalidLanDestination);
    assert_eq!(status(&mut services, 0, take_back(1)), Status::Success);
    assert_eq!(status(&mut services, 0, take_back(1)), Status::InvalidLanDestination);
    // The only proxy is who asks.
    assert_eq!(ask(&mut services, 1, CONTROL_DIRECT, arp(other)), None);
}

#[test]
fn requests_are_for_members_under_their_own_id() {
    let mut services = joined();
    let frame = request(Opcode::RegisterRequest, 2, MAC_A);
    assert_eq!(status(&mut services, 0, frame.clone()), Status::InvalidRequesterId);
    assert_eq!(ask(&mut services, 2, CONTROL_DIRECT, frame), None);
}

#[test]
fn what_is_for_everybody_is_distributed() {
    let mut services = joined();
    for opcode in [Opcode::NarpRequest, Opcode::TopologyRequest] {
        let frame = request(opcode, 2, MAC_B);
        let answer = ask(&mut services, 1, CONTROL_DIRECT, frame.clone());
        assert_eq!(answer, Some((CONTROL_DISTRIBUTE, Destination::Every, frame)));
    }
}

#[test]
fn what_no_server_understands_is_ignored_and_counted() {
    let mut services = joined();
    let data = Sdu::Data { lec_id: 1, frame: Frame::new(&[0; 60]) };
    let ready = Sdu::from(&Message::ReadyQuery);
    let noise = Sdu::Control([0xff; 108].into());
    let flush = message(request(Opcode::FlushRequest, 1, MAC_A));
    let lost = message(ControlFrame { requester: 9, ..request(Opcode::FlushResponse, 9, MAC_A) });
    for (vci, sdu) in [
        (CONTROL_DIRECT, data),
        (MULTICAST_SEND, ready),
        (CONTROL_DIRECT, noise),
        (CONTROL_DIRECT, flush),
        (CONTROL_DIRECT, lost),
    ] {
        services.handle_sdu(Time::ZERO, 0, vci, sdu);
    }
    assert_eq!(services.poll_action(), None);
    assert_eq!(services.ignored_sdus(0), 5);
}

#[test]
fn everything_leaves_after_the_latency_in_the_order_it_came() {
    let at = |us: u64| Time::from_ns(1_000 * us);
    let mut services = joined();
    services.settings = Arc::new(LaneSettings {
        service_latency: Span::from_ns(50_000),
        ..(*services.settings).clone()
    });
    let data = Sdu::Data { lec_id: 1, frame: Frame::new(&[0; 60]) };
    services.handle_sdu(at(0), 0, MULTICAST_SEND, data.clone());
    services.handle_sdu(at(10), 1, CONTROL_DIRECT, message(join_request(MAC_B)));
    services.handle_timeout(at(49));
    assert_eq!((services.poll_action(), services.poll_timeout()), (None, Some(at(50))));
    services.handle_timeout(at(50));
    assert_eq!(services.poll_action(), Some(to_every(MULTICAST_FORWARD, data)));
    assert_eq!((services.poll_action(), services.poll_timeout()), (None, Some(at(60))));
    services.handle_timeout(at(60));
    assert!(services.poll_action().is_some());
    assert_eq!((services.poll_action(), services.poll_timeout()), (None, None));
}
