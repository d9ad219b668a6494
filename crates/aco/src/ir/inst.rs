//! Instructions: those of the hardware, by the opcodes of the instruction tables, and pseudo instructions.
//!
//! Operands of a hardware instruction are those of its row in `data/amd`, in the order of the text: first what it only reads, then
//! what it reads and writes (the accumulator of `v_fmac_f32`), then registers that the text does not name (`scc`). Definitions are what it writes, in the same order.
//! [`super::shape`] has both for an opcode.

use super::operand::{Definition, Operand};
use super::reg::PhysReg;
use unwedge_isa::amdgcn::model::Form;
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{Access, BarrierInfo, Loc, MemoryKinds, Op as ShaderOp};

/// Declares pseudo instructions: their names in the text, and their meaning.
macro_rules! pseudo {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal;)+) => {
        /// A pseudo instruction. Its doc comment is its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Pseudo { $($(#[doc = $doc])+ $variant,)+ }

        impl Pseudo {
            /// All pseudo instructions, in the order of the table.
            pub const ALL: &'static [Pseudo] = &[$(Pseudo::$variant,)+];

            /// The name in the text.
            pub const fn name(self) -> &'static str {
                match self { $(Pseudo::$variant => $name,)+ }
            }

            /// The pseudo instruction with a name.
            pub fn from_name(name: &str) -> Option<Pseudo> {
                Some(match name { $($name => Pseudo::$variant,)+ _ => return None })
            }
        }
    };
}

pseudo! {
    /// Defines what registers hold when the program starts. The first instruction of the first block.
    StartProgram "p_startpgm";
    /// The operand of the logical predecessor that control came from; an operand for each, in their order.
    Phi "p_phi";
    /// The operand of the linear predecessor that control came from.
    LinearPhi "p_linear_phi";
    /// As [`Pseudo::Phi`], of lane masks: each lane has the bit of the predecessor that it came from.
    MaskPhi "p_mask_phi";
    /// Copies operands to definitions, all at once.
    ParallelCopy "p_parallelcopy";
    /// The operands one after the other.
    CreateVector "p_create_vector";
    /// The element of the first operand whose number is the second operand, a constant; elements have the size of the definition.
    ExtractVector "p_extract_vector";
    /// The parts of the operand one after the other.
    SplitVector "p_split_vector";
    /// Bits of the first operand, extended: element number, bits of an element (8 or 16), and whether it is sign-extended.
    Extract "p_extract";
    /// The low bits of the first operand in one element, and zeros in the others: element number, bits of an element.
    Insert "p_insert";
    /// The value of the first active lane.
    AsUniform "p_as_uniform";
    /// The logical part of a block starts here.
    LogicalStart "p_logical_start";
    /// The logical part of a block ends here: copies for phis come before it, changes of `exec` after it.
    LogicalEnd "p_logical_end";
    /// Goes to the only linear successor.
    Branch "p_branch";
    /// Goes to the second linear successor if the operand, `scc` or a lane mask, is zero, and otherwise to the first.
    BranchZ "p_cbranch_z";
    /// Goes to the second linear successor if the operand is not zero, and otherwise to the first.
    BranchNz "p_cbranch_nz";
    /// An operation over lanes, of [`Payload::Reduce`]: the value, then two linear vector registers unless all lanes of the wave are active. It
    /// defines the result, then registers that it needs: two vector registers, or with linear ones a lane mask; a scalar register; `scc`.
    Reduce "p_reduce";
    /// The same over lanes up to this one.
    InclusiveScan "p_inclusive_scan";
    /// The same over lanes before this one; the first lane has the identity of the operation.
    ExclusiveScan "p_exclusive_scan";
    /// The value of the lane with a number, for every lane: number, value, then registers that it needs.
    Permute "p_bpermute";
    /// A linear vector register that can be used from here on. Its contents are undefined.
    StartLinearVgpr "p_start_linear_vgpr";
    /// The last use of linear vector registers.
    EndLinearVgpr "p_end_linear_vgpr";
    /// A component of an attribute where lanes of a quad may be inactive, from gfx11 on: a linear vector register, the attribute and component, `m0`, bits of the component (16 or 32), and
    /// barycentric coordinates i and j.
    Interpolate "p_interp";
    /// Keeps scalar registers in lanes of a linear vector register, or vector registers in scratch: slot number, value.
    Spill "p_spill";
    /// The value of a slot.
    Reload "p_reload";
    /// Orders memory, and waits for other waves: [`Payload::Barrier`].
    Barrier "p_barrier";
    /// The address of the constant data with an offset, low and high word.
    ConstantAddress "p_constaddr";
    /// Lanes whose bit is set in the operand become helpers.
    DemoteToHelper "p_demote_to_helper";
    /// Lanes whose bit is set in the operand end.
    DiscardIf "p_discard_if";
    /// The mask of the lanes that are helpers.
    IsHelper "p_is_helper";
    /// Ends the program if no lane is left.
    ExitEarlyIf "p_exit_early_if";
    /// The end of a program that the code of another one follows. The following code finds the operands in the registers that they are fixed to.
    EndWithRegs "p_end_with_regs";
}

