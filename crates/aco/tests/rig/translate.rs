//! Programs of recorded cases in the IR of this compiler.

use super::cases::{Case, CaseLine, PseudoLine, PseudoOperand};
use std::collections::{HashMap, HashSet};
use unwedge_aco::ir::shape::{self, Variants};
use unwedge_aco::ir::{
    Block, Definition, FloatFreedom, Inst, NewInst, Op, Operand, Payload, PhysReg, Program, Pseudo, RegClass,
    Temp, text,
};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::model::{Class, Form, Mod, Role, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// The registers of a text as `s[0:1]`, `v0.b2-3`, `m0`: the first byte.
pub fn register(text: &str) -> Result<PhysReg, String> {
    let (reg, byte) = match text.split_once(".b") {
        Some((reg, bytes)) => (reg, bytes.split('-').next().and_then(|first| first.parse().ok())),
        None => (text, Some(0)),
    };
    let (kind, rest) = reg.split_at(1);
    let first = rest.trim_start_matches('[').split([':', ']', '-']).next().unwrap_or_default();
    let number = first.parse::<u8>().ok();
    let first = match (kind, number) {
        ("v", Some(number)) => Some(PhysReg::vgpr(number)),
        ("s", Some(number)) => Some(PhysReg::sgpr(number)),
        _ => match reg {
            "vcc" => Some(PhysReg::VCC),
            "exec" => Some(PhysReg::EXEC),
            "scc" => Some(PhysReg::SCC),
            "m0" => Some(PhysReg::M0),
            _ => None,
        },
    };
    let first = first.ok_or_else(|| format!("register {text}"))?;
    Ok(first.advance(byte.ok_or_else(|| format!("register {text}"))?))
}

/// A class as ACO names it.
pub fn class(name: &str) -> Result<RegClass, String> {
    let own = name.strip_prefix("vl").map_or_else(|| name.to_owned(), |size| format!("lv{size}"));
    RegClass::parse(&own).ok_or_else(|| format!("class {name}"))
}

/// Temporaries of a case by number.
#[derive(Default)]
pub struct Temps(pub HashMap<u32, Temp>);

impl Temps {
    pub fn definition(&mut self, program: &mut Program, from: &PseudoOperand) -> Result<Definition, String> {
        let class = class(from.class.as_deref().ok_or("a definition without class")?)?;
        let reg = from.reg.as_deref().map(register).transpose()?;
        let temp = from.temp.map(|number| {
            let temp = program.make_temp(class);
            self.0.insert(number, temp);
            temp
        });
        Ok(Definition { reg, temp, ..Definition::reg(PhysReg::sgpr(0), class) })
    }

    pub fn operand(&self, program: &Program, from: &PseudoOperand) -> Result<Operand, String> {
        if let Some((bits, bytes)) = from.constant {
            return Ok(match bytes {
                4 => Operand::c32(bits as u32),
                8 => Operand::c64(bits),
                _ => Operand::constant(bits, RegClass::vgpr_bytes(bytes)),
            });
        }
        let reg = from.reg.as_deref().map(register).transpose()?;
        if let Some(number) = from.temp {
            let temp = *self.0.get(&number).ok_or_else(|| format!("%{number} is not defined"))?;
            return Ok(Operand { reg, ..Operand::temp(temp, program.class(temp)) });
        }
        match (reg, from.class.as_deref()) {
            (Some(reg), Some(name)) => Ok(Operand::reg(reg, class(name)?)),
            (None, Some(name)) => Ok(Operand::undef(class(name)?)),
            _ => Err("an operand without class".to_owned()),
        }
    }
}

/// What a case says of a pseudo instruction beside its operands: of a copy which scalar register is free. Where that is one, `scc` holds something.
pub fn payload(line: &PseudoLine) -> Result<Payload, String> {
    match line.scratch.as_deref() {
        _ if line.op != "p_parallelcopy" => Ok(Payload::None),
        None | Some("scc") => Ok(Payload::Copy(None, false)),
        Some(reg) => Ok(Payload::Copy(Some(register(reg)?), true)),
    }
}

/// Appends a pseudo instruction to the first block.
pub fn append(program: &mut Program, temps: &mut Temps, line: &PseudoLine) -> Result<(), String> {
    let op = Pseudo::from_name(&line.op).ok_or_else(|| line.op.clone())?;
    let operands: Vec<Operand> =
        line.operands.iter().map(|from| temps.operand(program, from)).collect::<Result<_, _>>()?;
    let definitions: Vec<Definition> =
        line.definitions.iter().map(|from| temps.definition(program, from)).collect::<Result<_, _>>()?;
    let new = NewInst { payload: payload(line)?, ..NewInst::pseudo(op, &definitions, &operands) };
    let block = program.blocks.keys().last().ok_or("no block")?;
    program.append(block, &new);
    Ok(())
}

/// The parts of a block's code between separators.
pub fn sections(code: &[CaseLine]) -> Vec<&[CaseLine]> {
    code.split(|line| matches!(line, CaseLine::Mark(_))).collect()
}

/// Where programs in SSA form store what a case makes: the descriptor, and the address of the lane.
const DESCRIPTOR: u8 = 0;
/// Bytes of results of a lane.
pub const LANE_BYTES: u32 = 1024;

/// A program in SSA form that stores the result of each part of a case.
pub struct Ssa {
    pub program: Program,
    /// Registers of arguments beside the descriptor and the address in `v0`.
    pub arguments: Vec<CaseArgument>,
    /// Instructions that store results, and what they need; of [`whole`] only what they need.
    pub stores: usize,
    /// Results in the order of their places, [`PART_BYTES`] apart.
    pub parts: Vec<PartResult>,
    /// Instructions of the parts after ACO's phase.
    pub theirs: usize,
    /// Why parts are left out.
    pub left: Vec<String>,
}

/// Bytes from a result to the next.
pub const PART_BYTES: u32 = 16;

/// An argument of a case.
#[derive(Debug, Clone, Copy)]
pub struct CaseArgument {
    /// Its first register, and how many it has.
    pub reg: PhysReg,
    pub dwords: u8,
    /// The bits that it may have.
    pub most: u32,
    /// Its temporary in the program.
    pub temp: Option<Temp>,
}

/// The result of a part.
#[derive(Debug, Clone, Copy)]
pub struct PartResult {
    /// What its bits are.
    pub ty: Type,
    /// What may change of it.
    pub freedom: FloatFreedom,
}

/// What ACO prints of an instruction beside its operands.
#[derive(Default)]
struct Printed {
    mods: Mods,
    /// Bits that an operand has at most, by number of the operand.
    bounds: Vec<(usize, u32)>,
    /// Lanes move, in one of these forms.
    lanes: Option<[Form; 2]>,
    freedom: FloatFreedom,
}

/// The control of DPP that ACO names so.
fn dpp_control(word: &str) -> Option<i32> {
    let (name, value) = word.split_once(':').unwrap_or((word, "0"));
    let number = value.parse().unwrap_or(0);
    let list = || value.trim_matches(['[', ']']).split(',').filter_map(|lane| lane.parse::<i32>().ok());
    Some(match name {
        "row_shl" => 0x100 + number,
        "row_shr" => 0x110 + number,
        "row_ror" => 0x120 + number,
        "row_mirror" => 0x140,
        "row_half_mirror" => 0x141,
        "quad_perm" => list().enumerate().map(|(at, lane)| lane << (2 * at)).sum(),
        _ => return None,
    })
}

/// Reads modifiers of the line as ACO prints it.
fn printed(line: &str, slots: &[u8]) -> Result<Printed, String> {
    let mut found = Printed::default();
    let Some((left, right)) = line.split_once(" = ") else { return Ok(found) };
    let precise = left.contains("(precise)");
    found.freedom = FloatFreedom {
        nans: !precise && !left.contains("NaNPreserve"),
        zeros: !precise && !left.contains("SzPreserve"),
    };
    let Some((_, mut rest)) = right.split_once(' ') else { return Ok(found) };
    // Operands end where no comma follows.
    let mut operands = Vec::new();
    loop {
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        operands.push(&rest[..end]);
        match rest[end..].strip_prefix(", ") {
            Some(next) => rest = next,
            None => {
                rest = rest[end..].trim();
                break;
            }
        }
    }
    for (at, operand) in operands.iter().enumerate() {
        let bit = 1 << slots.get(at).copied().unwrap_or(at as u8);
        let mut set = |id: Mod| found.mods.set(id, found.mods.get(id) | bit);
        if operand.contains('%') && operand.contains('-') {
            set(Mod::Neg);
        }
        if operand.contains('|') {
            set(Mod::Abs);
        }
        if operand.contains("hi(") {
            set(Mod::OpSel);
        }
        for (name, bits) in [("(is16bit)", 16), ("(is24bit)", 24)] {
            if operand.contains(name) {
                found.bounds.push((at, bits));
            }
        }
    }
    for word in rest.split_whitespace() {
        match word {
            "clamp" => found.mods.set(Mod::Clamp, 1),
            "*2" => found.mods.set(Mod::Omod, 1),
            "*4" => found.mods.set(Mod::Omod, 2),
            "*0.5" => found.mods.set(Mod::Omod, 3),
            "fi" => found.mods.set(Mod::Fi, 1),
            "bound_ctrl:1" => found.mods.set(Mod::BoundCtrl, 1),
            other => match (dpp_control(other), other.strip_prefix("dpp8:")) {
                (Some(control), _) => {
                    found.mods.set(Mod::DppCtrl, control);
                    found.mods.set(Mod::RowMask, 15);
                    found.mods.set(Mod::BankMask, 15);
                    found.lanes = Some([Form::Dpp, Form::E64Dpp]);
                }
                (None, Some(list)) => {
                    let lanes = list.trim_matches(['[', ']']).split(',').filter_map(|lane| lane.parse().ok());
                    let select: i32 = lanes.enumerate().map(|(at, lane): (_, i32)| lane << (3 * at)).sum();
                    found.mods.set(Mod::Dpp8, select);
                    found.lanes = Some([Form::Dpp8, Form::E64Dpp8]);
                }
                _ => return Err(format!("modifier {other}")),
            },
        }
    }
    Ok(found)
}

impl Temps {
    /// Appends an instruction of a case to a block.
    fn ssa(
        &mut self,
        program: &mut Program,
        variants: &Variants,
        block: Block,
        line: &PseudoLine,
    ) -> Result<(), String> {
        let operands: Vec<Operand> =
            line.operands.iter().map(|from| self.operand(program, from)).collect::<Result<_, _>>()?;
        let print = line.print.as_deref().unwrap_or_default();
        if let Some(pseudo) = Pseudo::from_name(&line.op) {
            let from = line.definitions.first().and_then(|from| from.class.as_deref());
            let narrow = |operand: &Operand| {
                from.is_some_and(|name| class(name).is_ok_and(|to| to.bytes() > operand.class.bytes()))
            };
            if pseudo == Pseudo::AsUniform && operands.iter().any(narrow) {
                return Err("more bits than there are become uniform".to_owned());
            }
            let definitions: Vec<Definition> = line
                .definitions
                .iter()
                .map(|from| self.definition(program, from))
                .collect::<Result<_, _>>()?;
            program.append(block, &NewInst::pseudo(pseudo, &definitions, &operands));
            return Ok(());
        }
        let name = line.op.trim_end_matches("_e64");
        let known = |name: &str| text::opcode(&program.gpu, name);
        let opcode =
            known(name).or_else(|| known(name.strip_suffix("_inreg")?)).ok_or_else(|| line.op.clone())?;
        let variant = variants.widest(opcode).ok_or_else(|| format!("{name} on this GPU"))?;
        let slots: Vec<u8> = shape::operands(variant).map(|slot| slot.source).collect();
        let Printed { mods, bounds, lanes, freedom } = printed(print, &slots)?;
        for (at, bits) in bounds {
            if let Some(temp) = operands.get(at).and_then(Operand::as_temp) {
                program.argument_bounds.push((temp, u32::MAX >> (32 - bits)));
            }
        }
        let has = |form: &Form| variants.number(opcode, *form).is_some();
        let form = match lanes {
            Some(forms) => *forms.iter().find(|form| has(form)).ok_or("lanes that move")?,
            None if mods != Mods::default() && has(&Form::E64) => Form::E64,
            None => Form::Native,
        };
        let chosen = variants.variant(opcode, form).unwrap_or(variant);
        let (mut mods, mut operands) = (mods, operands);
        if mods.has(Mod::OpSel) && !chosen.has_mod(Mod::OpSel) {
            // Halves that the instruction cannot name are taken out before it.
            for (operand, source) in operands.iter_mut().zip(&slots) {
                if mods.get(Mod::OpSel) >> source & 1 != 0 {
                    let half = program.make_temp(RegClass::vgpr_bytes(2));
                    let to = [Definition::temp(half, RegClass::vgpr_bytes(2))];
                    let from = [*operand, Operand::c32(1)];
                    program.append(block, &NewInst::pseudo(Pseudo::ExtractVector, &to, &from));
                    *operand = Operand::temp(half, RegClass::vgpr_bytes(2));
                }
            }
            mods.set(Mod::OpSel, 0);
        }
        for (slot, operand) in shape::operands(chosen).zip(&operands) {
            // Scalar values of vector instructions are where these read them, or are copied.
            let vector_only = matches!(slot.class, Class::Vgpr | Class::VgprLow);
            if vector_only && operand.class.is_sgpr() {
                return Err("a scalar operand where only vectors are read".to_owned());
            }
            if slot.ty.bits() == 32 && operand.as_temp().is_some() && operand.class.bytes() < 4 {
                return Err("an operand of less bits than are read".to_owned());
            }
        }
        let definitions: Vec<Definition> =
            line.definitions.iter().map(|from| self.definition(program, from)).collect::<Result<_, _>>()?;
        let new = NewInst { mods, form, ..NewInst::hw(opcode, &definitions, &operands) };
        let inst = program.append(block, &new);
        program[inst].exact = print.contains("(precise)");
        program[inst].freedom = freedom;
        Ok(())
    }
}

/// The value that an instruction makes, and what its bits are.
fn result(program: &Program, inst: Inst) -> Option<(Operand, PartResult)> {
    let definition = program.definitions(inst).first()?;
    (!program.op(inst).is(Pseudo::StartProgram)).then_some(())?;
    let ty = match program.op(inst) {
        Op::Hw(opcode) => {
            let variants = Variants::of(&program.gpu);
            variants.widest(opcode).and_then(|variant| shape::definitions(variant).next()).map(|slot| slot.ty)
        }
        Op::Pseudo(_) => None,
    };
    let part = PartResult { ty: ty.unwrap_or(Type::B32), freedom: program[inst].freedom };
    Some((Operand::temp(definition.temp?, definition.class), part))
}

/// The number of a block, and lines of it before and after a phase.
type CasePart<'a> = (usize, &'a [CaseLine], &'a [CaseLine]);

/// The parts of a case: blocks with lines between marks, before and after ACO's phase.
fn parts(case: &Case) -> Result<Vec<CasePart<'_>>, String> {
    let mut found = Vec::new();
    for (number, (input, output)) in case.input.iter().zip(&case.output).enumerate() {
        let (input, output) = (sections(&input.code), sections(&output.code));
        if input.len() != output.len() {
            return Err("parts that differ".to_owned());
        }
        found.extend(input.into_iter().zip(output).map(|(input, output)| (number, input, output)));
    }
    Ok(found)
}

