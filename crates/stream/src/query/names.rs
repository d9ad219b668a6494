//! Registers by name, of each vendor.

use super::expr::Mistake;
use unwedge_hw::amd::Amd;
use unwedge_hw::{Gpu, Pattern, RegEnum, Selected, ValueType, near};

/// A register or a field, as a condition takes it.
#[derive(Clone, Debug)]
pub struct Column<'d> {
    /// Which bits of which registers.
    pub selected: Selected<'d>,
    /// How far these bits are shifted down to be a number, where they have no type that knows it.
    pub shift: u32,
}

/// The registers of a GPU by what a person types.
pub trait RegisterNames<'d>: Copy {
    /// What a name stands for; at least one where it is no error.
    ///
    /// # Errors
    /// No register or field has the name.
    fn select(self, text: &str) -> Result<Vec<Column<'d>>, Mistake>;

    /// An enum by name.
    fn enumeration(self, name: &str) -> Option<RegEnum<'d>>;
}

impl<'d> RegisterNames<'d> for Gpu<'d> {
    fn select(self, text: &str) -> Result<Vec<Column<'d>>, Mistake> {
        let found = Gpu::select(self, text)?;
        Ok(found.into_iter().map(|selected| Column { selected, shift: 0 }).collect())
    }

    fn enumeration(self, name: &str) -> Option<RegEnum<'d>> {
        (*self).enumeration(name)
    }
}

impl<'d> RegisterNames<'d> for Amd<'d> {
    /// `SPI_SHADER_PGM_LO_PS`, `CB_COLOR0_INFO.FORMAT`, `0x2c08`, `SPI_SHADER_PGM_*`, `CB_COLOR0_INFO.*`; case does not
    /// count where only one way of reading it exists.
    fn select(self, text: &str) -> Result<Vec<Column<'d>>, Mistake> {
        if text.contains(['*', '?']) {
            return select_pattern(self, text);
        }
        let upper = text.to_ascii_uppercase();
        let register = |name: &str| {
            let number = name.strip_prefix("0X").and_then(|hex| u32::from_str_radix(hex, 16).ok());
            number.or_else(|| self.reg_offset(name))
        };
        let column = |name: String, low, mask: u64, ty: Option<ValueType<'d>>| {
            vec![Column { selected: Selected { name, low, high: None, mask, ty }, shift: 0 }]
        };
        if let Some(offset) = register(&upper) {
            let reg = self.reg(offset);
            let name = reg.map_or_else(|| text.to_owned(), |reg| reg.name().to_owned());
            return Ok(column(name, offset, u64::from(u32::MAX), reg.and_then(|reg| reg.ty())));
        }
        let unknown = |near: Vec<&str>| Mistake::NoRegister {
            name: text.to_owned(),
            near: near.into_iter().map(str::to_owned).collect(),
        };
        let found =
            upper.rsplit_once('.').and_then(|(name, field)| Some((self.reg(register(name)?)?, field)));
        let Some((reg, field)) = found else {
            return Err(unknown(near(self.registers_of_gpu().map(|reg| reg.name()), text)));
        };
        let fields = || reg.ty().into_iter().flat_map(ValueType::fields);
        match fields().find(|(name, _)| name.eq_ignore_ascii_case(field)) {
            Some((name, ty)) => {
                Ok(column(format!("{}.{name}", reg.name()), reg.offset(), ty.mask(), Some(ty)))
            }
            None => Err(unknown(near(fields().map(|(name, _)| name), field))),
        }
    }

    fn enumeration(self, name: &str) -> Option<RegEnum<'d>> {
        (*self).enumeration(name)
    }
}

/// Every register, or every field of registers, whose name fits a pattern.
fn select_pattern<'d>(amd: Amd<'d>, text: &str) -> Result<Vec<Column<'d>>, Mistake> {
    let (register, field) = match text.rsplit_once('.') {
        Some((register, field)) => (Pattern::new(register), Some(Pattern::new(field))),
        None => (Pattern::new(text), None),
    };
    let mut found = Vec::new();
    for reg in amd.registers_of_gpu().filter(|reg| reg.dword() == 0 && register.matches(reg.name())) {
        let (low, ty) = (reg.offset(), reg.ty());
        let column = |name: String, mask, ty| Column {
            selected: Selected { name, low, high: None, mask, ty },
            shift: 0,
        };
        match &field {
            None => found.push(column(reg.name().to_owned(), u64::from(u32::MAX), ty)),
            Some(field) => {
                let fields =
                    ty.into_iter().flat_map(ValueType::fields).filter(|(name, _)| field.matches(name));
                found.extend(
                    fields.map(|(name, ty)| column(format!("{}.{name}", reg.name()), ty.mask(), Some(ty))),
                );
            }
        }
    }
    if found.is_empty() {
        return Err(Mistake::NoRegister { name: text.to_owned(), near: Vec::new() });
    }
    Ok(found)
}
