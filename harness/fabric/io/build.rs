// SPDX-License-Identifier: Apache-2.0
//! Compiles the rules of virtual time (`harness/clock/sync.c`), which the QEMU plugin is built from, too,
//! and takes the limits of the shared memory from its header, so that they stand in one place.

use std::path::Path;

fn main() {
    let clock = "../../clock";
    // Of both files, where the caller knows it; otherwise cargo compares their times.
    println!("cargo:rerun-if-env-changed=SYNC_SHA256");
    if std::env::var_os("SYNC_SHA256").is_none() {
        println!("cargo:rerun-if-changed={clock}/sync.c");
        println!("cargo:rerun-if-changed={clock}/sync.h");
    }
    let header = std::fs::read_to_string(format!("{clock}/sync.h")).expect("sync.h is readable");
    let limits = format!(
        "/// Most machines of one run.\npub const MACHINES: usize = {};\n\
         /// Most network interfaces of one machine.\npub const NICS: usize = {};\n",
        constant(&header, "SYNC_MACHINES"),
        constant(&header, "SYNC_NICS"),
    );
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("limits.rs"), limits).expect("OUT_DIR is writable");
    cc::Build::new()
        .file(format!("{clock}/sync.c"))
        .include(clock)
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .compile("sundial_sync");
}

/// The number that `header` defines as `name`, as in `#define SYNC_NICS 8u`.
fn constant(header: &str, name: &str) -> usize {
    let value = header.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("#define") && words.next() == Some(name)).then(|| words.next())?
    });
    let value = value.unwrap_or_else(|| panic!("sync.h does not define {name}"));
    value.trim_end_matches('u').parse().expect("a decimal number")
}
