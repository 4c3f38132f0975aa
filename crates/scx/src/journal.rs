//! Standard error as journald reads it: lines with their level, and without a time, which it adds.

use std::fmt;
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
        write!(to, "<{level}>")?;
        context.format_fields(to.by_ref(), event)?;
        writeln!(to)
    }
}
