// SPDX-License-Identifier: Apache-2.0
//! What the fabric reports to the harness on stdout, one JSON object a line.

use std::io::{self, Write};

use serde::Serialize;

/// A line on stdout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event<'a> {
    /// The fabric serves.
    Listening,
    /// A machine has run its job.
    Done {
        /// Its name.
        machine: &'a str,
        /// 0 is success.
        status: u8,
        /// On the run's axis.
        at_ns: u64,
    },
    /// Every machine stands where it had to, and the captures have all that the fabric has worked on.
    Stands {
        /// On the run's axis.
        at_ns: u64,
    },
    /// The run is over and everything is written.
    Finished {
        /// How long the run was on its own axis.
        virtual_ns: u64,
        /// The machines that were not done at the deadline.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        late: Vec<&'a str>,
    },
}

impl Event<'_> {
    /// Writes the line at once. An error means that no process reads stdout.
    pub fn emit(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(self.line().as_bytes())?;
        out.flush()
    }

    fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("strings and numbers always serialise");
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_contract() {
        assert_eq!(Event::Listening.line(), "{\"event\":\"listening\"}\n");
        assert_eq!(
            Event::Done { machine: "client", status: 0, at_ns: 7 }.line(),
            "{\"event\":\"done\",\"machine\":\"client\",\"status\":0,\"at_ns\":7}\n"
        );
        assert_eq!(Event::Stands { at_ns: 7 }.line(), "{\"event\":\"stands\",\"at_ns\":7}\n");
        assert_eq!(
            Event::Finished { virtual_ns: 9, late: vec![] }.line(),
            "{\"event\":\"finished\",\"virtual_ns\":9}\n"
        );
        assert_eq!(
            Event::Finished { virtual_ns: 9, late: vec!["a"] }.line(),
            "{\"event\":\"finished\",\"virtual_ns\":9,\"late\":[\"a\"]}\n"
        );
    }
}
