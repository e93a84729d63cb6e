//! The state of the collision map: visible clusters, the cell under the cursor, and its pair.

use std::collections::HashMap;
use std::sync::Arc;

use ratatui::layout::{Position, Rect};

use crate::action::{Action, PaneCommand};
use crate::overlay::DescriptionEdit;
use crate::pane::Effect;
use crate::widgets::Scroll;
use skills_api::{CollisionReport, Error};
use skills_config::operands;
use skills_discovery::{Collision, PairReport};
use skills_registry::Catalog;
use skills_skill::SkillId;

/// Maximum number of cached pairs.
const MAX_PAIRS: usize = 64;

type Pair = (SkillId, SkillId);

#[derive(Debug, Default)]
pub struct Map {
    /// Whether it is shown in place of the list.
    pub is_open: bool,
    /// The map, or its progress.
    pub report: Option<Result<Arc<CollisionReport>, Error>>,
    /// Whether a response is pending.
    pub is_asked: bool,
    /// The only visible cluster, if zoomed.
    pub zoomed: Option<usize>,
    /// Clusters visible as a matrix in the last frame; empty if clusters are listed.
    pub in_sight: Vec<usize>,
    /// Row and column among the visible skills; in the list of clusters the row is a cluster.
    pub row: usize,
    pub column: usize,
    /// The pair that was requested by name; shown until the cursor moves.
    pub chosen: Option<Pair>,
    pub in_pair: bool,
    /// Scroll of the pair.
    pub text: Scroll,
    /// First visible row of a list of clusters.
    pub list: Scroll,
    pub pairs: HashMap<Pair, Result<Arc<PairReport>, Error>>,
    pub asked_pair: Option<Pair>,
    /// Cells of the last frame with row and column.
    pub cells: Vec<(Rect, usize, usize)>,
    /// Area of the pair in the last frame.
    pub pair_area: Rect,
    /// Requests for what the last frame lacked.
    pub wanted: Vec<Effect>,
}

impl Map {
    /// Returns the map if it is complete.
    pub fn complete(&self) -> Option<&Arc<CollisionReport>> {
        self.report.as_ref()?.as_ref().ok().filter(|report| report.complete)
    }

    /// Returns the visible skills, row by row.
    pub fn skills(&self) -> Vec<&SkillId> {
        let Some(report) = self.complete() else { return Vec::new() };
        let clusters = self.in_sight.iter().filter_map(|at| report.map.clusters.get(*at));
        clusters.flat_map(|cluster| &cluster.skills).collect()
    }

    /// Returns the pair to show: the requested one, or that under the cursor.
    pub fn pair(&self) -> Option<Pair> {
        if let Some(pair) = &self.chosen {
            return Some(pair.clone());
        }
        let skills = self.skills();
        let (row, column) = (*skills.get(self.row)?, *skills.get(self.column)?);
        (row != column).then(|| (row.clone(), column.clone()))
    }

    /// Returns what the row of a cell loses to its column.
    pub fn collision(&self, row: &SkillId, column: &SkillId) -> Option<&Collision> {
        self.complete()?.map.collision(row, column)
    }

    /// Requests another pair, shown from its top.
    fn request_pair(&mut self) -> Option<Effect> {
        self.text = Scroll::default();
        self.request_missing()
    }

    /// Requests the pair to show, if one of the two wins a request of the other and it is not loaded.
    pub fn request_missing(&mut self) -> Option<Effect> {
        let pair = self.pair()?;
        let is_requested = self.pairs.contains_key(&pair) || self.asked_pair.as_ref() == Some(&pair);
        if is_requested || !self.is_compared(&pair) {
            return None;
        }
        self.asked_pair = Some(pair.clone());
        Some(Effect::CompareSkills(pair.0, pair.1))
    }

    /// Returns whether a pair is compared: it was requested, or one of the two wins a request of the other.
    pub fn is_compared(&self, (row, column): &Pair) -> bool {
        self.chosen.is_some()
            || self.collision(row, column).is_some()
            || self.collision(column, row).is_some()
    }

    /// Handles the result of [`Effect::CompareSkills`].
    pub fn take_pair(&mut self, a: &SkillId, b: &SkillId, report: &Result<Arc<PairReport>, Error>) {
        if self.pairs.len() >= MAX_PAIRS {
            self.pairs.clear();
        }
        let pair = (a.clone(), b.clone());
        if self.asked_pair.as_ref() == Some(&pair) {
            self.asked_pair = None;
        }
        self.pairs.insert(pair, report.clone());
    }

