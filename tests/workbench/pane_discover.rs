//! The pane Discover.

use crate::support;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::style::Modifier;
use skills_api::{Event, IndexProgress};
use skills_discovery::{Answer, Hit, Policy, Request, ScoreComponent, VerdictReason};
use skills_skill::{Role, SkillId};
use skills_tui::action::{Action, Context};
use skills_tui::pane::{Effect, Message, Pane, PaneId, PickerKind, Target};
use skills_tui::panes::discover::{Discover, History};
use skills_tui::theme::{Depth, Role as ThemeRole};
use support::answers::{INTENT, NO_FIT_INTENT, fits, none_fits};
use support::screen::{Screen, find};

fn typed(pane: &mut Discover, text: &str) -> Vec<(Request, u64)> {
    let mut requests = Vec::new();
    for c in text.chars() {
        for effect in pane.text_key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)) {
            if let Effect::Discover { request, generation } = effect {
                requests.push((request, generation));
            }
        }
    }
    requests
}

fn answered(intent: &str, answer: Answer) -> Discover {
    let mut pane = Discover::new(History::default());
    let requests = typed(&mut pane, intent);
    let generation = requests.last().unwrap().1;
    pane.message(&Message::Answer(generation, Ok(Arc::new(answer))));
    pane
}

#[test]
fn ranking_is_explained_at_every_size() {
    for (width, height) in [(120, 36), (80, 24), (180, 50), (60, 20)] {
        let mut pane = answered(INTENT, fits());
        if width != 80 {
            pane.act(Action::Submit);
        }
        insta::assert_snapshot!(
            format!("discover-{width}x{height}"),
            Screen::new(width, height).text(&mut pane)
        );
    }
}

#[test]
fn hint_without_results_is_complete_at_every_size() {
    for (width, height) in [(120, 36), (80, 24), (60, 20)] {
        let screen = Screen::new(width, height).text(&mut Discover::new(History::default()));
        if screen.contains("select a result") {
            assert!(screen.contains("breakdown"), "{width}: {screen}");
        }
    }
    let screen = Screen::new(80, 24).text(&mut Discover::new(History::default()));
    assert!(screen.contains("select a result"), "{screen}");
}

#[test]
fn no_fit_is_reported() {
    let mut pane = answered(NO_FIT_INTENT, none_fits());
    pane.act(Action::Submit);
    insta::assert_snapshot!("discover-nofit-120x36", Screen::new(120, 36).text(&mut pane));
}

#[test]
fn heading_of_a_rejected_skill_names_the_complete_cause() {
    let heading = |id: &str, reason: VerdictReason| {
        let mut answer = none_fits();
        answer.results[0].skill_id = SkillId::new(id);
        answer.verdict.reason = reason;
        let mut pane = answered(NO_FIT_INTENT, answer);
        pane.act(Action::Submit);
        let screen = Screen::new(120, 36).text(&mut pane);
        screen.lines().find_map(|line| Some(line.split_once("Why ")?.1.to_owned())).unwrap()
    };
    let below = heading("climate-report", VerdictReason::BelowThreshold);
    assert!(below.starts_with("climate-report is below the threshold"), "{below}");
    let foreign = heading("climate-report", VerdictReason::Language);
    assert!(foreign.starts_with("climate-report does not fit"), "{foreign}");
    let id = "implementing-kubernetes-pod-security-standards";
    let long = heading(id, VerdictReason::Language);
    assert!(long.starts_with(id) && !long.contains('…'), "{long}");
}

#[test]
fn every_keystroke_sends_a_request_with_a_higher_generation() {
    let mut pane = Discover::new(History::default());
    let requests = typed(&mut pane, "pdf");
    let seen: Vec<(&str, u64, bool)> =
        requests.iter().map(|(r, g)| (r.intent.as_str(), *g, r.typing)).collect();
    assert_eq!(seen, [("p", 1, true), ("pd", 2, true), ("pdf", 3, true)]);
}

