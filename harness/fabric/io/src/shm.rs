// SPDX-License-Identifier: Apache-2.0
//! The shared memory of one run in virtual time: a safe face over `harness/clock/sync.c`.
//!
//! The layout and the arithmetic of horizons exist once, in C, because the QEMU plugin needs them, too. Here are only the
//! operations that the fabric uses; the structs below mirror `sync.h` and are checked against it when a folder is made.
//!
//! The other side of each ring and the page of each machine belong to a QEMU that its guest may have taken
//! over. So every counter, length and time from there is read once and checked, what a machine says of
//! itself is used as a number only, and the fabric's own counters and constants are kept out of its reach.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// "No such event" in the shared memory: far from overflow when two are added.
pub const NEVER: u64 = u64::MAX / 4;
include!(concat!(env!("OUT_DIR"), "/limits.rs"));

const FRAME: u16 = 0;
const TX_DONE: u16 = 1;

/// Waits of a millisecond for the lock until its holder is given up.
const LOCK_PATIENCE: u32 = 10_000;

#[repr(C)]
struct Slot {
    time_ns: u64,
    length: u32,
    nic: u16,
    kind: u16,
}

#[repr(C)]
struct Ring {
    _opaque: [u8; 0],
}

#[repr(C, align(128))]
struct Word(AtomicU32);

#[repr(C, align(4096))]
struct Bell {
    lock: Word,
    abort: Word,
    go: [Word; MACHINES + 1],
}

#[repr(C, align(4096))]
struct Fixed {
    magic: u64,
    version: u32,
    machine_count: u32,
    slot_bytes: u32,
    ring_slots: u32,
    end_ns: AtomicU64,
    fabric_next_ns: AtomicU64,
    frames: AtomicU64,
    stop_ns: AtomicU64,
    distance_ns: [[u64; MACHINES]; MACHINES],
    adapter_frames: [[u32; NICS]; MACHINES],
}

#[repr(C, align(4096))]
struct Member {
    own_ns: AtomicU64,
    bound_ns: AtomicU64,
    tx_done_bound_ns: AtomicU64,
    rx_due_ns: AtomicU64,
    tx_floor_ns: AtomicU64,
    stride_ns: AtomicU64,
    waiting: AtomicU32,
    stopped: AtomicU32,
    finished: AtomicU32,
    joined: AtomicU32,
    signs: Signs,
}

#[repr(C, align(128))]
struct Signs {
    asleep: AtomicU32,
    lock_state: AtomicU32,
    aborted: AtomicU32,
    gates: AtomicU64,
}

#[repr(C)]
struct Shared {
    bell: Bell,
    fixed: Fixed,
    fabric: Member,
    machine: [Member; MACHINES],
}

/// Members to wake: the machines and the fabric.
#[repr(C)]
struct WakeSet {
    words: [u64; (MACHINES + 1).div_ceil(64)],
}

#[repr(C)]
struct Sync {
    shared: *mut Shared,
    index: u32,
    machines: u32,
    lock_patience: u32,
}

/// The fabric's end of one ring.
#[repr(C)]
struct End {
    ring: *mut Ring,
    count: u64,
    slot_bytes: u32,
}

#[repr(C)]
struct Entry {
    time_ns: u64,
    data: *const u8,
    length: u32,
    nic: u16,
    kind: u16,
}

#[repr(C)]
struct Expect {
    earliest_ns: u64,
    nics: u32,
    last_kind: u32,
}

/// `enum sync_waiting`.
const RUNNING: u32 = 0;
const FOR_ROOM: u32 = 2;
const STANDING: u32 = 3;

/// `enum sync_look`; what is above these is a fault of the other side.
const NOTHING: u32 = 0;
const THERE: u32 = 1;

