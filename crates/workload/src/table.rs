//! Reads TOML tables key by key, so that every complaint has the line of the key
//! it is about and the nearest name that would have been right.

use std::ops::Range;

use reveille_place::{Mistake, Source};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Result, WorkloadError};

/// A table of a workload file and where it stands.
pub(crate) struct Table<'a> {
    pub(crate) source: &'a Source,
    pub(crate) span: Range<usize>,
    table: &'a DeTable<'a>,
}

/// A key's value and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) source: &'a Source,
    pub(crate) key: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Table<'a> {
    pub(crate) fn document(source: &'a Source, document: &'a Spanned<DeTable<'a>>) -> Self {
        Table { source, span: 0..0, table: document.get_ref() }
    }

    /// Refuses keys that are none of `known`; `what` names this kind of table.
    pub(crate) fn only(&self, what: &str, known: &[&'static str]) -> Result<()> {
        for (key, _) in self.table.iter() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let mistake =
                    Mistake::unknown(&format!("key of {what}"), name, known.iter().copied());
                return Err(self.source.error(&key.span(), None, mistake));
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, key: &str) -> Option<Entry<'a>> {
        let (key, value) = self.table.iter().find(|(k, _)| k.get_ref() == key)?;
        Some(Entry { source: self.source, key: key.get_ref(), value })
    }

    /// The value of a key that must be there; `example` shows what to write.
    pub(crate) fn require(&self, key: &str, example: &str) -> Result<Entry<'a>> {
        self.get(key).ok_or_else(|| {
            let mistake = Mistake::new("is missing", format!("add `{key} = {example}`"));
            self.source.error(&self.span, Some(key), mistake)
        })
    }

    pub(crate) fn entries(&self) -> Vec<(Range<usize>, Entry<'a>)> {
        let mut all: Vec<_> = self
            .table
            .iter()
            .map(|(k, value)| (k.span(), Entry { source: self.source, key: k.get_ref(), value }))
            .collect();
        all.sort_by_key(|(span, _)| span.start);
        all
    }
}

impl<'a> Entry<'a> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// Refuses more than an operation can count: channels, lists and roles are numbered in 16 bits.
    pub(crate) fn few(self, n: usize) -> Result<()> {
        if n <= usize::from(u16::MAX) {
            return Ok(());
        }
        let problem = format!("has {n} members");
        Err(self.error(Mistake::new(problem, "at most 65535 are possible in one instance")))
    }

    pub(crate) fn error(&self, mistake: Mistake) -> WorkloadError {
        self.source.error(&self.span(), Some(self.key), mistake)
    }

    fn wrong(&self, wanted: &str, example: &str) -> WorkloadError {
        self.error(Mistake::new(
            format!("is not {wanted}"),
            format!("write it as `{} = {example}`", self.key),
        ))
    }

    /// A string with more than blanks in it.
    pub(crate) fn text(&self, example: &str) -> Result<&'a str> {
        match self.value.get_ref() {
            DeValue::String(s) if !s.trim().is_empty() => Ok(s),
            _ => Err(self.wrong("a text", example)),
        }
    }

    /// `true`; `false` is refused, because leaving the key out says that.
    pub(crate) fn yes(&self) -> Result<()> {
        match self.value.get_ref() {
            DeValue::Boolean(true) => Ok(()),
            _ => Err(self.wrong("`true`", "true")),
        }
    }

    pub(crate) fn is_boolean(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Boolean(_))
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }

    /// A number or a text as it would be written for a parameter.
    pub(crate) fn scalar(&self, example: &str) -> Result<String> {
        match self.value.get_ref() {
            DeValue::String(s) => Ok(s.trim().to_owned()),
            DeValue::Integer(i) if i.radix() == 10 => Ok(i.as_str().to_owned()),
            DeValue::Float(f) => Ok(f.as_str().to_owned()),
            _ => Err(self.wrong("a number or a text", example)),
        }
    }

    /// A fraction strictly between 0 and 1.
    pub(crate) fn fraction(&self, example: &str) -> Result<f64> {
        let value = match self.value.get_ref() {
            DeValue::Float(f) => f.as_str().replace('_', "").parse().unwrap_or(f64::NAN),
            _ => f64::NAN,
        };
        if value > 0.0 && value < 1.0 {
            return Ok(value);
        }
        Err(self.wrong("a number between 0 and 1", example))
    }

    pub(crate) fn array(&self, example: &str) -> Result<Vec<Entry<'a>>> {
        match self.value.get_ref() {
            DeValue::Array(items) => Ok(items
                .iter()
                .map(|value| Entry { source: self.source, key: self.key, value })
                .collect()),
            _ => Err(self.wrong("an array", example)),
        }
    }

    pub(crate) fn table(&self, example: &str) -> Result<Table<'a>> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(Table { source: self.source, span: self.span(), table }),
            _ => Err(self.wrong("a table", example)),
        }
    }
}
