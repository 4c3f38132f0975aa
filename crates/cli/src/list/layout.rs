//! What every list takes, and its layout: aligned columns, and paragraphs under a heading.

use crate::output::{terminal_width, width};

#[derive(clap::Args)]
pub struct ListArgs {
    /// Show this one in full
    #[arg(value_name = "NAME|FILE")]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One line per row; all columns but the last are padded. In a terminal the last is wrapped; a pipe
/// gets whole lines, for `grep`.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    columns_in(terminal_width(), rows)
}

fn columns_in<const N: usize>(width: Option<usize>, rows: &[[String; N]]) -> String {
    let widest = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let padded: Vec<usize> = (0..N).map(|i| if i + 1 < N { widest(i) + 2 } else { 0 }).collect();
    let hanging = " ".repeat(padded.iter().sum());
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&padded).map(|(cell, &padded)| format!("{cell:padded$}"));
        let line = cells.collect::<String>();
        text += &match width {
            Some(width) => wrapped(line.trim_end(), width, "", &hanging),
            None => line.trim_end().to_owned() + "\n",
        };
    }
    text
}

fn wrapped(text: &str, width: usize, first: &str, hanging: &str) -> String {
    let options = textwrap::Options::new(width.max(60))
        .initial_indent(first)
        .subsequent_indent(hanging)
        .break_words(false);
    textwrap::fill(text, options) + "\n"
}

/// `label` with text beside it, after a blank at least, wrapped with a hanging indent.
pub fn entry(indent: usize, label: &str, value: &str) -> String {
    let first = format!("{}{:12}", " ".repeat(indent), format!("{label} "));
    let hanging = " ".repeat(first.chars().count());
    wrapped(value, width(), &first, &hanging)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_label_is_apart_from_its_text() {
        assert_eq!(entry(2, "demand", "even"), "  demand      even\n");
        assert_eq!(entry(0, "interference", "demand"), "interference demand\n");
    }

    #[test]
    fn a_terminal_gets_wrapped_rows_and_a_pipe_whole_ones() {
        let about = "word ".repeat(20);
        let rows = ["short", "the-longest"].map(|name| [name.into(), about.clone()]);
        let narrow = columns_in(Some(80), &rows);
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(narrow.contains("\n             word"), "{narrow}");
        assert_eq!(columns_in(None, &rows).lines().count(), 2);
        assert_eq!(columns_in(Some(200), &rows), columns_in(None, &rows));
    }
}
