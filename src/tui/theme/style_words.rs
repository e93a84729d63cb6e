//! Parses the words of a style in a theme file, such as `#f6f2e7 on #13151a bold`, and computes contrast.

use ratatui::style::{Color, Modifier, Style};

/// Parses a style. The error names the invalid word.
///
/// `default` specifies no color: the cell keeps what is below it.
pub fn parse_style(text: &str) -> Result<Style, String> {
    let mut style = Style::new();
    let mut words = text.split_whitespace();
    let mut seen_colour = false;
    while let Some(word) = words.next() {
        match word {
            "on" => {
                let color = words.next().ok_or("missing color after `on`")?;
                style.bg = parse_color(color)?;
            }
            "bold" => style = style.add_modifier(Modifier::BOLD),
            "dim" => style = style.add_modifier(Modifier::DIM),
            "italic" => style = style.add_modifier(Modifier::ITALIC),
            "underline" => style = style.add_modifier(Modifier::UNDERLINED),
            "reverse" => style = style.add_modifier(Modifier::REVERSED),
            color if !seen_colour => {
                style.fg = parse_color(color)?;
                seen_colour = true;
            }
            other => {
                return Err(format!(
                    "`{other}` is a second color; write backgrounds as `on {other}`; other words: bold, \
                        dim, italic, underline, reverse"
                ));
            }
        }
    }
    Ok(style)
}

const NAMES: [(&str, Color); 16] = [
    ("black", Color::Black),
    ("red", Color::Red),
    ("green", Color::Green),
    ("yellow", Color::Yellow),
    ("blue", Color::Blue),
    ("magenta", Color::Magenta),
    ("cyan", Color::Cyan),
    ("white", Color::Gray),
    ("bright-black", Color::DarkGray),
    ("bright-red", Color::LightRed),
    ("bright-green", Color::LightGreen),
    ("bright-yellow", Color::LightYellow),
    ("bright-blue", Color::LightBlue),
    ("bright-magenta", Color::LightMagenta),
    ("bright-cyan", Color::LightCyan),
    ("bright-white", Color::White),
];

fn parse_color(word: &str) -> Result<Option<Color>, String> {
    if word == "default" {
        return Ok(None);
    }
    if let Some((_, color)) = NAMES.iter().find(|(name, _)| *name == word) {
        return Ok(Some(*color));
    }
    let wrong = || {
        format!(
            "`{word}` is not a color; use #rrggbb, default, or one of the 16 names such as red or \
                bright-black"
        )
    };
    let hex = word.strip_prefix('#').filter(|hex| hex.len() == 6 && hex.is_ascii()).ok_or_else(wrong)?;
    let number = u32::from_str_radix(hex, 16).map_err(|_| wrong())?;
    let [_, red, green, blue] = number.to_be_bytes();
    Ok(Some(Color::Rgb(red, green, blue)))
}

/// Returns the contrast ratio of two colors, 1 to 21; `None` unless both are RGB.
///
/// WCAG 2.2, <https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio>.
pub fn contrast(one: Color, other: Color) -> Option<f64> {
    let (one, other) = (luminance(one)?, luminance(other)?);
    Some((one.max(other) + 0.05) / (one.min(other) + 0.05))
}

/// Returns the relative luminance, 0 to 1 (WCAG 2.2).
pub fn luminance(color: Color) -> Option<f64> {
    let Color::Rgb(red, green, blue) = color else { return None };
    let [red, green, blue] = [red, green, blue].map(linear);
    Some(0.2126 * red + 0.7152 * green + 0.0722 * blue)
}

/// Converts an sRGB channel to linear light, 0 to 1.
pub(super) fn linear(channel: u8) -> f64 {
    let share = f64::from(channel) / 255.0;
    if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_style_is_read() {
        let style = parse_style("#0a0b0c on bright-blue bold italic").unwrap();
        assert_eq!(style.fg, Some(Color::Rgb(10, 11, 12)));
        assert_eq!(style.bg, Some(Color::LightBlue));
        assert_eq!(style.add_modifier, Modifier::BOLD | Modifier::ITALIC);
        assert_eq!(parse_style("default").unwrap(), Style::new());
    }

    #[test]
    fn invalid_word_is_named() {
        for (text, part) in [
            ("#12345", "`#12345` is not a color"),
            ("blod", "`blod` is not a color"),
            ("red on", "missing color after `on`"),
            ("red blue", "`blue` is a second color"),
            ("#ééé", "is not a color"),
        ] {
            let error = parse_style(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn contrast_is_that_of_the_standard() {
        let white = Color::Rgb(255, 255, 255);
        assert!((contrast(white, Color::Rgb(0, 0, 0)).unwrap() - 21.0).abs() < 1e-9);
        assert!((contrast(white, white).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(contrast(white, Color::Reset), None);
    }
}