/// The temporary that the last instruction defines.
fn last_defined(lines: &[CaseLine]) -> Option<u32> {
    lines.iter().rev().find_map(|line| match line {
        CaseLine::Pseudo(line) if line.op != "p_startpgm" => line.definitions.first()?.temp,
        _ => None,
    })
}

/// The program of a case in SSA form. Marks read the result of their part; which one that is, the instruction before them says that ACO leaves.
/// What this IR does not have is left out, with the parts that need it.
pub fn ssa(case: &Case) -> Result<Ssa, String> {
    let variants = Variants::of(&case.gpu);
    let mut program = Program::new(case.gpu);
    let mut temps = Temps::default();
    let class = RegClass::sgpr(4);
    let descriptor = program.make_temp(class);
    let address = program.make_temp(RegClass::V1);
    let mut made = Ssa::new(case);
    let mut last = None;
    for (number, input, output) in parts(case)? {
        if last != Some(number) {
            let block = program.add_block();
            program.blocks[block].top_level = true;
            if let Some(before) = last {
                let before = Block::new(before);
                program.append(before, &NewInst::pseudo(Pseudo::LogicalEnd, &[], &[]));
                program.append(before, &NewInst::pseudo(Pseudo::Branch, &[], &[]));
                program.link(before, block);
                program.append(block, &NewInst::pseudo(Pseudo::LogicalStart, &[], &[]));
            }
            last = Some(number);
        }
        let block = Block::new(number);
        let mut why = None;
        for line in input {
            match line {
                CaseLine::Pseudo(pseudo) if pseudo.op == "p_startpgm" => {
                    let own = [
                        Definition::fixed(descriptor, class, PhysReg::sgpr(DESCRIPTOR)),
                        Definition::fixed(address, RegClass::V1, PhysReg::vgpr(0)),
                    ];
                    made.arguments = start(&mut program, &mut temps, block, &own, pseudo)?;
                }
                CaseLine::Pseudo(pseudo) => {
                    if let Err(error) = temps.ssa(&mut program, &variants, block, pseudo) {
                        why = Some(why.unwrap_or(error));
                    }
                }
                CaseLine::Mark(_) => {}
                CaseLine::Inst(inst) if inst.row().role == Role::End => {}
                other => return Err(format!("{other:?}")),
            }
        }
        let Some(wanted) = last_defined(output).or(last_defined(input)) else { continue };
        let defines = |inst: &Inst| {
            let first = program.definitions(*inst).first().and_then(|definition| definition.temp);
            first.is_some() && first == temps.0.get(&wanted).copied()
        };
        let inst = program.blocks[block].insts.iter().copied().find(defines);
        match inst.and_then(|inst| result(&program, inst)) {
            Some((value, part)) => {
                let offset = made.parts.len() as u32 * PART_BYTES;
                let (values, split) = dwords(&mut program, block, value);
                made.stores += split;
                for (number, value) in (0..).zip(values) {
                    let offset = offset + number * PART_BYTES;
                    made.stores +=
                        store(&mut program, block, (value, part.ty), [descriptor, address], offset)?;
                    made.parts.push(part);
                }
                made.theirs += output.iter().filter(|line| computes(line)).count();
            }
            None => made.left.push(why.unwrap_or_else(|| format!("%{wanted} is not defined in its part"))),
        }
    }
    if made.parts.is_empty() {
        return Err(made.left.pop().unwrap_or_else(|| "no part".to_owned()));
    }
    let last = program.blocks.keys().last().ok_or("no block")?;
    program.append(last, &NewInst::pseudo(Pseudo::LogicalEnd, &[], &[]));
    program.append(last, &NewInst::hw(Opcode::s_endpgm, &[], &[]));
    for argument in &mut made.arguments {
        let bounds = program.argument_bounds.iter().filter(|(temp, _)| Some(*temp) == argument.temp);
        argument.most = bounds.map(|(_, most)| *most).min().unwrap_or(u32::MAX);
    }
    made.program = program;
    Ok(made)
}

