//! Which registers the operations of a6xx and a7xx read.
//!
//! Facts: `data/adreno/state_uses.txt`. Never: the value of a register.

use crate::Gpu;
use crate::types::ValueType;
use unwedge_base::Generation;

/// The table. It is read when the uses of a GPU are asked for.
const TABLE: &str = include_str!("../../data/adreno/state_uses.txt");
/// Most repetitions of a row.
const MOST_REPEATS: u32 = 32;

/// An operation that reads registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateReader {
    /// A draw.
    Draw,
    /// A draw whose parameters are in its packet.
    DrawDirect,
    /// A compute dispatch.
    Dispatch,
    /// A dispatch whose size is in its packet.
    DispatchDirect,
    /// A dispatch whose size is in registers.
    DispatchRegisters,
    /// CP_BLIT.
    Blit,
    /// An event that loads, stores or clears GMEM.
    Resolve,
}

impl StateReader {
    const NAMES: [(&'static str, StateReader); 7] = [
        ("draw", StateReader::Draw),
        ("draw-direct", StateReader::DrawDirect),
        ("dispatch", StateReader::Dispatch),
        ("dispatch-direct", StateReader::DispatchDirect),
        ("dispatch-registers", StateReader::DispatchRegisters),
        ("blit", StateReader::Blit),
        ("resolve", StateReader::Resolve),
    ];
}

/// The pass that an operation is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatePass {
    /// The binning pass.
    Binning,
    /// A tile is rendered to GMEM.
    Bin,
    /// Rendering goes to memory.
    Sysmem,
}

/// What a draw packet says that it draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawnShape {
    /// Points.
    Points,
    /// Rectangles, as drivers clear and copy with.
    Rects,
    /// Anything else.
    Other,
}

/// Where an operation is, and what it draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateScene {
    /// Its pass, where that is known.
    pub pass: Option<StatePass>,
    /// What it draws.
    pub shape: DrawnShape,
}

/// Bits of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterBits {
    /// Its offset.
    pub reg: u32,
    /// The lowest of the bits.
    pub low: u32,
    /// How many.
    pub width: u32,
}

impl RegisterBits {
    fn of(self, value: u32) -> u64 {
        u64::from(value) >> self.low & ((1u64 << self.width.min(32)) - 1)
    }
}

/// When a use counts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StateTest {
    /// The bits are one of these values, or (false) none of them.
    Values(RegisterBits, Vec<u64>, bool),
    /// The bits are more than this.
    Above(RegisterBits, u64),
    /// The operation is in this pass, or (false) in another one.
    Pass(StatePass, bool),
    /// It draws this, or (false) something else.
    Shape(DrawnShape, bool),
}

/// Registers that an operation reads together, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateUse {
    /// Who reads them.
    pub reader: StateReader,
    tests: Vec<StateTest>,
    /// Offsets, in the order of the table.
    pub registers: Vec<u32>,
}

impl StateUse {
    /// Whether the registers are read, where `value` tells what a register was set to. `None`: it depends on a register that was not set,
    /// or on a pass that is not known.
    pub fn applies(&self, scene: StateScene, value: &dyn Fn(u32) -> Option<u32>) -> Option<bool> {
        for test in &self.tests {
            let holds = match test {
                StateTest::Values(bits, values, among) => {
                    values.contains(&bits.of(value(bits.reg)?)) == *among
                }
                StateTest::Above(bits, least) => bits.of(value(bits.reg)?) > *least,
                StateTest::Pass(wanted, is) => (scene.pass? == *wanted) == *is,
                StateTest::Shape(wanted, is) => (scene.shape == *wanted) == *is,
            };
            if !holds {
                return Some(false);
            }
        }
        Some(true)
    }
}

/// What is wrong with a row of the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("state_uses.txt, line {line}: {word} is not known")]
pub struct StateUseError {
    /// Its line, from 1.
    pub line: usize,
    /// The word that was not understood.
    pub word: String,
}

/// The uses of a GPU, and the rows that name what it does not have.
pub fn state_uses(gpu: Gpu<'_>) -> (Vec<StateUse>, Vec<StateUseError>) {
    let (mut uses, mut errors) = (Vec::new(), Vec::new());
    let generation = if gpu.generation() >= Generation::A7xx { "7" } else { "6" };
    for (number, line) in TABLE.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let error = |word: &str| StateUseError { line: number + 1, word: word.to_owned() };
        let mut columns = line.split('|').map(str::trim);
        let (who, when) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
        let registers = columns.next().unwrap_or_default();
        if !who.split(' ').any(|word| word == generation) {
            continue;
        }
        let name = who.split(' ').next().unwrap_or_default();
        let Some((_, reader)) = StateReader::NAMES.into_iter().find(|(known, _)| *known == name) else {
            errors.push(error(name));
            continue;
        };
        let repeats = |index| if line.contains(index) { MOST_REPEATS } else { 1 };
        for m in 0..repeats("{m}") {
            for n in 0..repeats("{n}") {
                match row(gpu, reader, when, registers, [n, m]) {
                    Ok(row) => uses.push(row),
                    // The arrays of a GPU end somewhere.
                    Err(_) if n > 0 || m > 0 => break,
                    Err(word) => errors.push(error(&word)),
                }
            }
        }
    }
    (uses, errors)
}

