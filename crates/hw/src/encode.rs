//! Values: typed value → bits, the way back from what [`ValueType::decode`] gives; and packets: name → opcode.
//!
//! Never: rounding that the caller does not see. What does not fit is `None`, except that a number with a fraction becomes the
//! nearest one that its type has.

use crate::Gpu;
use crate::types::{NumericValue, ValueType, Variants};

/// A field of a bitset that exists for what is selected.
#[derive(Clone, Copy, Debug)]
pub struct SelectedField<'d> {
    /// Its name.
    pub name: &'d str,
    /// How its bits read.
    pub ty: ValueType<'d>,
    /// The database has no meaning for it: shown only when it is set.
    pub unknown: bool,
}

impl Gpu<'_> {
    /// The way back from `packet_name`: the first opcode with a name.
    pub fn packet_opcode(self, name: &str) -> Option<u8> {
        (0..=0x7f).find(|&opcode| self.packet_name(opcode) == Some(name))
    }
}

impl<'d> ValueType<'d> {
    /// The way back from [`extract`](ValueType::extract): a value, moved to where the type has its bits. `None` when it has bits
    /// that the type has not.
    pub fn place(self, value: u64) -> Option<u64> {
        let (low, width, shr) = self.bit_place();
        let moved = value.checked_shr(shr).unwrap_or(0);
        if moved.checked_shl(shr).unwrap_or(0) != value {
            return None;
        }
        let ones = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
        (moved <= ones).then(|| moved.checked_shl(low).unwrap_or(0))
    }

    /// The bits of a number, as [`number`](ValueType::number) reads them. `None` when the type has no such number.
    pub fn encode(self, number: NumericValue) -> Option<u64> {
        if let Some(inner) = self.aliased() {
            return self.place(inner.encode(number)?);
        }
        match number {
            NumericValue::Int(value) if !self.is_fraction() => {
                let (_, width, shr) = self.bit_place();
                let width = width.saturating_add(shr).min(64);
                let ones = if width == 64 { u64::MAX } else { (1 << width) - 1 };
                let negative = value < 0 && value >= -(1_i128 << width.saturating_sub(1));
                let bits = if negative { value as u64 & ones } else { u64::try_from(value).ok()? };
                let placed = self.place(bits)?;
                (!negative || self.number(placed) == number).then_some(placed)
            }
            NumericValue::Int(value) => self.encode(NumericValue::Float(value as f64)),
            NumericValue::Float(value) => self.encode_fraction(value),
        }
    }

    fn encode_fraction(self, value: f64) -> Option<u64> {
        let (_, width, _) = self.bit_place();
        if self.is_float() {
            return match width {
                64 => self.place(value.to_bits()),
                32 => self.place((value as f32).to_bits().into()),
                _ => self.search_half(value),
            };
        }
        let NumericValue::Float(unit) = self.number(self.place(1_u64.checked_shl(self.bit_place().2)?)?)
        else {
            return None;
        };
        let steps = (value / unit).round();
        let limit = 2_f64.powi(width.min(63) as i32);
        let signed = matches!(self.number(self.mask()), NumericValue::Float(value) if value < 0.0);
        let range = if signed { -limit / 2.0..limit / 2.0 } else { 0.0..limit };
        let ones = if width >= 64 { u64::MAX } else { (1_u64 << width) - 1 };
        range.contains(&steps).then(|| (steps as i64 as u64 & ones).checked_shl(self.low()).unwrap_or(0))
    }

    /// A half-precision number, found among all of them: there are only 65,536.
    fn search_half(self, value: f64) -> Option<u64> {
        let found = (0..=0xffff_u64).find(|&bits| {
            self.place(bits).is_some_and(|placed| match self.number(placed) {
                NumericValue::Float(of) => of == value && of.is_sign_negative() == value.is_sign_negative(),
                NumericValue::Int(_) => false,
            })
        })?;
        self.place(found)
    }

    /// The next field, from `index` on, that exists for what is selected. What decoding one selects counts for those after it.
    pub fn next_selected(self, index: &mut u32, selected: &Variants) -> Option<SelectedField<'d>> {
        self.next_field(index, selected).map(|field| SelectedField {
            name: field.name,
            ty: field.ty,
            unknown: field.unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use unwedge_base::Generation;

    /// Whatever a register's field reads as, is encoded as the same bits.
    #[test]
    fn numbers_come_back_as_the_bits_they_were_read_from() {
        let db = Db::builtin();
        let mut tried = 0;
        for generation in [Generation::A3xx, Generation::A6xx, Generation::A7xx] {
            for reg in db.gpu(generation).space(crate::RegSpace::Gpu).iter() {
                let Some(ty) = reg.ty().filter(|_| reg.dword() == 0) else { continue };
                for (_, field) in ty.fields().filter(|(_, field)| !field.is_bitset()) {
                    for raw in [0, 1, 0x1234_5678, 0x8000_0000, 0x9abc_def0, 0xffff_ffff] {
                        let raw = raw & field.mask();
                        let number = field.number(raw);
                        if matches!(number, NumericValue::Float(value) if value.is_nan()) {
                            continue;
                        }
                        assert_eq!(field.encode(number), Some(raw), "{} {raw:#x} {number:?}", reg.name());
                        tried += 1;
                    }
                }
            }
        }
        assert!(tried > 10_000, "{tried}");
    }

    #[test]
    fn what_does_not_fit_has_no_bits() {
        let db = Db::builtin();
        let gpu = db.gpu(Generation::A6xx);
        let reg = gpu.reg(gpu.reg_offset("RB_MRT[0].PITCH").unwrap()).unwrap();
        let ty = reg.ty().unwrap();
        let ty = ty.fields().next().map_or(ty, |(_, field)| field);
        let (_, width, shr) = ty.bit_place();
        assert_eq!(ty.encode(NumericValue::Int(-1)), None);
        assert_eq!(ty.encode(NumericValue::Int(1 << (width + shr))), None);
        assert!(shr == 0 || ty.encode(NumericValue::Int(1)).is_none(), "not a multiple");
    }
}
