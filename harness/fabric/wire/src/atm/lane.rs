// SPDX-License-Identifier: Apache-2.0
//! SDUs of LAN emulation 1.0 (ATM Forum, af-lane-0021) over Ethernet: data frames and control frames.
//!
//! ```text
//! data, 62 octets at least                 control, 108 octets and TLVs
//! +--------+---------------------------+   +------+----+----+--------+--------+-------------+
//! | LEC id | Ethernet frame, no FCS    |   | ff00 | 01 | 01 | opcode | status | transaction |
//! +--------+---------------------------+   +------+--+-+----+-+------+--------+-------------+
//! 0        2                               | LEC id  | flags  | source LAN | target LAN dest. |
//!                                          +---------+--------+---+------+-+--+--------+-----+
//! ready, 6 octets                       16 | source ATM address   | type | size | TLVs | name |
//! +------+----+----+--------+              +----------------------+------+------+------+-----+
//! | ff00 | 01 | 01 | opcode |           56 | target ATM address   | ELAN name, 32 octets      |
//! +------+----+----+--------+              +----------------------+---------------------------+
//! ```
//!
//! Parsing takes what building makes and nothing else: reserved octets are zero, codes are known.

use crate::ethernet::Address;

/// Length of a control frame without TLVs.
pub const CONTROL_OCTETS: usize = 108;
/// Length of READY_QUERY and READY_IND.
pub const READY_OCTETS: usize = 6;
/// Least length of a data frame with its LEC id; shorter ones are padded.
pub const LEAST_DATA_OCTETS: usize = 62;
/// Octets of the LEC id in front of a data frame.
pub const LEC_ID_OCTETS: usize = 2;
/// The longest name of an emulated LAN.
pub const ELAN_NAME_OCTETS: usize = 32;

/// Marker, protocol and version: what control frames start with. No LEC id is that high.
const PREFIX: [u8; 4] = [0xff, 0x00, 0x01, 0x01];

/// An enum of the codes that a field may hold.
macro_rules! codes {
    ($(#[$about:meta])* $name:ident: $int:ty { $($(#[$doc:meta])* $variant:ident = $code:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant = $code,)+
        }

        impl $name {
            const fn from_code(code: $int) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// What a control frame of 108 octets says.
    Opcode: u16 {
        /// LE_CONFIGURE_REQUEST.
        ConfigureRequest = 0x0001,
        /// LE_CONFIGURE_RESPONSE.
        ConfigureResponse = 0x0101,
        /// LE_JOIN_REQUEST.
        JoinRequest = 0x0002,
        /// LE_JOIN_RESPONSE.
        JoinResponse = 0x0102,
        /// LE_REGISTER_REQUEST.
        RegisterRequest = 0x0004,
        /// LE_REGISTER_RESPONSE.
        RegisterResponse = 0x0104,
        /// LE_UNREGISTER_REQUEST.
        UnregisterRequest = 0x0005,
        /// LE_UNREGISTER_RESPONSE.
        UnregisterResponse = 0x0105,
        /// LE_ARP_REQUEST.
        ArpRequest = 0x0006,
        /// LE_ARP_RESPONSE.
        ArpResponse = 0x0106,
        /// LE_FLUSH_REQUEST.
        FlushRequest = 0x0007,
        /// LE_FLUSH_RESPONSE.
        FlushResponse = 0x0107,
        /// LE_NARP_REQUEST, which nobody answers.
        NarpRequest = 0x0008,
        /// LE_TOPOLOGY_REQUEST, which nobody answers.
        TopologyRequest = 0x0009,
    }
}

impl Opcode {
    /// What answers it; `None`: it is an answer, or asks for none.
    pub const fn response(self) -> Option<Self> {
        match self as u16 {
            request @ 0x0001..=0x0007 => Self::from_code(0x0100 | request),
            _ => None,
        }
    }
}

codes! {
    /// How a request was taken.
    Status: u16 {
        /// Also in every request.
        Success = 0,
        /// Version not supported.
        VersionNotSupported = 1,
        /// Invalid request parameters.
        InvalidParameters = 2,
        /// Duplicate LAN destination registration.
        DuplicateLanDestination = 4,
        /// Duplicate ATM address.
        DuplicateAtmAddress = 5,
        /// Insufficient resources to grant the request.
        InsufficientResources = 6,
        /// Access denied.
        AccessDenied = 7,
        /// Invalid requester id.
        InvalidRequesterId = 8,
        /// Invalid LAN destination.
        InvalidLanDestination = 9,
        /// Invalid ATM address.
        InvalidAtmAddress = 10,
        /// No configuration.
        NoConfiguration = 20,
        /// The configuration server failed.
        ConfigureError = 21,
        /// Insufficient information to configure the client.
        InsufficientInformation = 22,
    }
}

codes! {
    /// Which LAN is emulated. Token ring is not.
    LanType: u8 {
        /// Any.
        Unspecified = 0,
        /// Ethernet, IEEE 802.3.
        Ethernet = 1,
    }
}

codes! {
    /// The longest data frame, LEC id and Ethernet header included, in octets.
    FrameSize: u8 {
        /// Any.
        Unspecified = 0,
        /// 1516.
        Octets1516 = 1,
        /// 4544.
        Octets4544 = 2,
        /// 9234.
        Octets9234 = 3,
        /// 18190.
        Octets18190 = 4,
    }
}

impl FrameSize {
    /// The code of a longest frame of `octets`.
    pub const fn from_octets(octets: usize) -> Option<Self> {
        match octets {
            1516 => Some(Self::Octets1516),
            4544 => Some(Self::Octets4544),
            9234 => Some(Self::Octets9234),
            18190 => Some(Self::Octets18190),
            _ => None,
        }
    }
}

/// An address of an ATM end system: 20 octets, an ICD address in the format of UNI 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AtmAddress(pub [u8; 20]);

impl AtmAddress {
    /// What stands in the field where there is no address.
    pub const NONE: Self = Self([0; 20]);

    /// The first of the thirteen octets that a real network would give.
    const NETWORK_PREFIX: [u8; 6] = [0x47, 0x00, 0x05, 0x80, 0xff, 0xe1];

    /// The address whose end system identifier is `mac`.
    pub fn new(mac: Address, selector: u8) -> Self {
        let mut octets = [0; 20];
        octets[..6].copy_from_slice(&Self::NETWORK_PREFIX);
        octets[13..19].copy_from_slice(&mac.0);
        octets[19] = selector;
        Self(octets)
    }
}

/// A LAN destination: 8 octets, a tag and a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanDestination {
    /// Not present.
    None,
    /// The station, or the group, with this address.
    Mac(Address),
}

impl LanDestination {
    fn put(self, out: &mut Vec<u8>) {
        match self {
            Self::None => out.extend([0; 8]),
            Self::Mac(address) => {
                out.extend([0, 1]);
                out.extend(address.0);
            }
        }
    }

    fn parse(octets: [u8; 8]) -> Option<Self> {
        match octets {
            [0, 0, 0, 0, 0, 0, 0, 0] => Some(Self::None),
            [0, 1, a, b, c, d, e, f] => Some(Self::Mac(Address([a, b, c, d, e, f]))),
            _ => None,
        }
    }
}

/// The name of an emulated LAN, 32 octets at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElanName(Vec<u8>);

impl ElanName {
    /// `None`: longer than 32 octets.
    pub fn new(octets: &[u8]) -> Option<Self> {
        (octets.len() <= ELAN_NAME_OCTETS).then(|| Self(octets.to_vec()))
    }
}

/// A further parameter at the end of a control frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tlv {
    /// OUI and number.
    pub kind: u32,
    value: Vec<u8>,
}

