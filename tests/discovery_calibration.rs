//! The confidence constants of the weights file are those that the public query sets give.

mod discovery {
    pub mod sets;
}

use discovery::sets::{Set, set};
use skill_workbench::discovery::{Case, Expect, Fitted, Request, Router, Weights, fit_confidence, keeps};

/// What the first two results of some requests say.
#[derive(Default)]
struct Seen {
    /// z of the first, and whether the request has a skill at all.
    fits: Vec<(f64, bool)>,
    /// Margin between the first two, and whether the first is right.
    margins: Vec<(f64, bool)>,
}

impl Seen {
    fn take(&mut self, router: &Router, cases: &[Case]) {
        for case in cases {
            let request = Request { intent: case.query.clone(), ..Request::default() };
            let answer = router.discover(&request).unwrap();
            let first = answer.results.first();
            let z = first.map_or(0.0, |h| h.z);
            let Expect::AnyOf(expected) = &case.expect else {
                self.fits.push((z, false));
                continue;
            };
            self.fits.push((z, true));
            let margin = z - answer.results.get(1).map_or(0.0, |h| h.z);
            self.margins.push((margin, first.is_some_and(|h| expected.contains(&h.skill_id))));
        }
    }

    /// The constants: logistic regression for the curve; the z that keeps 94, 80 and 50 per cent of the
    /// requests that have a skill; the margin at which the first is right in three of four.
    fn fitted(&self) -> Fitted {
        let (slope, offset) = fit_confidence(&self.fits).unwrap();
        let z: Vec<f64> = self.fits.iter().filter(|(_, fits)| *fits).map(|(z, _)| *z).collect();
        let (a, b) = fit_confidence(&self.margins).unwrap();
        Fitted {
            slope,
            offset,
            fits_from: keeps(&z, 0.94).unwrap(),
            sure_from: keeps(&z, 0.80).unwrap(),
            high_from: keeps(&z, 0.50).unwrap(),
            lead: ((3_f64.ln() - b) / a).max(0.02),
        }
    }
}

/// `strangers` fit no skill of the first two sets.
fn compare(profile: &str, sets: &[Set], strangers: &[Case], kept: &Fitted) {
    let mut seen = Seen::default();
    for (at, set) in sets.iter().enumerate() {
        let router = set.router();
        seen.take(&router, &set.queries);
        if at < 2 {
            seen.take(&router, strangers);
        }
    }
    let now = seen.fitted();
    println!("{profile}: {now:.3?}");
    let pairs = [
        (now.slope, kept.slope, 0.1),
        (now.offset, kept.offset, 0.1),
        (now.fits_from, kept.fits_from, 0.02),
        (now.sure_from, kept.sure_from, 0.02),
        (now.high_from, kept.high_from, 0.02),
        (now.lead, kept.lead, 0.02),
    ];
    for (now, kept, tolerance) in pairs {
        assert!((now - kept).abs() <= tolerance, "{profile}: {now:.3} now, {kept:.3} in the weights file");
    }
}

#[test]
fn the_constants_for_bodies_hold() {
    // Questions about everyday life fit no skill for developers; near misses of authors are too near to
    // tell apart by a score.
    let (Some(trigger), Some(clinc)) = (set("skilltrig"), set("clinc150")) else { return };
    let kept = Weights::shipped().unwrap().profiles.bodies.confidence;
    compare("bodies", &[trigger], &clinc.out_of_scope, &kept);
}

#[test]
fn the_constants_for_short_texts_hold() {
    let Some(clinc) = set("clinc150") else { return };
    let strangers = clinc.out_of_scope.clone();
    let mut sets = vec![clinc];
    sets.extend(["banking77", "metatool", "sealtools"].into_iter().filter_map(set));
    compare("short", &sets, &strangers, &Weights::shipped().unwrap().profiles.short.confidence);
}

/// z of the best answers in collections of `n` skills cut out of a set: of requests that have a skill, and of
/// strangers.
fn small(set: &Set, strangers: &[Case], n: usize) -> (Vec<f64>, Vec<f64>) {
    let best = |router: &Router, case: &Case| {
        let request = Request { intent: case.query.clone(), ..Request::default() };
        router.discover(&request).unwrap().results.first().map_or(0.0, |hit| hit.z)
    };
    let (mut fitting, mut strange) = (Vec::new(), Vec::new());
    for (at, documents) in set.skills.chunks_exact(n).enumerate() {
        let mut router = Router::new(Weights::shipped().unwrap());
        router.update(documents.to_vec(), &[]);
        let here = |case: &&Case| match &case.expect {
            Expect::AnyOf(expected) => documents.iter().any(|d| expected.contains(&d.id)),
            Expect::Nothing | Expect::Not(_) => false,
        };
        fitting.extend(set.queries.iter().filter(here).map(|case| best(&router, case)));
        let some = strangers.iter().skip(at % 7).step_by(7);
        strange.extend(some.map(|case| best(&router, case)));
    }
    (fitting, strange)
}

#[test]
fn explore() {
    let (Some(trigger), Some(clinc)) = (set("skilltrig"), set("clinc150")) else { return };
    for n in [8, 16, 32, 64, 100, 207] {
        let (fitting, strange) = small(&trigger, &clinc.out_of_scope, n);
        let t = keeps(&fitting, 0.94).unwrap();
        let (s, h) = (keeps(&fitting, 0.80).unwrap(), keeps(&fitting, 0.50).unwrap());
        let turned = strange.iter().filter(|z| **z < t).count() as f64 / strange.len() as f64;
        println!("{n:4} {:4} fits_from {t:.3} sure {s:.3} high {h:.3} strangers turned down {turned:.3}", fitting.len());
    }
}
