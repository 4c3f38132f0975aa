//! The result: a row per cell and metric, ordered by cell, then metric.

use reveille_measure::statistics::{mean, std};
use reveille_measure::{Direction, Shard, at_least_text, duration_text};
use reveille_study::{Change, Runs, nothing};

use crate::design::{Cell, Design, MetricPart};
use crate::journal::{MetricRuns, Outcome, Outcomes};
use crate::run::cells;

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub values: Values,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Text(Vec<Option<String>>),
    /// 64 bits.
    Whole(Vec<Option<i64>>),
    /// 64 bits, finite.
    Number(Vec<Option<f64>>),
}

/// Columns of the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// In the order of the file.
    pub columns: Vec<Column>,
}

/// Columns before those of the constants: text, except where [`WHOLE`] says so.
const BEFORE: [&str; 9] =
    ["cell", "point", "machine", "cpus", "base", "edits", "workload", "load", "load_given"];
/// Columns behind those of the constants.
const BEHIND: [&str; 14] = [
    "seed",
    "metric",
    "unit",
    "direction",
    "value",
    "std",
    "baseline",
    "baseline_std",
    "change_pct",
    "uncorrected_change_pct",
    "p_value",
    "too_few",
    "enough_ns",
    "error",
];
const WHOLE: [&str; 5] = ["cpus", "load", "seed", "too_few", "enough_ns"];
const NUMBERS: [&str; 7] =
    ["value", "std", "baseline", "baseline_std", "change_pct", "uncorrected_change_pct", "p_value"];

impl Values {
    pub fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Number(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a row as text; empty if there is none.
    pub fn text(&self, row: usize) -> String {
        match self {
            Values::Text(values) => values[row].clone(),
            Values::Whole(values) => values[row].map(|value| value.to_string()),
            Values::Number(values) => values[row].map(|value| value.to_string()),
        }
        .unwrap_or_default()
    }

    pub(crate) fn pick(&self, rows: &[usize]) -> Values {
        match self {
            Values::Text(values) => Values::Text(rows.iter().map(|&r| values[r].clone()).collect()),
            Values::Whole(values) => Values::Whole(rows.iter().map(|&r| values[r]).collect()),
            Values::Number(values) => Values::Number(rows.iter().map(|&r| values[r]).collect()),
        }
    }

    pub(crate) fn append(&mut self, other: Values) {
        match (self, other) {
            (Values::Text(values), Values::Text(more)) => values.extend(more),
            (Values::Whole(values), Values::Whole(more)) => values.extend(more),
            (Values::Number(values), Values::Number(more)) => values.extend(more),
            // Columns of one design have the same kinds.
            _ => {}
        }
    }
}

impl Table {
    /// No rows, with the columns of a design.
    pub(crate) fn empty(design: &Design) -> Table {
        let constants = design.constants.iter().map(|constant| constant.key.as_str());
        let column = |name: &str, number: bool| Column {
            name: name.to_owned(),
            values: if number || NUMBERS.contains(&name) {
                Values::Number(Vec::new())
            } else if WHOLE.contains(&name) {
                Values::Whole(Vec::new())
            } else {
                Values::Text(Vec::new())
            },
        };
        let before = BEFORE.iter().map(|name| column(name, false));
        let behind = BEHIND.iter().map(|name| column(name, false));
        Table {
            columns: before.chain(constants.map(|key| column(key, true))).chain(behind).collect(),
        }
    }

    /// The rows of a shard whose cells all have an outcome.
    pub fn new(design: &Design, shard: Shard, outcomes: &Outcomes) -> Table {
        let points = design.points();
        let mut cells: Vec<_> = cells(design, &points, shard).collect();
        cells.sort_by(|a, b| a.0.cmp(&b.0));
        let mut table = Table::empty(design);
        for (id, point, cell) in cells {
            let baseline = design.cell_id(point, 0);
            let pair = [outcomes.get(&id), outcomes.get(&baseline).filter(|_| cell.edit > 0)];
            let metrics = &design.workloads[cell.point.workload].metrics;
            let mut order: Vec<usize> = (0..metrics.len()).collect();
            order.sort_by_key(|m| &metrics[*m].name);
            for m in order {
                table.row(design, [&id, point], cell, &metrics[m], (m, pair));
            }
        }
        table
    }

