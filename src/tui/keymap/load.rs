//! Loads and validates the keymap file and a user's changes: unknown names, invalid keys, duplicate keys.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use crokey::{KeyCombination, OneToThree};
use crossterm::event::{KeyCode, KeyModifiers};
use serde::Deserialize;
use serde_saphyr::Spanned;
use strum::IntoEnumIterator;

use super::{Binding, Keymap};
use crate::action::{Action, Context};
use crate::spanned_error::{LocatedError, read, unknown_name};

const SHIPPED: &str = include_str!("../../../assets/keymap.yaml");
const FILE: &str = "assets/keymap.yaml";

/// A user's change: other keys for an action in one context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remap {
    /// The context, by its name in the keymap file.
    pub context: String,
    /// The action, by its name in the keymap file.
    pub action: String,
    /// The new keys, as crokey writes them; empty to unbind the action.
    pub keys: Vec<String>,
    /// The source file, for display.
    pub file: String,
    pub line: u64,
    /// Whether it is from a project's file, which cannot prevent the start of the workbench.
    pub of_project: bool,
}

/// Where a row is defined.
#[derive(Clone)]
struct RowPlace {
    file: String,
    line: u64,
    of_project: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    keys: Vec<Spanned<String>>,
    /// Whether a user's binding of the same key takes precedence: configurations may be older than this row.
    #[serde(default)]
    yields: bool,
    name: String,
    does: String,
}

impl Keymap {
    /// Returns the shipped keymap.
    ///
    /// # Errors
    /// Returns an error if the shipped file is invalid; a test loads it.
    pub fn shipped() -> Result<Self, LocatedError> {
        Self::parse(FILE, SHIPPED)
    }

    fn parse(file: &str, text: &str) -> Result<Self, LocatedError> {
        let places: BTreeMap<String, BTreeMap<String, Spanned<Row>>> = read(file, text)?;
        let mut rows: Vec<(u64, Binding)> = Vec::new();
        for (context, actions) in places {
            let first = actions.values().map(|row| row.referenced.line()).min().unwrap_or(1);
            let context = parse_name::<Context>(&context, "context")
                .map_err(|message| LocatedError::new(file, first.saturating_sub(1).max(1), message))?;
            for (action, row) in actions {
                let line = row.referenced.line();
                let action = parse_name::<Action>(&action, "action")
                    .map_err(|message| LocatedError::new(file, line, message))?;
                let keys = row
                    .value
                    .keys
                    .iter()
                    .map(|key| {
                        parse_key(&key.value)
                            .map_err(|message| LocatedError::new(file, key.referenced.line(), message))
                    })
                    .collect::<Result<_, _>>()?;
                rows.push((
                    line,
                    Binding {
                        context,
                        action,
                        keys,
                        yields: row.value.yields,
                        name: row.value.name,
                        does: row.value.does,
                    },
                ));
            }
        }
        rows.sort_by_key(|(line, _)| *line);
        let places: Vec<RowPlace> = rows
            .iter()
            .map(|(line, _)| RowPlace { file: file.to_owned(), line: *line, of_project: false })
            .collect();
        Self::indexed(rows.into_iter().map(|(_, row)| row).collect(), &places)
    }

    /// Returns the keymap with the changes of a user and a project applied, without the changes of the project that have
    /// errors, and these errors.
    ///
    /// # Errors
    /// Returns an error in a change of the user, as [`Self::remapped`].
    pub fn remapped_by_project(&self, remaps: &[Remap]) -> Result<(Self, Vec<LocatedError>), LocatedError> {
        let mut remaps = remaps.to_vec();
        let mut ignored = Vec::new();
        loop {
            let mut error = match self.remapped(&remaps) {
                Ok(keymap) => return Ok((keymap, ignored)),
                Err(error) => error,
            };
            let count = remaps.len();
            remaps
                .retain(|remap| !remap.of_project || (&remap.file, remap.line) != (&error.file, error.line));
            if remaps.len() == count {
                return Err(error);
            }
            error.message.push_str("; these keys of the project are ignored");
            ignored.push(error);
        }
    }

