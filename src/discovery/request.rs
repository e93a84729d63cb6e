//! Requests to the router.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString};

use skills_skill::{Role, SkillId};

/// How rule terms (role, status, read-only intent) combine with the text score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[derive(Serialize, Deserialize, schemars::JsonSchema, Display, EnumString, EnumIter)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Policy {
    /// Rules are small, bounded, visible terms of the score.
    #[default]
    Blended,
    /// Rules sort first, in literal order, among candidates that match.
    Strict,
}

/// One request to the router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["intent"]))]
pub struct Request {
    /// The request in natural language.
    #[schemars(length(min = 1, max = 20_000), regex(pattern = r"\S"))]
    pub intent: String,
    /// Keep only skills of these domains; empty keeps all.
    pub domain: Vec<String>,
    /// Keep only this role (`sidecar` includes sidecars in the ranking).
    pub role_filter: Option<Role>,
    /// Maximum number of results; default 10.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: usize,
    /// How rules combine with the text score.
    pub policy: Policy,
    /// Whether headings and bodies are ranked; default true.
    pub with_body: bool,
    /// Whether the last word may be unfinished (interactive input).
    pub typing: bool,
    /// Include deprecated skills.
    pub include_deprecated: bool,
    /// Number of results to skip. The verdict still refers to the first one.
    #[serde(skip_serializing_if = "is_zero")]
    pub offset: usize,
    /// Keep skills whose id, name or description has each of these words, ignoring case. Ranks stay those among all
    /// results.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 20_000))]
    pub filter: String,
    /// Keep only this skill, for its rank and breakdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillId>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

impl Request {
    /// Returns whether a filter or a single skill restricts the results.
    #[must_use]
    pub fn is_narrowed(&self) -> bool {
        self.skill.is_some() || !self.filter.trim().is_empty()
    }
}

impl Default for Request {
    fn default() -> Self {
        Self {
            intent: String::new(),
            domain: Vec::new(),
            role_filter: None,
            limit: 10,
            policy: Policy::Blended,
            with_body: true,
            typing: false,
            include_deprecated: false,
            offset: 0,
            filter: String::new(),
            skill: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{Answer, ExcludedWhy};
    use super::super::{Document, Router, Weights};
    use super::*;
    use skills_skill::{AttachTarget, Status};

    fn router() -> Router {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        let mut skills: Vec<Document> = (0..60)
            .map(|n| {
                let text = format!("Extracts tables number {n} from PDF files {}.", "and more ".repeat(n));
                Document::new(format!("tables-{n}"), format!("tables-{n}"), text)
            })
            .collect();
        let mut sidecar = Document::new("audit", "audit", "Audits tables of PDF files.");
        sidecar.role = Role::Sidecar;
        sidecar.attach_targets = vec![AttachTarget::Output];
        let mut old = Document::new("old", "old", "Extracts tables from PDF files.");
        old.status = Status::Deprecated;
        skills.extend([sidecar, old, Document::new("mail", "mail", "Writes short mails.")]);
        router.update(skills, &[]);
        router
    }

    fn ask(router: &Router, change: impl FnOnce(&mut Request)) -> Answer {
        let mut request = Request { intent: "extract the tables of a pdf".into(), ..Request::default() };
        change(&mut request);
        router.discover(&request).unwrap()
    }

    #[test]
    fn joined_pages_equal_the_complete_list() {
        let router = router();
        let all = ask(&router, |r| r.limit = 1000);
        let mut pages = Vec::new();
        for offset in (0..all.results.len()).step_by(7) {
            let page = ask(&router, |r| (r.offset, r.limit) = (offset, 7));
            assert_eq!(page.verdict, all.verdict, "the verdict is about the first of all");
            assert_eq!(page.below_limit, all.results.len() - offset - page.results.len());
            for (place, hit) in page.results.iter().enumerate() {
                assert_eq!(hit.rank, (offset > 0).then_some(offset + place + 1));
            }
            pages.extend(page.results.into_iter().map(|hit| (hit.skill_id, hit.score)));
        }
        let all_pages: Vec<_> = all.results.into_iter().map(|hit| (hit.skill_id, hit.score)).collect();
        assert_eq!(pages, all_pages);
        let beyond = ask(&router, |r| r.offset = usize::MAX);
        assert!(beyond.results.is_empty() && beyond.below_limit == 0);
    }

    #[test]
    fn a_filter_keeps_ranks_and_the_verdict() {
        let router = router();
        let all = ask(&router, |r| r.limit = 1000);
        let filtered = ask(&router, |r| "NUMBER 4".clone_into(&mut r.filter));
        let expected: Vec<_> =
            all.results.iter().enumerate().filter(|(_, h)| h.description.contains('4')).collect();
        assert_eq!(filtered.results.len() + filtered.below_limit, expected.len());
        for (hit, (place, same)) in filtered.results.iter().zip(expected) {
            assert_eq!((&hit.skill_id, hit.rank), (&same.skill_id, Some(place + 1)));
        }
        assert_eq!((filtered.verdict, filtered.fit), (all.verdict, all.fit));
        assert!(filtered.attachable.is_empty() && filtered.excluded.is_empty());
    }

    #[test]
    fn skill_is_ranked_excluded_attachable_or_absent() {
        let router = router();
        let all = ask(&router, |r| r.limit = 1000);
        let alone = |id: &str| ask(&router, |r| (r.skill, r.limit) = (Some(SkillId::new(id)), 1));
        let last = all.results.last().unwrap();
        let found = &alone(last.skill_id.as_str()).results[0];
        assert_eq!((found.rank, found.score), (Some(all.results.len()), last.score));
        assert_eq!(alone("old").excluded[0].reason, ExcludedWhy::Deprecated);
        assert_eq!(alone("audit").attachable[0].attach_targets, [AttachTarget::Output]);
        let absent = alone("nosuch");
        assert!(absent.results.is_empty() && absent.attachable.is_empty() && absent.excluded.is_empty());
    }

    #[test]
    fn sidecars_count_the_results_before_them() {
        let all = ask(&router(), |r| r.limit = 1000);
        let [audit] = &all.attachable[..] else { panic!("{:?}", all.attachable) };
        let before = all.results.iter().filter(|hit| hit.score > audit.score).count();
        assert_eq!(audit.results_before, before);
    }
}