#[test]
fn last_word_is_complete_once_the_cursor_leaves_it() {
    let mut pane = Discover::new(History::default());
    typed(&mut pane, "pdf");
    pane.text_key(KeyEvent::new(KeyCode::Home, KeyModifiers::NONE));
    let requests = typed(&mut pane, "x");
    assert_eq!((requests[0].0.intent.as_str(), requests[0].0.typing), ("xpdf", false));
}

#[test]
fn late_response_is_dropped_and_the_last_valid_one_kept() {
    let mut pane = Discover::new(History::default());
    let requests = typed(&mut pane, INTENT);
    let last = requests.last().unwrap().1;
    pane.message(&Message::Answer(last, Ok(Arc::new(fits()))));
    let before = Screen::new(120, 36).text(&mut pane);
    assert!(before.contains("Why pdf-tables is first"));

    pane.message(&Message::Answer(last - 1, Ok(Arc::new(none_fits()))));
    pane.message(&Message::Answer(last, Ok(Arc::new(none_fits()))));
    assert_eq!(Screen::new(120, 36).text(&mut pane), before, "older and repeated answers change nothing");

    typed(&mut pane, "s");
    let meanwhile = Screen::new(120, 36).text(&mut pane);
    assert!(meanwhile.contains("Why pdf-tables is first"), "it stays until a newer one is there");
}

#[test]
fn failed_request_shows_its_error_instead_of_results() {
    let mut pane = answered(INTENT, fits());
    let generation = typed(&mut pane, "s")[0].1;
    let error = skills_api::Error::new(skills_api::Code::InternalError, "the index is being rebuilt");
    pane.message(&Message::Answer(generation, Err(error)));
    let screen = Screen::new(120, 40).text(&mut pane);
    assert!(screen.contains("the index is being rebuilt"), "{screen}");
    assert!(!screen.contains("Why pdf-tables is first"), "the ranking of another question: {screen}");
}

#[test]
fn empty_field_clears_results_and_up_restores_it() {
    let mut pane = answered(INTENT, fits());
    pane.act(Action::LeaveField);
    pane.act(Action::FocusIntent);
    assert!(pane.act(Action::Clear).unwrap().is_empty(), "an empty field asks nothing");
    let screen = Screen::new(120, 36).text(&mut pane);
    assert!(screen.contains("recent requests") && !screen.contains("Why pdf-tables"), "{screen}");
    let effects = pane.act(Action::HistoryEarlier).unwrap();
    assert!(matches!(&effects[..], [Effect::Discover { request, .. }] if request.intent == INTENT));
}

#[test]
fn arrows_move_in_order_of_score_and_enter_opens_the_skill() {
    let mut pane = answered(INTENT, fits());
    pane.act(Action::Submit);
    let mut seen = Vec::new();
    for _ in 0..10 {
        if let Some(effects) = pane.act(Action::Copy)
            && let [Effect::Copy(id, _)] = &effects[..]
        {
            seen.push(id.clone());
        }
        pane.act(Action::Down);
    }
    let expected = [
        "pdf-tables",
        "xlsx",
        "doc-convert",
        "pdf-forms",
        "table-audit",
        "csv-tools",
        "report-builder",
        "cost-watch",
        "old-pdf",
        "pdf-tables@3f9a01c2",
    ];
    assert_eq!(seen, expected);
    let effects = pane.act(Action::Open).unwrap();
    assert!(
        matches!(&effects[..], [Effect::Go(PaneId::Browse, Some(Target::Skill(id)))] if id.as_str() == expected[9])
    );
}

#[test]
fn a_catalog_change_ranks_again_and_keeps_the_cursor_on_its_skill() {
    let mut pane = answered(INTENT, fits());
    pane.act(Action::Submit);
    pane.act(Action::Down);
    let effects = pane.message(&Message::Catalog(Arc::new(support::catalogs::catalog())));
    let [Effect::Discover { generation, request }] = &effects[..] else { panic!("{effects:?}") };
    assert!(!request.typing, "typing has ended");
    let mut changed = fits();
    changed.results.remove(0);
    pane.message(&Message::Answer(*generation, Ok(Arc::new(changed))));
    assert_eq!(pane.act(Action::Copy), Some(vec![Effect::Copy("xlsx".into(), "id".into())]));
}

