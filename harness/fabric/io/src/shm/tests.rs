// SPDX-License-Identifier: Apache-2.0
//! Machines that write what they like into what is theirs. They write through the file, as another process
//! would through its mapping.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileExt, PermissionsExt};

use proptest::prelude::ProptestConfig;
use sundial_core::Stream;
use tempfile::TempDir;

use super::*;

const FRAME_BYTES: usize = 112;
const SLOT_BYTES: u64 = 128;
const NICS_OF: [usize; 2] = [3, 1];
const SLOTS: u64 = 256;

/// A run, and the rings of its machine 0 as that machine has them.
struct Hostile {
    run: SharedRun,
    rings: File,
    _directory: TempDir,
}

/// Where a ring has its counters and its slots.
struct At(u64);

const TO_FABRIC: At = At(0);
const FROM_FABRIC: At = At(128 + SLOTS * SLOT_BYTES);

impl At {
    fn written(&self) -> u64 {
        self.0
    }

    fn read(&self) -> u64 {
        self.0 + 64
    }

    fn slot(&self, count: u64) -> u64 {
        self.0 + 128 + count % SLOTS * SLOT_BYTES
    }
}

impl Hostile {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("run");
        let run = SharedRun::create(&folder, &NICS_OF, FRAME_BYTES, 0).expect("room");
        let rings = OpenOptions::new().read(true).write(true).open(folder.join("rings-0"));
        Self { run, rings: rings.expect("made by the run"), _directory: directory }
    }

    fn write(&self, at: u64, value: u64) {
        self.rings.write_all_at(&value.to_ne_bytes(), at).expect("it is mapped");
    }

    /// Writes the header of an entry and, as its bytes, the low byte of `count`.
    fn plant(&self, count: u64, time_ns: u64, length: u32, nic: u16, kind: u16) {
        let mut slot = [count as u8; 16 + FRAME_BYTES];
        slot[..8].copy_from_slice(&time_ns.to_ne_bytes());
        slot[8..12].copy_from_slice(&length.to_ne_bytes());
        slot[12..14].copy_from_slice(&nic.to_ne_bytes());
        slot[14..16].copy_from_slice(&kind.to_ne_bytes());
        self.rings.write_all_at(&slot, TO_FABRIC.slot(count)).expect("it is mapped");
    }

    /// What the fabric makes of it: (time, interface, bytes) of each frame, or whom it blames for what.
    fn take(&mut self, reached_ns: u64) -> Result<Vec<(u64, usize, Vec<u8>)>, Broken> {
        let mut taken = Vec::new();
        let each = |sent: Sent<'_>| taken.push((sent.time_ns, sent.nic, sent.frame.to_vec()));
        self.run.take(0, reached_ns, each)?;
        Ok(taken)
    }
}

/// Half of the numbers are near what is allowed, where mistakes are; the others are anything.
fn number(random: &mut Stream, limit: u64) -> u64 {
    match random.below(4) {
        0 => any(random),
        1 => (limit + u64::from(random.below(4))).wrapping_sub(2),
        _ => any(random) % (limit + 1),
    }
}

fn any(random: &mut Stream) -> u64 {
    u64::from(random.draw()) << 32 | u64::from(random.draw())
}

fn seeded() -> Stream {
    Stream::new(8, "stranger", 0, 0)
}

/// How many entries are made up: 100,000 for 200 cases of a property.
fn entries() -> u64 {
    500 * u64::from(ProptestConfig::default().cases)
}

#[test]
fn what_is_taken_is_right_or_its_machine_is_named() {
    let mut hostile = Hostile::new();
    let mut random = seeded();
    let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut count, mut latest_ns) = (0, 0);
    for round in 0..entries() {
        // Times go on slowly, so that there are some before the latest one at all times.
        let reached_ns = round;
        let time_ns = match random.below(8) {
            0 => number(&mut random, NEVER),
            _ => reached_ns.saturating_sub(8) + u64::from(random.below(64)),
        };
        let length = number(&mut random, FRAME_BYTES as u64) as u32;
        let (nic, kind) = (number(&mut random, 3) as u16, number(&mut random, 0) as u16);
        let used = if random.below(16) == 0 { number(&mut random, SLOTS) } else { 1 };
        hostile.plant(count, time_ns, length, nic, kind);
        if (2..=SLOTS).contains(&used) {
            hostile.plant(count + 1, NEVER, 0, 0, 0);
        }
        hostile.write(TO_FABRIC.written(), count.wrapping_add(used));
        let outcome = hostile.take(reached_ns);
        let right = (length as usize) <= FRAME_BYTES && nic < 3 && kind == 0;
        let in_time = (latest_ns.max(reached_ns)..NEVER).contains(&time_ns);
        let name = match &outcome {
            Err(Broken::Offence { machine: 0, what }) => {
                assert!(used != 1 || !right || !in_time, "{what}: {time_ns} {length} {nic} {kind}");
                what
            }
            Err(other) => panic!("{other:?}"),
            Ok(taken) if used == 0 => {
                assert_eq!(taken, &[]);
                "nothing"
            }
            Ok(taken) => {
                assert!(used == 1 && right && in_time, "{used} {time_ns} {length} {nic} {kind}");
                let bytes = vec![count as u8; length as usize];
                assert_eq!(taken, &[(time_ns, usize::from(nic), bytes)]);
                "taken"
            }
        };
        *outcomes.entry(name).or_default() += 1;
        // A run ends at an offence. Here it goes on, from where the fabric is.
        let rings = &mut hostile.run.rings[0];
        rings.latest_ns = rings.latest_ns.min(reached_ns + 64);
        (count, latest_ns) = (rings.receives.count, rings.latest_ns);
    }
    assert_eq!(outcomes.len(), 7, "{outcomes:?}");
    assert!(outcomes["taken"] > entries() / 50, "{outcomes:?}");
    println!("{outcomes:?}");
}

