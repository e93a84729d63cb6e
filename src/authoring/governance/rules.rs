//! The rules of the quality states; each returns its result as text.

use skills_base::number::{counted, inflected};
use strum::IntoEnumIterator as _;

use super::{Assessment, Facts, LifecycleStatus, QualityState};

/// Minimum number of golden queries about a skill.
pub const MIN_GOLDEN: usize = 3;
/// Minimum percentage of them for which it is first, for `lab-verified`.
pub const MIN_TOP1_PERCENT_LAB_VERIFIED: u64 = 80;
/// The same percentage for `recommended`.
pub const MIN_TOP1_PERCENT_RECOMMENDED: u64 = 95;
/// Minimum number of ended runs for `trusted`.
pub const MIN_RUNS: u64 = 5;
/// Minimum percentage of them that are completed.
pub const MIN_COMPLETED_PERCENT_TRUSTED: u64 = 90;
/// Minimum number of ended runs for `recommended`.
pub const MIN_RUNS_RECOMMENDED: u64 = 20;
/// Minimum percentage of them that are completed.
pub const MIN_COMPLETED_PERCENT_RECOMMENDED: u64 = 95;

/// The result of one rule: what holds (`Ok`), or what is missing (`Err`).
type Answer = Result<String, String>;

/// Determines the quality state of a skill from the facts.
pub fn judge(facts: &Facts) -> Assessment {
    let mut assessment = Assessment { state: QualityState::Draft, reasons: Vec::new(), next: Vec::new() };
    for state in QualityState::iter().filter(|state| *state != QualityState::Draft) {
        let answers = rules(state, facts);
        let missing: Vec<String> = answers.iter().filter_map(|a| a.as_ref().err().cloned()).collect();
        if !missing.is_empty() {
            assessment.next = missing;
            return assessment;
        }
        assessment.state = state;
        assessment.reasons.extend(answers.into_iter().filter_map(Result::ok));
    }
    assessment
}

/// Returns the rules that a state adds to those of lower states.
fn rules(state: QualityState, facts: &Facts) -> Vec<Answer> {
    match state {
        QualityState::Draft => Vec::new(),
        QualityState::Validated => vec![errors(facts), finished(facts)],
        QualityState::LabVerified => {
            let mut answers = vec![golden(facts, MIN_TOP1_PERCENT_LAB_VERIFIED), intrusions(facts)];
            answers.extend(facts.has_contract.then(|| ran_once(facts)));
            answers
        }
        QualityState::Trusted => {
            let mut answers = vec![trusted(facts), allowed(facts)];
            answers.extend(facts.has_contract.then(|| runs(facts, MIN_RUNS, MIN_COMPLETED_PERCENT_TRUSTED)));
            answers
        }
        QualityState::Recommended => {
            let mut answers = vec![warnings(facts), golden(facts, MIN_TOP1_PERCENT_RECOMMENDED)];
            answers.extend(
                facts
                    .has_contract
                    .then(|| runs(facts, MIN_RUNS_RECOMMENDED, MIN_COMPLETED_PERCENT_RECOMMENDED)),
            );
            answers
        }
    }
}

fn errors(facts: &Facts) -> Answer {
    match facts.errors {
        0 => Ok("no lint errors".to_owned()),
        n => Err(format!("fix {} reported by lint", counted(n, "error"))),
    }
}

fn finished(facts: &Facts) -> Answer {
    match facts.life {
        LifecycleStatus::Stable => Ok("its status is stable".to_owned()),
        LifecycleStatus::Unfinished => Err("set `status: stable` when it is finished".to_owned()),
        LifecycleStatus::Deprecated => Err("deprecated: no further state".to_owned()),
    }
}

fn golden(facts: &Facts, share: u64) -> Answer {
    let golden = facts.golden;
    if golden.expected < MIN_GOLDEN {
        let more = MIN_GOLDEN - golden.expected;
        return Err(format!(
            "add {}, to golden.yaml of its root or evals/ of its bundle ({MIN_GOLDEN} required)",
            inflected(more, "golden query that expects it", "golden queries that expect it")
        ));
    }
    let found = format!("ranks first for {} of {} golden queries", golden.found, golden.expected);
    // In percent, and never rounded up.
    if golden.found as u64 * 100 >= share * golden.expected as u64 {
        Ok(format!("{found} ({share} % required)"))
    } else {
        Err(format!("{found} ({share} % required); `skills eval` lists missed queries"))
    }
}

fn intrusions(facts: &Facts) -> Answer {
    let golden = facts.golden;
    match golden.intruded {
        0 if golden.unwanted == 0 => Ok("no out-of-scope golden query".to_owned()),
        0 => Ok(format!("not first for {}", counted(golden.unwanted, "out-of-scope golden query"))),
        n => Err(format!("first for {}", counted(n, "out-of-scope golden query"))),
    }
}

