//! A bundle's files as a tree with collapsible folders and selectable files.

use std::collections::HashSet;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRow {
    pub depth: usize,
    /// The last component of its path.
    pub name: String,
    /// The full path inside the bundle, separated by `/`.
    pub path: String,
    /// Index into the given files; `None` for a folder.
    pub file: Option<usize>,
    /// Number of files below a folder.
    pub files: usize,
    /// Whether a folder is collapsed.
    pub folded: bool,
}

/// Returns rows in the order of the paths (sorted, as the bundle lists them), collapsed folders without content.
pub fn rows<S: std::hash::BuildHasher>(paths: &[&str], folded: &HashSet<String, S>) -> Vec<TreeRow> {
    let mut out: Vec<TreeRow> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        let (parent, name) = path.rsplit_once('/').map_or(("", *path), |(f, n)| (f, n));
        let parts: Vec<&str> = parent.split('/').filter(|p| !p.is_empty()).collect();
        let common = open.iter().zip(&parts).take_while(|(a, b)| a.as_str() == **b).count();
        open.truncate(common);
        let mut hidden = hidden_below(&open, folded);
        for part in &parts[common..] {
            open.push((*part).to_owned());
            let path = open.join("/");
            let is_folded = folded.contains(&path);
            if !hidden {
                let below = format!("{path}/");
                let files = paths.iter().filter(|p| p.starts_with(&below)).count();
                let (depth, name) = (open.len() - 1, (*part).to_owned());
                out.push(TreeRow { depth, name, path, file: None, files, folded: is_folded });
            }
            hidden |= is_folded;
        }
        if !hidden {
            out.push(TreeRow {
                depth: parts.len(),
                name: name.to_owned(),
                path: (*path).to_owned(),
                file: Some(index),
                files: 0,
                folded: false,
            });
        }
    }
    out
}

fn hidden_below<S: std::hash::BuildHasher>(open: &[String], folded: &HashSet<String, S>) -> bool {
    (1..=open.len()).any(|n| folded.contains(&open[..n].join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 4] =
        ["notes.md", "references/layout.md", "references/old/a.md", "scripts/extract.py"];

    #[test]
    fn folders_are_listed_before_files() {
        let rows = rows(&PATHS, &HashSet::new());
        let seen: Vec<String> = rows.iter().map(|r| format!("{}{}", " ".repeat(r.depth), r.name)).collect();
        assert_eq!(
            seen,
            ["notes.md", "references", " layout.md", " old", "  a.md", "scripts", " extract.py"]
        );
    }

    #[test]
    fn a_folded_folder_hides_what_is_below_it() {
        let rows = rows(&PATHS, &HashSet::from(["references".to_owned()]));
        let seen: Vec<&str> = rows.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(seen, ["notes.md", "references", "scripts", "extract.py"]);
        assert_eq!(rows[1].files, 2);
    }
}