#[test]
fn results_of_an_incomplete_index_are_provisional_and_refreshed() {
    let mut pane = answered(INTENT, fits());
    let mut empty = fits();
    (empty.results, empty.skills) = (Vec::new(), 0);
    ranked_again(&mut pane, empty);
    let index = |indexed, done| Message::Event(Event::Index(IndexProgress { indexed, total: 9, done }));
    let effects = pane.message(&index(2, false));
    let [Effect::Discover { generation, .. }] = &effects[..] else { panic!("{effects:?}") };
    let screen = Screen::new(120, 36).text(&mut pane);
    assert!(screen.contains("no skill is indexed yet"), "{screen}");
    assert!(screen.contains("(2 of 9)"), "{screen}");
    pane.message(&Message::Answer(*generation, Ok(Arc::new(fits()))));
    let effects = pane.message(&index(9, true));
    assert!(matches!(effects[..], [Effect::Discover { .. }]), "shadowed copies count too: {effects:?}");
    assert!(pane.message(&index(9, true)).is_empty(), "the answer is complete");
}

/// Results while roots are read and indexed: another one is first now, bodies are missing.
fn with_new_first(missing: usize) -> Answer {
    let mut answer = fits();
    answer.results.swap(0, 1);
    answer.bodies_missing = missing;
    answer
}

fn ranked_again(pane: &mut Discover, answer: Answer) {
    let effects = pane.message(&Message::Catalog(Arc::new(support::catalogs::catalog())));
    let [Effect::Discover { generation, .. }] = &effects[..] else { panic!("{effects:?}") };
    pane.message(&Message::Answer(*generation, Ok(Arc::new(answer))));
}

#[test]
fn first_result_stays_selected_during_indexing() {
    let mut pane = answered(INTENT, fits());
    pane.act(Action::Submit);
    ranked_again(&mut pane, with_new_first(212));
    let screen = Screen::new(120, 36).text(&mut pane);
    assert!(screen.contains("Why xlsx is first"), "{screen}");
    assert!(screen.contains("confidence high; provisional"), "{screen}");
    assert!(screen.contains("100 of 312"), "{screen}");
    assert!(Screen::new(80, 24).text(&mut pane).contains("100 of 312"));

    pane.act(Action::Down);
    ranked_again(&mut pane, fits());
    let screen = Screen::new(120, 36).text(&mut pane);
    assert!(
        screen.contains("Why pdf-tables is first") && !screen.contains("provisional"),
        "chosen: {screen}"
    );
    ranked_again(&mut pane, with_new_first(0));
    assert!(Screen::new(120, 36).text(&mut pane).contains("Why pdf-tables is number 2 of 6"), "and kept");
}

#[test]
fn selected_bundle_is_kept_when_its_id_moves() {
    let mut before = support::catalogs::catalog();
    let place = before.entries.iter().position(|e| e.skill.id.as_str() == "xlsx").unwrap();
    let mut pane = answered(INTENT, fits());
    pane.act(Action::Submit);
    pane.message(&Message::Catalog(Arc::new(before.clone())));
    pane.act(Action::Down);

    // Another root has precedence: its bundle is `xlsx` now, the selected one has a longer id.
    let chosen = Arc::clone(&before.entries[place].skill);
    let (mut first, mut second) = ((*chosen).clone(), (*chosen).clone());
    first.location = "/elsewhere/xlsx/SKILL.md".into();
    second.id = skills_skill::SkillId::new("csv-tools");
    before.entries.retain(|e| !["xlsx", "csv-tools"].contains(&e.skill.id.as_str()));
    for skill in [first, second] {
        before.entries.push(skills_registry::Entry { skill: Arc::new(skill), root: 0 });
    }
    before.lookup = skills_registry::Lookup::default();
    let effects = pane.message(&Message::Catalog(Arc::new(before)));
    let [Effect::Discover { generation, .. }] = &effects[..] else { panic!("{effects:?}") };
    pane.message(&Message::Answer(*generation, Ok(Arc::new(fits()))));
    assert_eq!(pane.act(Action::Copy), Some(vec![Effect::Copy("csv-tools".into(), "id".into())]));
}

