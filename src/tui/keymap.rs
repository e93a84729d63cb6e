//! Keys to actions, by context: the shipped table, a user's changes to it, look-up, and display names of keys.

mod load;
mod name;

use std::collections::HashMap;

use crokey::{KeyCombination, OneToThree};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Context};
use super::glyphs::Glyphs;
pub use load::{Remap, parse_key};
pub use name::key_name;

/// The characters around the name of an action in a message. They are for private use: no text has a reason for them.
const MENTION: (char, char) = ('\u{f0000}', '\u{f0001}');

/// Mentions the key of an action in a message that is written where the keymap is not known; [`Keymap::with_keys`]
/// replaces it by the name of the key in effect.
pub fn mention(action: Action) -> String {
    format!("{}{action}{}", MENTION.0, MENTION.1)
}

/// A row of the keymap: in this context, these keys trigger this action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub context: Context,
    pub action: Action,
    /// The keys; the footer shows the first one. Empty if the user removed them.
    pub keys: Vec<KeyCombination>,
    /// Whether a user's binding of the same keys takes them from this row.
    pub yields: bool,
    /// A short name for palette and help.
    pub name: String,
    /// A description in one sentence.
    pub does: String,
}

/// All bindings. No key is bound twice in one context.
#[derive(Debug, Clone)]
pub struct Keymap {
    bindings: Vec<Binding>,
    index: HashMap<(Context, KeyCombination), Action>,
}

impl Keymap {
    /// Returns the action of a key. `contexts` are ordered from the innermost; `Global` is always added last. With
    /// `in_text` a text field has the focus, and its printable and readline keys trigger no action.
    pub fn action(&self, key: KeyEvent, contexts: &[Context], in_text: bool) -> Option<Action> {
        let key = Self::combination(key);
        let outer = if contexts.contains(&Context::Global) { &[][..] } else { &[Context::Global] };
        contexts.iter().chain(outer).find_map(|context| {
            let is_bound = !in_text || !owned_by_text(key, *context);
            is_bound.then(|| self.index.get(&(*context, key)).copied()).flatten()
        })
    }

    /// Normalizes a key event to the keymap's notation: letters with their case, other characters without Shift.
    pub fn combination(key: KeyEvent) -> KeyCombination {
        let mut modifiers = key.modifiers;
        if let KeyCode::Char(typed) = key.code
            && !typed.is_alphabetic()
        {
            modifiers.remove(KeyModifiers::SHIFT);
        }
        KeyCombination::one_key(key.code, modifiers).normalized()
    }

    /// Returns all rows, in the order of the file.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// Returns the innermost row for an action among these contexts and `Global`.
    pub fn binding(&self, action: Action, contexts: &[Context]) -> Option<&Binding> {
        contexts.iter().chain(&[Context::Global]).find_map(|context| {
            self.bindings.iter().find(|row| row.context == *context && row.action == action)
        })
    }

    /// Returns the name of the key of an action for a sentence (`Ctrl-S`); `no key` without one.
    pub fn key_word(&self, action: Action, contexts: &[Context], glyphs: &Glyphs) -> String {
        word(self.key_for(action, contexts, false), glyphs)
    }

    /// Replaces each [`mention`] in a message by the name of the key in these contexts, else in the first one that has
    /// the action.
    pub fn with_keys(&self, message: &str, contexts: &[Context], glyphs: &Glyphs) -> String {
        let name = |action: Action| {
            let elsewhere = || {
                let mut rows = self.bindings.iter().filter(|row| row.action == action);
                rows.find_map(|row| row.keys.first().copied())
            };
            word(self.key_for(action, contexts, false).or_else(elsewhere), glyphs)
        };
        let (mut out, mut rest) = (String::with_capacity(message.len()), message);
        while let Some((before, after)) = rest.split_once(MENTION.0) {
            out.push_str(before);
            rest = after;
            let mentioned = after.split_once(MENTION.1);
            if let Some((action, after)) = mentioned
                && let Ok(action) = action.parse::<Action>()
            {
                out.push_str(&name(action));
                rest = after;
            } else {
                out.push(MENTION.0);
            }
        }
        out + rest
    }

    /// Returns the key that the footer shows for an action: the first one that triggers it in these contexts.
    pub fn key_for(&self, action: Action, contexts: &[Context], in_text: bool) -> Option<KeyCombination> {
        contexts.iter().chain(&[Context::Global]).find_map(|context| {
            let row = self.bindings.iter().find(|row| row.context == *context && row.action == action)?;
            row.keys.iter().copied().find(|key| {
                let OneToThree::One(code) = key.codes else { return false };
                self.action(KeyEvent::new(code, key.modifiers), contexts, in_text) == Some(action)
            })
        })
    }
}

/// Returns the name of a key for a sentence.
fn word(key: Option<KeyCombination>, glyphs: &Glyphs) -> String {
    let Some(key) = key else { return "no key".to_owned() };
    let short = key_name(key, glyphs);
    match short.strip_prefix('^') {
        Some(rest) if !rest.is_empty() => format!("Ctrl-{rest}"),
        _ => short,
    }
}