/// What an instruction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// An instruction of the hardware.
    Hw(Opcode),
    /// A pseudo instruction.
    Pseudo(Pseudo),
}

/// What an instruction carries besides its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Nothing.
    None,
    /// Of reductions and scans: the operation of the shader IR, the bits of a value, and the lanes of a cluster.
    Reduce(ShaderOp, u8, u8),
    /// Of a barrier.
    Barrier(BarrierInfo),
    /// Of memory accesses.
    Memory(Memory),
    /// Of copies after allocation: a scalar register that is free there, and whether `scc` holds something.
    Copy(Option<PhysReg>, bool),
}

/// What phases that move instructions or insert waits need to know of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Which memory; none if it is constant while the program runs.
    pub kinds: MemoryKinds,
    /// How.
    pub access: Access,
    /// It is scratch of the lane, which no other lane sees.
    pub private: bool,
}

impl Memory {
    /// Memory that is constant while the program runs.
    pub const CONSTANT: Memory =
        Memory { kinds: MemoryKinds::NONE, access: Access::READONLY, private: false };

    /// Memory of the workgroup that an atomic operation accesses.
    pub const SHARED_ATOMIC: Memory =
        Memory { kinds: MemoryKinds::SHARED, access: Access::ATOMIC, private: false };
}

/// Which bits of the results of float arithmetic may change. By default nothing may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FloatFreedom {
    /// The bits of a NaN, its sign among them.
    pub nans: bool,
    /// The sign of a zero.
    pub zeros: bool,
}

impl FloatFreedom {
    /// Both may.
    pub const ALL: FloatFreedom = FloatFreedom { nans: true, zeros: true };

    /// What both of two instructions that become one allow.
    pub const fn and(self, other: FloatFreedom) -> FloatFreedom {
        FloatFreedom { nans: self.nans && other.nans, zeros: self.zeros && other.zeros }
    }
}

/// A list in a pool of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct List {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// An instruction.
#[derive(Debug, Clone, Copy)]
pub struct InstData {
    /// What it is.
    pub op: Op,
    /// How it is written, of vector instructions: `Sdwa`, `Dpp` and their like if it needs them; `E64` if only that can express it; otherwise
    /// `Native`, and the assembler takes the shortest.
    pub form: Form,
    /// Modifiers.
    pub mods: Mods,
    /// What it carries besides operands and modifiers.
    pub payload: Payload,
    /// Its arithmetic must be done as written.
    pub exact: bool,
    /// What may change of its results.
    pub freedom: FloatFreedom,
    /// Where it comes from.
    pub loc: Option<Loc>,
    pub(super) operands: List,
    pub(super) definitions: List,
}

/// An instruction to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewInst<'a> {
    /// What it is.
    pub op: Op,
    /// Its form.
    pub form: Form,
    /// Modifiers.
    pub mods: Mods,
    /// What it carries besides operands and modifiers.
    pub payload: Payload,
    /// Definitions.
    pub definitions: &'a [Definition],
    /// Operands.
    pub operands: &'a [Operand],
}

impl<'a> NewInst<'a> {
    /// An instruction of the hardware.
    pub fn hw(opcode: Opcode, definitions: &'a [Definition], operands: &'a [Operand]) -> NewInst<'a> {
        NewInst {
            op: Op::Hw(opcode),
            form: Form::Native,
            mods: Mods::default(),
            payload: Payload::None,
            definitions,
            operands,
        }
    }

    /// A pseudo instruction.
    pub fn pseudo(pseudo: Pseudo, definitions: &'a [Definition], operands: &'a [Operand]) -> NewInst<'a> {
        NewInst { op: Op::Pseudo(pseudo), ..NewInst::hw(Opcode::s_nop, definitions, operands) }
    }
}

impl Op {
    /// Whether it is this pseudo instruction.
    pub fn is(self, pseudo: Pseudo) -> bool {
        self == Op::Pseudo(pseudo)
    }

    /// Whether it is a phi of any kind.
    pub fn is_phi(self) -> bool {
        matches!(self, Op::Pseudo(Pseudo::Phi | Pseudo::LinearPhi | Pseudo::MaskPhi))
    }

    /// Whether it ends a block: a branch, or the end of the program.
    pub fn is_branch(self) -> bool {
        matches!(self, Op::Pseudo(Pseudo::Branch | Pseudo::BranchZ | Pseudo::BranchNz))
    }

    /// Its name in the text.
    pub fn name(self) -> &'static str {
        match self {
            Op::Hw(opcode) => opcode.name(),
            Op::Pseudo(pseudo) => pseudo.name(),
        }
    }
}
