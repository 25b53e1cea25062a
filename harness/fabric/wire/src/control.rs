// SPDX-License-Identifier: Apache-2.0
//! Frames that a guest sends to the fabric itself.

use crate::ethernet::Header;

/// EtherType of control frames (local experimental EtherType 1, IEEE 802).
const ETHERTYPE: u16 = 0x88b5;

/// A frame that is never forwarded or captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// The machine has run its job; 0 is success.
    Done {
        /// That of the job's last step.
        status: u8,
    },
    /// For the machine of this number: programs there wait for what this one says.
    Tell {
        /// The machine, in the order of the configuration.
        to: usize,
    },
    /// For someone else, such as `sundial-ready` for the plugin.
    Other,
}

impl ControlFrame {
    /// Looks at `frame`; `None`: it is an ordinary one.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (header, payload) = Header::parse(frame)?;
        if header.ethertype != ETHERTYPE || !payload.starts_with(b"sundial-") {
            return None;
        }
        if let Some(&[to, ..]) = payload.strip_prefix(b"sundial-tell") {
            return Some(Self::Tell { to: to.into() });
        }
        match payload.strip_prefix(b"sundial-done") {
            Some(&[status, ..]) => Some(Self::Done { status }),
            _ => Some(Self::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0xff; 12];
        frame.extend(ethertype.to_be_bytes());
        frame.extend(payload);
        frame
    }

    #[test]
    fn done_carries_a_status() {
        let done = frame(0x88b5, b"sundial-done\x03");
        assert_eq!(ControlFrame::parse(&done), Some(ControlFrame::Done { status: 3 }));
        // Adapters may pad to 60 bytes.
        let padded = frame(0x88b5, b"sundial-done\x00\x00\x00\x00");
        assert_eq!(ControlFrame::parse(&padded), Some(ControlFrame::Done { status: 0 }));
    }

    #[test]
    fn tell_carries_the_number_of_a_machine() {
        let tell = frame(0x88b5, b"sundial-tell\x02\x00\x01\x00\x07");
        assert_eq!(ControlFrame::parse(&tell), Some(ControlFrame::Tell { to: 2 }));
        let cut = frame(0x88b5, b"sundial-tell");
        assert_eq!(ControlFrame::parse(&cut), Some(ControlFrame::Other));
    }

    #[test]
    fn ready_and_a_cut_done_mean_nothing_here() {
        let ready = frame(0x88b5, b"sundial-ready");
        assert_eq!(ControlFrame::parse(&ready), Some(ControlFrame::Other));
        let cut = frame(0x88b5, b"sundial-done");
        assert_eq!(ControlFrame::parse(&cut), Some(ControlFrame::Other));
    }

    #[test]
    fn other_frames_are_ordinary() {
        assert_eq!(ControlFrame::parse(&frame(0x0800, b"sundial-done\x00")), None);
        assert_eq!(ControlFrame::parse(&frame(0x88b5, b"something")), None);
        assert_eq!(ControlFrame::parse(&[0; 13]), None);
    }
}
