//! Work items recorded by a person or a tracker: `tasks.yaml` in a root.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value};

use skills_base::files::Folder;
use skills_registry::{Root, RootState};

/// Name of the file in a root.
pub(super) const FILE: &str = "tasks.yaml";
/// Maximum size of the file in bytes.
const MAX_TASKS_FILE_BYTES: u64 = 4 << 20;
/// States of finished items.
const CLOSED: [&str; 6] = ["done", "closed", "completed", "canceled", "cancelled", "rejected"];

/// A work item of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Task {
    pub id: String,
    /// Its title; empty if it has none.
    pub title: String,
    /// Its state; empty if it states none.
    pub status: String,
    /// All of its fields.
    pub content: Value,
}

impl Task {
    /// Returns whether it is not finished.
    pub(super) fn is_open(&self) -> bool {
        !CLOSED.contains(&self.status.to_lowercase().as_str())
    }
}

/// Returns all items with the labels of their roots, and why a file of them cannot be read. Of several with the same id
/// only the first; those of the user come before those of a project, which cannot replace one: not either while a file
/// of the user cannot be read, which may define any id.
pub(super) fn of_roots(roots: &[Root]) -> (Vec<(String, Task)>, Option<String>) {
    let present = roots.iter().filter(|root| root.state == RootState::Present);
    let (of_projects, own): (Vec<&Root>, Vec<&Root>) = present.partition(|root| root.of_project);
    let (mut items, mut unreadable) = (Vec::new(), None);
    let mut seen = HashSet::new();
    let mut is_owner_unknown = false;
    for root in own.into_iter().chain(of_projects) {
        if root.of_project && is_owner_unknown {
            break;
        }
        match of_root(&root.path) {
            Ok(found) => {
                let added = found.into_iter().filter(|task| seen.insert(task.id.clone()));
                items.extend(added.map(|task| (root.label.clone(), task)));
            }
            Err(why) => {
                is_owner_unknown = is_owner_unknown || !root.of_project;
                unreadable.get_or_insert(why);
            }
        }
    }
    (items, unreadable)
}

/// Returns the items of a root; empty if it has no such file.
///
/// # Errors
/// Returns a message that names the file, if it cannot be read.
fn of_root(root: &Path) -> Result<Vec<Task>, String> {
    let file = root.join(FILE);
    let read = Folder::follow(root).and_then(|folder| Ok(folder.read_text(FILE, MAX_TASKS_FILE_BYTES)?));
    let text = match read {
        Ok(text) => text,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(e) => return Err(format!("{} cannot be read: {e}", file.display())),
    };
    parse(&text).map_err(|why| format!("{}: {why}", file.display()))
}

fn parse(text: &str) -> Result<Vec<Task>, String> {
    let document: Value = serde_saphyr::from_str(text).map_err(|e| skills_skill::yaml_message(&e))?;
    let items = match document {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        Value::Object(mut fields) => match fields.remove("tasks") {
            Some(Value::Array(items)) => items,
            _ => return Err("expected a list of tasks, or a map with the list `tasks`".to_owned()),
        },
        _ => return Err("expected a list of tasks, each with an `id`".to_owned()),
    };
    items.into_iter().enumerate().map(|(place, item)| task(place, item)).collect()
}

fn task(place: usize, item: Value) -> Result<Task, String> {
    let Value::Object(fields) = item else {
        return Err(format!("task {} is not a map with an `id`", place + 1));
    };
    let Some(id) = text(&fields, "id").filter(|id| !id.is_empty()) else {
        return Err(format!("task {} has no `id`", place + 1));
    };
    let title = text(&fields, "title").unwrap_or_default();
    let status = text(&fields, "status").unwrap_or_default();
    Ok(Task { id, title, status, content: Value::Object(fields) })
}

fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    match fields.get(key)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_and_a_map_with_a_list_are_read_and_numbers_are_ids() {
        let list = parse("- {id: T-1, title: Ship it, status: open}\n- {id: 7, status: Done}\n").unwrap();
        assert_eq!(list[0].title, "Ship it");
        assert_eq!((list[1].id.as_str(), list[1].is_open()), ("7", false));
        assert!(list[0].is_open());
        assert_eq!(parse("tasks:\n- {id: a}\n").unwrap()[0].content["id"], "a");
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn item_of_a_project_does_not_replace_one_of_the_user() {
        let home = tempfile::tempdir().unwrap();
        let root = |name: &str, of_project: bool, text: &str| {
            let path = home.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join(FILE), text).unwrap();
            let known = crate::testing::catalog(&[]).roots.remove(0);
            Root { path, label: name.to_owned(), of_project, ..known }
        };
        let roots = [
            root("project", true, "- {id: T-7, amount: 9999}\n- {id: T-8}\n"),
            root("own", false, "- {id: T-7, amount: 5}\n"),
        ];
        let (items, _) = of_roots(&roots);
        let found: Vec<_> = items.iter().map(|(root, task)| (root.as_str(), task.id.as_str())).collect();
        assert_eq!(found, [("own", "T-7"), ("project", "T-8")]);
        assert_eq!(items[0].1.content["amount"], 5);

        std::fs::write(home.path().join("own").join(FILE), "- {id: T-7, amount: 5\n").unwrap();
        let (items, unreadable) = of_roots(&roots);
        assert!(items.is_empty(), "{items:?}");
        let file = home.path().join("own").join(FILE);
        assert!(unreadable.unwrap().starts_with(&file.display().to_string()));
    }

    #[test]
    fn task_without_an_id_is_named_by_its_index() {
        assert_eq!(parse("- {id: a}\n- {title: b}\n").unwrap_err(), "task 2 has no `id`");
    }
}
