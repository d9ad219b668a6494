//! Registers of dumps with their fields: each by its name and generation, and packet headers that registers hold.
//!
//! What no table has is shown as its value alone.

use super::packets::shown;
use crate::json::Hex;
use std::borrow::Cow;
use unwedge_capture::amd::{AmdRegister, plain_name};
use unwedge_hw::amd::{Amd, Gfx, holds_packet_header};
use unwedge_hw::{Db, ValueType, Variants};
use unwedge_hw::{DecodedField, DecodedValue};
use unwedge_stream::amd::AmdPacketHeader;

use super::lines::RegisterField;

/// Reads values of registers for one GPU, as far as it is known.
#[derive(Clone, Copy)]
pub(super) struct RegisterReader<'d> {
    amd: Option<Amd<'d>>,
}

impl<'d> RegisterReader<'d> {
    /// For a generation.
    pub(super) fn new(gfx: Option<Gfx>, db: &'d Db) -> RegisterReader<'d> {
        RegisterReader { amd: gfx.map(|gfx| db.amd_gpu(gfx)) }
    }

    fn ty(self, name: &str) -> Option<ValueType<'d>> {
        self.amd?.register(plain_name(name))?.ty()
    }

    /// The packet whose header a register holds; `None` where it holds none, or what no generation has.
    pub(super) fn packet(self, name: &str, value: u32) -> Option<&'d str> {
        if !holds_packet_header(plain_name(name)) || value == 0 {
            return None;
        }
        AmdPacketHeader::decode(value)?.name(self.amd?)
    }

    /// What a value says: its fields, its packet, or nothing.
    pub(super) fn text(self, name: &str, value: u32) -> String {
        if holds_packet_header(plain_name(name)) {
            return self.packet(name, value).unwrap_or_default().to_owned();
        }
        match self.ty(name) {
            // The value alone says as much as one without fields.
            Some(ty) if ty.is_bitset() && value != 0 => shown(Some(ty), value.into()),
            _ => String::new(),
        }
    }

    /// The name of a register by its offset in dwords.
    pub(super) fn name_at(self, offset: u32) -> Option<&'d str> {
        self.amd?.reg(offset).map(|reg| reg.name())
    }

    /// What a value of a wave's register says. Some of umr's names lack what the tables have before them.
    pub(super) fn wave_text(self, name: &str, value: u32) -> String {
        self.text(&wave_register(name), value)
    }

    /// Every field of a wave's register.
    pub(super) fn wave_fields(self, name: &str, value: u32) -> Option<Vec<RegisterField<'d>>> {
        self.fields(&wave_register(name), value)
    }

    /// Every field of a value, those that are zero too.
    pub(super) fn fields(self, name: &str, value: u32) -> Option<Vec<RegisterField<'d>>> {
        let ty = self.ty(name)?;
        let DecodedValue::Fields(fields) = ty.decode(value.into(), &mut Variants::new()) else { return None };
        let named = fields.into_iter().filter(|field| !field.name.is_empty());
        Some(
            named
                .map(|field| RegisterField {
                    name: field.name,
                    raw: Some(Hex::short(field.raw)),
                    text: field_text(&field),
                })
                .collect(),
        )
    }
}

/// The name that tables have for a wave's register: `SQ_WAVE_STATUS` of `ixSQ_WAVE_STATUS` and `STATUS`.
fn wave_register(name: &str) -> Cow<'_, str> {
    let plain = plain_name(name);
    match plain.starts_with("SQ_WAVE_") {
        true => Cow::Borrowed(plain),
        false => Cow::Owned(format!("SQ_WAVE_{plain}")),
    }
}

/// A field's value in the words of its type.
fn field_text<'d>(field: &DecodedField<'d>) -> Cow<'d, str> {
    match &field.value {
        DecodedValue::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
        DecodedValue::Enum(_, Some(name)) => Cow::Borrowed(name),
        DecodedValue::Uint(value) | DecodedValue::Enum(value, None) => Cow::Owned(value.to_string()),
        DecodedValue::Fields(bits) => {
            let set = bits.iter().filter(|bit| bit.raw != 0 && !bit.name.is_empty());
            Cow::Owned(set.map(|bit| bit.name).collect::<Vec<_>>().join(" | "))
        }
        _ => Cow::Owned(format!("{:#x}", field.raw)),
    }
}

/// Registers in their order, with how often each stands there in a row: kernels read the window of a FIFO several times.
pub(super) fn runs<'r, 'a>(
    registers: &'r [AmdRegister<'a>],
) -> impl Iterator<Item = (&'r AmdRegister<'a>, usize)> + use<'r, 'a> {
    registers.chunk_by(|a, b| a == b).filter_map(|run| Some((run.first()?, run.len())))
}