/// Values that a case reads and does not define. What defined them was not recorded; they are arguments.
fn undefined(case: &Case) -> Vec<PseudoOperand> {
    let lines = || case.input.iter().flat_map(|block| &block.code);
    let pseudo = || {
        lines().filter_map(|line| match line {
            CaseLine::Pseudo(line) => Some(line),
            _ => None,
        })
    };
    let mut known: HashSet<u32> =
        pseudo().flat_map(|line| &line.definitions).filter_map(|definition| definition.temp).collect();
    let read = pseudo().flat_map(|line| &line.operands);
    read.filter(|operand| operand.temp.is_some_and(|temp| known.insert(temp))).cloned().collect()
}

/// The program of a case in SSA form. It stores every value that nothing reads.
pub fn whole(case: &Case) -> Result<Ssa, String> {
    let variants = Variants::of(&case.gpu);
    let mut program = Program::new(case.gpu);
    let mut temps = Temps::default();
    let class = RegClass::sgpr(4);
    let places = [class, RegClass::V1].map(|class| program.make_temp(class));
    let own = [
        Definition::fixed(places[0], class, PhysReg::sgpr(DESCRIPTOR)),
        Definition::fixed(places[1], RegClass::V1, PhysReg::vgpr(0)),
    ];
    let mut made = Ssa::new(case);
    for (number, input) in case.input.iter().enumerate() {
        let block = program.add_block();
        program.blocks[block].top_level = true;
        if number > 0 {
            program.append(block, &NewInst::pseudo(Pseudo::LogicalStart, &[], &[]));
        }
        for line in &input.code {
            match line {
                CaseLine::Pseudo(line) if line.op == "p_startpgm" => {
                    let mut line = line.clone();
                    line.definitions.extend(undefined(case));
                    made.arguments = start(&mut program, &mut temps, block, &own, &line)?;
                }
                CaseLine::Pseudo(line) if line.op == "p_branch" => {
                    program.append(block, &NewInst::pseudo(Pseudo::LogicalEnd, &[], &[]));
                    program.append(block, &NewInst::pseudo(Pseudo::Branch, &[], &[]));
                }
                CaseLine::Pseudo(line) if line.op == "p_start_linear_vgpr" && !line.operands.is_empty() => {
                    return Err("a linear register that starts with a value".to_owned());
                }
                CaseLine::Pseudo(line) => temps.ssa(&mut program, &variants, block, line)?,
                CaseLine::Mark(_) => {}
                CaseLine::Inst(inst) if inst.row().role == Role::End => {}
                other => return Err(format!("{other:?}")),
            }
        }
        let preds = input.linear_preds.iter().chain(&input.logical_preds).max();
        if preds.is_some_and(|pred| *pred >= number) {
            return Err("a loop".to_owned());
        }
        for &pred in &input.linear_preds {
            program.link_linear(Block::new(pred), block);
        }
        // Results are stored by lanes, also after blocks that ACO's case connects in the linear flow alone.
        let logical = [&input.logical_preds, &input.linear_preds].into_iter().find(|preds| !preds.is_empty());
        for &pred in logical.into_iter().flatten() {
            program.link_logical(Block::new(pred), block);
        }
    }
    let insts: Vec<(Block, Inst)> = program
        .blocks
        .iter()
        .flat_map(|(block, data)| data.insts.iter().map(move |inst| (block, *inst)))
        .collect();
    let read: HashSet<Temp> =
        insts.iter().flat_map(|(_, inst)| program.operands(*inst)).filter_map(Operand::as_temp).collect();
    let last = program.blocks.keys().last().ok_or("no block")?;
    for (block, inst) in insts {
        if program.op(inst).is(Pseudo::StartProgram) {
            continue;
        }
        for definition in program.definitions(inst).to_vec() {
            // No instruction stores three bytes.
            let Some(temp) = definition.temp.filter(|_| definition.class.bytes() != 3) else { continue };
            if read.contains(&temp) {
                continue;
            }
            if block != last {
                return Err("a result before the last block".to_owned());
            }
            made.result(&mut program, block, Operand::temp(temp, definition.class), places)?;
        }
    }
    program.append(last, &NewInst::pseudo(Pseudo::LogicalEnd, &[], &[]));
    program.append(last, &NewInst::hw(Opcode::s_endpgm, &[], &[]));
    made.theirs = case.output.iter().flat_map(|block| &block.code).map(allocated_count).sum();
    made.program = program;
    Ok(made)
}

