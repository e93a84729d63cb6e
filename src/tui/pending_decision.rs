//! Text for a decision in flight to a remote core: for its row, its run and its dialog.

use std::time::Instant;

use super::widgets::relative_time::ago;
use super::widgets::text_width::{cells, shown};
use skills_api::{Sending, UnderWay};
use skills_model::{Choice, Verdict};

/// Formats the decision and its progress in two words, or in one if the width does not suffice for both.
#[must_use]
pub fn briefly(way: &UnderWay, room: u16) -> String {
    let what = match (way.verdict, way.choice) {
        (Verdict::Deny, _) => "deny",
        (Verdict::Approve, None) => "approve",
        (_, Some(Choice::Rerun)) => "again",
        (_, Some(Choice::Happened)) => "result",
        (_, Some(Choice::Skip)) => "skip",
        (_, Some(Choice::Fail)) => "fail",
    };
    let how = match way.sending {
        Sending::Waiting => "unsent",
        Sending::Sent | Sending::Over => "sent",
        Sending::Unanswered => "checking",
    };
    let both = format!("{what}, {how}");
    if cells(&both) <= room { both } else { how.to_owned() }
}

/// Formats the decision, who made it and when, and its outcome.
#[must_use]
pub fn describe(way: &UnderWay, now: Instant) -> String {
    let what = match (way.verdict, way.choice) {
        (Verdict::Deny, _) => "denied",
        (Verdict::Approve, None) => "approved",
        (_, Some(Choice::Rerun)) => "run again",
        (_, Some(Choice::Happened)) => "marked completed",
        (_, Some(Choice::Skip)) => "skipped",
        (_, Some(Choice::Fail)) => "failed",
    };
    let by = way.approver.as_deref().map(|name| format!(" by {}", shown(name))).unwrap_or_default();
    let since = now.saturating_duration_since(way.since).as_millis();
    let since = ago(i64::try_from(since).unwrap_or(i64::MAX));
    let how = match way.sending {
        Sending::Waiting => "not sent yet; waits for the connection, is sent once, and dropped after 2 m",
        Sending::Sent | Sending::Over => "sent; waiting for the response",
        Sending::Unanswered => "sent, but the response was lost; checking the run",
    };
    format!("{what}{by} {since}: {how}")
}

/// Returns whether it can still be withdrawn.
#[must_use]
pub fn is_unsent(way: &UnderWay) -> bool {
    way.sending == Sending::Waiting
}
