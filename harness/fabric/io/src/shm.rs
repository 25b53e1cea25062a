// SPDX-License-Identifier: Apache-2.0
//! The shared memory of one run in virtual time: a safe face over `harness/clock/sync.c`.
//!
//! The layout and the arithmetic of horizons exist once, in C, because the QEMU plugin needs them, too. Here are only the
//! operations that the fabric uses; the struct below mirrors `sync.h` and is checked against it when a file is made.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// "No such event" in the shared memory: far from overflow when two are added.
pub const NEVER: u64 = u64::MAX / 4;
include!(concat!(env!("OUT_DIR"), "/limits.rs"));

const FRAME: u16 = 0;
const TX_DONE: u16 = 1;

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
struct Member {
    own_ns: u64,
    bound_ns: u64,
    tx_done_bound_ns: u64,
    rx_due_ns: u64,
    tx_floor_ns: u64,
    waiting: u32,
    stopped: u32,
    finished: u32,
    joined: u32,
    atomics: MemberAtomics,
}

#[repr(C, align(128))]
struct MemberAtomics {
    go: AtomicU32,
    asleep: AtomicU32,
    gates: AtomicU64,
}

#[repr(C)]
struct Shared {
    magic: u64,
    version: u32,
    machine_count: u32,
    ring_slots: u32,
    slot_bytes: u32,
    bytes: u64,
    abort: AtomicU32,
    lock: AtomicU32,
    end_ns: u64,
    fabric_next_ns: u64,
    frames: u64,
    reserved: [u64; 8],
    distance_ns: [[u64; MACHINES]; MACHINES],
    adapter_frames: [[u32; NICS]; MACHINES],
    machine: [Member; MACHINES],
    fabric: Member,
}

/// Members to wake: the machines and the fabric.
#[repr(C)]
struct WakeSet {
    words: [u64; (MACHINES + 1).div_ceil(64)],
}

#[repr(C)]
struct Sync {
    shared: *mut Shared,
    spins: u32,
}

unsafe extern "C" {
    fn sync_bytes(machines: u32, frame_bytes: u32) -> u64;
    fn sync_size() -> u64;
    fn sync_format(s: *mut Shared, machines: u32, frame_bytes: u32);
    fn sync_tx_ring(s: *mut Shared, machine: u32) -> *mut Ring;
    fn sync_rx_ring(s: *mut Shared, machine: u32) -> *mut Ring;
    fn sync_ring_free(s: *const Shared, r: *mut Ring) -> *mut Slot;
    fn sync_ring_push(r: *mut Ring);
    fn sync_ring_first(s: *const Shared, r: *mut Ring) -> *mut Slot;
    fn sync_ring_pop(r: *mut Ring);
    fn sync_lock(s: *mut Shared) -> bool;
    fn sync_unlock(s: *mut Shared);
    fn sync_safe(s: *const Shared) -> u64;
    fn sync_fabric_work(s: *const Shared) -> u64;
    fn sync_all_finished(s: *const Shared) -> bool;
    fn sync_release(s: *mut Shared) -> WakeSet;
    fn sync_wake(s: *mut Shared, set: WakeSet);
    fn sync_wake_member(s: *mut Shared, index: u32);
    fn sync_nap(y: *const Sync, me: *mut Member) -> u32;
    fn sync_abort(s: *mut Shared);
}

/// A machine has died or the supervisor is gone: the run has ended for every process.
#[derive(Debug, thiserror::Error)]
#[error("the run was aborted")]
pub struct Aborted;

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

/// The fabric's mapping; the file is removed when this is dropped.
pub struct SharedRun {
    sync: Sync,
    bytes: usize,
    path: PathBuf,
    machines: usize,
}

// SAFETY: the memory is shared between processes anyway; every access goes through atomics or the lock.
unsafe impl Send for SharedRun {}

