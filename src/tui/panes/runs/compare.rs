//! Two runs step by step: which steps they share, how long each took, where they differ first.

use crate::gateway::{RunDetail, StepView};
use crate::tui::widgets::json_diff::{Change, changes};

/// A step in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair<'a> {
    /// Its path.
    pub step: &'a str,
    /// In the first run.
    pub one: Option<&'a StepView>,
    /// In the second.
    pub other: Option<&'a StepView>,
    /// What differs in its inputs and result.
    pub differs: Vec<(&'static str, Vec<Change>)>,
}

impl Pair<'_> {
    /// Whether both did the same with the same.
    pub fn same(&self) -> bool {
        let states = self.one.map(|step| step.state) == self.other.map(|step| step.state);
        states && self.differs.is_empty()
    }
}

/// The steps of both, in the order of the first; those of the second alone where they stand there.
pub fn pairs<'a>(one: &'a RunDetail, other: &'a RunDetail) -> Vec<Pair<'a>> {
    let find = |steps: &'a [StepView], name: &str| steps.iter().find(|step| step.step == name);
    let mut order: Vec<&str> = one.steps.iter().map(|step| step.step.as_str()).collect();
    let mut at = 0;
    for step in &other.steps {
        match order.iter().position(|name| *name == step.step) {
            Some(known) => at = known + 1,
            None => {
                order.insert(at, &step.step);
                at += 1;
            }
        }
    }
    let pair = |name: &'a str| {
        let (first, second) = (find(&one.steps, name), find(&other.steps, name));
        Pair { step: name, one: first, other: second, differs: differences(first, second) }
    };
    order.into_iter().map(pair).collect()
}

fn differences(one: Option<&StepView>, other: Option<&StepView>) -> Vec<(&'static str, Vec<Change>)> {
    let (Some(one), Some(other)) = (one, other) else { return Vec::new() };
    let mut out = Vec::new();
    for (name, before, after) in
        [("inputs", &one.inputs, &other.inputs), ("result", &one.result, &other.result)]
    {
        if let (Some(before), Some(after)) = (before, after) {
            let found = changes(before, after);
            if !found.is_empty() {
                out.push((name, found));
            }
        }
    }
    out
}
