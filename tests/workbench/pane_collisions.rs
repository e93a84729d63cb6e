//! The collision map and the rivals of a skill. The map is a real one, of a small
//! collection.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use skills_api::{CollisionReport, SkillRivals};
use skills_discovery::{CollisionMap, Document, Router, Weights};
use skills_registry::{Catalog, Entry};
use skills_skill::{Role, SkillId};
use skills_tui::action::Action;
use skills_tui::pane::{Effect, Message, Pane};
use skills_tui::panes::browse::Browse;
use skills_tui::theme::Depth;
use support::catalogs::{catalog, skill};
use support::screen::{Screen, text};

const SKILLS: [(&str, &str); 9] = [
    (
        "stripe-billing",
        "Bills recurring subscriptions with proration and trials. Customers, products and prices of Stripe.",
    ),
    (
        "stripe-checkout",
        "Builds checkout pages and payment links. Stripe products, prices and customers. Refunds one-time payments.",
    ),
    ("pdf-reader", "Extracts tables from PDF files. Reads form fields of PDF files."),
    ("pdf-export", "Extracts tables from PDF files into spreadsheets. Fills form fields of PDF files."),
    ("release-notes", "Writes release notes from merged pull requests. Lists breaking changes of a version."),
    ("changelog", "Writes release notes from merged pull requests. Lists breaking changes of a version."),
    ("trip-planner", "Plans train journeys with hotels and museums."),
    ("mail-client", "Calls the mail API with retries and typed errors. Handles rate limits and timeouts."),
    (
        "search-client",
        "Calls the search API with retries and typed errors. Handles rate limits and timeouts.",
    ),
];

struct Core {
    router: Router,
    map: CollisionMap,
}

impl Core {
    fn new() -> Self {
        let mut router = Router::new(Weights::shipped().unwrap().with_generous_time_limits());
        router.update(SKILLS.map(|(id, text)| Document::new(id, id, text)).into(), &[]);
        let map = router.collision_map(&AtomicUsize::new(0), &AtomicBool::new(false)).unwrap();
        Self { router, map }
    }

    fn report(&self) -> CollisionReport {
        CollisionReport {
            complete: true,
            done: self.map.skills,
            skills: self.map.skills,
            severe: self.map.severe().count(),
            total: self.map.collisions.len(),
            map: self.map.clone(),
        }
    }

    /// Responds to effects as the core would, until there are none.
    fn serve(&self, pane: &mut Browse, mut effects: Vec<Effect>) {
        while let Some(effect) = effects.pop() {
            let message = match effect {
                Effect::Collisions => Message::Collisions(Ok(Arc::new(self.report()))),
                Effect::Rivals(id) => {
                    let report = self.router.rivals(&id, &[]).unwrap().unwrap();
                    let groups = self.map.groups.iter().filter(|group| group.skills.contains(&id));
                    let groups = groups.cloned().collect();
                    Message::Rivals(id, Ok(Arc::new(SkillRivals { report, groups })))
                }
                Effect::CompareSkills(a, b) => {
                    let complete = |id: &SkillId| {
                        let found = SKILLS.iter().find(|(known, _)| *known == id.as_str())?;
                        Some(Document::new(found.0, found.0, found.1))
                    };
                    let tokens = |text: &str| u32::try_from(text.split_whitespace().count()).unwrap();
                    let pair = self.router.pair((&a, &b), &[], &tokens, &complete).unwrap().unwrap();
                    Message::Pair(a, b, Ok(Arc::new(pair)))
                }
                _ => continue,
            };
            effects.extend(pane.message(&message));
        }
    }

    fn act(&self, pane: &mut Browse, action: Action) -> Vec<Effect> {
        let effects = pane.act(action).unwrap_or_default();
        self.serve(pane, effects.clone());
        effects
    }

    fn screen_text(&self, pane: &mut Browse, screen: &mut Screen) -> String {
        loop {
            let (buffer, expected) = screen.draw(pane);
            let asks = |effect: &Effect| {
                matches!(effect, Effect::Rivals(_) | Effect::Collisions | Effect::CompareSkills(..))
            };
            if !expected.iter().any(asks) {
                return text(&buffer);
            }
            self.serve(pane, expected);
        }
    }

    /// Browse over the collection, with the map open.
    fn opened(&self, screen: &mut Screen) -> Browse {
        let mut pane = self.browse();
        self.act(&mut pane, Action::ShowCollisions);
        self.screen_text(&mut pane, screen);
        pane
    }

    fn browse(&self) -> Browse {
        let mut pane = Browse::new();
        let entries = SKILLS
            .iter()
            .map(|(id, text)| Entry {
                skill: Arc::new(skill(id, Role::Procedure, text, Vec::new())),
                root: 0,
            })
            .collect();
        let roots = catalog().roots;
        let message = Message::Catalog(Arc::new(Catalog { roots, entries, ..Catalog::default() }));
        let effects = pane.message(&message);
        self.serve(&mut pane, effects);
        pane
    }
}

#[test]
fn the_map_and_a_pair_at_every_size() {
    let core = Core::new();
    for (width, height) in [(120, 36), (80, 24), (200, 60)] {
        let mut screen = Screen::new(width, height);
        let mut pane = core.opened(&mut screen);
        core.act(&mut pane, Action::NextCollision);
        let drawn = core.screen_text(&mut pane, &mut screen);
        insta::assert_snapshot!(format!("collisions-{width}x{height}"), drawn);
    }
    for (name, mut screen) in [
        ("collisions-mono-120x36", Screen::themed(120, 36, "mono", Depth::None)),
        ("collisions-ascii-120x36", Screen::ascii(120, 36)),
    ] {
        let mut pane = core.opened(&mut screen);
        core.act(&mut pane, Action::NextCollision);
        insta::assert_snapshot!(name, core.screen_text(&mut pane, &mut screen));
    }
}

