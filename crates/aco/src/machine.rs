//! Instructions of the hardware as the assembler takes them.
//!
//! Takes `Lowered`, and makes each instruction one of [`unwedge_isa::amdgcn::Inst`] in its shortest form. Labels are numbers of blocks. The phases after
//! it work on what the hardware executes. Never: words.

use crate::assemble::with_offset;
use crate::cost::BlockDepth;
use crate::error::FinishError;
use crate::ir::shape::{self, Variants};
use crate::ir::{BlockData, Inst, Neighbours, Op, Operand, PhysReg, Program, RegClass, Source};
use crate::sums;
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::model::{Class, Form, Format, Gfx, Mod, OperandSlot, Trait, Type};
use unwedge_isa::amdgcn::{self, Gpu, Mods, Opcode, Reg, RegHalf, codec};

/// An instruction as the hardware executes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineInst {
    /// The instruction.
    pub inst: amdgcn::Inst,
    /// The instruction of the program that it comes from; `None` if a later phase inserted it.
    pub from: Option<Inst>,
    /// If two instructions became one: what the second one comes from.
    pub paired: Option<Inst>,
}

/// A block of machine instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineBlock {
    /// In order.
    pub insts: Vec<MachineInst>,
    /// Blocks that come before it.
    pub preds: Vec<usize>,
    /// Blocks that come after it.
    pub succs: Vec<usize>,
    /// The loops and branches around it.
    pub depth: BlockDepth,
    /// Lanes nearly always execute the block that the branch skips.
    pub taken: bool,
}

/// A program as the hardware executes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineProgram {
    /// What it is for.
    pub gpu: Gpu,
    /// The code of other programs before and after this one.
    pub neighbours: Neighbours,
    /// In the order of the code.
    pub blocks: Vec<MachineBlock>,
}

/// Makes the machine program.
///
/// # Errors
///
/// [`FinishError::Encode`] and [`FinishError::NoForm`] for what the GPU cannot encode.
pub fn from_program(program: &Program, variants: &Variants) -> Result<MachineProgram, FinishError> {
    from_program_in(program, variants, Vec::new())
}

/// The machine program, reusing the memory of the blocks of an earlier program.
pub(crate) fn from_program_in(
    program: &Program,
    variants: &Variants,
    mut blocks: Vec<MachineBlock>,
) -> Result<MachineProgram, FinishError> {
    blocks.resize_with(program.blocks.len(), MachineBlock::default);
    for (data, block) in program.blocks.values().zip(&mut blocks) {
        block.insts.clear();
        block.insts.reserve(data.insts.len());
        for &inst in &data.insts {
            let made = machine_inst(program, variants, inst)?;
            let made = sums::shortened(&made, variants).unwrap_or(made);
            block.insts.push(MachineInst { inst: made, from: Some(inst), paired: None });
        }
        for (numbers, list) in
            [(&mut block.preds, &data.linear_preds), (&mut block.succs, &data.linear_succs)]
        {
            numbers.clear();
            numbers.extend(list.iter().map(|block| block.index()));
        }
        (block.depth, block.taken) = (depth(data), data.taken);
    }
    Ok(MachineProgram { gpu: program.gpu, neighbours: program.neighbours, blocks })
}

fn depth(data: &BlockData) -> BlockDepth {
    let alone = data.linear_preds.len() == 1 && data.linear_succs.len() == 1;
    BlockDepth {
        loops: data.loop_depth,
        uniform: data.uniform_depth,
        divergent: data.divergent_depth,
        empty: data.logical_preds.is_empty() && alone,
    }
}

/// The forms of an instruction, in the order of their length.
const SHORTEST: [Form; 3] = [Form::Native, Form::E32, Form::E64];

