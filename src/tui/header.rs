//! The first row: logo, tabs of the available panes, and status.

use ratatui::layout::Rect;

use super::action::Action;
use super::pane::PaneId;
use super::theme::{BarStyle, Role};
use crate::widgets::{Painter, cells, cut_end};

pub struct Header<'a> {
    /// The panes, in the order of their numbers.
    pub panes: &'a [PaneId],
    /// Number of items on each pane that wait for a person.
    pub awaited: &'a [usize],
    /// Whether the number of runs that wait is outdated.
    pub has_stale_runs: bool,
    /// Index of the active pane.
    pub active: usize,
    /// Right side, most important first; the last ones are dropped if they do not fit.
    pub facts: &'a [String],
    /// Location of a remote core: always shown, in the form that fits.
    pub place: Option<&'a RemoteLocation>,
    /// A spinner before the facts while something is loading.
    pub spinner: Option<&'a str>,
}

/// The location of a remote core.
pub struct RemoteLocation {
    /// The location in increasingly shorter forms.
    pub forms: Vec<String>,
    /// Whether the connection is lost.
    pub alarm: bool,
}

/// Below this width only the active tab keeps its name.
const NARROW: u16 = 70;
/// Maximum and minimum number of cells of a name on a tab.
const MAX_NAME: u16 = 9;
const MIN_NAME: u16 = 3;

/// Number of cells of the logo with the space around it.
const LOGO: u16 = 7;
/// Number of cells of a location for which the names of tabs are shortened.
const SHORT_PLACE: u16 = 8;

impl PaneId {
    /// Returns the name on the tab.
    pub fn name(self) -> &'static str {
        match self {
            Self::Browse => "Browse",
            Self::Discover => "Discover",
            Self::Attach => "Attach",
            Self::Session => "Session",
            Self::Runs => "Runs",
            Self::Golden => "Golden",
            Self::Proposals => "Proposals",
        }
    }

    /// Returns the number of the pane's key.
    pub fn number(self) -> u8 {
        match self {
            Self::Browse => 1,
            Self::Discover => 2,
            Self::Attach => 3,
            Self::Session => 4,
            Self::Runs => 5,
            Self::Golden => 6,
            Self::Proposals => 7,
        }
    }

    /// Returns the action that shows the pane.
    pub fn go(self) -> Action {
        match self {
            Self::Browse => Action::GoBrowse,
            Self::Discover => Action::GoDiscover,
            Self::Attach => Action::GoAttach,
            Self::Session => Action::GoSession,
            Self::Runs => Action::GoRuns,
            Self::Golden => Action::GoGolden,
            Self::Proposals => Action::GoProposals,
        }
    }
}

/// Draws the logo of four cells.
pub fn mark(x: u16, y: u16, painter: &mut Painter<'_>) {
    let roles = [Role::SignalName, Role::SignalDescription, Role::SignalBody, Role::SignalSemantic];
    // Without color, the bars differ only in height, which is hard to see in a row of text; shades are distinct.
    let shades = ["█", "▓", "▒", "░"];
    for (at, role) in roles.into_iter().enumerate() {
        let uses_shades = painter.theme.bars == BarStyle::Shades && !painter.glyphs.ascii;
        let sign = if uses_shades { shades[at] } else { painter.glyphs.mark[at] };
        painter.put(x + at as u16, y, sign, role, 1);
    }
}

