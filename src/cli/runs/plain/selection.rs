//! Runs numbered for one command: a number stays the same when other runs are left out.

use super::text::named_item;
use crate::dialog::{capitalized, clean};
use crate::output::{counted, inflected};
use skills_api::distinguish;
use skills_store::RunRecord;

/// A run of a selection.
#[derive(Debug)]
pub struct NumberedRun<'r> {
    pub number: usize,
    /// Its title, and what distinguishes it from the other runs.
    pub name: String,
    pub run: &'r RunRecord,
}

/// The runs that a command is sent to.
#[derive(Debug)]
pub struct Selection<'r> {
    command: String,
    /// What all runs have in common.
    same: String,
    pub runs: Vec<NumberedRun<'r>>,
}

impl<'r> Selection<'r> {
    /// Numbers the runs from 1.
    pub fn new(command: &str, runs: &[&'r RunRecord]) -> Self {
        let distinction = distinguish(runs.iter().copied());
        let common = |text: &str| clean(&text.replace("  ", ", "));
        let skill = runs
            .first()
            .filter(|first| runs.len() > 1 && runs.iter().all(|run| run.skill_id == first.skill_id))
            .map(|first| format!("skill {}", clean(&first.skill_id)));
        let title = distinction.title.as_deref().map(clean);
        let labels = Some(common(&distinction.labels)).filter(|labels| !labels.is_empty());
        let labels = labels.map(|labels| format!("labels {labels}"));
        let target = Some(common(&distinction.target)).filter(|target| !target.is_empty());
        let target = target.map(|target| format!("attached to {target}"));
        let same = [title.clone(), skill, Some(common(&distinction.inputs)), labels, target];
        let same: Vec<String> = same.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let name = |run: &RunRecord, differs: &str| {
            let own = if title.is_some() && !differs.is_empty() {
                String::new()
            } else {
                clean(run.title_or_skill())
            };
            let parts = [own, clean(differs)];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(". ")
        };
        let numbered = (1..).zip(runs.iter().copied()).zip(distinction.lines(", "));
        let numbered =
            numbered.map(|((number, run), row)| NumberedRun { number, name: name(run, &row), run });
        Self { command: command.to_owned(), same: same.join(", "), runs: numbered.collect() }
    }

    /// Renders the command and what all runs have in common.
    pub fn heading(&self) -> String {
        let command = capitalized(&format!("{} {}", self.command, counted(self.runs.len(), "run")));
        if self.same.is_empty() {
            format!("{command}.\n")
        } else {
            format!("{command}. The same in all: {}.\n", self.same)
        }
    }

    /// Renders the heading and the runs.
    pub fn list(&self, now_ms: i64) -> String {
        let mut out = self.heading();
        for one in &self.runs {
            out += &one.line(now_ms);
            if self.command == "resume" {
                out += &format!(" From checkpoint {}.", one.run.head);
            }
            out.push('\n');
        }
        out
    }

    /// Returns what the user types to send the command.
    pub fn confirmation(&self) -> String {
        format!("{} {}", self.command, self.runs.len())
    }

    /// Returns the prompt.
    pub fn question(&self) -> String {
        let word = self.confirmation();
        format!("Type {word} to confirm, a number to exclude a run, or press Enter to abort:")
    }

    /// Excludes the run with the typed number, and returns the reply; `None` if it is not a number.
    pub fn leave_out(&mut self, typed: &str) -> Option<String> {
        let number = typed.parse::<usize>().ok()?;
        let Some(at) = self.runs.iter().position(|one| one.number == number) else {
            return Some(format!("Run {number} is not in the list, or was excluded."));
        };
        if self.runs.len() == 1 {
            return Some("It is the only run left; press Enter to send nothing.".to_owned());
        }
        self.runs.remove(at);
        let left = inflected(self.runs.len(), "run remains", "runs remain");
        Some(format!("Excluded: {number}. {left}."))
    }
}

impl NumberedRun<'_> {
    /// Renders the run with its number.
    pub fn line(&self, now_ms: i64) -> String {
        format!("{}. {}", self.number, named_item(self.run, &self.name, now_ms))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runs::samples::{NOW_MS, record};
    use skills_model::RunState;

    #[test]
    fn rows_are_distinguished_and_keep_their_numbers() {
        let run =
            |n: u32| RunRecord { inputs: json!({ "n": n, "region": "eu" }), ..record(RunState::Failed) };
        let runs = [run(10), run(200), run(3000)];
        let mut selection = Selection::new("resume", &runs.iter().collect::<Vec<_>>());
        let text = selection.list(NOW_MS);
        assert!(text.starts_with("Resume 3 runs. The same in all: "), "{text}");
        assert!(text.contains("skill invoice-intake, region=eu.\n"), "{text}");
        for (number, n) in [(1, 10), (2, 200), (3, 3000)] {
            let row = text.lines().find(|line| line.starts_with(&format!("{number}. "))).unwrap();
            assert!(row.contains(&format!("n={n}. Run ")), "{row}");
            assert!(row.ends_with(" From checkpoint 3."), "{row}");
        }
        assert_eq!(selection.leave_out("1").as_deref(), Some("Excluded: 1. 2 runs remain."));
        assert!(selection.leave_out("1").unwrap().contains("Run 1 is not in the list"));
        assert_eq!(selection.leave_out("3").as_deref(), Some("Excluded: 3. 1 run remains."));
        assert_eq!((selection.runs[0].number, selection.confirmation().as_str()), (2, "resume 1"));
        assert!(selection.leave_out("2").unwrap().contains("only run"), "one run stays");
        assert_eq!(selection.leave_out("resume 3"), None);
    }
}
