//! Phases on programs, held to recorded cases of ACO: the code is executed, and must not be longer.

mod rig;

use rig::cases::{Case, CaseLine, PseudoLine, PseudoOperand, cases, machine, text_line};
use rig::rounding::roundings;
use rig::straight::{Words, allowed, part_words, stored};
use rig::translate::{Ssa, Temps, append, computing, sections, ssa, whole};
use unwedge_aco::assemble::assemble;
use unwedge_aco::hardware;
use unwedge_aco::ir::shape::Variants;
use unwedge_aco::ir::{Definition, Inst, NewInst, Op, Operand, Payload, Program, Progress, Pseudo, Source};
use unwedge_aco::machine::{MachineProgram, from_program};
use unwedge_aco::{BackPhase, Limits, Passes, finish_watched, forward, hazards, optimize, valid};
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::{Gpu, Opcode, Reg, text};
use unwedge_sim::amdgcn::{Control, Dispatch, Program as Code, SimMemory, Watch, watch};

/// How many registers of each bank cases use.
const REGS: u16 = 34;
const LANES: usize = 64;
/// Denormals of 32 bits are flushed, those of 16 bits are kept.
const KEEPS_HALVES: u8 = 0xc0;
/// All denormals are flushed.
const FLUSHES: u8 = 0;

/// What registers hold.
#[derive(Debug, Clone, PartialEq)]
struct State {
    scalars: Vec<(Reg, u32)>,
    /// By register and lane.
    vectors: Vec<[u32; LANES]>,
    exec: u64,
}

impl State {
    fn random(gpu: &Gpu, seed: u64) -> State {
        let mut words = Words(seed);
        let named = [Reg::M0, Reg::VCC, Reg::VCC_HI];
        let scalars = (0..REGS).map(Reg).chain(named).map(|reg| (reg, words.next())).collect();
        let vectors = (0..REGS).map(|_| std::array::from_fn(|_| words.next())).collect();
        let lanes = if gpu.wave64() { u64::MAX } else { u64::MAX >> 32 };
        let exec = (u64::from(words.next()) << 32 | u64::from(words.next()) | 1) & lanes;
        State { scalars, vectors, exec }
    }

    /// A byte of a register of a lane.
    fn byte(&self, lane: usize, byte: usize) -> Result<u8, String> {
        let (reg, at) = (Reg((byte / 4) as u16), byte % 4);
        let word = if reg.is_vgpr() {
            self.vectors.get(usize::from(reg.index())).map(|lanes| lanes[lane])
        } else {
            self.scalars.iter().find(|(own, _)| *own == reg).map(|(_, word)| *word)
        };
        Ok(word.ok_or_else(|| format!("register {}", reg.0))?.to_le_bytes()[at])
    }

    fn set_byte(&mut self, lane: usize, byte: usize, value: u8) -> Result<(), String> {
        let (reg, at) = (Reg((byte / 4) as u16), byte % 4);
        let word = if reg.is_vgpr() {
            self.vectors.get_mut(usize::from(reg.index())).map(|lanes| &mut lanes[lane])
        } else {
            self.scalars.iter_mut().find(|(own, _)| *own == reg).map(|(_, word)| word)
        };
        let word = word.ok_or_else(|| format!("register {}", reg.0))?;
        let mut bytes = word.to_le_bytes();
        bytes[at] = value;
        *word = u32::from_le_bytes(bytes);
        Ok(())
    }

