//! Determines how much of each description is needed so that clients' lists fit and no golden query is lost.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::golden::{Measurements, with_extra};
use super::levels::Levels;
use super::sessions::ClientLists;
use crate::budget_fit::{Overridden, OverrideFile};
use crate::client_settings::Selected;
use crate::golden::{cases_of, invalid};
use crate::{BudgetFit, BudgetFitRequest, Code, Error, FitLevel, FittedClient, FittedDescription};
use skills_discovery::{Case, Document, EvalOptions, Expect, Outcome, Policy, Router, clauses, outcomes};
use skills_registry::Catalog;
use skills_session::{BudgetedCatalog, ListedEntry, Settings, Truncation, apply_budget};
use skills_skill::client::Profile;
use skills_skill::{Skill, SkillId};

/// A client's model sees only names and descriptions.
const OPTIONS: EvalOptions = EvalOptions { policy: Policy::Blended, with_body: false };

type Descriptions = HashMap<SkillId, String>;

impl Measurements {
    /// Implements [`crate::Client::budget_fit`].
    pub(super) async fn budget_fit(&self, request: BudgetFitRequest) -> Result<BudgetFit, Error> {
        request.check()?;
        let extra = cases_of(request.queries)?;
        let window = request.window.unwrap_or(Settings::default().window);
        let (catalog, own) = (self.skills.snapshot(), self.skills.config.golden_file());
        let (home, lists) = (self.skills.config.dirs.home.clone(), Arc::clone(&self.lists));
        let (levels, cache) = (Arc::clone(&self.levels), Arc::clone(&self.golden));
        self.ranking
            .measure_long(move |router| {
                let lists =
                    request.clients.iter().map(|client| ClientList::of(client, &lists, window, &home));
                let lists = lists.collect::<Result<_, _>>()?;
                let golden = cache.read(&catalog, own.as_deref(), true)?;
                if golden.is_none() && extra.is_empty() {
                    let message = "no golden query defines what must be kept; add one with \
                        `skills golden add`";
                    return Err(Error::new(Code::InvalidRequest, message));
                }
                let golden = with_extra(golden, extra);
                fitted(&router, &catalog, golden.cases(), lists, &levels, &home)
            })
            .await
    }
}

/// The list of a client, and the levels of its skills below `shortened`.
struct ClientList {
    client: String,
    profile: &'static Profile,
    listed: Vec<ListedEntry>,
    window: u32,
    overrides: Option<&'static OverrideFile>,
    /// Skills whose level is set by a settings file that takes precedence over `overrides`.
    fixed: HashSet<SkillId>,
    levels: BTreeMap<SkillId, FitLevel>,
}

impl ClientList {
    fn of(client: &str, lists: &ClientLists, window: u32, home: &Path) -> Result<Self, Error> {
        let (profile, listed) = lists.listed_by(client, window)?;
        let overrides = OverrideFile::of(client);
        let settings = lists.client_settings(Some(profile));
        let own = overrides.map(|overrides| overrides.file(home));
        let is_fixed = |entry: &&ListedEntry| {
            let selected = Selected {
                name: &entry.name,
                other_name: None,
                key: None,
                file: entry.location.as_deref().unwrap_or(Path::new("")),
                bundled: entry.bundled,
            };
            settings.of(&selected).is_some_and(|setting| Some(&setting.file) != own.as_ref())
        };
        let fixed = listed.iter().filter(is_fixed).filter_map(|entry| entry.skill_id.clone());
        let (client, fixed) = (client.to_owned(), fixed.collect());
        Ok(Self { client, profile, listed, window, overrides, fixed, levels: BTreeMap::new() })
    }

