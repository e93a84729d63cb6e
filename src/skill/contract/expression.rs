//! The expressions of contracts: `condition`, `while`, `router.on` and `foreach.items`. A small closed language
//! (comparison, membership, boolean logic, dotted references), parsed by recursive descent and evaluated over JSON
//! values; expressions cannot access the host.
//!
//! Grammar, lowest precedence first:
//! `expr := and ("or" and)*`, `and := not ("and" not)*`, `not := "not" not | cmp`,
//! `cmp := value (op value)?` with `op` one of `== != > < >= <= in`, `not in`,
//! `value := string | number | "true" | "false" | "null" | "none" | list | "(" expr ")" | ref`.

mod evaluate;
mod parse;

use serde_json::Value;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A JSON constant.
    Constant(Value),
    /// A dotted path whose first part is the namespace.
    Reference(Vec<String>),
    /// A list of expressions.
    List(Vec<Expr>),
    /// Negation.
    Not(Box<Expr>),
    /// Conjunction of two or more expressions; stops at the first that is false.
    And(Vec<Expr>),
    /// Disjunction of two or more expressions; stops at the first that is true.
    Or(Vec<Expr>),
    /// A comparison.
    Compare(Box<Expr>, Operator, Box<Expr>),
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum Operator {
    #[strum(serialize = "==")]
    Equal,
    #[strum(serialize = "!=")]
    NotEqual,
    #[strum(serialize = ">")]
    Greater,
    #[strum(serialize = "<")]
    Less,
    #[strum(serialize = ">=")]
    GreaterOrEqual,
    #[strum(serialize = "<=")]
    LessOrEqual,
    #[strum(serialize = "in")]
    In,
    #[strum(serialize = "not in")]
    NotIn,
}

/// Why an expression is invalid or has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It does not follow the grammar. The column counts characters from 1.
    #[error("column {column}: {message}")]
    Syntax {
        column: usize,
        /// What was found and what is allowed.
        message: String,
    },
    /// An unresolved reference.
    #[error("{0}")]
    Reference(String),
    /// The two values cannot be compared with this operator.
    #[error("{left} {operator} {right}: {reason}")]
    Types {
        /// Left value, as JSON.
        left: String,
        operator: String,
        /// Right value, as JSON.
        right: String,
        reason: &'static str,
    },
}

/// Resolves references.
pub trait Scope {
    /// Returns the value at a dotted path.
    ///
    /// # Errors
    /// Returns a sentence that names the path, if the namespace requires that it exists.
    fn resolve(&self, path: &[String]) -> Result<Value, String>;
}

impl Expr {
    /// Parses an expression.
    ///
    /// # Errors
    /// Returns [`ExpressionError::Syntax`] with the column; also for nesting deeper than 64 levels.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        parse::parse(text)
    }

    /// Evaluates the expression in a scope.
    ///
    /// # Errors
    /// Returns an error for an unresolved reference, or a comparison of values without an order.
    pub fn value(&self, scope: &dyn Scope) -> Result<Value, ExpressionError> {
        evaluate::value(self, scope)
    }

    /// Returns whether the value counts as true: false, null, 0, and empty texts, lists and objects do not.
    pub fn is_truthy(&self, scope: &dyn Scope) -> Result<bool, ExpressionError> {
        Ok(evaluate::truth(&self.value(scope)?))
    }

    /// Returns all references, for checks before execution.
    pub fn references(&self) -> Vec<&[String]> {
        match self {
            Self::Constant(_) => Vec::new(),
            Self::Reference(path) => vec![path],
            Self::List(items) | Self::And(items) | Self::Or(items) => {
                items.iter().flat_map(Self::references).collect()
            }
            Self::Not(inner) => inner.references(),
            Self::Compare(a, _, b) => {
                let mut all = a.references();
                all.extend(b.references());
                all
            }
        }
    }
}

#[cfg(test)]
mod tests;
