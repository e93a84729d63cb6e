//! Parses the text of an expression to [`Expr`].

use serde_json::{Number, Value};

use super::{Expr, ExpressionError, Operator};

/// Maximum nesting; deeper expressions are rejected, so that no text can exhaust the stack.
const DEPTH: usize = 64;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Constant(Value),
    Sign(&'static str),
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(word) => write!(f, "{word:?}"),
            Self::Constant(value) => write!(f, "{value}"),
            Self::Sign(sign) => write!(f, "{sign:?}"),
            Self::End => f.write_str("the end"),
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Expr, ExpressionError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let expr = parser.or()?;
    match parser.peek() {
        Token::End => Ok(expr),
        other => Err(parser.wrong(&format!(
            "unexpected {other} after the expression; combine expressions with \
                and, or"
        ))),
    }
}

fn syntax(column: usize, message: impl Into<String>) -> ExpressionError {
    ExpressionError::Syntax { column, message: message.into() }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let start = i;
        let c = chars[i];
        let token = match c {
            _ if c.is_whitespace() => {
                i += 1;
                continue;
            }
            '\'' | '"' => {
                let mut string = String::new();
                i += 1;
                loop {
                    match chars.get(i) {
                        None => return Err(syntax(start + 1, "missing closing quote")),
                        Some(&q) if q == c => break,
                        Some('\\') if chars.get(i + 1).is_some_and(|&n| n == c || n == '\\') => {
                            string.push(chars[i + 1]);
                            i += 2;
                        }
                        Some(&other) => {
                            string.push(other);
                            i += 1;
                        }
                    }
                }
                i += 1;
                Token::Constant(Value::String(string))
            }
            _ if c.is_ascii_digit() || (c == '-' && chars.get(i + 1).is_some_and(char::is_ascii_digit)) => {
                i += 1;
                while chars.get(i).is_some_and(|&d| d.is_ascii_digit() || matches!(d, '.' | 'e' | 'E')) {
                    i += 1;
                }
                let number: String = chars[start..i].iter().collect();
                let value = number
                    .parse::<i64>()
                    .map(Number::from)
                    .ok()
                    .or_else(|| number.parse::<f64>().ok().and_then(Number::from_f64));
                Token::Constant(Value::Number(
                    value.ok_or_else(|| syntax(start + 1, format!("{number:?} is not a number")))?,
                ))
            }
            _ if c.is_alphabetic() || c == '_' => {
                while chars.get(i).is_some_and(|&d| d.is_alphanumeric() || matches!(d, '_' | '-' | '.')) {
                    i += 1;
                }
                let word: String = chars[start..i].iter().collect();
                match word.as_str() {
                    "true" | "True" => Token::Constant(Value::Bool(true)),
                    "false" | "False" => Token::Constant(Value::Bool(false)),
                    "null" | "none" | "None" => Token::Constant(Value::Null),
                    _ => Token::Word(word),
                }
            }
            _ => {
                let two: String = chars[i..(i + 2).min(chars.len())].iter().collect();
                let sign = ["==", "!=", ">=", "<=", ">", "<", "(", ")", "[", "]", ","]
                    .into_iter()
                    .find(|s| two.starts_with(s))
                    .ok_or_else(|| {
                        syntax(
                            start + 1,
                            format!("unexpected {c:?}; operators are == != > < >= <= ( ) [ ] ,"),
                        )
                    })?;
                i += sign.len();
                Token::Sign(sign)
            }
        };
        out.push((start + 1, token));
    }
    out.push((chars.len() + 1, Token::End));
    Ok(out)
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].1
    }

    fn wrong(&self, message: &str) -> ExpressionError {
        syntax(self.tokens[self.at].0, message)
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].1.clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(w) if w == word);
        if found {
            self.next();
        }
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(s) if *s == sign);
        if found {
            self.next();
        }
        found
    }

    fn or(&mut self) -> Result<Expr, ExpressionError> {
        let first = self.and()?;
        self.chain(first, "or", Self::and, Expr::Or)
    }

    fn and(&mut self) -> Result<Expr, ExpressionError> {
        let first = self.not()?;
        self.chain(first, "and", Self::not, Expr::And)
    }

    /// Parses operands joined by a word into one flat list, so that a chain of any length adds only one level of
    /// nesting.
    fn chain(
        &mut self,
        first: Expr,
        word: &str,
        next: fn(&mut Self) -> Result<Expr, ExpressionError>,
        join: fn(Vec<Expr>) -> Expr,
    ) -> Result<Expr, ExpressionError> {
        let mut items = vec![first];
        while self.word(word) {
            items.push(next(self)?);
        }
        Ok(if items.len() > 1 { join(items) } else { items.remove(0) })
    }

    fn not(&mut self) -> Result<Expr, ExpressionError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.wrong("the expression is nested too deeply"));
        }
        let expr = if self.word("not") { Expr::Not(Box::new(self.not()?)) } else { self.compare()? };
        self.depth -= 1;
        Ok(expr)
    }

    fn compare(&mut self) -> Result<Expr, ExpressionError> {
        let left = self.value()?;
        let operator = match self.peek() {
            Token::Sign("==") => Operator::Equal,
            Token::Sign("!=") => Operator::NotEqual,
            Token::Sign(">") => Operator::Greater,
            Token::Sign("<") => Operator::Less,
            Token::Sign(">=") => Operator::GreaterOrEqual,
            Token::Sign("<=") => Operator::LessOrEqual,
            Token::Word(w) if w == "in" => Operator::In,
            Token::Word(w) if w == "not" => {
                self.next();
                if !matches!(self.peek(), Token::Word(w) if w == "in") {
                    return Err(self.wrong("expected \"in\" after \"not\""));
                }
                Operator::NotIn
            }
            _ => return Ok(left),
        };
        self.next();
        Ok(Expr::Compare(Box::new(left), operator, Box::new(self.value()?)))
    }

    fn value(&mut self) -> Result<Expr, ExpressionError> {
        if self.sign("(") {
            let inner = self.or()?;
            return if self.sign(")") { Ok(inner) } else { Err(self.wrong("a closing ) is missing")) };
        }
        if self.sign("[") {
            let mut items = Vec::new();
            while !self.sign("]") {
                if !items.is_empty() && !self.sign(",") {
                    return Err(self.wrong("a , or ] is missing in this list"));
                }
                items.push(self.or()?);
            }
            return Ok(Expr::List(items));
        }
        match self.peek().clone() {
            Token::Constant(value) => {
                self.next();
                Ok(Expr::Constant(value))
            }
            Token::Word(word) if !matches!(word.as_str(), "and" | "or" | "not" | "in") => {
                let path: Vec<String> = word.split('.').map(str::to_owned).collect();
                if path.iter().any(String::is_empty) {
                    return Err(self.wrong(&format!("{word:?} has an empty component")));
                }
                self.next();
                Ok(Expr::Reference(path))
            }
            other => Err(self.wrong(&format!("expected a value, found {other}"))),
        }
    }
}
