//! Numbers for a sample of points: at random, or spread evenly.

use reveille_measure::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Spread evenly over all dimensions: the additive sequence of Roberts (2018), "The
    /// Unreasonable Effectiveness of Quasirandom Sequences", shifted by the seed.
    LowDiscrepancy,
    Random,
}

/// `n` points of `dimensions` numbers from 0 up to 1.
pub(crate) fn draw(method: Method, seed: u64, dimensions: usize, n: usize) -> Vec<Vec<f64>> {
    let mut random = Random::new(seed);
    let mut fresh = || (0..dimensions).map(|_| random.uniform()).collect::<Vec<f64>>();
    if method == Method::Random {
        return (0..n).map(|_| fresh()).collect();
    }
    let (shift, ratio) = (fresh(), ratio(dimensions));
    let mut steps = Vec::with_capacity(dimensions);
    let mut step = 1.0;
    for _ in 0..dimensions {
        step /= ratio;
        steps.push(step);
    }
    let at = |i: usize| shift.iter().zip(&steps).map(move |(s, a)| (s + a * i as f64).fract());
    (1..=n).map(|i| at(i).collect()).collect()
}

/// The x above 1 with x^(d+1) = x + 1: the golden ratio for one dimension. By bisection with
/// products alone, which every processor rounds alike.
fn ratio(dimensions: usize) -> f64 {
    let (mut low, mut high) = (1.0, 2.0);
    for _ in 0..60 {
        let middle: f64 = 0.5 * (low + high);
        let power = (0..=dimensions).fold(1.0, |power, _| power * middle);
        if power > middle + 1.0 { high = middle } else { low = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_discrepancy_fills_every_part_of_every_dimension() {
        assert!((ratio(1) - 1.618_033_988_749_895).abs() < 1e-12);
        let even = |method| {
            let points = draw(method, 7, 3, 64);
            assert!(points.iter().flatten().all(|x| (0.0..1.0).contains(x)));
            let parts = |d: usize| {
                let mut counts = [0; 8];
                points.iter().for_each(|p| counts[(p[d] * 8.0) as usize] += 1);
                counts
            };
            (0..3).all(|d| parts(d).iter().all(|n| (5..=11).contains(n)))
        };
        assert!(even(Method::LowDiscrepancy));
        assert!(!even(Method::Random));
        let first = draw(Method::LowDiscrepancy, 1, 3, 8);
        assert_eq!(first, draw(Method::LowDiscrepancy, 1, 3, 8));
        assert_ne!(first, draw(Method::LowDiscrepancy, 2, 3, 8));
    }
}
