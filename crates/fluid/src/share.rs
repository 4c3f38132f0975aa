//! Who gets how much of too little CPU time: equal shares, and what one group does not want
//! goes to the others.

/// Splits `capacity` over `wants` equally, except that none gets more than it wants, and
/// writes the shares to `given`. `order` is space for the positions of the wants.
pub(crate) fn fair(capacity: f64, wants: &[f64], given: &mut [f64], order: &mut Vec<usize>) {
    order.clear();
    order.extend((0..wants.len()).filter(|i| wants[*i] > 0.0));
    // The position settles ties, so that equal wants do not depend on the sort.
    order.sort_unstable_by(|a, b| wants[*a].total_cmp(&wants[*b]).then(a.cmp(b)));
    given.fill(0.0);
    let mut left = capacity.max(0.0);
    for (done, &i) in order.iter().enumerate() {
        given[i] = wants[i].min(left / (order.len() - done) as f64);
        left -= given[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_are_fair_and_leave_nothing(
            wants in prop::collection::vec(0.0..2.0f64, 1..12), capacity in 0.0..6.0f64,
        ) {
            let (mut given, mut order) = (vec![0.0; wants.len()], Vec::new());
            fair(capacity, &wants, &mut given, &mut order);
            let total: f64 = given.iter().sum();
            let wanted: f64 = wants.iter().sum();
            prop_assert!((total - capacity.min(wanted)).abs() < 1e-9, "{} {}", total, wanted);
            for (given_i, want_i) in given.iter().zip(&wants) {
                prop_assert!((0.0..=*want_i).contains(given_i));
                // A group that wants more than it got has at least as much as any other.
                let most = given.iter().fold(0.0, |a: f64, b| a.max(*b));
                prop_assert!(*given_i >= want_i - 1e-12 || *given_i >= most - 1e-9);
            }
        }
    }
}