    /// Returns the keymap with a user's changes applied.
    ///
    /// # Errors
    /// Returns an error for an unknown action, an action without keys in the named context, an invalid key, or a key
    /// bound twice in one context; each with the user's file and line.
    pub fn remapped(&self, remaps: &[Remap]) -> Result<Self, LocatedError> {
        let mut rows = self.bindings.clone();
        let shipped = RowPlace { file: FILE.to_owned(), line: 1, of_project: false };
        let mut places = vec![shipped; rows.len()];
        for remap in remaps.iter().filter(|remap| !REMOVED.contains(&remap.action.as_str())) {
            let wrong = |message: String| LocatedError::new(&remap.file, remap.line, message);
            let context = parse_name::<Context>(&remap.context, "context").map_err(wrong)?;
            let renamed = RENAMED.iter().find(|(of, old, _)| *of == context && *old == remap.action);
            let action = renamed
                .map_or_else(|| parse_name::<Action>(&remap.action, "action"), |(_, _, action)| Ok(*action))
                .map_err(wrong)?;
            let keys: Vec<KeyCombination> =
                remap.keys.iter().map(|key| parse_key(key)).collect::<Result<_, _>>().map_err(wrong)?;
            let Some((row, place)) = rows
                .iter_mut()
                .zip(&mut places)
                .find(|(row, _)| row.action == action && row.context == context)
            else {
                return Err(wrong(format!("{action} has no keys in {context}")));
            };
            row.keys = keys;
            row.yields = false;
            let Remap { line, of_project, .. } = *remap;
            *place = RowPlace { file: remap.file.clone(), line, of_project };
        }
        let taken: Vec<(Context, KeyCombination)> = rows
            .iter()
            .zip(&places)
            .filter(|(_, place)| place.file != FILE)
            .flat_map(|(row, _)| row.keys.iter().map(|key| (row.context, *key)))
            .collect();
        for row in rows.iter_mut().filter(|row| row.yields) {
            row.keys.retain(|key| !taken.contains(&(row.context, *key)));
        }
        Self::indexed(rows, &places)
    }

    fn indexed(bindings: Vec<Binding>, places: &[RowPlace]) -> Result<Self, LocatedError> {
        let mut index: HashMap<(Context, KeyCombination), usize> = HashMap::new();
        for (at, row) in bindings.iter().enumerate() {
            for key in &row.keys {
                if let Some(other) = index.insert((row.context, *key), at) {
                    let (first, second) = (&places[other], &places[at]);
                    // Of the two rows, report that of the project, otherwise the user's own.
                    let place = if first.of_project || second.file == FILE { first } else { second };
                    let message = format!(
                        "key {key} is bound twice in {}: to {} and {}; bind one of them to another key",
                        row.context, bindings[other].action, row.action
                    );
                    return Err(LocatedError::new(&place.file, place.line, message));
                }
            }
        }
        let index = index.into_iter().map(|(key, at)| (key, bindings[at].action)).collect();
        Ok(Self { bindings, index })
    }
}

/// Actions of earlier versions, whose keys in a configuration are ignored.
const REMOVED: [&str; 1] = ["take-back"];

/// Actions that had another name in a context in earlier versions.
const RENAMED: [(Context, &str, Action); 1] = [(Context::RunsBoard, "add-term", Action::ZoomIn)];

