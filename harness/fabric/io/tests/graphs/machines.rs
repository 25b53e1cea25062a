// SPDX-License-Identifier: Apache-2.0
//! The machines of a world: what they send, of their own accord and as answers.

use std::collections::{BTreeMap, VecDeque};

use sundial_core::{Frame, Time};
use sundial_io::Notice;

use crate::world::{MOST_FRAMES, World};

/// One machine.
#[derive(Default)]
pub struct Machine {
    /// By time: it sends this many letters of its own accord.
    wishes: VecDeque<usize>,
    /// By time and order of announcement: what it is going to receive.
    inbox: BTreeMap<(u64, usize), Frame>,
    announced: usize,
    sent: usize,
    /// Nothing before this may happen any more.
    pub now_ns: u64,
    /// All notices that it got.
    pub heard: Vec<Notice>,
}

/// A frame on its way into the network.
pub struct Sent {
    pub at: Time,
    pub nic: usize,
    pub frame: Frame,
    /// What it answers.
    pub cause: Option<Frame>,
}

impl Machine {
    pub fn all(world: &World) -> Vec<Self> {
        let mut machines: Vec<_> = (0..world.machines).map(|_| Self::default()).collect();
        for (index, wish) in world.wishes.iter().enumerate() {
            machines[wish.machine].wishes.push_back(index);
        }
        machines
    }

    /// Takes what the network says; nothing may come to where the machine has been.
    pub fn hear(&mut self, notice: Notice) {
        let due_ns = notice.due.as_ns_ceil();
        if let Some(frame) = &notice.frame {
            assert!(due_ns >= self.now_ns, "due at {due_ns} ns, the machine is at {}", self.now_ns);
            self.inbox.insert((due_ns, self.announced), frame.clone());
            self.announced += 1;
        }
        self.heard.push(notice);
    }

    /// When it does something next.
    pub fn next_ns(&self, world: &World) -> Option<u64> {
        let wish = self.wishes.front().map(|&wish| world.wishes[wish].at_ns);
        let receipt = self.inbox.first_key_value().map(|(&(due_ns, _), _)| due_ns);
        wish.into_iter().chain(receipt).min()
    }

    /// Does that: its own letters come first at one instant.
    pub fn step(&mut self, world: &World, index: usize, nics: usize) -> Option<Sent> {
        let now_ns = self.next_ns(world).expect("it has something to do");
        self.now_ns = now_ns;
        let wish = self.wishes.pop_front_if(|wish| world.wishes[*wish].at_ns == now_ns);
        let (letter, cause) = match wish {
            Some(wish) => (&world.wishes[wish].letter, None),
            None => {
                let (_, received) = self.inbox.pop_first().expect("something to receive");
                (world.answer(index, &received)?, Some(received))
            }
        };
        if self.sent == MOST_FRAMES || nics == 0 {
            return None;
        }
        let frame = letter.frame(world, index, self.sent);
        self.sent += 1;
        Some(Sent { at: Time::from_ns(now_ns), nic: letter.nic.index(nics), frame, cause })
    }
}