#[test]
fn copies_are_one_expandable_line() {
    let mut answer = fits();
    for n in 0..3 {
        let mut copy = answer.excluded.last().unwrap().clone();
        copy.skill_id = skills_skill::SkillId::new(format!("pdf-tables@0000000{n}"));
        answer.excluded.insert(0, copy);
    }
    let mut pane = answered(INTENT, answer);
    pane.act(Action::Submit);
    let screen = Screen::new(120, 36).text(&mut pane);
    assert!(screen.contains("4 copies or other versions, shadowed ▸"), "{screen}");
    assert!(screen.find("deprecated") < screen.find("4 copies"), "{screen}");
    assert!(screen.contains("1–6 of 6") && !screen.contains("pdf-tables@"), "{screen}");
    pane.act(Action::Bottom);
    assert!(pane.act(Action::Open).unwrap().is_empty());
    let screen = Screen::new(120, 40).text(&mut pane);
    assert!(screen.contains("shadowed ▾") && screen.contains("pdf-tables@00000002"), "{screen}");
    pane.act(Action::Fold);
    assert!(!Screen::new(120, 36).text(&mut pane).contains("pdf-tables@"));
}

#[test]
fn options_are_requested_and_shown() {
    let mut pane = answered(INTENT, fits());
    pane.act(Action::Submit);
    for action in [Action::TogglePolicy, Action::CycleRole, Action::ToggleBody] {
        pane.act(action);
    }
    let effects = pane.message(&Message::Picked(PickerKind::Domain, "finance".into()));
    let [Effect::Discover { request, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((request.policy, request.with_body), (Policy::Strict, false));
    assert_eq!(
        (request.role_filter, request.domain.as_slice()),
        (Some(Role::Procedure), &["finance".to_owned()][..])
    );
    let screen = Screen::new(120, 36).text(&mut pane);
    assert!(screen.contains("strict · only procedure skills · domain finance · without body"), "{screen}");
    let line = pane.message(&Message::Picked(PickerKind::CopyAs, "cli".into()));
    let [Effect::CopyCommand(line, _)] = &line[..] else { panic!("{line:?}") };
    assert_eq!(
        line,
        &format!(
            "skills discover '{INTENT}' --explain --policy strict --role procedure --domain finance --no-body"
        )
    );
}

#[test]
fn a_click_selects_a_result_and_one_in_the_intent_edits_it() {
    let mut pane = answered(INTENT, fits());
    let mut screen = Screen::new(120, 36);
    let (buffer, _) = screen.draw(&mut pane);
    let at = find(&buffer, "doc-convert").unwrap();
    let click = |x, y| MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: x,
        row: y,
        modifiers: KeyModifiers::NONE,
    };
    pane.mouse(click(at.x, at.y));
    assert!(screen.text(&mut pane).contains("Why doc-convert is number 3 of 6"));
    assert!(!pane.in_text());
    let at = find(&buffer, "turn the").unwrap();
    pane.mouse(click(at.x, at.y));
    assert!(pane.in_text());
}

#[test]
fn esc_returns_one_level_at_a_time() {
    let mut pane = answered(INTENT, fits());
    assert!(pane.in_text());
    pane.act(Action::LeaveField);
    assert!(!pane.in_text());
    pane.act(Action::NextPart);
    assert_eq!(pane.contexts(), [Context::Discover, Context::Text]);
    pane.act(Action::Back);
    assert_eq!(pane.contexts(), [Context::Discover, Context::List]);
    assert_eq!(pane.act(Action::Back), None, "the results are the pane's own level");
}

#[test]
fn wide_screen_requests_levels_and_shows_body_matches() {
    let mut pane = answered(INTENT, fits());
    pane.act(Action::Submit);
    let mut screen = Screen::new(180, 50);
    let (_, expected) = screen.draw(&mut pane);
    let id = skills_skill::SkillId::new("pdf-tables");
    assert!(expected.contains(&Effect::BodyLines(id.clone(), INTENT.into())), "{expected:?}");
    assert!(expected.contains(&Effect::Describe(id.clone())));
    assert!(screen.draw(&mut pane).1.is_empty(), "each is asked for once");

    let text = "Ruled tables first; then by white space.".to_owned();
    let marks = vec![skills_discovery::Mark { start: 6, end: 12, signal: ScoreComponent::Body }];
    let line = skills_discovery::BodyLine { line: 13, text, marks };
    pane.message(&Message::BodyLines(id.clone(), INTENT.into(), vec![line]));
    pane.message(&Message::Detail(id, Ok(Arc::new(support::catalogs::detail("pdf-tables")))));
    let levels = support::catalogs::levels;
    pane.message(&Message::Levels(vec![levels("pdf-tables", 24, 3_240), levels("xlsx", 21, 2_100)]));
    insta::assert_snapshot!("discover-levels-180x50", screen.text(&mut pane));
}

/// A result list with `total` results, of which the first page is loaded.
fn long(total: usize) -> Answer {
    let mut answer = fits();
    answer.results = (0..total.min(40)).map(|n| numbered(n, &answer)).collect();
    answer.below_limit = total - answer.results.len();
    (answer.attachable, answer.excluded) = (Vec::new(), Vec::new());
    answer
}

fn numbered(n: usize, from: &Answer) -> Hit {
    let id = format!("skill-{n:03}");
    let mut hit = Hit { skill_id: SkillId::new(&id), name: id, ..from.results[0].clone() };
    hit.score -= n as f64 / 1000.0;
    hit
}

/// Responds to the requests of the last frame, as a core with `total` results would.
fn serve(pane: &mut Discover, screen: &mut Screen, total: usize) -> Vec<Request> {
    let (_, expected) = screen.draw(pane);
    let mut served = Vec::new();
    for effect in expected {
        if let Effect::Results { request, lookup } = effect {
            let mut answer = fits();
            let end = (request.offset + request.limit).min(total);
            let rank = |n: usize| Hit { rank: Some(n + 1), ..numbered(n, &fits()) };
            answer.results = (request.offset..end).map(rank).collect();
            answer.below_limit = total - end;
            pane.message(&Message::Results(lookup, Ok(Arc::new(answer))));
            served.push(request);
        }
    }
    served
}

#[test]
fn the_list_scrolls_through_all_matches() {
    let mut pane = answered(INTENT, long(975));
    pane.act(Action::Submit);
    let mut screen = Screen::new(120, 36);
    assert!(screen.text(&mut pane).contains("of 975"), "{}", screen.text(&mut pane));
    assert!(serve(&mut pane, &mut screen, 975).is_empty(), "the first page came with the answer");

    pane.act(Action::Bottom);
    let served = serve(&mut pane, &mut screen, 975);
    assert_eq!(served.iter().map(|r| (r.offset, r.limit)).collect::<Vec<_>>(), [(960, 40)]);
    let text = screen.text(&mut pane);
    assert!(text.contains("skill-974") && text.contains("–975 of 975"), "{text}");
    assert!(text.contains("Why skill-974 is number 975 of 975"), "{text}");
    assert!(serve(&mut pane, &mut screen, 975).is_empty(), "each page is asked for once");

    pane.act(Action::PageUp);
    pane.act(Action::PageUp);
    serve(&mut pane, &mut screen, 975);
    assert!(screen.text(&mut pane).contains("skill-955"), "{}", screen.text(&mut pane));
    pane.act(Action::Top);
    assert!(screen.text(&mut pane).contains("Why skill-000 is first"));

    let wheel =
        MouseEvent { kind: MouseEventKind::ScrollDown, column: 5, row: 20, modifiers: KeyModifiers::NONE };
    (0..40).for_each(|_| drop(pane.mouse(wheel)));
    serve(&mut pane, &mut screen, 975);
    let text = screen.text(&mut pane);
    assert!(text.contains("Why skill-000 is first") && !text.contains("1 skill-000"), "{text}");
    assert!(text.contains("skill-065"), "{text}");
}

#[test]
fn a_filter_keeps_results_by_name_and_description() {
    let mut pane = answered(INTENT, fits());
    pane.act(Action::Submit);
    assert_eq!(pane.act(Action::Filter), Some(Vec::new()));
    assert!(pane.in_text());
    let mut effects = Vec::new();
    for c in "csv".chars() {
        effects = pane.text_key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    }
    let [Effect::Results { request, lookup }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((request.filter.as_str(), request.intent.as_str()), ("csv", INTENT));
    let mut refined = fits();
    let of = |id: &str, rank| {
        let hit = fits().results.into_iter().find(|h| h.skill_id.as_str() == id).unwrap();
        Hit { rank: Some(rank), ..hit }
    };
    refined.results = vec![of("pdf-tables", 1), of("csv-tools", 5)];
    (refined.attachable, refined.excluded) = (Vec::new(), Vec::new());
    pane.message(&Message::Results(lookup.clone(), Ok(Arc::new(refined))));
    pane.act(Action::Submit);
    insta::assert_snapshot!("discover-filter-120x36", Screen::new(120, 36).text(&mut pane));
    pane.act(Action::Down);
    assert_eq!(pane.act(Action::Copy), Some(vec![Effect::Copy("csv-tools".into(), "id".into())]));

    pane.act(Action::Back);
    let screen = Screen::new(120, 36).text(&mut pane);
    assert!(screen.contains("report-builder") && screen.contains("Why csv-tools is number 5"), "{screen}");
}

#[test]
fn an_older_filter_does_not_replace_a_newer_one() {
    let mut pane = answered(INTENT, fits());
    pane.act(Action::Submit);
    pane.act(Action::Filter);
    let mut requests = Vec::new();
    for c in "cs".chars() {
        for effect in pane.text_key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)) {
            let Effect::Results { lookup, .. } = effect else { panic!("{effect:?}") };
            requests.push(lookup);
        }
    }
    let answer = |n: usize| Ok(Arc::new(Answer { results: vec![numbered(n, &fits())], ..fits() }));
    pane.message(&Message::Results(requests[1].clone(), answer(1)));
    pane.message(&Message::Results(requests[0].clone(), answer(0)));
    let screen = Screen::new(120, 36).text(&mut pane);
    assert!(screen.contains("skill-001") && !screen.contains("skill-000"), "{screen}");
}

