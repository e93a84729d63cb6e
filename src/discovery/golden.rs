//! Golden sets: requests with the skills that should win. Read from `golden.yaml`, from JSON Lines, and from the
//! evaluation files of skills.

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::Document;
use skills_skill::{IndexText, SkillId, index_body, yaml_message};

/// The expected result of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// One of these skills should be first.
    AnyOf(Vec<SkillId>),
    /// No skill fits.
    Nothing,
    /// This skill must not be first with a fit.
    Not(SkillId),
}

/// A request with its expected result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The request.
    pub query: String,
    /// The expected result.
    pub expect: Expect,
}

/// Why a golden set is invalid.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// An invalid line of JSON Lines.
    #[error("line {line} is not a {what}: {error}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// What the line should be.
        what: &'static str,
        /// The parse error.
        error: serde_json::Error,
    },
    /// An invalid YAML golden set.
    #[error(
        "invalid golden set: {0}; each entry needs `query: …` with `expect: [id, …]`, `expect: none` or `not: id`"
    )]
    Yaml(String),
    /// An invalid evaluation file.
    #[error(
        "invalid evaluation file: {0}; expected a list of `{{\"query\", \"should_trigger\"}}`, or \
            `{{\"evals\": [{{\"prompt\"}}]}}`"
    )]
    Evals(serde_json::Error),
    /// An entry has both `expect` and `not`, or neither.
    #[error("`{query}` needs either `expect` or `not`")]
    Either {
        /// The request of the entry.
        query: String,
    },
    /// A line or row names both an expected skill and one that must not win.
    #[error(
        "line {line}: `{query}` has an expected result and a skill that must not win; a query has only one of them"
    )]
    Both {
        /// The line number, from 1.
        line: usize,
        /// The request of the line.
        query: String,
    },
    /// `expect` is a word other than `none`.
    #[error("`expect` of the query `{query}` is `{word}`; write `expect: [{word}]`, or `expect: none`")]
    Word {
        /// The request of the entry.
        query: String,
        word: String,
    },
    /// The list of expected skills is empty.
    #[error("`{query}` has an empty list; use `none` if no skill fits")]
    Empty {
        /// The request of the entry.
        query: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct YamlCase {
    query: String,
    #[serde(default)]
    expect: Option<YamlExpect>,
    #[serde(default)]
    not: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum YamlExpect {
    List(Vec<String>),
    Word(String),
}

/// Parses a `golden.yaml`: a list of `query` with `expect` (a list of ids, or `none`) or with `not` (an id that must
/// not win).
///
/// # Errors
/// Returns an error if the text does not have that format.
pub fn golden_yaml(text: &str) -> Result<Vec<Case>, GoldenError> {
    let cases: Vec<YamlCase> =
        serde_saphyr::from_str(text).map_err(|error| GoldenError::Yaml(yaml_message(&error)))?;
    cases
        .into_iter()
        .map(|YamlCase { query, expect, not }| match (expect, not) {
            (Some(YamlExpect::List(ids)), None) if ids.is_empty() => Err(GoldenError::Empty { query }),
            (Some(YamlExpect::List(ids)), None) => {
                Ok(Case { query, expect: Expect::AnyOf(ids.into_iter().map(SkillId::new).collect()) })
            }
            (Some(YamlExpect::Word(word)), None) if word == "none" => {
                Ok(Case { query, expect: Expect::Nothing })
            }
            (Some(YamlExpect::Word(word)), None) => Err(GoldenError::Word { query, word }),
            (None, Some(id)) => Ok(Case { query, expect: Expect::Not(SkillId::new(id)) }),
            (Some(_), Some(_)) | (None, None) => Err(GoldenError::Either { query }),
        })
        .collect()
}

#[derive(Deserialize)]
struct LineSkill {
    id: String,
    name: String,
    description: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    headings: Option<Vec<String>>,
    #[serde(default)]
    body: Option<String>,
}

#[derive(Deserialize)]
struct LineQuery {
    query: String,
    #[serde(default)]
    relevant: Vec<String>,
    #[serde(default)]
    not_skill: Option<String>,
}

/// Parses each line, with its number.
fn lines<T: serde::de::DeserializeOwned>(
    text: &str,
    what: &'static str,
) -> Result<Vec<(usize, T)>, GoldenError> {
    let of = |(at, line): (usize, &str)| {
        let parsed = serde_json::from_str(line).map(|parsed| (at + 1, parsed));
        parsed.map_err(|error| GoldenError::Line { line: at + 1, what, error })
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(of).collect()
}

/// Parses skills from JSON Lines: `id`, `name`, `description`, `tags`, and optionally `headings` and `body`.
///
/// # Errors
/// Returns an error if a line does not have that format.
pub fn skills_jsonl(text: &str) -> Result<Vec<Document>, GoldenError> {
    let documents = lines::<LineSkill>(text, "skill")?.into_iter().map(|(_, line)| {
        let text = (line.headings.is_some() || line.body.is_some()).then(|| IndexText {
            headings: line.headings.unwrap_or_default(),
            body: line.body.map(|body| index_body(&body).to_owned()).unwrap_or_default(),
        });
        Document { tags: line.tags, text, ..Document::new(line.id, line.name, line.description) }
    });
    Ok(documents.collect())
}

/// Parses requests from JSON Lines: `query` with `relevant` (ids), with `not_skill` (an id that must not win), or
/// alone (no skill fits).
///
/// # Errors
/// Returns an error if a line does not have that format, or has both keys.
pub fn queries_jsonl(text: &str) -> Result<Vec<Case>, GoldenError> {
    let cases = lines::<LineQuery>(text, "query")?.into_iter().map(|(number, line)| {
        let expect = match (line.relevant.is_empty(), line.not_skill) {
            (false, None) => Expect::AnyOf(line.relevant.into_iter().map(SkillId::new).collect()),
            (false, Some(_)) => return Err(GoldenError::Both { line: number, query: line.query }),
            (true, Some(id)) => Expect::Not(SkillId::new(id)),
            (true, None) => Expect::Nothing,
        };
        Ok(Case { query: line.query, expect })
    });
    cases.collect()
}

#[derive(Deserialize)]
struct Eval {
    #[serde(alias = "prompt")]
    query: String,
    #[serde(default = "triggers")]
    should_trigger: bool,
}

fn triggers() -> bool {
    true
}

/// Parses the two formats in use: a list of queries, or a list of tasks that compare results with and without the skill,
/// in `evals`; the skill is expected for each task.
fn evals(json: &str) -> Result<Vec<Eval>, serde_json::Error> {
    let list = match serde_json::from_str(json)? {
        Value::Object(mut file) => file.remove("evals").unwrap_or_default(),
        list => list,
    };
    let Value::Array(entries) = list else {
        return Err(serde_json::Error::custom("neither a list, nor an object with a list `evals`"));
    };
    let eval = |(at, entry): (usize, Value)| {
        let eval = serde_json::from_value(entry);
        eval.map_err(|error| serde_json::Error::custom(format!("entry {}: {error}", at + 1)))
    };
    entries.into_iter().enumerate().map(eval).collect()
}

/// Parses the evaluation file of a skill: a JSON list of `query` and `should_trigger`, or `evals` with a `prompt`
/// each.
///
/// # Errors
/// Returns an error if the text does not have that format.
pub fn skill_evals(skill: &SkillId, json: &str) -> Result<Vec<Case>, GoldenError> {
    let cases = evals(json).map_err(GoldenError::Evals)?.into_iter().map(|eval| Case {
        query: eval.query,
        expect: if eval.should_trigger {
            Expect::AnyOf(vec![skill.clone()])
        } else {
            Expect::Not(skill.clone())
        },
    });
    Ok(cases.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(id: &str) -> Expect {
        Expect::AnyOf(vec![SkillId::new(id)])
    }

    #[test]
    fn yaml_names_skills_or_none() {
        let text =
            "- query: a table from a pdf\n  expect: [pdf-tables]\n- query: what's the time\n  expect: none\n";
        let cases = golden_yaml(text).unwrap();
        assert_eq!(cases[0].expect, any("pdf-tables"));
        assert_eq!(cases[1], Case { query: "what's the time".into(), expect: Expect::Nothing });
        let message = |text: &str| golden_yaml(text).unwrap_err().to_string();
        assert_eq!(
            message("- query: q\n  expect: pdf\n"),
            "`expect` of the query `q` is `pdf`; write `expect: [pdf]`, or `expect: none`"
        );
        assert!(message("- query: q\n  expect: []\n").contains("use `none`"));
        let not = golden_yaml("- query: q\n  not: a\n").unwrap();
        assert_eq!(not[0].expect, Expect::Not(SkillId::new("a")));
        assert!(matches!(golden_yaml("- query: q\n"), Err(GoldenError::Either { .. })));
        assert!(message("- ask: q\n").starts_with("invalid golden set"));
        assert!(message("- query: q\n  not: [a]\n").contains("`not: id`"));
    }

    #[test]
    fn json_lines_contain_skills_and_requests() {
        let skills = skills_jsonl(
            "{\"id\":\"a\",\"name\":\"A\",\"description\":\"d\",\"tags\":[\"t\"],\"headings\":[\"H\"],\"body\":\"b\"}\n\n\
             {\"id\":\"b\",\"name\":\"B\",\"description\":\"d\",\"tags\":[]}\n",
        )
        .unwrap();
        assert_eq!(skills[0].text.as_ref().unwrap().headings, ["H"]);
        assert_eq!(skills[1].text, None);
        let cases = queries_jsonl(
            "{\"query\":\"q\",\"relevant\":[\"a\"]}\n{\"query\":\"r\"}\n{\"query\":\"s\",\"not_skill\":\"b\"}\n",
        )
        .unwrap();
        let expects: Vec<Expect> = cases.into_iter().map(|c| c.expect).collect();
        assert_eq!(expects, [any("a"), Expect::Nothing, Expect::Not(SkillId::new("b"))]);
        let error = queries_jsonl("{\"query\":\"q\"}\nnonsense\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2 is not a query"), "{error}");
        let both = "{\"query\":\"q\"}\n{\"query\":\"fold\",\"relevant\":[\"a\"],\"not_skill\":\"b\"}\n";
        let error = queries_jsonl(both).unwrap_err().to_string();
        assert!(error.starts_with("line 2: `fold` has an expected result and"), "{error}");
    }

    #[test]
    fn a_skills_own_evaluations_become_cases() {
        let json = r#"[{"query":"q","should_trigger":true},{"query":"r","should_trigger":false}]"#;
        let cases = skill_evals(&SkillId::new("a"), json).unwrap();
        assert_eq!(cases[0].expect, any("a"));
        assert_eq!(cases[1].expect, Expect::Not(SkillId::new("a")));
        let json = r#"{"skill_name": "a", "evals": [{"id": 1, "prompt": "q", "expected_output": "x", "files": []}]}"#;
        let cases = skill_evals(&SkillId::new("a"), json).unwrap();
        assert_eq!(cases, [Case { query: "q".into(), expect: any("a") }]);
        let message = |json: &str| skill_evals(&SkillId::new("a"), json).unwrap_err().to_string();
        assert!(message("{}").contains("neither a list, nor an object with a list `evals`"));
        let error = message(r#"[{"query":"q"},{"query":"r","should_trigger":"yes"}]"#);
        assert!(error.contains("entry 2: invalid type: string \"yes\""), "{error}");
        assert!(message(r#"{"evals":[{"task":"q"}]}"#).contains("entry 1: missing field `query`"));
    }
}
