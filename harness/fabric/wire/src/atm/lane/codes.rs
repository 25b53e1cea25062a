// SPDX-License-Identifier: Apache-2.0
//! The codes of control frames, with af-lane-0021's words.

/// An enum of the codes that a field may hold.
macro_rules! codes {
    ($(#[$about:meta])* $name:ident: $int:ty { $($(#[$doc:meta])* $variant:ident = $code:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant = $code,)+
        }

        impl $name {
            pub(super) const fn from_code(code: $int) -> Option<Self> {
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
        /// LE_NARP_REQUEST, which has no answer.
        NarpRequest = 0x0008,
        /// LE_TOPOLOGY_REQUEST, which has no answer.
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
