//! Executes a program in SSA form directly: one wave along the linear flow, with the lanes that `exec` enables.

use std::collections::HashMap;
use unwedge_aco::ir::{Block, Inst, Op, Operand, PhysReg, Program, Pseudo, Source, Temp};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::Opcode;

/// Dwords of a value, by lane; of a scalar one, lane 0 has it.
type Value = Vec<[u32; 64]>;

pub struct Wave<'a> {
    program: &'a Program,
    values: HashMap<Temp, Value>,
    exec: u64,
    lanes: usize,
    /// By lane: the last block whose logical end it was active at.
    last: [Option<Block>; 64],
    pub stored: HashMap<u32, u32>,
}

/// Runs one wave: `scalar` is the argument, `first` the place of lane 0.
pub fn run(program: &Program, scalar: u32, first: u32) -> HashMap<u32, u32> {
    let lanes = program.gpu.lanes() as usize;
    let exec = if lanes == 64 { u64::MAX } else { u64::from(u32::MAX) };
    let mut wave =
        Wave { program, values: HashMap::new(), exec, lanes, last: [None; 64], stored: HashMap::new() };
    let start = program.blocks[Block::new(0)].insts[0];
    for (number, definition) in program.definitions(start).iter().enumerate() {
        let lane = |lane: usize| if number == 1 { scalar } else { first + lane as u32 };
        let dwords = definition.class.dwords().into();
        let value = vec![std::array::from_fn(lane); dwords];
        wave.values.insert(definition.temp.expect("an argument"), value);
    }
    let (mut block, mut from) = (Block::new(0), None);
    for _ in 0..100_000 {
        match wave.block(block, from) {
            Some(next) => (from, block) = (Some(block), next),
            None => return wave.stored,
        }
    }
    panic!("does not end");
}