    /// Returns the list as written with the change, in the client's order.
    fn entries(&self, catalog: &Catalog, descriptions: &Descriptions) -> Vec<ListedEntry> {
        let entry = |entry: &ListedEntry| {
            let mut entry = entry.clone();
            let Some(id) = entry.skill_id.clone() else { return Some(entry) };
            match self.levels.get(&id) {
                Some(FitLevel::Manual | FitLevel::Off) => return None,
                Some(FitLevel::NameOnly) => {
                    entry.description.clear();
                    entry.cut = false;
                }
                // Its description is not shown.
                _ if entry.name_only.is_some() || entry.other_text => {}
                _ => {
                    if let (Some(text), Some(skill)) = (descriptions.get(&id), catalog.by_id(id.as_str())) {
                        redescribe(&mut entry, &skill.description, text);
                    }
                }
            }
            Some(entry)
        };
        self.listed.iter().filter_map(entry).collect()
    }

    /// Returns the list that the model receives, and whether it is identical to what is written.
    fn shown(&self, entries: &[ListedEntry]) -> (BudgetedCatalog, bool) {
        let allowance = apply_budget(entries, &[], self.profile, self.window);
        let is_kept = |(written, (shown, how)): (&ListedEntry, &(ListedEntry, Truncation))| {
            shown.bundled
                || (written.description == shown.description
                    && !matches!(how, Truncation::Omitted { .. } | Truncation::Beyond))
        };
        let fits = allowance.fill.over.is_none() && entries.iter().zip(&allowance.entries).all(is_kept);
        (allowance, fits)
    }

    /// Returns the list as if it had no budget.
    fn complete(&self) -> Vec<(ListedEntry, Truncation)> {
        self.listed.iter().map(|entry| (entry.clone(), Truncation::Complete)).collect()
    }

    fn fits(&self, catalog: &Catalog, descriptions: &Descriptions) -> bool {
        self.shown(&self.entries(catalog, descriptions)).1
    }

    fn ids(&self) -> impl Iterator<Item = &SkillId> {
        self.listed.iter().filter(|entry| !entry.bundled).filter_map(|entry| entry.skill_id.as_ref())
    }

