//! What the JSON of every command shares: hex strings, decoded values, the database's name.
//!
//! The schema is docs/json-schema.md: addresses and register values are zero-padded hex strings, every field may be
//! absent, enums are open.

use crate::device;
use serde::ser::{Serialize, SerializeSeq, Serializer};
use std::fmt;
use unwedge_base::{ChipId, Generation};
use unwedge_capture::msm::Devcore;
use unwedge_hw::{DbIdentity, DecodedField, DecodedValue, Reg, ValueType, Variants};
use unwedge_stream::play;

/// Largest whole number every JSON reader keeps exactly.
const MAX_EXACT: u64 = 1 << 53;

/// Whether a count is left out.
pub(crate) fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

/// A hex string, zero-padded to a number of digits: `0x00008c17`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hex {
    value: u64,
    digits: usize,
}

impl Hex {
    /// A register's value.
    pub fn dword(value: u32) -> Hex {
        Hex { value: u64::from(value), digits: 8 }
    }

    /// A GPU address, or a 64-bit value.
    pub fn wide(value: u64) -> Hex {
        Hex { value, digits: 16 }
    }

    /// A register offset, an opcode, the bits of a field.
    pub fn short(value: u64) -> Hex {
        Hex { value, digits: 1 }
    }

    /// A register offset.
    pub fn offset(value: u32) -> Hex {
        Hex { value: u64::from(value), digits: 5 }
    }

    /// The number.
    pub fn value(self) -> u64 {
        self.value
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:0width$x}", self.value, width = self.digits)
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// The eight hex digits of a dword.
pub fn hex_digits(word: u32) -> [u8; 8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    std::array::from_fn(|i| DIGITS[(word >> (28 - 4 * i)) as usize & 15])
}

/// Dwords as one string: eight hex digits each, separated by blanks.
pub struct HexWords<'a>(pub &'a [u32]);

impl fmt::Display for HexWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHUNK: usize = 64;
        for (i, chunk) in self.0.chunks(CHUNK).enumerate() {
            let mut text = [b' '; 9 * CHUNK];
            for (word, place) in chunk.iter().zip(text.chunks_mut(9)) {
                place[1..].copy_from_slice(&hex_digits(*word));
            }
            let text = &text[usize::from(i == 0)..9 * chunk.len()];
            f.write_str(std::str::from_utf8(text).unwrap_or_default())?;
        }
        Ok(())
    }
}

impl Serialize for HexWords<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// Where a dump of msm comes from, as it says.
#[derive(serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Origin<'a> {
    /// The kernel's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'a str>,
    /// When it was taken, in the kernel's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<&'a str>,
    /// The process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<&'a str>,
    /// How it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmdline: Option<&'a str>,
}

impl<'a> Origin<'a> {
    /// Of a dump.
    pub fn of(dump: &'a Devcore<'a>) -> Origin<'a> {
        Origin {
            kernel: dump.kernel.as_deref(),
            module: dump.module.as_deref(),
            time: dump.time.as_deref(),
            comm: dump.comm.as_deref(),
            cmdline: dump.cmdline.as_deref(),
        }
    }
}

/// What the first object of an output begins with.
#[derive(serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heading<'a> {
    /// Of JSON lines: `header`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    ty: Option<&'static str>,
    schema: &'static str,
    schema_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Database<'a>>,
}

impl<'a> Heading<'a> {
    /// Of JSON lines.
    pub fn of_lines(schema: &'static str, schema_version: u32, database: &'a DbIdentity) -> Heading<'a> {
        Heading { ty: Some("header"), ..Heading::of_object(schema, schema_version, database) }
    }

    /// Of a single object.
    pub fn of_object(schema: &'static str, schema_version: u32, database: &'a DbIdentity) -> Heading<'a> {
        Heading { ty: None, schema, schema_version, database: Some(database.into()) }
    }

    /// Of JSON lines that no register database was asked for.
    pub fn of_plain_lines(schema: &'static str, schema_version: u32) -> Heading<'a> {
        Heading { ty: Some("header"), ..Heading::of_plain_object(schema, schema_version) }
    }

    /// Of a single object that no register database was asked for.
    pub fn of_plain_object(schema: &'static str, schema_version: u32) -> Heading<'a> {
        Heading { ty: None, schema, schema_version, database: None }
    }
}

/// Which database decoded this.
#[derive(serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Database<'a> {
    source: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    hash: &'a str,
}

