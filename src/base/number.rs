//! Numbers for people.

/// Separates groups of three digits.
const SEPARATOR: char = ',';

/// Formats a number with separators: `14,639`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(SEPARATOR);
        }
        out.push(digit);
    }
    out
}

/// Formats a count with its noun: `1 skill`, `2 queries`, `14,639 skills`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    inflected(count, noun, &plural(noun))
}

/// Formats a count with text that depends on it: `1 body is`, `2 bodies are`.
pub fn inflected(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Returns the plural of a regular noun.
fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// Formats a size: `812 B`, `9.8 kB`, `41 kB`, `3.2 MB`.
pub fn byte_size(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..9_950 => format!("{:.1} kB", value / 1e3),
        9_950..999_500 => format!("{:.0} kB", value / 1e3),
        999_500..9_950_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.0} MB", value / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators_and_correct_plurals() {
        assert_eq!([0, 312, 14_639, 1_000_000].map(grouped), ["0", "312", "14,639", "1,000,000"]);
        assert_eq!([0, 1, 3_755].map(|n| counted(n, "skill")), ["0 skills", "1 skill", "3,755 skills"]);
        assert_eq!([1, 2].map(|n| counted(n, "query")), ["1 query", "2 queries"]);
        assert_eq!(["key", "match", "index", "box"].map(plural), ["keys", "matches", "indexes", "boxes"]);
        assert_eq!([1, 2].map(|n| inflected(n, "body is", "bodies are")), ["1 body is", "2 bodies are"]);
    }

    #[test]
    fn sizes_have_two_or_three_digits() {
        let sizes = [812, 9_800, 9_950, 41_300, 999_500, 3_200_000, 41_000_000].map(byte_size);
        assert_eq!(sizes, ["812 B", "9.8 kB", "10 kB", "41 kB", "1.0 MB", "3.2 MB", "41 MB"]);
    }
}
