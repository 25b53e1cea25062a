// SPDX-License-Identifier: Apache-2.0
//! `sundial-fabric`: carries the frames of one run.
//!
//! Events go to stdout as JSON lines, errors to stderr as one line. Exit status: 0 done, 2 bad usage or
//! configuration, 4 a fault, 5 a capture that cannot be written.

#![forbid(unsafe_code)]

mod bench;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use sundial_io::{Config, ConfigError, RunError, die_with_parent, run};

#[derive(Parser)]
#[command(version, about = "Carries the frames of one Sundial run")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the wires of CONFIG until the run ends
    Run {
        /// fabric.json
        config: PathBuf,
        /// Pauses before a wait for another process goes to sleep (virtual clock)
        #[arg(long, default_value_t = 300)]
        spins: u32,
        /// Go on when the process that started this one has died
        #[arg(long)]
        orphan: bool,
    },
    /// Say whether CONFIG is right, and change nothing
    Check {
        /// fabric.json
        config: PathBuf,
    },
    /// Measure models and captures without machines; prints JSON
    Bench {
        /// Frames of each measurement
        #[arg(long, default_value_t = 1_000_000)]
        frames: u64,
        /// Where captures are written meanwhile; removed afterwards
        #[arg(long, default_value_os_t = std::env::temp_dir())]
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sundial-fabric: {error:#}");
            ExitCode::from(status(&error))
        }
    }
}

fn execute(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run { config, spins, orphan } => {
            if !orphan {
                die_with_parent().context("cannot tie this process to its parent")?;
            }
            run(&Config::load(&config)?, spins)?;
        }
        Command::Check { config } => {
            Config::load(&config)?;
        }
        Command::Bench { frames, directory } => println!("{:#}", bench::all(frames, &directory)?),
    }
    Ok(())
}

fn status(error: &anyhow::Error) -> u8 {
    if error.is::<ConfigError>() {
        return 2;
    }
    match error.downcast_ref::<RunError>() {
        Some(RunError::Capture(_)) => 5,
        _ => 4,
    }
}
