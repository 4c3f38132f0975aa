//! Published figures of a case: of what kind each is, by the keys that it has.

use std::ops::Range;

use reveille_measure::unit_ns;
use reveille_place::Mistake;
use toml::{Spanned, Value};

use super::document::{Document, given};
use crate::model::error::Result;
use crate::model::measure::{self, Measure};
use crate::model::published::{Published, PublishedFigure, Side};
use crate::model::study::Case;
use crate::read::raw::{RawCase, RawPublished};
use crate::read::{check, variant};

/// Help for a figure whose keys fit no kind.
const KINDS: &str = "give `change_pct`; or `base` and `variant` as numbers; or `side` and `value`; \
                     or `side`, `runs_above`, `value` and `of`";

impl Document<'_> {
    pub(super) fn add_published(
        &self,
        raw: &Spanned<RawPublished>,
        raw_case: &RawCase,
        case: &mut Case,
    ) -> Result<()> {
        let place = raw.span();
        let raw = raw.get_ref();
        let loads = case.points.iter().map(|point| point.load);
        let point = self.load_index("load", &raw.load, loads)?;
        let metric = self.published_metric(raw, &place, case)?;
        let figure = self.figure(raw, &place, &case.metrics[metric])?;
        let variant = self.published_variant(raw, &place, case, &figure)?;
        let source = self.source(&place, raw.source.as_ref(), raw_case.source.as_ref())?;
        if let Some(noise) = &raw.noise {
            self.source.filled("noise", noise)?;
        }
        let (std_base_pct, std_variant_pct) = self.stds(raw, &figure)?;
        let published = Published {
            variant,
            metric,
            figure,
            std_base_pct,
            std_variant_pct,
            noise: raw.noise.as_ref().map(|n| n.get_ref().clone()),
            source,
        };
        let point = &mut case.points[point];
        if point.published.iter().any(|p| p.same_place(&published)) {
            let load = point.load;
            return Err(self.fault(
                place,
                "load",
                format!("load {load} has two published figures for one variant"),
                "keep one of them",
            ));
        }
        point.published.push(published);
        Ok(())
    }

    fn published_metric(
        &self,
        raw: &RawPublished,
        place: &Range<usize>,
        case: &Case,
    ) -> Result<usize> {
        match &raw.metric {
            Some(name) => {
                let what = "metric of the case";
                self.at("metric", name, measure::pick(&case.metrics, what, name.get_ref()))
            }
            None if case.metrics.len() == 1 => Ok(0),
            None => {
                let known: Vec<String> =
                    case.metrics.iter().map(|m| m.metric.to_string()).collect();
                let help = format!("add `metric`, one of: {}", known.join(", "));
                Err(self.fault(place.clone(), "metric", "the case has several metrics", help))
            }
        }
    }

    fn figure(
        &self,
        raw: &RawPublished,
        place: &Range<usize>,
        metric: &Measure,
    ) -> Result<PublishedFigure> {
        let given = Given::of(raw);
        let unit = || raw.unit.as_ref().map(|u| u.get_ref().clone());
        if let Some(change) = &raw.change_pct {
            self.only_beside(raw, &["change_pct", "std_base_pct", "std_variant_pct"])?;
            return Ok(PublishedFigure::Change { change_pct: self.change_pct(change)? });
        }
        if let Some(above) = &raw.runs_above {
            self.only_beside(raw, &["runs_above", "side", "value", "of"])?;
            return self.runs_above(raw, place, metric, above);
        }
        if let Some(side) = &raw.side {
            self.only_beside(raw, &["side", "value", "unit", "times", "work"])?;
            let value = self.needed(place, "value", &raw.value)?;
            let value = self.size("value", value, 0.0)?;
            let own = self.own_unit(raw, place, metric, value)?;
            return Ok(PublishedFigure::Side { side: self.side(side)?, value, unit: unit(), own });
        }
        let (Some(base), Some(variant)) = (&raw.base, given.variant) else {
            let text = "is of no kind that is known";
            return Err(self.fault(place.clone(), "published", text, KINDS));
        };
        let base = self.size("base", base, f64::MIN_POSITIVE)?;
        let variant = self.size("variant", &variant, f64::MIN_POSITIVE)?;
        if let Some(unit) = &raw.unit {
            self.at("unit", unit, metric.printed_in(unit.get_ref(), false))?;
        }
        let Some(stat) = &raw.stat else {
            self.only_beside(
                raw,
                &["base", "unit", "std_base", "std_variant", "std_base_pct", "std_variant_pct"],
            )?;
            return Ok(PublishedFigure::Pair { base, variant, unit: unit() });
        };
        if stat.get_ref() != "std" {
            let problem = Mistake::unknown("statistic", stat.get_ref(), &["std"]);
            return Err(self.wrong(stat.span(), "stat", problem));
        }
        self.only_beside(raw, &["base", "stat", "unit"])?;
        Ok(PublishedFigure::Std { base, variant, unit: unit() })
    }

    /// A printed figure in the metric's own unit.
    fn own_unit(
        &self,
        raw: &RawPublished,
        place: &Range<usize>,
        metric: &Measure,
        value: f64,
    ) -> Result<f64> {
        match (&raw.times, &raw.work, &raw.unit) {
            (Some(_), Some(work), _) => self.beside("work", work, "times"),
            (Some(times), None, unit) => {
                if let Some(unit) = unit {
                    self.at("unit", unit, metric.printed_in(unit.get_ref(), true))?;
                }
                Ok(value * self.size("times", times, f64::MIN_POSITIVE)?)
            }
            (None, Some(work), unit) => {
                let unit = self.needed(place, "unit", unit)?;
                let ns = unit_ns(unit.get_ref()).ok_or_else(|| {
                    self.fault(unit.span(), "unit", "is no unit of time", "use ns, us, ms or s")
                })?;
                Ok(self.size("work", work, f64::MIN_POSITIVE)? * 1e9 / (value * ns as f64))
            }
            (None, None, Some(unit)) => {
                let per_unit = metric.per_unit(Some(unit.get_ref()));
                Ok(value * self.at("unit", unit, per_unit)?)
            }
            (None, None, None) => Ok(value),
        }
    }

    /// Refuses keys that have no meaning for a figure of its kind.
    fn only_beside(&self, raw: &RawPublished, meant: &[&str]) -> Result<()> {
        self.only(Given::of(raw).spans, meant, &format!("beside `{}`", meant[0]), KINDS)
    }

    fn runs_above(
        &self,
        raw: &RawPublished,
        place: &Range<usize>,
        metric: &Measure,
        above: &Spanned<Value>,
    ) -> Result<PublishedFigure> {
        let bound = match above.get_ref() {
            Value::Integer(n) => Ok((*n as f64, n.to_string())),
            Value::Float(x) if x.is_finite() => Ok((*x, x.to_string())),
            Value::String(text) => check::time(text).and_then(|ns| {
                let own = metric.per_unit(Some("ns"))?;
                Ok((ns as f64 * own, text.clone()))
            }),
            _ => Err(Mistake::new("is no bound", "write a number, or a time such as \"10ms\"")),
        };
        let (above, above_text) = self.at("runs_above", above, bound)?;
        let side = self.needed(place, "side", &raw.side)?;
        let value = self.needed(place, "value", &raw.value)?;
        let of = self.needed(place, "of", &raw.of)?;
        let all = u32::try_from(*of.get_ref()).ok().filter(|n| *n > 0);
        let none = || Mistake::new("is no number of runs", "write how many runs there were");
        let of = self.at("of", of, all.ok_or_else(none))?;
        let runs = *value.get_ref();
        if runs < 0.0 || runs > f64::from(of) || runs.fract() != 0.0 || runs.is_nan() {
            return self.refuse(
                "value",
                value,
                format!("{runs} of {of} runs cannot be"),
                format!("write a whole number up to {of}"),
            );
        }
        let side = self.side(side)?;
        Ok(PublishedFigure::RunsAbove { side, above, above_text, runs: runs as u32, of })
    }

    /// The position of the variant that a figure was published for.
    fn published_variant(
        &self,
        raw: &RawPublished,
        place: &Range<usize>,
        case: &Case,
        figure: &PublishedFigure,
    ) -> Result<usize> {
        let named = match (&raw.with, &raw.variant) {
            (Some(with), Some(variant)) if variant.get_ref().is_str() => {
                return self.beside("with", with, "variant");
            }
            (Some(with), _) => Some(("with", with.span(), with.get_ref().as_str())),
            (None, Some(variant)) => {
                variant.get_ref().as_str().map(|name| ("variant", variant.span(), name))
            }
            (None, None) => None,
        };
        if let Some((key, span, name)) = named {
            return variant_index(case, name).map_err(|problem| self.wrong(span, key, problem));
        }
        let of_baseline = matches!(
            figure,
            PublishedFigure::Side { side: Side::Base, .. }
                | PublishedFigure::RunsAbove { side: Side::Base, .. }
        );
        if case.variants.len() == 1 || of_baseline {
            return Ok(0);
        }
        if case.variants.is_empty() {
            return Err(self.fault(
                place.clone(),
                "published",
                "the case has no variant",
                "give `side = \"base\"`",
            ));
        }
        let key = if raw.variant.is_some() { "with" } else { "variant" };
        let known: Vec<&str> = case.variants.iter().map(|v| v.name.as_str()).collect();
        let help = format!("add `{key}`, one of: {}", known.join(", "));
        Err(self.fault(place.clone(), key, "the study has several variants", help))
    }

    fn change_pct(&self, value: &Spanned<f64>) -> Result<f64> {
        let pct = *value.get_ref();
        if pct.is_finite() && pct > -100.0 {
            // Sources print `-0.00`; JSON should not.
            return Ok(pct + 0.0);
        }
        let help = "write a number above -100; + is better, so invert changes of times";
        self.refuse("change_pct", value, format!("{pct} is no change in percent"), help)
    }

    /// Relative standard deviations in percent, which a pair may give as printed.
    fn stds(
        &self,
        raw: &RawPublished,
        figure: &PublishedFigure,
    ) -> Result<(Option<f64>, Option<f64>)> {
        let means = match figure {
            PublishedFigure::Pair { base, variant, .. } => (*base, *variant),
            _ => (1.0, 1.0),
        };
        let std =
            |key, pct: &Option<Spanned<f64>>, key_abs, abs: &Option<Spanned<f64>>, mean| match (
                pct, abs,
            ) {
                (Some(_), Some(abs)) => self.beside(key_abs, abs, key),
                (Some(pct), None) => self.std(key, pct, " in percent").map(Some),
                (None, Some(abs)) => Ok(Some(100.0 * self.std(key_abs, abs, "")? / mean)),
                (None, None) => Ok(None),
            };
        Ok((
            std("std_base_pct", &raw.std_base_pct, "std_base", &raw.std_base, means.0)?,
            std("std_variant_pct", &raw.std_variant_pct, "std_variant", &raw.std_variant, means.1)?,
        ))
    }

    fn std(&self, key: &str, place: &Spanned<f64>, what: &str) -> Result<f64> {
        let std = *place.get_ref();
        if std.is_finite() && std >= 0.0 {
            return Ok(std);
        }
        self.refuse(
            key,
            place,
            format!("{std} is no standard deviation{what}"),
            "write 0 or a positive number, or leave it out",
        )
    }
}

