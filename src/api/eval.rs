//! `eval`: measures the quality of the ranking on a golden set: that of the roots, or files given by name. Blocking.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::golden::{GoldenQuery, MAX_QUERY_LEN, invalid};
use super::{Code, Error};
use skills_base::files::{Folder, OpenError, canonicalize};
use skills_base::number::inflected;
use skills_discovery::{
    self, Advice, Baseline, Case, ChangedQuery, ComparedQueries, Document, EvalOptions, EvalReport, Expect,
    GoldenError, Outcome, Policy, Regression, RequestError, Router, golden_yaml, queries_jsonl, skill_evals,
    skills_jsonl,
};
use skills_registry::{Catalog, RootState};
use skills_skill::{MAX_BYTES, Skill, SkillId};

/// File name of a root's golden set.
const GOLDEN: &str = "golden.yaml";
/// Folder of a bundle with its evaluation files.
const EVALS: &str = "evals";

/// Limits of a root's golden set: its queries are measured for every draft and proposal.
const GOLDEN_LIMITS: QueryLimits = QueryLimits { of: "golden.yaml", queries: 5_000, bytes: 1_000_000 };
/// Limits of the evaluations of a bundle: they are measured for other skills too.
const EVAL_LIMITS: QueryLimits =
    QueryLimits { of: "the evaluations of a skill", queries: 200, bytes: 200_000 };
/// Maximum number of evaluation files of a bundle.
const MAX_EVAL_FILES: usize = 20;

/// Maximum size of a golden set of a root, in bytes.
const GOLDEN_LIMIT: u64 = 16 << 20;

/// Limits of the queries that are measured.
#[derive(Debug, Clone, Copy)]
struct QueryLimits {
    /// What they apply to.
    of: &'static str,
    /// Maximum number of queries.
    queries: usize,
    /// Maximum total length of the queries in bytes.
    bytes: usize,
}

/// Selects the queries of one or several files that are within limits.
#[derive(Debug)]
struct QuerySelection {
    limits: QueryLimits,
    /// Number of further queries.
    queries: usize,
    /// Total length of further queries in bytes.
    bytes: usize,
}

impl QuerySelection {
    fn new(limits: QueryLimits) -> Self {
        Self { limits, queries: limits.queries, bytes: limits.bytes }
    }

    /// Drops the queries of a file that are too long, and those beyond the limits; adds the reasons to `warnings`.
    fn select(&mut self, file: &Path, cases: Vec<Case>, warnings: &mut Vec<String>) -> Vec<Case> {
        let total = cases.len();
        let mut used = Vec::new();
        let (mut first_long, mut long, mut beyond) = (None, 0_usize, 0_usize);
        for (at, case) in cases.into_iter().enumerate() {
            let length = case.query.len();
            if length > MAX_QUERY_LEN && case.query.chars().count() > MAX_QUERY_LEN {
                first_long = first_long.or(Some(at + 1));
                long += 1;
            } else if beyond > 0 || self.queries == 0 || length > self.bytes {
                beyond += 1;
            } else {
                self.queries -= 1;
                self.bytes -= length;
                used.push(case);
            }
        }
        let file = file.display();
        if let Some(first) = first_long {
            let what = inflected(long, "query has", "queries have");
            warnings.push(format!(
                "{file}: {what} more than {MAX_QUERY_LEN} characters and cannot be measured; the first is entry \
                    {first}"
            ));
        }
        if beyond > 0 {
            let QueryLimits { of, queries, bytes } = self.limits;
            let what = inflected(beyond, "query is", "queries are");
            warnings.push(format!(
                "{file}: {what} not measured, of {total}; the maximum for {of} is {queries} queries with {bytes} \
                    bytes in total"
            ));
        }
        used
    }
}

/// The parameters of a measurement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EvalJob {
    /// Skills as JSON Lines; default: the skills of the roots.
    pub skills: Option<PathBuf>,
    /// Queries as JSON Lines; default: the golden sets of the roots.
    pub queries: Option<PathBuf>,
    /// Queries that no skill fits, as JSON Lines.
    pub out_of_scope: Option<PathBuf>,
    /// How rules combine with the text score.
    pub policy: Policy,
    /// Whether headings and bodies are included.
    pub with_body: bool,
    /// Restricts the measurement to queries that expect this skill.
    pub skill: Option<SkillId>,
    /// A commit whose skills are compared with the current ones.
    pub against: Option<String>,
    /// Maximum decrease of a metric since that commit (a fraction of 1).
    pub tolerance: f64,
    /// Whether to search changes of descriptions that win missed queries.
    pub advice: bool,
    /// An earlier result to compare with, and the maximum decrease of a metric (a fraction of 1).
    pub baseline: Option<(PathBuf, f64)>,
}