impl Ssa {
    /// Nothing of a case yet.
    fn new(case: &Case) -> Ssa {
        Ssa {
            program: Program::new(case.gpu),
            arguments: Vec::new(),
            stores: 0,
            parts: Vec::new(),
            theirs: 0,
            left: Vec::new(),
        }
    }

    /// Stores a value, dword by dword.
    fn result(
        &mut self,
        program: &mut Program,
        block: Block,
        value: Operand,
        places: [Temp; 2],
    ) -> Result<(), String> {
        for dword in dwords(program, block, value).0 {
            let offset = self.parts.len() as u32 * PART_BYTES;
            // What is not the store itself are copies.
            self.stores += store(program, block, (dword, Type::B32), places, offset)? - 1;
            self.parts.push(PartResult { ty: Type::B32, freedom: FloatFreedom::default() });
        }
        Ok(())
    }
}

/// The dwords of a value, and how many instructions take it apart.
fn dwords(program: &mut Program, block: Block, value: Operand) -> (Vec<Operand>, usize) {
    if value.class.bytes() <= 4 {
        return (vec![value], 0);
    }
    let class = if value.class.is_sgpr() { RegClass::S1 } else { RegClass::V1 };
    let parts: Vec<Definition> =
        (0..value.class.dwords()).map(|_| Definition::temp(program.make_temp(class), class)).collect();
    program.append(block, &NewInst::pseudo(Pseudo::SplitVector, &parts, &[value]));
    (parts.iter().filter_map(|part| Some(Operand::temp(part.temp?, class))).collect(), 1)
}

