//! Loads themes: the shipped six, a user's own that change only what they name, and the fallbacks for a terminal with
//! few colors.

use std::path::Path;
use std::str::FromStr;

use ratatui::style::{Color, Style};
use strum::{EnumCount, IntoEnumIterator};

use super::depth::{Depth, to_256};
use super::style_words::parse_style;
use super::{BarStyle, Role, Theme};
use crate::spanned_error::{Entry, LocatedError, entries, unknown_name};

const SHIPPED: [(&str, &str); 6] = [
    ("dark", include_str!("../../../themes/dark.yaml")),
    ("light", include_str!("../../../themes/light.yaml")),
    ("high-contrast", include_str!("../../../themes/high-contrast.yaml")),
    ("color-safe", include_str!("../../../themes/color-safe.yaml")),
    ("ansi", include_str!("../../../themes/ansi.yaml")),
    ("mono", include_str!("../../../themes/mono.yaml")),
];

/// Former names of shipped themes, with the current ones.
const FORMER_NAMES: [(&str, &str); 1] = [("colour-safe", "color-safe")];

/// Returns the current name of a theme whose former name may be in a setting or a theme file.
pub fn current_name(name: &str) -> &str {
    FORMER_NAMES.iter().find(|(former, _)| *former == name).map_or(name, |(_, current)| *current)
}

/// Maximum number of themes in a chain of `extends`.
const MAX_CHAIN_LEN: usize = 8;

/// All available themes, parsed, in full color.
#[derive(Debug, Clone)]
pub struct Themes {
    files: Vec<ThemeFile>,
}

#[derive(Debug, Clone)]
struct ThemeFile {
    name: String,
    file: String,
    extends: Option<(String, u64)>,
    bars: Option<BarStyle>,
    styles: Vec<(Role, Style)>,
}

impl Themes {
    /// Returns the shipped themes.
    ///
    /// # Errors
    /// Returns an error if a shipped file is invalid; a test loads each of them.
    pub fn shipped() -> Result<Self, LocatedError> {
        let files = SHIPPED
            .iter()
            .map(|(name, text)| ThemeFile::parse(name, &format!("themes/{name}.yaml"), text))
            .collect::<Result<_, _>>()?;
        Ok(Self { files })
    }

    /// Adds every `*.yaml` of a directory. An invalid file is skipped and reported; a missing directory is ignored.
    /// A file with a shipped theme's name changes that theme, without `extends`.
    #[must_use]
    pub fn with_dir(mut self, dir: &Path) -> (Self, Vec<LocatedError>) {
        let mut wrong = Vec::new();
        let mut paths: Vec<_> = std::fs::read_dir(dir)
            .map(|found| found.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        paths.retain(|path: &std::path::PathBuf| {
            path.extension().is_some_and(|end| end == "yaml" || end == "yml")
        });
        paths.sort();
        for path in paths {
            let file = path.display().to_string();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let parsed = skills_base::files::read_user_text(&path)
                .map_err(|error| LocatedError::new(&file, 1, error.to_string()))
                .and_then(|text| ThemeFile::parse(&stem, &file, &text));
            match parsed {
                Ok(theme) => self.files.push(theme),
                Err(error) => wrong.push(error),
            }
        }
        (self, wrong)
    }

    /// Returns the names in the order of the picker, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for file in &self.files {
            if !names.contains(&file.name.as_str()) {
                names.push(&file.name);
            }
        }
        names
    }

    /// Returns the theme of that name as this terminal can show it: on sixteen colors `ansi` replaces a theme of RGB
    /// colors, without color `mono` replaces every theme that has colors.
    ///
    /// # Errors
    /// Returns an error for an unknown name (with the nearest one), or an `extends` with an unknown name or a cycle.
    pub fn theme(&self, name: &str, depth: Depth) -> Result<Theme, LocatedError> {
        let theme = self.resolve(current_name(name), self.files.len(), MAX_CHAIN_LEN)?;
        match depth {
            Depth::None if theme.colors().next().is_some() => {
                self.resolve("mono", self.files.len(), MAX_CHAIN_LEN)
            }
            Depth::Ansi16 if theme.colors().any(|color| matches!(color, Color::Rgb(..))) => {
                self.resolve("ansi", self.files.len(), MAX_CHAIN_LEN)
            }
            Depth::Ansi256 => Ok(Theme { styles: theme.styles.map(to_256), ..theme }),
            _ => Ok(theme),
        }
    }

    /// Resolves the last file of that name among the first `before`, applied to what it extends.
    fn resolve(&self, name: &str, before: usize, left: usize) -> Result<Theme, LocatedError> {
        let found = self.files[..before].iter().enumerate().rev().find(|(_, file)| file.name == name);
        let Some((at, file)) = found else {
            return Err(LocatedError::new("theme", 1, unknown_name("theme", name, &self.names())));
        };
        if left == 0 {
            let line = file.extends.as_ref().map_or(1, |(_, line)| *line);
            return Err(LocatedError::new(&file.file, line, "`extends` is circular"));
        }
        let shadows = self.files[..at].iter().any(|earlier| earlier.name == name);
        let beneath = match &file.extends {
            Some((parent, line)) => {
                let before = if parent == name { at } else { self.files.len() };
                Some(self.resolve(parent, before, left - 1).map_err(|error| {
                    if error.file == "theme" {
                        LocatedError::new(&file.file, *line, error.message)
                    } else {
                        error
                    }
                })?)
            }
            None if shadows => Some(self.resolve(name, at, left - 1)?),
            None => None,
        };
        Ok(file.over(beneath))
    }
}

