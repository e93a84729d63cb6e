//! Evaluates expressions.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Expr, ExpressionError, Operator, Scope};

pub(super) fn value(expr: &Expr, scope: &dyn Scope) -> Result<Value, ExpressionError> {
    Ok(match expr {
        Expr::Constant(constant) => constant.clone(),
        Expr::Reference(path) => scope.resolve(path).map_err(ExpressionError::Reference)?,
        Expr::List(items) => {
            Value::Array(items.iter().map(|item| value(item, scope)).collect::<Result<_, _>>()?)
        }
        Expr::Not(inner) => Value::Bool(!truth(&value(inner, scope)?)),
        Expr::And(items) => Value::Bool(!any(items, false, scope)?),
        Expr::Or(items) => Value::Bool(any(items, true, scope)?),
        Expr::Compare(a, operator, b) => {
            Value::Bool(compare(&value(a, scope)?, *operator, &value(b, scope)?)?)
        }
    })
}

/// Returns whether any of the expressions has this truth value; those after it are not evaluated.
fn any(items: &[Expr], requested: bool, scope: &dyn Scope) -> Result<bool, ExpressionError> {
    for item in items {
        if truth(&value(item, scope)?) == requested {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a value counts as true.
pub(super) fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(s) => !s.is_empty(),
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
    }
}

fn compare(left: &Value, operator: Operator, right: &Value) -> Result<bool, ExpressionError> {
    let types = |reason| ExpressionError::Types {
        left: left.to_string(),
        operator: operator.to_string(),
        right: right.to_string(),
        reason,
    };
    Ok(match operator {
        Operator::Equal => equal(left, right),
        Operator::NotEqual => !equal(left, right),
        Operator::In | Operator::NotIn => {
            let found = match (left, right) {
                (_, Value::Array(items)) => items.iter().any(|item| equal(left, item)),
                (Value::String(part), Value::String(container)) => container.contains(part.as_str()),
                (Value::String(key), Value::Object(map)) => map.contains_key(key),
                _ => return Err(types("the right side is not a list, string or object")),
            };
            found == (operator == Operator::In)
        }
        Operator::Greater | Operator::Less | Operator::GreaterOrEqual | Operator::LessOrEqual => {
            let order =
                order(left, right).ok_or_else(|| types("only two numbers or two strings can be compared"))?;
            match operator {
                Operator::Greater => order == Ordering::Greater,
                Operator::Less => order == Ordering::Less,
                Operator::GreaterOrEqual => order != Ordering::Less,
                _ => order != Ordering::Greater,
            }
        }
    })
}

/// Compares values for equality; 1 and 1.0 are equal, at any depth.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => order(left, right) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| equal(v, w)))
        }
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}
