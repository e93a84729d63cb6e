//! The name that a misspelled one probably means ("did you mean").

/// Similarity above which a name is suggested (Jaro-Winkler, 0 to 1).
const MIN_SIMILARITY: f64 = 0.8;

/// Returns the name most similar to `wanted`, if one is similar enough.
pub fn nearest_name<'a>(requested: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(name, requested), name));
    let (similarity, name) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (similarity > MIN_SIMILARITY).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_name_is_suggested() {
        assert_eq!(nearest_name("stat", ["skill", "state"]), Some("state"));
        assert_eq!(nearest_name("flavor", ["skill", "state"]), None);
        assert_eq!(nearest_name("signal.nam", ["signal.name", "text"]), Some("signal.name"));
        assert_eq!(nearest_name("x", []), None);
    }
}