    /// Runs code up to its end.
    fn run(&self, words: &[u32], gpu: &Gpu) -> Result<State, String> {
        let code = Code::new(words, 0, *gpu);
        let threads = gpu.lanes();
        let dispatch = Dispatch {
            size: [threads, 1, 1],
            scalars: self.scalars.iter().map(|(reg, word)| (reg.0, *word)).collect(),
            threads_hold: (0..).zip(self.vectors.iter().map(|lanes| lanes.to_vec())).collect(),
            ..Dispatch::default()
        };
        let mut last = None;
        let mut look = |state: &mut unwedge_sim::amdgcn::GroupState<'_, '_>| {
            let scalar = |reg: Reg| Some((reg, state.scalar(reg)?.0));
            let vector = |number: u8| Some(state.vector(number)?.0);
            let scalars = self.scalars.iter().filter_map(|(reg, _)| scalar(*reg)).collect();
            let vectors = (0..REGS as u8).filter_map(vector).collect();
            last = Some(State { scalars, vectors, exec: self.exec });
            Control::Go
        };
        let outcome = watch(&code, &mut SimMemory::default(), &dispatch, Watch::Step(&mut look));
        match outcome.faults.first() {
            Some(fault) => Err(fault.to_string()),
            None => last.ok_or_else(|| "nothing is executed".to_owned()),
        }
    }

