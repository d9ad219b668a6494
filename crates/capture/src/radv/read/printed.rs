//! Registers with their fields, as Mesa prints them: `NAME <- 0x00003028`, and `FIELD = value` below.

use super::ReadNotes;
use crate::amd::text::{ItemBudget, TextLine, TextLines, TextNotes, TextScan};
use crate::umr::{PrintedField, PrintedRegister};

/// Bytes of text that a register or a field takes at least.
pub(super) const BYTES_EACH: usize = 24;

/// All registers of a text.
pub(super) fn read<'a>(text: &'a [u8], read_notes: &mut ReadNotes) -> Vec<PrintedRegister<'a>> {
    let mut registers = Vec::new();
    let mut budget = ItemBudget::new(text.len(), BYTES_EACH);
    let mut notes = TextNotes::default();
    for line in TextLines::without_colours(text) {
        let shown = line.text.trim();
        let heading = shown.ends_with(':') || shown.is_empty();
        if !heading && add(&line, &mut registers, &mut budget).is_none() {
            notes.loss(line.span, || "not a register or a field of one".into());
        }
    }
    read_notes.take(notes);
    registers
}

/// Adds the register or field of a line. `None`: it has none.
pub(super) fn add<'a>(
    line: &TextLine<'a>,
    registers: &mut Vec<PrintedRegister<'a>>,
    budget: &mut ItemBudget,
) -> Option<()> {
    let text = line.text.trim();
    if let Some((name, value)) = text.split_once(" <- ") {
        budget.take()?;
        registers.push(PrintedRegister {
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
    register.fields.push(PrintedField {
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
        return TextScan::new(hex).hex32();
    }
    let mut scan = TextScan::new(text);
    let value = scan.number()?;
    scan.end()?;
    value.try_into().ok()
}
