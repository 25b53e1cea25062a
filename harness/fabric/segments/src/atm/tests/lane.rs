// SPDX-License-Identifier: Apache-2.0
//! LAN emulation over the whole segment: join, first call, second call. The lines are TAXI, a cell takes 4.32 us;
//! the servers' line takes 43.2 ns. So n cells are with the servers, or come from them, in
//! W(n) = n * 4.32 + 10 + 0.0432 us, and from port to port in (n + 1) * 4.32 + 10 us.

use sundial_wire::atm::lane::Message;

use super::*;

pub(super) fn lane_fields(ports: usize) -> Value {
    let mut fields = fields(ports);
    fields["lines"] = json!(vec![json!({ "rate_bps": 100_000_000, "cell_octets": 54 }); ports]);
    fields["cell_latency_ns"] = 10_000.into();
    fields["encapsulation"] = "lane".into();
    fields["lane"] = json!({
        "frame_size": 1516,
        "resolution": "le_arp",
        "vc_setup_ns": 2_000_000,
        "service_latency_ns": 50_000,
        "service_line": { "rate_bps": 10_000_000_000_u64, "cell_octets": 54 },
        "unknown_frames": 1,
        "unknown_frame_time_ns": 1_000_000_000,
        "control_time_out_ns": 120_000_000_000_u64,
        "vcc_time_out_ns": 1_200_000_000_000_u64,
        "retries": 1,
        "ageing_ns": 300_000_000_000_u64,
        "forward_delay_ns": 15_000_000_000_u64,
        "le_arp_response_time_ns": 1_000_000_000,
        "flush_time_out_ns": 4_000_000_000_u64,
        "path_switching_delay_ns": 6_000_000_000_u64,
        "elan": "elan",
    });
    fields
}

fn emulated_lan(ports: usize) -> Atm {
    emulated_lan_of(lane_fields(ports))
}

pub(super) fn emulated_lan_of(fields: Value) -> Atm {
    let ports = fields["lines"].as_array().expect("a list").len();
    let common = SegmentParameters {
        macs: (1..=ports as u8).map(|port| [0x02, 0x53, 0x44, 0, 0, port]).collect(),
        ..SegmentParameters::of_machines(ports, 128)
    };
    let config: Config = serde_json::from_value(fields).expect("the fields are right");
    Atm::new(&common, config.check(ports).expect("the fields are right"))
}

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hexadecimal digits are ASCII");
        u8::from_str_radix(pair, 16).expect("only hexadecimal digits were kept")
    };
    digits.chunks(2).map(octet).collect()
}

/// An ONC RPC call of 16 octets over UDP, from the first machine to the second: 102 octets.
fn call() -> Frame {
    let mut frame = octets(
        "025344000002 025344000001 0800 45000058 00010000 40116692 0a000001 0a000002
         04000801 00440000 11223344 00000000 00000002 20000001 00000001 00000001",
    );
    frame.extend([0; 16]);
    frame.extend([0, 0, 0, 16]);
    frame.extend([0x41; 16]);
    Frame::from(frame)
}

/// A record of the capture of PDUs.
struct Record {
    at: Time,
    interface: usize,
    vci: u16,
    /// SDU, padding and trailer.
    pdu: Vec<u8>,
}

impl Record {
    fn sdu(&self) -> &[u8] {
        let trailer = &self.pdu[self.pdu.len() - 8..];
        &self.pdu[..usize::from(u16::from_be_bytes([trailer[2], trailer[3]]))]
    }

    /// As in `96.0064 us, port 0, 33: JoinRequest 2`.
    fn line(&self) -> String {
        let what = match Message::parse(self.sdu()) {
            Some(Message::Frame(frame)) => format!("{:?} {}", frame.opcode, frame.transaction),
            Some(ready) => format!("{ready:?}"),
            None => "data".to_owned(),
        };
        let ps = self.at.as_ps();
        let (whole, rest) = (ps / 1_000_000, ps % 1_000_000 / 100);
        format!("{whole}.{rest:04} us, port {}, {}: {what}", self.interface, self.vci)
    }
}

/// The capture of PDUs in order of time, sent before received, of a run with these frames of the first machine;
/// the segment is also called at every multiple of `every`, as another machine's clock might.
fn capture(frames: &[Time], every: Span) -> Vec<Record> {
    let mut segment = emulated_lan(2);
    let mut outcome = Outcome::default();
    let mut calls: Vec<(Time, bool)> = frames.iter().map(|&at| (at, true)).collect();
    let extra = (1..).map(|number| Time::ZERO + every * number).take_while(|&at| at < END);
    calls.extend(extra.chain([END]).map(|at| (at, false)));
    calls.sort();
    for (at, has_frame) in calls {
        while let Some(next) = segment.poll_timeout().filter(|&next| next <= at) {
            segment.handle_timeout(next);
        }
        if has_frame {
            segment.handle_frame(at, 0, call());
        } else {
            segment.handle_timeout(at);
        }
        outcome.take(&mut segment);
    }
    let mut records: Vec<Record> = outcome
        .trains
        .iter()
        .filter(|train| train.capture == 0)
        .flat_map(|train| {
            train.records(0).map(|(at, record)| {
                // ERF header, then the cell's header.
                let vci = u32::from_be_bytes([record[16], record[17], record[18], record[19]]) >> 4;
                let pdu = record[20..].to_vec();
                Record { at, interface: train.interface, vci: vci as u16, pdu }
            })
        })
        .collect();
    records.sort_by_key(|record| (record.at, record.interface));
    records
}