    /// Returns the skills that no golden query needs, the longest description first.
    fn others(&self, needed: &HashSet<SkillId>) -> Vec<SkillId> {
        let own = self.listed.iter().filter(|entry| !entry.bundled);
        let mut others: Vec<(usize, &SkillId)> = own
            .filter_map(|entry| Some((entry.description.len(), entry.skill_id.as_ref()?)))
            .filter(|(_, id)| !needed.contains(*id))
            .collect();
        others.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        others.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// Shortens, then reduces, as few skills as the budget requires.
    fn reduce(
        &mut self,
        router: &Router,
        catalog: &Catalog,
        needed: &HashSet<SkillId>,
        descriptions: &mut Descriptions,
    ) -> Result<(), Error> {
        let ensure_not_canceled = || router.ensure_not_canceled().map_err(invalid);
        let others = self.others(needed);
        let first = |id: &SkillId| {
            let skill = catalog.by_id(id.as_str())?;
            let parts = clauses(&skill.description);
            let is_exclusion = exclusion_test(router, id);
            let is_kept = |(at, clause): &(usize, &String)| *at == 0 || is_exclusion(clause);
            let remaining: Vec<&str> =
                parts.iter().enumerate().filter(is_kept).map(|(_, clause)| clause.as_str()).collect();
            (remaining.len() < parts.len()).then(|| (id.clone(), remaining.concat().trim().to_owned()))
        };
        let shorter: Vec<(SkillId, String)> =
            others.iter().filter(|id| !descriptions.contains_key(*id)).filter_map(first).collect();
        let with = |count: usize| {
            let mut all = descriptions.clone();
            all.extend(shorter.iter().take(count).cloned());
            all
        };
        let count = fewest(shorter.len(), |count| {
            ensure_not_canceled()?;
            Ok(self.fits(catalog, &with(count)))
        })?;
        *descriptions = with(count);
        let others: Vec<SkillId> = others.into_iter().filter(|id| !self.fixed.contains(id)).collect();
        for level in self.overrides.map_or(&[][..], |file| file.levels) {
            let base = self.levels.clone();
            let mut at = |count: usize| {
                self.levels.clone_from(&base);
                self.levels.extend(others.iter().take(count).map(|id| (id.clone(), *level)));
                ensure_not_canceled()?;
                Ok(self.fits(catalog, descriptions))
            };
            let count = fewest(others.len(), &mut at)?;
            at(count)?;
        }
        Ok(())
    }
}

fn is_name_only(entry: &ListedEntry, id: &SkillId) -> bool {
    entry.name_only.is_some() && entry.skill_id.as_ref() == Some(id)
}

/// Returns the smallest count with which it fits; the largest count if none does.
fn fewest(most: usize, mut fits: impl FnMut(usize) -> Result<bool, Error>) -> Result<usize, Error> {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

/// Replaces the description in the client's entry, which may have text appended and be truncated.
fn redescribe(entry: &mut ListedEntry, before: &str, after: &str) {
    let most = entry.description.chars().count();
    let behind = entry.description.strip_prefix(before.trim()).unwrap_or_default();
    let mut text = format!("{after}{behind}");
    if entry.cut && text.chars().count() >= most {
        text = text.chars().take(most).collect();
    } else {
        entry.cut = false;
    }
    entry.description = text;
}

/// Returns the document of a skill with another description.
fn document(skill: &Skill, description: &str) -> Document {
    let text = skills_skill::read_index_text(skill).ok();
    Document { description: description.to_owned(), digest: None, ..Document::from_skill(skill, text) }
}

/// Returns a test for clauses that state what a skill is not for: without them, it would claim requests of others.
fn exclusion_test(router: &Router, skill: &SkillId) -> impl Fn(&str) -> bool + use<> {
    let exclusions = router.exclusion_clauses(skill).map(|(_, clauses)| clauses).unwrap_or_default();
    move |clause| {
        let clause = clause.trim();
        exclusions.iter().any(|exclusion| clause.contains(exclusion.as_str()) || exclusion.contains(clause))
    }
}

/// A golden set over what clients list, with the queries to preserve.
struct Measure<'a> {
    cases: &'a [Case],
    catalog: &'a Catalog,
}

impl Measure<'_> {
    fn outcomes(&self, router: &Router) -> Result<Vec<Outcome>, Error> {
        outcomes(router, self.cases, OPTIONS).map_err(invalid)
    }

    /// Returns the indexes of the cases that are answered as expected.
    fn expected(&self, router: &Router) -> Result<HashSet<usize>, Error> {
        let outcomes = self.outcomes(router)?;
        let cases = self.cases.iter().zip(&outcomes).enumerate();
        Ok(cases.filter(|(_, (case, outcome))| outcome.is_expected(&case.expect)).map(|(at, _)| at).collect())
    }

    /// Returns the skills that are first for a query that expects them.
    fn winners(&self, router: &Router) -> Result<HashSet<SkillId>, Error> {
        let outcomes = self.outcomes(router)?;
        let won = self.cases.iter().zip(outcomes).filter(|(case, outcome)| {
            matches!(case.expect, Expect::AnyOf(_)) && outcome.is_expected(&case.expect)
        });
        Ok(won.filter_map(|(_, outcome)| outcome.first).collect())
    }

    /// Returns the descriptions of these skills without the clauses that have no effect.
    fn without_idle_clauses(&self, router: &Router, skills: &[SkillId]) -> Result<Descriptions, Error> {
        let expected = self.expected(router)?;
        let mut current = router.snapshot();
        let mut found = Descriptions::new();
        for skill in skills.iter().filter_map(|id| self.catalog.by_id(id.as_str())) {
            let mut parts = clauses(&skill.description);
            let all = parts.len();
            let is_exclusion = exclusion_test(router, &skill.id);
            // The first clause says what the skill does.
            let first = parts.iter().position(|clause| !is_exclusion(clause)).unwrap_or(all);
            for at in (0..all).rev() {
                if at == first || is_exclusion(&parts[at]) {
                    continue;
                }
                let mut fewer = parts.clone();
                fewer.remove(at);
                let draft = current.with_document(document(skill, fewer.concat().trim()));
                if expected.is_subset(&self.expected(&draft)?) {
                    (parts, current) = (fewer, draft);
                }
            }
            if parts.len() < all {
                found.insert(skill.id.clone(), parts.concat().trim().to_owned());
            }
        }
        Ok(found)
    }