#[test]
fn any_skill_is_opened_by_its_name_at_every_width() {
    for (width, height) in [(200, 60), (120, 36), (80, 24), (60, 20)] {
        let mut pane = answered(INTENT, long(975));
        pane.act(Action::Submit);
        let mut screen = Screen::new(width, height);
        screen.draw(&mut pane);
        let effects = pane.message(&Message::Picked(PickerKind::SkillToOpen, "skill-700".into()));
        let [Effect::Results { request, lookup }] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!(request.skill, Some(SkillId::new("skill-700")));
        let mut alone = fits();
        alone.results = vec![Hit { rank: Some(701), ..numbered(700, &fits()) }];
        pane.message(&Message::Results(lookup.clone(), Ok(Arc::new(alone))));
        serve(&mut pane, &mut screen, 975);
        let text = screen.text(&mut pane);
        assert!(text.contains("Why skill-700") && text.contains("701 "), "{width}: {text}");
        assert!(text.contains("spreadsheet") && text.contains("0.53"), "its breakdown, {width}: {text}");
    }
}

#[test]
fn opened_skill_outside_the_results_shows_the_reason() {
    let open = |id: &str, change: &dyn Fn(&mut Answer)| {
        let mut pane = answered(INTENT, fits());
        pane.act(Action::Submit);
        let effects = pane.message(&Message::Picked(PickerKind::SkillToOpen, id.into()));
        let [Effect::Results { lookup, .. }] = &effects[..] else { panic!("{effects:?}") };
        let mut alone =
            Answer { results: Vec::new(), attachable: Vec::new(), excluded: Vec::new(), ..fits() };
        change(&mut alone);
        pane.message(&Message::Results(lookup.clone(), Ok(Arc::new(alone))));
        Screen::new(120, 40).text(&mut pane)
    };
    let screen = open("mail-writer", &|_| {});
    assert!(screen.contains("Why mail-writer is not ranked"), "{screen}");
    assert!(screen.contains("does not match this request"), "{screen}");
    let screen = open("table-audit", &|alone| alone.attachable = fits().attachable[..1].to_vec());
    assert!(screen.contains("Why table-audit is not ranked") && screen.contains("a sidecar"), "{screen}");
    let screen = open("old-pdf", &|alone| alone.excluded = fits().excluded[..1].to_vec());
    assert!(screen.contains("excluded: deprecated"), "{screen}");
    let mut pane = Discover::new(History::default());
    let effects = pane.message(&Message::Picked(PickerKind::SkillToOpen, "xlsx".into()));
    assert!(
        matches!(&effects[..], [Effect::Go(PaneId::Browse, Some(Target::Skill(id)))] if id.as_str() == "xlsx"),
        "without a request it is opened in Browse: {effects:?}"
    );
}

