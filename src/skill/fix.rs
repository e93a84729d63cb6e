//! `--fix`: unambiguous repairs. Everything else stays byte for byte.

use super::fence::{self, FenceDefect};
use super::finding_builder::slice;
use super::lint::rules;
use super::{repair, yaml};

/// A repaired file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixResult {
    /// The complete file.
    pub bytes: Vec<u8>,
    /// Codes of the repairs, in the order of the table of rules.
    pub applied: Vec<&'static str>,
}

/// Repairs a `SKILL.md`: byte order mark, line endings, blank lines before the frontmatter, missing fences, quotes.
/// Returns `None` if no repair is needed, or the file is not UTF-8. The repair is idempotent.
pub fn fix(bytes: &[u8]) -> Option<FixResult> {
    let mut text = std::str::from_utf8(bytes).ok()?.to_owned();
    let mut applied = Vec::new();
    let without_mark = text.trim_start_matches('\u{feff}').len();
    if without_mark < text.len() {
        text.drain(..text.len() - without_mark);
        applied.push(rules::BYTE_ORDER_MARK.code);
    }
    if text.contains("\r\n") {
        text = line_feeds(&text);
        applied.push(rules::CRLF.code);
    }
    let fenced = fence::split(&text);
    // Fences are only inserted if they enclose valid frontmatter.
    let readable = is_mapping(slice(&text, fenced.yaml.clone()));
    // In reverse order, so that the offsets of the others stay valid.
    for defect in fenced.defects.iter().rev().filter(|_| readable) {
        match *defect {
            FenceDefect::LeadingBlankLines(at) => {
                text.drain(..at);
                applied.push(rules::LEADING_BLANK_LINES.code);
            }
            FenceDefect::NoOpening(at) => {
                text.insert_str(at, "---\n");
                applied.push(rules::NO_OPENING_FENCE.code);
            }
            _ => {}
        }
    }
    // The offsets have changed.
    let fenced = fence::split(&text);
    for defect in fenced.defects.iter().filter(|_| readable) {
        if let FenceDefect::NoClosing(at) = *defect {
            let fence = if slice(&text, ..at).ends_with('\n') { "---\n" } else { "\n---\n" };
            text.insert_str(at, fence);
            applied.push(rules::NO_CLOSING_FENCE.code);
        }
    }
    let yaml_range = fence::split(&text).yaml;
    let yaml_text = slice(&text, yaml_range.clone());
    if yaml::parse(yaml_text).is_err() {
        let repaired = repair::quote_values(yaml_text, |_| true).filter(|all| yaml::parse(&all.text).is_ok());
        if let Some(sure) = repaired.and_then(|_| repair::quote_values(yaml_text, |quoted| quoted.sure)) {
            let colons = sure.quoted.iter().any(|quoted| quoted.colon);
            let others = sure.quoted.iter().any(|quoted| !quoted.colon);
            applied.extend(colons.then_some(rules::UNQUOTED_COLON.code));
            applied.extend(others.then_some(rules::UNQUOTED_VALUE.code));
            text.replace_range(yaml_range, &sure.text);
        }
    }
    applied.sort_by_key(|code| rules::ALL.iter().position(|rule| rule.code == *code));
    (!applied.is_empty()).then(|| FixResult { bytes: text.into_bytes(), applied })
}

fn line_feeds(text: &str) -> String {
    let ends = |line: &str| match line.strip_suffix('\n') {
        Some(line) => format!("{}\n", line.trim_end_matches('\r')),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(ends).collect()
}

fn is_mapping(yaml_text: &str) -> bool {
    let parsed = yaml::parse(yaml_text).ok().or_else(|| {
        let repaired = repair::quote_values(yaml_text, |_| true)?;
        yaml::parse(&repaired.text).ok()
    });
    parsed.is_some_and(|root| !root.entries().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(source: &str) -> (String, Vec<&'static str>) {
        let fixed = fix(source.as_bytes()).unwrap();
        (String::from_utf8(fixed.bytes).unwrap(), fixed.applied)
    }

    #[test]
    fn only_quotes_are_added() {
        let (text, applied) =
            fixed("---\nname: a\ndescription: one: two   \n# note\n---\n\tbody: as it was  \n");
        assert_eq!(text, "---\nname: a\ndescription: \"one: two\"   \n# note\n---\n\tbody: as it was  \n");
        assert_eq!(applied, ["unquoted-colon"]);
    }

    #[test]
    fn byte_order_mark_crlf_and_blank_lines_are_removed() {
        let (text, applied) = fixed("\u{feff}\r\n\r\n---\r\nname: a\r\n---\r\nx\ry\r\n");
        assert_eq!(text, "---\nname: a\n---\nx\ry\n");
        assert_eq!(applied, ["byte-order-mark", "crlf", "leading-blank-lines"]);
    }

    #[test]
    fn missing_fences_are_added() {
        assert_eq!(
            fixed("name: a\ndescription: b: c\n---\nT\n").0,
            "---\nname: a\ndescription: \"b: c\"\n---\nT\n"
        );
        assert_eq!(fixed("---\nname: a\n\n# T\n").0, "---\nname: a\n---\n\n# T\n");
        assert_eq!(fixed("\n\nname: a\n---\nT\n").0, "---\nname: a\n---\nT\n");
        assert_eq!(fixed("---\nname: a").0, "---\nname: a\n---\n");
    }

    #[test]
    fn ambiguous_defects_are_not_fixed() {
        for source in [
            "# Title\n\nText\n",
            "---\nd: a: b # c\n---\n",
            "---\nmetadata: {a: b: c}\n---\n",
            "---\nallowed-tools: [Read] [Write]\n---\n",
            "---\ndescription: !!str a: b\n---\n",
            "---\nname: a\ndescription: b\n---\n",
            "---\n- a\n# T\n",
        ] {
            assert_eq!(fix(source.as_bytes()), None, "{source}");
        }
        assert_eq!(fix(&[0xff, 0xfe]), None);
    }
}
