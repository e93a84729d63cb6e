//! The effect of the selected client's budget on the catalog: the label of a row, the full reason, the totals.

use std::collections::HashMap;
use std::sync::Arc;

use super::items;
use crate::pane::Effect;
use crate::session_requests::SessionRequest;
use crate::theme::Role;
use crate::widgets::{Painter, RichLine, Seg, count, shown, token_count};
use skills_api::{BudgetView, ClientView, instead_of_description};
use skills_session::{ListedEntry, Truncation, Unit};
use skills_skill::SkillId;
use skills_skill::tokens::TokenCount;

/// The budget of the selected client, and the outcome of each entry that is not shown in full.
#[derive(Debug, Default)]
pub(super) struct Budget {
    view: Option<Arc<BudgetView>>,
    /// The outcome, with the text that is shown.
    made: HashMap<SkillId, (Truncation, String)>,
}

/// Returns the id of an entry in this catalog, or its path if the catalog does not contain it.
fn id_of(entry: &ListedEntry) -> Option<SkillId> {
    let path = || entry.location.as_ref().map(|path| SkillId::new(path.display().to_string()));
    entry.skill_id.clone().or_else(path)
}

impl Budget {
    /// Creates it from the core's response.
    pub(super) fn of(view: &Arc<BudgetView>) -> Self {
        let entries = view.allowance.entries.iter();
        let made = entries
            .filter(|(entry, shown)| *shown != Truncation::Complete && !entry.bundled)
            .filter_map(|(entry, shown)| Some((id_of(entry)?, (shown.clone(), entry.description.clone()))))
            .collect();
        Self { view: Some(Arc::clone(view)), made }
    }

    /// Returns the short label of an entry's row; `None` until the budget is known.
    pub(super) fn budget_label(&self, id: &SkillId) -> Option<(String, Role)> {
        self.view.as_ref()?;
        Some(match self.made.get(id).map(|(shown, _)| shown) {
            None | Some(Truncation::Complete) => ("full".to_owned(), Role::Muted),
            Some(Truncation::Shortened { characters, .. }) => (format!("{characters} chars"), Role::Warning),
            Some(Truncation::NameOnly { .. }) => ("name only".to_owned(), Role::Warning),
            Some(Truncation::Omitted { .. }) => ("omitted".to_owned(), Role::Danger),
            Some(Truncation::Beyond) => ("beyond".to_owned(), Role::Warning),
            Some(Truncation::OtherText) => ("other text".to_owned(), Role::Warning),
            Some(Truncation::Unknown { .. }) => ("unknown".to_owned(), Role::Warning),
        })
    }

    /// Returns why an entry is not shown in full.
    pub(super) fn reason(&self, id: &SkillId) -> Option<String> {
        let (made, text) = self.made.get(id)?;
        match made {
            Truncation::Complete => None,
            Truncation::OtherText => Some(format!("shows {}", shown(&instead_of_description(text)))),
            // The client's state says what is unknown.
            Truncation::Unknown { .. } => None,
            Truncation::Shortened { characters, why } => {
                Some(format!("truncated to {} characters: {}", count(*characters), shown(why)))
            }
            Truncation::NameOnly { why } => Some(format!("only its name is listed: {}", shown(why))),
            Truncation::Omitted { why } => Some(format!("omitted from the catalog: {}", shown(why))),
            Truncation::Beyond => Some("over budget; how the client truncates is not published".to_owned()),
        }
    }

    /// Returns how many entries were truncated, reduced to the name, omitted, or exceed a limit; without zero counts.
    pub(super) fn counts(&self) -> Vec<String> {
        let of = |is: fn(&Truncation) -> bool| self.made.values().filter(|(shown, _)| is(shown)).count();
        let own = self.view.as_ref().map_or(0, |view| view.allowance.fill.own.skills);
        let all = [
            (of(|shown| matches!(shown, Truncation::Shortened { .. })), "truncated"),
            (of(|shown| matches!(shown, Truncation::NameOnly { .. })), "name only"),
            (of(|shown| matches!(shown, Truncation::Omitted { .. })), "omitted"),
            (of(|shown| matches!(shown, Truncation::Beyond)), "beyond"),
            (of(|shown| matches!(shown, Truncation::OtherText)), "other text"),
            (of(|shown| matches!(shown, Truncation::Unknown { .. })), "unknown"),
            (own, "built-in"),
        ];
        all.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(n))).collect()
    }

    /// Returns the skills that the client does not list, counted by reason, most frequent first.
    pub(super) fn unseen(&self) -> Vec<String> {
        let groups = self.view.iter().flat_map(|view| &view.not_listed);
        groups.map(|group| format!("{} {}", count(group.skills), shown(&group.why))).collect()
    }

    /// Returns the skills that the client does not list, each with the reason.
    fn not_listed(&self) -> impl Iterator<Item = (SkillId, String)> {
        let groups = self.view.iter().flat_map(|view| &view.not_listed);
        groups.flat_map(|group| group.names.iter().map(|name| (SkillId::new(name), shown(&group.why))))
    }

    /// Returns the number of skills in the client's catalog before its budget applies.
    pub(super) fn listed(&self) -> Option<usize> {
        let own = |view: &Arc<BudgetView>| {
            view.allowance.entries.iter().filter(|(entry, _)| !entry.bundled).count()
        };
        self.view.as_ref().map(own)
    }

    /// Formats the fill level by the client's count, and the catalog's tokens before and after:
    /// `7 990 of 8 000 chars  L1 9.2k → 3.9k tok`.
    pub(super) fn sums(&self, painter: &Painter<'_>) -> Option<RichLine> {
        let view = self.view.as_ref()?;
        let fill = &view.allowance.fill;
        let (bound, role) = match fill.limit {
            Some(limit) => {
                let unit = if fill.unit == Unit::Tokens { "tok" } else { "chars" };
                let role = if fill.used > limit { Role::Warning } else { Role::Strong };
                (format!("{} of {} {unit}", count(fill.used), count(limit)), role)
            }
            None if fill.unbounded => ("no budget limit".to_owned(), Role::Muted),
            None => ("budget unknown".to_owned(), Role::Muted),
        };
        let mut segs = vec![Seg::new(bound, role)];
        // The cost of the same entries in a session of this workbench, which formats them differently.
        let (requested, used) = view.tokens;
        let counted =
            |tokens| token_count(TokenCount { tokens, estimated: view.tokens_estimated }, painter.glyphs);
        segs.push(Seg::new("  L1 ", Role::Level1));
        segs.push(Seg::new(counted(requested), Role::Text));
        if used != requested {
            segs.push(Seg::new(if painter.glyphs.ascii { " to " } else { " → " }, Role::Muted));
            segs.push(Seg::new(counted(used), Role::Strong));
        }
        segs.push(Seg::new(" tok", Role::Muted));
        Some(RichLine::from_segs(segs))
    }
}