impl Header<'_> {
    /// Draws the header; returns the click targets of the panes.
    pub fn draw(&self, area: Rect, painter: &mut Painter<'_>) -> Vec<(Rect, Action)> {
        let y = area.y;
        painter.band(area, Role::Surface);
        let ellipsis = painter.glyphs.ellipsis;
        let tab = |at: usize, most: u16| {
            let pane = self.panes[at];
            let named = at == self.active || (area.width >= NARROW && most > 0);
            let most = if at == self.active { MAX_NAME } else { most };
            if named {
                format!(" {} {} ", pane.number(), cut_end(pane.name(), most, ellipsis))
            } else {
                format!(" {} ", pane.number())
            }
        };
        let is_stale = |at: usize| self.has_stale_runs && self.panes[at] == PaneId::Runs;
        let count = |at: usize| match self.awaited.get(at) {
            None | Some(0) => String::new(),
            Some(count) => {
                let doubt = if is_stale(at) { "?" } else { "" };
                format!("{}{count}{doubt} ", painter.glyphs.waiting)
            }
        };
        let counts: Vec<String> = (0..self.panes.len()).map(count).collect();
        let counts_width: u16 = counts.iter().map(|count| cells(count)).sum();
        let tabs_of = |most: u16| (0..self.panes.len()).map(|at| tab(at, most)).collect::<Vec<String>>();
        let width_of = |tabs: &[String]| tabs.iter().map(|tab| cells(tab)).sum::<u16>() + counts_width;
        // The location of a remote core keeps a short form.
        let short = |place: &RemoteLocation| {
            place
                .forms
                .iter()
                .find(|form| cells(form) <= SHORT_PLACE)
                .or(place.forms.last())
                .map(|form| cells(form))
        };
        let place = self.place.and_then(short).map_or(0, |form| form + 5);
        // The logo is dropped before names are shortened. The blank after the last name may be cut off.
        let fits = |logo: u16, most: u16| logo + width_of(&tabs_of(most)) + place <= area.width + 1;
        let logo = if fits(LOGO, MAX_NAME) { LOGO } else { 0 };
        if logo > 0 {
            mark(area.x + 2, y, painter);
        }
        let most = (MIN_NAME..=MAX_NAME).rev().find(|most| fits(logo, *most));
        let most = most.or_else(|| (place > 0).then_some(0));
        let tabs = tabs_of(most.unwrap_or(MIN_NAME));
        let tabs_width = width_of(&tabs);
        let mut x = area.x + logo;
        // The name of the program is dropped before the location.
        if logo > 0 && area.width >= NARROW && tabs_width + (13 + place).max(15) <= area.width {
            x = painter.put(x, y, "skills", Role::Strong, 6) + 1;
        }
        let mut hits = Vec::new();
        for (at, text) in tabs.iter().enumerate() {
            let role = if at == self.active { Role::TabActive } else { Role::Tab };
            let mut end = painter.put(x, y, text, role, area.right().saturating_sub(x));
            if !counts[at].is_empty() {
                let start = end;
                end = painter.put(start, y, &counts[at], role, area.right().saturating_sub(start));
                let role = if is_stale(at) { Role::Muted } else { Role::Waiting };
                painter.put(start, y, counts[at].trim_end(), role, area.right().saturating_sub(start));
            }
            hits.push((Rect::new(x, y, end - x, 1), self.panes[at].go()));
            x = end;
        }
        let dot = format!(" {} ", painter.glyphs.dot);
        let spinner = self.spinner.map_or_else(String::new, |sign| format!("{sign} "));
        let available = (area.right().saturating_sub(2)).saturating_sub(x + 2);
        let fits = |(facts_shown, place): &(usize, &str)| {
            let between = if *facts_shown > 0 && !place.is_empty() { cells(&dot) } else { 0 };
            cells(&spinner) + cells(&self.facts[..*facts_shown].join(&dot)) + between + cells(place)
                <= available
        };
        if let Some((facts_shown, place)) = self.choices().into_iter().find(fits) {
            let alarm = self.place.is_some_and(|place| place.alarm);
            let role = if alarm { Role::Warning } else { Role::Muted };
            let mut start = painter.right(area.right() - 2, y, place, role);
            if facts_shown > 0 && !place.is_empty() {
                start = painter.right(start, y, &dot, Role::Muted);
            }
            start = painter.right(start, y, &self.facts[..facts_shown].join(&dot), Role::Muted);
            painter.right(start, y, &spinner, Role::Info);
        }
        hits
    }

    /// Returns the combinations of fact count and location form, preferred ones first: a lost connection is shown in
    /// full before any fact, an intact one is shortened in favor of the facts.
    fn choices(&self) -> Vec<(usize, &str)> {
        let facts = self.facts.len();
        let Some(place) = self.place else { return (1..=facts).rev().map(|count| (count, "")).collect() };
        let forms = || place.forms.iter().map(String::as_str);
        if place.alarm {
            return forms().flat_map(|form| (0..=facts).rev().map(move |count| (count, form))).collect();
        }
        (0..=facts).rev().flat_map(|count| forms().map(move |form| (count, form))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glyphs::UNICODE;
    use crate::picture;

    fn header_line(width: u16, awaited: &[usize]) -> String {
        drawn_at(width, awaited, None)
    }

    fn drawn_at(width: u16, awaited: &[usize], place: Option<&RemoteLocation>) -> String {
        let panes = [
            PaneId::Browse,
            PaneId::Discover,
            PaneId::Attach,
            PaneId::Session,
            PaneId::Runs,
            PaneId::Golden,
            PaneId::Proposals,
        ];
        let header = Header {
            panes: &panes,
            awaited,
            has_stale_runs: false,
            active: 4,
            facts: &[],
            place,
            spinner: None,
        };
        picture::text(&picture::painted(width, 1, |painter| {
            header.draw(Rect::new(0, 0, width, 1), painter);
        }))
    }

    #[test]
    fn the_location_of_the_core_is_shown_in_eighty_columns() {
        for (form, alarm) in [("● remote", false), ("◌ reconnecting 3 s", true), ("◌ 3 s", true)] {
            let place = RemoteLocation { forms: vec![form.to_owned()], alarm };
            for awaited in [[0; 7], [0, 0, 0, 0, 12, 0, 7]] {
                let line = drawn_at(80, &awaited, Some(&place));
                assert!(line.trim_end().ends_with(form) && line.contains("5 Runs"), "{line}");
            }
        }
    }

    #[test]
    fn logo_is_dropped_before_names_are_truncated() {
        let counts = [0, 0, 0, 0, 12, 0, 7];
        let has_logo = |line: &str| line.contains(UNICODE.mark[3]);
        for (width, counts, logo, end) in [
            (120, counts, true, "7 Proposals ◆7"),
            (80, [0; 7], true, "7 Proposals"),
            (80, counts, false, "7 Proposals ◆7"),
            (78, counts, false, "7 Propos… ◆7"),
            (60, [0; 7], true, " 7"),
            (36, [0; 7], true, " 7"),
            (31, [0; 7], false, " 7"),
        ] {
            let line = header_line(width, &counts);
            assert_eq!((has_logo(&line), line.ends_with(end)), (logo, true), "{width}: {line}");
        }
    }
}
