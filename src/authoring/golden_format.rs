//! Golden sets in the formats of other tools: evaluation files of skills (JSON), JSON Lines, CSV and YAML.

use std::borrow::Cow;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Map, Value, json};
use skills_discovery::{Case, Expect, GoldenError, golden_yaml, skill_evals};
use skills_skill::SkillId;
use strum::{Display, EnumString};

use crate::golden_file::{GoldenEdit, apply_edit};

/// A file format of a golden set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum GoldenFormat {
    /// `golden.yaml`: `query` with `expect` or `not`.
    Yaml,
    /// The evaluation file of one skill: a list of `query` and `should_trigger`, or `evals` with a `prompt` each.
    Json,
    /// JSON Lines: `query` with `relevant` or `not_skill`, alone if no skill fits.
    Jsonl,
    /// A table with the columns `query`, `expect` and `not`; ids are separated by spaces.
    Csv,
}

impl GoldenFormat {
    /// Returns the format of a file, by its extension.
    pub fn of(file: &Path) -> Option<Self> {
        let extension = file.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "yml" => Some(Self::Yaml),
            "ndjson" => Some(Self::Jsonl),
            other => Self::from_str(other).ok(),
        }
    }
}

/// Why a file is not a golden set.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// An error of a format with its own messages.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// An evaluation file of one skill, without the id of the skill.
    #[error("an evaluation file belongs to one skill; name it")]
    NoSkill,
    /// A table that cannot be parsed.
    #[error("invalid CSV: {0}")]
    Csv(#[from] csv::Error),
    /// A table without the required columns.
    #[error("the table needs a column `query`, and `expect`, `not` or `should_trigger`")]
    Columns,
    /// A row without an expectation.
    #[error(
        "line {0}: needs an id or `none` in `expect`, an id in `not`, or `true` or `false` in `should_trigger`"
    )]
    Row(u64),
    /// Queries that the format cannot represent.
    #[error("this format holds the queries of one skill; {0} of the queries belong to others")]
    Others(usize),
}

/// Parses a golden set. `skill` is the skill of an evaluation file.
///
/// # Errors
/// Returns an error if the text does not have the format.
pub fn parse_golden(
    format: GoldenFormat,
    text: &str,
    skill: Option<&SkillId>,
) -> Result<Vec<Case>, FormatError> {
    // Spreadsheets write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut cases = match format {
        GoldenFormat::Yaml => golden_yaml(text)?,
        GoldenFormat::Jsonl => json_lines(text)?,
        GoldenFormat::Json => {
            // A file that cannot be parsed is reported as such, with or without a skill.
            let cases = skill_evals(skill.unwrap_or(&SkillId::new("")), text)?;
            if skill.is_none() {
                return Err(FormatError::NoSkill);
            }
            cases
        }
        GoldenFormat::Csv => table(text, skill)?,
    };
    cases.retain(|case| !case.query.trim().is_empty());
    Ok(cases)
}

/// Returns the skill of an evaluation file: its `skill_name`, or the folder that contains its `evals` folder.
pub fn skill_of_evals(file: &Path, text: &str) -> Option<SkillId> {
    let stated = serde_json::from_str::<serde_json::Value>(text).ok();
    let stated = stated.and_then(|value| value.get("skill_name")?.as_str().map(SkillId::new));
    let folder = file.parent().filter(|folder| folder.ends_with("evals")).and_then(Path::parent);
    stated.or_else(|| folder.and_then(Path::file_name)?.to_str().map(SkillId::new))
}

