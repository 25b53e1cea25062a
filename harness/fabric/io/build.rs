// SPDX-License-Identifier: Apache-2.0
//! Compiles the rules of virtual time (`harness/clock/sync.c`), which the QEMU plugin is built from, too.

fn main() {
    let clock = "../../clock";
    println!("cargo:rerun-if-changed={clock}/sync.c");
    println!("cargo:rerun-if-changed={clock}/sync.h");
    cc::Build::new()
        .file(format!("{clock}/sync.c"))
        .include(clock)
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .compile("sundial_sync");
}