impl<'a> From<&'a DbIdentity> for Database<'a> {
    fn from(identity: &'a DbIdentity) -> Database<'a> {
        Database { source: &identity.source, version: &identity.version, hash: &identity.hash }
    }
}

/// The GPU of a dump or capture.
#[derive(serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JsonGpu {
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chip_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_bin: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<&'static str>,
}

impl JsonGpu {
    /// As the dump and the device table name it.
    pub fn of_dump(dump: &Devcore<'_>) -> Option<JsonGpu> {
        let revision = dump.revision?;
        let generation = device::generation(dump);
        let name = device::name(revision);
        Some(JsonGpu::new(Some(revision.gpu_id), Some(revision.chip_id), name, generation))
    }

    /// As a section of a capture and the device table name it.
    pub fn of_identity(identity: play::Identity, generation: Option<Generation>) -> JsonGpu {
        let (gpu_id, chip_id) = match identity {
            play::Identity::GpuId(gpu_id) => (Some(gpu_id), None),
            play::Identity::ChipId(chip_id) => (None, Some(chip_id)),
        };
        JsonGpu::new(gpu_id, chip_id, identity.name(), generation)
    }

    fn new(
        gpu_id: Option<u32>,
        chip_id: Option<ChipId>,
        name: Option<String>,
        generation: Option<Generation>,
    ) -> JsonGpu {
        JsonGpu {
            gpu_id,
            chip_id: chip_id.map(|id| id.to_string()),
            speed_bin: chip_id.and_then(ChipId::speed_bin),
            name,
            generation: generation.map(Generation::name),
        }
    }
}

impl fmt::Display for JsonGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.name.clone(),
            self.generation.map(str::to_owned),
            self.gpu_id.map(|id| format!("gpu_id {id}")),
            self.chip_id.as_ref().map(|id| format!("chip_id {id}")),
            self.speed_bin.map(|bin| format!("speed bin {bin}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

/// A value and what it means: `value`, and `enum` or `fields` where they say more.
#[derive(serde::Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decoded<'d> {
    #[serde(rename = "value_type", skip_serializing_if = "Option::is_none")]
    ty: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decoded: Option<Scalar>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    name: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Fields<'d>>,
}

impl<'d> Decoded<'d> {
    /// Reads a value as its type says.
    pub fn new(ty: ValueType<'d>, raw: u64, selected: &mut Variants) -> Decoded<'d> {
        Decoded { ty: Some(ty.name()), ..Decoded::of(ty.decode(raw, selected)) }
    }

    /// Reads a register's value; nothing for a hole inside an array.
    pub fn register(reg: Reg<'d>, raw: u64) -> Option<Decoded<'d>> {
        Some(Decoded::new(reg.ty()?, raw, &mut Variants::default()))
    }

    fn of(value: DecodedValue<'d>) -> Decoded<'d> {
        let scalar = |s| Decoded { decoded: Some(s), ..Decoded::default() };
        match value {
            DecodedValue::Bool(b) => scalar(Scalar::Bool(b)),
            DecodedValue::Uint(u) => scalar(Scalar::Uint(u)),
            DecodedValue::Int(i) => scalar(Scalar::Int(i)),
            DecodedValue::Hex(h) => scalar(Scalar::Hex(Hex::short(h))),
            DecodedValue::Address(a) => scalar(Scalar::Hex(Hex::wide(a))),
            DecodedValue::Enum(v, name) => Decoded { name, ..scalar(Scalar::Uint(v)) },
            DecodedValue::Float(f) => scalar(Scalar::Float(f)),
            DecodedValue::RegId(r, c) => {
                scalar(Scalar::Text(format!("r{r}.{}", ["x", "y", "z", "w"][c as usize & 3])))
            }
            DecodedValue::Fields(fields) => Decoded { fields: Some(Fields(fields)), ..Decoded::default() },
        }
    }
}

/// A value on its own.
pub enum Scalar {
    /// A flag.
    Bool(bool),
    /// A number without a sign; as a hex string where JSON does not keep it.
    Uint(u64),
    /// A number with one.
    Int(i64),
    /// A number with a fraction; as a string where JSON has none for it.
    Float(f64),
    /// A hex string.
    Hex(Hex),
    /// Text.
    Text(String),
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Scalar::Bool(b) => s.serialize_bool(*b),
            Scalar::Uint(u) if *u > MAX_EXACT => Hex::wide(*u).serialize(s),
            Scalar::Uint(u) => s.serialize_u64(*u),
            Scalar::Int(i) => s.serialize_i64(*i),
            Scalar::Float(f) if f.is_finite() => s.serialize_f64(*f),
            Scalar::Float(f) => s.collect_str(f),
            Scalar::Hex(h) => h.serialize(s),
            Scalar::Text(t) => s.serialize_str(t),
        }
    }
}

/// The fields of a bitset.
struct Fields<'d>(Vec<DecodedField<'d>>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct JsonField<'a> {
            #[serde(skip_serializing_if = "str::is_empty")]
            name: &'a str,
            low: u32,
            high: u32,
            raw: Hex,
            #[serde(flatten)]
            decoded: Decoded<'a>,
        }
        let mut seq = s.serialize_seq(Some(self.0.len()))?;
        for f in &self.0 {
            seq.serialize_element(&JsonField {
                name: f.name,
                low: f.low,
                high: f.high,
                raw: Hex::short(f.raw),
                decoded: Decoded::of(f.value.clone()),
            })?;
        }
        seq.end()
    }
}

