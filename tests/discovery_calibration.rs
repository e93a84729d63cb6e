//! The confidence constants of the weights file are those that the public query sets give.
#![allow(clippy::unwrap_used, reason = "a set that cannot be read or ranked has to fail the test")]

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
            full_at: 0,
            shrink: 0.0,
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
        let mut router = Router::new(Weights::shipped().unwrap().patient());
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

/// The shares of requests kept, and of strangers turned down, in small collections.
fn shares(set: &Set, strangers: &[Case], fitted: &Fitted, n: usize) -> (f64, f64) {
    let (fitting, strange) = small(set, strangers, n);
    let bar = fitted.at(n).fits_from;
    let share = |z: &[f64], holds: &dyn Fn(f64) -> bool| {
        z.iter().filter(|z| holds(**z)).count() as f64 / z.len() as f64
    };
    (share(&fitting, &|z| z >= bar), share(&strange, &|z| z < bar))
}

#[test]
fn small_collections_keep_their_requests_and_turn_strangers_down() {
    let (Some(trigger), Some(clinc)) = (set("skilltrig"), set("clinc150")) else { return };
    let profiles = Weights::shipped().unwrap().profiles;
    for n in [16, 64] {
        let (kept, turned) = shares(&trigger, &clinc.out_of_scope, &profiles.bodies.confidence, n);
        println!("bodies, {n} skills: {kept:.3} kept, {turned:.3} turned down");
        assert!(kept > 0.92 && turned > 0.85, "bodies, {n} skills: {kept:.3} {turned:.3}");
        let (kept, turned) = shares(&clinc, &clinc.out_of_scope, &profiles.short.confidence, n);
        println!("short, {n} skills: {kept:.3} kept, {turned:.3} turned down");
        assert!(kept > 0.94 && turned > 0.60, "short, {n} skills: {kept:.3} {turned:.3}");
    }
}