impl Tlv {
    /// `None`: `value` is longer than 255 octets.
    pub fn new(kind: u32, value: &[u8]) -> Option<Self> {
        (value.len() <= usize::from(u8::MAX)).then(|| Self { kind, value: value.to_vec() })
    }

    /// Its octets.
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}

/// The flags of a control frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// LE_ARP_RESPONSE: the address is not that of a client, but behind one.
    pub const REMOTE: Self = Self(0x0001);
    /// LE_JOIN_REQUEST: the client answers for addresses that are not registered.
    pub const PROXY: Self = Self(0x0080);
    /// LE_TOPOLOGY_REQUEST: the topology is changing.
    pub const TOPOLOGY_CHANGE: Self = Self(0x0100);

    /// Those of `self` and `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// All of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A control frame of 108 octets and its TLVs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlFrame {
    /// What it says.
    pub opcode: Opcode,
    /// How the request was taken.
    pub status: Status,
    /// Chosen by the requester; the response has the same.
    pub transaction: u32,
    /// LEC id of the requester, 0 before it has one; the response has the same.
    pub requester: u16,
    /// By opcode.
    pub flags: Flags,
    /// The LAN destination of the requester.
    pub source: LanDestination,
    /// The LAN destination asked for.
    pub target: LanDestination,
    /// The ATM address of the requester.
    pub source_address: AtmAddress,
    /// Of the emulated LAN.
    pub lan_type: LanType,
    /// Of the emulated LAN.
    pub frame_size: FrameSize,
    /// The ATM address asked for.
    pub target_address: AtmAddress,
    /// Of the emulated LAN.
    pub elan: ElanName,
    /// In the order of the frame, 255 at most.
    pub tlvs: Vec<Tlv>,
}

impl ControlFrame {
    /// A request with nothing in it but these.
    pub fn request(opcode: Opcode, transaction: u32, source_address: AtmAddress) -> Self {
        Self {
            opcode,
            status: Status::Success,
            transaction,
            requester: 0,
            flags: Flags::default(),
            source: LanDestination::None,
            target: LanDestination::None,
            source_address,
            lan_type: LanType::Unspecified,
            frame_size: FrameSize::Unspecified,
            target_address: AtmAddress::NONE,
            elan: ElanName::default(),
            tlvs: Vec::new(),
        }
    }

