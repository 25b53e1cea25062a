// SPDX-License-Identifier: Apache-2.0
//! Data direct VCs: calls, READY_IND and READY_QUERY, release of what is not used.

use sundial_core::{Span, Time};

use crate::atm::lane::{ClientSettings, Resolution, Role};

/// C28, the connection complete timer: how long the called client waits for READY_IND or data.
pub(super) const CONNECTION_COMPLETE: Span = Span::from_ns(4_000_000_000);

/// The data direct VCs of one client, by the port of the other.
#[derive(Debug)]
pub(super) struct Channels {
    channels: Vec<Channel>,
    vcc_time_out: Span,
    retries: u32,
}

#[derive(Clone, Debug)]
enum Channel {
    Idle,
    /// This client has called the other.
    Calling,
    /// The other has called, and has not shown yet that it is ready to receive; the first data frame,
    /// which shows it, arrives at `data`.
    Called {
        queries_left: u32,
        deadline: Time,
        data: Option<Time>,
    },
    /// Frames may be sent; the last one, either way, was at `used`.
    Ready {
        used: Time,
    },
    /// There from the start and for good.
    Permanent,
}

/// What is to be done because its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask the client at this port whether it is ready to receive.
    Query(usize),
    /// The channel has not been used, or the caller never got ready.
    Release(usize),
    /// Frames may be sent to the client at this port from now on.
    Ready(usize),
}

impl Channels {
    pub(super) fn new(settings: &ClientSettings) -> Self {
        let channel = match settings.lane.resolution {
            Resolution::LeArp => Channel::Idle,
            Resolution::Static => Channel::Permanent,
        };
        Self {
            channels: vec![channel; settings.macs.len()],
            vcc_time_out: settings.lane.vcc_time_out,
            retries: settings.lane.retries,
        }
    }

    /// Frames may be sent to `peer`.
    pub(super) fn is_ready(&self, peer: usize) -> bool {
        matches!(self.channels[peer], Channel::Ready { .. } | Channel::Permanent)
    }

    /// There is neither a channel with `peer` nor a call: one is under way from now on.
    pub(super) fn call(&mut self, peer: usize) -> bool {
        let is_idle = matches!(self.channels[peer], Channel::Idle);
        if is_idle {
            self.channels[peer] = Channel::Calling;
        }
        is_idle
    }

    /// A call is complete. The caller sends on the channel at once, the called client when it knows that the
    /// caller is ready. Where both have called, af-lane-0021 has both send on the channel that the lower ATM
    /// address called; here the two channels have the same VCI, and the first one that is ready is used.
    pub(super) fn connect(&mut self, now: Time, peer: usize, role: Role) {
        let channel = &mut self.channels[peer];
        match (role, &channel) {
            (Role::Caller, Channel::Idle | Channel::Calling | Channel::Called { .. }) => {
                *channel = Channel::Ready { used: now };
            }
            (Role::Called, Channel::Idle | Channel::Calling) => {
                let deadline = now + CONNECTION_COMPLETE;
                let queries_left = self.retries + 1;
                *channel = Channel::Called { queries_left, deadline, data: None };
            }
            _ => {}
        }
    }

    /// The channel with `peer` is gone.
    pub(super) fn release(&mut self, peer: usize) {
        // A call that is under way is of a later channel.
        if !matches!(self.channels[peer], Channel::Calling) {
            self.channels[peer] = Channel::Idle;
        }
    }

    /// The caller says that it is ready to receive. `true`: that is news.
    pub(super) fn make_ready(&mut self, now: Time, peer: usize) -> bool {
        let was_called = matches!(self.channels[peer], Channel::Called { .. });
        if was_called {
            self.channels[peer] = Channel::Ready { used: now };
        }
        was_called
    }

    /// A data frame is sent to `peer` at `at`.
    pub(super) fn note_sent(&mut self, at: Time, peer: usize) {
        if let Channel::Ready { used } = &mut self.channels[peer] {
            *used = at.max(*used);
        }
    }

    /// A data frame from `peer` arrives at `at`, now or later. `true`: it is the first of a caller, who
    /// is ready by then.
    pub(super) fn note_received(&mut self, at: Time, peer: usize) -> bool {
        match &mut self.channels[peer] {
            Channel::Ready { used } => *used = at.max(*used),
            Channel::Called { data: data @ None, .. } => {
                *data = Some(at);
                return true;
            }
            _ => {}
        }
        false
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let deadlines = self.channels.iter().filter_map(|channel| match channel {
            Channel::Called { deadline, data, .. } => Some(data.unwrap_or(*deadline)),
            Channel::Ready { used } => Some(*used + self.vcc_time_out),
            Channel::Idle | Channel::Calling | Channel::Permanent => None,
        });
        deadlines.min()
    }

    /// What is due at `now`, one after the other by port.
    pub(super) fn poll_due(&mut self, now: Time) -> Option<Due> {
        self.channels.iter_mut().enumerate().find_map(|(peer, channel)| match channel {
            Channel::Called { data: Some(at), .. } if *at <= now => {
                *channel = Channel::Ready { used: *at };
                Some(Due::Ready(peer))
            }
            Channel::Called { data: Some(_), .. } => None,
            Channel::Called { queries_left, deadline, .. } if *deadline <= now => {
                if let Some(left) = queries_left.checked_sub(1) {
                    (*queries_left, *deadline) = (left, now + CONNECTION_COMPLETE);
                    return Some(Due::Query(peer));
                }
                *channel = Channel::Idle;
                Some(Due::Release(peer))
            }
            Channel::Ready { used } if *used + self.vcc_time_out <= now => {
                *channel = Channel::Idle;
                Some(Due::Release(peer))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atm::lane::tests::client_settings;

    #[test]
    fn a_call_outlives_the_release_of_the_channel_before() {
        let mut channels = Channels::new(&client_settings());
        assert!(channels.call(1));
        channels.release(1);
        assert!(!channels.call(1), "one call is under way");
        channels.connect(Time::ZERO, 1, Role::Caller);
        assert!(channels.is_ready(1));
    }

    #[test]
    fn of_two_calls_the_later_one_changes_nothing() {
        for roles in [[Role::Called, Role::Caller], [Role::Caller, Role::Called]] {
            let mut channels = Channels::new(&client_settings());
            assert!(channels.call(1));
            for role in roles {
                channels.connect(Time::ZERO, 1, role);
            }
            assert!(channels.is_ready(1));
            assert!(!channels.make_ready(Time::ZERO, 1));
        }
    }

    #[test]
    fn what_arrives_later_counts_from_then() {
        let mut channels = Channels::new(&client_settings());
        let at = |ns| Time::from_ns(ns);
        channels.connect(at(0), 1, Role::Called);
        assert_eq!(channels.deadline(), Some(at(0) + CONNECTION_COMPLETE));
        assert!(channels.note_received(at(20), 1));
        assert!(!channels.note_received(at(30), 1));
        assert_eq!(channels.deadline(), Some(at(20)));
        assert_eq!(channels.poll_due(at(19)), None);
        assert_eq!(channels.poll_due(at(20)), Some(Due::Ready(1)));
        channels.note_received(at(50), 1);
        channels.note_sent(at(40), 1);
        let vcc_time_out = client_settings().lane.vcc_time_out;
        assert_eq!(channels.deadline(), Some(at(50) + vcc_time_out));
        assert_eq!(channels.poll_due(at(50) + vcc_time_out), Some(Due::Release(1)));
        assert_eq!(channels.deadline(), None);
    }
}
