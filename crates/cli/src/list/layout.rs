//! What every list takes, and its layout: aligned columns, and paragraphs under a heading.

use std::fmt::Write;

use crate::output::width;

#[derive(clap::Args)]
pub struct ListArgs {
    /// Show this one in full; a machine, workload or study may be a file of your own
    #[arg(value_name = "NAME|FILE")]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One line per row; all columns but the last are padded.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (i, cell) in row.iter().enumerate() {
            let widest = rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
            let padded = if i + 1 < N { widest + 2 } else { 0 };
            let _ = write!(line, "{cell:padded$}");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// `label` with text beside it, wrapped with a hanging indent.
pub fn entry(indent: usize, label: &str, value: &str) -> String {
    let first = format!("{}{label:12}", " ".repeat(indent));
    let hanging = " ".repeat(indent + label.chars().count().max(12));
    let options = textwrap::Options::new(width().max(60))
        .initial_indent(&first)
        .subsequent_indent(&hanging)
        .break_words(false);
    textwrap::fill(value, options) + "\n"
}
