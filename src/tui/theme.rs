//! Themes: a style for each role of the screen, read from YAML files. Code names roles, never colors.

mod depth;
#[cfg(test)]
mod legible;
mod load;
mod style_words;

use ratatui::style::{Color, Style};
use strum::{Display, EnumCount, EnumIter, EnumString};

use super::spanned_error::LocatedError;
pub use depth::Depth;
pub use load::{Themes, current_name};
pub use style_words::{contrast, luminance};

/// The role of a cell on the screen. Theme files use these names with dots (`signal.name`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, EnumIter, EnumCount)]
#[rustfmt::skip]
pub enum Role {
    #[strum(serialize = "base")] Base,
    #[strum(serialize = "surface")] Surface,
    #[strum(serialize = "field")] Field,
    #[strum(serialize = "overlay")] Overlay,
    #[strum(serialize = "shade")] Shade,
    #[strum(serialize = "border")] Border,
    #[strum(serialize = "rule")] Rule,
    #[strum(serialize = "text")] Text,
    #[strum(serialize = "strong")] Strong,
    #[strum(serialize = "muted")] Muted,
    #[strum(serialize = "faint")] Faint,
    #[strum(serialize = "accent")] Accent,
    #[strum(serialize = "focus")] Focus,
    #[strum(serialize = "key")] Key,
    #[strum(serialize = "selection")] Selection,
    #[strum(serialize = "selection.weak")] SelectionWeak,
    #[strum(serialize = "gutter")] Gutter,
    #[strum(serialize = "tab")] Tab,
    #[strum(serialize = "tab.active")] TabActive,
    #[strum(serialize = "cursor")] Cursor,
    #[strum(serialize = "button")] Button,
    #[strum(serialize = "button.focus")] ButtonFocus,
    #[strum(serialize = "button.danger")] ButtonDanger,
    #[strum(serialize = "success")] Success,
    #[strum(serialize = "warning")] Warning,
    #[strum(serialize = "danger")] Danger,
    #[strum(serialize = "waiting")] Waiting,
    #[strum(serialize = "waiting.band")] WaitingBand,
    #[strum(serialize = "danger.band")] DangerBand,
    #[strum(serialize = "info")] Info,
    #[strum(serialize = "signal.name")] SignalName,
    #[strum(serialize = "signal.description")] SignalDescription,
    #[strum(serialize = "signal.body")] SignalBody,
    #[strum(serialize = "signal.semantic")] SignalSemantic,
    #[strum(serialize = "signal.rule")] SignalRule,
    #[strum(serialize = "mark.name")] MarkName,
    #[strum(serialize = "mark.description")] MarkDescription,
    #[strum(serialize = "mark.body")] MarkBody,
    #[strum(serialize = "mark.semantic")] MarkSemantic,
    #[strum(serialize = "level.0")] Level0,
    #[strum(serialize = "level.1")] Level1,
    #[strum(serialize = "level.2")] Level2,
    #[strum(serialize = "level.3")] Level3,
    #[strum(serialize = "diff.add")] DiffAdd,
    #[strum(serialize = "diff.del")] DiffDel,
    #[strum(serialize = "code.keyword")] CodeKeyword,
    #[strum(serialize = "code.string")] CodeString,
    #[strum(serialize = "code.comment")] CodeComment,
    #[strum(serialize = "code.number")] CodeNumber,
    #[strum(serialize = "code.key")] CodeKey,
}

/// How bars are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum BarStyle {
    /// Full blocks and eighths, distinguished by color.
    Eighths,
    /// `█▓▒░·`, distinguished by shade.
    Shades,
    /// `nnndddbbssr`, distinguished by letter.
    Letters,
}

/// All styles of one theme, resolved for the terminal's number of colors.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// Its name in the theme picker.
    pub name: String,
    /// How bars are drawn.
    pub bars: BarStyle,
    styles: [Style; Role::COUNT],
}

impl Theme {
    /// Returns one of the six shipped themes, for a terminal with that many colors.
    ///
    /// # Errors
    /// Returns an error if there is no theme of that name.
    pub fn shipped(name: &str, depth: Depth) -> Result<Self, LocatedError> {
        Themes::shipped()?.theme(name, depth)
    }

    /// Returns every color the theme sets, except the terminal's default.
    fn colors(&self) -> impl Iterator<Item = Color> {
        self.styles
            .iter()
            .flat_map(|style| [style.fg, style.bg])
            .flatten()
            .filter(|color| *color != Color::Reset)
    }

    /// Returns the style of a role. Styles are patches: draw the base first, then a band (`surface`, `selection`), then
    /// text, so that a role without a background keeps the one beneath it.
    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }
}
