//! The rows of the list: missed queries, false triggers, won and rejected ones, each group with its title.

use skills_api::{GoldenResult, GoldenState};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// The title of a group.
    Heading(GoldenState),
    /// A blank row between groups.
    Blank,
    /// A query, by its index in the report.
    Query(usize),
}

/// The start of a filter word that names the skill which a query expects, or must not have first.
pub const EXPECTS: &str = "expects:";

/// Returns the rows whose query, expectation or winner contains all words of the filter. A word that starts with
/// [`EXPECTS`] is the id of a skill of the expectation, or a part of an id if no expectation has this id.
pub fn rows(results: &[GoldenResult], filter: &str) -> Vec<Row> {
    let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
    let expects = |result: &GoldenResult, matches: &dyn Fn(&str) -> bool| {
        let mut skills = result.query.expect.iter().chain(&result.query.not);
        skills.any(|skill| matches(&skill.as_str().to_lowercase()))
    };
    let is_id = |id: &str| results.iter().any(|result| expects(result, &|skill| skill == id));
    let has_words = |result: &GoldenResult| {
        let first = result.first.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = format!("{} {} {first}", result.query.query, result.query.expectation()).to_lowercase();
        words.iter().all(|word| match word.strip_prefix(EXPECTS).filter(|id| !id.is_empty()) {
            Some("none") if !is_id("none") => result.query.expect.is_empty() && result.query.not.is_none(),
            Some(id) if is_id(id) => expects(result, &|skill| skill == id),
            Some(part) => expects(result, &|skill| skill.contains(part)),
            None => text.contains(word),
        })
    };
    let mut out = Vec::new();
    let mut group = None;
    for (at, result) in results.iter().enumerate().filter(|(_, result)| has_words(result)) {
        if group != Some(result.state) {
            if group.is_some() {
                out.push(Row::Blank);
            }
            // Missed queries are directly below the column heads.
            if result.state != GoldenState::Lost {
                out.push(Row::Heading(result.state));
            }
            group = Some(result.state);
        }
        out.push(Row::Query(at));
    }
    out
}

/// Returns the row of a query at an index, or nearest to it.
pub fn nearest(rows: &[Row], at: usize) -> usize {
    let is_query = |row: &usize| matches!(rows.get(*row), Some(Row::Query(_)));
    let below = (at..rows.len()).find(is_query);
    below.or_else(|| (0..at.min(rows.len())).rev().find(is_query)).unwrap_or(0)
}

/// Returns the row of the query that is `by` queries further; stops at the ends.
pub fn moved(rows: &[Row], at: usize, by: isize) -> usize {
    let queries: Vec<usize> = (0..rows.len()).filter(|row| matches!(rows[*row], Row::Query(_))).collect();
    let here = queries.partition_point(|row| *row < at);
    let next = here.saturating_add_signed(by).min(queries.len().saturating_sub(1));
    queries.get(next).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_api::GoldenQuery;
    use skills_skill::SkillId;

    fn result(query: &str, state: GoldenState) -> GoldenResult {
        GoldenResult {
            query: GoldenQuery { query: query.to_owned(), expect: vec![SkillId::new("pdf")], not: None },
            state,
            rank: Some(2),
            first: Some(SkillId::new("xlsx")),
            fits: true,
            by: Some(0.4),
            source: None,
            place: 0,
        }
    }

    #[test]
    fn expectation_filter_prefers_whole_ids() {
        let mut other = result("pdf", GoldenState::Won);
        other.query.expect = vec![SkillId::new("pdf-forms")];
        let mut not = result("a poem", GoldenState::Won);
        (other.query.not, not.query.expect) = (None, Vec::new());
        not.query.not = Some(SkillId::new("PDF"));
        let mut none = result("the weather", GoldenState::Won);
        (none.query.not, none.query.expect) = (None, Vec::new());
        let results = [result("a table", GoldenState::Won), other, not, none];
        let found = |filter: &str| rows(&results, filter);
        assert_eq!(found("expects:pdf"), [Row::Heading(GoldenState::Won), Row::Query(0), Row::Query(2)]);
        assert_eq!(found("expects:-forms"), [Row::Heading(GoldenState::Won), Row::Query(1)]);
        assert_eq!(found("expects:none"), [Row::Heading(GoldenState::Won), Row::Query(3)]);
    }

    #[test]
    fn groups_have_titles_and_the_filter_leaves_matches() {
        use Row::{Blank, Heading, Query};
        let results = [
            result("make a sheet", GoldenState::Lost),
            result("write a poem", GoldenState::FalseTrigger),
            result("read a table", GoldenState::Won),
        ];
        let all = rows(&results, "");
        let expected = [
            Query(0),
            Blank,
            Heading(GoldenState::FalseTrigger),
            Query(1),
            Blank,
            Heading(GoldenState::Won),
            Query(2),
        ];
        assert_eq!(all, expected);
        assert_eq!(rows(&results, "TABLE xlsx"), [Heading(GoldenState::Won), Query(2)]);
        assert_eq!((moved(&all, 0, 1), moved(&all, 3, -1), moved(&all, 6, 9)), (3, 0, 6));
        assert_eq!((nearest(&all, 1), nearest(&all, 9)), (3, 6));
    }
}