/// The metrics, their sources, and the regressions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// The metrics.
    #[serde(flatten)]
    pub report: EvalReport,
    /// Number of ranked skills.
    pub skills: usize,
    /// Files of the queries.
    #[serde(serialize_with = "skills_base::paths::serialize")]
    pub golden: Vec<PathBuf>,
    /// Golden files that were skipped, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Expected skills that do not exist: their queries cannot be won.
    pub missing: Vec<SkillId>,
    /// Queries whose first result differs from the baseline; `None` if the baseline does not contain the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<ChangedQuery>>,
    /// Which queries were compared for `changed`, and how many were added and removed since the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<ComparedQueries>,
    /// Changes of descriptions that win missed queries, each measured by a draft; for the first missed queries only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// With a skill: all its queries, in the order of their files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_skill: Option<Vec<SkillQuery>>,
    /// All queries, in the order of their files.
    #[serde(skip)]
    pub queries: Vec<String>,
    /// The index in `golden` of the file of each query; `None` for a query of the caller.
    #[serde(skip)]
    pub sources: Vec<Option<usize>>,
    /// The metrics that are compared with, if any.
    #[serde(skip)]
    pub before: Option<Baseline>,
    /// Metrics that are worse than the baseline's; `None` without a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regressions: Option<Vec<Regression>>,
}

/// A query of one skill, and how it is ranked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillQuery {
    #[serde(flatten)]
    pub query: GoldenQuery,
    pub is_expected: bool,
    /// Rank of the best expected skill, from 1; none if it is not a result.
    pub rank: Option<usize>,
    /// The first result.
    pub won: Option<SkillId>,
    /// By how much the first result is ahead of the expected skill, or that one of the second result if it is the
    /// first.
    pub by: Option<f64>,
}

/// Queries and their files.
#[derive(Debug, Clone, Default)]
pub struct Golden {
    cases: Vec<Case>,
    files: Vec<PathBuf>,
    /// Index of the file for each query; `None` for a query of the caller.
    sources: Vec<Option<usize>>,
    /// Files that were skipped, with the reason.
    warnings: Vec<String>,
}

/// Reads the golden sets of the roots (`golden.yaml` in a root, `evals/*.json` in a bundle), and the user's own one. A
/// `golden.yaml` that is not a regular file (a pipe, a folder) is skipped with a warning.
///
/// # Errors
/// Returns `invalid_configuration` for an unreadable golden set, `not_found` if there is none.
pub fn golden_of(catalog: &Catalog, own: Option<&Path>) -> Result<Golden, Error> {
    let mut golden = Golden::default();
    for file in golden_files(catalog, own) {
        let folder = file.parent().unwrap_or(&file);
        let open = || -> io::Result<String> { Ok(Folder::follow(folder)?.read_text(GOLDEN, GOLDEN_LIMIT)?) };
        match open() {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                golden.warnings.push(unreadable(&file, &error).message);
            }
            text => {
                golden.read(&file, golden_yaml, Some(GOLDEN_LIMITS), |_| text)?;
            }
        }
    }
    // An evaluation file may have been imported.
    let queries: HashSet<String> = golden.cases.iter().map(|case| case.query.clone()).collect();
    for entry in &catalog.entries {
        golden.read_evals(&entry.skill, &queries);
    }
    if golden.files.is_empty() && golden.warnings.is_empty() {
        return Err(Error::new(
            Code::NotFound,
            "no root has a golden set; add a golden.yaml (a list of `query` with `expect: [id]` or \
                `expect: none`) to a root or next to .skill-workbench.yaml, use `skills golden add`, or pass \
                --skills and --queries",
        ));
    }
    Ok(golden)
}