/// The position of a variant that the case runs.
pub(super) fn variant_index(case: &Case, name: &str) -> Result<usize, Mistake> {
    let wanted = variant::variant((&case.base, &case.scheduler), &case.groups, name, &[])?;
    case.variants.iter().position(|v| v.does_as(&wanted)).ok_or_else(|| {
        let known: Vec<&str> = case.variants.iter().map(|v| v.name.as_str()).collect();
        let text = format!("the variant `{}` is not run", wanted.name);
        Mistake::new(text, format!("use one of: {}", known.join(", ")))
    })
}

/// Keys that only some kinds of figure have, and `variant` where it is a number.
struct Given {
    spans: Vec<(&'static str, Range<usize>)>,
    variant: Option<Spanned<f64>>,
}

impl Given {
    fn of(raw: &RawPublished) -> Given {
        let numbers = [
            ("change_pct", &raw.change_pct),
            ("base", &raw.base),
            ("value", &raw.value),
            ("times", &raw.times),
            ("work", &raw.work),
            ("std_base_pct", &raw.std_base_pct),
            ("std_variant_pct", &raw.std_variant_pct),
            ("std_base", &raw.std_base),
            ("std_variant", &raw.std_variant),
        ];
        let texts = [("side", &raw.side), ("unit", &raw.unit), ("stat", &raw.stat)];
        let others = [given(&[("runs_above", &raw.runs_above)]), given(&[("of", &raw.of)])];
        let spans = [given(&numbers), given(&texts), others.concat()].concat();
        let variant = raw.variant.as_ref().and_then(|v| {
            let number = match v.get_ref() {
                Value::Integer(n) => *n as f64,
                Value::Float(x) => *x,
                _ => return None,
            };
            Some(Spanned::new(v.span(), number))
        });
        Given { spans, variant }
    }
}
