//! Which registers an instruction touches, in halves, and when.

use super::facts::GpuFacts;
use super::finding::Register;
use unwedge_isa::ir3::{
    Attributes, DescriptorIndex, FIRST_SHARED, Instruction, Opcode, Operand, OperandKind,
};

/// Half of a register, an address or a predicate.
pub(super) type CellIndex = u16;

/// Halves of full registers of a fiber.
const FULL_HALVES: u16 = 384;
/// Half registers of a file of their own.
const HALF_FILE: u16 = FULL_HALVES;
const SHARED: u16 = HALF_FILE + 192;
const ADDRESS: u16 = SHARED + 64;
const PREDICATE: u16 = ADDRESS + 2;
/// All of them.
pub(super) const CELLS: usize = PREDICATE as usize + 4;

/// Whether the wave shares it.
pub(super) fn is_shared(cell: CellIndex) -> bool {
    (SHARED..ADDRESS).contains(&cell)
}

/// Whether it is part of a register of the fibers.
pub(super) fn is_gpr(cell: CellIndex) -> bool {
    cell < SHARED
}

/// A part of a register that is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    pub cell: CellIndex,
    pub half: bool,
    /// Cycles after the start of the instruction.
    pub time: u8,
    /// Cycles by which the source is read later than others.
    pub late: u8,
    pub register: Register,
}

/// What an instruction touches.
#[derive(Debug, Clone, Default)]
pub(super) struct RegisterAccess {
    pub reads: Vec<Touch>,
    pub writes: Vec<Touch>,
    pub reads_constants: bool,
    /// It writes a register that `a0.x` names.
    pub writes_anywhere: bool,
    /// The largest constant that it names, by component.
    pub constant: Option<u16>,
    /// It names a register that does not exist.
    pub beyond: Option<Register>,
}

/// The parts of a register.
pub(super) fn cells_of(register: Register, facts: &GpuFacts) -> Vec<CellIndex> {
    let (kind, half) = match register {
        Register::Full(number) => (OperandKind::Gpr(number), false),
        Register::Half(number) => (OperandKind::Gpr(number), true),
        Register::Address(number) => (OperandKind::Address(number), false),
        Register::Predicate(number) => (OperandKind::Predicate(number), false),
    };
    let mut reader = Reader { facts, access: RegisterAccess::default() };
    reader.operand(&Operand::new(kind, half), 0, (0, 0), false);
    reader.access.reads.iter().map(|touch| touch.cell).collect()
}

struct Reader<'f> {
    facts: &'f GpuFacts,
    access: RegisterAccess,
}

impl RegisterAccess {
    pub(super) fn new(instruction: &Instruction, facts: &GpuFacts) -> RegisterAccess {
        let mut reader = Reader { facts, access: RegisterAccess::default() };
        reader.sources(instruction);
        reader.results(instruction);
        reader.access
    }

    /// The same, where registers are replaced by those of `alias.tex`.
    pub(super) fn replace(&mut self, aliases: &[(Operand, Operand)], facts: &GpuFacts) {
        let mut reader = Reader { facts, access: RegisterAccess::default() };
        for (name, value) in aliases {
            let mut named = Reader { facts, access: RegisterAccess::default() };
            named.operand(name, 0, (0, 0), false);
            let hidden: Vec<CellIndex> = named.access.reads.iter().map(|touch| touch.cell).collect();
            let before = self.reads.len();
            self.reads.retain(|touch| !hidden.contains(&touch.cell));
            if self.reads.len() != before {
                reader.operand(value, 0, (0, 0), false);
            }
        }
        self.reads.append(&mut reader.access.reads);
        self.reads_constants |= reader.access.reads_constants;
    }
}

