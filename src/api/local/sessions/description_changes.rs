//! Catalog entries that occur in two calls with different descriptions.

use std::collections::HashMap;

use super::difference::{Piece, pieces};
use crate::DescriptionChanges;

/// Compares the entries that both catalogs have by name: which are described with fewer words, with none, with more, or
/// differently. The format and the location of an entry are ignored.
pub(super) fn redescribed(before: &str, after: &str) -> DescriptionChanges {
    let mut out = DescriptionChanges::default();
    if before == after {
        return out;
    }
    let was: HashMap<String, String> = pieces(before, true).iter().filter_map(entry).collect();
    for (name, now) in pieces(after, true).iter().filter_map(entry) {
        let Some(was) = was.get(&name).filter(|was| **was != now) else { continue };
        *if now.is_empty() {
            &mut out.name_only
        } else if was.starts_with(uncut(&now)) && now.len() < was.len() {
            &mut out.shortened
        } else if now.starts_with(uncut(was)) {
            &mut out.longer
        } else {
            &mut out.rewritten
        } += 1;
    }
    out
}

/// Returns name and description, in either format of the catalog.
fn entry(part: &Piece<'_>) -> Option<(String, String)> {
    let name = part.name?;
    let described = match part.text.split_once("<description>") {
        Some((_, rest)) if part.text.starts_with("<skill>") => rest.split_once("</description>")?.0,
        _ => part.text.strip_prefix("- ")?.strip_prefix(name)?.strip_prefix(':')?,
    };
    Some((name.to_owned(), unescaped(described)))
}

/// Normalizes to one line without XML escapes.
fn unescaped(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    marks.iter().fold(words.join(" "), |text, (mark, sign)| text.replace(mark, sign))
}

/// Removes the ellipsis of a truncated text.
fn uncut(text: &str) -> &str {
    text.trim_end_matches('…').trim_end_matches("...").trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_session::{Form, ListedEntry, ToolNameFormat, catalog_text};

    fn catalog(form: Form, described: &[(&str, &str)]) -> String {
        let entry = |(name, description): &(&str, &str)| ListedEntry {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            location: Some(format!("/s/{name}/SKILL.md").into()),
            ..ListedEntry::default()
        };
        let entries: Vec<ListedEntry> = described.iter().map(entry).collect();
        catalog_text(&entries, form, ToolNameFormat::Dotted).text
    }

    #[test]
    fn only_truncated_descriptions_are_counted_in_every_format() {
        let full = [
            ("csv", "Profiles a table & reports it"),
            ("pdf", "Reads pages: of a file"),
            ("log", "Merges logs"),
            ("old", "Goes"),
        ];
        let short = [("pdf", "Reads pag…"), ("csv", "Profiles"), ("log", ""), ("new", "Comes")];
        let edited = [("csv", "Counts rows"), ("pdf", "Reads pages: of a file, and more")];
        for form in [Form::Xml, Form::Bullets] {
            for other in [Form::Xml, Form::Bullets] {
                let (full, short) = (catalog(form, &full), catalog(other, &short));
                let counts =
                    DescriptionChanges { shortened: 2, name_only: 1, ..DescriptionChanges::default() };
                assert_eq!(redescribed(&full, &short), counts, "{form} {other}");
                let counts = DescriptionChanges { longer: 3, ..DescriptionChanges::default() };
                assert_eq!(redescribed(&short, &full), counts, "{other} {form}");
                let counts = DescriptionChanges { longer: 1, rewritten: 1, ..DescriptionChanges::default() };
                assert_eq!(redescribed(&full, &catalog(other, &edited)), counts);
            }
            let same = catalog(form, &full);
            assert!(redescribed(&same, &same).is_empty());
        }
    }
}
