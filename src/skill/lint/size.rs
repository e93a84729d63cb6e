//! Size of the body: lines, and tokens (estimated while scanning, exact while linting).

use super::rules;
use crate::finding_builder::Notes;
use crate::tokens::{self, TokenCount};
use skills_base::number::grouped;

/// Number of tokens below which the specification recommends to stay.
const RECOMMENDED_MAX_TOKENS: u32 = 5_000;
/// Number of tokens above which the finding is a warning.
const WARNING_MIN_TOKENS: u32 = 8_000;
/// Number of lines below which the specification recommends to stay.
const LINES: usize = 500;

/// Checks lines, and tokens by the estimate.
pub(super) fn estimated(body: &str, start: usize, notes: &mut Notes<'_>) {
    if body.trim().is_empty() {
        // An empty body at the end of the file is on no line: the end of the frontmatter is marked.
        let at = if body.is_empty() { start.saturating_sub(1) } else { start };
        notes.add(&rules::BODY_EMPTY, None, at..at, "the body is empty");
        return;
    }
    let lines = lines(body);
    if lines >= LINES {
        let lines = grouped(lines as u64);
        let message = format!("the body has {lines} lines; fewer than {LINES} are recommended");
        notes.add(&rules::BODY_MANY_LINES, None, start..start, message);
    }
    note_tokens(TokenCount::estimate(body), start, notes);
}

/// Counts the lines of a text; a last line without a line feed counts.
pub(crate) fn lines(text: &str) -> usize {
    let open = !text.is_empty() && !text.ends_with('\n');
    tokens::count_bytes(text, |byte| byte == b'\n') + usize::from(open)
}

/// Checks the exact number of tokens. A body too short to reach the limit is not counted.
pub(super) fn exact(body: &str, start: usize, notes: &mut Notes<'_>) {
    // A token of running text rarely has fewer than two bytes; one character has at most a few tokens.
    if body.len() >= RECOMMENDED_MAX_TOKENS as usize * 2 {
        note_tokens(tokens::count(body), start, notes);
    }
}

fn note_tokens(count: TokenCount, start: usize, notes: &mut Notes<'_>) {
    let TokenCount { tokens: count, estimated } = count;
    let about = if estimated { "about " } else { "" };
    let count_shown = if estimated { count.saturating_add(50) / 100 * 100 } else { count };
    let count_shown = grouped(count_shown.into());
    if count > WARNING_MIN_TOKENS {
        let limit = grouped(WARNING_MIN_TOKENS.into());
        let message =
            format!("the body has {about}{count_shown} tokens; more than {limit} are costly for every load");
        notes.add(&rules::BODY_TOO_MANY_TOKENS, None, start..start, message);
    } else if count >= RECOMMENDED_MAX_TOKENS {
        let limit = grouped(RECOMMENDED_MAX_TOKENS.into());
        let message = format!("the body has {about}{count_shown} tokens; fewer than {limit} are recommended");
        notes.add(&rules::BODY_MANY_TOKENS, None, start..start, message);
    }
}