/// Returns whether a text field keeps this key for itself regardless of the keymap. A field's own contexts may rebind
/// readline's chords (`Ctrl-U` clears, `Ctrl-P` recalls an earlier request); outer contexts may not.
fn owned_by_text(key: KeyCombination, context: Context) -> bool {
    let OneToThree::One(code) = key.codes else { return false };
    let KeyCode::Char(typed) = code else {
        let moves = matches!(
            code,
            KeyCode::Left
                | KeyCode::Right
                | KeyCode::Home
                | KeyCode::End
                | KeyCode::Backspace
                | KeyCode::Delete
        );
        return moves;
    };
    let own = matches!(context, Context::Field | Context::DiscoverIntent | Context::Draft);
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        !own && "abdefhknptuwy_7/".contains(typed)
    } else {
        !key.modifiers.contains(KeyModifiers::ALT) || (!own && "bdf_/".contains(typed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[Context] = &[Context::Browse, Context::List];
    const TEXT: &[Context] = &[Context::DiscoverIntent, Context::Field, Context::Discover];

    fn key(text: &str) -> KeyEvent {
        let parsed = load::parse_key(text).unwrap();
        let OneToThree::One(code) = parsed.codes else { panic!("{text} is not a single key") };
        KeyEvent::new(code, parsed.modifiers)
    }

    #[test]
    fn keys_of_a_project_are_named_as_in_the_keymap_and_none_of_them_acts() {
        let keymap = Keymap::shipped().unwrap();
        let names = |row: &Binding| (row.context.to_string(), row.action.to_string());
        let rows: Vec<(String, String)> = keymap.bindings().iter().map(names).collect();
        for (context, actions) in skills_config::PROJECT_KEYS {
            for action in actions {
                assert!(rows.contains(&(context.to_owned(), (*action).to_owned())), "{context}.{action}");
            }
        }
        let acting = [
            "open",
            "submit",
            "edit",
            "carry-out",
            "launch",
            "load-skill",
            "approve-now",
            "send-now",
            "undo",
        ];
        let all = skills_config::PROJECT_KEYS.into_iter().flat_map(|(_, actions)| actions);
        assert_eq!(all.filter(|action| acting.contains(action)).count(), 0);
    }

    #[test]
    fn inner_contexts_win_and_global_comes_last() {
        let keymap = Keymap::shipped().unwrap();
        assert_eq!(keymap.action(key("j"), LIST, false), Some(Action::Down));
        assert_eq!(keymap.action(key("G"), LIST, false), Some(Action::Bottom));
        assert_eq!(keymap.action(key("g"), LIST, false), Some(Action::Top));
        assert_eq!(keymap.action(key("q"), LIST, false), Some(Action::Quit));
        assert_eq!(keymap.action(key("s"), &[Context::Discover, Context::List], false), None);
    }

    #[test]
    fn a_question_mark_with_shift_reported_is_still_help() {
        let keymap = Keymap::shipped().unwrap();
        let shifted = KeyEvent::new(KeyCode::Char('?'), KeyModifiers::SHIFT);
        assert_eq!(keymap.action(shifted, LIST, false), Some(Action::Help));
    }

    #[test]
    fn a_text_field_keeps_printable_and_readline_keys() {
        let keymap = Keymap::shipped().unwrap();
        for own in ["q", "?", "1", "T", "/", "ctrl-w", "ctrl-a", "left", "home"] {
            assert_eq!(keymap.action(key(own), TEXT, true), None, "{own}");
        }
        for (chord, action) in [
            ("f1", Action::Help),
            ("f2", Action::Palette),
            ("esc", Action::LeaveField),
            ("tab", Action::NextPart),
            ("ctrl-p", Action::HistoryEarlier),
            ("ctrl-u", Action::Clear),
            ("ctrl-z", Action::Suspend),
            ("ctrl-c", Action::Quit),
        ] {
            assert_eq!(keymap.action(key(chord), TEXT, true), Some(action), "{chord}");
        }
        assert_eq!(keymap.action(key("ctrl-p"), &[Context::Field], true), None, "the palette has F2 there");
    }

    #[test]
    fn messages_name_the_keys_in_effect() {
        let shipped = Keymap::shipped().unwrap();
        let message =
            format!("{} launches, {} applies; \u{f0000}x", mention(Action::Launch), mention(Action::Execute));
        let named = |keymap: &Keymap, contexts: &[Context]| {
            keymap.with_keys(&message, contexts, &crate::glyphs::UNICODE)
        };
        assert_eq!(named(&shipped, &[Context::Runs]), "n launches, Ctrl-S applies; \u{f0000}x");
        let mut changed = shipped.clone();
        changed.index.remove(&(Context::Runs, load::parse_key("n").unwrap()));
        changed.index.insert((Context::Runs, load::parse_key("N").unwrap()), Action::Launch);
        for row in changed.bindings.iter_mut().filter(|row| row.action == Action::Launch) {
            row.keys = vec![load::parse_key("N").unwrap()];
        }
        assert_eq!(named(&changed, &[Context::Runs]), "N launches, Ctrl-S applies; \u{f0000}x");
        for row in &mut changed.bindings {
            row.keys.clear();
        }
        assert_eq!(named(&changed, &[]), "no key launches, no key applies; \u{f0000}x");
    }

    #[test]
    fn footer_shows_a_key_of_the_context() {
        let keymap = Keymap::shipped().unwrap();
        assert_eq!(keymap.key_for(Action::Palette, LIST, false), Some(load::parse_key(":").unwrap()));
        assert_eq!(keymap.key_for(Action::Palette, TEXT, true), Some(load::parse_key("f2").unwrap()));
        assert_eq!(keymap.key_for(Action::Sort, TEXT, true), None);
    }
}