    /// Handles the result of [`Effect::Collisions`]; requests it again until the map is complete.
    pub fn take_report(&mut self, report: &Result<Arc<CollisionReport>, Error>) -> Vec<Effect> {
        self.is_asked = false;
        self.report = Some(report.clone());
        if self.complete().is_some() {
            self.column = self.column.max(1);
            self.find_chosen();
            return self.request_missing().into_iter().collect();
        }
        if report.is_ok() && self.is_open { self.ask() } else { Vec::new() }
    }

    /// Discards the map after a change of the catalog.
    pub fn forget(&mut self) -> Vec<Effect> {
        self.pairs.clear();
        self.asked_pair = None;
        self.report = None;
        if self.is_open { self.ask() } else { Vec::new() }
    }

    fn ask(&mut self) -> Vec<Effect> {
        if std::mem::replace(&mut self.is_asked, true) { Vec::new() } else { vec![Effect::Collisions] }
    }

    pub fn open(&mut self) -> Vec<Effect> {
        self.is_open = true;
        if self.complete().is_some() { Vec::new() } else { self.ask() }
    }

    /// Shows a pair by its skills, in the cluster that contains both.
    pub fn go_to(&mut self, row: &SkillId, column: &SkillId) -> Option<Effect> {
        self.chosen = Some((row.clone(), column.clone()));
        self.find_chosen();
        self.request_pair()
    }

    /// Moves the cursor to the cell of the requested pair, if a cluster contains both.
    fn find_chosen(&mut self) {
        let found = self.chosen.as_ref().zip(self.complete()).and_then(|((row, column), report)| {
            let clusters = report.map.clusters.iter().enumerate();
            clusters.into_iter().find_map(|(at, cluster)| {
                let place = |id: &SkillId| cluster.skills.iter().position(|skill| skill == id);
                Some((at, place(row)?, place(column)?))
            })
        });
        if let Some((cluster, row, column)) = found {
            (self.zoomed, self.in_sight) = (Some(cluster), vec![cluster]);
            (self.row, self.column) = (row, column);
        }
    }

    /// Moves to the next severe collision after the cursor, wrapping around.
    fn next_collision(&mut self) -> Vec<Effect> {
        let skills: Vec<SkillId> = self.skills().into_iter().cloned().collect();
        let count = skills.len();
        if count == 0 {
            let first = self.complete().and_then(|report| report.map.severe().next());
            let first = first.map(|found| (found.skill_id.clone(), found.rival.clone()));
            let ask = first.and_then(|(row, column)| self.go_to(&row, &column));
            return ask.into_iter().collect();
        }
        let here = self.row * count + self.column;
        let behind = (1..=count * count).map(|step| (here + step) % (count * count));
        let next = behind.map(|at| (at / count, at % count)).find(|(row, column)| {
            self.collision(&skills[*row], &skills[*column]).is_some_and(Collision::is_severe)
        });
        let Some((row, column)) = next else {
            return vec![Effect::Toast("no collisions here (at least 2 lost requests and 20 %)".to_owned())];
        };
        (self.row, self.column, self.chosen) = (row, column, None);
        self.request_pair().into_iter().collect()
    }

    fn move_by(&mut self, rows: isize, columns: isize) -> Vec<Effect> {
        self.chosen = None;
        let count = self.skills().len();
        if count == 0 {
            let clusters = self.complete().map_or(0, |report| report.map.clusters.len());
            self.row = self.row.saturating_add_signed(rows).min(clusters.saturating_sub(1));
            return Vec::new();
        }
        self.row = self.row.saturating_add_signed(rows).min(count - 1);
        self.column = self.column.saturating_add_signed(columns).min(count - 1);
        self.request_pair().into_iter().collect()
    }

    fn zoom(&mut self) -> Vec<Effect> {
        self.chosen = None;
        if self.zoomed.take().is_some() {
            self.in_sight.clear();
            (self.row, self.column) = (0, 1);
            return Vec::new();
        }
        let cluster = if self.in_sight.is_empty() { Some(self.row) } else { self.cluster_of_row() };
        if let Some(cluster) = cluster {
            (self.zoomed, self.in_sight) = (Some(cluster), vec![cluster]);
            (self.row, self.column) = (0, 1);
        }
        self.request_pair().into_iter().collect()
    }

    /// Returns the cluster that contains the row.
    fn cluster_of_row(&self) -> Option<usize> {
        let report = self.complete()?;
        let mut row = self.row;
        self.in_sight.iter().copied().find(|at| {
            let count = report.map.clusters.get(*at).map_or(0, |cluster| cluster.skills.len());
            let is_here = row < count;
            row = row.saturating_sub(count);
            is_here
        })
    }

