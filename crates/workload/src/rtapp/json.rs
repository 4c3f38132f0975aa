//! Walks JSON as rt-app writes it, so that every complaint has the line and the path of
//! the value it is about: comments, trailing commas, and events that repeat a key.

use std::ops::Range;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use reveille_place::{Mistake, Source};

use crate::error::{Result, WorkloadError};

/// A value, where it stands, and the keys that lead to it: `tasks.thread0.run`.
#[derive(Clone)]
pub(super) struct Node<'a> {
    pub(super) path: String,
    source: &'a Source,
    value: &'a Value<'a>,
    span: Range<usize>,
}

/// A [`Node`]'s position, for mistakes that only show in the whole file.
pub(super) struct Place {
    path: String,
    span: Range<usize>,
}

/// Calls `read` with the document's outermost object.
pub(super) fn document<T>(source: &Source, read: impl FnOnce(&Node) -> Result<T>) -> Result<T> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_missing_commas: true,
        allow_loose_object_property_names: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(&source.text, &CollectOptions::default(), &options);
    let parsed = parsed.map_err(|error| {
        let range = error.range();
        let help = "mend the JSON: a value after each key; comments and extra commas are fine";
        let mistake = Mistake::new(format!("is no JSON: {}", error.kind()), help);
        source.error::<WorkloadError>(&(range.start..range.end), None, mistake)
    })?;
    let Some(value) = &parsed.value else {
        let help = "write `{ \"tasks\": { \"thread0\": { \"run\": 1000, \"sleep\": 9000 } } }`";
        return Err(source.error(&(0..0), None, Mistake::new("the file is empty", help)));
    };
    let start = value.start();
    read(&Node { path: String::new(), source, value, span: start..start + 1 })
}

impl<'a> Node<'a> {
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(super) fn error(&self, mistake: Mistake) -> WorkloadError {
        self.source.error(&self.span(), Some(self.path.as_str()).filter(|p| !p.is_empty()), mistake)
    }

    pub(super) fn place(&self) -> Place {
        Place { path: self.path.clone(), span: self.span() }
    }

    /// A mistake at `place` in this file.
    pub(super) fn error_at(&self, place: &Place, mistake: Mistake) -> WorkloadError {
        self.source.error(&place.span, Some(&place.path), mistake)
    }

    /// This value is wrong, and that is how.
    pub(super) fn wrong(&self, problem: impl Into<String>, help: &str) -> WorkloadError {
        self.error(Mistake::new(problem, help))
    }

    fn object(&self) -> Result<&'a Object<'a>> {
        match self.value {
            Value::Object(object) => Ok(object),
            _ => Err(self.wrong("is not an object", "write it as { \"key\": value }")),
        }
    }

    /// Keys and values of an object in the order of the file; a key can come twice.
    pub(super) fn members(&self) -> Result<Vec<(&'a str, Node<'a>)>> {
        let member = |property: &'a jsonc_parser::ast::ObjectProp<'a>| {
            let key = property.name.as_str();
            let path = match self.path.as_str() {
                "" => key.to_owned(),
                path => format!("{path}.{key}"),
            };
            let (source, value) = (self.source, &property.value);
            let range = match value {
                Value::Object(_) => property.name.range(),
                value => value.range(),
            };
            (key, Node { path, source, value, span: range.start..range.end })
        };
        Ok(self.object()?.properties.iter().map(member).collect())
    }

    /// [`Node::members`] of an object whose keys are names: nonempty and unique.
    pub(super) fn named(&self) -> Result<Vec<(&'a str, Node<'a>)>> {
        let members = self.members()?;
        for (index, (key, node)) in members.iter().enumerate() {
            if key.trim().is_empty() {
                return Err(node.wrong("has no name", "give it one"));
            }
            if members[..index].iter().any(|(earlier, _)| earlier == key) {
                let help = "give each its own name: rt-app would keep only the last";
                return Err(node.wrong("stands here twice", help));
            }
        }
        Ok(members)
    }

    /// A string with more than blanks in it.
    pub(super) fn text(&self) -> Result<&'a str> {
        match self.value {
            Value::StringLit(text) if !text.value.trim().is_empty() => Ok(&text.value),
            _ => Err(self.wrong("is not a text", "write it in quotes: \"name\"")),
        }
    }

    /// Is the value a string of blanks, or of nothing?
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.value, Value::StringLit(text) if text.value.trim().is_empty())
    }

    /// A whole number from `least` to `most`.
    pub(super) fn integer(&self, least: i64, most: i64) -> Result<i64> {
        let number = match self.value {
            Value::NumberLit(number) => number.value.parse::<i64>().ok(),
            _ => None,
        };
        let Some(number) = number else {
            return Err(self.wrong("is not a whole number", "write it without quotes or point"));
        };
        if number < least {
            let help = format!("the least possible here is {least}");
            return Err(self.error(Mistake::new(format!("is {number}: too small"), help)));
        }
        if number > most {
            let help = format!("the most possible here is {most}");
            return Err(self.error(Mistake::new(format!("is {number}: too large"), help)));
        }
        Ok(number)
    }
}