fn machine_inst(program: &Program, variants: &Variants, inst: Inst) -> Result<amdgcn::Inst, FinishError> {
    let Op::Hw(opcode) = program.op(inst) else {
        return Err(FinishError::NotDone {
            inst,
            name: program.op(inst).name(),
            reason: "a pseudo instruction",
        });
    };
    let own = [program[inst].form];
    let forms: &[Form] = match own[0] {
        Form::Native => &SHORTEST,
        // From gfx11 on, short encodings have only the first 128 registers for values of 16 bits.
        Form::Dpp => &[Form::Dpp, Form::E64Dpp],
        Form::Dpp8 => &[Form::Dpp8, Form::E64Dpp8],
        _ => &own,
    };
    let mut failed = FinishError::NoForm { inst, name: opcode.name() };
    // From gfx11 on upper halves have names, also in the short encodings.
    let named: [Option<Form>; 2] = match own[0] {
        _ if !program[inst].mods.has(Mod::OpSel) => [None; 2],
        Form::Native | Form::E64 => [Some(Form::E32), Some(Form::E64)],
        Form::E64Dpp => [Some(Form::Dpp), Some(Form::E64Dpp)],
        Form::E64Dpp8 => [Some(Form::Dpp8), Some(Form::E64Dpp8)],
        _ => [None; 2],
    };
    let [short, long] = named.map(|form| form.and_then(|form| variants.halves(opcode, form)));
    // Instructions that have one form only.
    let long = long.or_else(|| named[1].and_then(|_| variants.halves(opcode, Form::Native)));
    let plain = forms.iter().filter_map(|form| variants.number(opcode, *form));
    let mut numbers = short.into_iter().chain(plain).chain(long).peekable();
    while let Some(number) = numbers.next() {
        let Some(made) = with_variant(program, inst, number) else { continue };
        // The assembler says whether the last one can be encoded. Labels are numbers of blocks, which may not fit the field of an offset.
        if numbers.peek().is_none() {
            return Ok(made);
        }
        match codec::encode(&with_offset(&made, 0), &program.gpu) {
            Ok(_) => return Ok(made),
            Err(source) => failed = FinishError::Encode { inst, name: opcode.name(), source },
        }
    }
    Err(failed)
}

/// The instruction in one form, if that has all modifiers.
fn with_variant(program: &Program, inst: Inst, number: u16) -> Option<amdgcn::Inst> {
    let mut made = amdgcn::Inst::new(number)?;
    let variant = made.variant();
    made.mods = program[inst].mods;
    // The short encodings have no modifier for this, so their operands say it.
    let mut upper = 0;
    if made.mods.has(Mod::OpSel)
        && !variant.has_mod(Mod::OpSel)
        && variant.slots.iter().any(|slot| slot.class.encodes_half())
    {
        upper = made.mods.get(Mod::OpSel);
        made.mods.set(Mod::OpSel, 0);
    }
    let unknown =
        made.mods != Mods::default() && Mod::ALL.iter().any(|id| made.mods.has(*id) && !variant.has_mod(*id));
    let smem = made.row().format == Format::Smem;
    if unknown && !smem {
        return None;
    }
    let (operands, definitions) = (program.operands(inst), program.definitions(inst));
    let written = usize::from(variant.written);
    let place = |slot: &OperandSlot| variant.slots.iter().position(|other| std::ptr::eq(other, slot));
    let mut read = shape::operands(variant);
    for operand in operands {
        let Some(slot) = read.next() else {
            // LDS instructions also read `m0`, which their row does not have. The address of an image has been made with its first part.
            let implied =
                operand.reg == Some(PhysReg::M0) || shape::image_address(variant, 0).next().is_some();
            if implied { break } else { return None }
        };
        let at = place(slot)?;
        if at < written {
            let slot = &variant.slots[at];
            made.operands[at] = match operand.as_const() {
                // Sources of mixed precision that are constants have 32 bits.
                Some(bits) if made.row().traits.has(Trait::Mix) => {
                    let code = inline(&program.gpu, Type::F32, bits);
                    code.map_or(amdgcn::Operand::Literal(bits as u32), amdgcn::Operand::Inline)
                }
                _ => machine_operand(&program.gpu, slot, operand)?,
            };
            name_half(&mut made, at, operand.reg, operand.class)?;
            if slot.class == Class::ImageAddr {
                let parts = shape::image_address(variant, operands.len()).map(|at| &operands[at]);
                image_address(&mut made, at, parts, program.gpu.generation())?;
            }
        }
    }
    for slot in read {
        let at = place(slot)?;
        if at < written {
            made.operands[at] = absent(slot)?;
        }
    }
    let mut defined = shape::definitions(variant);
    for definition in definitions {
        let at = place(defined.next()?)?;
        if at < written {
            made.operands[at] = amdgcn::Operand::reg(definition.reg?.reg(), definition.class.dwords());
            name_half(&mut made, at, definition.reg, definition.class)?;
        }
    }
    if made.mods.has(Mod::Compr) {
        write_halves(&mut made);
    }
    (!program[inst].mods.has(Mod::OpSel) || name_halves(&mut made, upper)).then_some(made)
}