fn lines(records: &[Record], from_us: u64) -> Vec<String> {
    let from = Time::from_ns(1_000 * from_us);
    records.iter().filter(|record| record.at >= from).map(Record::line).collect()
}

/// When a run ends.
const END: Time = Time::from_ns(20_000_000);
const NO_OTHER_CALLS: Span = Span::MAX;

#[test]
fn clients_join() {
    // W(3) = 23.0032 us there and back, 50 us there: 96.0064 us for each of three questions.
    let expected = [
        "0.0000 us, port 0, 17: ConfigureRequest 1",
        "1.0000 us, port 1, 17: ConfigureRequest 1",
        "96.0064 us, port 0, 17: ConfigureResponse 1",
        "96.0064 us, port 0, 33: JoinRequest 2",
        "97.0064 us, port 1, 17: ConfigureResponse 1",
        "97.0064 us, port 1, 33: JoinRequest 2",
        "192.0128 us, port 0, 33: JoinResponse 2",
        "192.0128 us, port 0, 33: ArpRequest 3",
        "193.0128 us, port 1, 33: JoinResponse 2",
        "193.0128 us, port 1, 33: ArpRequest 3",
        "288.0192 us, port 0, 33: ArpResponse 3",
        "289.0192 us, port 1, 33: ArpResponse 3",
    ];
    let records = capture(&[Time::from_ns(15_000_000)], NO_OTHER_CALLS);
    assert_eq!(lines(&records, 0)[..12], expected);
}

#[test]
fn the_first_call_goes_by_the_bus_and_the_second_by_a_channel_of_its_own() {
    let frames = [1_000_000, 2_000_000, 10_000_000].map(Time::from_ns);
    let records = capture(&frames, NO_OTHER_CALLS);
    let expected = [
        "1000.0000 us, port 0, 33: ArpRequest 4",
        // Three cells later.
        "1012.9600 us, port 0, 35: data",
        // 1000 + 96.0064.
        "1096.0064 us, port 0, 33: ArpResponse 4",
        // 1012.96 + 96.0064, at both ports.
        "1108.9664 us, port 0, 36: data",
        "1108.9664 us, port 1, 36: data",
        // 1096.0064 us + 2 ms. The frame of 2 ms waits.
        "3096.0064 us, port 0, 65: ReadyIndication",
        // One cell later.
        "3100.3264 us, port 0, 35: FlushRequest 5",
        // 3096.0064 + 2 * 4.32 + 10.
        "3114.6464 us, port 1, 64: ReadyIndication",
        "3196.3328 us, port 0, 36: FlushRequest 5",
        "3196.3328 us, port 1, 36: FlushRequest 5",
        "3196.3328 us, port 1, 33: FlushResponse 5",
        "3292.3392 us, port 0, 33: FlushResponse 5",
        "3292.3392 us, port 0, 65: data",
        // Four cells and 10 us.
        "3319.6192 us, port 1, 64: data",
        "10000.0000 us, port 0, 65: data",
        "10027.2800 us, port 1, 64: data",
    ];
    assert_eq!(lines(&records, 1_000), expected);
}

#[test]
fn pdus_have_the_octets_that_tshark_was_shown() {
    let frames = [1_000_000, 10_000_000].map(Time::from_ns);
    let records = capture(&frames, NO_OTHER_CALLS);
    let find = |line: &str| {
        let found = records.iter().find(|record| record.line() == line);
        &found.unwrap_or_else(|| panic!("no {line}")).pdu
    };
    // tshark 4.0.17 dissects this PDU down to the call, and finds its CRC right.
    let mut data = [&[0, 1], &call()[..]].concat();
    data.extend([0; 32]);
    data.extend(octets("0000 0068 7d9f8139"));
    assert_eq!(*find("10027.2800 us, port 1, 64: data"), data);
    let question = octets(
        "ff00 01 01 0006 0000 00000004 0001 0000  0001 025344000001  0001 025344000002
         47000580ffe1 00000000000000 025344000001 00  00000000",
    );
    let request = find("1000.0000 us, port 0, 33: ArpRequest 4");
    assert_eq!(request[..56], question);
    // Target ATM address, ELAN name, padding; CPCS-UU, CPI, length.
    assert_eq!(request[56..136], [0; 80]);
    assert_eq!(request[136..140], [0, 0, 0, 0x6c]);
    let answer = find("1096.0064 us, port 0, 33: ArpResponse 4");
    assert_eq!(answer[56..76], octets("47000580ffe1 00000000000000 025344000002 00"));
}

#[test]
fn the_captures_are_the_same_whenever_the_segment_is_called() {
    let frames = [1_000_000, 2_000_000, 10_000_000].map(Time::from_ns);
    let first = capture(&frames, NO_OTHER_CALLS);
    for every_ns in [1_000_000, 70_001, 7_001, 997, 333] {
        let records = capture(&frames, Span::from_ns(every_ns));
        assert_eq!(lines(&records, 0), lines(&first, 0), "called every {every_ns} ns");
        let is_same = |(one, other): (&Record, &Record)| one.pdu == other.pdu;
        assert!(records.iter().zip(&first).all(is_same), "called every {every_ns} ns");
    }
}
