//! Parts of a sweep become one table, the same bytes as of one run.

use std::collections::HashSet;

use reveille_measure::Shard;
use reveille_place::{InputError, Mistake};

use crate::design::CellId;
use crate::error::SweepError;
use crate::parquet_file::Finished;
use crate::run::cells;
use crate::table::{Table, Values};

/// Joins the parts of a sweep, each given with its file's name. A cell may be in several parts.
///
/// # Errors
/// A part belongs to another sweep; a cell has other figures in another part; cells are missing.
pub fn merge(parts: Vec<(String, Finished)>) -> Result<Finished, SweepError> {
    let Some((first_file, first)) = parts.first() else {
        let mistake = Mistake::new("there is nothing to merge", "name the parts");
        return Err(InputError::Option { option: "merge", mistake }.into());
    };
    let (first_file, design) = (first_file.clone(), first.design.clone());
    let mut table = Table::empty(&design);
    let mut shards = Vec::new();
    let mut files: Vec<(usize, String)> = Vec::new();
    for (file, part) in parts {
        if part.design != design {
            let what = if part.design.model == design.model { "spec" } else { "model" };
            let problem = format!("belongs to another sweep than {first_file}: its {what} differs");
            let help = "merge parts of one spec, run by the same reveille";
            return Err(Mistake::new(problem, help).in_file(file));
        }
        shards.push(part.shard);
        for (column, more) in table.columns.iter_mut().zip(part.table.columns) {
            column.values.append(more.values);
        }
        files.push((table.rows(), file));
    }
    let (ids, metrics) = (table.texts("cell"), table.texts("metric"));
    let mut rows: Vec<usize> = (0..table.rows()).collect();
    rows.sort_by_key(|&row| (&ids[row], &metrics[row]));
    let key = |row: usize| (&ids[row], &metrics[row]);
    let same = |a: usize, b: usize| {
        table.columns.iter().all(|column| match &column.values {
            Values::Text(values) => values[a] == values[b],
            Values::Whole(values) => values[a] == values[b],
            Values::Number(values) => values[a].map(f64::to_bits) == values[b].map(f64::to_bits),
        })
    };
    if let Some(pair) = rows.windows(2).find(|p| key(p[0]) == key(p[1]) && !same(p[0], p[1])) {
        let file = files.iter().find(|(end, _)| pair[1] < *end).map(|(_, file)| file.clone());
        let cell = ids[pair[0]].clone().unwrap_or_default();
        let problem = format!("cell {cell} has other figures than in another part");
        let help = "run both parts again; if they still differ, report it";
        return Err(Mistake::new(problem, help).in_file(file.unwrap_or_default()));
    }
    rows.dedup_by(|later, first| key(*later) == key(*first));
    let found: HashSet<&str> = ids.iter().flatten().map(String::as_str).collect();
    let points = design.points();
    let all: Vec<_> = cells(&design, &points, Shard::WHOLE).collect();
    let missing = |id: &CellId| !found.contains(id.as_str());
    if let Some((_, _, cell)) = all.iter().find(|(id, ..)| missing(id)) {
        return Err(SweepError::Missing {
            missing: all.iter().filter(|(id, ..)| missing(id)).count(),
            cells: all.len(),
            shards: missing_shards(&shards),
            example: design.words(*cell),
        });
    }
    let known: HashSet<&str> = all.iter().map(|(id, ..)| id.as_str()).collect();
    if let Some(stranger) = found.iter().find(|id| !known.contains(**id)) {
        let problem = format!("cell {stranger} is none of the sweep's");
        return Err(Mistake::new(problem, "run the part again").in_file(first_file));
    }
    let pick = |values: &Values| values.pick(&rows);
    let picked: Vec<Values> = table.columns.iter().map(|column| pick(&column.values)).collect();
    for (column, values) in table.columns.iter_mut().zip(picked) {
        column.values = values;
    }
    Ok(Finished { design, shard: Shard::WHOLE, table })
}

/// The shards that none of the parts is, if all are of the same number.
fn missing_shards(shards: &[Shard]) -> String {
    let of = shards.first().map_or(1, |shard| shard.of);
    if of == 1 || shards.iter().any(|shard| shard.of != of) {
        return String::new();
    }
    let missing = (1..=of).filter(|i| !shards.iter().any(|shard| shard.index == *i));
    let names: Vec<String> = missing.map(|i| format!("{i}/{of}")).collect();
    match names.len() {
        1 => format!(", shard {}", names[0]),
        2..=8 => format!(", shards {}", names.join(" ")),
        n => format!(", {n} of {of} shards"),
    }
}