/// Instructions that a line becomes after allocation. Copies are instructions, each of them, also those that phis need.
fn allocated_count(line: &CaseLine) -> usize {
    match line {
        CaseLine::Inst(inst) => usize::from(!matches!(inst.row().role, Role::End | Role::Message)),
        CaseLine::Pseudo(line) if line.op == "p_parallelcopy" => line.definitions.len(),
        CaseLine::Pseudo(line) if line.op.ends_with("phi") => {
            let to = line.definitions.first().and_then(|definition| definition.reg.as_ref());
            line.operands.iter().filter(|operand| operand.reg.as_ref() != to).count()
        }
        CaseLine::Pseudo(line) => usize::from(Opcode::named(line.op.trim_end_matches("_e64")).is_some()),
        CaseLine::Mark(_) | CaseLine::Unread(_) => 0,
    }
}

/// Starts the program: arguments of the rig, then those of the case. Returns the registers of those.
fn start(
    program: &mut Program,
    temps: &mut Temps,
    block: Block,
    own: &[Definition],
    line: &PseudoLine,
) -> Result<Vec<CaseArgument>, String> {
    let (mut definitions, mut arguments) = (own.to_vec(), Vec::new());
    let (mut scalar, mut vector) = (4u8, 1u8);
    for from in &line.definitions {
        let mut definition = temps.definition(program, from)?;
        let dwords = definition.class.dwords();
        let reg = if definition.class.is_sgpr() {
            scalar = scalar.next_multiple_of(dwords.min(4));
            scalar += dwords;
            PhysReg::sgpr(scalar - dwords)
        } else {
            vector += dwords;
            PhysReg::vgpr(vector - dwords)
        };
        definition.reg = Some(reg);
        arguments.push(CaseArgument { reg, dwords, most: u32::MAX, temp: definition.temp });
        definitions.push(definition);
    }
    program.append(block, &NewInst::pseudo(Pseudo::StartProgram, &definitions, &[]));
    program.append(block, &NewInst::pseudo(Pseudo::LogicalStart, &[], &[]));
    Ok(arguments)
}

