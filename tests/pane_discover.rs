//! What a person sees and does in Discover.

mod support;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use skill_workbench::discovery::{Answer, Request};
use skill_workbench::tui::action::Action;
use skill_workbench::tui::pane::{Effect, Message, Pane};
use skill_workbench::tui::panes::discover::{Discover, History};
use support::answers::{INTENT, NO_FIT_INTENT, fits, none_fits};
use support::screen::Screen;

fn typed(pane: &mut Discover, text: &str) -> Vec<(Request, u64)> {
    let mut asked = Vec::new();
    for c in text.chars() {
        for effect in pane.text_key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)) {
            if let Effect::Discover { request, generation } = effect {
                asked.push((request, generation));
            }
        }
    }
    asked
}

fn answered(intent: &str, answer: Answer) -> Discover {
    let mut pane = Discover::new(History::default());
    let asked = typed(&mut pane, intent);
    let generation = asked.last().unwrap().1;
    pane.message(&Message::Answer(generation, Ok(Arc::new(answer))));
    pane
}

#[test]
fn the_ranking_explains_itself_at_every_size() {
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
fn no_fit_is_an_answer() {
    let mut pane = answered(NO_FIT_INTENT, none_fits());
    pane.act(Action::Submit);
    insta::assert_snapshot!("discover-nofit-120x36", Screen::new(120, 36).text(&mut pane));
}