impl SharedRun {
    /// Makes the file at `path`, which must not exist, for `machines` machines and frames of at most
    /// `frame_bytes`.
    pub fn create(
        path: &Path,
        machines: usize,
        frame_bytes: usize,
        spins: u32,
    ) -> io::Result<Self> {
        assert!(machines <= MACHINES, "checked by the configuration");
        // SAFETY: both only compute.
        let (bytes, header) =
            unsafe { (sync_bytes(machines as u32, frame_bytes as u32), sync_size()) };
        assert_eq!(header, size_of::<Shared>() as u64, "sync.h and shm.rs differ");
        let temporary = path.with_extension("partial");
        let made = Self::map_new(&temporary, bytes);
        let pointer = match made {
            Ok(pointer) => pointer,
            Err(error) => {
                let _ = fs::remove_file(&temporary);
                return Err(error);
            }
        };
        // SAFETY: a fresh mapping of `bytes` zero bytes.
        unsafe { sync_format(pointer.cast(), machines as u32, frame_bytes as u32) };
        let run = Self {
            sync: Sync { shared: pointer.cast(), spins },
            bytes: bytes as usize,
            path: path.to_owned(),
            machines,
        };
        // A process that finds the name finds a finished layout.
        fs::rename(&temporary, path)?;
        Ok(run)
    }

    fn map_new(path: &Path, bytes: u64) -> io::Result<*mut std::ffi::c_void> {
        let file: File = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.set_len(bytes)?;
        // SAFETY: a new private name, mapped once here.
        let pointer = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )
        }?;
        Ok(pointer)
    }

    fn shared(&self) -> *mut Shared {
        self.sync.shared
    }

    /// Sets the constants of the run, before any machine has it mapped.
    pub fn set_constants(&mut self, distance_ns: &[Vec<u64>], adapter_frames: &[Vec<u32>]) {
        // SAFETY: no other process has the mapping yet.
        let shared = unsafe { &mut *self.shared() };
        for (row, distances) in shared.distance_ns.iter_mut().zip(distance_ns) {
            row[..distances.len()].copy_from_slice(distances);
        }
        for (row, frames) in shared.adapter_frames.iter_mut().zip(adapter_frames) {
            row[..frames.len()].copy_from_slice(frames);
        }
    }

    /// Takes all frames that machine `m` has handed in, in order.
    pub fn take(&mut self, m: usize, mut each: impl FnMut(Sent<'_>)) {
        // SAFETY: the fabric is the only consumer of this ring; a slot stays the fabric's until it is popped.
        unsafe {
            let ring = sync_tx_ring(self.shared(), m as u32);
            loop {
                let slot = sync_ring_first(self.shared(), ring);
                if slot.is_null() {
                    return;
                }
                let data = slot.add(1).cast::<u8>();
                each(Sent {
                    time_ns: (*slot).time_ns,
                    nic: usize::from((*slot).nic),
                    frame: std::slice::from_raw_parts(data, (*slot).length as usize),
                });
                sync_ring_pop(ring);
            }
        }
    }

    /// Puts a frame due at `due_ns` into the ring of machine `m`; false: the ring is full.
    pub fn deliver(&mut self, m: usize, nic: usize, due_ns: u64, frame: &[u8]) -> bool {
        self.push(m, nic, due_ns, FRAME, frame)
    }

    /// Tells machine `m` that the adapter of `nic` finished a frame at `due_ns`; false: the ring is full.
    pub fn tx_done(&mut self, m: usize, nic: usize, due_ns: u64) -> bool {
        self.push(m, nic, due_ns, TX_DONE, &[])
    }

    fn push(&mut self, m: usize, nic: usize, time_ns: u64, kind: u16, frame: &[u8]) -> bool {
        // SAFETY: the fabric is the only producer of this ring; frames fit, for segments refuse longer ones than the
        // longest that the file was made for.
        unsafe {
            let ring = sync_rx_ring(self.shared(), m as u32);
            let slot = sync_ring_free(self.shared(), ring);
            if slot.is_null() {
                return false;
            }
            assert!(size_of::<Slot>() + frame.len() <= (*self.shared()).slot_bytes as usize);
            slot.write(Slot { time_ns, length: frame.len() as u32, nic: nic as u16, kind });
            std::ptr::copy_nonoverlapping(frame.as_ptr(), slot.add(1).cast::<u8>(), frame.len());
            sync_ring_push(ring);
        }
        true
    }

    /// Runs `work` with the lock held, then releases and wakes the processes that can go on.
    pub fn locked<T>(&mut self, work: impl FnOnce(&mut Locked<'_>) -> T) -> Result<T, Aborted> {
        // SAFETY: the lock serialises every access to the guarded fields.
        unsafe {
            if !sync_lock(self.shared()) {
                return Err(Aborted);
            }
            let result = work(&mut Locked { run: self });
            let wake = sync_release(self.shared());
            sync_unlock(self.shared());
            sync_wake(self.shared(), wake);
            Ok(result)
        }
    }

    /// Sleeps until a machine lets the fabric go on, or for 50 ms; [`Locked::wait`] was called in the last
    /// [`Self::locked`]. False: none did.
    pub fn nap(&self) -> Result<bool, Aborted> {
        const STILL_WAITING: u32 = 0;
        const WOKEN: u32 = 1;
        // SAFETY: only atomics of the fabric's own member are touched.
        match unsafe { sync_nap(&self.sync, &raw mut (*self.shared()).fabric) } {
            STILL_WAITING => Ok(false),
            WOKEN => Ok(true),
            _ => Err(Aborted),
        }
    }

    /// Ends the run for every process.
    pub fn abort(&self) {
        // SAFETY: only atomics are touched.
        unsafe { sync_abort(self.shared()) }
    }

    /// Number of machines.
    pub fn machines(&self) -> usize {
        self.machines
    }
}

impl Drop for SharedRun {
    fn drop(&mut self) {
        // SAFETY: mapped once in `create`, and nothing borrows it.
        unsafe {
            let _ = munmap(self.sync.shared.cast(), self.bytes);
        }
        let _ = fs::remove_file(&self.path);
    }
}

/// The guarded part of the memory, while the lock is held.
pub struct Locked<'a> {
    run: &'a mut SharedRun,
}