/// Returns the paths of the `golden.yaml` files, whether they exist or not: those of the roots, and the user's own one.
pub fn golden_files(catalog: &Catalog, own: Option<&Path>) -> Vec<PathBuf> {
    let roots = catalog.roots.iter().filter(|root| root.state == RootState::Present);
    let mut files: Vec<PathBuf> = roots.map(|root| root.path.join(GOLDEN)).collect();
    if let Some(own) = own {
        // A project may itself be a root.
        let real = canonicalize(own).ok();
        let is_own = |file: &PathBuf| file == own || (real.is_some() && canonicalize(file).ok() == real);
        if !files.iter().any(is_own) {
            files.push(own.to_owned());
        }
    }
    files
}

/// Reads the golden set of files given by name.
///
/// # Errors
/// Returns `not_found` for a missing file, `invalid_configuration` for an unreadable one.
pub fn golden_in(queries: &Path, out_of_scope: Option<&Path>) -> Result<Golden, Error> {
    let mut golden = Golden::default();
    for file in std::iter::once(queries).chain(out_of_scope) {
        let read = if file.extension().is_some_and(|e| e == "yaml" || e == "yml") {
            golden_yaml
        } else {
            queries_jsonl
        };
        // A file named by the user may be a pipe: `--queries <(…)`.
        if !golden.read(file, read, None, skills_base::files::read_user_text)? {
            return Err(Error::new(Code::NotFound, format!("file {} does not exist", file.display())));
        }
    }
    Ok(golden)
}

impl Golden {
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the index of the file for each query; `None` for a query of the caller.
    pub fn sources(&self) -> &[Option<usize>] {
        &self.sources
    }

    /// Returns the files that were skipped, with the reason.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Adds queries of the caller.
    pub fn extend(&mut self, cases: impl IntoIterator<Item = Case>) {
        self.cases.extend(cases);
        self.sources.resize(self.cases.len(), None);
    }

    /// Adds the queries of a file.
    fn take(&mut self, file: PathBuf, cases: Vec<Case>) {
        self.cases.extend(cases);
        self.sources.resize(self.cases.len(), Some(self.files.len()));
        self.files.push(file);
    }

    /// Adds the evaluations of a bundle, without those that are already among `known` queries.
    fn read_evals(&mut self, skill: &Skill, known: &HashSet<String>) {
        let Ok(bundle) = skill.open() else { return };
        let Ok(files) = bundle.entries(EVALS) else { return };
        let mut names: Vec<String> = files.into_iter().map(|file| file.name).collect();
        names.retain(|name| Path::new(name).extension().is_some_and(|e| e == "json"));
        names.sort();
        if names.len() > MAX_EVAL_FILES {
            let folder = skill.root_dir.join(EVALS);
            self.warnings.push(format!(
                "{}: {} evaluation files; only the first {MAX_EVAL_FILES} are used",
                folder.display(),
                names.len()
            ));
        }
        let mut selection = QuerySelection::new(EVAL_LIMITS);
        for name in names.into_iter().take(MAX_EVAL_FILES) {
            let path = format!("{EVALS}/{name}");
            let file = skill.root_dir.join(&path);
            let text = match bundle.read_text(&path, MAX_BYTES) {
                Ok(text) => text,
                Err(OpenError::TooLarge { limit, .. }) => {
                    let file = file.display();
                    self.warnings
                        .push(format!("{file}: the file has more than {limit} bytes and is not used"));
                    continue;
                }
                // A folder of that name can contain other files, which are skipped.
                Err(_) => continue,
            };
            let Ok(cases) = skill_evals(&skill.id, &text) else { continue };
            let mut cases = selection.select(&file, cases, &mut self.warnings);
            // No request is empty: one such entry would end the measurement of all queries.
            cases.retain(|case| {
                let is_known = known.contains(&case.query) && self.cases.contains(case);
                !is_known && !case.query.trim().is_empty()
            });
            self.take(file, cases);
        }
    }