/// Names the halves of operands: the upper one for each bit that is set, as `op_sel` does in other encodings. Returns whether that is
/// possible for all bits.
fn name_halves(inst: &mut amdgcn::Inst, mut upper: i32) -> bool {
    let variant = inst.variant();
    for (slot, operand) in variant.slots.iter().take(variant.written.into()).zip(&mut inst.operands) {
        let amdgcn::Operand::Reg { reg, half, .. } = operand else { continue };
        let named = matches!(slot.class, Class::VgprNamed | Class::VgprNamedSrc | Class::SrcNamed);
        if reg.is_vgpr() && (named || slot.class.encodes_half()) {
            let bit = 1 << codec::half_bit(slot);
            *half = if upper & bit != 0 { RegHalf::High } else { RegHalf::Low };
            upper &= !bit;
        }
    }
    upper == 0
}

/// An export of halves is written with each register twice, where its halves are enabled.
fn write_halves(inst: &mut amdgcn::Inst) {
    let [_, low, high, ..] = inst.operands;
    let enabled = inst.mods.get(Mod::En);
    for (at, register) in [low, low, high, high].into_iter().enumerate() {
        inst.operands[1 + at] = if enabled >> at & 1 != 0 { register } else { amdgcn::Operand::Off };
    }
}

/// Where a value of 16 bits is in the upper half of a register: names that half. `None` if the form has no way to.
fn name_half(inst: &mut amdgcn::Inst, at: usize, reg: Option<PhysReg>, class: RegClass) -> Option<()> {
    let Some(reg) = reg.filter(|reg| class.bytes() == 2 || reg.byte() != 0) else { return Some(()) };
    let variant = inst.variant();
    let slot = &variant.slots[at];
    let high = match reg.byte() {
        0 => false,
        2 => true,
        _ => return None,
    };
    match (slot.class, &mut inst.operands[at]) {
        (class, amdgcn::Operand::Reg { reg, half, .. }) if class.encodes_half() && reg.is_vgpr() => {
            *half = if high { RegHalf::High } else { RegHalf::Low };
        }
        _ if high && variant.has_mod(Mod::OpSel) => {
            inst.mods.set(Mod::OpSel, inst.mods.get(Mod::OpSel) | 1 << codec::half_bit(slot));
        }
        _ if high => return None,
        _ => {}
    }
    Some(())
}

/// Makes the address of an image: consecutive registers where the GPU can name only the first one, which is shorter, or a list.
fn image_address<'o>(
    inst: &mut amdgcn::Inst,
    at: usize,
    parts: impl Iterator<Item = &'o Operand>,
    generation: Gfx,
) -> Option<()> {
    let (mut count, mut next, mut follow) = (0u8, None, true);
    for part in parts {
        let reg = if part.is_undef() { Reg::VGPR0 } else { part.reg?.reg() };
        let number = reg.lane_number().filter(|_| reg.is_vgpr())?;
        *inst.list.get_mut(usize::from(count))? = number as u8;
        follow &= next.is_none_or(|next| next == number);
        next = Some(number + u16::from(part.class.dwords()));
        count += 1;
    }
    let first = inst.list[0];
    let dwords = next?.checked_sub(first.into()).and_then(|dwords| u8::try_from(dwords).ok());
    let listed = generation >= Gfx::Gfx12 && dwords != Some(1);
    if follow && !listed {
        inst.list = Default::default();
        inst.operands[at] = amdgcn::Operand::reg(Reg::vgpr(first), dwords?);
        return Some(());
    }
    inst.operands[at] = amdgcn::Operand::List(count);
    (count > 1).then_some(())
}

/// An operand that is left out.
fn absent(slot: &OperandSlot) -> Option<amdgcn::Operand> {
    match slot.class {
        Class::Imm16Optional => Some(amdgcn::Operand::Imm(0)),
        Class::GlobalBase | Class::ScratchBase | Class::BufferAddr | Class::ExpSrc => {
            Some(amdgcn::Operand::Off)
        }
        Class::Returned => Some(amdgcn::Operand::None),
        _ => None,
    }
}

fn machine_operand(gpu: &Gpu, slot: &OperandSlot, operand: &Operand) -> Option<amdgcn::Operand> {
    match operand.source {
        Source::Const(bits) => constant(gpu, slot, bits),
        Source::Undef => Some(undefined(slot, operand)),
        Source::Temp(_) | Source::Fixed => {
            Some(amdgcn::Operand::reg(operand.reg?.reg(), operand.class.dwords()))
        }
    }
}

