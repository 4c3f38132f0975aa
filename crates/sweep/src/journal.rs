//! Finished cells on disk while a sweep runs: one line each, behind its checksum. A process that
//! is killed leaves at most one torn line at the end, which is dropped.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use reveille_measure::Ns;
use reveille_place::{InputError, InputKind, Mistake, read_input};
use serde::{Deserialize, Serialize};

use crate::design::{CellId, digest};
use crate::error::SweepError;

/// What running a cell led to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// By metric of the workload.
    Ran(Vec<MetricRuns>),
    /// Why there are no figures.
    Failed(String),
}

/// [`Runs`](reveille_study::Runs) of a metric, where numbers that are not finite are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricRuns {
    pub samples: Vec<Option<f64>>,
    pub enough_ns: Option<Ns>,
    pub migrations_per_wakeup: Option<f64>,
}

/// By cell.
pub type Outcomes = HashMap<CellId, Outcome>;

#[derive(Serialize, Deserialize)]
enum Record {
    /// The first line: which sweep, and which part of it.
    Sweep { sweep: String, shard: String },
    /// A policy file may end the process from here on; `alone` if nothing else runs meanwhile.
    Begun { cell: CellId, alone: bool },
    /// A cell is finished.
    Cell { cell: CellId, outcome: Outcome },
}

pub struct Journal {
    path: PathBuf,
    file: File,
}

#[derive(Default)]
pub struct Known {
    pub outcomes: Outcomes,
    /// Cells that were begun and did not finish; a policy file may have ended the process.
    pub suspects: Vec<CellId>,
    /// Bytes at its end that are no whole record.
    pub torn: usize,
}

impl Journal {
    /// Opens the journal of part `shard` of a sweep, or begins one. What is torn at its end is
    /// cut off.
    ///
    /// # Errors
    /// It cannot be read or written; it is that of another sweep or shard.
    pub fn open(path: &Path, sweep: &str, shard: &str) -> Result<(Journal, Known), SweepError> {
        let failed = |error| SweepError::Journal { path: path.to_owned(), error };
        let bytes = bytes(path)?;
        let (records, whole) = records(&bytes);
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        file.set_len(whole as u64).map_err(failed)?;
        let journal = Journal { path: path.to_owned(), file };
        let mut known = Known { torn: bytes.len() - whole, ..Known::default() };
        match records.first() {
            None => {
                let (sweep, shard) = (sweep.to_owned(), shard.to_owned());
                journal.append(&[Record::Sweep { sweep, shard }])?;
            }
            Some(Record::Sweep { sweep: s, shard: i }) if s == sweep && i == shard => {}
            Some(_) => {
                let problem =
                    "is the journal of another sweep, of another model or of another shard";
                let help = "name another output, or start over with --force";
                return Err(Mistake::new(problem, help).in_file(path.display().to_string()));
            }
        }
        for record in records {
            match record {
                Record::Sweep { .. } => {}
                Record::Begun { cell, .. } => known.suspects.push(cell),
                Record::Cell { cell, outcome } => {
                    known.outcomes.insert(cell, outcome);
                }
            }
        }
        known.suspects.retain(|cell| !known.outcomes.contains_key(cell));
        Ok((journal, known))
    }

    /// Keeps that a cell is begun whose policy file may end the process.
    pub(crate) fn begun(&self, cell: &CellId, alone: bool) -> Result<(), SweepError> {
        self.append(&[Record::Begun { cell: cell.clone(), alone }])
    }

    /// Keeps finished cells.
    pub(crate) fn finished(&self, cells: &[(CellId, Outcome)]) -> Result<(), SweepError> {
        let record = |(cell, outcome): &(CellId, Outcome)| Record::Cell {
            cell: cell.clone(),
            outcome: outcome.clone(),
        };
        self.append(&cells.iter().map(record).collect::<Vec<_>>())
    }

    /// In one write, so that threads do not mix their lines.
    fn append(&self, records: &[Record]) -> Result<(), SweepError> {
        let failed = |error| SweepError::Journal { path: self.path.clone(), error };
        let mut lines = String::new();
        for record in records {
            let text = serde_json::to_string(record).map_err(|e| failed(io::Error::other(e)))?;
            lines += &format!("{} {text}\n", digest(text.as_bytes()));
        }
        (&self.file).write_all(lines.as_bytes()).map_err(failed)
    }
}

