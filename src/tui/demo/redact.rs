//! Redacts paths and names on a screen that an audience sees.

use ratatui::buffer::Buffer;

/// The replacements, longest text first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redaction(Vec<(String, String)>);

impl Redaction {
    /// Creates a redaction: the home folder becomes `~`, each other folder its replacement, the user's name `user`.
    pub fn of(home: &str, folders: &[(String, &str)], user: Option<&str>) -> Self {
        let folders = folders.iter().filter(|(folder, _)| !std::path::Path::new(folder).starts_with(home));
        let mut pairs: Vec<(String, String)> =
            folders.map(|(folder, to)| (folder.clone(), (*to).to_owned())).collect();
        if home.len() > 1 {
            pairs.push((home.to_owned(), "~".to_owned()));
        }
        // A name of one or two letters occurs in too many words.
        if let Some(user) = user.filter(|user| user.chars().count() > 2 && *user != "root") {
            pairs.push((user.to_owned(), "user".to_owned()));
        }
        pairs.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Self(pairs)
    }

    /// Redacts a text that is shown outside of the screen.
    pub fn text(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    /// Redacts a text as it appears on a redacted screen.
    pub(super) fn on_screen(&self, text: &str) -> String {
        let mut signs: Vec<String> = text.chars().map(String::from).collect();
        self.replace(&mut signs);
        signs.concat().trim_end().to_owned()
    }

    /// Redacts the entire screen; columns are preserved.
    pub fn apply(&self, screen: &mut Buffer) {
        let width = usize::from(screen.area.width);
        for row in 0..usize::from(screen.area.height) {
            let cells = row * width..(row + 1) * width;
            let Some(cells) = screen.content.get_mut(cells) else { continue };
            let mut signs: Vec<String> = cells.iter().map(|cell| cell.symbol().to_owned()).collect();
            self.replace(&mut signs);
            for (cell, sign) in cells.iter_mut().zip(&signs).filter(|(cell, sign)| cell.symbol() != *sign) {
                cell.set_symbol(sign);
            }
        }
    }

    /// Replaces in the characters of a line. A shorter replacement moves the rest of its word to the left, with blanks
    /// after the word.
    fn replace(&self, signs: &mut [String]) {
        for (from, to) in &self.0 {
            let requested: Vec<String> = from.chars().map(String::from).collect();
            let mut at = 0;
            while at < signs.len() {
                let Some(matched) = matched_len(&signs[at..], &requested) else {
                    at += 1;
                    continue;
                };
                let after = at + matched;
                let end =
                    signs[after..].iter().position(|sign| ends_word(sign)).map_or(signs.len(), |n| after + n);
                let shown = to.chars().count().min(matched);
                for (sign, letter) in signs[at..].iter_mut().zip(to.chars().take(shown)) {
                    *sign = letter.to_string();
                }
                signs[at + shown..end].rotate_left(matched - shown);
                signs[end - (matched - shown)..end].fill(" ".to_owned());
                at += shown;
            }
        }
    }
}

/// Returns how many characters of a text match its beginning: all of them, or those of a path that is truncated after
/// the first character of its second component, so that it is more than a common folder.
fn matched_len(signs: &[String], requested: &[String]) -> Option<usize> {
    let matched = signs.iter().zip(requested).take_while(|(sign, requested)| sign == requested).count();
    let is_path = requested.first().is_some_and(|first| first == "/");
    let second_component = || requested.iter().skip(1).position(|sign| sign == "/").map(|slash| slash + 3);
    let is_truncated = || {
        let rest = signs.get(matched);
        rest.is_none_or(|sign| ends_word(sign) || sign == "…")
            && second_component().is_some_and(|n| matched >= n)
    };
    (matched > 0 && (matched == requested.len() || is_path && is_truncated())).then_some(matched)
}

/// Returns whether a character ends a word: a blank, or a line of a box.
fn ends_word(sign: &str) -> bool {
    sign.chars().all(|c| c.is_whitespace() || ('\u{2500}'..='\u{257f}').contains(&c)) && !sign.is_empty()
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn script_text_is_redacted_like_the_screen() {
        let redaction = Redaction::of("/home/ann", &[], Some("ann"));
        assert_eq!(redaction.text("ann looks into /home/ann/skills"), "user looks into ~/skills");
        assert_eq!(Redaction::default().text("/home/ann"), "/home/ann");
    }

    #[test]
    fn paths_and_names_are_redacted_and_columns_kept() {
        let mut screen = Buffer::empty(Rect::new(0, 0, 40, 1));
        screen.set_string(0, 0, "/home/ann/skills by ann | next", Style::new());
        Redaction::of("/home/ann", &[], Some("ann")).apply(&mut screen);
        let text: String = screen.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(text.trim_end(), "~/skills         by use | next");
    }

    #[test]
    fn folders_outside_of_home_are_redacted() {
        let folders =
            [("/srv/cache/app".to_owned(), "$CACHE"), ("/home/ann/.config/app".to_owned(), "$CONFIG")];
        let redaction = Redaction::of("/home/ann", &folders, None);
        assert_eq!(redaction.on_screen("in /srv/cache/app/x and"), "in $CACHE/x         and");
        assert_eq!(redaction.on_screen("│/srv/cache/app/x│ |"), "│$CACHE/x        │ |");
        assert_eq!(redaction.on_screen("/home/ann/.config/app/x"), "~/.config/app/x");
    }

    #[test]
    fn truncated_paths_are_redacted_too() {
        let redaction = Redaction::of("/home/ann", &[("/srv/cache/app".to_owned(), "$CACHE")], None);
        assert_eq!(redaction.on_screen("/srv/cac… and"), "$CACHE…   and");
        assert_eq!(redaction.on_screen("│/srv/cache/a│"), "│$CACHE      │");
        assert_eq!(redaction.on_screen("/srv/c"), "$CACHE");
        assert_eq!(redaction.on_screen("/home/a… |"), "~…       |");
        for other in ["/srv/other/app", "/srv/ and /srv", "/home/bob", "a / b"] {
            assert_eq!(redaction.on_screen(other), other);
        }
    }
}