crate::schema::shapes!(object: Heading<'_>);

crate::schema::shape!(Hex, {"type": "string", "pattern": "^0x[0-9a-f]+$"});
crate::schema::shape!(HexWords<'_>, {"type": "string", "pattern": "^([0-9a-f]{8}( [0-9a-f]{8})*)?$"});
crate::schema::shape!(Scalar, {"type": ["boolean", "number", "string"]});
crate::schema::shape!(Fields<'_>, {"type": "array", "items": {"type": "object"}});

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: impl Serialize) -> String {
        serde_json::to_string(&value).unwrap()
    }

    #[test]
    fn numbers_are_padded_hex() {
        assert_eq!(json(Hex::dword(0x4b)), r#""0x0000004b""#);
        assert_eq!(json(Hex::wide(0x1_0000_0000)), r#""0x0000000100000000""#);
        assert_eq!(json(HexWords(&[1, 0xdead_d00d])), r#""00000001 deadd00d""#);
        assert_eq!(json(HexWords(&[])), r#""""#);
        assert_eq!(json(HexWords(&[7; 130])).len(), 130 * 9 - 1 + 2);
    }

    #[test]
    fn values_say_what_they_mean() {
        let value = DecodedValue::Fields(vec![
            DecodedField {
                name: "FUNC",
                low: 0,
                high: 2,
                raw: 3,
                value: DecodedValue::Enum(3, Some("WRITE_EQ")),
            },
            DecodedField { name: "", low: 8, high: 31, raw: 7, value: DecodedValue::Hex(7) },
        ]);
        assert_eq!(
            json(Decoded::of(value)),
            r#"{"fields":[{"name":"FUNC","low":0,"high":2,"raw":"0x3","decoded":3,"enum":"WRITE_EQ"},"#
                .to_owned()
                + r#"{"low":8,"high":31,"raw":"0x7","decoded":"0x7"}]}"#
        );
        assert_eq!(json(Decoded::of(DecodedValue::Enum(9, None))), r#"{"decoded":9}"#);
        assert_eq!(json(Decoded::of(DecodedValue::RegId(2, 1))), r#"{"decoded":"r2.y"}"#);
        assert_eq!(json(Decoded::of(DecodedValue::Float(f64::INFINITY))), r#"{"decoded":"inf"}"#);
        assert_eq!(json(Decoded::of(DecodedValue::Uint(u64::MAX))), r#"{"decoded":"0xffffffffffffffff"}"#);
    }
}
