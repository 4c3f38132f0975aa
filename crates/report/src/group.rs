//! Rows that belong in one block: the same case, metric and variant, over all
//! loads. Table and page both show a comparison block by block.

use reveille_study::{Comparison, Row, RowKind};

pub(crate) struct Group<'a> {
    /// Never empty.
    pub(crate) rows: Vec<&'a Row>,
    /// An earlier group has the same explaining numbers (the same runs, seen
    /// through another metric), so they need not be shown again; or it has none.
    pub(crate) explained_above: bool,
}

impl<'a> Group<'a> {
    /// A row to read case, metric and variant from.
    pub(crate) fn first(&self) -> &'a Row {
        self.rows[0]
    }

    /// One row for each load, for what all rows of a load have in common.
    pub(crate) fn loads(&self) -> Vec<&'a Row> {
        let mut seen: Vec<&'a Row> = Vec::new();
        for row in &self.rows {
            if seen.iter().all(|s| s.load != row.load) {
                seen.push(row);
            }
        }
        seen
    }

    /// Does it show what is likely? Only where nothing was published to hold its rows against.
    pub(crate) fn shows_likely(&self) -> bool {
        self.rows.iter().all(|r| r.verdict.is_none())
            && self.rows.iter().any(|r| r.track_record.is_some())
    }

    /// Where the group's published figures stand, each once.
    pub(crate) fn sources(&self) -> Vec<&'a str> {
        let all = self.rows.iter().filter_map(|r| r.published_source.as_deref());
        unique(all)
    }
}

/// Groups in the order in which the first row of each appears.
pub(crate) fn groups(c: &Comparison) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in &c.rows {
        let same = |g: &&mut Group<'_>| {
            let first = g.first();
            first.case == row.case && first.metric == row.metric && first.variant == row.variant
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.rows.push(row),
            None => {
                let explained_above = row.kind == RowKind::Interference;
                groups.push(Group { rows: vec![row], explained_above });
            }
        }
    }
    for i in 1..groups.len() {
        groups[i].explained_above |= groups[..i].iter().any(|g| same_runs(g, &groups[i]));
    }
    groups
}

/// Does `a` look at all runs that `b` looks at?
fn same_runs(a: &Group<'_>, b: &Group<'_>) -> bool {
    a.first().case == b.first().case
        && a.first().variant == b.first().variant
        && b.rows.iter().all(|y| {
            a.rows.iter().any(|x| {
                x.load == y.load
                    && x.explain.baseline == y.explain.baseline
                    && x.explain.candidate == y.explain.candidate
            })
        })
}

/// Each item once, in the order of first appearance.
pub(crate) fn unique<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