#[test]
fn what_is_put_in_stays_within_the_ring() {
    let mut hostile = Hostile::new();
    let mut random = seeded();
    for _ in 0..entries() {
        let count = hostile.run.rings[0].sends.count;
        let used = number(&mut random, SLOTS);
        hostile.write(FROM_FABRIC.read(), count.wrapping_sub(used));
        let offence = Broken::Offence { machine: 0, what: "a ring's counter that cannot be" };
        let expected = match used {
            0..SLOTS => Ok(true),
            SLOTS => Ok(false),
            _ => Err(offence),
        };
        assert_eq!(hostile.run.deliver(0, 1, 5, &[9; FRAME_BYTES]), expected);
    }
}

#[test]
fn a_length_that_changes_while_it_is_read_is_no_way_out() {
    let mut hostile = Hostile::new();
    let rings = hostile.rings.try_clone().expect("a descriptor");
    let (mut taken, mut refused) = (0, 0);
    let rounds = entries() / 4;
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = seeded();
            while !over.load(Relaxed) {
                let at = TO_FABRIC.slot(any(&mut random) % SLOTS) + 8;
                let length = number(&mut random, FRAME_BYTES as u64) as u32;
                rings.write_all_at(&length.to_ne_bytes(), at).expect("it is mapped");
            }
        });
        for round in 1..=rounds {
            hostile.write(TO_FABRIC.written(), hostile.run.rings[0].receives.count + 1);
            match hostile.take(0) {
                Ok(frames) => {
                    assert!(frames[0].2.len() <= FRAME_BYTES);
                    taken += 1;
                }
                Err(Broken::Offence { machine: 0, .. }) => {
                    hostile.run.rings[0].receives.count += 1;
                    refused += 1;
                }
                Err(other) => panic!("{other:?}"),
            }
            assert_eq!(taken + refused, round);
        }
        over.store(true, Relaxed);
    });
}

#[test]
fn a_machine_cannot_touch_what_the_fabric_goes_by() {
    let mut hostile = Hostile::new();
    let times = OpenOptions::new().write(true).open(hostile.run.folder.join("times"));
    // All of it, as no machine could: the fabric's own counters and constants are not there.
    let junk = vec![0xa5; size_of::<Shared>()];
    times.expect("made by the run").write_all_at(&junk, 0).expect("it is mapped");
    hostile.plant(0, 7, 3, 2, 0);
    hostile.write(TO_FABRIC.written(), 1);
    assert_eq!(hostile.take(0), Ok(vec![(7, 2, vec![0; 3])]));
    assert_eq!(hostile.run.tx_done(1, 0, 8), Ok(true));
    hostile.run.sync.lock_patience = 2;
    let locked = hostile.run.locked(|_| Ok(()));
    assert!(matches!(locked, Err(Broken::Aborted { .. } | Broken::Locked { .. })), "{locked:?}");
}

#[test]
fn the_lock_is_not_waited_for_for_ever() {
    let mut hostile = Hostile::new();
    hostile.run.sync.lock_patience = 2;
    let shared = hostile.run.shared();
    shared.bell.lock.0.store(2, Relaxed);
    shared.machine[1].signs.lock_state.store(2, Relaxed);
    assert_eq!(hostile.run.locked(|_| Ok(())), Err(Broken::Locked { machine: Some(1) }));
    // Another one says in the lock that machine 1 has it, which says that it waits for it.
    hostile.run.shared().machine[1].signs.lock_state.store(1, Relaxed);
    assert_eq!(hostile.run.locked(|_| Ok(())), Err(Broken::Locked { machine: Some(0) }));
    hostile.run.shared().bell.lock.0.store(0, Relaxed);
    assert_eq!(hostile.run.locked(|_| Ok(5)), Ok(5));
}

#[test]
fn only_its_owner_reads_the_folder_and_nothing_of_it_is_left() {
    let hostile = Hostile::new();
    let mode = |name: &str| {
        let path = hostile.run.folder.join(name);
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    };
    assert_eq!(["", "times", "rings-0", "rings-1"].map(mode), [0o700, 0o600, 0o600, 0o600]);
    let files = fs::read_dir(&hostile.run.folder).expect("a folder").count();
    assert_eq!(files, 3);
    let Hostile { run, _directory, .. } = hostile;
    drop(run);
    assert_eq!(fs::read_dir(_directory.path()).expect("a folder").count(), 0);
}

#[test]
fn a_folder_that_is_there_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = SharedRun::create(directory.path(), &[1], FRAME_BYTES, 0).err();
    assert_eq!(error.map(|error| error.kind()), Some(io::ErrorKind::AlreadyExists));
    assert!(directory.path().is_dir());
}

#[test]
fn too_little_room_is_said_in_one_line() {
    let text = explain(Errno::NOSPC.into(), Path::new("/proc/nothing/run"), 80_000_000);
    assert_eq!(text.kind(), io::ErrorKind::StorageFull, "that file system cannot report its free space");
    let text = explain(Errno::NOSPC.into(), Path::new("/dev/shm/run"), 80_000_000).to_string();
    assert!(text.starts_with("80.0 MB are needed, /dev/shm has "), "{text}");
    assert!(!text.contains('\n'));
    let other = explain(Errno::ACCESS.into(), Path::new("/dev/shm/run"), 1);
    assert_eq!(other.raw_os_error(), Some(Errno::ACCESS.raw_os_error()));
}
