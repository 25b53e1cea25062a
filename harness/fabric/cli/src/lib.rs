// SPDX-License-Identifier: Apache-2.0
//! The command line of `sundial-fabric`, for whichever kinds of segment a binary knows.
//!
//! Events go to stdout as JSON lines, errors to stderr as one line. Exit status: 0 done, 2 bad usage or
//! configuration, 4 a fault, 5 a capture that cannot be written.

#![forbid(unsafe_code)]

mod bench;
mod saturation;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};
use sundial_core::{Kinds, Span};
use sundial_io::{Config, ConfigError, RunError, VirtualError, die_with_parent, run};

#[derive(Parser)]
#[command(version, about = "Carries the frames of one Sundial run")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Carry the frames of CONFIG until the run ends
    Run {
        /// fabric.json
        config: PathBuf,
        /// Pauses before a wait for another process goes to sleep (virtual clock)
        #[arg(long, default_value_t = 300)]
        spins: u32,
        /// Go on after the process that started this one has died
        #[arg(long)]
        orphan: bool,
    },
    /// Check CONFIG and start nothing: 0 it is valid, 2 it is not
    Check {
        /// fabric.json
        config: PathBuf,
    },
    /// Measure models and captures without machines; prints JSON
    Bench {
        /// Frames of each measurement
        #[arg(long, default_value_t = 1_000_000)]
        frames: u64,
        /// Where captures are written; removed afterwards
        #[arg(long, default_value_os_t = std::env::temp_dir())]
        directory: PathBuf,
    },
    /// How much of its time a saturated hub carries frames, by stations and length; prints JSON
    Saturation {
        /// Milliseconds of the model's time for each run
        #[arg(long, default_value_t = 4000)]
        span_ms: u64,
    },
}

/// Does what `arguments` (the program's name first) ask for; the exit status.
pub fn run_command(
    kinds: &Kinds,
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and the version come this way, too. If it cannot be printed, nothing is left to do.
            let _unread = error.print();
            return error.exit_code() as u8;
        }
    };
    match execute(kinds, arguments.command) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("sundial-fabric: {error:#}");
            status(&error)
        }
    }
}

fn execute(kinds: &Kinds, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run { config, spins, orphan } => {
            if !orphan {
                die_with_parent().context("cannot tie this process to its parent")?;
            }
            run(&Config::load(&config, kinds)?, spins)?;
        }
        Command::Check { config } => {
            Config::load(&config, kinds)?;
        }
        Command::Bench { frames, directory } => println!("{:#}", bench::all(frames, &directory)?),
        Command::Saturation { span_ms } => {
            println!("{:#}", saturation::all(Span::from_ns(span_ms.saturating_mul(1_000_000))));
        }
    }
    Ok(())
}

fn status(error: &anyhow::Error) -> u8 {
    if error.is::<ConfigError>() {
        return 2;
    }
    match error.downcast_ref::<RunError>() {
        Some(RunError::Capture(_)) => 5,
        Some(RunError::Virtual(VirtualError::Aborted { .. })) => 6,
        _ => 4,
    }
}
