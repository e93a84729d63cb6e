//! Display names of keys in the footer, the help and the palette: `^P`, `G`, `⏎`, `F2`.

use crokey::{KeyCombination, OneToThree};
use crossterm::event::{KeyCode, KeyModifiers};

use crate::glyphs::Glyphs;

/// Returns the short name of a key in a set of glyphs.
pub fn key_name(key: KeyCombination, glyphs: &Glyphs) -> String {
    let OneToThree::One(code) = key.codes else { return key.to_string() };
    let pick = |unicode: &str, ascii: &str| if glyphs.ascii { ascii.to_owned() } else { unicode.to_owned() };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let name = match code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(letter) if control => letter.to_uppercase().to_string(),
        KeyCode::Char(letter) => letter.to_string(),
        KeyCode::F(number) => format!("F{number}"),
        KeyCode::Enter => glyphs.enter.to_owned(),
        KeyCode::Tab => glyphs.tab.to_owned(),
        KeyCode::BackTab => pick("⇤", "S-Tab"),
        KeyCode::Up => pick("↑", "Up"),
        KeyCode::Down => pick("↓", "Dn"),
        KeyCode::Left => pick("←", "Lt"),
        KeyCode::Right => pick("→", "Rt"),
        KeyCode::PageUp => "PgUp".to_owned(),
        KeyCode::PageDown => "PgDn".to_owned(),
        KeyCode::Home => "Home".to_owned(),
        KeyCode::End => "End".to_owned(),
        KeyCode::Esc => "Esc".to_owned(),
        KeyCode::Backspace => "Bksp".to_owned(),
        KeyCode::Delete => "Del".to_owned(),
        KeyCode::Insert => "Ins".to_owned(),
        other => format!("{other:?}"),
    };
    let shift =
        key.modifiers.contains(KeyModifiers::SHIFT) && !matches!(code, KeyCode::Char(_) | KeyCode::BackTab);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    format!(
        "{}{}{}{name}",
        if control { "^" } else { "" },
        if alt { "M-" } else { "" },
        if shift { "S-" } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use super::super::load::parse_key;
    use super::*;
    use crate::glyphs::{ASCII, UNICODE};

    #[test]
    fn keys_are_short() {
        for (key, unicode, ascii) in [
            ("ctrl-p", "^P", "^P"),
            ("G", "G", "G"),
            ("enter", "⏎", "Enter"),
            ("shift-tab", "⇤", "S-Tab"),
            ("up", "↑", "Up"),
            ("f2", "F2", "F2"),
            ("alt-b", "M-b", "M-b"),
        ] {
            let key = parse_key(key).unwrap();
            assert_eq!((key_name(key, &UNICODE).as_str(), key_name(key, &ASCII).as_str()), (unicode, ascii));
        }
    }
}
