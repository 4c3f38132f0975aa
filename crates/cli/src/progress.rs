//! A bar on a terminal, silence in a pipe.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// How far a run is.
pub struct Progress(ProgressBar);

impl Progress {
    /// Starts a bar if standard error is a terminal.
    pub fn new() -> Progress {
        Progress::labelled("")
    }

    /// The same with a word before it that says what is under way.
    pub fn labelled(label: &'static str) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let template = "{prefix}{wide_bar} {pos}/{len} runs, {elapsed} of about {duration}";
        let style = ProgressStyle::with_template(template).expect("the template is constant");
        Progress(ProgressBar::new(0).with_style(style).with_prefix(label))
    }

    /// A bar of milliseconds that pass.
    pub fn of_time() -> Progress {
        if !io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("{wide_bar} {elapsed}, {eta} left");
        Progress(ProgressBar::new(0).with_style(style.expect("the template is constant")))
    }

    /// `done` of `total` runs are finished, and `total` may change; told by any thread, in any order.
    pub fn tell(&self, done: usize, total: usize) {
        self.0.set_length(total as u64);
        if done as u64 > self.0.position() {
            self.0.set_position(done as u64);
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
