//! What many values come to. A quantile of few values depends on the convention: the value of
//! the nearest rank, which is one of them, or one between neighbours.

/// NaN without samples. If all samples are equal, exactly their value: a sum that is divided
/// again could be off by rounding.
pub fn mean(samples: &[f64]) -> f64 {
    match samples.first() {
        Some(first) if constant(samples) => *first,
        _ => samples.iter().sum::<f64>() / samples.len() as f64,
    }
}

/// Are all samples the same?
fn constant(samples: &[f64]) -> bool {
    samples.windows(2).all(|w| w[0] == w[1])
}

/// Unbiased (n − 1); 0 with fewer than two samples, and exactly 0 if all are the same.
pub fn variance(samples: &[f64]) -> f64 {
    if constant(samples) {
        return 0.0;
    }
    let mean = mean(samples);
    samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (samples.len() - 1) as f64
}

/// Standard deviation (n − 1), in the unit of the samples; 0 of fewer than two.
pub fn std(samples: &[f64]) -> f64 {
    variance(samples).sqrt()
}

/// The samples that have a value, in rising order.
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Index, among `n` values in rising order, of the least that this share of them does not
/// exceed; `None` of none.
pub fn nearest_rank(n: usize, share: f64) -> Option<usize> {
    // Of 1,000 values p99.9 is the 999th, whatever 0.999 is in binary.
    let rank = (share * n as f64 - 1e-9).ceil().max(1.0) as usize;
    n.checked_sub(1).map(|last| last.min(rank - 1))
}

/// A quantile of sorted samples, between neighbours by their distance; NaN of none.
pub fn interpolated(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_that_of_a_sample() {
        assert_eq!((mean(&[1.0, 2.0, 3.0]), std(&[1.0, 2.0, 3.0])), (2.0, 1.0));
        assert_eq!((mean(&[0.1; 3]), std(&[0.1; 3]), std(&[7.0])), (0.1, 0.0, 0.0));
        assert!(mean(&[]).is_nan());
    }

    #[test]
    fn two_quantiles_of_the_same_values() {
        let values = sorted(&[4.0, f64::NAN, 1.0, 3.0, 2.0]);
        assert_eq!(values[nearest_rank(values.len(), 0.5).unwrap()], 2.0);
        assert_eq!(interpolated(&values, 0.5), 2.5);
        assert_eq!(nearest_rank(1000, 0.999), Some(998));
        assert_eq!((nearest_rank(7, 0.0), nearest_rank(7, 1.0)), (Some(0), Some(6)));
        assert!(nearest_rank(0, 0.5).is_none() && interpolated(&[], 0.5).is_nan());
    }
}
