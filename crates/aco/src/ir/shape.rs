//! What an opcode's operands and definitions are: the rows of the instruction tables in the order of the IR.
//!
//! Never: which of several forms is best; the assembler decides that.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use unwedge_isa::amdgcn::model::{Class, Form, Format, Mod, OperandSlot, Type};
use unwedge_isa::amdgcn::tables::{self, Variant};
use unwedge_isa::amdgcn::{Gpu, Opcode, Reg};

/// How many forms an instruction may have.
const FORMS: usize = Form::ALL.len();
const NONE: u16 = u16::MAX;

/// By form: the number of a variant, or [`NONE`].
type FormNumbers = [u16; FORMS];

/// What is often asked of the most general variant of an opcode.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpSummary {
    /// How many registers it writes: its result, and possibly `scc` or a mask. One if the GPU does not have the opcode.
    pub definitions: u8,
    /// Which operand is a lane mask.
    pub mask: Option<u8>,
    /// It has a short encoding, which takes a literal on GPUs whose long encoding does not.
    pub short: bool,
    /// Some operand or definition can be in one register only.
    pub bound: bool,
    /// Its short encoding has a mask in `vcc`.
    pub short_mask: bool,
}

/// The variants of a GPU, by opcode and form.
#[derive(Debug, Clone)]
pub struct Variants {
    gpu: Gpu,
    numbers: Arc<[FormNumbers]>,
    halves: Arc<[FormNumbers]>,
    summaries: Arc<[OpSummary]>,
}

/// The variants of the GPUs that were asked for.
static CACHED: Mutex<Vec<Variants>> = Mutex::new(Vec::new());

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

/// Variants of an opcode with their numbers, for all GPUs.
pub fn variants_of(opcode: Opcode) -> impl Iterator<Item = (u16, &'static Variant)> {
    let range = match FIRST_VARIANTS.get(opcode as usize..) {
        Some(&[first, end, ..]) => first..end,
        _ => 0..0,
    };
    let own = tables::variants().get(usize::from(range.start)..usize::from(range.end));
    range.zip(own.unwrap_or_default())
}

/// By opcode and form: the first variant that a GPU has, or the first with named register halves.
fn form_numbers(gpu: &Gpu, has: fn(&Variant, &Gpu) -> bool) -> Arc<[FormNumbers]> {
    let mut numbers = vec![[NONE; FORMS]; tables::rows().len()];
    for (number, variant) in (0..).zip(tables::variants()) {
        let own =
            numbers.get_mut(usize::from(variant.row)).and_then(|own| own.get_mut(variant.form as usize));
        if let Some(place) = own
            && *place == NONE
            && variant.second.is_none()
            && has(variant, gpu)
        {
            *place = number;
        }
    }
    numbers.into()
}

impl Variants {
    /// The variants of a GPU, which are looked up once in a process.
    pub fn of(gpu: &Gpu) -> Variants {
        let mut known = CACHED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = known.iter().find(|variants| variants.gpu == *gpu) {
            return own.clone();
        }
        let mut own = Variants {
            gpu: *gpu,
            numbers: form_numbers(gpu, tables::has),
            halves: form_numbers(gpu, tables::has_halves),
            summaries: Arc::default(),
        };
        own.summaries = tables::rows().iter().map(|row| own.summarized(row.opcode)).collect();
        known.push(own.clone());
        own
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The number of the variant of an opcode in a form, if the GPU has it.
    pub fn number(&self, opcode: Opcode, form: Form) -> Option<u16> {
        let number = *self.numbers.get(opcode as usize)?.get(form as usize)?;
        (number != NONE).then_some(number)
    }

    /// The number of the variant of an opcode in a form with named register halves. From gfx11 on, 16-bit instructions have one in addition to that of
    /// [`Variants::number`].
    pub fn halves(&self, opcode: Opcode, form: Form) -> Option<u16> {
        let number = *self.halves.get(opcode as usize)?.get(form as usize)?;
        (number != NONE).then_some(number)
    }

    /// Whether an opcode can read the upper half of a source in a form.
    pub fn reads_upper(&self, opcode: Opcode, form: Form, source: u8) -> bool {
        let numbers = [self.number(opcode, form), self.halves(opcode, form)];
        let variants =
            numbers.into_iter().flatten().filter_map(|number| tables::variants().get(usize::from(number)));
        variants
            .flat_map(|variant| variant.mods.iter())
            .any(|slot| slot.id == Mod::OpSel && slot.mask >> source & 1 != 0)
    }

    /// The variant of an opcode in a form.
    pub fn variant(&self, opcode: Opcode, form: Form) -> Option<&'static Variant> {
        tables::variants().get(usize::from(self.number(opcode, form)?))
    }