#[test]
fn verdict_is_about_the_first_result_without_truncated_names() {
    let mut answer = fits();
    let id = "abusing-dpapi-for-credential-access-on-windows";
    answer.results[0].skill_id = SkillId::new(id);
    answer.verdict.sentence = format!("{id} fits, confidence high, see also the next");
    let mut pane = answered(INTENT, answer);
    pane.act(Action::Submit);
    pane.act(Action::Down);
    for (width, height) in [(200, 60), (120, 36), (80, 24), (60, 20)] {
        let text = Screen::new(width, height).text(&mut pane);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(id), "{width}: {text}");
        assert!(words.replace(" │ ", " ").contains("fits, confidence high"), "{width}: {text}");
    }
    let text = Screen::new(80, 24).text(&mut pane);
    assert!(text.contains("name and description"), "{text}");
}

#[test]
fn semantic_marks_are_shown_only_with_semantic_terms() {
    let marked = |answer: Answer| {
        let mut pane = answered(INTENT, answer);
        pane.act(Action::Submit);
        let text = Screen::ascii(120, 36).text(&mut pane);
        text.contains("[rows]")
    };
    assert!(marked(fits()));
    let mut weak = fits();
    let [name, .., semantic, _] = &mut weak.results[0].breakdown.signals;
    (*name, *semantic) = (*name + *semantic - 0.1, 0.1);
    assert!(!marked(weak));
    let mut below = fits();
    below.confidence.as_mut().unwrap().fit_threshold = 9.0;
    assert!(!marked(below));
}

