//! Registers and fields by what a person types: `RB_MRT[0].BUF_INFO`, `RB_MRT[*].*`, `GRAS_CL_CNTL.ZERO_GB_SCALE_Z`,
//! `0x8872`.
//!
//! Never: values; which registers anything writes.

use crate::db::{Gpu, Pattern, Reg, RegSpace};
use crate::near::near;
use crate::types::ValueType;
use std::fmt;
use unwedge_base::Generation;

/// A register of the GPU space, a dword of one, or a field.
#[derive(Clone, Debug)]
pub struct Selected<'d> {
    /// Its name: the register's, or `REGISTER.FIELD`.
    pub name: String,
    /// Offset of the dword that has bits 0 to 31.
    pub low: u32,
    /// Offset of the dword that has bits 32 to 63.
    pub high: Option<u32>,
    /// Which of these bits it is.
    pub mask: u64,
    /// How to read them; `None` for bits the database knows nothing about.
    pub ty: Option<ValueType<'d>>,
}

/// What was typed names nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No register has the name.
    #[error("{name}: no register of {generation}{}{}", also(.elsewhere), meant(.near))]
    Register {
        /// What was typed.
        name: String,
        /// Of this generation.
        generation: Generation,
        /// Generations that have it.
        elsewhere: Vec<Generation>,
        /// Registers with such names.
        near: Vec<String>,
    },
    /// The register has no such field.
    #[error("{field}: no field of {register}{}", meant(.near))]
    Field {
        /// The register.
        register: String,
        /// What was typed behind it.
        field: String,
        /// Fields with such names, or the first ones.
        near: Vec<String>,
    },
    /// A pattern fits nothing.
    #[error(
        "{pattern}: fits no register or field of {generation}; `unwedge regs {generation} '*PART*'` looks names up"
    )]
    Pattern {
        /// What was typed.
        pattern: String,
        /// Of this generation.
        generation: Generation,
    },
    /// A number that is no offset of the register space.
    #[error("{0}: register offsets have at most 18 bits")]
    Offset(String),
}

/// Register offsets have 18 bits.
const MAX_OFFSET: u64 = 0x3_ffff;

fn also(elsewhere: &[Generation]) -> String {
    let names: Vec<&str> = elsewhere.iter().map(|g| g.name()).collect();
    if names.is_empty() { String::new() } else { format!(", but of {}", names.join(", ")) }
}

fn meant(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) }
}

impl fmt::Display for Selected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl<'d> Selected<'d> {
    /// A register; with both halves if it has two and this is the first.
    fn register(reg: Reg<'d>) -> Selected<'d> {
        let offset = reg.offset();
        let pair = reg.width() == 64 && reg.dword() == 0;
        let mask = if pair { u64::MAX } else { u64::from(u32::MAX) };
        let ty = reg.ty().filter(|_| reg.dword() == 0);
        let high = if pair { offset.checked_add(1) } else { None };
        Selected { name: reg.name().to_owned(), low: offset, high, mask, ty }
    }

    fn field(&self, name: &str, ty: ValueType<'d>) -> Selected<'d> {
        Selected { name: format!("{}.{name}", self.name), mask: self.mask & ty.mask(), ty: Some(ty), ..*self }
    }

    /// The fields of a register.
    pub fn fields(&self) -> impl Iterator<Item = (&'d str, Selected<'d>)> {
        let fields = self.ty.into_iter().flat_map(ValueType::fields);
        fields.map(|(name, ty)| (name, self.field(name, ty)))
    }

    /// Its bits, from the values of its dwords; `None` when one that has some of them is not known.
    #[inline]
    pub fn read(&self, dword: impl Fn(u32) -> Option<u32>) -> Option<u64> {
        let mut value = 0;
        if self.mask as u32 != 0 {
            value = u64::from(dword(self.low)?);
        }
        if self.mask >> 32 != 0 {
            value |= u64::from(dword(self.high?)?) << 32;
        }
        Some(value & self.mask)
    }

    /// Offsets of its dwords.
    pub fn dwords(&self) -> impl Iterator<Item = u32> {
        let low = (self.mask as u32 != 0).then_some(self.low);
        let high = self.high.filter(|_| self.mask >> 32 != 0);
        low.into_iter().chain(high)
    }
}

/// `0x4b`, `75`.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

impl<'d> Gpu<'d> {
    /// What a person types for a register or field, of the GPU space: an exact name (case does not count where only one
    /// way of reading it exists), a field behind a register's name, a pattern with `*` and `?` for either, an offset.
    /// A 64-bit register's name stands for both halves; `NAME_LO`, `NAME_HI` and `NAME` are understood whichever way the
    /// generation has them. An offset that the database does not know is a register without a name.
    ///
    /// # Errors
    ///
    /// [`SelectError`] if no register of this generation has the name, offset or pattern, or the register has
    /// no such field; it lists the generations that have the name, and similar names.
    pub fn select(self, text: &str) -> Result<Vec<Selected<'d>>, SelectError> {
        if let Some(offset) = number(text) {
            return self.offset(text, offset).map(|one| vec![one]);
        }
        if is_pattern(text) {
            return self.pattern(text);
        }
        if let Some(one) = self.named(text) {
            return Ok(vec![one]);
        }
        if let Some((register, field)) = text.rsplit_once('.')
            && let Some(register) = self.select_register(register)
        {
            return register.behind(field).map(|one| vec![one]);
        }
        Err(self.unknown(text))
    }

    /// The same for one register or field that may not be there. Cheaper where it is not: nothing is suggested instead.
    pub fn select_one(self, text: &str) -> Option<Selected<'d>> {
        self.select_register(text).or_else(|| {
            let (register, field) = text.rsplit_once('.')?;
            self.select_register(register)?.behind(field).ok()
        })
    }