impl Locked<'_> {
    fn shared(&mut self) -> &mut Shared {
        // SAFETY: the lock is held, so no other process touches the guarded fields; atomics are atomics.
        unsafe { &mut *self.run.shared() }
    }

    /// Takes frames as [`SharedRun::take`] does, while no machine can hand in one more.
    pub fn take(&mut self, m: usize, each: impl FnMut(Sent<'_>)) {
        self.run.take(m, each);
    }

    /// Publishes what the fabric now knows of machine `m`.
    pub fn promise(&mut self, m: usize, promise: Promise) {
        let member = &mut self.shared().machine[m];
        member.bound_ns = promise.bound_ns;
        member.tx_done_bound_ns = promise.tx_done_bound_ns;
        member.tx_floor_ns = promise.tx_floor_ns;
        member.rx_due_ns = member.rx_due_ns.min(promise.pushed_ns);
        if member.stopped != 0 {
            // The place falls free strictly after the end of the frame.
            member.rx_due_ns = member.rx_due_ns.min(promise.pushed_done_ns.saturating_add(1));
        }
        const FOR_ROOM: u32 = 2;
        if member.waiting == FOR_ROOM {
            member.atomics.go.store(1, Ordering::SeqCst);
            if member.atomics.asleep.load(Ordering::SeqCst) != 0 {
                // SAFETY: a futex wake of one word.
                unsafe { sync_wake_member(self.run.shared(), m as u32) };
            }
        }
    }

    /// When the fabric has something to do by itself.
    pub fn set_next(&mut self, next_ns: u64, frames: u64) {
        self.shared().fabric_next_ns = next_ns;
        self.shared().frames = frames;
    }

    /// The run ends at this time.
    pub fn set_end(&mut self, end_ns: u64) {
        self.shared().end_ns = end_ns;
    }

    /// Everything before this time is known; [`NEVER`] when all machines have left.
    pub fn safe_ns(&mut self) -> u64 {
        // SAFETY: the lock is held.
        unsafe { sync_safe(self.run.shared()) }
    }

    /// The fabric's next piece of work.
    pub fn work_ns(&mut self) -> u64 {
        // SAFETY: the lock is held.
        unsafe { sync_fabric_work(self.run.shared()) }
    }

    /// Whether every machine has reached the end and left.
    pub fn all_finished(&mut self) -> bool {
        // SAFETY: the lock is held.
        unsafe { sync_all_finished(self.run.shared()) }
    }

    /// Declares that the fabric waits (or, with `false`, that it works).
    pub fn wait(&mut self, waiting: bool) {
        let fabric = &mut self.shared().fabric;
        fabric.waiting = u32::from(waiting);
        if waiting {
            fabric.atomics.go.store(0, Ordering::SeqCst);
        }
    }
}