    /// The successful answer to this request, which repeats its fields; `None`: nothing answers it.
    pub fn response(&self) -> Option<Self> {
        Some(Self { opcode: self.opcode.response()?, ..self.clone() })
    }

    /// Appends its octets to `out`.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend(PREFIX);
        out.extend((self.opcode as u16).to_be_bytes());
        out.extend((self.status as u16).to_be_bytes());
        out.extend(self.transaction.to_be_bytes());
        out.extend(self.requester.to_be_bytes());
        out.extend(self.flags.0.to_be_bytes());
        self.source.put(out);
        self.target.put(out);
        out.extend(self.source_address.0);
        let tlvs = u8::try_from(self.tlvs.len()).expect("at most 255 TLVs, as documented");
        let ElanName(name) = &self.elan;
        out.extend([self.lan_type as u8, self.frame_size as u8, tlvs, name.len() as u8]);
        out.extend(self.target_address.0);
        out.extend(name);
        out.extend(std::iter::repeat_n(0, ELAN_NAME_OCTETS - name.len()));
        for Tlv { kind, value } in &self.tlvs {
            out.extend(kind.to_be_bytes());
            out.push(value.len() as u8);
            out.extend(value);
        }
    }

    /// Everything after the prefix.
    fn parse(octets: &[u8]) -> Option<Self> {
        let mut octets = Octets(octets);
        let opcode = Opcode::from_code(octets.u16()?)?;
        let status = Status::from_code(octets.u16()?)?;
        let transaction = u32::from_be_bytes(octets.take()?);
        let requester = octets.u16()?;
        let flags = Flags(octets.u16()?);
        let source = LanDestination::parse(octets.take()?)?;
        let target = LanDestination::parse(octets.take()?)?;
        let source_address = AtmAddress(octets.take()?);
        let [lan_type, frame_size, tlvs, name_octets] = octets.take()?;
        let target_address = AtmAddress(octets.take()?);
        let name: [u8; ELAN_NAME_OCTETS] = octets.take()?;
        let (name, rest) = name.split_at_checked(name_octets.into())?;
        if rest.iter().any(|&octet| octet != 0) {
            return None;
        }
        let tlvs = (0..tlvs).map(|_| octets.tlv()).collect::<Option<_>>()?;
        octets.0.is_empty().then_some(())?;
        Some(Self {
            opcode,
            status,
            transaction,
            requester,
            flags,
            source,
            target,
            source_address,
            lan_type: LanType::from_code(lan_type)?,
            frame_size: FrameSize::from_code(frame_size)?,
            target_address,
            elan: ElanName(name.to_vec()),
            tlvs,
        })
    }
}

/// The rest of a control frame.
struct Octets<'a>(&'a [u8]);

impl Octets<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn tlv(&mut self) -> Option<Tlv> {
        let kind = u32::from_be_bytes(self.take()?);
        let [octets] = self.take()?;
        let (value, rest) = self.0.split_at_checked(octets.into())?;
        self.0 = rest;
        Some(Tlv { kind, value: value.to_vec() })
    }
}

/// What a control SDU says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The called client asks whether the caller is ready to receive on this VC.
    ReadyQuery,
    /// The caller is ready to receive on this VC.
    ReadyIndication,
    /// Everything else.
    Frame(Box<ControlFrame>),
}

impl Message {
    const READY_QUERY: [u8; 2] = [0x00, 0x03];
    const READY_INDICATION: [u8; 2] = [0x01, 0x03];

    /// Its octets.
    pub fn to_octets(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(CONTROL_OCTETS);
        match self {
            Self::ReadyQuery => out.extend(PREFIX.iter().chain(&Self::READY_QUERY)),
            Self::ReadyIndication => out.extend(PREFIX.iter().chain(&Self::READY_INDICATION)),
            Self::Frame(frame) => frame.put(&mut out),
        }
        out
    }

    /// Looks at a whole SDU; `None`: nothing that can be understood.
    pub fn parse(sdu: &[u8]) -> Option<Self> {
        let rest = sdu.strip_prefix(&PREFIX)?;
        match <[u8; 2]>::try_from(rest) {
            Ok(Self::READY_QUERY) => Some(Self::ReadyQuery),
            Ok(Self::READY_INDICATION) => Some(Self::ReadyIndication),
            _ => Some(Self::Frame(Box::new(ControlFrame::parse(rest)?))),
        }
    }
}

/// Octets of a data frame that carries an Ethernet frame of `frame_bytes`.
pub const fn data_octets(frame_bytes: usize) -> usize {
    let octets = LEC_ID_OCTETS + frame_bytes;
    if octets < LEAST_DATA_OCTETS { LEAST_DATA_OCTETS } else { octets }
}

/// Appends the data frame of client `lec_id` that carries `frame`, padded with zeros.
pub fn put_data(lec_id: u16, frame: &[u8], out: &mut Vec<u8>) {
    let end = out.len() + data_octets(frame.len());
    out.extend(lec_id.to_be_bytes());
    out.extend(frame);
    out.resize(end, 0);
}

#[cfg(test)]
mod tests;