    /// The bytes of an operand in a lane; none if they do not matter.
    fn bytes(&self, from: &Operand, lane: usize) -> Result<Option<Vec<u8>>, String> {
        let count = usize::from(from.class.bytes());
        match (from.source, from.reg) {
            (Source::Const(bits), _) => Ok(Some(bits.to_le_bytes()[..count].to_vec())),
            (_, Some(reg)) => {
                (0..count).map(|at| self.byte(lane, reg.index() + at)).collect::<Result<_, _>>().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Does what copies of all kinds mean.
    fn copy(&mut self, program: &Program, inst: Inst) -> Result<(), String> {
        let before = self.clone();
        let (definitions, operands) = (program.definitions(inst), program.operands(inst));
        let number = |at: usize| operands.get(at).and_then(Operand::as_const).ok_or("no number");
        for lane in 0..LANES {
            let first = || before.bytes(&operands[0], lane);
            let mut put = |to: &Definition, bytes: &[u8]| -> Result<(), String> {
                let reg = to.reg.ok_or("no register")?;
                bytes
                    .iter()
                    .enumerate()
                    .try_for_each(|(at, byte)| self.set_byte(lane, reg.index() + at, *byte))
            };
            let pseudo = match program.op(inst) {
                Op::Pseudo(pseudo) => pseudo,
                Op::Hw(opcode) => return Err(opcode.name().to_owned()),
            };
            match pseudo {
                Pseudo::ParallelCopy => {
                    for (to, from) in definitions.iter().zip(operands) {
                        if let Some(bytes) = before.bytes(from, lane)? {
                            put(to, &bytes)?;
                        }
                    }
                }
                Pseudo::CreateVector => {
                    let mut all = Vec::new();
                    for from in operands {
                        all.extend(before.bytes(from, lane)?.ok_or("a part that is undefined")?);
                    }
                    put(&definitions[0], &all)?;
                }
                Pseudo::SplitVector => {
                    let (all, mut at) = (first()?.ok_or("an undefined vector")?, 0);
                    for to in definitions {
                        let end = at + usize::from(to.class.bytes());
                        put(to, all.get(at..end).ok_or("a part past the end")?)?;
                        at = end;
                    }
                }
                Pseudo::ExtractVector => {
                    let size = usize::from(definitions[0].class.bytes());
                    let at = size * number(1)? as usize;
                    if let Some(all) = first()? {
                        put(&definitions[0], all.get(at..at + size).ok_or("a part past the end")?)?;
                    }
                }
                Pseudo::Extract | Pseudo::Insert => {
                    let mut value = [0; 8];
                    let source = first()?.ok_or("an undefined value")?;
                    value[..source.len().min(8)].copy_from_slice(&source[..source.len().min(8)]);
                    let (value, bits) = (u64::from_le_bytes(value), number(2)? as u32);
                    let shift = number(1)? as u32 * bits;
                    let kept = u64::MAX >> (64 - bits);
                    let result = if pseudo == Pseudo::Insert {
                        (value & kept) << shift
                    } else {
                        let part = value >> shift & kept;
                        let signed = number(3)? != 0 && part >> (bits - 1) & 1 != 0;
                        if signed { part | !kept } else { part }
                    };
                    let size = usize::from(definitions[0].class.bytes());
                    put(&definitions[0], &result.to_le_bytes()[..size])?;
                }
                other => return Err(other.name().to_owned()),
            }
        }
        Ok(())
    }
}

/// Instructions of a program that the project prints as text, without the end.
fn listing(program: &MachineProgram) -> Vec<String> {
    let ends = |role| matches!(role, Role::End | Role::Message);
    let insts = program.blocks.iter().flat_map(|block| &block.insts);
    insts
        .filter(|inst| !ends(inst.inst.row().role))
        .map(|inst| {
            let mut line = String::new();
            text::write(&inst.inst, &program.gpu, &mut line);
            line
        })
        .collect()
}

/// What becomes of a part of a case.
enum Lowered {
    /// This compiler's instructions and ACO's.
    Both([Vec<String>; 2]),
    /// This IR does not have it.
    Left(String),
}

/// A part of a case between separators: lowers it, executes it, and compares it with the code of the case.
fn lowered(gpu: &Gpu, input: &[CaseLine], output: &[CaseLine]) -> Result<Lowered, String> {
    let mut program = Program::new(*gpu);
    program.parts_share = true;
    program.progress = Progress::Eliminated;
    let block = program.add_block();
    let mut temps = Temps::default();
    for line in input {
        let known = match line {
            CaseLine::Pseudo(pseudo) => append(&mut program, &mut temps, pseudo),
            CaseLine::Inst(inst) if inst.row().role == Role::End => Ok(()),
            other => Err(format!("{other:?}")),
        };
        if let Err(why) = known {
            return Ok(Lowered::Left(why));
        }
    }
    let before = State::random(gpu, input.len() as u64);
    let mut wanted = before.clone();
    let mut free = None;
    for &inst in &program.blocks[block].insts {
        if let Err(why) = wanted.copy(&program, inst) {
            return Ok(Lowered::Left(why));
        }
        if let Payload::Copy(Some(reg), _) = program.payload(inst) {
            free = Some(reg.reg());
        }
    }
    program.append(block, &NewInst::hw(Opcode::s_endpgm, &[], &[]));
    let variants = Variants::of(gpu);
    hardware::lower(&mut program, &variants).map_err(|error| error.to_string())?;
    let mut own = from_program(&program, &variants).map_err(|error| error.to_string())?;
    let words = assemble(&mut own).map_err(|error| error.to_string())?.words;
    let mut got = before.run(&words, gpu).map_err(|fault| format!("{fault}: {:?}", listing(&own)))?;
    for state in [&mut got, &mut wanted] {
        state.scalars.retain(|(reg, _)| Some(*reg) != free);
    }
    if got != wanted {
        return Err(format!("another result: {:?}", listing(&own)));
    }
    let block = rig::cases::CaseBlock {
        kinds: Vec::new(),
        loop_depth: 0,
        linear_preds: Vec::new(),
        logical_preds: Vec::new(),
        code: output.to_vec(),
    };
    Ok(match machine(gpu, &[block]) {
        Ok((theirs, _)) => Lowered::Both([listing(&own), listing(&theirs)]),
        Err(why) => Lowered::Left(why),
    })
}

fn judge(case: &Case) -> Vec<Result<Lowered, String>> {
    let (input, output) = (&case.input[0].code, &case.output[0].code);
    sections(input)
        .into_iter()
        .zip(sections(output))
        .filter(|(input, _)| input.iter().any(|line| matches!(line, CaseLine::Pseudo(_))))
        .map(|(input, output)| lowered(&case.gpu, input, output))
        .collect()
}

#[test]
fn copies_are_right_and_not_longer_than_in_the_cases() {
    let cases = cases("lower_to_hw_instr");
    if cases.is_empty() {
        eprintln!("no cases");
        return;
    }
    let (mut all, mut wrong, mut longer, mut shorter, mut left) = (0, 0, 0, 0, 0);
    for case in &cases {
        for (part, verdict) in judge(case).into_iter().enumerate() {
            all += 1;
            match verdict {
                Ok(Lowered::Left(why)) => {
                    left += 1;
                    println!("{} part {part}: left out: {why}", case.id);
                }
                Ok(Lowered::Both([own, theirs])) if own.len() > theirs.len() => {
                    longer += 1;
                    println!("{} part {part}: {own:?}, not {theirs:?}", case.id);
                }
                Ok(Lowered::Both([own, theirs])) => shorter += usize::from(own.len() < theirs.len()),
                Err(why) => {
                    wrong += 1;
                    println!("{} part {part}: {why}", case.id);
                }
            }
        }
    }
    println!(
        "lower_to_hw_instr: {all} parts, {wrong} wrong, {longer} longer, {shorter} shorter, {left} left out"
    );
    assert_eq!(wrong, 0);
    assert!(longer * 50 < all - left && left * 50 < all, "of {all}, {longer} are longer, {left} left out");
}

/// Bytes of halves of registers, extended or shifted, and of whole registers: what else a register holds is kept.
#[test]
fn elements_are_moved_into_parts_of_registers() {
    let operand = |reg: &str, class: &str| PseudoOperand {
        reg: Some(reg.to_owned()),
        class: Some(class.to_owned()),
        ..PseudoOperand::default()
    };
    let number = |bits: u64| PseudoOperand { constant: Some((bits, 4)), ..PseudoOperand::default() };
    let half = ["v0.b0-1", "v0.b2-3", "v1.b0-1", "v1.b2-3"];
    for gpu in ["gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1200"] {
        let gpu = Gpu::new(gpu).expect("a GPU").with_wave64(true);
        let check = |line: PseudoLine| {
            let done = lowered(&gpu, &[CaseLine::Pseudo(line.clone())], &[]);
            assert!(matches!(done, Ok(Lowered::Both(_))), "{}: {line:?}: {:?}", gpu.name(), done.err());
        };
        for (to, from) in half.iter().flat_map(|to| half.iter().map(move |from| (to, from))) {
            for (op, element, signed) in
                [("p_extract", 0, 0), ("p_extract", 1, 0), ("p_extract", 0, 1), ("p_extract", 1, 1)]
                    .into_iter()
                    .chain([("p_insert", 0, 0), ("p_insert", 1, 0)])
            {
                let mut operands = vec![operand(from, "v2b"), number(element), number(8)];
                operands.extend((op == "p_extract").then(|| number(signed)));
                for (to, class) in [(*to, "v2b"), ("v2", "v1")] {
                    check(PseudoLine {
                        op: op.to_owned(),
                        definitions: vec![operand(to, class)],
                        operands: operands.clone(),
                        ..PseudoLine::default()
                    });
                }
            }
            for (element, bits) in [(0, 16), (1, 16), (3, 8)] {
                check(PseudoLine {
                    op: "p_insert".to_owned(),
                    definitions: vec![operand("v2", "v1")],
                    operands: vec![operand(from, "v2b"), number(element), number(bits)],
                    ..PseudoLine::default()
                });
            }
        }
    }
}

/// The float mode of a case, which is not recorded: results of 16 bits have output modifiers only where their denormals are flushed.
fn float_mode(case: &Case) -> u8 {
    let multiplies = |line: &CaseLine| match line {
        CaseLine::Pseudo(line) => {
            line.op.ends_with("_f16") && line.print.as_deref().is_some_and(|print| print.contains(" *"))
        }
        _ => false,
    };
    let flushes = case.output.iter().flat_map(|block| &block.code).any(multiplies);
    if flushes { FLUSHES } else { KEEPS_HALVES }
}

/// What became of cases.
#[derive(Debug, Default)]
struct Tally {
    good: usize,
    /// With more instructions than ACO's.
    longer: usize,
    /// Whose program this IR does not have.
    left: usize,
    wrong: usize,
}

impl Tally {
    /// Judges the program of each case, if it has one here: how many instructions this compiler and ACO leave of it, or what is wrong.
    fn of(cases: &[Case], translate: fn(&Case) -> Result<Ssa, String>, judge: Judge) -> Tally {
        let mut tally = Tally::default();
        for case in cases {
            let ssa = match translate(case) {
                Ok(ssa) => ssa,
                Err(why) => {
                    tally.left += 1;
                    println!("{}: left out: {why}", case.id);
                    continue;
                }
            };
            for why in &ssa.left {
                println!("{}: a part is left out: {why}", case.id);
            }
            match judge(case, ssa) {
                Ok([own, theirs]) if own > theirs => {
                    tally.longer += 1;
                    println!("{}: {own} instructions, not {theirs}", case.id);
                }
                Ok(_) => tally.good += 1,
                Err(why) => {
                    tally.wrong += 1;
                    println!("{}: {why}", case.id);
                }
            }
        }
        tally
    }

    /// None may be wrong, and one of ten longer; most cases must have a program here.
    #[track_caller]
    fn check(&self, pass: &str) {
        let Tally { good, longer, left, wrong } = *self;
        println!("{pass}: {good} good, {longer} longer, {left} left out, {wrong} wrong");
        assert_eq!(wrong, 0);
        assert!(good >= 9 * longer && good >= left, "{self:?}");
    }
}

type Judge = fn(&Case, Ssa) -> Result<[usize; 2], String>;

/// Optimizes the program of a case: how many instructions it and the case's have.
fn optimized(case: &Case, ssa: Ssa) -> Result<[usize; 2], String> {
    let Ssa { program, arguments, stores, parts, theirs, .. } = ssa;
    let mode = float_mode(case);
    let variants = Variants::of(&case.gpu);
    let mut optimized = program.clone();
    // ACO contracts inexact instructions.
    optimized.contract = true;
    // Parts are apart in ACO's phase, so what they have in common is not computed once.
    optimize(&mut optimized, mode, Passes { numbering: false, ..Passes::default() });
    for program in [&program, &optimized] {
        if let Err(violations) = valid::ir(program, &variants) {
            return Err(format!("{}: {}", violations[0].describe(program), shown(program)));
        }
    }
    let roundings = roundings(&program);
    for seed in 0..4 {
        let wanted: Vec<Vec<u8>> = roundings
            .iter()
            .map(|program| stored(program, mode, &arguments, seed))
            .collect::<Result<_, _>>()?;
        let got = stored(&optimized, mode, &arguments, seed)
            .map_err(|error| format!("{error}\n{}", shown(&optimized)))?;
        for (number, part) in parts.iter().enumerate() {
            let got = part_words(&got, number);
            let wanted: Vec<Vec<u32>> = wanted.iter().map(|bytes| part_words(bytes, number)).collect();
            // All lanes round in the same way.
            let right =
                |wanted: &Vec<u32>| got.iter().zip(wanted).all(|(got, wanted)| allowed(part, *got, *wanted));
            if !wanted.iter().any(right) {
                return Err(format!("part {number}: {got:x?}, not {wanted:x?}\n{}", shown(&optimized)));
            }
        }
    }
    let own = computing(&optimized) - stores;
    if own > theirs && std::env::var_os("UNWEDGE_ALL").is_some() {
        println!("{}", shown(&optimized));
    }
    Ok([own, theirs])
}

fn shown(program: &Program) -> String {
    let mut text = String::new();
    unwedge_aco::ir::text::print(program, &mut text);
    text
}

#[test]
fn optimized_programs_do_the_same_and_are_not_longer_than_in_most_cases() {
    let cases = cases("optimize");
    if cases.is_empty() {
        eprintln!("no cases");
        return;
    }
    Tally::of(&cases, ssa, optimized).check("optimize");
}

/// A part of a case as machine code. A branch at its end goes around a block that changes a register, so that it is seen.
fn machine_part(gpu: &Gpu, lines: &[CaseLine]) -> Result<MachineProgram, String> {
    let text = |line: &str| match text_line(line, gpu).pop() {
        Some(line @ CaseLine::Inst(_)) => Ok(line),
        other => Err(format!("{other:?}")),
    };
    let mut code = Vec::new();
    for line in lines {
        match line {
            CaseLine::Inst(inst) if inst.row().role == Role::End => {}
            CaseLine::Inst(_) => code.push(line.clone()),
            CaseLine::Pseudo(line) if line.op == "p_startpgm" => {}
            CaseLine::Pseudo(line) if line.op == "p_cbranch_z" || line.op == "p_cbranch_nz" => {
                let condition = line.operands.first().and_then(|operand| operand.reg.as_deref());
                let branch = match (condition, line.op == "p_cbranch_z") {
                    (Some("scc"), true) => "s_cbranch_scc0 B2",
                    (Some("scc"), false) => "s_cbranch_scc1 B2",
                    (Some("vcc"), true) => "s_cbranch_vccz B2",
                    (Some("vcc"), false) => "s_cbranch_vccnz B2",
                    other => return Err(format!("{other:?}")),
                };
                code.push(text(branch)?);
            }
            other => return Err(format!("{other:?}")),
        }
    }
    let block = |code: Vec<CaseLine>, preds: Vec<usize>| rig::cases::CaseBlock {
        kinds: Vec::new(),
        loop_depth: 0,
        linear_preds: preds,
        logical_preds: Vec::new(),
        code,
    };
    let blocks = [
        block(code, Vec::new()),
        block(vec![text("s_addk_i32 s33, 1")?], vec![0]),
        block(vec![text("s_endpgm")?], vec![0, 1]),
    ];
    Ok(machine(gpu, &blocks)?.0)
}

/// Runs the phase after allocation on the parts of a case: how many instructions it and ACO's leave of each. What is not machine code is left out.
fn forwarded(case: &Case) -> Result<Vec<[usize; 2]>, String> {
    let parts = |blocks: &[rig::cases::CaseBlock]| -> Vec<Vec<CaseLine>> {
        let sections = blocks.iter().flat_map(|block| sections(&block.code));
        sections.map(<[CaseLine]>::to_vec).collect()
    };
    let (input, output) = (parts(&case.input), parts(&case.output));
    if input.len() != output.len() {
        return Err("parts that differ".to_owned());
    }
    let mut counts = Vec::new();
    for (input, output) in input.iter().zip(&output) {
        let (before, wanted) = match (machine_part(&case.gpu, input), machine_part(&case.gpu, output)) {
            (Ok(before), Ok(wanted)) => (before, wanted),
            (Err(why), _) | (_, Err(why)) => {
                println!("{}: a part is left out: {why}", case.id);
                continue;
            }
        };
        let mut after = before.clone();
        forward::simplify(&mut after);
        let [code, wanted] = [listing(&after), listing(&wanted)];
        if code.len() > wanted.len() {
            println!("{}: {code:?}, not {wanted:?}", case.id);
        }
        counts.push([code.len(), wanted.len()]);
        for seed in 0..8 {
            let state = State::random(&case.gpu, seed);
            let run = |program: &MachineProgram| {
                let mut program = program.clone();
                hazards::insert(&mut program);
                let words = assemble(&mut program).map_err(|error| error.to_string())?.words;
                state.run(&words, &case.gpu)
            };
            if run(&before)? != run(&after)? {
                return Err(format!("another result: {code:?}"));
            }
        }
    }
    Ok(counts)
}

#[test]
fn programs_after_allocation_do_the_same_and_are_not_longer_than_in_most_cases() {
    let cases = cases("optimize_postRA");
    if cases.is_empty() {
        eprintln!("no cases");
        return;
    }
    let of_case = |case: &Case| forwarded(case).unwrap_or_else(|why| panic!("{}: {why}", case.id));
    let counts: Vec<[usize; 2]> = cases.iter().flat_map(of_case).collect();
    let longer = counts.iter().filter(|[own, theirs]| own > theirs).count();
    println!("optimize_postRA: {} parts, {longer} longer", counts.len());
    assert!(counts.len() >= 10 * longer.max(1), "{longer} of {} are longer", counts.len());
}

/// Instructions of the hardware that compute something, after allocation.
fn allocated(program: &Program) -> Result<usize, String> {
    let variants = Variants::of(&program.gpu);
    let (mut count, mut wrong) = (0, None);
    finish_watched(&mut program.clone(), &Limits::of(&program.gpu), &mut |phase, program| {
        let mut violations = valid::ir(program, &variants).err().unwrap_or_default();
        if matches!(phase, BackPhase::Allocate | BackPhase::Eliminate) {
            violations.extend(valid::ra(program).err().unwrap_or_default());
        }
        if let Some(violation) = violations.first() {
            wrong = wrong.take().or(Some(format!("after {}: {}", phase.name(), violation.describe(program))));
        }
        if phase == BackPhase::Hardware {
            let insts = program.blocks.values().flat_map(|block| &block.insts);
            let computes = |inst| match program.op(inst) {
                Op::Hw(opcode) => !opcode.row().format.is_memory() && opcode.row().role != Role::End,
                Op::Pseudo(_) => false,
            };
            count = insts.filter(|inst| computes(**inst)).count();
        }
    })
    .map_err(|error| error.to_string())?;
    wrong.map_or(Ok(count), Err)
}

/// Optimizes and allocates the program of a case: how many instructions it and ACO's have.
fn placed(_: &Case, ssa: Ssa) -> Result<[usize; 2], String> {
    let Ssa { program, arguments, stores, theirs, .. } = ssa;
    let mut optimized = program.clone();
    optimize(&mut optimized, KEEPS_HALVES, Passes::default());
    for seed in 0..4 {
        let wanted = stored(&program, KEEPS_HALVES, &arguments, seed)?;
        let got = stored(&optimized, KEEPS_HALVES, &arguments, seed)?;
        if got != wanted {
            return Err(format!("another result: {}", shown(&optimized)));
        }
    }
    Ok([allocated(&optimized)?.saturating_sub(stores), theirs])
}

#[test]
fn allocated_programs_do_the_same_and_are_not_longer_than_in_most_cases() {
    for pass in ["register_allocation", "lower_subdword"] {
        let cases = cases(pass);
        if cases.is_empty() {
            eprintln!("no cases");
            continue;
        }
        Tally::of(&cases, whole, placed).check(pass);
    }
}

/// What the phase after allocation makes of code; it has to do the same from any registers.
#[track_caller]
fn check_forwarded(code: &[&str], wanted: &[&str]) {
    let gpu = Gpu::new("gfx1030").expect("a GPU").with_wave64(true);
    let lines: Vec<CaseLine> = code.iter().flat_map(|line| text_line(line, &gpu)).collect();
    let before = machine_part(&gpu, &lines).expect("instructions");
    let mut after = before.clone();
    forward::simplify(&mut after);
    let own = listing(&after);
    assert_eq!(own[..own.len() - 1], *wanted);
    for seed in 0..8 {
        let state = State::random(&gpu, seed);
        let run = |program: &MachineProgram| {
            let mut program = program.clone();
            hazards::insert(&mut program);
            let words = assemble(&mut program).expect("words").words;
            state.run(&words, &gpu).expect("runs")
        };
        assert!(run(&before) == run(&after), "{own:?}");
    }
}

#[test]
fn scc_answers_comparisons_with_zero() {
    let and = "s_and_b32 s2, s0, s1";
    check_forwarded(
        &[and, "s_cmp_lg_u32 s2, 0", "s_cselect_b32 s3, s4, s5"],
        &[and, "s_cselect_b32 s3, s4, s5"],
    );
    check_forwarded(
        &[and, "s_cmp_eq_u32 0, s2", "s_cselect_b32 s3, s4, s5"],
        &[and, "s_cselect_b32 s3, s5, s4"],
    );
    check_forwarded(&[and, "s_cmp_eq_u32 s2, 0", "s_cbranch_scc0 B2"], &[and, "s_cbranch_scc1 2"]);
    // The instruction moves over others that write scc.
    check_forwarded(
        &[and, "s_add_u32 s3, s0, s1", "s_cmp_lg_u32 s2, 0", "s_cbranch_scc0 B2"],
        &["s_add_u32 s3, s0, s1", and, "s_cbranch_scc0 2"],
    );
    let unchanged = |code: &[&str]| check_forwarded(code, code);
    // What is between reads the result, changes a source, or reads the answer before.
    unchanged(&[and, "s_add_u32 s3, s2, s1", "s_cmp_lg_u32 s2, 0", "s_cselect_b32 s4, s5, s6"]);
    unchanged(&[and, "s_add_u32 s0, s3, s1", "s_cmp_lg_u32 s2, 0", "s_cselect_b32 s4, s5, s6"]);
    unchanged(&[and, "s_addc_u32 s3, s0, s1", "s_cmp_lg_u32 s2, 0", "s_cselect_b32 s4, s5, s6"]);
    // A carry has no opposite, a sum leaves one, and half of a result is not all of it.
    unchanged(&[and, "s_cmp_eq_u32 s2, 0", "s_addc_u32 s3, s0, s1"]);
    unchanged(&["s_add_u32 s2, s0, s1", "s_cmp_lg_u32 s2, 0", "s_cselect_b32 s4, s5, s6"]);
    unchanged(&["s_and_b64 s[2:3], s[0:1], s[4:5]", "s_cmp_lg_u32 s2, 0", "s_cselect_b32 s4, s5, s6"]);
}

#[test]
fn readers_move_lanes() {
    let mirror = "row_mirror row_mask:0xf bank_mask:0xf bound_ctrl:1";
    let moved = format!("v_mov_b32_dpp v2, v0 {mirror}");
    check_forwarded(&[&moved, "v_add_f32_e32 v2, v2, v1"], &[&format!("v_add_f32_dpp v2, v0, v1 {mirror}")]);
    check_forwarded(
        &[&moved, "v_sub_f32_e64 v2, |v1|, v2"],
        &[&format!("v_subrev_f32_dpp v2, v0, |v1| {mirror}")],
    );
    let unchanged = |code: &[&str]| check_forwarded(code, code);
    // The moved value lives on, its source or the active lanes change, or lanes keep what was there.
    unchanged(&[&moved, "v_add_f32_e32 v3, v2, v1"]);
    unchanged(&[&moved, "v_mov_b32_e32 v0, 0", "v_add_f32_e32 v2, v2, v1"]);
    unchanged(&[&moved, "s_mov_b64 exec, s[0:1]", "v_add_f32_e32 v2, v2, v1"]);
    unchanged(&[&moved, "v_add_f32_e32 v2, v2, v2"]);
    unchanged(&["v_mov_b32_dpp v2, v0 row_mirror row_mask:0xf bank_mask:0xf", "v_add_f32_e32 v2, v2, v1"]);
    unchanged(&[
        &format!("v_mov_b32_dpp v2, v0 {}", mirror.replace("0xf bank", "0x7 bank")),
        "v_add_f32_e32 v2, v2, v1",
    ]);
}
