// SPDX-License-Identifier: Apache-2.0
//! The driver of a run on the monotonic clock: frames travel in datagrams, as QEMU's
//! `-netdev dgram` sends them.
//!
//! A frame is handed to its model when it is read from the socket, in the scheduler's order, and sent on
//! when the model says that its last bit has arrived: never before, and as soon after as the host allows.
//! The timer is set a little early and the rest is spent spinning, for a wake-up takes longer than a short
//! frame.

mod port;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use sundial_core::{Frame, RunEnd, Span, Time};

use crate::{CaptureError, Config, End, Handled, Network, Notice, Observer, OutOfTime, WhenFull};
use port::Port;

/// Spent spinning before a deadline: about what it takes to wake up.
const SPIN: Span = Span::from_ns(50_000);
/// A model that is called late stamps what it records this much too late for the capture at most; later
/// records are written out of order.
const LATENESS: Span = Span::from_ns(1_000_000);
/// What the clock that tells whether captures are to be flushed may be behind.
const FLUSH_GRACE: Span = Span::from_ns(10_000_000);
/// Frames read from one port before the others get their turn.
const BATCH: usize = 32;

const TIMER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;

/// Why a real-time run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RealError {
    /// A socket could not be made.
    #[error("cannot listen on {}", path.display())]
    Bind {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A model cannot go on.
    #[error(transparent)]
    OutOfTime(OutOfTime),
    /// A system call failed that cannot fail in good order.
    #[error("{call}")]
    System {
        /// Which.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A capture could not be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// A run on the monotonic clock.
pub struct RealRun {
    epoll: OwnedFd,
    timer: OwnedFd,
    wake: Arc<OwnedFd>,
    /// Zero of the run on the monotonic clock.
    zero_ns: u64,
    network: Network,
    ports: Vec<Port>,
    /// Index into `ports` by machine and interface.
    by_nic: Vec<Vec<Option<usize>>>,
    /// The same by broadcast domain.
    by_domain: Vec<Vec<usize>>,
    /// A frame on its way in.
    buffer: Box<[u8]>,
    due: BinaryHeap<Reverse<Due>>,
    next_sequence: u64,
    run_end: RunEnd,
    now: Time,
}

/// Something that happens at a port at a known time.
struct Due {
    key: (Time, u64),
    port: usize,
    /// None: the adapter is through with a frame.
    frame: Option<Frame>,
}

impl RealRun {
    /// Makes the sockets of `config`; the run's zero is now.
    pub fn new(config: &Config, network: Network) -> Result<Self, RealError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("epoll_create"))?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )
        .map_err(system("timerfd_create"))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(system("eventfd"))?;
        for (descriptor, data) in [(&timer, TIMER), (&wake, WAKE)] {
            epoll::add(&epoll, descriptor, EventData::new_u64(data), EventFlags::IN)
                .map_err(system("epoll_ctl"))?;
        }
        let mut ports = Vec::new();
        let mut by_nic: Vec<_> =
            config.machines.iter().map(|machine| vec![None; machine.nics]).collect();
        let domains = config.domains();
        let mut by_domain = vec![Vec::new(); domains.len()];
        for (segment, plugged) in config.segments.iter().enumerate() {
            for (number, plug) in plugged.ports.iter().enumerate() {
                let End::Machine { machine, nic } = plug.end else { continue };
                let places = (plugged.when_full == WhenFull::Stop).then_some(plug.ring_frames);
                let port =
                    Port::open(plug, (machine, nic), (segment, number), domains[segment], places)?;
                let data = EventData::new_u64(ports.len() as u64);
                epoll::add(&epoll, &port.socket, data, EventFlags::IN)
                    .map_err(system("epoll_ctl"))?;
                by_nic[machine][nic] = Some(ports.len());
                by_domain[domains[segment]].push(ports.len());
                ports.push(port);
            }
        }
        Ok(Self {
            epoll,
            timer,
            wake: Arc::new(wake),
            zero_ns: monotonic_ns(),
            network,
            ports,
            by_nic,
            by_domain,
            buffer: vec![0; config.frame_buffer_bytes()].into(),
            due: BinaryHeap::new(),
            next_sequence: 0,
            run_end: RunEnd::new(
                config.done_machines.iter().copied(),
                config.linger,
                config.deadline,
            ),
            now: Time::ZERO,
        })
    }

    /// Something that another thread calls to have [`Observer::look`] called soon.
    pub fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let wake = self.wake.clone();
        move || {
            // Fails only if 2^64 - 2 calls are already waiting.
            let _full = rustix::io::write(&*wake, &1_u64.to_ne_bytes());
        }
    }

    /// Runs until the end, or until the observer says so; returns the end.
    pub fn run(&mut self, observer: &mut impl Observer) -> Result<Time, RealError> {
        let mut events = Vec::with_capacity(self.ports.len() + 2);
        loop {
            self.read_clock();
            let end = self.run_end.at().unwrap_or(Time::MAX);
            if self.now >= end || observer.look(&mut self.network, self.now, None) {
                return Ok(self.now.min(end));
            }
            if let Some(last) = self.network.out_of_time().filter(|last| self.now > last.after) {
                return Err(RealError::OutOfTime(last));
            }
            self.work(observer)?;
            self.wait(&mut events)?;
            for event in events.drain(..) {
                match event.data.u64() {
                    TIMER | WAKE => {
                        let mut count = [0; 8];
                        let fd = if event.data.u64() == TIMER { &self.timer } else { &*self.wake };
                        // Would block if the timer has been set again meanwhile.
                        let _nothing = rustix::io::read(fd, &mut count);
                    }
                    port => self.read(port as usize, observer)?,
                }
            }
        }
    }

    /// The machines that have not been done in time.
    pub fn waiting(&self) -> Vec<usize> {
        self.run_end.waiting().collect()
    }

    /// How far the run has come.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Ends the captures at `end`.
    pub fn finish(self, end: Time) -> Result<(), CaptureError> {
        self.network.finish(end)
    }

    fn read_clock(&mut self) {
        // The clock of a virtual machine may step back by a part of a tick, as when it goes on elsewhere.
        self.now = self.now.max(Time::from_ns(monotonic_ns().saturating_sub(self.zero_ns)));
    }

    /// Does all that is due by now.
    fn work(&mut self, observer: &mut impl Observer) -> Result<(), RealError> {
        self.catch_up(observer);
        for segment in &mut self.network.segments {
            segment.advance(self.now.back(LATENESS))?;
        }
        self.network.flush_when_due()?;
        while self.due.peek().is_some_and(|Reverse(due)| due.key.0 <= self.now) {
            let Reverse(due) = self.due.pop().expect("peeked");
            match due.frame {
                Some(frame) => self.ports[due.port].send(self.now, frame)?,
                None => self.finished(due.port)?,
            }
        }
        for index in 0..self.ports.len() {
            let port = &mut self.ports[index];
            port.retry(self.now)?;
            self.network.segments[port.segment].undelivered[port.number] = port.undelivered;
        }
        // Only now is it known which machines are behind. A port that is left out here may stay so for
        // ever, for nothing else may be due.
        for index in 0..self.ports.len() {
            self.watch(index)?;
        }
        Ok(())
    }

    /// Reads what the machine at `port` has sent, as far as its adapter takes it.
    fn read(&mut self, index: usize, observer: &mut impl Observer) -> Result<(), RealError> {
        for _ in 0..BATCH {
            let port = &mut self.ports[index];
            if port.is_full() {
                break;
            }
            let Some(frame) = port.receive(&mut self.buffer)? else { break };
            port.outstanding += 1;
            let (machine, nic) = (port.machine, port.nic);
            self.read_clock();
            self.network.hand_in(self.now, machine, nic, frame);
            self.catch_up(observer);
        }
        self.watch(index)
    }

    /// Works on all events up to now.
    fn catch_up(&mut self, observer: &mut impl Observer) {
        let after_now = self.now + Span::from_ps(1);
        while let Some(Handled { at, done }) = self.network.handle_next(after_now) {
            if let Some((machine, status)) = done {
                observer.done(machine, status, at);
                self.run_end.done(machine, status, at);
            }
            while let Some(Notice { machine, nic, due, frame }) = self.network.poll_notice() {
                let key = (due, self.next_sequence);
                self.next_sequence += 1;
                let port = self.by_nic[machine][nic].expect("what is plugged in has a socket");
                self.due.push(Reverse(Due { key, port, frame }));
            }
        }
    }

    fn finished(&mut self, index: usize) -> Result<(), RealError> {
        self.ports[index].outstanding -= 1;
        self.watch(index)
    }

    /// Reads the socket of a port only while its adapter takes frames (a full one stops the machine) and
    /// while no other machine that its frames may reach is behind with reading: the host is too slow then,
    /// and a segment that loses nothing must not lose any.
    fn watch(&mut self, index: usize) -> Result<(), RealError> {
        let port = &self.ports[index];
        let mut others = self.by_domain[port.domain].iter().filter(|&&other| other != index);
        let watched = !port.is_full()
            && (!port.stops() || !others.any(|&other| self.ports[other].is_pressed(self.now)));
        let port = &mut self.ports[index];
        if port.watched == watched {
            return Ok(());
        }
        port.watched = watched;
        let flags = if port.watched { EventFlags::IN } else { EventFlags::empty() };
        epoll::modify(&self.epoll, &port.socket, EventData::new_u64(index as u64), flags)
            .map_err(system("epoll_ctl"))
    }

    /// When there is something to do even if no machine sends anything.
    fn deadline(&self) -> Option<Time> {
        let inside = self.network.next_event().into_iter();
        let due = self.due.peek().map(|Reverse(due)| due.key.0);
        let retry = self.ports.iter().filter_map(Port::retry_at);
        // The clock that says whether it is due ticks in milliseconds.
        let flush = self
            .network
            .next_flush_ns()
            .map(|ns| Time::from_ns(ns.saturating_sub(self.zero_ns)) + FLUSH_GRACE);
        let last = self.network.out_of_time().map(|last| last.after + Span::from_ns(1));
        inside.chain(due).chain(retry).chain(self.run_end.at()).chain(flush).chain(last).min()
    }

    /// Waits for a frame, a request or the next deadline.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), RealError> {
        let Some(deadline) = self.deadline() else {
            return self.wait_for_events(events, None);
        };
        let wake_at = deadline.back(SPIN);
        self.read_clock();
        if wake_at > self.now {
            let at = timespec(self.zero_ns + wake_at.as_ns_ceil());
            let once = Itimerspec { it_interval: timespec(0), it_value: at };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
                .map_err(system("timerfd_settime"))?;
            return self.wait_for_events(events, None);
        }
        // Close to the deadline: poll the sockets once, then spin.
        self.wait_for_events(events, Some(&timespec(0)))?;
        while events.is_empty() && self.now < deadline {
            std::hint::spin_loop();
            self.read_clock();
        }
        Ok(())
    }

    fn wait_for_events(
        &self,
        events: &mut Vec<epoll::Event>,
        timeout: Option<&Timespec>,
    ) -> Result<(), RealError> {
        let room = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, room, timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(system("epoll_wait")(error)),
        }
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

fn system(call: &'static str) -> impl Fn(rustix::io::Errno) -> RealError {
    move |error| RealError::System { call, source: error.into() }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}