impl Wave<'_> {
    fn active(&self, lane: usize) -> bool {
        self.exec >> lane & 1 != 0
    }

    /// A dword of an operand in a lane.
    fn dword(&self, operand: &Operand, dword: usize, lane: usize) -> u32 {
        match operand.source {
            Source::Const(bits) => bits.unbounded_shr(32 * dword as u32) as u32,
            Source::Undef => 0,
            Source::Fixed => {
                assert_eq!(operand.reg, Some(PhysReg::EXEC));
                (self.exec >> (32 * dword)) as u32
            }
            Source::Temp(temp) => {
                let value = &self.values[&temp];
                value[dword][if operand.class.is_sgpr() { 0 } else { lane }]
            }
        }
    }

    fn wide(&self, operand: &Operand) -> u64 {
        let high = if operand.class.dwords() > 1 { self.dword(operand, 1, 0) } else { 0 };
        u64::from(high) << 32 | u64::from(self.dword(operand, 0, 0))
    }

    fn set(&mut self, inst: Inst, at: usize, dword: usize, value: impl Fn(&Self, usize) -> u32) {
        let definition = self.program.definitions(inst)[at];
        let Some(temp) = definition.temp else {
            if definition.reg == Some(PhysReg::EXEC) {
                let bits = u64::from(value(self, 0)) << (32 * dword);
                let mask = u64::from(u32::MAX) << (32 * dword);
                self.exec = self.exec & !mask | bits;
            }
            return;
        };
        let mut new = [0; 64];
        for (lane, new) in new.iter_mut().enumerate() {
            *new = value(self, lane);
        }
        let exec = self.exec;
        let count = definition.class.dwords().into();
        let place = self.values.entry(temp).or_insert_with(|| vec![[0; 64]; count]);
        for lane in 0..64 {
            if definition.class.is_sgpr() || exec >> lane & 1 != 0 {
                place[dword][lane] = new[lane];
            }
        }
    }

    fn set_mask(&mut self, inst: Inst, at: usize, mask: u64) {
        for dword in 0..self.lanes / 32 {
            self.set(inst, at, dword, |_, _| (mask >> (32 * dword)) as u32);
        }
    }

    fn block(&mut self, block: Block, from: Option<Block>) -> Option<Block> {
        let data = &self.program.blocks[block];
        let phis: Vec<Inst> =
            data.insts.iter().copied().filter(|inst| self.program.op(*inst).is_phi()).collect();
        let before = self.values.clone();
        for inst in phis {
            let logical = self.program.op(inst).is(Pseudo::Phi);
            let operands = self.program.operands(inst).to_vec();
            let dwords = usize::from(self.program.definitions(inst)[0].class.dwords());
            let temp = self.program.definitions(inst)[0].temp.expect("a result");
            let after = std::mem::replace(&mut self.values, before.clone());
            let mut value = after.get(&temp).cloned().unwrap_or_else(|| vec![[0; 64]; dwords]);
            for lane in 0..64 {
                let (preds, way) =
                    if logical { (&data.logical_preds, self.last[lane]) } else { (&data.linear_preds, from) };
                let Some(at) = preds.iter().position(|pred| Some(*pred) == way) else { continue };
                for (dword, place) in value.iter_mut().enumerate() {
                    place[lane] = self.dword(&operands[at], dword, lane);
                }
            }
            self.values = after;
            self.values.insert(temp, value);
        }
        for &inst in &data.insts {
            match self.program.op(inst) {
                op if op.is_phi() => {}
                Op::Pseudo(Pseudo::LogicalEnd) => {
                    for lane in 0..64 {
                        if self.active(lane) {
                            self.last[lane] = Some(block);
                        }
                    }
                }
                Op::Pseudo(Pseudo::Branch) => return Some(data.linear_succs[0]),
                Op::Pseudo(pseudo @ (Pseudo::BranchZ | Pseudo::BranchNz)) => {
                    let zero = self.wide(&self.program.operands(inst)[0]) == 0;
                    let taken = zero == (pseudo == Pseudo::BranchZ);
                    return Some(data.linear_succs[usize::from(taken)]);
                }
                Op::Pseudo(pseudo) => self.pseudo(inst, pseudo),
                Op::Hw(Opcode::s_endpgm) => return None,
                Op::Hw(opcode) => self.hardware(inst, opcode),
            }
        }
        panic!("{block} has no end");
    }

    /// Bytes of the operands one after the other, in a lane.
    fn bytes(&self, operands: &[Operand], lane: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for operand in operands {
            let dwords = 0..usize::from(operand.class.dwords());
            let own: Vec<u8> =
                dwords.flat_map(|dword| self.dword(operand, dword, lane).to_le_bytes()).collect();
            all.extend_from_slice(&own[..operand.class.bytes().into()]);
        }
        all
    }

    fn pseudo(&mut self, inst: Inst, pseudo: Pseudo) {
        let operands = self.program.operands(inst).to_vec();
        let number = |at: usize| operands[at].as_const().expect("a constant") as usize;
        match pseudo {
            Pseudo::CreateVector | Pseudo::SplitVector | Pseudo::ExtractVector => {
                let definitions = self.program.definitions(inst).to_vec();
                let mut start = 0;
                let sources = if pseudo == Pseudo::ExtractVector { &operands[..1] } else { &operands[..] };
                if pseudo == Pseudo::ExtractVector {
                    start = number(1) * usize::from(definitions[0].class.bytes());
                }
                for (at, definition) in definitions.iter().enumerate() {
                    let size = usize::from(definition.class.bytes());
                    for dword in 0..usize::from(definition.class.dwords()) {
                        self.set(inst, at, dword, |wave, lane| {
                            let bytes = wave.bytes(sources, lane);
                            let own = &bytes[start..start + size][4 * dword..];
                            own.iter().take(4).rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
                        });
                    }
                    start += size;
                }
            }
            Pseudo::ParallelCopy => {
                assert_eq!(operands.len(), 1);
                for dword in 0..usize::from(operands[0].class.dwords()) {
                    self.set(inst, 0, dword, |wave, lane| wave.dword(&operands[0], dword, lane));
                }
            }
            Pseudo::AsUniform => {
                let first = self.exec.trailing_zeros() as usize % 64;
                self.set(inst, 0, 0, |wave, _| wave.dword(&operands[0], 0, first));
            }
            Pseudo::Extract => {
                let (element, bits) = (number(1) as u32, number(2) as u32);
                let signed = number(3) != 0;
                self.set(inst, 0, 0, |wave, lane| {
                    let top = wave.dword(&operands[0], 0, lane) << (32 - (element + 1) * bits);
                    if signed { (top as i32 >> (32 - bits)) as u32 } else { top >> (32 - bits) }
                });
            }
            Pseudo::Insert => {
                let (element, bits) = (number(1) as u32, number(2) as u32);
                let mask = (1u32 << bits) - 1;
                self.set(inst, 0, 0, |wave, lane| {
                    (wave.dword(&operands[0], 0, lane) & mask) << (element * bits)
                });
            }
            Pseudo::StartProgram | Pseudo::LogicalStart => {}
            other => panic!("{}", other.name()),
        }
    }

    fn hardware(&mut self, inst: Inst, opcode: Opcode) {
        let operands = self.program.operands(inst).to_vec();
        let scalar = |wave: &Self, at: usize| wave.dword(&operands[at], 0, 0);
        let vector: Option<fn(u32, u32, u32) -> u32> = match opcode {
            Opcode::v_xor_b32 => Some(|a, b, _| a ^ b),
            Opcode::v_and_b32 => Some(|a, b, _| a & b),
            Opcode::v_or_b32 => Some(|a, b, _| a | b),
            Opcode::v_mul_lo_u32 => Some(|a, b, _| a.wrapping_mul(b)),
            Opcode::v_lshlrev_b32 => Some(|a, b, _| b << (a & 31)),
            Opcode::v_alignbit_b32 => {
                Some(|a, b, c| ((u64::from(a) << 32 | u64::from(b)) >> (c & 31)) as u32)
            }
            _ => None,
        };
        if let Some(compute) = vector {
            self.set(inst, 0, 0, |wave, lane| {
                let value = |at: usize| operands.get(at).map_or(0, |operand| wave.dword(operand, 0, lane));
                compute(value(0), value(1), value(2))
            });
            return;
        }
        match opcode {
            Opcode::v_cndmask_b32 => self.set(inst, 0, 0, |wave, lane| {
                let chosen = wave.wide(&operands[2]) >> lane & 1;
                wave.dword(&operands[chosen as usize], 0, lane)
            }),
            Opcode::v_cmp_lt_u32 | Opcode::v_cmp_ge_u32 => {
                let holds = |lane: &usize| {
                    let (a, b) = (self.dword(&operands[0], 0, *lane), self.dword(&operands[1], 0, *lane));
                    self.active(*lane) && if opcode == Opcode::v_cmp_lt_u32 { a < b } else { a >= b }
                };
                let mask = (0..self.lanes).filter(holds).fold(0, |mask, lane| mask | 1u64 << lane);
                self.set_mask(inst, 0, mask);
            }
            Opcode::s_xor_b32 | Opcode::s_and_b32 | Opcode::s_add_u32 => {
                let (a, b) = (scalar(self, 0), scalar(self, 1));
                let (sum, carry) = a.overflowing_add(b);
                let (value, scc) = match opcode {
                    Opcode::s_xor_b32 => (a ^ b, a ^ b != 0),
                    Opcode::s_and_b32 => (a & b, a & b != 0),
                    _ => (sum, carry),
                };
                self.set(inst, 0, 0, |_, _| value);
                self.set(inst, 1, 0, |_, _| scc.into());
            }
            Opcode::s_cmp_lt_u32 => {
                let less = scalar(self, 0) < scalar(self, 1);
                self.set(inst, 0, 0, |_, _| less.into());
            }
            Opcode::s_cselect_b32 => {
                let value = scalar(self, usize::from(scalar(self, 2) == 0));
                self.set(inst, 0, 0, |_, _| value);
            }
            Opcode::s_bitset1_b32 => {
                let value = scalar(self, 1) | 1 << (scalar(self, 0) & 31);
                self.set(inst, 0, 0, |_, _| value);
            }
            Opcode::s_and_saveexec_b32 | Opcode::s_and_saveexec_b64 => {
                let (mask, exec) = (self.wide(&operands[0]), self.exec);
                self.set_mask(inst, 0, exec);
                self.exec = exec & mask;
            }
            Opcode::s_andn2_b32 | Opcode::s_andn2_b64 => {
                let mask = self.wide(&operands[0]) & !self.wide(&operands[1]);
                self.set_mask(inst, 0, mask);
            }
            Opcode::buffer_store_dword => {
                let exec = self.exec;
                for lane in (0..self.lanes).filter(|lane| exec >> lane & 1 != 0) {
                    let (value, at) = (self.dword(&operands[0], 0, lane), self.dword(&operands[1], 0, lane));
                    self.stored.insert(at, value);
                }
            }
            other => panic!("{}", other.name()),
        }
    }
}