fn parse_name<T: FromStr + IntoEnumIterator + ToString>(name: &str, what: &str) -> Result<T, String> {
    T::from_str(name).map_err(|_| {
        let names: Vec<String> = T::iter().map(|value| value.to_string()).collect();
        unknown_name(what, name, &names.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

/// Parses a key: `j`, `G` (Shift), `?`, `ctrl-p`, `f2`, `pageup`, `shift-tab`.
pub fn parse_key(text: &str) -> Result<KeyCombination, String> {
    let mut characters = text.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return Ok(KeyCombination::one_key(KeyCode::Char(only), KeyModifiers::NONE).normalized());
    }
    let text = if text.eq_ignore_ascii_case("shift-tab") { "backtab" } else { text };
    let wrong =
        || format!("`{text}` is not a key; examples: j, G, ?, ctrl-p, alt-enter, f2, pageup, shift-tab");
    let key = crokey::parse(text).map_err(|_| wrong())?.normalized();
    if !matches!(key.codes, OneToThree::One(_)) {
        return Err(format!("`{text}` is a combination that most terminals do not support"));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remapped(remaps: &[(&str, &[&str])]) -> Result<Keymap, LocatedError> {
        let remap = |(at, (name, keys)): (usize, &(&str, &[&str]))| {
            let (context, action) = name.split_once('.').unwrap();
            Remap {
                context: context.to_owned(),
                action: action.to_owned(),
                keys: keys.iter().map(|key| (*key).to_owned()).collect(),
                file: "config.yaml".to_owned(),
                line: at as u64 + 2,
                of_project: false,
            }
        };
        Keymap::shipped().unwrap().remapped(&remaps.iter().enumerate().map(remap).collect::<Vec<_>>())
    }

    #[test]
    fn every_action_has_a_row_and_every_row_a_key() {
        let keymap = Keymap::shipped().unwrap();
        for action in Action::iter() {
            assert!(keymap.bindings().iter().any(|row| row.action == action), "{action} stands nowhere");
        }
        for row in keymap.bindings() {
            assert!(!row.keys.is_empty() && !row.name.is_empty() && row.does.ends_with('.'), "{row:?}");
        }
    }

    #[test]
    fn remap_changes_one_context_only() {
        let keymap = remapped(&[("list.copy", &["c"]), ("text.copy", &[])]).unwrap();
        let keys = |context| {
            let rows = keymap.bindings().iter();
            rows.filter(|row| row.action == Action::Copy && row.context == context)
                .flat_map(|row| row.keys.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(Context::List), [parse_key("c").unwrap()]);
        assert_eq!(keys(Context::Text), []);
    }

    #[test]
    fn errors_name_file_and_line() {
        let wrong: [(&str, &[&str], &str); 6] = [
            ("browse.srot", &["o"], "config.yaml:2: unknown action `srot`; did you mean `sort`?"),
            ("browse.sort", &["ctrl-xyz"], "config.yaml:2: `ctrl-xyz` is not a key; examples"),
            ("browse.sort", &["a-b"], "config.yaml:2: `a-b` is a combination"),
            ("lists.up", &["i"], "config.yaml:2: unknown context `lists`; did you mean `list`?"),
            ("browse.quit", &["Q"], "config.yaml:2: quit has no keys in browse"),
            ("browse.sort", &["v"], "config.yaml:2: key v is bound twice in browse: to sort and pick-client"),
        ];
        for (name, keys, message) in wrong {
            let error = remapped(&[(name, keys)]).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn keys_of_a_removed_action_are_ignored() {
        let keymap = remapped(&[("runs.take-back", &["B"])]).unwrap();
        assert_eq!(keymap.bindings(), Keymap::shipped().unwrap().bindings());
    }

    #[test]
    fn a_former_name_of_an_action_is_accepted() {
        let former = remapped(&[("runs-board.add-term", &["P"])]).unwrap();
        let current = remapped(&[("runs-board.zoom-in", &["P"])]).unwrap();
        assert_eq!(former.bindings(), current.bindings());
    }

    #[test]
    fn a_newer_key_yields_to_an_older_configuration() {
        let keymap = remapped(&[("browse.sort", &["o"])]).unwrap();
        let keys = |context, action| {
            keymap
                .bindings()
                .iter()
                .find(|row| row.context == context && row.action == action)
                .map(|row| row.keys.len())
        };
        assert_eq!(keys(Context::Browse, Action::Sort), Some(1));
        assert_eq!(keys(Context::Browse, Action::OpenByName), Some(0));
        assert_eq!(keys(Context::Discover, Action::OpenByName), Some(1));
        assert!(remapped(&[("browse.sort", &["o"]), ("browse.open-by-name", &["o"])]).is_err());
    }

    #[test]
    fn keys_of_a_project_with_errors_are_ignored() {
        let remap = |action: &str, key: &str, line: u64, of_project: bool| Remap {
            context: "list".to_owned(),
            action: action.to_owned(),
            keys: vec![key.to_owned()],
            file: if of_project { "project.yaml" } else { "config.yaml" }.to_owned(),
            line,
            of_project,
        };
        let shipped = Keymap::shipped().unwrap();
        let own = [remap("up", "i", 1, false), remap("filter", "k", 2, false)];
        let with = |more: &[Remap]| shipped.remapped_by_project(&[&own[..], more].concat());
        // A conflict with a shipped key, one with the user's, an invalid key, and a valid one that replaces the user's.
        let conflicts =
            [remap("up", "j", 1, true), remap("top", "k", 2, true), remap("copy", "ctrl-xyz", 3, true)];
        let (keymap, ignored) = with(&conflicts).unwrap();
        assert_eq!(keymap.bindings(), with(&[]).unwrap().0.bindings());
        let mut lines: Vec<_> = ignored.iter().map(|error| (error.file.as_str(), error.line)).collect();
        lines.sort_unstable();
        assert_eq!(lines, [("project.yaml", 1), ("project.yaml", 2), ("project.yaml", 3)]);
        let (keymap, ignored) = with(&[remap("up", "u", 1, true)]).unwrap();
        let row =
            keymap.bindings().iter().find(|row| (row.context, row.action) == (Context::List, Action::Up));
        assert_eq!((row.unwrap().keys.clone(), ignored.len()), (vec![parse_key("u").unwrap()], 0));
        assert!(
            with(&[remap("up", "u", 1, true), remap("down", "k", 3, false)]).is_err(),
            "the user's own error"
        );
    }

    #[test]
    fn two_remaps_may_swap_their_keys() {
        assert!(remapped(&[("browse.sort", &["v"]), ("browse.pick-client", &["s"])]).is_ok());
    }
}
