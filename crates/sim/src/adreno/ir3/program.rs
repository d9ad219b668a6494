//! Code, decoded once.

use unwedge_isa::ir3::semantics::Alu;
use unwedge_isa::ir3::{Instruction, Opcode, Operand, OperandKind};

/// Most instructions that are decoded: an instruction cache holds far fewer.
const MAX_INSTRUCTIONS: usize = 1 << 20;
/// Registers of a fiber.
const REGISTERS: usize = 48 * 4;

/// An instruction, with what its execution needs to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShaderStep {
    pub(super) instruction: Instruction,
    pub(super) alu: Alu,
    /// The result is one for the wave, and so is every source: the scalar unit executes it.
    pub(super) scalar: bool,
    /// It changes memory that others see.
    pub(super) stores: bool,
}

/// The code of a shader.
#[derive(Debug, Clone)]
pub struct ShaderProgram {
    steps: Vec<Option<ShaderStep>>,
    /// Rows of full registers that its waves need.
    registers: usize,
    /// Whose code it is: 630, 740.
    gpu_id: u32,
    has_preamble: bool,
}

impl ShaderProgram {
    /// Decodes words for a GPU (630, 740). What is not an instruction is reported when it is executed.
    pub fn new(words: impl IntoIterator<Item = u64>, gpu_id: u32) -> ShaderProgram {
        let words = words.into_iter().take(MAX_INSTRUCTIONS);
        let steps: Vec<Option<ShaderStep>> =
            words.map(|word| Instruction::decode(word, gpu_id).map(ShaderStep::new)).collect();
        let all = || steps.iter().flatten().map(|step| &step.instruction);
        let registers = all().map(registers).max().unwrap_or(0).clamp(4, REGISTERS);
        let has_preamble = all().any(|instruction| instruction.opcode == Opcode::Shps);
        ShaderProgram { steps, registers, gpu_id, has_preamble }
    }

    pub(super) fn step(&self, at: usize) -> Option<&ShaderStep> {
        self.steps.get(at)?.as_ref()
    }

    /// Full registers of a fiber, by component.
    pub(super) fn registers(&self) -> usize {
        self.registers
    }

    pub(super) fn gpu_id(&self) -> u32 {
        self.gpu_id
    }

    pub(super) fn has_preamble(&self) -> bool {
        self.has_preamble
    }

    /// How many words it has.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl ShaderStep {
    pub(super) fn new(instruction: Instruction) -> ShaderStep {
        let shared = instruction.dsts.get(0).is_some_and(|dst| dst.is_shared());
        let uniform = instruction.srcs.iter().all(|src| src.is_uniform());
        let scalar = shared && uniform && matches!(instruction.opcode.category(), 1..=4);
        let opcode = instruction.opcode;
        let atomic = opcode.name().starts_with("atomic.") && !opcode.is_local_atomic();
        ShaderStep {
            stores: atomic || matches!(opcode, Opcode::Stg | Opcode::StgA | Opcode::StibB),
            instruction,
            alu: Alu::new(&instruction),
            scalar: scalar && instruction.opcode != Opcode::Movmsk,
        }
    }
}

/// How many full registers an instruction reaches.
fn registers(instruction: &Instruction) -> usize {
    let reach = |operand: Operand| match operand.kind {
        OperandKind::RelativeGpr(_) => REGISTERS,
        OperandKind::Gpr(number) if usize::from(number) < REGISTERS => {
            let last =
                usize::from(number) + usize::from(operand.count.max(4)) + usize::from(instruction.repeat);
            if operand.half { last / 2 + 1 } else { last + 1 }
        }
        _ => 0,
    };
    instruction.dsts.iter().chain(instruction.srcs.iter()).map(reach).max().unwrap_or(0)
}