#[test]
fn colors_come_from_the_theme() {
    let bar = |theme, depth| {
        let mut pane = answered(INTENT, fits());
        pane.act(Action::Submit);
        let mut screen = Screen::themed(120, 36, theme, depth);
        let (buffer, _) = screen.draw(&mut pane);
        let row = find(&buffer, "1 pdf-tables").unwrap().y;
        let cells: Vec<_> = (38..58).map(|x| buffer[(x, row)].clone()).collect();
        (cells, screen.theme.clone())
    };
    for theme in ["dark", "light"] {
        let (cells, theme) = bar(theme, Depth::True);
        assert_eq!(Some(cells[0].fg), theme.style(ThemeRole::SignalName).fg);
        let boundary = &cells[6];
        assert_eq!(Some(boundary.fg), theme.style(ThemeRole::SignalName).fg, "left of the boundary");
        assert_eq!(Some(boundary.bg), theme.style(ThemeRole::SignalDescription).fg, "right of it");
        let selected = &cells[19];
        assert_eq!(Some(selected.bg), theme.style(ThemeRole::Selection).bg, "the band is behind the bar");
    }
    let (cells, _) = bar("mono", Depth::None);
    let bar: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
    assert_eq!(bar.trim_end(), "███████▓▓▓▓▓░░░░·");
    let mut pane = answered(INTENT, fits());
    let ansi = Screen::themed(120, 36, "ansi", Depth::Ansi16).draw(&mut pane).0;
    let at = find(&ansi, "tables from").unwrap();
    let marked = ansi[(at.x, at.y)].style().add_modifier;
    assert!(marked.contains(Modifier::BOLD | Modifier::UNDERLINED), "marks are visible without a tint");
}

#[test]
fn ascii_terminals_get_letters_and_brackets() {
    let mut pane = answered(INTENT, fits());
    pane.act(Action::Submit);
    insta::assert_snapshot!("discover-ascii-120x36", Screen::ascii(120, 36).text(&mut pane));
}
