//! The named values of a finding: what its words are made of, and what programs compare.

use std::borrow::Cow;

/// A value of a finding or of a field of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A name of hardware or a driver, the same in every run: a register, packet, field, block, enum value.
    Name(Cow<'static, str>),
    /// A count or an index, for people in decimal.
    Number(u64),
    /// A register's or memory's value, for people in hexadecimal.
    Value(u64),
    /// A GPU address.
    Address(u64),
    /// Whether something holds.
    Flag(bool),
    /// Text that somebody else wrote: a process, a line of a log. It may change from run to run.
    Text(String),
    /// Several values of one kind.
    List(Vec<Arg>),
    /// A thing with named values of its own, such as a draw.
    Record(Args),
}

/// Named values, in the order they were added. Names are lower case with underscores, and are those of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args(Vec<(&'static str, Arg)>);

impl Args {
    /// No values.
    pub fn new() -> Args {
        Args::default()
    }

    /// Adds a value, and hands everything back.
    #[must_use]
    pub fn with(mut self, name: &'static str, arg: impl Into<Arg>) -> Args {
        self.0.push((name, arg.into()));
        self
    }

    /// Adds a value if there is one, and hands everything back.
    #[must_use]
    pub fn with_some(self, name: &'static str, arg: Option<impl Into<Arg>>) -> Args {
        match arg {
            Some(arg) => self.with(name, arg),
            None => self,
        }
    }

    /// The names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Arg)> {
        self.0.iter().map(|(name, arg)| (*name, arg))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A value by name.
    pub fn get(&self, name: &str) -> Option<&Arg> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, arg)| arg)
    }

    /// A number, value or address by name.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Arg::Number(n) | Arg::Value(n) | Arg::Address(n) => Some(*n),
            _ => None,
        }
    }

    /// A name or a text by name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Arg::Name(text) => Some(text),
            Arg::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether a flag is there and set.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Arg::Flag(true))
    }

    /// A list by name; empty where there is none.
    pub fn list(&self, name: &str) -> &[Arg] {
        match self.get(name) {
            Some(Arg::List(list)) => list,
            _ => &[],
        }
    }

    /// A record by name.
    pub fn record(&self, name: &str) -> Option<&Args> {
        match self.get(name)? {
            Arg::Record(args) => Some(args),
            _ => None,
        }
    }
}

impl Arg {
    /// A name.
    pub fn name(name: impl Into<Cow<'static, str>>) -> Arg {
        Arg::Name(name.into())
    }
}

impl From<bool> for Arg {
    fn from(flag: bool) -> Arg {
        Arg::Flag(flag)
    }
}

impl From<Vec<Arg>> for Arg {
    fn from(list: Vec<Arg>) -> Arg {
        Arg::List(list)
    }
}

impl From<Args> for Arg {
    fn from(args: Args) -> Arg {
        Arg::Record(args)
    }
}