unsafe extern "C" {
    fn sync_size() -> u64;
    fn sync_rings_bytes(frame_bytes: u32) -> u64;
    fn sync_format(s: *mut Shared, machines: u32, frame_bytes: u32);
    fn sync_ends(
        rings: *mut std::ffi::c_void,
        slot_bytes: u32,
        fabric: bool,
        sends: *mut End,
        receives: *mut End,
    );
    fn sync_room(e: *const End, slot: *mut *mut Slot) -> u32;
    fn sync_push(e: *mut End);
    fn sync_first(e: *const End, expect: *const Expect, entry: *mut Entry) -> u32;
    fn sync_pop(e: *mut End);
    fn sync_fault(look: u32) -> *const std::ffi::c_char;
    fn sync_lock(y: *const Sync) -> bool;
    fn sync_unlock(y: *const Sync);
    fn sync_safe(y: *const Sync) -> u64;
    fn sync_fabric_work(y: *const Sync) -> u64;
    fn sync_all_finished(y: *const Sync) -> bool;
    fn sync_release(y: *const Sync) -> WakeSet;
    fn sync_wake(y: *const Sync, set: WakeSet);
    fn sync_ring_bell(y: *const Sync, index: u32);
    fn sync_quiet(y: *const Sync);
    fn sync_nap(y: *const Sync, spins: u32, slept: *mut bool) -> u32;
    fn sync_abort(y: *const Sync);
    fn sync_aborted_by(y: *const Sync) -> i32;
    fn sync_lock_holder(y: *const Sync) -> i32;
}

/// Why the shared memory is of no more use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A member has ended the run for all.
    #[error("the run was aborted")]
    Aborted {
        /// The machine that did; `None`: this process.
        by: Option<usize>,
    },
    /// A machine has put in what no machine puts in.
    #[error("QEMU put {what} into the shared memory")]
    Offence {
        /// Its number.
        machine: usize,
        /// What, in words.
        what: &'static str,
    },
    /// A machine keeps the lock.
    #[error("QEMU does not give back the lock of the shared memory")]
    Locked {
        /// Its number; `None`: unknown.
        machine: Option<usize>,
    },
}

/// What a machine has put into its ring.
pub struct Sent<'a> {
    /// When the guest's adapter handed it in, ns since zero.
    pub time_ns: u64,
    /// The machine's interface.
    pub nic: usize,
    /// Destination address to end of payload.
    pub frame: &'a [u8],
}

/// What the fabric knows of a machine after a round of work.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// Nothing inside the fabric is due at the machine before this.
    pub bound_ns: u64,
    /// No adapter of the machine finishes a frame before this.
    pub tx_done_bound_ns: u64,
    /// Earliest frame pushed to the machine's ring since the last promise.
    pub pushed_ns: u64,
    /// Earliest finished transmission pushed since the last promise.
    pub pushed_done_ns: u64,
    /// Earliest frame of the machine that is not worked in.
    pub tx_floor_ns: u64,
}

/// One mapped file.
struct Mapping {
    memory: *mut std::ffi::c_void,
    bytes: usize,
}

impl Mapping {
    /// A new file of zeros. Its memory is taken now, so that none can be lacking later.
    fn create(path: &Path, bytes: u64) -> io::Result<Self> {
        let file: File =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
        // SAFETY: a new mapping, of no address in particular.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )
        }?;
        Ok(Self { memory, bytes: bytes as usize })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped once in `create`; who points into it is dropped with it.
        let _ = unsafe { munmap(self.memory, self.bytes) };
    }
}

/// What the fabric has of one machine's rings.
struct Rings {
    sends: End,
    receives: End,
    nics: u32,
    /// Of the latest frame that was taken.
    latest_ns: u64,
    _memory: Mapping,
}

/// The fabric's mappings; the folder is removed when this is dropped.
pub struct SharedRun {
    sync: Sync,
    rings: Vec<Rings>,
    /// A frame on its way out of a ring, where its machine cannot change it any more.
    buffer: Vec<u8>,
    folder: PathBuf,
    /// Pauses that a wait stays awake.
    spins: u32,
    _memory: Mapping,
}

// SAFETY: the memory is shared between processes anyway; every access goes through atomics, the lock, or a ring's protocol.
unsafe impl Send for SharedRun {}

impl SharedRun {
    /// Makes the folder `folder`, which must not exist, for machines with so many interfaces each and
    /// frames of at most `frame_bytes`.
    ///
    /// `times` appears in it last, under this name when it is finished. To remove the folder is to remove all
    /// that was made, also where the fabric died on the way.
    pub fn create(
        folder: &Path,
        nics: &[usize],
        frame_bytes: usize,
        spins: u32,
    ) -> io::Result<Self> {
        assert!(nics.len() <= MACHINES, "checked by the configuration");
        // SAFETY: both only compute.
        let (times_bytes, rings_bytes) =
            unsafe { (sync_size(), sync_rings_bytes(frame_bytes as u32)) };
        assert_eq!(times_bytes, size_of::<Shared>() as u64, "sync.h and shm.rs differ");
        DirBuilder::new().mode(0o700).create(folder)?;
        let made = Self::fill(folder, nics, frame_bytes, times_bytes, rings_bytes, spins);
        made.map_err(|error| {
            let needed = times_bytes + nics.len() as u64 * rings_bytes;
            let _ = fs::remove_dir_all(folder);
            explain(error, folder, needed)
        })
    }

