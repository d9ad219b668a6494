//! Delays: `s_delay_alu` where an instruction reads a result that the ALUs have not finished, on gfx11 and later.
//!
//! Takes a machine program to which nothing but this is added. Guarantees the same results: without delays the hardware waits by itself, and keeps
//! other waves from executing meanwhile. One `s_delay_alu` delays two instructions if few are between them. Results of a loop's end are not looked at
//! where it starts again. Latencies: `data/amd/cost.txt`.

use crate::machine::{MachineInst, MachineProgram, plain};
use unwedge_isa::amdgcn::cost::UnitCost;
use unwedge_isa::amdgcn::effects::Regs;
use unwedge_isa::amdgcn::model::{Format, Role};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand};

/// What made a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Producer {
    Valu,
    Transcendental,
    Salu,
}

/// A result that may not be available yet.
#[derive(Debug, Clone, Copy)]
struct LateResult {
    producer: Producer,
    regs: Regs,
    /// Instructions of the same kind that have begun since.
    since: u16,
    /// Cycles until it is available.
    cycles: i32,
}

/// The furthest result of the vector ALU, of its transcendental part, and the most cycles of the scalar ALU that a delay has.
const VALU_FAR: u16 = 4;
const TRANS_FAR: u16 = 3;
const SALU_CYCLES: i32 = 3;

/// Codes of a delay: the first of each kind.
const VALU_CODE: u16 = 1;
const TRANS_CODE: u16 = 5;
const SALU_CODE: u16 = 9;
/// Where the second delay of an instruction is, how many instructions later it applies, and the largest such number.
const SECOND_SHIFT: u16 = 7;
const SKIP_SHIFT: u16 = 4;
const SKIP_MOST: usize = 5;

/// Inserts delays.
pub fn insert(program: &mut MachineProgram) {
    let gpu = program.gpu;
    if gpu.generation() < Gfx::Gfx11 {
        return;
    }
    let mut ends: Vec<Vec<LateResult>> = Vec::with_capacity(program.blocks.len());
    for number in 0..program.blocks.len() {
        let mut late: Vec<LateResult> = Vec::new();
        for pred in &program.blocks[number].preds {
            late.extend(ends.get(*pred).into_iter().flatten());
        }
        let block = &mut program.blocks[number];
        let insts = std::mem::take(&mut block.insts);
        let mut out = DelayedBlock { insts: Vec::with_capacity(insts.len()), last: None };
        for inst in insts {
            let delays = step(&mut late, &inst.inst, &gpu);
            out.push(inst, delays, &gpu);
        }
        block.insts = out.insts;
        ends.push(late);
    }
}

/// Delays of one instruction, as codes; 0: none.
type Delays = [u16; 2];

fn producer(inst: &Inst) -> Option<Producer> {
    let row = inst.row();
    match row.format {
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => Some(Producer::Salu),
        Format::Vop1
        | Format::Vop2
        | Format::Vopc
        | Format::Vop3
        | Format::Vop3p
        | Format::Vopd
        | Format::Vinterp => {
            Some(if row.unit.is_transcendental() { Producer::Transcendental } else { Producer::Valu })
        }
        _ => None,
    }
}

