//! A bar on a terminal, silence in a pipe.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// How far a run is.
pub struct Progress(ProgressBar);

impl Progress {
    /// Starts a bar if standard error is a terminal.
    pub fn new() -> Progress {
        if !io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let template = "{wide_bar} {pos}/{len} runs, {elapsed} of about {duration}";
        let style = ProgressStyle::with_template(template).expect("the template is constant");
        Progress(ProgressBar::new(0).with_style(style))
    }

    /// `done` of `total` runs are finished; told by any thread, in any order.
    pub fn tell(&self, done: usize, total: usize) {
        if done == 0 {
            self.0.set_length(total as u64);
        } else {
            self.0.inc(1);
        }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}
