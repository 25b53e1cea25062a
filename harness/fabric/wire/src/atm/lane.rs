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

mod codes;
mod fields;

pub use codes::{FrameSize, LanType, Opcode, Status};
pub use fields::{AtmAddress, ElanName, Flags, LanDestination, Tlv};

/// Length of a control frame without TLVs.
pub const CONTROL_OCTETS: usize = 108;
/// Length of READY_QUERY and READY_IND.
pub const READY_OCTETS: usize = 6;
/// Least length of a data frame with its LEC id; shorter ones are padded.
pub const LEAST_DATA_OCTETS: usize = 62;
/// Octets of the LEC id in front of a data frame.
pub const LEC_ID_OCTETS: usize = 2;
/// Octets of the field with the name of an emulated LAN.
const ELAN_NAME_OCTETS: usize = 32;

/// Marker, protocol and version: what control frames start with. No LEC id is that high.
const PREFIX: [u8; 4] = [0xff, 0x00, 0x01, 0x01];

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