/// Some value that the slot accepts.
fn undefined(slot: &OperandSlot, operand: &Operand) -> amdgcn::Operand {
    let dwords = operand.class.dwords();
    match (slot.class, operand.reg) {
        (_, Some(reg)) => amdgcn::Operand::reg(reg.reg(), dwords),
        (
            Class::BufferAddr | Class::GlobalBase | Class::ScratchBase | Class::ScratchAddr | Class::ExpSrc,
            None,
        ) => amdgcn::Operand::Off,
        (
            Class::Src | Class::SrcLow | Class::SrcInline | Class::Ssrc | Class::Ssrc32 | Class::SsrcInline,
            None,
        ) => amdgcn::Operand::Inline(128),
        (Class::Sreg | Class::SregPair | Class::SregQuad, None) => amdgcn::Operand::reg(Reg::sgpr(0), dwords),
        _ => amdgcn::Operand::reg(Reg::VGPR0, dwords),
    }
}

fn constant(gpu: &Gpu, slot: &OperandSlot, bits: u64) -> Option<amdgcn::Operand> {
    use amdgcn::Operand as Machine;
    let number = bits as u32 as i32;
    Some(match slot.class {
        Class::Imm16
        | Class::Imm16Optional
        | Class::Hwreg
        | Class::SendMsg
        | Class::SendMsgRtn
        | Class::Waitcnt
        | Class::Depctr
        | Class::WaitEvent
        | Class::DelayAlu
        | Class::GprIdx
        | Class::Label
        | Class::Imm5
        | Class::Imm7
        | Class::Imm24
        | Class::Version
        | Class::Attr
        | Class::InterpSlot
        | Class::ExpTarget => Machine::Imm(number),
        Class::Imm32 => Machine::Literal(number as u32),
        Class::SmemOffset => smem_offset(gpu, number)?,
        Class::BufferOffset if gpu.generation() >= Gfx::Gfx12 && bits == 0 => Machine::reg(Reg::NULL, 1),
        _ => match inline(gpu, slot.ty, bits) {
            Some(code) => Machine::Inline(code),
            // A literal is a word: of bits, with zeros above.
            None if slot.ty == Type::B64 && bits <= u32::MAX.into() => Machine::Literal(number as u32),
            None if slot.ty.bits() == 64 => return None,
            None => Machine::Literal(number as u32),
        },
    })
}

/// The offset of scalar memory, in bytes; gfx6 and gfx7 count dwords.
fn smem_offset(gpu: &Gpu, bytes: i32) -> Option<amdgcn::Operand> {
    if gpu.generation() >= Gfx::Gfx8 {
        return Some(amdgcn::Operand::Imm(bytes));
    }
    let dwords = u32::try_from(bytes / 4).ok().filter(|_| bytes % 4 == 0)?;
    match dwords {
        0..=255 => Some(amdgcn::Operand::Imm(dwords as i32)),
        _ if gpu.generation() == Gfx::Gfx7 => Some(amdgcn::Operand::Literal(dwords)),
        _ => None,
    }
}

/// The code of an inline constant in an operand of a type.
pub fn inline(gpu: &Gpu, ty: Type, bits: u64) -> Option<u8> {
    const FLOATS: [f32; 8] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0];
    let value = match ty.bits() {
        16 => i64::from(bits as i16),
        64 => bits as i64,
        _ => i64::from(bits as i32),
    };
    match value {
        0..=64 => return Some(128 + value as u8),
        -16..=-1 => return Some((192 - value) as u8),
        _ => {}
    }
    let tau = gpu.generation() >= Gfx::Gfx8;
    let at = match ty {
        // The upper half of a float for pairs is zero.
        Type::F16 | Type::PkF16 => {
            let halves = [0x3800u64, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400];
            let bits = if ty == Type::F16 { bits & 0xffff } else { bits };
            if tau && bits == 0x3118 {
                return Some(248);
            }
            halves.iter().position(|half| *half == bits)
        }
        _ if ty.is_packed() || ty.bits() == 16 => None,
        _ if ty.bits() == 64 => {
            if tau && bits == 0x3fc4_5f30_6dc9_c882 {
                return Some(248);
            }
            FLOATS.iter().position(|float| f64::from(*float).to_bits() == bits)
        }
        _ => {
            if tau && bits as u32 == 0x3e22_f983 {
                return Some(248);
            }
            FLOATS.iter().position(|float| float.to_bits() == bits as u32)
        }
    };
    at.map(|at| 240 + at as u8)
}

/// An instruction that later phases insert, with operands in the order they are written.
pub(crate) fn plain(opcode: Opcode, operands: &[amdgcn::Operand], gpu: &Gpu) -> Option<MachineInst> {
    let number = shape::variants_of(opcode).find(|(_, variant)| amdgcn::tables::has(variant, gpu))?.0;
    let mut inst = amdgcn::Inst::new(number)?;
    inst.operands[..operands.len()].copy_from_slice(operands);
    Some(MachineInst { inst, from: None, paired: None })
}