    /// Returns the best advice about the pair under the cursor.
    pub fn advised(&self) -> Option<(SkillId, String)> {
        let pair = self.pairs.get(&self.pair()?)?.as_ref().ok()?;
        let best = pair.advice.iter().find(|advice| advice.is_best)?;
        let text = best.texts.iter().find(|text| text.skill_id == pair.a.skill_id).or(best.texts.first())?;
        Some((text.skill_id.clone(), text.description.clone()))
    }

    pub fn click(&mut self, at: Position) -> Vec<Effect> {
        self.in_pair = self.pair_area.contains(at);
        let cell =
            self.cells.iter().find(|(area, ..)| area.contains(at)).map(|(_, row, column)| (*row, *column));
        let Some((row, column)) = cell else { return Vec::new() };
        (self.row, self.column, self.chosen) = (row, column, None);
        if self.in_sight.is_empty() { self.zoom() } else { self.request_pair().into_iter().collect() }
    }

    pub fn wheel(&mut self, at: Position, rows: isize) {
        if self.pair_area.contains(at) {
            self.text.offset = self.text.offset.saturating_add_signed(rows);
        }
    }

    /// Executes an action; returns `None` if the map does not handle it.
    pub fn act(&mut self, action: Action, catalog: &Catalog) -> Option<Vec<Effect>> {
        if self.in_pair
            && let Some(rows) = action.rows(self.text.page())
        {
            self.text.offset = self.text.offset.saturating_add_signed(rows).min(usize::MAX / 2);
            return Some(Vec::new());
        }
        Some(match action {
            Action::ShowCollisions | Action::NextTab | Action::PreviousTab => {
                self.is_open = false;
                Vec::new()
            }
            Action::NextPart | Action::PreviousPart => {
                self.in_pair = !self.in_pair;
                Vec::new()
            }
            Action::Back => {
                if self.in_pair {
                    self.in_pair = false;
                } else if self.zoomed.is_some() {
                    return Some(self.zoom());
                } else {
                    self.is_open = false;
                }
                Vec::new()
            }
            Action::Open if self.in_sight.is_empty() => self.zoom(),
            Action::Open => {
                self.in_pair = true;
                Vec::new()
            }
            Action::ZoomCluster => self.zoom(),
            Action::NextCollision => self.next_collision(),
            Action::Left => self.move_by(0, -1),
            Action::Right => self.move_by(0, 1),
            Action::Draft => {
                let (row, _) = self.pair()?;
                let advised = self.advised();
                let skill = advised.as_ref().map_or(row, |(skill, _)| skill.clone());
                let record = catalog.by_id(skill.as_str())?;
                let proposed = advised.map(|(_, text)| text);
                vec![Effect::EditDescription(DescriptionEdit {
                    proposed,
                    ..DescriptionEdit::of(record, None)
                })]
            }
            Action::Copy => {
                let (row, column) = self.pair()?;
                vec![Effect::CopyCommand(
                    format!("skills collisions {}", operands([row.as_str(), column.as_str()])),
                    "command line".to_owned(),
                )]
            }
            other => {
                let rows = other.rows(8)?;
                self.move_by(rows, 0)
            }
        })
    }

    /// Returns the available commands.
    pub fn commands(&self) -> Vec<PaneCommand> {
        let no_pair = self.pair().is_none().then(|| "no pair selected".to_owned());
        let on_pair = |command: PaneCommand| PaneCommand { blocked: no_pair.clone(), ..command };
        let zoom = if self.zoomed.is_some() { "all clusters" } else { "zoom cluster" };
        let (shown, hidden) = (PaneCommand::shown, PaneCommand::hidden);
        let mut out = vec![
            shown(Action::Down, "move"),
            shown(Action::NextCollision, "next collision"),
            shown(Action::Open, if self.in_sight.is_empty() { "zoom" } else { "pair" }),
            on_pair(shown(Action::Draft, "draft")),
            shown(Action::ZoomCluster, zoom),
            shown(Action::ShowCollisions, "list"),
            on_pair(hidden(Action::Copy, "copy")),
            hidden(Action::Left, "move left"),
            hidden(Action::Right, "move right"),
            hidden(Action::Back, "back"),
            hidden(Action::NextTab, "next tab"),
            hidden(Action::PreviousTab, "previous tab"),
            hidden(Action::NextPart, "next panel"),
            hidden(Action::PreviousPart, "previous panel"),
        ];
        out.extend(PaneCommand::moves());
        out
    }
}