/// One or several ids.
#[derive(Deserialize)]
#[serde(untagged)]
enum Ids {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
struct JsonLine {
    #[serde(alias = "prompt")]
    query: String,
    #[serde(default, alias = "expect", alias = "expected", alias = "skill", alias = "skill_id")]
    relevant: Option<Ids>,
    #[serde(default, alias = "not")]
    not_skill: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl JsonLine {
    fn case(self, line: usize) -> Result<Case, GoldenError> {
        let ids = match self.relevant {
            Some(Ids::One(id)) if id == "none" && self.not_skill.is_none() => Some(Vec::new()),
            Some(Ids::One(id)) => Some(vec![id]),
            Some(Ids::Several(ids)) => Some(ids),
            None => None,
        };
        let expect = match (ids, self.not_skill) {
            (Some(ids), None) if !ids.is_empty() => {
                Expect::AnyOf(ids.into_iter().map(SkillId::new).collect())
            }
            (Some(ids), Some(_)) if !ids.is_empty() => {
                return Err(GoldenError::Both { line, query: self.query });
            }
            (_, Some(id)) => Expect::Not(SkillId::new(id)),
            (Some(_), None) => Expect::Nothing,
            // A misspelled key must not turn a query into one that no skill fits.
            (None, None) => match self.others.keys().next() {
                None => Expect::Nothing,
                Some(key) => {
                    let message = format!("unknown key `{key}`, and neither `relevant` nor `not_skill`");
                    let error = serde_json::Error::custom(message);
                    return Err(GoldenError::Line { line, what: "query", error });
                }
            },
        };
        Ok(Case { query: self.query, expect })
    }
}

fn json_lines(text: &str) -> Result<Vec<Case>, FormatError> {
    let case = |(at, text): (usize, &str)| -> Result<Case, FormatError> {
        let line = at + 1;
        let parsed: Result<JsonLine, _> = serde_json::from_str(text);
        let parsed = parsed.map_err(|error| GoldenError::Line { line, what: "query", error })?;
        Ok(parsed.case(line)?)
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(case).collect()
}

/// Returns whether a spreadsheet would execute a cell as a formula, or takes a quote as the sign that it must not.
fn is_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// Returns a cell that a spreadsheet shows as text: a quote precedes what could be a formula.
fn quoted(cell: &str) -> Cow<'_, str> {
    if is_formula(cell) { format!("'{cell}").into() } else { cell.into() }
}

/// Returns the text of a [`quoted`] cell.
fn unquoted(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| is_formula(text)).unwrap_or(cell)
}

fn table(text: &str, skill: Option<&SkillId>) -> Result<Vec<Case>, FormatError> {
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers()?.clone();
    let column = |names: &[&str]| {
        headers.iter().position(|header| names.iter().any(|name| header.eq_ignore_ascii_case(name)))
    };
    let query = column(&["query", "prompt"]).ok_or(FormatError::Columns)?;
    let expect = column(&["expect", "expected", "skill", "skill_id", "relevant"]);
    let not = column(&["not", "not_skill"]);
    let triggers = column(&["should_trigger"]);
    if expect.or(not).or(triggers).is_none() {
        return Err(FormatError::Columns);
    }
    let mut cases = Vec::new();
    for row in reader.records() {
        let row = row?;
        let line = row.position().map_or(0, csv::Position::line);
        let cell =
            |column: Option<usize>| column.and_then(|at| row.get(at)).map(unquoted).unwrap_or_default();
        let ids: Vec<SkillId> =
            cell(expect).split([' ', ',', ';', '|']).filter(|id| !id.is_empty()).map(SkillId::new).collect();
        if !cell(not).is_empty() && !ids.is_empty() {
            let (line, query) = (line as usize, cell(Some(query)).to_owned());
            return Err(GoldenError::Both { line, query }.into());
        }
        let owner = ids.first().or(skill);
        let expect = match (cell(not), cell(triggers).to_ascii_lowercase().as_str()) {
            (id, _) if !id.is_empty() => Expect::Not(SkillId::new(id)),
            (_, "false" | "0" | "no") => Expect::Not(owner.cloned().ok_or(FormatError::NoSkill)?),
            _ if cell(expect) == "none" => Expect::Nothing,
            _ if !ids.is_empty() => Expect::AnyOf(ids),
            (_, "true" | "1" | "yes") => Expect::AnyOf(vec![skill.cloned().ok_or(FormatError::NoSkill)?]),
            _ => return Err(FormatError::Row(line)),
        };
        cases.push(Case { query: cell(Some(query)).to_owned(), expect });
    }
    Ok(cases)
}

/// Formats a golden set. `skill` is the skill of an evaluation file, or the only skill whose queries are written.
///
/// # Errors
/// Returns an error if the format cannot represent all queries.
pub fn format_golden(
    format: GoldenFormat,
    cases: &[Case],
    skill: Option<&SkillId>,
) -> Result<String, FormatError> {
    let ids = |ids: &[SkillId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    match format {
        GoldenFormat::Yaml => {
            let all = GoldenEdit::Add(cases.to_vec());
            apply_edit("", &all).map_err(|error| match error {
                crate::golden_file::EditError::Invalid(error) => error.into(),
                other => GoldenError::Yaml(other.to_string()).into(),
            })
        }
        GoldenFormat::Json => {
            let skill = skill.ok_or(FormatError::NoSkill)?;
            let mut others = 0;
            let mut out = Vec::new();
            for case in cases {
                match &case.expect {
                    Expect::AnyOf(ids) if ids.contains(skill) => {
                        out.push(json!({"query": case.query, "should_trigger": true}));
                    }
                    Expect::Not(id) if id == skill => {
                        out.push(json!({"query": case.query, "should_trigger": false}));
                    }
                    _ => others += 1,
                }
            }
            if others > 0 {
                return Err(FormatError::Others(others));
            }
            let text = serde_json::to_string_pretty(&out).map_err(GoldenError::Evals)?;
            Ok(text + "\n")
        }
        GoldenFormat::Jsonl => Ok(cases
            .iter()
            .map(|case| {
                let line = match &case.expect {
                    Expect::AnyOf(all) => json!({"query": case.query, "relevant": ids(all)}),
                    Expect::Not(id) => json!({"query": case.query, "not_skill": id}),
                    Expect::Nothing => json!({"query": case.query}),
                };
                format!("{line}\n")
            })
            .collect()),
        GoldenFormat::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(["query", "expect", "not"])?;
            for case in cases {
                let (expect, not) = match &case.expect {
                    Expect::AnyOf(all) => (ids(all).join(" "), String::new()),
                    Expect::Nothing => ("none".to_owned(), String::new()),
                    Expect::Not(id) => (String::new(), id.to_string()),
                };
                let cells = [case.query.as_str(), &expect, &not];
                writer.write_record(cells.map(|cell| quoted(cell).into_owned()))?;
            }
            let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> Vec<Case> {
        let id = SkillId::new;
        vec![
            Case { query: "tables, \"quoted\"".into(), expect: Expect::AnyOf(vec![id("a"), id("b")]) },
            Case { query: "the time: now?".into(), expect: Expect::Nothing },
            Case { query: "near".into(), expect: Expect::Not(id("a")) },
        ]
    }

    #[test]
    fn written_queries_are_read_back() {
        for format in [GoldenFormat::Yaml, GoldenFormat::Jsonl, GoldenFormat::Csv] {
            let text = format_golden(format, &cases(), None).unwrap();
            assert_eq!(parse_golden(format, &text, None).unwrap(), cases(), "{format}: {text}");
        }
        let (own, a) = (
            vec![
                Case { query: "q".into(), expect: Expect::AnyOf(vec![SkillId::new("a")]) },
                cases().remove(2),
            ],
            SkillId::new("a"),
        );
        let text = format_golden(GoldenFormat::Json, &own, Some(&a)).unwrap();
        assert_eq!(parse_golden(GoldenFormat::Json, &text, Some(&a)).unwrap(), own);
        assert!(matches!(format_golden(GoldenFormat::Json, &cases(), Some(&a)), Err(FormatError::Others(1))));
    }

    #[test]
    fn cells_of_a_table_are_not_formulas_and_are_read_back() {
        let case = |query: &str, id: &str| Case {
            query: query.to_owned(),
            expect: Expect::AnyOf(vec![SkillId::new(id)]),
        };
        let queries = ["=1+2", "+1", "-x", "@SUM(A1)", "'=1", "''-x", "'quoted'", "it's", "a=b"];
        let cases: Vec<Case> = queries.into_iter().map(|query| case(query, "a")).collect();
        let cases = [cases, vec![case("near", "-b"), case("far", "@c")]].concat();
        let text = format_golden(GoldenFormat::Csv, &cases, None).unwrap();
        for cell in text.lines().flat_map(|line| line.split(',')) {
            assert!(!cell.trim_matches('"').starts_with(['=', '+', '-', '@']), "{text}");
        }
        assert!(
            text.contains("'=1+2,a") && text.contains("''=1,a") && text.contains("\n'quoted',a"),
            "{text}"
        );
        assert_eq!(parse_golden(GoldenFormat::Csv, &text, None).unwrap(), cases);
        let written_elsewhere = parse_golden(GoldenFormat::Csv, "query,expect\n=1+2,a\n", None).unwrap();
        assert_eq!(written_elsewhere, [case("=1+2", "a")]);
    }

    #[test]
    fn tables_have_columns_in_any_order() {
        let text = "should_trigger,Prompt\ntrue,do it\nfalse,\"not, this\"\n";
        let found = parse_golden(GoldenFormat::Csv, text, Some(&SkillId::new("a"))).unwrap();
        assert_eq!(found[1].expect, Expect::Not(SkillId::new("a")));
        assert_eq!(found[1].query, "not, this");
        assert!(matches!(parse_golden(GoldenFormat::Csv, "a,b\n1,2\n", None), Err(FormatError::Columns)));
        let row = parse_golden(GoldenFormat::Csv, "query,expect\nq,a\nr,\n", None);
        assert!(matches!(row, Err(FormatError::Row(3))), "{row:?}");
    }

    #[test]
    fn a_query_with_two_expectations_is_refused() {
        for (format, text) in [
            (GoldenFormat::Csv, "query,expect,not\nq,a,\nboth,fold,single\n"),
            (GoldenFormat::Csv, "query,expect,not\nq,a,\nboth,none,single\n"),
            (GoldenFormat::Jsonl, "{\"query\":\"q\"}\n{\"query\":\"both\",\"expect\":\"a\",\"not\":\"b\"}\n"),
            (
                GoldenFormat::Jsonl,
                "{\"query\":\"q\"}\n{\"query\":\"both\",\"expect\":\"none\",\"not\":\"b\"}\n",
            ),
        ] {
            let error = parse_golden(format, text, None).unwrap_err().to_string();
            assert!(
                error.contains(" `both` has an expected result and a skill that must not win"),
                "{error}"
            );
            assert!(
                error.starts_with(if format == GoldenFormat::Csv { "line 3:" } else { "line 2:" }),
                "{error}"
            );
        }
    }

    #[test]
    fn json_lines_accept_the_keys_of_tables_and_refuse_others() {
        let parsed = |line: &str| parse_golden(GoldenFormat::Jsonl, line, None);
        let a = || Expect::AnyOf(vec![SkillId::new("a")]);
        for (line, expect) in [
            (r#"{"query":"q","expect":["a"]}"#, a()),
            (r#"{"prompt":"q","expected":"a","id":7}"#, a()),
            (r#"{"query":"q","relevant":["a"],"source":"x"}"#, a()),
            (r#"{"query":"q","not":"a"}"#, Expect::Not(SkillId::new("a"))),
            (r#"{"query":"q","expect":"none"}"#, Expect::Nothing),
            (r#"{"query":"q","relevant":[]}"#, Expect::Nothing),
            (r#"{"query":"q"}"#, Expect::Nothing),
        ] {
            assert_eq!(parsed(line).unwrap(), [Case { query: "q".into(), expect }], "{line}");
        }
        let error = parsed("{\"query\":\"q\"}\n{\"query\":\"q\",\"expekt\":[\"a\"]}\n");
        assert!(matches!(error, Err(FormatError::Golden(GoldenError::Line { line: 2, .. }))), "{error:?}");
    }

    #[test]
    fn the_skill_of_an_evaluation_file_is_its_folder() {
        let file = Path::new("/s/pdf/evals/evals.json");
        assert_eq!(skill_of_evals(file, "[]"), Some(SkillId::new("pdf")));
        assert_eq!(skill_of_evals(file, "{\"skill_name\": \"x\"}"), Some(SkillId::new("x")));
        assert_eq!(skill_of_evals(Path::new("/s/evals.json"), "[]"), None);
    }
}
