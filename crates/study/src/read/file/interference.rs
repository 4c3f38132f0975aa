//! Cases of groups that share CPUs by chance.

use reveille_place::Mistake;
use toml::Spanned;

use super::document::{Document, given};
use crate::model::error::Result;
use crate::model::interference::{
    BurstVariant, DEFAULT_PERIODS, DemandKind, InterferenceCase, JOINT_MEASURES, JointMeasure,
    JointPublished, LoadIs, SHARE,
};
use crate::model::on::On;
use crate::model::study::{DEFAULT_REPEATS, checked_repeats};
use crate::read::check;
use crate::read::raw::{RawInterference, RawJointPublished, RawStudy};

/// Most groups and most periods: beyond, a run takes minutes and tells nothing more.
const MOST_GROUPS: i64 = 1000;
const MOST_PERIODS: i64 = 1_000_000_000;

impl Document<'_> {
    pub(super) fn interference(&self, study: &RawStudy, on: On) -> Result<Vec<InterferenceCase>> {
        let raw = &study.interference;
        if let (Some(first), true) = (raw.first(), on != On::Sim) {
            return self.refuse(
                "interference",
                first,
                "cannot be measured: its groups are numbers, not tasks",
                "leave out `on`, or the [[interference]] cases",
            );
        }
        let cases = study.cases.iter().map(|c| c.get_ref().name.get_ref().as_str());
        let own = raw.iter().map(|c| c.get_ref().name.get_ref().as_str());
        let names: Vec<&str> = cases.chain(own).collect();
        if let Some(i) = check::duplicate(&names).and_then(|i| i.checked_sub(study.cases.len())) {
            let name = &raw[i].get_ref().name;
            return self.refuse(
                "name",
                name,
                format!("two cases are called `{}`", name.get_ref()),
                "give one of them another name",
            );
        }
        raw.iter().map(|case| self.interference_case(case.get_ref(), study)).collect()
    }

    fn interference_case(
        &self,
        raw: &RawInterference,
        study: &RawStudy,
    ) -> Result<InterferenceCase> {
        self.source.filled("name", &raw.name)?;
        let repeats = match raw.repeats.as_ref().or(study.repeats.as_ref()) {
            Some(repeats) => self.at("repeats", repeats, checked_repeats(*repeats.get_ref()))?,
            None => DEFAULT_REPEATS,
        };
        let periods = match &raw.periods {
            Some(n) => self.number("periods", n, MOST_PERIODS)? as u64,
            None => DEFAULT_PERIODS,
        };
        let cpus = match &raw.cpus {
            Some(cpus) => self.size("cpus", cpus, f64::MIN_POSITIVE)?,
            None => 1.0,
        };
        let mut case = InterferenceCase {
            name: raw.name.get_ref().clone(),
            demand: self.demand(raw)?,
            groups: self.number("groups", &raw.groups, MOST_GROUPS)? as usize,
            cpus,
            load_is: self.load_is(raw)?,
            loads: self.loads(&raw.loads)?,
            variants: self.bursts(raw)?,
            metrics: self.joint_metrics(raw)?,
            periods,
            repeats,
            published: Vec::new(),
        };
        if let (LoadIs::Quantile, Some(load)) =
            (case.load_is, raw.loads.get_ref().iter().find(|l| *l.get_ref() >= 100))
        {
            return self.refuse("loads", load, "is no quantile that demand has", "use 1 to 99");
        }
        case.check().map_err(|(load, error)| {
            self.fault(
                raw.loads.span(),
                "loads",
                format!("load {load} cannot be simulated: {error}"),
                "use a smaller load, or a larger `step_pct`",
            )
        })?;
        for published in &raw.published {
            self.add_joint_published(published, raw, &mut case)?;
        }
        Ok(case)
    }

    fn number(&self, key: &str, place: &Spanned<i64>, most: i64) -> Result<i64> {
        let number = *place.get_ref();
        if (1..=most).contains(&number) {
            return Ok(number);
        }
        self.refuse(key, place, format!("{number} is not possible"), format!("use 1 to {most}"))
    }

    fn demand(&self, raw: &RawInterference) -> Result<DemandKind> {
        let name = raw.demand.get_ref().as_str();
        let here = format!("for `{name}` demand");
        let unmeant = |key, place| self.only(given(&[(key, place)]), &[], &here, "leave it out");
        let place = raw.demand.span();
        match name {
            "poisson" => {
                unmeant("alpha", &raw.alpha)?;
                let step = self.needed(&place, "step_pct", &raw.step_pct)?;
                Ok(DemandKind::Poisson { step: self.size("step_pct", step, 0.01)? / 100.0 })
            }
            "pareto" => {
                unmeant("step_pct", &raw.step_pct)?;
                let alpha = self.needed(&place, "alpha", &raw.alpha)?;
                Ok(DemandKind::Pareto { alpha: self.size("alpha", alpha, 1.01)? })
            }
            "exponential" => {
                unmeant("step_pct", &raw.step_pct)?;
                unmeant("alpha", &raw.alpha)?;
                Ok(DemandKind::Exponential)
            }
            other => {
                let known = ["exponential", "poisson", "pareto"];
                Err(self.wrong(place, "demand", Mistake::unknown("distribution", other, &known)))
            }
        }
    }

    fn load_is(&self, raw: &RawInterference) -> Result<LoadIs> {
        let Some(place) = &raw.load_is else { return Ok(LoadIs::Use) };
        match place.get_ref().as_str() {
            "use" => Ok(LoadIs::Use),
            "quantile" => Ok(LoadIs::Quantile),
            other => {
                let problem = Mistake::unknown("load", other, &["use", "quantile"]);
                Err(self.wrong(place.span(), "load_is", problem))
            }
        }
    }

    fn bursts(&self, raw: &RawInterference) -> Result<Vec<BurstVariant>> {
        let none = ["no variant is given", "name one, such as `burst=100%`"];
        let same = |a: &BurstVariant, b: &BurstVariant| a.burst == b.burst;
        let twice = |_: &BurstVariant| "is given twice".to_owned();
        self.distinct("variants", &raw.variants, none, burst, same, twice)
    }

    fn joint_metrics(&self, raw: &RawInterference) -> Result<Vec<&'static JointMeasure>> {
        let none = ["no metric is given", "name one, such as `wcet`"];
        let same = |a: &&JointMeasure, b: &&JointMeasure| a.key == b.key;
        let twice = |m: &&JointMeasure| format!("`{}` is given twice", m.key);
        self.distinct("metrics", &raw.metrics, none, joint_measure, same, twice)
    }

    fn add_joint_published(
        &self,
        raw: &Spanned<RawJointPublished>,
        raw_case: &RawInterference,
        case: &mut InterferenceCase,
    ) -> Result<()> {
        let place = raw.span();
        let raw = raw.get_ref();
        let load = self.load_index("load", &raw.load, case.loads.iter().copied())?;
        let wanted = self.at("variant", &raw.variant, burst(raw.variant.get_ref()))?;
        let variant = case.variants.iter().position(|v| v.burst == wanted.burst);
        let variant = variant.ok_or_else(|| {
            let known: Vec<&str> = case.variants.iter().map(|v| v.name.as_str()).collect();
            let problem = Mistake::unknown("variant", &wanted.name, &known);
            self.wrong(raw.variant.span(), "variant", problem)
        })?;
        let measure = self.at("metric", &raw.metric, joint_measure(raw.metric.get_ref()))?;
        let metric = case.metrics.iter().position(|m| m.key == measure.key).ok_or_else(|| {
            self.fault(
                raw.metric.span(),
                "metric",
                format!("`{}` is not taken", measure.key),
                "add it to the `metrics` of the case",
            )
        })?;
        let source = self.source(&place, raw.source.as_ref(), raw_case.source.as_ref())?;
        let same = |p: &JointPublished| (p.load, p.variant, p.metric) == (load, variant, metric);
        if case.published.iter().any(same) {
            let text = format!("load {} has two such figures", raw.load.get_ref());
            return Err(self.fault(place, "load", text, "keep one of them"));
        }
        let value = self.size("value", &raw.value, 0.0)?;
        if measure.unit == SHARE && value > 100.0 {
            let problem = format!("{value}% of periods cannot be");
            return self.refuse("value", &raw.value, problem, "write a percentage from 0 to 100");
        }
        let side = self.side(&raw.side)?;
        case.published.push(JointPublished { load, variant, metric, side, value, source });
        Ok(())
    }
}

/// Reads `burst=100%` (of the quota) or `burst=max`.
fn burst(text: &str) -> Result<BurstVariant, Mistake> {
    let burst = match text.strip_prefix("burst=") {
        Some("max") => Some(f64::INFINITY),
        Some(size) => size.strip_suffix('%').and_then(|n| n.parse::<f64>().ok()).map(|n| n / 100.0),
        None => None,
    };
    match burst.filter(|b| *b > 0.0) {
        Some(burst) => Ok(BurstVariant { name: text.to_owned(), burst }),
        None => {
            let help = "write `burst=100%` (of the quota, above 0) or `burst=max`";
            Err(Mistake::new(format!("`{text}` is no burst"), help))
        }
    }
}

fn joint_measure(key: &str) -> Result<&'static JointMeasure, Mistake> {
    JOINT_MEASURES.iter().find(|m| m.key == key).ok_or_else(|| {
        let known: Vec<&str> = JOINT_MEASURES.iter().map(|m| m.key).collect();
        Mistake::unknown("metric", key, &known)
    })
}