#[test]
fn group_is_shown_with_its_number_of_skills() {
    let core = Core::new();
    let mut screen = Screen::new(120, 36);
    let mut pane = core.opened(&mut screen);
    let drawn = core.screen_text(&mut pane, &mut screen);
    assert!(drawn.contains("identical   2 skills  changelog = release-notes"), "{drawn}");
}

#[test]
fn ascii_maps_are_ascii() {
    let core = Core::new();
    let mut screen = Screen::ascii(120, 36);
    let mut pane = core.opened(&mut screen);
    let drawn = core.screen_text(&mut pane, &mut screen);
    assert!(drawn.is_ascii(), "{drawn}");
}

#[test]
fn rivals_are_a_tab_and_open_their_pair() {
    let core = Core::new();
    let mut screen = Screen::new(120, 36);
    let mut pane = core.browse();
    core.screen_text(&mut pane, &mut screen);
    let effects =
        pane.message(&Message::Visit(skills_tui::pane::Target::Skill(SkillId::new("stripe-billing"))));
    core.serve(&mut pane, effects);
    core.act(&mut pane, Action::PreviousTab);
    core.act(&mut pane, Action::PreviousTab);
    insta::assert_snapshot!("rivals-120x36", core.screen_text(&mut pane, &mut screen));
    let drawn = core.screen_text(&mut pane, &mut Screen::new(80, 24));
    let head = drawn.lines().find(|line| line.contains("rival ")).unwrap().trim_end();
    assert!(head.ends_with("similarity") || head.ends_with("sim."), "{drawn}");
    assert!(!drawn.contains("-0/+0"), "{drawn}");
    core.screen_text(&mut pane, &mut screen);
    core.act(&mut pane, Action::NextPart);
    core.screen_text(&mut pane, &mut screen);
    core.act(&mut pane, Action::Open);
    let drawn = core.screen_text(&mut pane, &mut screen);
    assert!(drawn.contains("stripe-billing and stripe-checkout"), "{drawn}");
    assert!(pane.contexts().contains(&skills_tui::action::Context::BrowseMap));
}

#[test]
fn sentence_about_no_rivals_is_wrapped() {
    let core = Core::new();
    let mut screen = Screen::new(80, 24);
    let mut pane = core.browse();
    core.screen_text(&mut pane, &mut screen);
    let effects =
        pane.message(&Message::Visit(skills_tui::pane::Target::Skill(SkillId::new("trip-planner"))));
    core.serve(&mut pane, effects);
    core.act(&mut pane, Action::PreviousTab);
    core.act(&mut pane, Action::PreviousTab);
    let drawn = core.screen_text(&mut pane, &mut screen);
    assert!(drawn.contains("no rivals:") && drawn.contains("meaning"), "{drawn}");
}

#[test]
fn cluster_is_opened_and_closed() {
    let core = Core::new();
    let mut screen = Screen::new(120, 36);
    let mut pane = core.opened(&mut screen);
    let all = core.screen_text(&mut pane, &mut screen);
    let clusters = core.map.clusters.len();
    assert!(clusters >= 2, "{:?}", core.map.clusters);
    core.act(&mut pane, Action::ZoomCluster);
    let one = core.screen_text(&mut pane, &mut screen);
    let names = |drawn: &str| SKILLS.iter().filter(|(id, _)| drawn.contains(&format!(" {id}"))).count();
    assert!(names(&one) < names(&all), "{one}");
    core.act(&mut pane, Action::Back);
    assert_eq!(core.screen_text(&mut pane, &mut screen), all);
    core.act(&mut pane, Action::Back);
    assert!(!pane.contexts().contains(&skills_tui::action::Context::BrowseMap), "the list is back");
}

#[test]
fn the_best_advice_becomes_a_draft() {
    let core = Core::new();
    let mut screen = Screen::new(120, 36);
    let mut pane = core.opened(&mut screen);
    let severe = core.map.severe().count();
    let drafts: Vec<Option<String>> = (0..severe)
        .filter_map(|_| {
            core.act(&mut pane, Action::NextCollision);
            core.screen_text(&mut pane, &mut screen);
            let effects = core.act(&mut pane, Action::Draft);
            effects.into_iter().find_map(|effect| match effect {
                Effect::EditDescription(draft) => Some(draft.proposed),
                _ => None,
            })
        })
        .collect();
    assert_eq!(drafts.len(), severe);
    assert!(drafts.iter().any(Option::is_some), "{drafts:?}");
}

#[test]
fn progress_is_shown_until_the_map_is_complete() {
    let core = Core::new();
    let mut screen = Screen::new(120, 36);
    let mut pane = core.browse();
    assert_eq!(pane.act(Action::ShowCollisions), Some(vec![Effect::Collisions]));
    let part = CollisionReport { done: 3, skills: 9, ..CollisionReport::default() };
    assert_eq!(pane.message(&Message::Collisions(Ok(Arc::new(part)))), [Effect::Collisions], "asks again");
    let (buffer, _) = screen.draw(&mut pane);
    assert!(text(&buffer).contains("3 of 9 skills"), "{}", text(&buffer));
    assert_eq!(pane.message(&Message::Collisions(Ok(Arc::new(core.report())))), []);
}
