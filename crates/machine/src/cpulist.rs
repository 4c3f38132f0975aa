//! Reads the kernel's CPU lists (`0-3,8,10-11`), strictly: these numbers size
//! arrays, so nonsense and absurd ranges are errors, not guesses.

/// Highest CPU number accepted: eight times the largest `NR_CPUS`.
const HIGHEST: u32 = 65_535;

/// Why a text is not a CPU list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    #[error("`{part}` is not a CPU number or range such as `0-3,8`")]
    Number { part: String },
    #[error("the range {first}-{last} runs backwards")]
    Backwards { first: u32, last: u32 },
    #[error("CPU {cpu} is beyond {HIGHEST}, the highest number supported")]
    TooHigh { cpu: u32 },
}

/// CPU numbers in ascending order, each once. Blank text is an empty list, as in
/// the `cpulist` of a memory node without CPUs.
///
/// # Errors
/// A part that is no number or range, a range that runs backwards, or a number
/// over 65535.
pub fn parse_cpu_list(text: &str) -> Result<Vec<u32>, CpuListError> {
    let mut seen = std::collections::BTreeSet::new();
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first, part)?, number(last, part)?),
            None => (number(part, part)?, number(part, part)?),
        };
        if first > last {
            return Err(CpuListError::Backwards { first, last });
        }
        if last > HIGHEST {
            return Err(CpuListError::TooHigh { cpu: last });
        }
        seen.extend(first..=last);
    }
    Ok(seen.into_iter().collect())
}

fn number(digits: &str, part: &str) -> Result<u32, CpuListError> {
    // `u32::from_str` also takes a plus sign, which the kernel never writes.
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|_| plain)
        .ok_or_else(|| CpuListError::Number { part: part.chars().take(40).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(parse_cpu_list("0-3,8\n"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpu_list("7"), Ok(vec![7]));
        assert_eq!(parse_cpu_list("\n"), Ok(vec![]));
        assert_eq!(parse_cpu_list("4,2,2-3"), Ok(vec![2, 3, 4]));
    }

    #[test]
    fn refuses_nonsense() {
        for bad in ["a", "0-", "-1", "0,,1", "0 1", "+1", "0-3:1/2", "99999999999", "1-2-3", "٣"] {
            let got = parse_cpu_list(bad);
            assert!(matches!(got, Err(CpuListError::Number { .. })), "{bad}: {got:?}");
        }
        assert_eq!(parse_cpu_list("5-3"), Err(CpuListError::Backwards { first: 5, last: 3 }));
        assert_eq!(
            parse_cpu_list("0-4294967295"),
            Err(CpuListError::TooHigh { cpu: 4_294_967_295 })
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = parse_cpu_list(&text);
        }

        #[test]
        fn list_like_text_gives_sorted_cpus(text in "[0-9,\\-]{0,40}") {
            if let Ok(cpus) = parse_cpu_list(&text) {
                prop_assert!(cpus.windows(2).all(|w| w[0] < w[1]));
            }
        }
    }
}
