//! Confidence: a fitted function of the score, reported as a label.

use super::answer::{Confidence, Fit, Margin};
use super::weights::Fitted;

/// Computes the confidence from the first score, of which `base` are rule terms, and its margin over the second
/// (infinite if there is no second result).
pub(crate) fn confidence(fitted: &Fitted, score: f64, margin: f64, base: f64) -> Confidence {
    let z = score - base;
    let fit = if z < fitted.fit_threshold {
        Fit::None
    } else if z < fitted.medium_threshold {
        Fit::Low
    } else if z < fitted.high_threshold {
        Fit::Medium
    } else {
        Fit::High
    };
    Confidence {
        fit,
        p_fit: fitted.p_fit(z),
        fit_threshold: fitted.fit_threshold + base,
        medium_threshold: fitted.medium_threshold + base,
        lead: if margin >= fitted.lead { Margin::Clear } else { Margin::Ambiguous },
    }
}

impl Fitted {
    /// Computes σ(α·z + β).
    pub(crate) fn p_fit(&self, z: f64) -> f64 {
        sigmoid(self.slope * z + self.offset)
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Fits slope and offset of σ(α·z + β) to (z, fits) pairs: logistic regression by Newton's method.
///
/// Returns `None` if the pairs do not determine them (too few, or perfectly separated).
#[must_use]
pub fn fit_confidence(pairs: &[(f64, bool)]) -> Option<(f64, f64)> {
    let (mut a, mut b) = (0.0, 0.0);
    for _ in 0..100 {
        let (mut ga, mut gb, mut haa, mut hab, mut hbb) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &(z, fits) in pairs {
            let p = sigmoid(a * z + b);
            let error = f64::from(u8::from(fits)) - p;
            let w = p * (1.0 - p);
            ga += error * z;
            gb += error;
            haa += w * z * z;
            hab += w * z;
            hbb += w;
        }
        let det = haa * hbb - hab * hab;
        if det.abs() < 1e-12 {
            return None;
        }
        let (da, db) = ((hbb * ga - hab * gb) / det, (haa * gb - hab * ga) / det);
        a += da;
        b += db;
        if da.abs() + db.abs() < 1e-9 {
            return Some((a, b));
        }
    }
    None
}

/// Returns the largest value that the given share of the values reaches; 0.94 gives the z that keeps 94 % of them.
#[must_use]
pub fn keeps(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let last = ((sorted.len() as f64 * share).ceil() as usize).checked_sub(1)?;
    sorted.get(last).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FITTED: Fitted = Fitted {
        slope: 4.0,
        offset: -6.0,
        fit_threshold: 1.2,
        medium_threshold: 1.6,
        high_threshold: 2.0,
        lead: 0.3,
        at: 200,
        growth: 0.125,
        growth_below: 0.125,
        lead_growth: 0.1,
    };

    #[test]
    fn thresholds_grow_with_the_collection() {
        assert_eq!(FITTED.at(200), FITTED);
        let many = FITTED.at(1_478); // two e-folds more
        assert!(
            (many.fit_threshold - 1.45).abs() < 0.001 && (many.medium_threshold - 1.85).abs() < 0.001,
            "{many:?}"
        );
        assert!((many.p_fit(1.75) - FITTED.p_fit(1.5)).abs() < 0.001);
        let few = FITTED.at(27); // two e-folds fewer
        assert!((few.fit_threshold - 0.95).abs() < 0.01 && few.lead < FITTED.lead, "{few:?}");
        assert!((FITTED.at(0).fit_threshold - 0.54).abs() < 0.01);
    }

    #[test]
    fn each_threshold_changes_the_confidence() {
        let fit = |z| confidence(&FITTED, z, 1.0, 0.0).fit;
        assert_eq!([1.19, 1.2, 1.6, 2.0].map(fit), [Fit::None, Fit::Low, Fit::Medium, Fit::High]);
        assert!((confidence(&FITTED, 1.66, 1.0, 0.16).p_fit - 0.5).abs() < 1e-12);
    }

    #[test]
    fn close_second_result_is_ambiguous() {
        assert_eq!(confidence(&FITTED, 2.0, 0.29, 0.0).lead, Margin::Ambiguous);
        assert_eq!(confidence(&FITTED, 2.0, f64::INFINITY, 0.0).lead, Margin::Clear);
    }

    #[test]
    fn known_curve_is_fitted() {
        // 100 draws at each z, with the proportion of fits given by the curve.
        let mut pairs = Vec::new();
        for step in 0..20 {
            let z = f64::from(step) * 0.15;
            let fits = (100.0 * sigmoid(4.0 * z - 6.0)).round() as usize;
            pairs.extend((0..100).map(|i| (z, i < fits)));
        }
        let (a, b) = fit_confidence(&pairs).unwrap();
        assert!((a - 4.0).abs() < 0.15 && (b + 6.0).abs() < 0.2, "{a} {b}");
        assert_eq!(fit_confidence(&[]), None);
    }

    #[test]
    fn threshold_keeps_the_requested_share() {
        assert_eq!(keeps(&[5.0, 1.0, 2.0, 3.0, 4.0], 0.8), Some(2.0));
        assert_eq!(keeps(&[], 0.8), None);
    }
}