    /// Whether the GPU has an opcode in any form.
    pub fn has(&self, opcode: Opcode) -> bool {
        self.numbers.get(opcode as usize).is_some_and(|numbers| *numbers != [NONE; FORMS])
    }

    fn summarized(&self, opcode: Opcode) -> OpSummary {
        let Some(variant) = self.widest(opcode) else {
            return OpSummary { definitions: 1, ..OpSummary::default() };
        };
        let mask = operands(variant).position(|slot| slot.ty == Type::Mask).map(|at| at as u8);
        let written = definitions(variant).count() as u8;
        let format = opcode.row().format;
        let short = self.variant(opcode, Form::E32);
        let is_vcc = |slot: &OperandSlot| slot.reg == Reg::VCC.0 && slot.ty == Type::Mask;
        OpSummary {
            definitions: written,
            mask,
            short: short.is_some()
                && matches!(format, Format::Vop1 | Format::Vop2)
                && mask.is_none()
                && written == 1,
            bound: slots(variant).iter().any(|slot| {
                let only = matches!(slot.class, Class::Fixed | Class::FixedOptional | Class::Implicit);
                only || slot.access.reads() && slot.access.writes()
            }),
            short_mask: short.is_some_and(|short| slots(short).iter().any(is_vcc)),
        }
    }

    /// What is often asked of an opcode.
    pub fn summary(&self, opcode: Opcode) -> OpSummary {
        self.summaries.get(opcode as usize).copied().unwrap_or_default()
    }

    /// The most general variant: the native one, the encoding with three operands, or the short one.
    pub fn widest(&self, opcode: Opcode) -> Option<&'static Variant> {
        [Form::Native, Form::E64, Form::E32].iter().find_map(|form| self.variant(opcode, *form))
    }
}

/// Slots that a variant writes, in the order of definitions.
pub fn definitions(variant: &'static Variant) -> impl Iterator<Item = &'static OperandSlot> {
    let slots: &'static [OperandSlot] = slots(variant);
    slots.iter().filter(|slot| slot.access.writes())
}

/// Slots that a variant reads, in the order of operands: those that it only reads, those that it also writes, and those that the text does not name.
pub fn operands(variant: &'static Variant) -> impl Iterator<Item = &'static OperandSlot> {
    let (written, implicit) = slots(variant).split_at_checked(variant.written.into()).unwrap_or_default();
    let only = written.iter().filter(|slot| slot.access.reads() && !slot.access.writes());
    let both = written.iter().filter(|slot| slot.access.reads() && slot.access.writes());
    only.chain(both).chain(implicit.iter().filter(|slot| slot.access.reads()))
}

/// The operands that are the address of an image instruction, of which `count` are given: that of its slot, and those that follow the operands of all slots.
pub fn image_address(variant: &'static Variant, count: usize) -> impl Iterator<Item = usize> {
    let first = operands(variant).position(|slot| slot.class == Class::ImageAddr);
    first.into_iter().flat_map(move |first| [first].into_iter().chain(operands(variant).count()..count))
}

fn slots(variant: &'static Variant) -> &'static [OperandSlot] {
    &variant.slots
}