/// Stores a value; how many instructions that takes.
pub fn store(
    program: &mut Program,
    block: Block,
    (value, ty): (Operand, Type),
    [descriptor, address]: [Temp; 2],
    offset: u32,
) -> Result<usize, String> {
    if offset + PART_BYTES > LANE_BYTES || value.class.bytes() > 4 {
        return Err("a result that is too large".to_owned());
    }
    let mut count = 1;
    let mut value = value;
    if value.class.is_sgpr() {
        let temp = program.make_temp(RegClass::V1);
        let to = [Definition::temp(temp, RegClass::V1)];
        program.append(block, &NewInst::pseudo(Pseudo::ParallelCopy, &to, &[value]));
        value = Operand::temp(temp, RegClass::V1);
        count += 1;
    }
    let opcode = match value.class.bytes() {
        1 => Opcode::buffer_store_byte,
        2 => Opcode::buffer_store_short,
        // Instructions of 16 bits leave anything in the upper half.
        4 if ty.bits() == 16 => Opcode::buffer_store_short,
        _ => Opcode::buffer_store_dword,
    };
    let mut mods = Mods::default();
    mods.set(Mod::Offen, 1);
    mods.set(Mod::Offset, offset as i32);
    let operands = [
        value,
        Operand::temp(address, RegClass::V1),
        Operand::temp(descriptor, RegClass::sgpr(4)),
        Operand::c32(0),
    ];
    program.append(block, &NewInst { mods, ..NewInst::hw(opcode, &[], &operands) });
    Ok(count)
}

/// Whether a line of a case computes something: all but those that start and end it do.
fn computes(line: &CaseLine) -> bool {
    match line {
        CaseLine::Pseudo(line) => line.op != "p_startpgm",
        CaseLine::Inst(inst) => !matches!(inst.row().role, Role::End | Role::Message),
        CaseLine::Mark(_) | CaseLine::Unread(_) => false,
    }
}

/// Instructions of a program that compute something.
pub fn computing(program: &Program) -> usize {
    let computes = |inst| match program.op(inst) {
        Op::Hw(opcode) => opcode.row().role != Role::End,
        Op::Pseudo(pseudo) => !matches!(
            pseudo,
            Pseudo::StartProgram | Pseudo::LogicalStart | Pseudo::LogicalEnd | Pseudo::Branch
        ),
    };
    let insts = program.blocks.values().flat_map(|block| &block.insts);
    insts.filter(|inst| computes(**inst)).count()
}
