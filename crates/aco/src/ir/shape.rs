//! What an opcode's operands and definitions are: the rows of the instruction tables in the order of the IR.
//!
//! Never: which of several forms is best; the assembler decides that.

use std::cell::Cell;
use std::sync::LazyLock;
use unwedge_isa::amdgcn::model::{Form, OperandSlot};
use unwedge_isa::amdgcn::tables::{self, Variant};
use unwedge_isa::amdgcn::{Gpu, Opcode};

/// How many forms an instruction may have.
const FORMS: usize = Form::ALL.len();
const NONE: u16 = u16::MAX;

/// By form: the number of a variant, or [`NONE`].
type FormNumbers = [u16; FORMS];

/// The variants of a GPU, by opcode and form. Those of an opcode are looked up when they are asked for, as a program has few of all opcodes.
#[derive(Debug, Clone)]
pub struct Variants {
    gpu: Gpu,
    numbers: Vec<Cell<Option<FormNumbers>>>,
}

/// By opcode: the number of its first variant, and one past the last of all. Variants are in the order of their rows.
static FIRST_VARIANTS: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let mut firsts = vec![0; tables::rows().len() + 1];
    for variant in tables::variants() {
        firsts[usize::from(variant.row) + 1] += 1;
    }
    let mut sum = 0;
    for first in &mut firsts {
        sum += *first;
        *first = sum;
    }
    firsts
});

/// Variants of an opcode with their numbers, of all GPUs.
pub fn variants_of(opcode: Opcode) -> impl Iterator<Item = (u16, &'static Variant)> {
    let range = match FIRST_VARIANTS.get(opcode as usize..) {
        Some(&[first, end, ..]) => first..end,
        _ => 0..0,
    };
    let own = tables::variants().get(usize::from(range.start)..usize::from(range.end));
    range.zip(own.unwrap_or_default())
}

impl Variants {
    /// Those of a GPU.
    pub fn of(gpu: &Gpu) -> Variants {
        Variants { gpu: *gpu, numbers: vec![Cell::new(None); tables::rows().len()] }
    }

    fn numbers(&self, opcode: Opcode) -> FormNumbers {
        let Some(cell) = self.numbers.get(opcode as usize) else { return [NONE; FORMS] };
        if let Some(known) = cell.get() {
            return known;
        }
        let mut numbers = [NONE; FORMS];
        for (number, variant) in variants_of(opcode) {
            if let Some(place) = numbers.get_mut(variant.form as usize)
                && *place == NONE
                && variant.second.is_none()
                && tables::has(variant, &self.gpu)
            {
                *place = number;
            }
        }
        cell.set(Some(numbers));
        numbers
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The number of the variant of an opcode in a form, if the GPU has it.
    pub fn number(&self, opcode: Opcode, form: Form) -> Option<u16> {
        let number = *self.numbers(opcode).get(form as usize)?;
        (number != NONE).then_some(number)
    }

    /// The variant of an opcode in a form.
    pub fn variant(&self, opcode: Opcode, form: Form) -> Option<&'static Variant> {
        tables::variants().get(usize::from(self.number(opcode, form)?))
    }

    /// Whether the GPU has an opcode in any form.
    pub fn has(&self, opcode: Opcode) -> bool {
        Form::ALL.iter().any(|form| self.number(opcode, *form).is_some())
    }

    /// The variant that says the most: native, with three operands' encoding, or the short one.
    pub fn widest(&self, opcode: Opcode) -> Option<&'static Variant> {
        [Form::Native, Form::E64, Form::E32].iter().find_map(|form| self.variant(opcode, *form))
    }
}

/// Slots of what a variant writes, in the order of definitions.
pub fn definitions(variant: &'static Variant) -> impl Iterator<Item = &'static OperandSlot> {
    let slots: &'static [OperandSlot] = slots(variant);
    slots.iter().filter(|slot| slot.access.writes())
}

/// Slots of what a variant reads, in the order of operands: what it only reads, what it writes, too, and what the text does not name.
pub fn operands(variant: &'static Variant) -> impl Iterator<Item = &'static OperandSlot> {
    let (written, implicit) = slots(variant).split_at_checked(variant.written.into()).unwrap_or_default();
    let only = written.iter().filter(|slot| slot.access.reads() && !slot.access.writes());
    let both = written.iter().filter(|slot| slot.access.reads() && slot.access.writes());
    only.chain(both).chain(implicit.iter().filter(|slot| slot.access.reads()))
}

fn slots(variant: &'static Variant) -> &'static [OperandSlot] {
    &variant.slots
}
