//! An error made safe for a terminal: text from files and arguments can neither drive the terminal
//! nor fill it.

use std::error::Error;
use std::fmt;

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};

/// Columns of a quoted line to show around the mark.
const LINE: usize = 200;
/// Lines of a file to show.
const LINES: usize = 20;
/// Longest run of non-blank characters in a sentence.
const WORD: usize = 300;
/// Longest message or help.
const SENTENCES: usize = 6000;

/// `text` with control characters escaped and excess length cut.
pub fn printable(text: &str) -> String {
    let mut out = String::new();
    for (i, word) in text.split(' ').enumerate() {
        if i > 0 {
            out.push(' ');
        }
        if out.len() > SENTENCES {
            out.push('…');
            break;
        }
        let cut = word.char_indices().nth(WORD).map_or(word, |(end, _)| &word[..end]);
        cut.chars().for_each(|c| push(&mut out, c));
        if cut.len() < word.len() {
            out.push('…');
        }
    }
    out
}

/// Appends a character, escaped if a terminal would obey it: controls except line ends and tabs,
/// and those that change the writing direction.
fn push(out: &mut String, c: char) {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if turns || (c.is_control() && c != '\n' && c != '\t') {
        out.extend(c.escape_unicode());
    } else {
        out.push(c);
    }
}

/// The printable form of an error.
#[derive(Debug)]
pub struct Shown {
    message: String,
    help: Option<String>,
    excerpt: Option<Excerpt>,
}

impl Shown {
    /// Escapes and shortens `error`.
    pub fn of(error: &dyn Diagnostic) -> Shown {
        Shown {
            message: printable(&error.to_string()),
            help: error.help().map(|help| printable(&help.to_string())),
            excerpt: Excerpt::of(error),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Shown {}

impl Diagnostic for Shown {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        let label = LabeledSpan::new_with_span(excerpt.label.clone(), excerpt.mark);
        Some(Box::new(std::iter::once(label)))
    }
}

/// The quoted lines around a mistake.
#[derive(Debug)]
struct Excerpt {
    file: String,
    /// Index of the first line, from 0.
    line: usize,
    /// Column of the mark in the file's own line, from 0.
    column: usize,
    text: String,
    mark: SourceSpan,
    label: Option<String>,
}

impl Excerpt {
    fn of(error: &dyn Diagnostic) -> Option<Excerpt> {
        let marked = error.labels()?.next()?;
        let lines = error.source_code()?.read_span(marked.inner(), 1, 1).ok()?;
        let from = marked.offset().checked_sub(lines.span().offset())?;
        let ends = [from, from + marked.len()];
        let mut moved = [None; 2];
        let (mut text, mut at, mut column) = (String::new(), 0, 0);
        let data = String::from_utf8_lossy(lines.data());
        for line in data.split_inclusive('\n').take(LINES) {
            let before = line.char_indices().take_while(|(i, _)| at + i < from).count();
            let here = (at..at + line.len()).contains(&from);
            if here {
                column = before;
            }
            let first = if here { before.saturating_sub(LINE / 2) } else { 0 };
            let end = line.trim_end_matches(['\n', '\r']).chars().count();
            if first > 0 {
                text.push('…');
            }
            for (n, (i, c)) in line.char_indices().enumerate().skip(first) {
                if n == first + LINE && n < end {
                    text.push('…');
                }
                if (n >= first + LINE && n < end) || (n >= end && c == '\r') {
                    continue;
                }
                for (end, moved) in ends.iter().zip(&mut moved) {
                    if at + i >= *end {
                        moved.get_or_insert(text.len());
                    }
                }
                push(&mut text, c);
            }
            at += line.len();
        }
        let [start, end] = moved.map(|place| place.unwrap_or(text.len()));
        Some(Excerpt {
            file: printable(lines.name().unwrap_or_default()),
            line: lines.line(),
            column,
            text,
            mark: (start, end - start).into(),
            label: marked.label().map(printable),
        })
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.text.read_span(span, before, after)?;
        // Without context lines, miette asks for the mark itself.
        let column = if before == 0 { self.column } else { read.column() };
        Ok(Box::new(MietteSpanContents::new_named(
            self.file.clone(),
            read.data(),
            *read.span(),
            self.line + read.line(),
            column,
            read.line_count(),
        )))
    }
}