    fn select_register(self, text: &str) -> Option<Selected<'d>> {
        match number(text) {
            Some(offset) => self.offset(text, offset).ok(),
            None => self.named(text),
        }
    }

    fn offset(self, text: &str, offset: u64) -> Result<Selected<'d>, SelectError> {
        let known = u32::try_from(offset).ok().filter(|_| offset <= MAX_OFFSET);
        let offset = known.ok_or_else(|| SelectError::Offset(text.to_owned()))?;
        Ok(match self.reg(offset) {
            Some(reg) => Selected::register(reg),
            None => Selected {
                name: format!("{offset:#x}"),
                low: offset,
                high: None,
                mask: u64::from(u32::MAX),
                ty: None,
            },
        })
    }

    /// A whole register by name.
    fn named(self, name: &str) -> Option<Selected<'d>> {
        let upper = name.to_ascii_uppercase();
        [name, &upper].into_iter().find_map(|name| {
            let exact = self.reg_offset(name).and_then(|offset| self.reg(offset)).map(Selected::register);
            exact.or_else(|| self.half(name)).or_else(|| self.halves(name))
        })
    }

    /// `NAME_LO`, `NAME_HI` where the database has one 64-bit register.
    fn half(self, name: &str) -> Option<Selected<'d>> {
        let (whole, above) = match (name.strip_suffix("_LO"), name.strip_suffix("_HI")) {
            (Some(whole), _) => (whole, 0),
            (_, Some(whole)) => (whole, 1),
            _ => return None,
        };
        let reg = self.reg_offset(whole).and_then(|offset| self.reg(offset)).filter(|r| r.width() == 64)?;
        Some(Selected {
            name: name.to_owned(),
            low: reg.offset().checked_add(above)?,
            high: None,
            mask: u64::from(u32::MAX),
            ty: None,
        })
    }

    /// `NAME` where the database has two registers, `NAME_LO` and `NAME_HI`.
    fn halves(self, name: &str) -> Option<Selected<'d>> {
        let offset = |suffix: &str| self.reg_offset(&format!("{name}{suffix}"));
        let (low, high) = (offset("_LO")?, offset("_HI")?);
        Some(Selected { name: name.to_owned(), low, high: Some(high), mask: u64::MAX, ty: None })
    }

    fn pattern(self, text: &str) -> Result<Vec<Selected<'d>>, SelectError> {
        let registers = |pattern: &str| -> Vec<Selected<'d>> {
            if is_pattern(pattern) {
                self.space(RegSpace::Gpu).search(pattern).map(Selected::register).collect()
            } else {
                self.select_register(pattern).into_iter().collect()
            }
        };
        let mut found = registers(text);
        if found.is_empty()
            && let Some((register, field)) = text.rsplit_once('.')
        {
            let pattern = Pattern::new(field);
            let fits = |name: &str| {
                if is_pattern(field) { pattern.matches(name) } else { name.eq_ignore_ascii_case(field) }
            };
            for register in registers(register) {
                found.extend(register.fields().filter(|(name, _)| fits(name)).map(|(_, field)| field));
            }
        }
        if found.is_empty() {
            return Err(SelectError::Pattern { pattern: text.to_owned(), generation: self.generation() });
        }
        Ok(found)
    }

    fn unknown(self, name: &str) -> SelectError {
        let db = self.db();
        let register = |gpu: Gpu<'_>| {
            gpu.named(name).is_some()
                || name.rsplit_once('.').is_some_and(|(register, field)| {
                    gpu.named(register).is_some_and(|register| register.behind(field).is_ok())
                })
        };
        let others = Generation::ALL.into_iter().filter(|&g| g != self.generation());
        let elsewhere = others.filter(|&g| register(db.gpu(g))).collect();
        let names = self.space(RegSpace::Gpu).iter().filter(|r| r.dword() == 0).map(|r| r.name());
        let near = near(names, name).into_iter().map(str::to_owned).collect();
        SelectError::Register { name: name.to_owned(), generation: self.generation(), elsewhere, near }
    }
}