/// The process of a sweep was ended by a policy file, for this `reason`. The cell that was running
/// alone is noted as failed. `false` if no cell was begun, so that another attempt ends likewise.
pub fn crashed(path: &Path, reason: &str) -> Result<bool, SweepError> {
    let bytes = bytes(path)?;
    let (records, _) = records(&bytes);
    let begun = records.iter().rev().find_map(|record| match record {
        Record::Begun { cell, alone } => Some((cell.clone(), *alone)),
        _ => None,
    });
    let finished = |id: &CellId| {
        records.iter().any(|record| matches!(record, Record::Cell { cell, .. } if cell == id))
    };
    let (sweep, shard) = match records.first() {
        Some(Record::Sweep { sweep, shard }) => (sweep, shard),
        _ => return Ok(false),
    };
    let (journal, known) = Journal::open(path, sweep, shard)?;
    match begun {
        Some((cell, true)) if !finished(&cell) => {
            journal.finished(&[(cell, Outcome::Failed(reason.to_owned()))])?;
            Ok(true)
        }
        _ => Ok(!known.suspects.is_empty()),
    }
}

/// Nothing if there is no journal.
fn bytes(path: &Path) -> Result<Vec<u8>, SweepError> {
    match read_input(path, InputKind::RECORDING) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            Err(InputError::unreadable(path, error, "remove it, or name another output").into())
        }
    }
}

/// The whole records from the beginning on, and how many bytes they take.
fn records(bytes: &[u8]) -> (Vec<Record>, usize) {
    let (mut records, mut whole) = (Vec::new(), 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").and_then(|line| line.split_at_checked(17));
        let record = text.and_then(|(sum, text)| {
            let right = sum[16] == b' ' && digest(text).as_bytes() == &sum[..16];
            right.then(|| serde_json::from_slice(text).ok()).flatten()
        });
        let Some(record) = record else { break };
        records.push(record);
        whole += line.len();
    }
    (records, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, value: f64) -> (CellId, Outcome) {
        let samples = vec![Some(value), None];
        (name.to_owned(), Outcome::Ran(vec![MetricRuns { samples, ..MetricRuns::default() }]))
    }

    #[test]
    fn what_is_torn_or_changed_is_dropped_and_the_rest_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.journal");
        let open = || Journal::open(&path, "s", "1/1");
        let (journal, _) = open().unwrap();
        journal.finished(&[cell("a", 0.1 + 0.2), cell("b", f64::MIN_POSITIVE)]).unwrap();
        let all = std::fs::read(&path).unwrap();
        let first = all.iter().position(|b| *b == b'\n').unwrap() + 1;
        let second = first + all[first..].iter().position(|b| *b == b'\n').unwrap() + 1;
        for length in 0..all.len() {
            std::fs::write(&path, &all[..length]).unwrap();
            let (_, known) = open().unwrap();
            assert_eq!(known.outcomes.len(), usize::from(length >= second), "{length}");
        }
        for place in first..all.len() {
            let mut damaged = all.clone();
            damaged[place] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let (_, known) = open().unwrap();
            assert_eq!(known.outcomes.len(), usize::from(place >= second), "{place}");
            assert!(known.torn > 0);
        }
        std::fs::write(&path, &all).unwrap();
        let (_, known) = open().unwrap();
        assert_eq!(known.outcomes["a"], cell("a", 0.1 + 0.2).1);
        let other = Journal::open(&path, "t", "1/1").err().unwrap();
        assert!(other.to_string().contains("another sweep"), "{other}");
    }

    #[test]
    fn the_cell_that_ran_alone_is_the_one_that_failed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.journal");
        assert!(!crashed(&path, "SIGSEGV").unwrap());
        let (journal, _) = Journal::open(&path, "s", "1/1").unwrap();
        assert!(!crashed(&path, "SIGSEGV").unwrap());
        journal.begun(&"a".to_owned(), false).unwrap();
        journal.begun(&"b".to_owned(), false).unwrap();
        assert!(crashed(&path, "SIGSEGV").unwrap());
        let (journal, known) = Journal::open(&path, "s", "1/1").unwrap();
        assert_eq!(known.suspects, ["a", "b"]);
        journal.begun(&"a".to_owned(), true).unwrap();
        assert!(crashed(&path, "SIGSEGV").unwrap());
        let (_, known) = Journal::open(&path, "s", "1/1").unwrap();
        assert_eq!(known.outcomes["a"], Outcome::Failed("SIGSEGV".to_owned()));
        assert_eq!(known.suspects, ["b"]);
    }
}
