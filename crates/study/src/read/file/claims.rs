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
        self.only_of_kind(raw)?;
        let kind = match raw.kind {
            RawClaimKind::Peak => self.peak(raw, &place, case, metric)?,
            RawClaimKind::Onset => self.onset(raw, &place, case)?,
            RawClaimKind::Fall => StatementKind::Fall {
                variant: self.claimed_variant(raw, &place, case)?,
                load: self.claimed_load(&place, "load", raw.load.as_ref(), case)?,
                factor: self.factor(raw, &place)?,
            },
            RawClaimKind::Between => self.between(raw, &place, case, metric)?,
            RawClaimKind::Steadier => StatementKind::Steadier {
                variant: self.claimed_variant(raw, &place, case)?,
                from: self.claimed_load(&place, "from", raw.from.as_ref(), case)?,
                factor: self.factor(raw, &place)?,
            },
        };
        Ok(Statement { case: index, metric, kind, source: raw.source.get_ref().clone() })
    }

    /// Refuses keys that have no meaning for the kind.
    fn only_of_kind(&self, raw: &RawClaim) -> Result<()> {
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
        self.only(given, meant, &format!("for a claim of kind `{kind}`"), &help)
    }

    fn peak(
        &self,
        raw: &RawClaim,
        place: &Range<usize>,
        case: &Case,
        metric: usize,
    ) -> Result<StatementKind> {
        if case.metrics[metric].metric.direction != Direction::Higher {
            return self.refuse(
                "case",
                &raw.case,
                format!("the metric of `{}` is better the lower it is", case.name),
                "claim a peak of a throughput",
            );
        }
        let load = self.claimed_load(place, "load", raw.load.as_ref(), case)?;
        let mut loads = case.points.iter().map(|p| p.load);
        if !(loads.clone().any(|l| l < load) && loads.any(|l| l > load)) {
            let help = "run a lower and a higher load in the case as well";
            let problem = Mistake::new("a peak is seen only between two other loads", help);
            let span = raw.load.as_ref().map_or(place.clone(), Spanned::span);
            return Err(self.wrong(span, "load", problem));
        }
        Ok(StatementKind::Peak { load })
    }

    fn onset(&self, raw: &RawClaim, place: &Range<usize>, case: &Case) -> Result<StatementKind> {
        let variant = self.claimed_variant(raw, place, case)?;
        let from = self.claimed_load(place, "from", raw.from.as_ref(), case)?;
        let to = self.claimed_load(place, "to", raw.to.as_ref(), case)?;
        if to < from {
            let span = raw.to.as_ref().map_or(place.clone(), Spanned::span);
            return Err(self.fault(span, "to", "lies below `from`", "exchange the two"));
        }
        let above = self.needed(place, "above_pct", raw.above_pct.as_ref())?;
        Ok(StatementKind::Onset {
            variant,
            from,
            to,
            above_pct: self.size("above_pct", above, 0.0)?,
        })
    }

    fn between(
        &self,
        raw: &RawClaim,
        place: &Range<usize>,
        case: &Case,
        metric: usize,
    ) -> Result<StatementKind> {
        let side = self.side(self.needed(place, "side", raw.side.as_ref())?)?;
        let variant = match side {
            Side::Base => 0,
            Side::Variant => self.claimed_variant(raw, place, case)?,
        };
        let load = self.claimed_load(place, "load", raw.load.as_ref(), case)?;
        let per_unit = match &raw.unit {
            Some(unit) => {
                let per_unit = case.metrics[metric].per_unit(Some(unit.get_ref()));
                self.at("unit", unit, per_unit)?
            }
            None => 1.0,
        };
        let bound = |key, value: &Option<Spanned<f64>>| {
            value.as_ref().map(|v| self.size(key, v, 0.0).map(|size| size * per_unit)).transpose()
        };
        let (min, max) = (bound("min", &raw.min)?, bound("max", &raw.max)?);
        if min.is_none() && max.is_none() {
            return Err(self.fault(place.clone(), "min", "is missing", "add `min`, `max` or both"));
        }
        if let (Some(low), Some(high), Some(at)) = (min, max, &raw.max)
            && high < low
        {
            return self.refuse("max", at, "lies below `min`", "exchange the two");
        }
        Ok(StatementKind::Between { variant, side, load, min, max })
    }

    fn factor(&self, raw: &RawClaim, place: &Range<usize>) -> Result<f64> {
        let factor = self.needed(place, "factor", raw.factor.as_ref())?;
        self.size("factor", factor, f64::MIN_POSITIVE)
    }

    fn claimed_load(
        &self,
        place: &Range<usize>,
        key: &str,
        load: Option<&Spanned<i64>>,
        case: &Case,
    ) -> Result<u64> {
        let load = self.needed(place, key, load)?;
        let loads = case.points.iter().map(|point| point.load);
        let index = self.load_index(key, load, loads)?;
        Ok(case.points[index].load)
    }

    fn claimed_variant(&self, raw: &RawClaim, place: &Range<usize>, case: &Case) -> Result<usize> {
        match &raw.variant {
            Some(name) => self.at("variant", name, variant_index(case, name.get_ref())),
            None if case.variants.len() == 1 => Ok(0),
            None => {
                let known: Vec<&str> = case.variants.iter().map(|v| v.name.as_str()).collect();
                let help = format!("add `variant`, one of: {}", known.join(", "));
                Err(self.fault(place.clone(), "variant", "the case has several variants", help))
            }
        }
    }
}