fn ran_once(facts: &Facts) -> Answer {
    match facts.runs.completed {
        0 => Err(format!("complete a run of its current contract (`skills run {}`)", facts.operand)),
        n => Ok(format!("its contract completed {}", counted(n, "time"))),
    }
}

fn trusted(facts: &Facts) -> Answer {
    match &facts.untrusted {
        None => Ok("it is trusted, or contains nothing to execute".to_owned()),
        Some(why) => Err(format!("trust it (`skills trust {}`): {why}", facts.operand)),
    }
}

fn allowed(facts: &Facts) -> Answer {
    match &facts.denied {
        None => Ok("no policy forbids it".to_owned()),
        Some(rule) => Err(format!("the policy forbids it: {rule}")),
    }
}

fn runs(facts: &Facts, least: u64, share: u64) -> Answer {
    let ended = facts.runs.completed + facts.runs.failed;
    let earlier = match facts.runs.earlier {
        0 => String::new(),
        n => format!("; {} of earlier contracts not counted", counted(n, "run")),
    };
    if ended < least {
        let more = least - ended;
        return Err(format!("complete {} of its current contract{earlier}", counted(more, "more run")));
    }
    let evidence = format!("{} of {ended} runs of its current contract completed", facts.runs.completed);
    if facts.runs.completed * 100 >= share * ended {
        Ok(evidence)
    } else {
        Err(format!("{evidence}; {share} % are required{earlier}"))
    }
}

fn warnings(facts: &Facts) -> Answer {
    match facts.warnings {
        0 => Ok("no lint warnings".to_owned()),
        n => Err(format!("fix {} reported by lint", counted(n, "warning"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governance::{GoldenFacts, RunFacts};

    fn best() -> Facts {
        Facts {
            operand: "pdf".to_owned(),
            golden: GoldenFacts { expected: 20, found: 19, unwanted: 2, intruded: 0 },
            has_contract: true,
            runs: RunFacts { completed: 19, failed: 1, earlier: 3 },
            ..Facts::default()
        }
    }

    #[test]
    fn skill_satisfying_every_rule_is_recommended() {
        let judgment = judge(&best());
        assert_eq!(judgment.state, QualityState::Recommended);
        assert!(judgment.next.is_empty());
        insta::assert_snapshot!(judgment.reasons.join("\n"));
    }

    /// Each rule alone keeps a skill below the state that the rule belongs to.
    #[test]
    fn each_rule_alone_prevents_promotion() {
        let cases: [(&str, QualityState, fn(&mut Facts)); 12] = [
            ("an error", QualityState::Draft, |f| f.errors = 1),
            ("unfinished", QualityState::Draft, |f| f.life = LifecycleStatus::Unfinished),
            ("deprecated", QualityState::Draft, |f| f.life = LifecycleStatus::Deprecated),
            ("two requests", QualityState::Validated, |f| {
                f.golden = GoldenFacts { expected: 2, found: 2, unwanted: 0, intruded: 0 };
            }),
            ("requests lost", QualityState::Validated, |f| f.golden.found = 15),
            ("an intrusion", QualityState::Validated, |f| f.golden.intruded = 1),
            ("never ran", QualityState::Validated, |f| {
                f.runs = RunFacts { completed: 0, failed: 0, earlier: 9 }
            }),
            ("untrusted", QualityState::LabVerified, |f| f.untrusted = Some("it was not reviewed".into())),
            ("denied", QualityState::LabVerified, |f| f.denied = Some("deny id x (line 1)".into())),
            ("runs fail", QualityState::LabVerified, |f| {
                f.runs = RunFacts { completed: 8, failed: 2, earlier: 0 }
            }),
            ("a warning", QualityState::Trusted, |f| f.warnings = 1),
            ("few runs", QualityState::Trusted, |f| {
                f.runs = RunFacts { completed: 19, failed: 0, earlier: 0 }
            }),
        ];
        let mut message = String::new();
        for (what, state, spoil) in cases {
            let mut facts = best();
            spoil(&mut facts);
            let judgment = judge(&facts);
            assert_eq!(judgment.state, state, "{what}");
            assert_eq!(judgment.next.len(), 1, "{what}: {:?}", judgment.next);
            message += &format!("{what}: {}\n", judgment.next[0]);
        }
        insta::assert_snapshot!(message);
    }

    #[test]
    fn instructions_alone_need_no_runs() {
        let facts = Facts { has_contract: false, runs: RunFacts::default(), ..best() };
        assert_eq!(judge(&facts).state, QualityState::Recommended);
    }

    #[test]
    fn missing_evidence_is_listed_in_order() {
        let judgment = judge(&Facts { has_contract: true, untrusted: Some("x".into()), ..Facts::default() });
        assert_eq!(judgment.state, QualityState::Validated);
        assert_eq!(judgment.next.len(), 2, "golden queries and a run, not trust yet: {:?}", judgment.next);
    }
}
