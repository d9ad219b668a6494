//! Registers with their fields, as Mesa prints them: `NAME <- 0x00003028`, and `FIELD = value` below.

use super::Told;
use crate::amd::text::{Budget, Line, Lines, Notes, Scan};
use crate::umr::{ShownField, ShownRegister};

/// Bytes of text that a register or a field takes at least.
pub(super) const BYTES_EACH: usize = 24;

/// All registers of a text.
pub(super) fn read<'a>(text: &'a [u8], told: &mut Told) -> Vec<ShownRegister<'a>> {
    let mut registers = Vec::new();
    let mut budget = Budget::new(text.len(), BYTES_EACH);
    let mut notes = Notes::default();
    for line in Lines::without_colours(text) {
        let shown = line.text.trim();
        let heading = shown.ends_with(':') || shown.is_empty();
        if !heading && add(&line, &mut registers, &mut budget).is_none() {
            notes.loss(line.span, || "not a register or a field of one".into());
        }
    }
    told.take(notes);
    registers
}

/// Adds the register or field of a line. `None`: it has none.
pub(super) fn add<'a>(
    line: &Line<'a>,
    registers: &mut Vec<ShownRegister<'a>>,
    budget: &mut Budget,
) -> Option<()> {
    let text = line.text.trim();
    if let Some((name, value)) = text.split_once(" <- ") {
        budget.take()?;
        registers.push(ShownRegister {
            name: line.keep(name.trim_end()),
            path: None,
            value: Some(number(value)?),
            fields: Vec::new(),
            span: line.span,
        });
        return Some(());
    }
    let (name, value) = text.split_once(" = ")?;
    let register = registers.last_mut()?;
    budget.take()?;
    register.span.end = line.span.end;
    register.fields.push(ShownField {
        name: line.keep(name.trim_end()),
        text: line.keep(value),
        value: number(value),
    });
    Some(())
}

/// `5`, `10 (0x0000000a)`, `1.0f (0x3f800000)`, `0xdeadbeef`.
pub(super) fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Some((_, hex)) = text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        return Scan::new(hex).hex32();
    }
    let mut scan = Scan::new(text);
    let value = scan.number()?;
    scan.end()?;
    value.try_into().ok()
}