impl ThemeFile {
    fn parse(name: &str, file: &str, text: &str) -> Result<Self, LocatedError> {
        let mut theme = Self {
            name: current_name(name).to_owned(),
            file: file.to_owned(),
            extends: None,
            bars: None,
            styles: Vec::new(),
        };
        for Entry { key, value, line } in entries(file, text)? {
            match key.as_str() {
                "name" => current_name(&value).clone_into(&mut theme.name),
                "extends" => theme.extends = Some((current_name(&value).to_owned(), line)),
                "bars" => {
                    theme.bars = Some(BarStyle::from_str(&value).map_err(|_| {
                        LocatedError::new(
                            file,
                            line,
                            format!("bars: `{value}` is not one of eighths, shades, letters"),
                        )
                    })?);
                }
                role => {
                    let role = parse_role(role).map_err(|message| LocatedError::new(file, line, message))?;
                    let style = parse_style(&value)
                        .map_err(|message| LocatedError::new(file, line, format!("{key}: {message}")))?;
                    theme.styles.push((role, style));
                }
            }
        }
        Ok(theme)
    }

    fn over(&self, beneath: Option<Theme>) -> Theme {
        let mut theme = beneath.unwrap_or_else(|| Theme {
            name: String::new(),
            bars: BarStyle::Eighths,
            styles: [Style::new(); Role::COUNT],
        });
        theme.name.clone_from(&self.name);
        theme.bars = self.bars.unwrap_or(theme.bars);
        for (role, style) in &self.styles {
            theme.styles[*role as usize] = *style;
        }
        let base = &mut theme.styles[Role::Base as usize];
        base.fg = base.fg.or(Some(Color::Reset));
        base.bg = base.bg.or(Some(Color::Reset));
        theme
    }
}

