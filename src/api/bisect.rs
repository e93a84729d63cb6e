//! `bisect`: which commit changed the winner of a request, with both score breakdowns. Blocking.

use serde::Serialize;

use super::git::{History, git_roots, history};
use super::golden::invalid;
use super::{Code, Error};
use skills_discovery::{Fit, Hit, Request, Router};
use skills_registry::Catalog;
use skills_skill::SkillId;

/// The parameters of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BisectJob {
    pub request: String,
    /// Only changes by which this skill becomes first or stops being first.
    pub skill: Option<SkillId>,
    /// The newest commit.
    pub from: String,
    /// Maximum number of commits.
    pub max_commits: usize,
}

/// A commit that changed the winner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WinnerChange {
    pub commit: String,
    /// When it was committed, milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
    /// Who wrote it.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
    /// The first result before, with its score breakdown.
    pub before: Option<Hit>,
    /// The first result after.
    pub after: Option<Hit>,
    /// The result after of the skill that was first before.
    pub before_now: Option<Hit>,
    /// The result before of the skill that is first after.
    pub after_then: Option<Hit>,
}

/// The outcome of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bisection {
    /// The first result at the newest commit.
    pub current: Option<SkillId>,
    /// Whether it fits the request.
    pub fit: Fit,
    /// The newest commit that changed the winner; none if no commit did.
    pub change: Option<WinnerChange>,
    pub commits: usize,
    /// Whether older commits were not examined.
    pub is_limited: bool,
}

/// Searches from the newest commit to older ones: the winner may change back and forth, so that a binary search could
/// find an older change than the newest one.
///
/// # Errors
/// `invalid_request` for an empty request and where no root is in a repository, `not_found` for an unknown commit.
pub fn bisect(router: &Router, catalog: &Catalog, job: &BisectJob) -> Result<Bisection, Error> {
    let roots = git_roots(catalog);
    let Some(main) = roots.first() else {
        return Err(Error::new(Code::InvalidRequest, "no root is in a git repository"));
    };
    // Roots of the same repository share its commits; other roots are left unchanged.
    let roots: Vec<_> = roots.iter().filter(|root| root.top() == main.top()).collect();
    let newest = main.resolve(&job.from)?;
    let mut router = router.snapshot();
    let mut histories = Vec::with_capacity(roots.len());
    for root in &roots {
        let mut history = History::at(root, &newest, catalog)?;
        history.apply(&mut router, catalog)?;
        histories.push(history);
    }
    let commits = history(&roots, &newest, job.max_commits.saturating_add(1))?;
    let (current, fit) = first(&router, &job.request)?;
    let differs = |before: &Option<SkillId>, after: &Option<SkillId>| match &job.skill {
        Some(skill) => (before.as_ref() == Some(skill)) != (after.as_ref() == Some(skill)),
        None => before != after,
    };
    let mut after = current.clone();
    let mut read = 0;
    for commit in commits.iter().take(job.max_commits) {
        read += 1;
        let changed = router.snapshot();
        for history in &mut histories {
            history.revert(commit, &mut router)?;
        }
        let (before, _) = first(&router, &job.request)?;
        if differs(&before, &after) {
            let hit = |router: &Router, skill: &Option<SkillId>| match skill {
                Some(skill) => hit(router, &job.request, skill),
                None => Ok(None),
            };
            let change = WinnerChange {
                commit: commit.id.clone(),
                at_ms: commit.seconds * 1_000,
                author: commit.author.clone(),
                subject: commit.subject.clone(),
                before: hit(&router, &before)?,
                after: hit(&changed, &after)?,
                before_now: hit(&changed, &before)?,
                after_then: hit(&router, &after)?,
            };
            return Ok(Bisection { current, fit, change: Some(change), commits: read, is_limited: false });
        }
        after = before;
    }
    if let Some(skill) = &job.skill
        && catalog.by_id(skill.as_str()).is_none()
        && !router.ids().any(|id| id == skill)
    {
        let message =
            format!("skill `{skill}` not found: neither in the roots nor in the oldest commit that was read");
        return Err(Error::new(Code::NotFound, message));
    }
    Ok(Bisection { current, fit, change: None, commits: read, is_limited: commits.len() > read })
}

/// Returns the first result of a request, and whether it fits.
fn first(router: &Router, request: &str) -> Result<(Option<SkillId>, Fit), Error> {
    let request = Request { intent: request.to_owned(), limit: 1, ..Request::default() };
    let answer = router.discover(&request).map_err(invalid)?;
    Ok((answer.results.into_iter().next().map(|hit| hit.skill_id), answer.fit))
}

fn hit(router: &Router, request: &str, skill: &SkillId) -> Result<Option<Hit>, Error> {
    let request =
        Request { intent: request.to_owned(), skill: Some(skill.clone()), limit: 1, ..Request::default() };
    Ok(router.discover(&request).map_err(invalid)?.results.into_iter().next())
}
