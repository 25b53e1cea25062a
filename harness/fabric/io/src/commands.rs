// SPDX-License-Identifier: Apache-2.0
//! Requests to a running fabric: over the control socket, or by a signal.
//!
//! Threads wait for requests and put them into one channel, so that a driver polls a queue and never
//! waits for a client.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Longest line that is read: a change that names each of 64 ports, several times.
const LINE_BYTES: u64 = 65536;
/// How long an answer may wait for its client to read.
const PATIENCE: Duration = Duration::from_millis(100);

/// A request and the way to answer it.
#[derive(Debug)]
pub enum Request {
    /// The counters as they are now.
    Counters(Reply),
    /// A segment changes from the next instant on.
    Change {
        /// Its name.
        segment: String,
        /// As its kind has it in a `timeline`.
        change: Value,
        /// Wants the instant.
        reply: Reply,
    },
    /// Stand at an instant, or at another one than so far.
    Until {
        /// Since zero; `None`: at none.
        at_ns: Option<u64>,
        /// Wants to know that it was taken.
        reply: Reply,
    },
    /// End the run now. A signal wants no answer.
    Stop(Option<Reply>),
}

/// Where the answer goes.
#[derive(Debug)]
pub struct Reply(UnixStream);

impl Reply {
    /// Answers before it returns, so that the last answer is out before the process ends. A client that
    /// has gone does not matter.
    pub fn send(mut self, answer: &Value) {
        let _gone = self.0.write_all(format!("{answer}\n").as_bytes());
    }
}

#[derive(Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    Counters,
    Change { segment: String, change: Value },
    Until { at_ns: Option<u64> },
    Stop,
}

/// The queue of requests. Dropping it removes the socket.
#[derive(Debug)]
pub struct Commands {
    requests: Receiver<Request>,
    socket: Option<PathBuf>,
}

type Wake = Arc<dyn Fn() + Send + Sync>;

impl Commands {
    /// Listens for SIGTERM, SIGINT and, if there is a path, on the `control` socket. `wake` is called
    /// after a request has been queued.
    pub fn listen(
        control: Option<&Path>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let wake: Wake = Arc::new(wake);
        let (queue, requests) = channel();
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        thread::spawn({
            let (queue, wake) = (queue.clone(), wake.clone());
            move || {
                for _ in signals.forever() {
                    if queue.send(Request::Stop(None)).is_err() {
                        return;
                    }
                    wake();
                }
            }
        });
        if let Some(path) = control {
            let listener = UnixListener::bind(path)?;
            thread::spawn(move || accept(&listener, &queue, &wake));
        }
        Ok(Self { requests, socket: control.map(Path::to_owned) })
    }

    /// The next request, if one is waiting.
    pub fn poll(&self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        if let Some(path) = &self.socket {
            let _gone = std::fs::remove_file(path);
        }
    }
}

fn accept(listener: &UnixListener, queue: &Sender<Request>, wake: &Wake) {
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let (queue, wake) = (queue.clone(), wake.clone());
        // An error is a client that has gone.
        thread::spawn(move || serve(client, &queue, &wake));
    }
}

fn serve(client: UnixStream, queue: &Sender<Request>, wake: &Wake) -> io::Result<()> {
    // A client that does not read must not hold up the run.
    client.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(client.try_clone()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = io::Read::take(&mut lines, LINE_BYTES);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let reply = Reply(client.try_clone()?);
        let request = match serde_json::from_slice(&line) {
            Ok(Line::Counters) => Request::Counters(reply),
            Ok(Line::Change { segment, change }) => Request::Change { segment, change, reply },
            Ok(Line::Until { at_ns }) => Request::Until { at_ns, reply },
            Ok(Line::Stop) => Request::Stop(Some(reply)),
            Err(error) => {
                reply.send(&json!({ "error": error.to_string() }));
                continue;
            }
        };
        if queue.send(request).is_err() {
            // The run has ended.
            return Ok(());
        }
        wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask_line(path: &Path, line: &str) -> Value {
        let mut client = UnixStream::connect(path).expect("the socket is there");
        client.write_all(line.as_bytes()).expect("it is read");
        let mut answer = String::new();
        BufReader::new(client).read_line(&mut answer).expect("it answers");
        serde_json::from_str(&answer).expect("in JSON")
    }

    #[test]
    fn requests_are_queued_and_answered() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control");
        let commands = Commands::listen(Some(&path), || {}).expect("nothing is in the way");
        let client = thread::spawn({
            let path = path.clone();
            move || ask_line(&path, "{\"command\":\"counters\"}\n")
        });
        let request = loop {
            if let Some(request) = commands.poll() {
                break request;
            }
            thread::yield_now();
        };
        let Request::Counters(reply) = request else { panic!("{request:?}") };
        reply.send(&json!({ "version": 1 }));
        assert_eq!(client.join().expect("answered"), json!({ "version": 1 }));
    }

    #[test]
    fn nonsense_is_answered_with_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control");
        let commands = Commands::listen(Some(&path), || {}).expect("nothing is in the way");
        for line in ["{\"command\":\"dance\"}\n", "hello\n", "{}\n"] {
            assert!(ask_line(&path, line)["error"].is_string());
        }
        assert!(commands.poll().is_none());
    }

    #[test]
    fn an_instant_to_stand_at_is_a_number_or_null() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control");
        let commands = Commands::listen(Some(&path), || {}).expect("nothing is in the way");
        for (line, expected) in [("7", Some(7)), ("null", None)] {
            let line = format!("{{\"command\":\"until\",\"at_ns\":{line}}}\n");
            let client = thread::spawn({
                let path = path.clone();
                move || ask_line(&path, &line)
            });
            let request = loop {
                if let Some(request) = commands.poll() {
                    break request;
                }
                thread::yield_now();
            };
            let Request::Until { at_ns, reply } = request else { panic!("{request:?}") };
            assert_eq!(at_ns, expected);
            reply.send(&json!({ "until_ns": at_ns }));
            assert_eq!(client.join().expect("answered"), json!({ "until_ns": expected }));
        }
        assert!(ask_line(&path, "{\"command\":\"until\",\"at_ns\":-1}\n")["error"].is_string());
    }

    #[test]
    fn the_socket_goes_with_the_run() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("control");
        drop(Commands::listen(Some(&path), || {}).expect("nothing is in the way"));
        assert!(!path.exists());
    }
}
