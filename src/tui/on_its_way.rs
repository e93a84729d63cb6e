//! A decision that is on its way to a core elsewhere, in words: for its row, its run and its sheet.

use std::time::Instant;

use super::widgets::ages::ago;
use super::widgets::measure::{cells, shown};
use skills_api::{Sending, UnderWay};
use skills_model::{Choice, Verdict};

/// What was decided and how far that is, in two words, or in one where there is no room for both.
#[must_use]
pub fn briefly(way: &UnderWay, room: u16) -> String {
    let what = match (way.verdict, way.choice) {
        (Verdict::Deny, _) => "no",
        (Verdict::Approve, None) => "yes",
        (_, Some(Choice::Rerun)) => "again",
        (_, Some(Choice::Happened)) => "result",
        (_, Some(Choice::Skip)) => "skip",
        (_, Some(Choice::Fail)) => "fail",
    };
    let how = match way.sending {
        Sending::Waiting => "unsent",
        Sending::Sent | Sending::Over => "sent",
        Sending::Unanswered => "asking",
    };
    let both = format!("{what}, {how}");
    if cells(&both) <= room { both } else { how.to_owned() }
}

/// What was decided by whom and when, and what becomes of it.
#[must_use]
pub fn whole(way: &UnderWay, now: Instant) -> String {
    let what = match (way.verdict, way.choice) {
        (Verdict::Deny, _) => "denied",
        (Verdict::Approve, None) => "approved",
        (_, Some(Choice::Rerun)) => "decided to run it again",
        (_, Some(Choice::Happened)) => "told its result",
        (_, Some(Choice::Skip)) => "decided to skip it",
        (_, Some(Choice::Fail)) => "decided to let it fail",
    };
    let by = way.approver.as_deref().map(|name| format!(" by {}", shown(name))).unwrap_or_default();
    let since = now.saturating_duration_since(way.since).as_millis();
    let since = ago(i64::try_from(since).unwrap_or(i64::MAX));
    let how = match way.sending {
        Sending::Waiting => {
            "not sent yet; it waits for the connection, is then sent once, and is given up after 2 m"
        }
        Sending::Sent | Sending::Over => "sent once; waiting for the answer",
        Sending::Unanswered => "sent, and its answer was lost; the run is asked what came of it",
    };
    format!("{what}{by} {since}: {how}")
}

/// Whether it can still be taken back.
#[must_use]
pub fn is_unsent(way: &UnderWay) -> bool {
    way.sending == Sending::Waiting
}
