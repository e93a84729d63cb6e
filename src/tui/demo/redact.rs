//! Makes paths and names unreadable on a screen that others see.

use ratatui::buffer::Buffer;

/// What is replaced, longest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redaction(Vec<(String, String)>);

impl Redaction {
    /// The home folder becomes `~`, the user's name `user`.
    #[must_use]
    pub fn of(home: &str, user: Option<&str>) -> Self {
        let mut pairs = Vec::new();
        if home.len() > 1 {
            pairs.push((home.to_owned(), "~".to_owned()));
        }
        // A name of one or two letters stands inside too many words.
        if let Some(user) = user.filter(|user| user.chars().count() > 2 && *user != "root") {
            pairs.push((user.to_owned(), "user".to_owned()));
        }
        pairs.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Self(pairs)
    }

    /// A text of one's own that is shown beside the screen.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    /// The same as it is on a screen that was redacted: filled up, so that columns stay.
    pub(super) fn on_screen(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (from, to)| {
            let width = from.chars().count();
            let filled: String = to.chars().chain(std::iter::repeat(' ')).take(width).collect();
            text.replace(from, &filled)
        })
    }

    /// Replaces on the whole screen; what is shorter then is filled up, so that columns stay.
    pub fn apply(&self, screen: &mut Buffer) {
        let width = usize::from(screen.area.width);
        for row in 0..usize::from(screen.area.height) {
            let cells = row * width..(row + 1) * width;
            let Some(cells) = screen.content.get_mut(cells) else { continue };
            for (from, to) in &self.0 {
                let wanted: Vec<String> = from.chars().map(String::from).collect();
                let mut at = 0;
                while at + wanted.len() <= cells.len() {
                    let here =
                        cells[at..at + wanted.len()].iter().zip(&wanted).all(|(cell, c)| cell.symbol() == c);
                    if here {
                        let mut letters = to.chars();
                        for cell in &mut cells[at..at + wanted.len()] {
                            let mut sign = [0; 4];
                            cell.set_symbol(letters.next().unwrap_or(' ').encode_utf8(&mut sign));
                        }
                        at += wanted.len();
                    } else {
                        at += 1;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn what_a_script_says_is_made_unreadable_as_the_screen_is() {
        let redaction = Redaction::of("/home/ann", Some("ann"));
        assert_eq!(redaction.text("ann looks into /home/ann/skills"), "user looks into ~/skills");
        assert_eq!(Redaction::default().text("/home/ann"), "/home/ann");
    }

    #[test]
    fn paths_and_names_go_and_columns_stay() {
        let mut screen = Buffer::empty(Rect::new(0, 0, 40, 1));
        screen.set_string(0, 0, "/home/ann/skills by ann | next", Style::new());
        Redaction::of("/home/ann", Some("ann")).apply(&mut screen);
        let text: String = screen.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(text.trim_end(), "~        /skills by use | next");
    }
}