/// The client in whose view the catalog is shown.
#[derive(Debug, Default)]
pub(super) struct SelectedClient {
    pub view: Option<Arc<ClientView>>,
    /// Why the client does not show some skills to its model.
    pub unseen: HashMap<SkillId, String>,
    budget: Budget,
    /// The client to which the budget belongs.
    budget_of: Option<String>,
}

impl SelectedClient {
    /// Requests the catalog in a client's view, and the effect of its budget.
    pub(super) fn request(id: &str) -> Vec<Effect> {
        if id.is_empty() {
            return vec![Effect::ClientView(None)];
        }
        vec![Effect::ClientView(Some(id.to_owned())), Effect::Session(SessionRequest::Budget(id.to_owned()))]
    }

    /// Applies a budget; it takes effect if its client is still the selected one.
    pub(super) fn set_budget(&mut self, client: &str, view: &Arc<BudgetView>) {
        self.budget = Budget::of(view);
        self.budget_of = Some(client.to_owned());
        self.collect_hidden();
    }

    /// Collects why the client does not show some skills to its model: it does not find them, or they are not for a
    /// model. The total matches that of its budget.
    pub(super) fn collect_hidden(&mut self) {
        let mut unseen = self.view.as_ref().map(|view| items::unseen(view)).unwrap_or_default();
        for (id, why) in self.budget().into_iter().flat_map(Budget::not_listed) {
            unseen.entry(id).or_insert(why);
        }
        self.unseen = unseen;
    }

    /// Returns the budget if it is that of the selected client.
    pub(super) fn budget(&self) -> Option<&Budget> {
        let chosen = self.view.as_ref().map(|client| client.client.as_str());
        (chosen.is_some() && chosen == self.budget_of.as_deref()).then_some(&self.budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skills_api::HiddenSkills;
    use skills_session::{BudgetedCatalog, Fill};

    #[test]
    fn every_truncated_entry_has_a_label_and_a_reason() {
        let entry = |name: &str, shown: Truncation| {
            (
                ListedEntry {
                    name: name.into(),
                    skill_id: Some(SkillId::new(name)),
                    ..ListedEntry::default()
                },
                shown,
            )
        };
        let why = "too long".to_owned();
        let entries = vec![
            entry("a", Truncation::Complete),
            entry("b", Truncation::Shortened { characters: 1_536, why: why.clone() }),
            entry("c", Truncation::NameOnly { why: why.clone() }),
            entry("d", Truncation::Omitted { why }),
            entry("e", Truncation::Beyond),
        ];
        let fill = Fill { limit: Some(10), wanted: 20, used: 10, ..Fill::default() };
        let allowance = BudgetedCatalog { entries, fill };
        let view = BudgetView {
            client: Some("codex".into()),
            name: "Codex".into(),
            source: String::new(),
            version: None,
            window: 1,
            allowance,
            not_listed: vec![HiddenSkills {
                why: "too deep".into(),
                cause: None,
                skills: 4,
                names: Vec::new(),
            }],
            tokens: (2, 1),
            tokens_estimated: false,
            long: Vec::new(),
            assumed_folders: Vec::new(),
        };
        let budget = Budget::of(&Arc::new(view));
        let word = |id: &str| budget.budget_label(&SkillId::new(id)).unwrap().0;
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(word),
            ["full", "1536 chars", "name only", "omitted", "beyond"]
        );
        assert!(budget.reason(&SkillId::new("a")).is_none());
        assert!(
            budget.reason(&SkillId::new("b")).unwrap().contains("1,536")
                || budget.reason(&SkillId::new("b")).unwrap().contains("1,536")
        );
        assert_eq!(budget.counts(), ["1 truncated", "1 name only", "1 omitted", "1 beyond"]);
        assert_eq!(budget.unseen(), ["4 too deep"]);
    }
}
