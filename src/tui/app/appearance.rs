//! The theme and the glyphs.

use crate::glyphs::{ASCII, ASCII_STILL, Glyphs, UNICODE, UNICODE_STILL};
use crate::overlay::{Chooser, Purpose};
use crate::settings::Settings;
use crate::spanned_error::LocatedError;
use crate::theme::{Depth, Role, Theme, Themes, contrast, current_name};

/// The active theme and glyphs, and the themes to choose from.
pub(super) struct Appearance {
    themes: Themes,
    depth: Depth,
    pub theme: Theme,
    /// The active theme before the theme chooser opened.
    pub kept_theme: String,
    pub glyphs: &'static Glyphs,
    /// Whether animations are disabled.
    pub reduced_motion: bool,
}

impl Appearance {
    /// Loads the themes; returns the errors of invalid ones, too.
    pub fn new(settings: &Settings, chosen: Option<&str>) -> Result<(Self, Vec<LocatedError>), LocatedError> {
        let (themes, wrong) = match &settings.theme_dir {
            Some(dir) => Themes::shipped()?.with_dir(dir),
            None => (Themes::shipped()?, Vec::new()),
        };
        let depth = settings.depth.unwrap_or(Depth::True);
        let picked = chosen.map(current_name).filter(|name| themes.names().contains(name));
        let name = settings.theme.as_deref().map(current_name).or(picked).unwrap_or("dark");
        let theme = themes.theme(name, depth)?;
        let reduced_motion = settings.reduced_motion;
        let glyphs = match (settings.glyphs == skills_config::GlyphSet::Ascii, reduced_motion) {
            (true, false) => &ASCII,
            (false, false) => &UNICODE,
            (true, true) => &ASCII_STILL,
            (false, true) => &UNICODE_STILL,
        };
        let kept_theme = name.to_owned();
        Ok((Self { themes, depth, theme, kept_theme, glyphs, reduced_motion }, wrong))
    }

    /// Sets the theme until the chooser closes.
    pub fn apply(&mut self, name: &str) -> Result<(), LocatedError> {
        self.theme = self.themes.theme(name, self.depth)?;
        Ok(())
    }

    pub fn chooser(&self) -> Chooser {
        let names: Vec<String> = self.themes.names().into_iter().map(str::to_owned).collect();
        let note = |name: &str| {
            let Ok(theme) = self.themes.theme(name, Depth::True) else {
                return "cannot be read: see the log".to_owned();
            };
            let worn = self.themes.theme(name, self.depth).map(|theme| theme.name).unwrap_or_default();
            if worn != theme.name {
                return format!("needs more colors; using {worn}");
            }
            let (text, base) = (theme.style(Role::Text), theme.style(Role::Base));
            let ratio = text.fg.zip(base.bg).and_then(|(text, ground)| contrast(text, ground));
            ratio.map_or_else(|| "terminal colors".to_owned(), |ratio| format!("contrast {ratio:.1}"))
        };
        let choices = names.iter().map(|name| (name.clone(), name.clone(), note(name))).collect();
        let current = names.iter().position(|name| *name == self.kept_theme);
        Chooser::new(Purpose::Theme, "Theme", choices, current)
    }
}
