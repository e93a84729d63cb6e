//! Paths as text. JSON has no text for a path that is not UTF-8, so its other bytes are escaped: serializing a path must
//! not fail because of a name in a folder.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

/// Returns a path as text, with `\xff` for each byte that is not UTF-8.
pub fn escaped(path: &Path) -> Cow<'_, str> {
    if let Some(text) = path.to_str() {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a text does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    Cow::Owned(text)
}

/// Serializes a field of paths as text: for `#[serde(serialize_with = "…")]`.
pub fn serialize<P: Paths, S: Serializer>(paths: &P, serializer: S) -> Result<S::Ok, S::Error> {
    paths.serialize_paths(serializer)
}

/// A value that consists of paths.
pub trait Paths {
    /// Serializes it.
    fn serialize_paths<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

/// Serializes what it refers to.
struct AsText<'a, P: ?Sized>(&'a P);

impl<P: Paths + ?Sized> Serialize for AsText<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_paths(serializer)
    }
}

impl Paths for Path {
    fn serialize_paths<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&escaped(self))
    }
}

impl Paths for PathBuf {
    fn serialize_paths<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_path().serialize_paths(serializer)
    }
}

impl<P: Paths + ?Sized> Paths for &P {
    fn serialize_paths<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize_paths(serializer)
    }
}

impl<P: Paths> Paths for Option<P> {
    fn serialize_paths<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(paths) => serializer.serialize_some(&AsText(paths)),
            None => serializer.serialize_none(),
        }
    }
}

impl<P: Paths> Paths for [P] {
    fn serialize_paths<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for paths in self {
            list.serialize_element(&AsText(paths))?;
        }
        list.end()
    }
}

impl<P: Paths> Paths for Vec<P> {
    fn serialize_paths<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize_paths(serializer)
    }
}

impl<P: Paths, T: Serialize> Paths for (P, T) {
    fn serialize_paths<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (AsText(&self.0), &self.1).serialize(serializer)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[derive(Serialize)]
    struct Places {
        #[serde(serialize_with = "serialize")]
        one: PathBuf,
        #[serde(serialize_with = "serialize")]
        none: Option<PathBuf>,
        #[serde(serialize_with = "serialize")]
        many: Vec<PathBuf>,
        #[serde(serialize_with = "serialize")]
        with_text: (PathBuf, String),
    }

    #[test]
    fn a_path_that_is_not_utf8_is_escaped() {
        let bad = PathBuf::from(OsStr::from_bytes(b"/r\xc3\xa9/bad\xff\xfename"));
        let text = "/ré/bad\\xff\\xfename";
        assert_eq!(escaped(&bad), text);
        let places = Places {
            one: bad.clone(),
            none: None,
            many: vec!["/a".into(), bad.clone()],
            with_text: (bad, "x".into()),
        };
        let expected =
            serde_json::json!({ "one": text, "none": null, "many": ["/a", text], "with_text": [text, "x"] });
        assert_eq!(serde_json::to_value(places).unwrap(), expected);
    }
}
