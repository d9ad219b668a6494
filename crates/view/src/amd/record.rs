//! JSON objects put together field by field: fields that are not known are left out.

use crate::json::{Hex, Words};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A value of a field.
pub enum Value<'a> {
    Text(&'a str),
    Owned(String),
    Number(u64),
    Hex(Hex),
    Flag(bool),
    Words(&'a [u32]),
    Numbers(Vec<u64>),
    Texts(Vec<&'a str>),
    Record(Record<'a>),
    Records(Vec<Record<'a>>),
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Text(text) => s.serialize_str(text),
            Value::Owned(text) => s.serialize_str(text),
            Value::Number(number) => s.serialize_u64(*number),
            Value::Hex(hex) => hex.serialize(s),
            Value::Flag(flag) => s.serialize_bool(*flag),
            Value::Words(words) => Words(words).serialize(s),
            Value::Numbers(numbers) => s.collect_seq(numbers),
            Value::Texts(texts) => s.collect_seq(texts),
            Value::Record(record) => record.serialize(s),
            Value::Records(records) => s.collect_seq(records),
        }
    }
}

/// A number that may not be known.
pub trait Number {
    /// As a number.
    fn number(self) -> Option<u64>;
}

impl Number for u16 {
    fn number(self) -> Option<u64> {
        Some(self.into())
    }
}

impl Number for u32 {
    fn number(self) -> Option<u64> {
        Some(self.into())
    }
}

impl Number for u64 {
    fn number(self) -> Option<u64> {
        Some(self)
    }
}

impl<N: Number> Number for Option<N> {
    fn number(self) -> Option<u64> {
        self?.number()
    }
}

/// An object.
#[derive(Default)]
pub struct Record<'a>(Vec<(&'static str, Value<'a>)>);

impl<'a> Record<'a> {
    /// A line of this type.
    pub fn line(ty: &'static str) -> Record<'a> {
        Record::default().text("type", ty)
    }

    /// Adds a field.
    pub fn with(mut self, name: &'static str, value: Value<'a>) -> Record<'a> {
        self.0.push((name, value));
        self
    }

    /// A text.
    pub fn text(self, name: &'static str, value: impl Into<Option<&'a str>>) -> Record<'a> {
        self.maybe(name, value.into().map(Value::Text))
    }

    /// A number.
    pub fn number(self, name: &'static str, value: impl Number) -> Record<'a> {
        self.maybe(name, value.number().map(Value::Number))
    }

    /// A register's value.
    pub fn dword(self, name: &'static str, value: impl Into<Option<u32>>) -> Record<'a> {
        self.maybe(name, value.into().map(|value| Value::Hex(Hex::dword(value))))
    }

    /// A GPU address, or a value of 64 bits.
    pub fn wide(self, name: &'static str, value: impl Into<Option<u64>>) -> Record<'a> {
        self.maybe(name, value.into().map(|value| Value::Hex(Hex::wide(value))))
    }

    /// Whether something is so.
    pub fn flag(self, name: &'static str, value: impl Into<Option<bool>>) -> Record<'a> {
        self.maybe(name, value.into().map(Value::Flag))
    }

    /// A value if there is one.
    pub fn maybe(self, name: &'static str, value: Option<Value<'a>>) -> Record<'a> {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
