//! Checks the folders given with `--root`: the result for a missing folder would look like that for an empty one.

use std::fs;
use std::path::{Path, PathBuf};

use skills_api::{Code, Error, near};

/// Checks that each of these folders can be read.
///
/// # Errors
/// Returns `not_found` for a missing folder, with similar names next to it; `forbidden` for a file, and for a folder that
/// cannot be read.
pub fn check(folders: &[PathBuf]) -> Result<(), Error> {
    folders.iter().try_for_each(|folder| {
        let shown = folder.display();
        match fs::read_dir(folder) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error {
                suggestions: similar_siblings(folder),
                ..Error::new(Code::NotFound, format!("skill folder `{shown}` does not exist"))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(Error::new(
                Code::Forbidden,
                format!("`{shown}` is not a folder; pass the folder that contains the skills"),
            )),
            Err(error) => Err(Error::new(Code::Forbidden, format!("cannot read folder `{shown}`: {error}"))),
        }
    })
}

/// Returns folders next to a missing one with similar names, as complete paths.
fn similar_siblings(folder: &Path) -> Vec<String> {
    let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(above) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let near = near(&name.to_string_lossy(), names.iter().map(String::as_str));
    near.into_iter().map(|name| above.join(name).display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_folder_error_suggests_similar_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("skills")).unwrap();
        fs::write(at("skill"), "x").unwrap();
        assert_eq!(check(&[at("skills")]), Ok(()));
        let missing = check(&[at("skills"), at("skils")]).unwrap_err();
        assert_eq!(missing.code, Code::NotFound);
        assert_eq!(missing.suggestions, [at("skills").display().to_string()]);
        assert_eq!(check(&[at("skill")]).unwrap_err().code, Code::Forbidden);
    }
}
