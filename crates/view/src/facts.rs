//! The data of findings as JSON: subjects, named values and typed evidence, under names that stay.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use unwedge_postmortem::{Arg, Args, Fact, FieldFact, Subject};

/// Named values, in their order.
pub(crate) struct JsonArgs<'r>(pub(crate) &'r Args);

/// A value. Values and addresses are in hexadecimal, numbers in decimal.
struct JsonArg<'r>(&'r Arg);

/// A subject: `kind`, and what identifies it.
pub(crate) struct JsonSubject<'r>(pub(crate) &'r Subject);

/// Typed evidence: `kind`, and what it says.
pub(crate) struct JsonFact<'r>(pub(crate) &'r Fact);

/// An address, as everywhere in the JSON of reports.
pub(crate) fn address(iova: u64) -> String {
    format!("{iova:#018x}")
}

fn hex(value: u64) -> String {
    format!("{value:#x}")
}

fn words(words: &[u32]) -> Vec<String> {
    words.iter().map(|word| format!("{word:#010x}")).collect()
}

impl Serialize for JsonArgs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, arg) in self.0.iter() {
            map.serialize_entry(name, &JsonArg(arg))?;
        }
        map.end()
    }
}

impl Serialize for JsonArg<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Arg::Name(name) => serializer.serialize_str(name),
            Arg::Text(text) => serializer.serialize_str(text),
            Arg::Number(number) => serializer.serialize_u64(*number),
            Arg::Value(value) => serializer.serialize_str(&hex(*value)),
            Arg::Address(iova) => serializer.serialize_str(&address(*iova)),
            Arg::Flag(flag) => serializer.serialize_bool(*flag),
            Arg::List(list) => {
                let mut seq = serializer.serialize_seq(Some(list.len()))?;
                for arg in list {
                    seq.serialize_element(&JsonArg(arg))?;
                }
                seq.end()
            }
            Arg::Record(args) => JsonArgs(args).serialize(serializer),
        }
    }
}

impl Serialize for JsonSubject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let mut named = |kind: &str, name: Option<&str>, iova: Option<u64>| {
            map.serialize_entry("kind", kind)?;
            if let Some(name) = name {
                map.serialize_entry("name", name)?;
            }
            iova.map_or(Ok(()), |iova| map.serialize_entry("address", &address(iova)))
        };
        match self.0 {
            Subject::Dump => named("dump", None, None)?,
            Subject::Ring(number) => {
                named("ring", None, None)?;
                map.serialize_entry("number", number)?;
            }
            Subject::Engine(name) => named("engine", Some(name), None)?,
            Subject::Packet { name, iova } => named("packet", name.as_deref(), *iova)?,
            Subject::Work { kind, number } => {
                named(kind, None, None)?;
                map.serialize_entry("number", number)?;
            }
            Subject::Memory(iova) => named("memory", None, Some(*iova))?,
            Subject::Block(name) => named("block", Some(name), None)?,
            Subject::Register(name) => named("register", Some(name), None)?,
            Subject::Shader { name, iova } => named("shader", name.as_deref(), *iova)?,
            Subject::Context(name) => named("context", Some(name), None)?,
            Subject::Process(name) => named("process", Some(name), None)?,
            Subject::Section(name) => named("section", Some(name), None)?,
            Subject::Gpu => named("gpu", None, None)?,
        }
        map.end()
    }
}

/// A field of a register.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct JsonField<'r> {
    name: &'r str,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'r str>,
}

impl<'r> JsonField<'r> {
    /// Of evidence, or of a packet.
    pub(crate) fn of(field: &'r FieldFact) -> JsonField<'r> {
        JsonField { name: &field.name, value: hex(field.value), meaning: field.meaning.as_deref() }
    }
}

impl Serialize for JsonFact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            Fact::Register { name, value, fields } => {
                map.serialize_entry("kind", "register")?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("value", &hex(*value))?;
                if !fields.is_empty() {
                    map.serialize_entry("fields", &fields.iter().map(JsonField::of).collect::<Vec<_>>())?;
                }
            }
            Fact::PacketHeader { register, header, packet, times } => {
                map.serialize_entry("kind", "packet-header")?;
                map.serialize_entry("name", register)?;
                map.serialize_entry("value", &hex((*header).into()))?;
                packet.as_ref().map_or(Ok(()), |packet| map.serialize_entry("packet", packet))?;
                map.serialize_entry("times", times)?;
            }
            Fact::Dwords { level, first, count, words: dwords, packet } => {
                map.serialize_entry("kind", "dwords")?;
                for (name, value) in [("level", level.map(u64::from)), ("first", *first)] {
                    value.map_or(Ok(()), |value| map.serialize_entry(name, &value))?;
                }
                map.serialize_entry("count", count)?;
                if !dwords.is_empty() {
                    map.serialize_entry("words", &words(dwords))?;
                }
                packet.as_ref().map_or(Ok(()), |packet| map.serialize_entry("packet", packet))?;
            }
            Fact::Field { name, value } => {
                map.serialize_entry("kind", "field")?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("value", &JsonArg(value))?;
            }
            Fact::Record(args) => {
                map.serialize_entry("kind", "record")?;
                map.serialize_entry("values", &JsonArgs(args))?;
            }
            Fact::Work(args) => {
                map.serialize_entry("kind", "work")?;
                map.serialize_entry("values", &JsonArgs(args))?;
            }
            Fact::Buffer { size, name } => {
                map.serialize_entry("kind", "buffer")?;
                map.serialize_entry("size", size)?;
                name.as_ref().map_or(Ok(()), |name| map.serialize_entry("name", name))?;
            }
            Fact::Code { place, words: dwords, text } => {
                map.serialize_entry("kind", "code")?;
                map.serialize_entry("place", &JsonArgs(place))?;
                map.serialize_entry("words", &words(dwords))?;
                text.as_ref().map_or(Ok(()), |text| map.serialize_entry("text", text))?;
            }
            Fact::Wave(args) => {
                map.serialize_entry("kind", "wave")?;
                map.serialize_entry("values", &JsonArgs(args))?;
            }
            Fact::Absent { name, section } => {
                map.serialize_entry("kind", "absent")?;
                map.serialize_entry("name", name)?;
                let reason = section.map(crate::words::absent::meaning);
                reason.map_or(Ok(()), |reason| map.serialize_entry("reason", &reason))?;
            }
            Fact::Line(line) => {
                map.serialize_entry("kind", "line")?;
                map.serialize_entry("text", line)?;
            }
        }
        map.end()
    }
}

crate::schema::shape!(JsonArgs<'_>, {"type": "object", "additionalProperties": true});
crate::schema::shape!(JsonSubject<'_>, {
    "type": "object",
    "properties": {
        "kind": {"type": "string"},
        "name": {"type": "string"},
        "number": {"type": "integer"},
        "address": {"type": "string", "pattern": "^0x[0-9a-f]{16}$"}
    }
});
crate::schema::shape!(JsonFact<'_>, {
    "type": "object",
    "properties": {"kind": {"type": "string"}},
    "additionalProperties": true
});
