//! Parameters of statements and rows of results, independent of the database.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use super::failed;
use crate::{RunId, StoreError};

/// A parameter, or a column of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

impl Value<'_> {
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Real(value) => Value::Real(value),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

/// Counts are far below the limit of a signed number.
impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<usize> for Value<'_> {
    fn from(value: usize) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl<'a> From<&'a RunId> for Value<'a> {
    fn from(value: &'a RunId) -> Self {
        Self::Text(Cow::Borrowed(&value.0))
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

#[derive(Debug)]
pub(crate) struct Row(pub Vec<Value<'static>>);

/// Types that a column can be read as.
pub(crate) trait Column: Sized {
    fn read(value: &mut Value<'static>) -> Option<Self>;
}

impl Column for i64 {
    fn read(value: &mut Value<'static>) -> Option<Self> {
        match value {
            Value::Int(number) => Some(*number),
            // `SQLite` stores a sum that overflows as a real number, which the conversion limits to the range of integers.
            Value::Real(number) => Some(*number as i64),
            _ => None,
        }
    }
}

impl Column for u64 {
    fn read(value: &mut Value<'static>) -> Option<Self> {
        i64::read(value).map(i64::unsigned_abs)
    }
}

impl Column for u32 {
    fn read(value: &mut Value<'static>) -> Option<Self> {
        i64::read(value)?.try_into().ok()
    }
}

impl Column for bool {
    fn read(value: &mut Value<'static>) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(*value),
            Value::Int(number) => Some(*number != 0),
            _ => None,
        }
    }
}

impl Column for String {
    fn read(value: &mut Value<'static>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(std::mem::take(text).into_owned()),
            _ => None,
        }
    }
}

impl Column for RunId {
    fn read(value: &mut Value<'static>) -> Option<Self> {
        String::read(value).map(RunId)
    }
}

impl<T: Column> Column for Option<T> {
    fn read(value: &mut Value<'static>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::read(value).map(Some),
        }
    }
}

impl Row {
    /// Takes a column out of the row, without copying its text.
    pub fn take<T: Column>(&mut self, index: usize) -> Result<T, StoreError> {
        let value = self.0.get_mut(index).and_then(T::read);
        value.ok_or_else(|| failed("read a row", &format!("column {index} has another type")))
    }

    /// Returns the text of a column; `None` for null.
    pub fn text(&self, index: usize) -> Option<&str> {
        match self.0.get(index) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Reads a column of JSON text.
    pub fn json<T: DeserializeOwned>(&self, index: usize) -> Result<T, StoreError> {
        let text =
            self.text(index).ok_or_else(|| failed("read a row", &format!("column {index} is not a text")))?;
        serde_json::from_str(text).map_err(|error| failed("read a row", &format!("column {index}: {error}")))
    }

    /// Like [`Self::json`], for a column that may be null.
    pub fn optional_json<T: DeserializeOwned>(&self, index: usize) -> Result<Option<T>, StoreError> {
        self.text(index).is_some().then(|| self.json(index)).transpose()
    }
}
