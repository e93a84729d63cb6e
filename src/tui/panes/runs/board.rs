//! The state of the board: what it shows, the cursor, and when it is refreshed.

use std::time::{Duration, Instant};

use ratatui::layout::Rect;

use crate::action::Action;
use crate::pane::Effect;
use crate::run_requests::RunRequest;
use skills_api::{Board, BoardRun, Error, WorkerState, WorkerView};
use skills_store::RunId;

/// Refresh interval of the board.
const REFRESH: Duration = Duration::from_secs(5);
/// Periods in hours that `+` and `-` select.
const ZOOMS: [u32; 7] = [1, 2, 4, 8, 24, 72, 168];
/// The period at first.
const HOURS: u32 = 8;

/// Why a lost worker is not drained.
pub(super) const LOST: &str = "the worker is lost: it claims no runs";

#[derive(Debug, Clone, PartialEq, Eq)]
enum CursorPosition {
    Run(RunId),
    /// A reason of failures.
    Failures(String),
    Worker(String),
}

/// Returns the filter of the failed runs with a reason.
pub(super) fn failures_filter(reason: &str) -> String {
    format!("state:failed {}", skills_api::term("error", reason))
}

#[derive(Debug, Default)]
pub(super) struct BoardState {
    pub hours: u32,
    pub board: Option<Board>,
    /// When `board` was first drawn.
    pub drawn_since: Option<Instant>,
    pub error: Option<Error>,
    spots: Vec<CursorPosition>,
    pub cursor: usize,
    /// When it was last requested; `None` before the first request.
    requested_at: Option<Instant>,
    waits: bool,
    /// Rows of the last frame with their index.
    pub drawn: Vec<(Rect, usize)>,
}

impl BoardState {
    pub fn new() -> Self {
        Self { hours: HOURS, ..Self::default() }
    }

    /// Returns the run under the cursor.
    pub fn run(&self) -> Option<&RunId> {
        match self.spots.get(self.cursor)? {
            CursorPosition::Run(run) => Some(run),
            CursorPosition::Failures(_) | CursorPosition::Worker(_) => None,
        }
    }

    /// Returns the filter of the failed runs with the reason under the cursor.
    pub fn failures(&self) -> Option<String> {
        match self.spots.get(self.cursor)? {
            CursorPosition::Failures(reason) => Some(failures_filter(reason)),
            CursorPosition::Run(_) | CursorPosition::Worker(_) => None,
        }
    }

    /// Returns the worker under the cursor.
    pub fn worker(&self) -> Option<&WorkerView> {
        let CursorPosition::Worker(id) = self.spots.get(self.cursor)? else { return None };
        self.board.as_ref()?.workers.iter().find(|worker| worker.worker == *id)
    }

    /// Requests the board, unless a request is in progress.
    pub fn request(&mut self) -> Vec<Effect> {
        if std::mem::replace(&mut self.waits, true) {
            return Vec::new();
        }
        vec![Effect::Run(RunRequest::Board { hours: self.hours })]
    }

    /// Returns when the board is next refreshed, or drawn with older times while the response is not there.
    pub fn due(&self, now: Instant) -> Instant {
        self.requested_at.map_or(now, |requested_at| requested_at + REFRESH)
    }

    pub fn refresh(&mut self, now: Instant) -> Vec<Effect> {
        self.requested_at = Some(now);
        self.request()
    }

    /// Handles a response; returns whether it is for the selected period.
    pub fn take(&mut self, hours: u32, answer: &Result<std::sync::Arc<Board>, Error>) -> bool {
        self.waits = false;
        if self.hours != hours {
            return false;
        }
        match answer {
            Ok(board) => {
                let here = self.spots.get(self.cursor).cloned();
                let run = |run: &BoardRun| CursorPosition::Run(run.run.clone());
                let failed = board.failed.iter().map(|one| CursorPosition::Failures(one.reason.clone()));
                self.spots = board
                    .waiting
                    .iter()
                    .chain(&board.running)
                    .map(run)
                    .chain(failed)
                    .chain(board.ended.iter().map(run))
                    .chain(board.workers.iter().map(|worker| CursorPosition::Worker(worker.worker.clone())))
                    .collect();
                let found = here.and_then(|here| self.spots.iter().position(|spot| *spot == here));
                self.cursor = found.unwrap_or(self.cursor).min(self.spots.len().saturating_sub(1));
                (self.board, self.drawn_since, self.error) = (Some(Board::clone(board)), None, None);
            }
            Err(error) => self.error = Some(error.clone()),
        }
        true
    }

    /// Moves the cursor, if the action does.
    pub fn move_cursor(&mut self, action: Action) -> Option<()> {
        let by = action.rows(10)?;
        self.cursor = self.cursor.saturating_add_signed(by).min(self.spots.len().saturating_sub(1));
        Some(())
    }

    /// Selects another period, or drains the worker under the cursor.
    pub fn act(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::ZoomIn | Action::ZoomOut => {
                let at = ZOOMS.iter().position(|hours| *hours >= self.hours).unwrap_or(3);
                let at = if action == Action::ZoomIn {
                    at.saturating_sub(1)
                } else {
                    (at + 1).min(ZOOMS.len() - 1)
                };
                self.hours = ZOOMS[at];
                Some(self.request())
            }
            Action::Drain => Some(vec![match self.worker() {
                None => Effect::Toast("move the cursor to a worker first".to_owned()),
                Some(worker) if worker.state == WorkerState::Lost => Effect::Toast(LOST.to_owned()),
                Some(worker) => {
                    let drain = worker.state != WorkerState::Draining;
                    Effect::Run(RunRequest::Drain { worker: worker.worker.clone(), drain })
                }
            }]),
            _ => None,
        }
    }
}
