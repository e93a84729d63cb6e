//! Valid expressions of contracts, and common mistakes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

struct Vars(Value);

impl Scope for Vars {
    fn resolve(&self, path: &[String]) -> Result<Value, String> {
        let mut at = &self.0;
        for part in path {
            at = at.get(part).ok_or_else(|| format!("{} is not there", path.join(".")))?;
        }
        Ok(at.clone())
    }
}

fn scope() -> Vars {
    Vars(json!({
        "inputs": {"language": "es", "text": ""},
        "vars": {"score": 0.75, "attempts": 2, "status": "approved", "category": "legal",
                 "is_ready": true, "is_locked": false, "docs": [1, 2.0], "none": null}
    }))
}

fn is_truthy(text: &str) -> Result<bool, ExpressionError> {
    Expr::parse(text)?.is_truthy(&scope())
}

#[test]
fn conditions_of_contracts_are_evaluated() {
    for (text, expected) in [
        ("vars.status == 'approved'", true),
        ("vars.score >= 0.8", false),
        ("vars.is_ready and not vars.is_locked", true),
        ("inputs.language in ['es', 'en', 'fr']", true),
        ("vars.category not in [\"finance\", 'legal']", false),
        ("(vars.score > 0.7 or vars.override == true) and vars.attempts < 5", true),
        ("not vars.is_ready or vars.attempts == 2.0", true),
        ("inputs.text", false),
        ("vars.none == null", true),
        ("vars.none != none", false),
        ("vars.docs == [1.0, 2]", true),
        ("'pro' in vars.status", true),
        ("-1 < 0", true),
        ("not not true", true),
    ] {
        assert_eq!(is_truthy(text), Ok(expected), "{text}");
    }
}

#[test]
fn right_operand_is_not_evaluated_after_a_decisive_left() {
    assert_eq!(is_truthy("vars.is_locked and vars.missing == 1"), Ok(false));
    assert_eq!(is_truthy("vars.is_ready or vars.missing == 1"), Ok(true));
    assert_eq!(
        is_truthy("vars.missing == 1"),
        Err(ExpressionError::Reference("vars.missing is not there".into()))
    );
}

#[test]
fn errors_have_position_and_reason() {
    let errors: Vec<String> = [
        "vars.a = 1",
        "vars.a ==",
        "(true",
        "'open",
        "true false",
        "[1 2]",
        "1 not 2",
        "vars..a",
        "1.2.3",
        "vars.status > 1",
        "1 in 2",
    ]
    .iter()
    .map(|text| format!("{text:18} {}", is_truthy(text).unwrap_err()))
    .collect();
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn deep_nesting_is_rejected_without_overflow() {
    let deep = format!("{}true{}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(matches!(Expr::parse(&deep), Err(ExpressionError::Syntax { .. })));
    assert!(matches!(Expr::parse(&"not ".repeat(10_000)), Err(ExpressionError::Syntax { .. })));
    assert!(matches!(Expr::parse(&"[".repeat(10_000)), Err(ExpressionError::Syntax { .. })));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[a-z.'\"()\\[\\],<>=! 0-9-]{0,40}") {
        if let Ok(expr) = Expr::parse(&text) {
            let _ = expr.is_truthy(&scope());
            let _ = expr.references();
        }
    }

    #[test]
    fn comparisons_agree_with_numbers(a in -1000_i32..1000, b in -1000_i32..1000) {
        prop_assert_eq!(is_truthy(&format!("{a} < {b}")), Ok(a < b));
        prop_assert_eq!(is_truthy(&format!("{a} >= {b}.0")), Ok(a >= b));
        prop_assert_eq!(is_truthy(&format!("{a} in [{b}, 5]")), Ok(a == b || a == 5));
    }
}

#[test]
fn long_chains_nest_one_level() {
    for word in ["and", "or"] {
        let text = format!("{}a", format!("a {word} ").repeat(300_000));
        let expr = Expr::parse(&text).unwrap();
        assert_eq!(expr.references().len(), 300_001);
        assert_eq!(expr.clone(), expr);
    }
}