    fn fill(
        folder: &Path,
        nics: &[usize],
        frame_bytes: usize,
        times_bytes: u64,
        rings_bytes: u64,
        spins: u32,
    ) -> io::Result<Self> {
        let unfinished = folder.join("times.partial");
        let memory = Mapping::create(&unfinished, times_bytes)?;
        let shared: *mut Shared = memory.memory.cast();
        // SAFETY: fresh mappings of zero bytes that no other process knows.
        let slot_bytes = unsafe {
            sync_format(shared, nics.len() as u32, frame_bytes as u32);
            (*shared).fixed.slot_bytes
        };
        let mut rings = Vec::new();
        for (machine, &nics) in nics.iter().enumerate() {
            let memory = Mapping::create(&folder.join(format!("rings-{machine}")), rings_bytes)?;
            let mut ends =
                [const { End { ring: std::ptr::null_mut(), count: 0, slot_bytes: 0 } }; 2];
            let [sends, receives] = &mut ends;
            // SAFETY: as above.
            unsafe { sync_ends(memory.memory, slot_bytes, true, sends, receives) };
            let [sends, receives] = ends;
            rings.push(Rings { sends, receives, nics: nics as u32, latest_ns: 0, _memory: memory });
        }
        fs::rename(&unfinished, folder.join("times"))?;
        Ok(Self {
            sync: Sync {
                shared,
                index: MACHINES as u32,
                machines: nics.len() as u32,
                lock_patience: LOCK_PATIENCE,
            },
            rings,
            spins,
            buffer: vec![0; slot_bytes as usize],
            folder: folder.to_owned(),
            _memory: memory,
        })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: mapped for as long as `self` lives; what others change is atomic in the mirror.
        unsafe { &*self.sync.shared }
    }

    fn machines(&self) -> &[Member] {
        &self.shared().machine[..self.sync.machines as usize]
    }

    /// Sets the constants of the run, before any machine has it mapped.
    pub fn set_constants(&mut self, distance_ns: &[Vec<u64>], adapter_frames: &[Vec<u32>]) {
        // SAFETY: nothing reads these before the machines start, and nothing else ever writes them.
        let fixed = unsafe { &mut (*self.sync.shared).fixed };
        for (row, distances) in fixed.distance_ns.iter_mut().zip(distance_ns) {
            row[..distances.len()].copy_from_slice(distances);
        }
        for (row, frames) in fixed.adapter_frames.iter_mut().zip(adapter_frames) {
            row[..frames.len()].copy_from_slice(frames);
        }
    }