impl<'d> Selected<'d> {
    /// A field by name.
    fn behind(&self, field: &str) -> Result<Selected<'d>, SelectError> {
        let named = |same: fn(&str, &str) -> bool| self.fields().find(|(name, _)| same(name, field));
        let found = named(|a, b| a == b).or_else(|| named(|a, b| a.eq_ignore_ascii_case(b)));
        if let Some((_, found)) = found {
            return Ok(found);
        }
        let names: Vec<&str> = self.fields().map(|(name, _)| name).collect();
        let close = near(names.iter().copied(), field);
        let shown = if close.is_empty() { names.into_iter().take(6).collect() } else { close };
        let near = shown.into_iter().map(str::to_owned).collect();
        Err(SelectError::Field { register: self.name.clone(), field: field.to_owned(), near })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;

    fn names(generation: Generation, text: &str) -> Result<Vec<String>, String> {
        let db = Db::builtin();
        let found = db.gpu(generation).select(text).map_err(|e| e.to_string())?;
        Ok(found.into_iter().map(|s| s.name).collect())
    }

    #[test]
    fn every_way_to_name_a_register() {
        use Generation::{A5xx, A6xx};
        let one = |generation, text: &str, name: &str| {
            assert_eq!(names(generation, text), Ok(vec![name.to_owned()]), "{text}");
        };
        one(A6xx, "RB_MRT[1].BUF_INFO", "RB_MRT[0x1].BUF_INFO");
        one(A6xx, "rb_mrt[0].buf_info", "RB_MRT[0].BUF_INFO");
        one(A6xx, "0x8822", "RB_MRT[0].BUF_INFO");
        one(A6xx, "0x8822.COLOR_FORMAT", "RB_MRT[0].BUF_INFO.COLOR_FORMAT");
        one(A6xx, "RB_MRT[0].BUF_INFO.color_swap", "RB_MRT[0].BUF_INFO.COLOR_SWAP");
        one(A6xx, "0x3fff0", "0x3fff0");
        one(A6xx, "SP_VS_OBJ_START_HI", "SP_VS_OBJ_START_HI");
        one(A5xx, "SP_VS_OBJ_START", "SP_VS_OBJ_START");
        one(A5xx, "SP_VS_OBJ_START_HI", "SP_VS_OBJ_START_HI");
        assert_eq!(names(A6xx, "RB_MRT[*].BUF_INFO").unwrap().len(), 8);
        assert_eq!(names(A6xx, "RB_MRT[*].BUF_INFO.COLOR_?*").unwrap().len(), 3 * 8);
        assert_eq!(names(A6xx, "RB_MRT[*].BUF_INFO.COLOR_SWAP").unwrap().len(), 8);
        assert!(names(A6xx, "RB_MRT[*].*").unwrap().contains(&"RB_MRT[0x7].BASE".to_owned()));
    }

    #[test]
    fn both_halves_of_a_pair_are_read_and_needed() {
        let db = Db::builtin();
        let select = |generation, text: &str| db.gpu(generation).select(text).unwrap().remove(0);
        let whole = select(Generation::A6xx, "SP_VS_OBJ_START");
        let both = |reg: u32| Some(if reg == whole.low { 0x1000 } else { 2 });
        assert_eq!(whole.read(both), Some(0x2_0000_1000));
        assert_eq!(whole.read(|reg| both(reg).filter(|_| reg == whole.low)), None);
        assert_eq!(select(Generation::A6xx, "SP_VS_OBJ_START_LO").read(both), Some(0x1000));
        assert_eq!(select(Generation::A5xx, "SP_VS_OBJ_START").dwords().count(), 2);
        let field = select(Generation::A6xx, "RB_MRT[0].BUF_INFO.COLOR_SWAP");
        assert_eq!(field.read(|_| Some(0x6fff)), Some(0x6000));
    }

    #[test]
    fn what_is_unknown_comes_with_what_was_meant() {
        let check = |generation, text: &str, parts: &[&str]| {
            let told = names(generation, text).unwrap_err();
            assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        };
        check(Generation::A6xx, "RB_MRT.BUF_INFO", &["no register of a6xx", "RB_MRT[0].BUF_INFO"]);
        check(Generation::A3xx, "SP_VS_OBJ_START", &["but of a4xx, a5xx, a6xx, a7xx"]);
        check(Generation::A6xx, "RB_MRT[0].BUF_INFO.COLOR_FORMT", &["no field of", "COLOR_FORMAT"]);
        check(Generation::A6xx, "*NOTHING_SUCH*", &["fits no register"]);
        check(Generation::A6xx, "0x40000", &["18 bits"]);
    }
}