impl Reader<'_> {
    /// One component of an operand, at a time and so much later.
    fn operand(&mut self, operand: &Operand, component: u8, (time, late): (u8, u8), writes: bool) {
        let half = operand.half;
        let (first, cells, register) = match operand.kind {
            OperandKind::Gpr(252..) => return,
            OperandKind::Gpr(start) => {
                let number = u16::from(start) + u16::from(component);
                let register =
                    |number: u8| if half { Register::Half(number) } else { Register::Full(number) };
                let name = register(number.min(255) as u8);
                let first_shared = u16::from(FIRST_SHARED);
                let exists = match number {
                    0..192 => start < FIRST_SHARED,
                    192..224 => self.facts.shared && start >= FIRST_SHARED,
                    _ => false,
                };
                if !exists {
                    self.access.beyond.get_or_insert(name);
                    return;
                }
                match (number >= first_shared, half) {
                    (true, true) => (SHARED + number - first_shared, 1, name),
                    (true, false) => (SHARED + 2 * (number - first_shared), 2, name),
                    (false, true) if self.facts.merged => (number, 1, name),
                    (false, true) => (HALF_FILE + number, 1, name),
                    (false, false) => (2 * number, 2, name),
                }
            }
            OperandKind::Address(number) => {
                (ADDRESS + u16::from(number % 2), 1, Register::Address(number % 2))
            }
            OperandKind::Predicate(number) => {
                (PREDICATE + u16::from(number % 4), 1, Register::Predicate(number % 4))
            }
            OperandKind::Const(number) => {
                if !writes {
                    self.access.reads_constants = true;
                    let number = number.saturating_add(component.into());
                    self.access.constant = self.access.constant.max(Some(number));
                }
                return;
            }
            OperandKind::RelativeConst(_) => {
                self.access.reads_constants |= !writes;
                return self.address(0);
            }
            OperandKind::RelativeGpr(_) => {
                self.access.writes_anywhere |= writes;
                return self.address(0);
            }
            OperandKind::IndexedConst(_) => return self.address(1),
            OperandKind::Immediate(_) | OperandKind::RenderTarget(_) => return,
        };
        let list = if writes { &mut self.access.writes } else { &mut self.access.reads };
        list.extend((first..first + cells).map(|cell| Touch { cell, half, time, late, register }));
    }

    /// An address register is read.
    fn address(&mut self, number: u8) {
        let operand = Operand::new(OperandKind::Address(number), false);
        if self.access.reads.iter().all(|touch| touch.register != Register::Address(number)) {
            self.operand(&operand, 0, (0, 0), false);
        }
    }

    fn sources(&mut self, instruction: &Instruction) {
        let texture = match &instruction.attributes {
            Attributes::Texture(access) => Some(access),
            _ => None,
        };
        for (at, operand) in instruction.srcs.iter().enumerate() {
            let count = instruction.source_components(at);
            let late = self.facts.late_source(instruction, at);
            let steps = if operand.step { instruction.repeat } else { 0 };
            // Of several registers each is read a cycle later; of the weights of `bary.f`, too, by what Mesa's compiler leaves
            // between.
            let first_cycle = match instruction.opcode {
                Opcode::Swz | Opcode::Gat | Opcode::Sct => Some(at as u8),
                Opcode::BaryF if at == 1 => Some(0),
                _ => None,
            };
            for component in 0..count.saturating_add(steps) {
                let time = match first_cycle {
                    _ if steps != 0 => component,
                    Some(first) => first + component,
                    None => 0,
                };
                self.operand(&operand, component, (time, late), false);
            }
        }
        if let Some(access) = texture {
            if let Some(numbers) = access.numbers.filter(|_| access.index != DescriptorIndex::Immediate) {
                // Beside a descriptor's set there is one number for texture and sampler, or two of 16 bits.
                let count = if numbers.half { 2 } else { 1 };
                (0..count).for_each(|component| self.operand(&numbers, component, (0, 0), false));
            }
            if access.a1 {
                self.address(1);
            }
        }
        if matches!(instruction.opcode, Opcode::Predt | Opcode::Predf) {
            self.operand(&Operand::new(OperandKind::Predicate(0), false), 0, (0, 0), false);
        }
    }

    fn results(&mut self, instruction: &Instruction) {
        let mask = match &instruction.attributes {
            Attributes::Texture(access) => access.mask,
            _ => u8::MAX,
        };
        for (at, operand) in instruction.dsts.iter().enumerate() {
            let count = operand.count.max(1).saturating_add(instruction.repeat);
            let parts = matches!(instruction.opcode, Opcode::Swz | Opcode::Sct);
            for component in (0..count).filter(|at| mask >> (at % 8) & 1 != 0) {
                let time = if parts { at as u8 } else { component };
                self.operand(&operand, component, (time, 0), true);
            }
        }
    }
}
