//! What rows access: the words of their heads with the direction and the operands beside them.

use super::opcodes::traits;
use super::read::SourceRow;
use crate::amdgcn_facts::model::{
    Access, AccessWord, AtomicOp, Direction, Field, Format, Gfx, Moved, Pair, Role, Signedness, Trait,
};

/// What a row accesses; an error where a row of memory does not say it, or its operands contradict it.
pub fn access(row: &SourceRow) -> Result<Option<Access>, String> {
    let wrong = |what: &str| format!("{}: {what}", row.name);
    let traits = traits(row);
    let pair = traits.has(Trait::Offset0).then(|| Pair { stride: stride(row) });
    if traits.has(Trait::Stride64) && pair.is_none() {
        return Err(wrong("`stride64` without two offsets"));
    }
    let word = match (row.role, row.access) {
        (Role::Memory, Some(word)) => word,
        (Role::Memory, None) => return Err(wrong("the role `memory` without what is moved")),
        (Role::Atomic, _) => {
            let data = row.operands.iter().any(|o| matches!(o.field, Field::Data0 | Field::Data));
            let from_memory = row.format == Format::Ds && !data && row.atomic != Some(AtomicOp::Other);
            return Ok(Some(Access::Atomic { pair, from_memory }));
        }
        _ => return Ok(None),
    };
    let direction = match (traits.has(Trait::Load), traits.has(Trait::Store)) {
        (true, false) => Ok(Direction::Load),
        (false, true) => Ok(Direction::Store),
        _ => Err(wrong("either a load or a store")),
    };
    let bits = data_bits(row);
    let access = match word {
        AccessWord::Element(element) => {
            let values = 1 + u16::from(pair.is_some());
            let dwords = u16::from(element.dwords()) * values;
            if bits.is_some_and(|bits| bits != 32 * dwords) {
                return Err(wrong("what is moved and its operand differ in width"));
            }
            Access::Value(direction?, element, pair)
        }
        AccessWord::Components(components) => {
            let count = u16::from(components.count());
            let half = components.is_d16() && !components.is_high();
            if bits.is_some_and(|bits| bits != count * if half { 16 } else { 32 }) {
                return Err(wrong("components and their operand differ in width"));
            }
            Access::Typed(direction?, components)
        }
        AccessWord::Moved(Moved::Block) => Access::Block(direction?),
        AccessWord::Moved(Moved::TransposedB8) => Access::Transposed { halves: false },
        AccessWord::Moved(Moved::TransposedB16) => Access::Transposed { halves: true },
        AccessWord::Moved(Moved::Texel) => Access::Texel(direction?),
        AccessWord::Moved(Moved::Raw) => Access::Raw(direction?, Signedness::Unsigned),
        AccessWord::Moved(Moved::RawSigned) => Access::Raw(direction?, Signedness::Signed),
        AccessWord::Moved(Moved::Samples) => Access::Samples,
        AccessWord::Moved(Moved::Sample) => Access::Sample,
        AccessWord::Moved(Moved::Size) => Access::Size,
        AccessWord::Moved(Moved::Rays) => Access::Rays,
        AccessWord::Moved(Moved::Lanes) => Access::Lanes,
        AccessWord::Moved(Moved::Sync) => Access::Sync,
        AccessWord::Moved(Moved::State) => Access::State,
    };
    if !fits(access, row.format) {
        return Err(wrong("its format cannot access this"));
    }
    Ok(Some(access))
}

/// How many values an offset counts.
fn stride(row: &SourceRow) -> u8 {
    if traits(row).has(Trait::Stride64) { 64 } else { 1 }
}

/// The width of the operand that is loaded or stored; of two operands their sum.
fn data_bits(row: &SourceRow) -> Option<u16> {
    let of = row.cells.first().and_then(|cell| cell.gens.first()).copied().unwrap_or(Gfx::Gfx6);
    let widths = row.operands.iter().filter_map(|operand| match operand.field {
        Field::Vdata | Field::Vdst | Field::Data | Field::Data0 | Field::Data1 | Field::Sdst => {
            Some(operand.ty(of).bits())
        }
        _ => None,
    });
    widths.reduce(|a, b| a + b)
}

/// Whether instructions of a format can access something.
fn fits(access: Access, format: Format) -> bool {
    let flat = matches!(format, Format::Flat | Format::Global | Format::Scratch);
    match access {
        Access::Value(..) => flat || matches!(format, Format::Ds | Format::Mubuf | Format::Smem),
        Access::Atomic { .. } => format.is_memory(),
        Access::Typed(..) => matches!(format, Format::Mubuf | Format::Mtbuf),
        Access::Block(_) | Access::Transposed { .. } => flat,
        Access::Lanes | Access::Sync => format == Format::Ds,
        Access::State => format == Format::Smem,
        Access::Texel(_)
        | Access::Raw(..)
        | Access::Samples
        | Access::Sample
        | Access::Size
        | Access::Rays => format == Format::Mimg,
    }
}
