//! Exact conversion of decimal times: a float could not hold the nanoseconds of a date.

use crate::Ns;

/// Parses a number of units of `unit_ns` (1, 1,000, … 10^9) into whole nanoseconds, rounded to the
/// nearest: `12`, `12.5`, `1.7e9`, `-3`. `None` if it is not a number or beyond 2^100.
pub(crate) fn nanoseconds(text: &str, unit_ns: Ns) -> Option<i128> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut digits: i128 = 0;
    let mut scale = i64::from(exponent) + i64::from(unit_ns.ilog10());
    for (index, byte) in whole.bytes().chain(fraction.bytes()).enumerate() {
        if !byte.is_ascii_digit() {
            return None;
        }
        let fractional = index >= whole.len();
        // Further digits are far below a nanosecond, or the number is far beyond 2^100.
        if digits < 1 << 100 {
            digits = digits * 10 + i128::from(byte - b'0');
            scale -= i64::from(fractional);
        } else if !fractional {
            return None;
        }
    }
    let value = match u32::try_from(scale) {
        _ if digits == 0 => 0,
        Ok(up) => 10i128.checked_pow(up)?.checked_mul(digits)?,
        Err(_) => match 10i128.checked_pow(u32::try_from(-scale).ok()?) {
            Some(by) => (digits + by / 2) / by,
            None => 0,
        },
    };
    (value < 1 << 100).then_some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_to_the_nanosecond() {
        for (text, unit, ns) in [
            ("12", 1, 12),
            ("12.5", 1_000_000, 12_500_000),
            (".5", 1_000, 500),
            ("5.", 1_000, 5_000),
            ("+1", 1_000_000_000, 1_000_000_000),
            ("-3e-3", 1_000_000_000, -3_000_000),
            ("1753182000.123456789", 1_000_000_000, 1_753_182_000_123_456_789),
            ("1.753182E9", 1_000_000_000, 1_753_182_000_000_000_000),
            ("0.4999999999", 1, 0),
            ("0.5", 1, 1),
            ("0.00000000000000000000000000000000000000000000000000001", 1, 0),
            ("1e-2000000000", 1, 0),
            ("0e2000000000", 1, 0),
            ("3.3333333333333333333333333333333333333333333333", 1, 3),
        ] {
            assert_eq!(nanoseconds(text, unit), Some(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            "-",
            ".",
            "e5",
            "1e",
            "1e1.5",
            "NaN",
            "inf",
            "-inf",
            "0x10",
            "1,5",
            "1 ",
            "1_0",
            "--1",
            "1e40",
            "9e2000000000",
            "1e99999999999",
            "٣",
            "99999999999999999999999999999999999999999999",
        ] {
            assert_eq!(nanoseconds(text, 1), None, "{text}");
        }
    }
}
