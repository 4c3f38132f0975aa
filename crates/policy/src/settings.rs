//! Quota, period and burst as text: `quota=50ms,period=100ms,burst=0ms`.

use reveille_measure::duration_ns;
use reveille_place::Mistake;

use crate::BandwidthLimits;

/// Splits `key=value,key=value`; each key stands once.
///
/// # Errors
/// An item without a value, or a key given twice.
pub fn settings(text: &str) -> Result<Vec<(&str, &str)>, Mistake> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (key, value) = item.split_once('=').ok_or_else(|| {
            let problem = format!("`{item}` has no value");
            Mistake::new(problem, "write key=value, such as `quota=100ms,period=100ms`")
        })?;
        let (key, value) = (key.trim(), value.trim());
        if all.iter().any(|(known, _)| *known == key) {
            return Err(Mistake::new(format!("`{key}` is given twice"), "remove one of them"));
        }
        all.push((key, value));
    }
    Ok(all)
}

impl BandwidthLimits {
    /// Names of what [`BandwidthLimits::set`] sets.
    pub const KEYS: [&str; 3] = ["quota", "period", "burst"];

    /// Sets one of [`BandwidthLimits::KEYS`]; `quota=max` is no limit.
    ///
    /// # Errors
    /// An unknown key, or a value that is no duration.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Mistake> {
        let time = || duration_ns(value).map_err(|e| Mistake::new(e.to_string(), e.help()));
        match key {
            "quota" if value.trim() == "max" => self.quota_ns = None,
            "quota" => self.quota_ns = Some(time()?),
            "period" => self.period_ns = time()?,
            "burst" => self.burst_ns = time()?,
            _ => return Err(Mistake::unknown("setting", key, BandwidthLimits::KEYS)),
        }
        Ok(())
    }
}