    /// Adds a file's queries within the limits; returns false if the file does not exist.
    fn read(
        &mut self,
        file: &Path,
        read: fn(&str) -> Result<Vec<Case>, GoldenError>,
        limits: Option<QueryLimits>,
        open: impl FnOnce(&Path) -> io::Result<String>,
    ) -> Result<bool, Error> {
        let text = match open(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(unreadable(file, &error)),
        };
        // A file may have lost its last query.
        let has_queries = text.lines().any(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
        let mut cases =
            if has_queries { read(&text).map_err(|error| unreadable(file, &error))? } else { Vec::new() };
        if let Some(limits) = limits {
            cases = QuerySelection::new(limits).select(file, cases, &mut self.warnings);
        }
        self.take(file.to_owned(), cases);
        Ok(true)
    }
}

/// Creates a router over skills given as JSON Lines.
///
/// # Errors
/// Returns `not_found` or `invalid_configuration`.
pub fn router_of(mut router: Router, skills: &Path) -> Result<Router, Error> {
    let text = skills_base::files::read_user_text(skills).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::new(Code::NotFound, format!("file {} does not exist", skills.display()))
        }
        _ => unreadable(skills, &error),
    })?;
    router.update(skills_jsonl(&text).map_err(|error| unreadable(skills, &error))?, &[]);
    Ok(router)
}

fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(Code::InvalidConfiguration, format!("{}: {error}", file.display())).of_unreadable_file()
}

/// Ranks every query and compares with the baseline, or with the skills of `earlier`.
///
/// # Errors
/// Returns `invalid_request` for an empty query, `invalid_configuration` for an unreadable baseline.
pub fn measure(
    router: &Router,
    mut golden: Golden,
    job: &EvalJob,
    earlier: Option<&Router>,
    catalog: Option<&Catalog>,
) -> Result<Evaluation, Error> {
    let all: HashSet<String> = golden.cases.iter().map(|case| case.query.clone()).collect();
    if let Some(skill) = &job.skill {
        let skill = &id_of(catalog, skill);
        let is_of_skill = |case: &Case| match &case.expect {
            Expect::AnyOf(ids) => ids.contains(skill),
            Expect::Not(id) => id == skill,
            Expect::Nothing => false,
        };
        let own = golden.cases.into_iter().zip(golden.sources).filter(|(case, _)| is_of_skill(case));
        (golden.cases, golden.sources) = own.unzip();
        if golden.cases.is_empty() {
            return Err(Error::new(Code::NotFound, format!("no golden query expects `{skill}`")));
        }
    }
    let options = EvalOptions { policy: job.policy, with_body: job.with_body };
    let mut report = skills_discovery::eval(router, &golden.cases, options).map_err(invalid)?;
    if job.skill.is_some() {
        // The queries of one skill are few: how far the others are ahead is known for all of them.
        for lost in report.lost.iter_mut().filter(|lost| lost.rank.is_none()) {
            let found = skills_discovery::rank_of(router, &lost.query, &lost.expected).map_err(invalid)?;
            (lost.rank, lost.by) = found.map_or((None, lost.by), |(rank, by)| (Some(rank), Some(by)));
        }
    }
    let of_skill = job.skill.as_ref().map(|_| of_skill(router, &golden.cases, options)).transpose();
    let of_skill = of_skill.map_err(invalid)?;
    let (before, tolerance) = match &job.baseline {
        None => {
            let measure = |earlier| skills_discovery::eval(earlier, &golden.cases, options);
            let before = earlier.map(measure).transpose().map_err(invalid)?;
            (before.map(Baseline::from), job.tolerance)
        }
        Some((file, tolerance)) => {
            let text = skills_base::files::read_user_text(file).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    let message = format!(
                        "baseline `{}` does not exist; create one with `skills eval --json`",
                        file.display()
                    );
                    Error::new(Code::NotFound, message)
                }
                _ => unreadable(file, &error),
            })?;
            let baseline: Baseline = serde_json::from_str(&text).map_err(|error| {
                unreadable(file, &format!("not a report of `skills eval --json`: {error}"))
            })?;
            (Some(baseline), *tolerance)
        }
    };
    let worse = |before| skills_discovery::regressions(&report, before, tolerance);
    let regressions = before.as_ref().map(worse);
    let changes = |before| skills_discovery::changed_winners(&report, &all, before);
    let (changed, compared) = before.as_ref().and_then(changes).unzip();
    let indexed: HashSet<&SkillId> = router.ids().collect();
    let mut missing: Vec<SkillId> = golden
        .cases
        .iter()
        .filter_map(|case| match &case.expect {
            Expect::AnyOf(ids) if !ids.iter().any(|id| indexed.contains(id)) => ids.first().cloned(),
            _ => None,
        })
        .collect();
    missing.sort();
    missing.dedup();
    let advice = match catalog.filter(|_| job.advice) {
        Some(catalog) => advice(router, catalog, &golden.cases, &report, options).map_err(invalid)?,
        None => Vec::new(),
    };
    let queries = golden.cases.into_iter().map(|case| case.query).collect();
    let (skills, warnings, sources) = (router.unshadowed(), golden.warnings, golden.sources);
    let golden = golden.files;
    Ok(Evaluation {
        report,
        skills,
        golden,
        warnings,
        missing,
        changed,
        compared,
        advice,
        of_skill,
        queries,
        sources,
        before,
        regressions,
    })
}

