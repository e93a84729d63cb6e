//! Pagination of lists: which part of a list a page is, and where the next one begins.

use std::ops::Range;

use super::{Code, Error};

/// Maximum number of items of a page.
pub const LARGEST_PAGE: usize = 1000;

/// Checks a page size.
///
/// # Errors
/// Returns `invalid_request` for a limit outside 1 to 1,000.
pub fn check_limit(limit: Option<usize>) -> Result<(), Error> {
    let Some(limit) = limit.filter(|limit| !(1..=LARGEST_PAGE).contains(limit)) else { return Ok(()) };
    let message = format!("`limit`: {limit} is out of range; allowed: 1 to {LARGEST_PAGE}");
    Err(Error::new(Code::InvalidRequest, message))
}

/// Returns the requested part of a list of `len` items, and the cursor of the next page. Without a limit the rest of
/// the list is one page.
///
/// A cursor names the last item of the previous page and its position, so that it stays valid when the list grows or
/// shrinks elsewhere.
///
/// # Errors
/// Returns `invalid_request` for a limit outside 1 to 1,000, and for a cursor whose item is not in the list.
pub fn part<'a>(
    len: usize,
    id: impl Fn(usize) -> &'a str,
    limit: Option<usize>,
    cursor: Option<&str>,
) -> Result<(Range<usize>, Option<String>), Error> {
    check_limit(limit)?;
    let begin = match cursor {
        None => 0,
        Some(cursor) => behind(len, &id, cursor).ok_or_else(|| {
            let message = format!("invalid cursor `{cursor}`; omit it to start from the first page");
            Error::new(Code::InvalidRequest, message)
        })?,
    };
    let end = limit.map_or(len, |limit| begin.saturating_add(limit).min(len));
    let next = (end < len).then(|| format!("{end}:{}", id(end - 1)));
    Ok((begin..end, next))
}

/// Returns the position after the item that a cursor names: its previous position, or its current one if it moved.
fn behind<'a>(len: usize, id: impl Fn(usize) -> &'a str, cursor: &str) -> Option<usize> {
    let (place, last) = cursor.split_once(':')?;
    let place: usize = place.parse().ok().filter(|place| *place > 0)?;
    if place <= len && id(place - 1) == last {
        return Some(place);
    }
    (0..len).find(|at| id(*at) == last).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all pages of a list, following the cursors.
    fn pages(list: &[&str], limit: usize) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let (page, next) = part(list.len(), |at| list[at], Some(limit), cursor.as_deref()).unwrap();
            out.push(list[page].iter().map(|&id| id.to_owned()).collect());
            match next {
                Some(next) => cursor = Some(next),
                None => return out,
            }
        }
    }

    #[test]
    fn pages_contain_every_entry_once() {
        assert_eq!(pages(&["a", "b", "c", "d"], 2), [["a", "b"], ["c", "d"]]);
        assert_eq!(pages(&["a", "b", "c"], 2), [vec!["a", "b"], vec!["c"]]);
        // Two copies of a shadowed bundle have the same id.
        assert_eq!(pages(&["a", "x@1", "x@1", "b"], 2), [["a", "x@1"], ["x@1", "b"]]);
        assert_eq!(pages(&[], 5), [Vec::<String>::new()]);
        assert_eq!(part(3, |_| "a", None, None).unwrap(), (0..3, None));
    }

    #[test]
    fn cursor_keeps_its_position_in_a_changed_list() {
        let (_, next) = part(3, |at| ["a", "b", "c"][at], Some(2), None).unwrap();
        let grown = ["0", "a", "b", "c"];
        let (page, _) = part(4, |at| grown[at], Some(2), next.as_deref()).unwrap();
        assert_eq!(grown[page], ["c"]);
        let error = part(2, |at| ["a", "c"][at], Some(2), next.as_deref()).unwrap_err();
        assert!(error.code == Code::InvalidRequest && error.message.contains("first page"), "{error}");
        for wrong in ["", "b", "0:a", ":a", "99999999999999999999:a"] {
            assert!(part(1, |_| "a", Some(1), Some(wrong)).is_err(), "{wrong}");
        }
        assert!(part(1, |_| "a", Some(0), None).unwrap_err().message.contains("1 to 1000"));
        assert!(part(1, |_| "a", Some(1001), None).is_err());
    }
}
