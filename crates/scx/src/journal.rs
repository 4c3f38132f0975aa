//! Standard error as journald reads it: lines with their level, and without a time, which it adds.

use std::fmt;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Whether standard error is the stream that systemd has connected to journald.
pub fn logs_to_journal() -> bool {
    let stderr = std::fs::metadata("/proc/self/fd/2").map(|m| format!("{}:{}", m.dev(), m.ino()));
    std::env::var("JOURNAL_STREAM").is_ok_and(|stream| stderr.is_ok_and(|stderr| stderr == stream))
}

/// `<4>what is wrong`: the levels of syslog(3).
pub struct JournalLine;

impl<S, N> FormatEvent<S, N> for JournalLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        to.write_str(&leveled(level, &text))
    }
}

/// Writes an error to standard error.
pub fn complain(text: &str) {
    let text = if logs_to_journal() {
        leveled(3, text)
    } else {
        format!("{}\n", text.trim_end_matches('\n'))
    };
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Every line has its level: journald takes each for a message of its own.
fn leveled(level: u8, text: &str) -> String {
    text.lines().map(|line| format!("<{level}>{line}\n")).collect()
}

#[cfg(test)]
#[test]
fn every_line_has_its_level() {
    assert_eq!(leveled(4, "BEGIN\nat line 1\n"), "<4>BEGIN\n<4>at line 1\n");
}
