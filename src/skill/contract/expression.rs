//! The expressions of contracts: `condition`, `while`, `router.on` and `foreach.items`. A closed little
//! language (comparison, membership, boolean logic, dotted references), parsed by recursive descent and
//! evaluated over JSON values; nothing of it reaches the host.
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
    /// A dotted path, first part the namespace.
    Reference(Vec<String>),
    /// A list of expressions.
    List(Vec<Expr>),
    /// Negation.
    Not(Box<Expr>),
    /// Conjunction of two or more; evaluated up to the first that does not hold.
    And(Vec<Expr>),
    /// Disjunction of two or more; evaluated up to the first that holds.
    Or(Vec<Expr>),
    /// A comparison.
    Compare(Box<Expr>, Operator, Box<Expr>),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[allow(missing_docs, reason = "the serialized forms are the operators")]
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

/// Why an expression cannot be read or has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It does not follow the grammar. The column counts characters from 1.
    #[error("column {column}: {message}")]
    Syntax {
        /// Where.
        column: usize,
        /// What was found and what is allowed.
        message: String,
    },
    /// An unresolved reference.
    #[error("{0}")]
    Reference(String),
    /// Two values that cannot be compared this way.
    #[error("{left} {operator} {right}: {reason}")]
    Types {
        /// Left value, as JSON.
        left: String,
        /// The comparison.
        operator: String,
        /// Right value, as JSON.
        right: String,
        /// Why not.
        reason: &'static str,
    },
}

/// Where references are looked up.
pub trait Scope {
    /// The value at a dotted path.
    ///
    /// # Errors
    /// A sentence that names the path, where the namespace demands that it exists.
    fn resolve(&self, path: &[String]) -> Result<Value, String>;
}

impl Expr {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`ExpressionError::Syntax`] with the column; also for nesting deeper than 64.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        parse::parse(text)
    }

    /// Its value in a scope.
    ///
    /// # Errors
    /// A reference that leads nowhere, or a comparison of values that have no order.
    pub fn value(&self, scope: &dyn Scope) -> Result<Value, ExpressionError> {
        evaluate::value(self, scope)
    }

    /// Whether it holds: false, null, 0, empty texts, lists and objects do not.
    ///
    /// # Errors
    /// As [`Expr::value`].
    pub fn holds(&self, scope: &dyn Scope) -> Result<bool, ExpressionError> {
        Ok(evaluate::truth(&self.value(scope)?))
    }

    /// All references in it, for checks before anything runs.
    #[must_use]
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