/// Takes an instruction, and returns its delay.
fn step(late: &mut Vec<LateResult>, inst: &Inst, gpu: &Gpu) -> Delays {
    let row = inst.row();
    let Some(own) = producer(inst) else {
        // What executes memory accesses and exports waits for the ALUs.
        if row.format.is_memory() || row.format == Format::Exp || row.role == Role::Depctr {
            late.clear();
        }
        pass(late, 1);
        return [0, 0];
    };
    let (mut reads, mut writes) = (Regs::default(), Regs::default());
    inst.touches(gpu, &mut |touch| {
        if touch.access.reads() {
            reads.insert(touch.reg, touch.dwords);
        }
        if touch.access.writes() {
            writes.insert(touch.reg, touch.dwords);
        }
    });
    let delays = if late.is_empty() { [0, 0] } else { wait(late, &reads) };
    let cost = UnitCost::on(row.unit, gpu);
    let vector = own != Producer::Salu;
    for result in late.iter_mut() {
        result.regs = result.regs.without(&writes);
        let counts = match result.producer {
            Producer::Valu => own == Producer::Valu,
            Producer::Transcendental => own == Producer::Transcendental,
            Producer::Salu => false,
        };
        result.since += u16::from(counts);
    }
    let halves = if vector && gpu.wave64() { 2 } else { 1 };
    let issue =
        if vector { i32::from(cost.uses.first().map_or(1, |(_, cycles)| *cycles)) * halves } else { 1 };
    pass(late, issue);
    if !writes.is_empty() {
        late.push(LateResult {
            producer: own,
            regs: writes,
            since: 0,
            cycles: i32::from(cost.latency) + issue - 2,
        });
    }
    delays
}

/// Cycles pass.
fn pass(late: &mut Vec<LateResult>, cycles: i32) {
    late.retain_mut(|result| {
        result.cycles -= cycles;
        let most = match result.producer {
            Producer::Valu => VALU_FAR,
            Producer::Transcendental => TRANS_FAR,
            Producer::Salu => u16::MAX,
        };
        result.cycles > 0 && result.since < most && !result.regs.is_empty()
    });
}

/// The delays for what an instruction reads. What is waited for is there afterwards.
fn wait(late: &mut Vec<LateResult>, reads: &Regs) -> Delays {
    let mut nearest: [Option<u16>; 3] = [None; 3];
    let mut cycles = 0;
    for result in late.iter().filter(|result| result.regs.meets(reads)) {
        let place = &mut nearest[result.producer as usize];
        *place = Some(place.map_or(result.since, |near| near.min(result.since)));
        if result.producer == Producer::Salu {
            cycles = result.cycles.clamp(cycles, SALU_CYCLES);
        }
    }
    let [valu, transcendental, salu] = nearest;
    let codes = [
        transcendental.map(|since| TRANS_CODE + since),
        valu.map(|since| VALU_CODE + since),
        salu.map(|_| SALU_CODE - 1 + cycles.max(1) as u16),
    ];
    late.retain(|result| match nearest[result.producer as usize] {
        Some(_) if result.producer == Producer::Salu => result.cycles > cycles,
        Some(near) => result.since < near,
        None => true,
    });
    let mut delays = [0, 0];
    for (place, code) in delays.iter_mut().zip(codes.into_iter().flatten()) {
        *place = code;
    }
    delays
}

/// A block to which delays are added.
struct DelayedBlock {
    insts: Vec<MachineInst>,
    /// The place of the last delay, and its code, if there is room for another in it.
    last: Option<(usize, u16)>,
}

impl DelayedBlock {
    fn push(&mut self, inst: MachineInst, delays: Delays, gpu: &Gpu) {
        match delays {
            [0, _] => {}
            [code, 0] => {
                let near = self.last.filter(|(at, _)| self.insts.len() - at - 1 <= SKIP_MOST);
                if let Some((at, first)) = near {
                    let skip = (self.insts.len() - at - 1) as u16;
                    self.insts[at].inst.operands[0] =
                        immediate(first | skip << SKIP_SHIFT | code << SECOND_SHIFT);
                    self.last = None;
                } else {
                    self.last = Some((self.insts.len(), code));
                    self.insts.extend(plain(Opcode::s_delay_alu, &[immediate(code)], gpu));
                }
            }
            [first, second] => {
                self.last = None;
                self.insts.extend(plain(
                    Opcode::s_delay_alu,
                    &[immediate(first | second << SECOND_SHIFT)],
                    gpu,
                ));
            }
        }
        self.insts.push(inst);
    }
}

fn immediate(code: u16) -> Operand {
    Operand::Imm(code.into())
}
