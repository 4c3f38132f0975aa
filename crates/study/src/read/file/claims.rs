//! Published statements about curves: which keys belong to which kind.

use std::ops::Range;

use reveille_measure::Direction;
use reveille_place::Mistake;
use toml::Spanned;

use super::document::{Document, given};
use super::published::variant_index;
use crate::model::error::Result;
use crate::model::measure;
use crate::model::published::Side;
use crate::model::statement::{Statement, StatementKind};
use crate::model::study::Case;
use crate::read::raw::{RawClaim, RawClaimKind};

/// A claim that is being read, its place in the file, and the case that it is about.
struct Claim<'a> {
    doc: &'a Document<'a>,
    raw: &'a RawClaim,
    place: Range<usize>,
    case: &'a Case,
    metric: usize,
}

impl Document<'_> {
    pub(super) fn statement(&self, raw: &Spanned<RawClaim>, cases: &[Case]) -> Result<Statement> {
        let place = raw.span();
        let raw = raw.get_ref();
        self.source.filled("source", &raw.source)?;
        let names: Vec<&str> = cases.iter().map(|c| c.name.as_str()).collect();
        let name = raw.case.get_ref().as_str();
        let index = self.at("case", &raw.case, Mistake::position("case", name, &names))?;
        let case = &cases[index];
        let metric = match &raw.metric {
            Some(name) => {
                let what = "metric of the case";
                self.at("metric", name, measure::pick(&case.metrics, what, name.get_ref()))?
            }
            None => 0,
        };
        let kind = Claim { doc: self, raw, place, case, metric }.kind()?;
        Ok(Statement { case: index, metric, kind, source: raw.source.get_ref().clone() })
    }
}

impl Claim<'_> {
    fn kind(&self) -> Result<StatementKind> {
        self.only_of_kind()?;
        match self.raw.kind {
            RawClaimKind::Peak => self.peak(),
            RawClaimKind::Onset => self.onset(),
            RawClaimKind::Fall => Ok(StatementKind::Fall {
                variant: self.variant()?,
                load: self.load("load", &self.raw.load)?,
                factor: self.factor()?,
            }),
            RawClaimKind::Between => self.between(),
            RawClaimKind::Steadier => Ok(StatementKind::Steadier {
                variant: self.variant()?,
                from: self.load("from", &self.raw.from)?,
                factor: self.factor()?,
            }),
        }
    }

    /// Refuses keys that have no meaning for the kind.
    fn only_of_kind(&self) -> Result<()> {
        let raw = self.raw;
        let (kind, meant): (&str, &[&str]) = match raw.kind {
            RawClaimKind::Peak => ("peak", &["load"]),
            RawClaimKind::Onset => ("onset", &["variant", "from", "to", "above_pct"]),
            RawClaimKind::Fall => ("fall", &["variant", "load", "factor"]),
            RawClaimKind::Between => {
                ("between", &["side", "variant", "load", "min", "max", "unit"])
            }
            RawClaimKind::Steadier => ("steadier", &["variant", "from", "factor"]),
        };
        let texts = [("variant", &raw.variant), ("side", &raw.side), ("unit", &raw.unit)];
        let loads = [("load", &raw.load), ("from", &raw.from), ("to", &raw.to)];
        let numbers = [
            ("above_pct", &raw.above_pct),
            ("factor", &raw.factor),
            ("min", &raw.min),
            ("max", &raw.max),
        ];
        let given = [given(&texts), given(&loads), given(&numbers)].concat();
        let help = format!("this kind takes {}", meant.join(", "));
        self.doc.only(given, meant, &format!("for a claim of kind `{kind}`"), &help)
    }

    fn peak(&self) -> Result<StatementKind> {
        let (doc, raw, case) = (self.doc, self.raw, self.case);
        if case.metrics[self.metric].metric.direction != Direction::Higher {
            let problem = format!("the metric of `{}` is better the lower it is", case.name);
            return doc.refuse("case", &raw.case, problem, "claim a peak of a throughput");
        }
        let load = self.load("load", &raw.load)?;
        let mut loads = case.points.iter().map(|p| p.load);
        if !(loads.clone().any(|l| l < load) && loads.any(|l| l > load)) {
            let help = "run a lower and a higher load in the case as well";
            let problem = "a peak is seen only between two other loads";
            return Err(doc.fault(self.span(&raw.load), "load", problem, help));
        }
        Ok(StatementKind::Peak { load })
    }

    fn onset(&self) -> Result<StatementKind> {
        let raw = self.raw;
        let variant = self.variant()?;
        let from = self.load("from", &raw.from)?;
        let to = self.load("to", &raw.to)?;
        if to < from {
            let span = self.span(&raw.to);
            return Err(self.doc.fault(span, "to", "lies below `from`", "exchange the two"));
        }
        let above = self.doc.needed(&self.place, "above_pct", &raw.above_pct)?;
        let above_pct = self.doc.size("above_pct", above, 0.0)?;
        Ok(StatementKind::Onset { variant, from, to, above_pct })
    }

    fn between(&self) -> Result<StatementKind> {
        let (doc, raw) = (self.doc, self.raw);
        let side = doc.side(doc.needed(&self.place, "side", &raw.side)?)?;
        let variant = match side {
            Side::Base => 0,
            Side::Variant => self.variant()?,
        };
        let load = self.load("load", &raw.load)?;
        let per_unit = match &raw.unit {
            Some(unit) => {
                let per_unit = self.case.metrics[self.metric].per_unit(Some(unit.get_ref()));
                doc.at("unit", unit, per_unit)?
            }
            None => 1.0,
        };
        let bound = |key, value: &Option<Spanned<f64>>| {
            value.as_ref().map(|v| doc.size(key, v, 0.0).map(|size| size * per_unit)).transpose()
        };
        let (min, max) = (bound("min", &raw.min)?, bound("max", &raw.max)?);
        if min.is_none() && max.is_none() {
            let help = "add `min`, `max` or both";
            return Err(doc.fault(self.place.clone(), "min", "is missing", help));
        }
        if let (Some(low), Some(high), Some(at)) = (min, max, &raw.max)
            && high < low
        {
            return doc.refuse("max", at, "lies below `min`", "exchange the two");
        }
        Ok(StatementKind::Between { variant, side, load, min, max })
    }

    fn factor(&self) -> Result<f64> {
        let factor = self.doc.needed(&self.place, "factor", &self.raw.factor)?;
        self.doc.size("factor", factor, f64::MIN_POSITIVE)
    }

    fn load(&self, key: &str, load: &Option<Spanned<i64>>) -> Result<u64> {
        let load = self.doc.needed(&self.place, key, load)?;
        let loads = self.case.points.iter().map(|point| point.load);
        let index = self.doc.load_index(key, load, loads)?;
        Ok(self.case.points[index].load)
    }

    fn variant(&self) -> Result<usize> {
        let case = self.case;
        match &self.raw.variant {
            Some(name) => self.doc.at("variant", name, variant_index(case, name.get_ref())),
            None if case.variants.len() == 1 => Ok(0),
            None => {
                let known: Vec<&str> = case.variants.iter().map(|v| v.name.as_str()).collect();
                let help = format!("add `variant`, one of: {}", known.join(", "));
                let problem = "the case has several variants";
                Err(self.doc.fault(self.place.clone(), "variant", problem, help))
            }
        }
    }

    /// Where a key stands, or the whole claim.
    fn span<T>(&self, key: &Option<Spanned<T>>) -> Range<usize> {
        key.as_ref().map_or(self.place.clone(), Spanned::span)
    }
}
