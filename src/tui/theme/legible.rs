//! Checks that the shipped themes are legible: contrast by WCAG 2.2, and signal colors that are distinguishable with
//! red-green color blindness.

use ratatui::style::Color;

use super::style_words::{contrast, linear};
use super::{Depth, Role, Theme};

fn theme(name: &str) -> Theme {
    Theme::shipped(name, Depth::True).unwrap()
}

/// Returns the contrast of a role's text on another role's background, or on the page if that role has none.
fn on(theme: &Theme, role: Role, ground: Role) -> f64 {
    let fg = theme.style(role).fg.unwrap();
    let bg = theme.style(ground).bg.or(theme.style(Role::Base).bg).unwrap();
    contrast(fg, bg).unwrap()
}

const FILLS: [Role; 5] =
    [Role::SignalName, Role::SignalDescription, Role::SignalBody, Role::SignalSemantic, Role::SignalRule];
const MARKS: [Role; 4] = [Role::MarkName, Role::MarkDescription, Role::MarkBody, Role::MarkSemantic];

/// Minimum contrast by role and background.
type Floor = (Role, Role, f64);

fn assert_contrast(name: &str, floors: &[Floor], fills: (f64, f64), marks: f64) {
    let theme = theme(name);
    for (role, ground, least) in floors {
        let found = on(&theme, *role, *ground);
        assert!(
            found + 0.051 >= *least,
            "{name}: the contrast of {role} on {ground} is {found:.2}; the minimum is {least}"
        );
    }
    for role in FILLS {
        let (page, selected) = (on(&theme, role, Role::Base), on(&theme, role, Role::Selection));
        assert!(
            page + 0.051 >= fills.0 && selected + 0.051 >= fills.1,
            "{name}: {role} {page:.2} {selected:.2}"
        );
    }
    for role in MARKS {
        let found = on(&theme, role, role);
        assert!(found + 0.051 >= marks, "{name}: {role} has {found:.2}");
    }
}

#[test]
fn dark_theme_is_legible() {
    use Role::{
        Base, Danger, DangerBand, Info, Level1, Level2, Level3, Muted, Selection, Success, Text, Waiting,
        WaitingBand, Warning,
    };
    let floors = [
        (Text, Base, 12.6),
        (Text, Selection, 9.8),
        (Muted, Base, 6.1),
        (Muted, Selection, 4.8),
        (Success, Base, 8.7),
        (Warning, Base, 10.8),
        (Danger, Base, 6.5),
        (Waiting, Base, 9.0),
        (Info, Base, 9.2),
        (Level1, Base, 6.0),
        (Level2, Base, 10.2),
        (Level3, Base, 15.8),
        (Waiting, WaitingBand, 7.8),
        (Danger, DangerBand, 5.8),
    ];
    assert_contrast("dark", &floors, (4.7, 3.7), 7.9);
    assert_contrast("color-safe", &floors, (4.7, 3.7), 7.4);
}

#[test]
fn light_theme_is_legible() {
    use Role::{
        Base, Danger, DangerBand, Info, Level1, Level2, Level3, Muted, Selection, Success, Text, Waiting,
        WaitingBand, Warning,
    };
    let floors = [
        (Text, Base, 13.0),
        (Text, Selection, 10.7),
        (Muted, Base, 6.0),
        (Muted, Selection, 4.9),
        (Success, Base, 5.7),
        (Warning, Base, 5.8),
        (Danger, Base, 6.2),
        (Waiting, Base, 5.6),
        (Info, Base, 5.8),
        (Level1, Base, 4.7),
        (Level2, Base, 6.1),
        (Level3, Base, 12.6),
        (Waiting, WaitingBand, 5.1),
        (Danger, DangerBand, 5.4),
    ];
    assert_contrast("light", &floors, (3.8, 3.1), 7.4);
}

#[test]
fn high_contrast_has_seven_to_one_for_every_text() {
    use Role::{Base, Danger, Info, Level1, Muted, Selection, Strong, Success, Tab, Text, Waiting, Warning};
    let theme = theme("high-contrast");
    for role in [Text, Strong, Muted, Success, Warning, Danger, Waiting, Info, Level1, Tab] {
        let found = on(&theme, role, Base);
        assert!(found >= 7.0, "{role}: {found:.2}");
    }
    for role in [Text, Strong, Muted] {
        let found = on(&theme, role, Selection);
        assert!(found >= 7.0, "{role} on the selection: {found:.2}");
    }
}

/// Converts a linear color to CIELAB (CIE 1976, under daylight).
fn lab(rgb: [f64; 3]) -> [f64; 3] {
    let [red, green, blue] = rgb.map(|channel| channel.clamp(0.0, 1.0));
    let x = (0.412_456 * red + 0.357_576 * green + 0.180_438 * blue) / 0.950_47;
    let y = 0.212_673 * red + 0.715_152 * green + 0.072_175 * blue;
    let z = (0.019_334 * red + 0.119_192 * green + 0.950_304 * blue) / 1.088_83;
    let f = |t: f64| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 };
    [116.0 * f(y) - 16.0, 500.0 * (f(x) - f(y)), 200.0 * (f(y) - f(z))]
}

/// Full deuteranopia and protanopia as matrices on linear RGB: Machado, Oliveira and Fernandes, "A
/// Physiologically-based Model for Simulation of Color Vision Deficiency", 2009.
const SEEN: [[[f64; 3]; 3]; 2] = [
    [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ],
    [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ],
];

fn color_distance(one: Color, other: Color, seen: [[f64; 3]; 3]) -> f64 {
    let as_seen = |color| {
        let Color::Rgb(red, green, blue) = color else { panic!("{color} is not RGB") };
        let rgb = [red, green, blue].map(linear);
        lab(seen.map(|row| row.iter().zip(rgb).map(|(weight, channel)| weight * channel).sum()))
    };
    as_seen(one).iter().zip(as_seen(other)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn color_safe_theme_distinguishes_components_and_states() {
    let theme = theme("color-safe");
    let color = |role| theme.style(role).fg.unwrap();
    for seen in SEEN {
        for (at, one) in FILLS.iter().enumerate() {
            for other in &FILLS[at + 1..] {
                let found = color_distance(color(*one), color(*other), seen);
                assert!(found >= 25.0, "{one} and {other} are {found:.0} apart");
            }
        }
        assert!(color_distance(color(Role::Success), color(Role::Danger), seen) >= 50.0);
        assert!(color_distance(color(Role::Waiting), color(Role::Danger), seen) >= 15.0);
    }
}
