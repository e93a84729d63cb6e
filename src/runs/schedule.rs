//! Which steps of a contract may start: those whose predecessors are complete.

use skills_skill::contract::Step;

/// Maximum number of concurrent calls of one run.
pub const PARALLEL: usize = 8;

/// Returns the steps that are not complete while all their dependencies are, in contract order. A skipped step counts
/// as complete.
pub fn open(steps: &[Step], through: impl Fn(&str) -> bool) -> Vec<&Step> {
    steps
        .iter()
        .filter(|step| !through(&step.id))
        .filter(|step| step.depends_on.iter().all(|before| through(before)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use skills_skill::contract::parse;

    fn open_after(through: &[&str]) -> Vec<String> {
        let text = "
id: demo.order
steps:
  - { id: a, uses: x.y }
  - { id: b, uses: x.y }
  - { id: c, uses: x.y, config: { depends_on: [] } }
  - { id: d, uses: x.y, config: { depends_on: [a, c] } }
  - { id: e, uses: x.y }
";
        let contract = parse(Path::new("skill.yaml"), text).0.unwrap();
        open(&contract.steps, |id| through.contains(&id)).iter().map(|step| step.id.clone()).collect()
    }

    #[test]
    fn step_depends_on_the_previous_one_by_default() {
        assert_eq!(open_after(&[]), ["a", "c"]);
        assert_eq!(open_after(&["a"]), ["b", "c"]);
        assert_eq!(open_after(&["a", "c"]), ["b", "d"]);
        assert_eq!(open_after(&["a", "c", "d"]), ["b", "e"]);
        assert_eq!(open_after(&["a", "b", "c", "d", "e"]), Vec::<String>::new());
    }
}