    /// Returns the index as a client's model sees it: only these entries, as they are shown.
    fn seen(&self, router: &Router, shown: &[(ListedEntry, Truncation)]) -> Result<Router, Error> {
        let included = shown.iter().filter(|(_, how)| !matches!(how, Truncation::Omitted { .. }));
        let included: HashMap<&SkillId, &str> = included
            .filter_map(|(entry, _)| Some((entry.skill_id.as_ref()?, entry.description.as_str())))
            .collect();
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        for entry in &self.catalog.entries {
            // A changed entry reads its file.
            router.ensure_not_canceled().map_err(invalid)?;
            match included.get(&entry.skill.id) {
                None => removed.push(entry.skill.id.clone()),
                Some(text)
                    if text.trim() == entry.skill.description.trim()
                        && entry.skill.clients.when_to_use.is_none() => {}
                // The shown text contains `when_to_use` where the client appends it.
                Some(text) => {
                    changed.push(Document { when_to_use: None, ..document(&entry.skill, text) });
                }
            }
        }
        let mut router = router.snapshot();
        router.update(changed, &removed);
        Ok(router)
    }
}

fn fitted(
    router: &Router,
    catalog: &Arc<Catalog>,
    cases: &[Case],
    mut lists: Vec<ClientList>,
    levels: &Levels,
    home: &Path,
) -> Result<BudgetFit, Error> {
    let measure = Measure { cases, catalog };
    let mut needed = measure.winners(router)?;
    for list in &lists {
        // Without the skills that a client does not list, others may be first.
        needed.extend(measure.winners(&measure.seen(router, &list.complete())?)?);
    }
    // A list that fits is left unchanged.
    let unchanged = Descriptions::new();
    let over = lists.iter().filter(|list| !list.fits(catalog, &unchanged));
    let listed: HashSet<&SkillId> = over.flat_map(ClientList::ids).collect();
    let mut candidates: Vec<SkillId> = needed.iter().filter(|id| listed.contains(*id)).cloned().collect();
    candidates.sort();
    let mut descriptions = measure.without_idle_clauses(router, &candidates)?;
    for list in &mut lists {
        list.reduce(router, catalog, &needed, &mut descriptions)?;
    }
    // A description that no client shows any longer need not change.
    let is_shown = |id: &SkillId| {
        let shows = |list: &ClientList| !list.levels.contains_key(id) && list.ids().any(|own| own == id);
        lists.iter().any(shows)
    };
    descriptions.retain(|id, _| needed.contains(id) || is_shown(id));
    let clients: Vec<FittedClient> = lists
        .iter()
        .map(|list| client(list, &measure, router, &descriptions, levels, home))
        .collect::<Result<_, _>>()?;
    let mut changed: Vec<FittedDescription> = descriptions
        .into_iter()
        .filter_map(|(skill_id, after)| {
            let skill = catalog.by_id(skill_id.as_str())?;
            let rest = clauses(&after);
            let is_gone = |clause: &String| !rest.iter().any(|line| line.trim() == clause.trim());
            let removed = clauses(&skill.description).into_iter().filter(is_gone);
            Some(FittedDescription {
                removed: removed.map(|clause| clause.trim().to_owned()).collect(),
                location: skill.location.clone(),
                before: skill.description.clone(),
                skill_id,
                after,
            })
        })
        .collect();
    changed.sort_by(|a, b| a.skill_id.cmp(&b.skill_id));
    let fits = clients.iter().all(|client| client.fits && client.lost.is_empty());
    Ok(BudgetFit { fits, queries: cases.len(), clients, descriptions: changed })
}