/// Returns the id of a skill that is named by its id, or by a name that only it has.
fn id_of(catalog: Option<&Catalog>, requested: &SkillId) -> SkillId {
    let Some(catalog) = catalog.filter(|catalog| catalog.by_id(requested.as_str()).is_none()) else {
        return requested.clone();
    };
    let mut named = catalog.entries.iter().filter(|entry| entry.skill.name == requested.as_str());
    match (named.next(), named.next()) {
        (Some(only), None) => only.skill.id.clone(),
        _ => requested.clone(),
    }
}

/// Ranks the queries of one skill.
fn of_skill(router: &Router, cases: &[Case], options: EvalOptions) -> Result<Vec<SkillQuery>, RequestError> {
    let outcomes = skills_discovery::outcomes(router, cases, options)?;
    let ranked = |(case, outcome): (&Case, Outcome)| {
        let (mut rank, mut by) = (outcome.rank, outcome.by);
        if let Expect::AnyOf(ids) = &case.expect
            && rank.is_none()
        {
            (rank, by) = skills_discovery::rank_of(router, &case.query, ids)?.unzip();
        }
        let is_expected = outcome.is_expected(&case.expect);
        Ok(SkillQuery { query: case.clone().into(), is_expected, rank, won: outcome.first, by })
    };
    cases.iter().zip(outcomes).map(ranked).collect()
}

/// Maximum number of missed queries for which changes are searched.
pub const MAX_ADVISED: usize = 10;

fn advice(
    router: &Router,
    catalog: &Catalog,
    cases: &[Case],
    report: &EvalReport,
    options: EvalOptions,
) -> Result<Vec<Advice>, RequestError> {
    let current = skills_discovery::outcomes(router, cases, options)?;
    let mut found = Vec::new();
    for lost in report.lost.iter().take(MAX_ADVISED) {
        let Some(skill) = lost.expected.first().and_then(|id| catalog.by_id(id.as_str())) else { continue };
        let text = skills_skill::read_index_text(skill).ok();
        let document = Document { digest: None, ..Document::from_skill(skill, text) };
        found.extend(skills_discovery::advise(router, &document, &lost.query, cases, &current)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_beyond_the_limits_are_dropped_with_a_warning() {
        let case = |length: usize| Case { query: "ä".repeat(length), expect: Expect::Nothing };
        let limits = QueryLimits { of: "a set", queries: 3, bytes: 2 * MAX_QUERY_LEN + 20 };
        let mut selection = QuerySelection::new(limits);
        let mut selected = |name: &str, lengths: &[usize]| {
            let mut warnings = Vec::new();
            let cases = lengths.iter().copied().map(case).collect();
            let used = selection.select(Path::new(name), cases, &mut warnings);
            (used.iter().map(|case| case.query.chars().count()).collect::<Vec<_>>(), warnings)
        };
        let (used, warnings) = selected("a.json", &[1, MAX_QUERY_LEN + 1, MAX_QUERY_LEN]);
        assert_eq!(used, [1, MAX_QUERY_LEN]);
        let long =
            "a.json: 1 query has more than 20000 characters and cannot be measured; the first is entry 2";
        assert_eq!(warnings, [long]);
        // The limits apply to all files together: 18 bytes and one query are left.
        let (used, warnings) = selected("b.json", &[10, 1]);
        assert!(used.is_empty());
        let beyond = "b.json: 2 queries are not measured, of 2; the maximum for a set is 3 queries with 40020 \
            bytes in total";
        assert_eq!(warnings, [beyond]);
        assert_eq!(selected("c.json", &[9]), (vec![9], Vec::new()));
        assert_eq!(selected("d.json", &[0]).1.len(), 1, "the number of queries is reached");
    }
}