/// A row for a repetition; or the word that names nothing.
fn row(
    gpu: Gpu<'_>,
    reader: StateReader,
    when: &str,
    registers: &str,
    [n, m]: [u32; 2],
) -> Result<StateUse, String> {
    let words = |text: &str| -> Vec<String> {
        let indexed = |word: &str| word.replace("{n}", &n.to_string()).replace("{m}", &m.to_string());
        text.split_whitespace().map(indexed).collect()
    };
    let tests =
        words(when).iter().filter_map(|word| test(gpu, word, n).transpose()).collect::<Result<_, _>>()?;
    let mut offsets = Vec::new();
    for name in words(registers) {
        let first = gpu.reg_offset(&name).ok_or_else(|| name.clone())?;
        let wide = gpu.reg(first).is_some_and(|reg| reg.width() == 64);
        offsets.push(first);
        offsets.extend(wide.then_some(first + 1));
    }
    Ok(StateUse { reader, tests, registers: offsets })
}

/// A condition; `None` for one that always holds; or the word that names nothing.
fn test(gpu: Gpu<'_>, word: &str, n: u32) -> Result<Option<StateTest>, String> {
    let unknown = || word.to_owned();
    let pass = |name: &str| match name {
        "binning" => Some(StatePass::Binning),
        "bin" => Some(StatePass::Bin),
        "sysmem" => Some(StatePass::Sysmem),
        _ => None,
    };
    if let Some(pass) = pass(word.trim_start_matches('!')) {
        return Ok(Some(StateTest::Pass(pass, !word.starts_with('!'))));
    }
    let shape = match word.trim_start_matches('!') {
        "points" => Some(DrawnShape::Points),
        "rects" => Some(DrawnShape::Rects),
        _ => None,
    };
    if let Some(shape) = shape {
        return Ok(Some(StateTest::Shape(shape, !word.starts_with('!'))));
    }
    if let Some((index, bound)) = word.split_once('<') {
        let step: u64 = index.strip_prefix("n*").map_or(Ok(1), str::parse).map_err(|_| unknown())?;
        let least = step * u64::from(n);
        return match bound.parse::<u64>() {
            Ok(bound) if least < bound => Ok(None),
            Ok(_) => Err(unknown()),
            Err(_) => Ok(Some(StateTest::Above(bits(gpu, bound).ok_or_else(unknown)?.0, least))),
        };
    }
    if let Some((name, bit)) = word.split_once('#') {
        let (field, _) = bits(gpu, name).ok_or_else(unknown)?;
        let bit: u32 = bit.parse().map_err(|_| unknown())?;
        if bit >= field.width {
            return Err(unknown());
        }
        let bits = RegisterBits { low: field.low + bit, width: 1, ..field };
        return Ok(Some(StateTest::Values(bits, vec![0], false)));
    }
    let (name, values, among) = match (word.split_once("!="), word.split_once('='), word.strip_prefix('!')) {
        (Some((name, values)), _, _) => (name, values, false),
        (_, Some((name, values)), _) => (name, values, true),
        (_, _, Some(name)) => (name, "0", true),
        _ => (word, "0", false),
    };
    let (field, ty) = bits(gpu, name).ok_or_else(unknown)?;
    let number = |text: &str| {
        let named = ty.and_then(ValueType::enumeration).and_then(|names| names.value_of(text));
        named.or(text.parse().ok()).ok_or_else(unknown)
    };
    let values = values.split(',').map(number).collect::<Result<_, _>>()?;
    Ok(Some(StateTest::Values(field, values, among)))
}

/// The bits of `REG` or `REG.FIELD`, and the field's type. Names of registers may have dots themselves.
fn bits<'d>(gpu: Gpu<'d>, name: &str) -> Option<(RegisterBits, Option<ValueType<'d>>)> {
    if let Some(reg) = gpu.reg_offset(name) {
        return Some((RegisterBits { reg, low: 0, width: 32 }, None));
    }
    let (register, field) = name.rsplit_once('.')?;
    let reg = gpu.reg_offset(register)?;
    let (_, ty) = gpu.reg(reg)?.ty()?.fields().find(|(known, _)| *known == field)?;
    let (low, width, _) = ty.bit_place();
    Some((RegisterBits { reg, low, width }, Some(ty)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;

    #[test]
    fn every_row_names_what_there_is() {
        let db = Db::builtin();
        for generation in [Generation::A6xx, Generation::A7xx] {
            let (uses, errors) = state_uses(db.gpu(generation));
            assert!(errors.is_empty(), "{generation:?}: {errors:#?}");
            assert!(
                StateReader::NAMES.iter().all(|(_, reader)| uses.iter().any(|row| row.reader == *reader))
            );
        }
    }

    #[test]
    fn conditions_decide() {
        let db = Db::builtin();
        let gpu = db.gpu(Generation::A6xx);
        let (uses, _) = state_uses(gpu);
        let [target, components, count] =
            ["RB_MRT[1].BUF_INFO", "RB_RENDER_COMPONENTS", "RB_FS_OUTPUT_CNTL1"]
                .map(|n| gpu.reg_offset(n).unwrap());
        let in_pass = |pass| StateScene { pass, shape: DrawnShape::Other };
        let raster = gpu.reg_offset("PC_RASTER_CNTL").unwrap();
        let row = uses.iter().find(|row| row.registers.contains(&target)).unwrap();
        let with = |rt: u32, mrt: u32| {
            let value = move |reg| {
                Some(if reg == components {
                    rt
                } else if reg == count {
                    mrt
                } else {
                    0
                })
            };
            row.applies(in_pass(Some(StatePass::Sysmem)), &value)
        };
        assert_eq!([with(0xff, 2), with(0x0f, 2), with(0xff, 1)], [Some(true), Some(false), Some(false)]);
        let unset = |reg| (reg != raster).then_some(0xff);
        assert_eq!(row.applies(in_pass(Some(StatePass::Sysmem)), &unset), None);
        assert_eq!(row.applies(in_pass(Some(StatePass::Binning)), &unset), Some(false));
        assert_eq!(row.applies(in_pass(None), &unset), None);
    }
}