fn client(
    list: &ClientList,
    measure: &Measure<'_>,
    router: &Router,
    descriptions: &Descriptions,
    levels: &Levels,
    home: &Path,
) -> Result<FittedClient, Error> {
    let planned = list.entries(measure.catalog, descriptions);
    let (now, fits_now) = list.shown(&list.listed);
    let (then, fits) = list.shown(&planned);
    let expected_queries = measure.expected(&measure.seen(router, &list.complete())?)?;
    let expected_now = measure.expected(&measure.seen(router, &now.entries)?)?;
    let expected = measure.expected(&measure.seen(router, &then.entries)?)?;
    let mut lost: Vec<usize> = expected_queries.difference(&expected).copied().collect();
    lost.sort_unstable();
    // What the settings already reduce is not changed again.
    let is_set = |id: &SkillId, level: FitLevel| {
        level == FitLevel::NameOnly && list.listed.iter().any(|entry| is_name_only(entry, id))
    };
    let mut reduced = list.levels.clone();
    let set = list.ids().filter(|id| is_set(id, FitLevel::NameOnly));
    set.for_each(|id| _ = reduced.entry(id.clone()).or_insert(FitLevel::NameOnly));
    for id in list.ids().filter(|id| descriptions.contains_key(*id)) {
        reduced.entry(id.clone()).or_insert(FitLevel::Shortened);
    }
    let mut counts = BTreeMap::new();
    for id in list.ids() {
        *counts.entry(reduced.get(id).copied().unwrap_or(FitLevel::Full)).or_insert(0) += 1;
    }
    let overridden: Vec<Overridden> = list
        .listed
        .iter()
        .filter_map(|entry| {
            let id = entry.skill_id.as_ref()?;
            let level = *list.levels.get(id).filter(|level| !is_set(id, **level))?;
            Some(Overridden { name: entry.name.clone(), location: entry.location.clone()?, level })
        })
        .collect();
    let overrides = list.overrides.filter(|_| !overridden.is_empty());
    Ok(FittedClient {
        client: list.client.clone(),
        name: list.profile.name.clone(),
        version: list.profile.measured_at.clone(),
        limit: then.fill.limit,
        unit: then.fill.unit,
        // Even in a list that fits, the client may shorten its own skills.
        size: (now.fill.wanted, if fits { then.fill.used } else { then.fill.wanted }),
        tokens: (ClientLists::list_tokens(levels, &list.listed), ClientLists::list_tokens(levels, &planned)),
        fits_now,
        fits,
        expected: expected_queries.len(),
        expected_now: expected_queries.intersection(&expected_now).count(),
        lost: lost.into_iter().filter_map(|at| Some(measure.cases.get(at)?.query.clone())).collect(),
        levels: counts,
        reduced,
        overrides: overrides.map(|file| file.overrides(home, &overridden)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_few_skills_as_possible_are_reduced() {
        assert_eq!(fewest(10, |count| Ok(count >= 4)), Ok(4));
        assert_eq!(fewest(10, |_| Ok(true)), Ok(0));
        assert_eq!(fewest(10, |_| Ok(false)), Ok(10));
    }

    #[test]
    fn shorter_description_keeps_the_suffix_of_the_client() {
        let mut entry =
            ListedEntry { description: "Makes a. Makes b. When asked.".to_owned(), ..ListedEntry::default() };
        redescribe(&mut entry, "Makes a. Makes b.", "Makes a.");
        assert_eq!(entry.description, "Makes a. When asked.");
        let mut cut =
            ListedEntry { description: "Makes a. Mak".to_owned(), cut: true, ..ListedEntry::default() };
        redescribe(&mut cut, "Makes a. Makes b.", "Makes a.");
        assert_eq!((cut.description.as_str(), cut.cut), ("Makes a.", false));
    }
}