    /// Takes all frames that machine `m` has handed in, in order; none can be from before `reached_ns`, up to
    /// which all is worked in.
    pub fn take(
        &mut self,
        m: usize,
        reached_ns: u64,
        mut each: impl FnMut(Sent<'_>),
    ) -> Result<(), Broken> {
        let rings = &mut self.rings[m];
        loop {
            let earliest_ns = rings.latest_ns.max(reached_ns);
            let expect = Expect { earliest_ns, nics: rings.nics, last_kind: u32::from(FRAME) };
            let mut entry =
                Entry { time_ns: 0, data: std::ptr::null(), length: 0, nic: 0, kind: 0 };
            // SAFETY: the fabric is the only consumer of this ring; the entry was checked to be within its slot,
            // which stays mapped, and its bytes are copied before they are looked at.
            let frame = unsafe {
                match sync_first(&rings.receives, &expect, &mut entry) {
                    NOTHING => return Ok(()),
                    THERE => {}
                    fault => return Err(offence(m, fault)),
                }
                let frame = &mut self.buffer[..entry.length as usize];
                std::ptr::copy_nonoverlapping(entry.data, frame.as_mut_ptr(), frame.len());
                sync_pop(&mut rings.receives);
                frame
            };
            rings.latest_ns = entry.time_ns;
            each(Sent { time_ns: entry.time_ns, nic: usize::from(entry.nic), frame });
        }
    }

    /// Puts a frame due at `due_ns` into the ring of machine `m`; false: the ring is full.
    pub fn deliver(
        &mut self,
        m: usize,
        nic: usize,
        due_ns: u64,
        frame: &[u8],
    ) -> Result<bool, Broken> {
        self.push(m, nic, due_ns, FRAME, frame)
    }

    /// Tells machine `m` that the adapter of `nic` finished a frame at `due_ns`; false: the ring is full.
    pub fn tx_done(&mut self, m: usize, nic: usize, due_ns: u64) -> Result<bool, Broken> {
        self.push(m, nic, due_ns, TX_DONE, &[])
    }

    fn push(
        &mut self,
        m: usize,
        nic: usize,
        time_ns: u64,
        kind: u16,
        frame: &[u8],
    ) -> Result<bool, Broken> {
        let end = &mut self.rings[m].sends;
        // Segments refuse frames longer than the longest that the rings were made for.
        assert!(size_of::<Slot>() + frame.len() <= end.slot_bytes as usize);
        let mut slot: *mut Slot = std::ptr::null_mut();
        // SAFETY: the fabric is the only producer of this ring, and the frame fits into the slot.
        unsafe {
            match sync_room(end, &mut slot) {
                NOTHING => return Ok(false),
                THERE => {}
                fault => return Err(offence(m, fault)),
            }
            slot.write(Slot { time_ns, length: frame.len() as u32, nic: nic as u16, kind });
            std::ptr::copy_nonoverlapping(frame.as_ptr(), slot.add(1).cast::<u8>(), frame.len());
            sync_push(end);
        }
        Ok(true)
    }

    /// Runs `work` with the lock held, then releases and wakes the processes that can go on.
    pub fn locked<T>(
        &mut self,
        work: impl FnOnce(&mut Locked<'_>) -> Result<T, Broken>,
    ) -> Result<T, Broken> {
        // SAFETY: only atomics are touched, and the guarded fields while the lock is held.
        unsafe {
            if !sync_lock(&self.sync) {
                return Err(self.aborted().unwrap_or_else(|| {
                    let holder = sync_lock_holder(&self.sync);
                    Broken::Locked { machine: usize::try_from(holder).ok() }
                }));
            }
            let result = work(&mut Locked { run: self });
            let wake = sync_release(&self.sync);
            sync_unlock(&self.sync);
            sync_wake(&self.sync, wake);
            result
        }
    }

    /// Sleeps until a machine lets the fabric go on, or for 50 ms; [`Locked::wait`] was called in the last
    /// [`Self::locked`].
    pub fn nap(&self) -> Result<(), Broken> {
        const ABORTED: u32 = 2;
        let mut slept = false;
        // SAFETY: only atomics and `slept` are touched.
        match unsafe { sync_nap(&self.sync, self.spins, &mut slept) } {
            ABORTED => Err(self.aborted().unwrap_or(Broken::Aborted { by: None })),
            _ => Ok(()),
        }
    }

    /// That a member has ended the run, and which.
    fn aborted(&self) -> Option<Broken> {
        // SAFETY: only atomics are touched.
        let by = usize::try_from(unsafe { sync_aborted_by(&self.sync) }).ok()?;
        Some(Broken::Aborted { by: (by < MACHINES).then_some(by) })
    }

    /// Ends the run for every process.
    pub fn abort(&self) {
        // SAFETY: only atomics are touched.
        unsafe { sync_abort(&self.sync) }
    }
}

fn offence(machine: usize, fault: u32) -> Broken {
    // SAFETY: `fault` came from sync.c, which has a constant text for each.
    let what = unsafe { std::ffi::CStr::from_ptr(sync_fault(fault)) };
    Broken::Offence { machine, what: what.to_str().expect("ASCII") }
}

/// Says how much room is needed and how much there is, where there is too little.
fn explain(error: io::Error, folder: &Path, needed: u64) -> io::Error {
    if error.raw_os_error() != Some(Errno::NOSPC.raw_os_error()) {
        return error;
    }
    let parent = folder.parent().unwrap_or(folder);
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let Ok(room) = statvfs(parent) else { return error };
    let free = room.f_bavail * room.f_frsize;
    let whole = room.f_blocks * room.f_frsize;
    let text = format!(
        "{:.1} MB are needed, {} has {:.1} MB of which {:.1} MB are free",
        mb(needed),
        parent.display(),
        mb(whole),
        mb(free)
    );
    io::Error::new(io::ErrorKind::StorageFull, text)
}

impl Drop for SharedRun {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The guarded part of the memory, while the lock is held.
pub struct Locked<'a> {
    run: &'a mut SharedRun,
}

impl Locked<'_> {
    /// Takes frames as [`SharedRun::take`] does, while no machine can hand in one more.
    pub fn take(
        &mut self,
        m: usize,
        reached_ns: u64,
        each: impl FnMut(Sent<'_>),
    ) -> Result<(), Broken> {
        self.run.take(m, reached_ns, each)
    }

    /// Publishes what the fabric now knows of machine `m`.
    pub fn promise(&mut self, m: usize, promise: Promise) {
        let member = &self.run.shared().machine[m];
        member.bound_ns.store(promise.bound_ns, Relaxed);
        member.tx_done_bound_ns.store(promise.tx_done_bound_ns, Relaxed);
        member.tx_floor_ns.store(promise.tx_floor_ns, Relaxed);
        let mut due_ns = member.rx_due_ns.load(Relaxed).min(promise.pushed_ns);
        if member.stopped.load(Relaxed) != 0 {
            // The place falls free strictly after the end of the frame.
            due_ns = due_ns.min(promise.pushed_done_ns.saturating_add(1));
        }
        member.rx_due_ns.store(due_ns, Relaxed);
        if member.waiting.load(Relaxed) == FOR_ROOM {
            // SAFETY: atomics, and a futex wake of one word.
            unsafe { sync_ring_bell(&self.run.sync, m as u32) };
        }
    }

    /// When the fabric has something to do by itself.
    pub fn set_next(&mut self, next_ns: u64, frames: u64) {
        let fixed = &self.run.shared().fixed;
        fixed.fabric_next_ns.store(next_ns, Relaxed);
        fixed.frames.store(frames, Relaxed);
    }

    /// The run ends at this time.
    pub fn set_end(&mut self, end_ns: u64) {
        self.run.shared().fixed.end_ns.store(end_ns, Relaxed);
    }

    /// Every machine stands at this time until it moves.
    pub fn set_stop(&mut self, stop_ns: u64) {
        self.run.shared().fixed.stop_ns.store(stop_ns, Relaxed);
        for (m, machine) in self.run.machines().iter().enumerate() {
            if machine.waiting.load(Relaxed) == STANDING {
                // It looks whether that is right, under the lock.
                machine.waiting.store(RUNNING, Relaxed);
                // SAFETY: atomics, and a futex wake of one word.
                unsafe { sync_ring_bell(&self.run.sync, m as u32) };
            }
        }
    }

    /// Whether any machine has begun to keep time.
    pub fn has_begun(&self) -> bool {
        self.run.machines().iter().any(|machine| machine.joined.load(Relaxed) != 0)
    }

    /// Whether every machine that has not left stands, where the fabric has stopped them.
    pub fn all_stand(&self) -> bool {
        self.run.machines().iter().all(|machine| {
            machine.waiting.load(Relaxed) == STANDING || machine.finished.load(Relaxed) != 0
        })
    }

    /// Everything before this time is known; [`NEVER`] when all machines have left.
    pub fn safe_ns(&mut self) -> u64 {
        // SAFETY: the lock is held.
        unsafe { sync_safe(&self.run.sync) }
    }

    /// The fabric's next piece of work.
    pub fn work_ns(&mut self) -> u64 {
        // SAFETY: the lock is held.
        unsafe { sync_fabric_work(&self.run.sync) }
    }

    /// Whether every machine has reached the end and left.
    pub fn all_finished(&mut self) -> bool {
        // SAFETY: the lock is held.
        unsafe { sync_all_finished(&self.run.sync) }
    }

    /// Declares that the fabric waits (or, with `false`, that it works).
    pub fn wait(&mut self, waiting: bool) {
        self.run.shared().fabric.waiting.store(u32::from(waiting), Relaxed);
        if waiting {
            // SAFETY: only an atomic is touched.
            unsafe { sync_quiet(&self.run.sync) };
        }
    }
}

#[cfg(test)]
mod tests;
