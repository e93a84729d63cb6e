//! The number of colors of the terminal, and the reduction of a theme's colors to that number.

use ratatui::style::{Color, Style};
use strum::{Display, EnumString};

/// The color depth of a terminal. The kebab-case names are those of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString)]
pub enum Depth {
    /// No color wanted (`NO_COLOR`) or none available.
    #[strum(serialize = "none")]
    None,
    /// The sixteen of the terminal's own palette.
    #[strum(serialize = "16")]
    Ansi16,
    /// The xterm palette of 256.
    #[strum(serialize = "256")]
    Ansi256,
    /// 24 bits.
    #[strum(serialize = "truecolor")]
    True,
}

impl Depth {
    /// Reads the environment: `NO_COLOR` (<https://no-color.org>), then `COLORTERM`, then `TERM`.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return Self::None;
        }
        let term = variable("TERM").unwrap_or_default();
        if matches!(term.as_str(), "dumb" | "vt100" | "vt220") {
            return Self::None;
        }
        let colorterm = variable("COLORTERM").unwrap_or_default();
        let direct = term.ends_with("-direct") || term.contains("truecolor");
        let is_capable =
            ["kitty", "alacritty", "ghostty", "wezterm", "foot"].iter().any(|name| term.contains(name));
        if colorterm == "truecolor" || colorterm == "24bit" || direct || is_capable {
            return Self::True;
        }
        if term.contains("256color") { Self::Ansi256 } else { Self::Ansi16 }
    }
}

/// Returns the style with each RGB color replaced by the nearest of the 256-color palette.
pub fn to_256(style: Style) -> Style {
    let near = |color| match color {
        Color::Rgb(red, green, blue) => Color::Indexed(nearest_index(red, green, blue)),
        other => other,
    };
    Style { fg: style.fg.map(near), bg: style.bg.map(near), ..style }
}

/// Levels of the 6×6×6 cube of xterm's palette (indices 16 to 231).
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn nearest_index(red: u8, green: u8, blue: u8) -> u8 {
    let step =
        |channel: u8| (0..6u8).min_by_key(|i| CUBE[usize::from(*i)].abs_diff(channel)).unwrap_or_default();
    let cube = [step(red), step(green), step(blue)];
    let cube_rgb = cube.map(|i| CUBE[usize::from(i)]);
    let mean = (u16::from(red) + u16::from(green) + u16::from(blue)) / 3;
    let grey_step = (mean.saturating_sub(3) / 10).min(23) as u8;
    let grey = 8 + 10 * grey_step;
    let requested = [red, green, blue];
    if distance(requested, [grey; 3]) < distance(requested, cube_rgb) {
        232 + grey_step
    } else {
        16 + 36 * cube[0] + 6 * cube[1] + cube[2]
    }
}

/// Returns the squared distance, weighted by the eye's sensitivity to red, green and blue.
fn distance(one: [u8; 3], other: [u8; 3]) -> u32 {
    one.iter()
        .zip(other)
        .zip([2, 4, 3])
        .map(|((a, b), weight)| weight * u32::from(a.abs_diff(b)).pow(2))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(pairs: &[(&str, &str)]) -> Depth {
        Depth::detect(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_environment_decides() {
        assert_eq!(detect(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), Depth::True);
        assert_eq!(detect(&[("TERM", "xterm-256color")]), Depth::Ansi256);
        assert_eq!(detect(&[("TERM", "xterm")]), Depth::Ansi16);
        assert_eq!(detect(&[("TERM", "linux")]), Depth::Ansi16);
        assert_eq!(detect(&[("TERM", "xterm-kitty")]), Depth::True);
        assert_eq!(detect(&[("TERM", "dumb")]), Depth::None);
    }

    #[test]
    fn no_color_wins_unless_it_is_empty() {
        assert_eq!(detect(&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")]), Depth::None);
        assert_eq!(detect(&[("TERM", "xterm-kitty"), ("NO_COLOR", "")]), Depth::True);
    }

    #[test]
    fn pure_colors_and_grays_map_to_themselves() {
        assert_eq!(nearest_index(255, 0, 0), 196);
        assert_eq!(nearest_index(0, 0, 0), 16);
        assert_eq!(nearest_index(8, 8, 8), 232);
        assert_eq!(nearest_index(238, 238, 238), 255);
        assert_eq!(nearest_index(95, 135, 175), 67);
    }
}
