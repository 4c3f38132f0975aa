//! Progress: a bar on a terminal, and a line every few seconds elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(10);

/// A bar, lines, or nothing.
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Lines>,
}

/// Lines for a standard error that is not a terminal, such as a job's log.
struct Lines {
    label: &'static str,
    what: &'static str,
    begun: Instant,
    /// When the next line is due, since the start.
    due: Mutex<Duration>,
}

impl Lines {
    /// The line that is due at `after` since the start, if one is.
    fn due(&self, after: Duration, done: u64, total: u64) -> Option<String> {
        let mut due = self.due.lock().ok().filter(|due| **due <= after)?;
        *due = after + EVERY;
        let Lines { label, what, .. } = self;
        Some(format!("{label}{done} of about {total} {what}, {} s", after.as_secs()))
    }
}

impl Progress {
    /// Starts to report on standard error.
    pub fn new() -> Progress {
        Progress::labelled("")
    }

    /// As [`Progress::new`], with a label.
    pub fn labelled(label: &'static str) -> Progress {
        let template = "{prefix}{wide_bar} {pos}/{len} runs, {elapsed} of about {duration}";
        Progress::counting(label, "runs", template)
    }

    /// As [`Progress::new`], counting `what`: cells of a sweep, containers of a fleet.
    pub fn of(what: &'static str) -> Progress {
        let template = format!("{{wide_bar}} {{pos}}/{{len}} {what}, {{elapsed}}, {{eta}} left");
        Progress::counting("", what, &template)
    }

    fn counting(label: &'static str, what: &'static str, template: &str) -> Progress {
        if !io::stderr().is_terminal() {
            let lines = Lines { label, what, begun: Instant::now(), due: Mutex::new(EVERY) };
            return Progress { bar: ProgressBar::hidden(), lines: Some(lines) };
        }
        let style = ProgressStyle::with_template(template).expect("the template is constant");
        let bar = ProgressBar::new(0).with_style(style).with_prefix(label);
        Progress { bar, lines: None }
    }

    /// A bar over milliseconds; nothing where there is no terminal.
    pub fn of_time() -> Progress {
        if !io::stderr().is_terminal() {
            return Progress { bar: ProgressBar::hidden(), lines: None };
        }
        let style = ProgressStyle::with_template("{wide_bar} {elapsed}, {eta} left");
        let bar = ProgressBar::new(0).with_style(style.expect("the template is constant"));
        Progress { bar, lines: None }
    }

    /// Reports `done` of `total` runs. `total` may change; any thread may call, in any order.
    pub fn tell(&self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        if done as u64 > self.bar.position() {
            self.bar.set_position(done as u64);
        }
        let Some(lines) = &self.lines else { return };
        if let Some(line) = lines.due(lines.begun.elapsed(), self.bar.position(), total as u64) {
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_every_ten_seconds() {
        let due = Mutex::new(EVERY);
        let lines = Lines { label: "verify ", what: "runs", begun: Instant::now(), due };
        let at = |seconds, done| lines.due(Duration::from_secs(seconds), done, 2000);
        assert_eq!(at(9, 100), None);
        assert_eq!(at(12, 150).as_deref(), Some("verify 150 of about 2000 runs, 12 s"));
        assert_eq!(at(21, 200), None);
        assert_eq!(at(22, 210).as_deref(), Some("verify 210 of about 2000 runs, 22 s"));
    }
}