    fn row(
        &mut self,
        design: &Design,
        [id, point_id]: [&str; 2],
        Cell { point, edit }: Cell<'_>,
        metric: &MetricPart,
        (m, outcomes): (usize, [Option<&Outcome>; 2]),
    ) {
        let machine = &design.machines[point.machine];
        let workload = &design.workloads[point.workload];
        let direction = direction(metric);
        let [own, base] = outcomes.map(|outcome| runs(outcome, m));
        let change =
            own.as_ref().zip(base.as_ref()).map(|(own, base)| Change::of(direction, [base, own]));
        let enough_ns = [&own, &base].into_iter().flatten().filter_map(|runs| runs.enough_ns).max();
        let means = [own.as_ref(), base.as_ref().or(own.as_ref())]
            .map(|side| side.map(|runs| mean(&runs.samples)));
        let [own_did_nothing, base_did_nothing] =
            means.map(|mean| mean.is_some_and(|mean| nothing(direction, mean)));
        let empty = means.into_iter().flatten().any(f64::is_nan);
        let (too_few, error) = match (outcomes[0], enough_ns) {
            (Some(Outcome::Failed(reason)), _) => (None, Some(reason.clone())),
            (_, Some(ns)) => {
                let enough = at_least_text(ns);
                (Some(1), Some(format!("too few samples: use a duration of at least {enough}")))
            }
            _ if empty || base_did_nothing => {
                let duration = duration_text(workload.duration_ns as f64);
                let problem = format!("too few operations: some run of {duration} finishes none");
                (Some(1), Some(format!("{problem}; use a longer duration")))
            }
            _ => (None, None),
        };
        // As `compare` has it, of both sides.
        let told = enough_ns.is_none() && !(own_did_nothing && base_did_nothing);
        let [own, base] = [own, base].map(|runs| runs.filter(|_| told));
        let change = change.filter(|_| told);
        let texts = [
            id,
            point_id,
            &machine.name,
            &design.bases[point.base],
            &design.edits[edit].text,
            &workload.name,
            &workload.loads[point.load],
            &metric.name,
            &metric.unit,
            &metric.direction,
        ];
        let texts = texts.map(|text| Some(text.to_owned())).into_iter().chain([error]);
        let whole = |n: u64| i64::try_from(n).ok();
        let whole = [
            whole(machine.cpus as u64),
            whole(design.load(point)),
            whole(design.seeds[point.seed]),
            too_few,
            enough_ns.and_then(whole),
        ];
        let figures = |side: &Option<Runs>| {
            let samples = side.as_ref().map(|runs| &*runs.samples);
            [samples.map(mean), samples.filter(|s| s.len() > 1).map(std)]
        };
        let change = change.as_ref();
        let changes = [
            change.map(|change| change.predicted_pct),
            change.map(|change| change.uncorrected_pct),
            change.and_then(|change| change.p_value),
        ];
        let numbers = figures(&own).into_iter().chain(figures(&base)).chain(changes);
        let numbers = point.constants.iter().copied().map(Some).chain(numbers);
        let (mut texts, mut whole) = (texts, whole.into_iter());
        let mut numbers = numbers.map(|n| n.filter(|n| n.is_finite()));
        for column in &mut self.columns {
            match &mut column.values {
                Values::Text(values) => values.push(texts.next().flatten()),
                Values::Whole(values) => values.push(whole.next().flatten()),
                Values::Number(values) => values.push(numbers.next().flatten()),
            }
        }
    }

    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Text of a column; empty if it has no such column.
    pub fn texts(&self, name: &str) -> &[Option<String>] {
        match self.column(name) {
            Some(Values::Text(values)) => values,
            _ => &[],
        }
    }

    /// Did the row's cell run, but for too short a time to measure anything?
    pub(crate) fn has_too_few(&self, row: usize) -> bool {
        self.wholes("too_few").get(row).is_some_and(Option::is_some)
    }

    /// Whole numbers of a column; empty if it has no such column.
    pub(crate) fn wholes(&self, name: &str) -> &[Option<i64>] {
        match self.column(name) {
            Some(Values::Whole(values)) => values,
            _ => &[],
        }
    }

    /// Numbers of a column; empty if it has no such column.
    pub fn numbers(&self, name: &str) -> &[Option<f64>] {
        match self.column(name) {
            Some(Values::Number(values)) => values,
            _ => &[],
        }
    }

    fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.values)
    }

    /// As CSV, with a head.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|column| &column.name))?;
        for row in 0..self.rows() {
            writer.write_record(self.columns.iter().map(|column| column.values.text(row)))?;
        }
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn runs(outcome: Option<&Outcome>, metric: usize) -> Option<Runs> {
    let Outcome::Ran(metrics) = outcome? else { return None };
    let MetricRuns { samples, enough_ns, migrations_per_wakeup } = metrics.get(metric)?;
    let samples = samples.iter().map(|x| x.unwrap_or(f64::NAN)).collect();
    let (enough_ns, migrations_per_wakeup) = (*enough_ns, *migrations_per_wakeup);
    Some(Runs { samples, enough_ns, migrations_per_wakeup })
}

fn direction(metric: &MetricPart) -> Direction {
    match metric.direction.as_str() {
        "higher" => Direction::Higher,
        "lower" => Direction::Lower,
        _ => Direction::Neither,
    }
}
