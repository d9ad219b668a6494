//! Registers that somebody wants to see at draws: which, and at which draws.

use unwedge_base::Generation;
use unwedge_hw::Gpu;
use unwedge_stream::adreno::Registers;

/// Registers to show at draws.
#[derive(Clone, Debug)]
pub struct Query {
    /// By offset, in the order asked for.
    pub registers: Vec<u32>,
    /// At which draws.
    pub mode: QueryMode,
    /// Once with the values of binning and once with those of the passes that draw.
    pub compare: bool,
    /// Where the GPU keeps the corners of the bin drawn; others are told by a packet.
    pub(super) scissor: Option<[u32; 2]>,
}

/// At which draws queried registers are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryMode {
    /// At all.
    #[default]
    All,
    /// Where one of them has been written since the draw before.
    Written,
    /// Where one of them has another value than at the draw before.
    Delta,
}

impl Query {
    /// A query of these registers.
    pub fn new(gpu: Gpu<'_>, registers: Vec<u32>, mode: QueryMode, compare: bool) -> Query {
        let corners = ["GRAS_SC_WINDOW_SCISSOR_TL", "GRAS_SC_WINDOW_SCISSOR_BR"];
        let scissor = matches!(gpu.generation(), Generation::A5xx | Generation::A6xx)
            .then(|| corners.map(|name| gpu.reg_offset(name).unwrap_or(0)));
        Query { registers, mode, compare, scissor }
    }

    /// Nothing is to be shown at a draw with these registers.
    pub(super) fn skips(&self, regs: &Registers) -> bool {
        let mut written = self.registers.iter().filter(|&&reg| regs.get(reg).is_some());
        match self.mode {
            QueryMode::All => false,
            QueryMode::Written => !written.any(|&reg| regs.rewritten(reg)),
            QueryMode::Delta => !written.any(|&reg| regs.raw(reg) != regs.previous(reg)),
        }
    }
}

/// The register that a word of the command line means: a number as C reads it, or else a name. `None` for neither.
pub fn register(gpu: Gpu<'_>, word: &str) -> Option<u32> {
    match leading_number(word) {
        None | Some(0) => gpu.reg_offset(word).or(leading_number(word).map(|_| 0)),
        Some(number) => Some(number as u32),
    }
}

/// The number that text begins with, in the base that its prefix says.
fn leading_number(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', ..] => (8, text),
        _ => (10, text),
    };
    let digits = digits.chars().map_while(|c| c.to_digit(base)).map(i64::from);
    let add = |number: i64, digit: i64| number.saturating_mul(base.into()).saturating_add(digit);
    let number = digits.fold(None, |number, digit| Some(add(number.unwrap_or(0), digit)));
    number.map(|number| if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_hw::Db;

    #[test]
    fn registers_by_name_and_number() {
        let db = Db::builtin();
        let gpu = db.gpu(Generation::A6xx);
        let control = gpu.reg_offset("RB_MRT[0x1].CONTROL");
        assert!(control.is_some());
        for (word, register_meant) in [
            ("RB_MRT[1].CONTROL", control),
            ("RB_MRT[0x1].CONTROL", control),
            ("0x8c17", Some(0x8c17)),
            ("0X8C17", Some(0x8c17)),
            ("35863", Some(0x8c17)),
            ("0106027", Some(0x8c17)),
            // As C reads it.
            ("8c17", Some(8)),
            ("0", Some(0)),
            ("0x0", Some(0)),
            ("0x", None),
            ("RB_NOTHING", None),
            ("rb_mrt[1].control", None),
            ("", None),
        ] {
            assert_eq!(register(gpu, word), register_meant, "{word}");
        }
    }
}
