//! A register by its name.

use std::borrow::Cow;

/// A register as a dump names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmdRegister<'a> {
    /// As written: `mmGRBM_STATUS`, `regGRBM_STATUS`, `ixSQ_WAVE_PC_LO`.
    pub name: Cow<'a, str>,
    /// Value.
    pub value: u32,
}

impl AmdRegister<'_> {
    /// The name without the prefix that says how it is addressed: `GRBM_STATUS`.
    pub fn plain_name(&self) -> &str {
        plain_name(&self.name)
    }
}

/// A register's name without `mm` (up to gfx10), `reg` (gfx9.4.3, gfx11 on) or `ix` (indexed).
pub fn plain_name(name: &str) -> &str {
    for prefix in ["mm", "ix", "reg"] {
        if let Some(rest) = name.strip_prefix(prefix)
            && rest.starts_with(|c: char| c.is_ascii_uppercase())
        {
            return rest;
        }
    }
    name
}

/// The value of the first register of this name; prefixes do not count.
pub(crate) fn find(registers: &[AmdRegister<'_>], name: &str) -> Option<u32> {
    let name = plain_name(name);
    registers.iter().find(|r| r.plain_name() == name).map(|r| r.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_say_nothing_about_the_register() {
        for (name, plain) in [
            ("mmGRBM_STATUS", "GRBM_STATUS"),
            ("regGRBM_STATUS", "GRBM_STATUS"),
            ("ixSQ_WAVE_PC_LO", "SQ_WAVE_PC_LO"),
            ("GRBM_STATUS", "GRBM_STATUS"),
            ("register", "register"),
            ("mm", "mm"),
            ("", ""),
        ] {
            assert_eq!(plain_name(name), plain);
        }
        let registers = [AmdRegister { name: "regCP_STAT".into(), value: 7 }];
        assert_eq!(find(&registers, "mmCP_STAT"), Some(7));
        assert_eq!(find(&registers, "CP_STALLED_STAT1"), None);
    }
}