fn parse_role(key: &str) -> Result<Role, String> {
    Role::from_str(key).map_err(|_| {
        let names: Vec<String> = Role::iter().map(|role| role.to_string()).collect();
        unknown_name("role", key, &names.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_user(files: &[(&str, &str)]) -> (Themes, Vec<LocatedError>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Themes::shipped().unwrap().with_dir(dir.path())
    }

    #[test]
    fn every_shipped_theme_names_every_role() {
        let themes = Themes::shipped().unwrap();
        assert_eq!(themes.names(), ["dark", "light", "high-contrast", "color-safe", "ansi", "mono"]);
        for file in &themes.files {
            for role in Role::iter() {
                let named = file.styles.iter().any(|(named, _)| *named == role);
                assert!(named || file.extends.is_some(), "{} lacks {role}", file.name);
            }
        }
    }

    #[test]
    fn a_user_theme_changes_only_what_it_names() {
        let (themes, wrong) = with_user(&[("mine.yaml", "extends: light\ntext: \"#010203\"\n")]);
        assert_eq!(wrong, []);
        let (mine, light) =
            (themes.theme("mine", Depth::True).unwrap(), themes.theme("light", Depth::True).unwrap());
        assert_eq!(mine.style(Role::Text).fg, Some(Color::Rgb(1, 2, 3)));
        assert_eq!(mine.style(Role::Danger), light.style(Role::Danger));
    }

    #[test]
    fn a_user_file_named_dark_changes_dark() {
        let (themes, _) = with_user(&[("dark.yaml", "danger: red\n")]);
        let dark = themes.theme("dark", Depth::True).unwrap();
        assert_eq!(dark.style(Role::Danger).fg, Some(Color::Red));
        assert_eq!(dark.style(Role::Base).bg, Some(Color::Rgb(0x13, 0x15, 0x1a)));
        assert_eq!(themes.names().len(), 6);
    }

    #[test]
    fn former_name_is_accepted() {
        let files =
            [("colour-safe.yaml", "danger: red\n"), ("mine.yaml", "extends: colour-safe\ninfo: blue\n")];
        let (themes, wrong) = with_user(&files);
        assert_eq!((wrong, themes.names().len()), (Vec::new(), 7));
        for name in ["color-safe", "colour-safe", "mine"] {
            let theme = themes.theme(name, Depth::True).unwrap();
            assert_eq!(theme.style(Role::Danger).fg, Some(Color::Red), "{name}");
        }
        assert_eq!(themes.theme("colour-safe", Depth::True).unwrap().name, "color-safe");
    }

    #[test]
    fn errors_name_file_line_and_role() {
        let (_, wrong) = with_user(&[
            ("a.yaml", "extends: dark\nsignal.nam: red\n"),
            ("b.yaml", "text: default\ndanger: reddish\n"),
        ]);
        let texts: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        assert!(
            texts[0].contains("a.yaml:2: unknown role `signal.nam`; did you mean `signal.name`?"),
            "{texts:?}"
        );
        assert!(texts[1].contains("b.yaml:2: danger: `reddish` is not a color"), "{texts:?}");
    }

    #[test]
    fn missing_and_circular_parents_are_reported() {
        let (themes, _) = with_user(&[
            ("a.yaml", "extends: lihgt\n"),
            ("b.yaml", "extends: c\n"),
            ("c.yaml", "extends: b\n"),
        ]);
        let missing = themes.theme("a", Depth::True).unwrap_err().to_string();
        assert!(missing.ends_with("a.yaml:1: unknown theme `lihgt`; did you mean `light`?"), "{missing}");
        assert!(themes.theme("b", Depth::True).unwrap_err().message.contains("circular"));
    }

    #[test]
    fn fewer_colors_select_a_readable_theme() {
        let themes = Themes::shipped().unwrap();
        assert_eq!(themes.theme("dark", Depth::Ansi16).unwrap().name, "ansi");
        assert_eq!(themes.theme("light", Depth::None).unwrap().name, "mono");
        assert_eq!(themes.theme("mono", Depth::None).unwrap().name, "mono");
        let dark = themes.theme("dark", Depth::Ansi256).unwrap();
        assert_eq!(dark.name, "dark");
        assert!(dark.colors().all(|color| matches!(color, Color::Indexed(_))));
    }

    #[test]
    fn sixteen_colors_never_set_a_background() {
        let ansi = Themes::shipped().unwrap().theme("ansi", Depth::Ansi16).unwrap();
        let never = [Color::Black, Color::White, Color::Gray];
        assert!(ansi.colors().all(|color| !never.contains(&color)));
        assert!(Role::iter().filter(|role| *role != Role::Base).all(|role| ansi.style(role).bg.is_none()));
    }
}
