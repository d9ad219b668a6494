//! Random programs with exec masks, in SSA form: scalar and vector arithmetic, vectors, uniform and divergent flow, loops.

use unwedge_aco::ir::{
    Block, Definition, NewInst, Op, Operand, PhysReg, Program, Progress, Pseudo, RegClass, ScratchArgs, Temp,
};
use unwedge_isa::amdgcn::model::Mod;
use unwedge_isa::amdgcn::{Gpu, Mods, Opcode};
use unwedge_testkit::mutate::Rng;

/// One of the lists of a scope.
type ListOf = fn(&Scope) -> &Vec<Temp>;

/// Values that can be read at a place.
#[derive(Clone, Default)]
struct Scope {
    scalars: Vec<Temp>,
    vectors: Vec<Temp>,
    wide_scalars: Vec<Temp>,
    wide_vectors: Vec<Temp>,
}

pub struct Generator {
    pub program: Program,
    random: Rng,
    block: Block,
    scope: Scope,
    /// How many values are kept.
    width: usize,
    mask: RegClass,
    wave64: bool,
    blocks_left: usize,
    /// How many instructions each region has beside its steps.
    padding: usize,
    descriptor: Temp,
    lane: Temp,
}

const S1: RegClass = RegClass::S1;
const V1: RegClass = RegClass::V1;

pub fn program(gpu: Gpu, seed: u64, width: usize) -> Program {
    padded(gpu, seed, width, 0)
}

/// One whose regions have so many instructions more.
pub fn padded(gpu: Gpu, seed: u64, width: usize, padding: usize) -> Program {
    let mut generator = Generator::new(gpu, seed, width, padding);
    generator.region(3);
    generator.end();
    generator.program
}

/// A program with a loop, each iteration of which permutes `count` values at random.
pub fn permutation(gpu: Gpu, seed: u64, count: usize) -> Program {
    let mut generator = Generator::new(gpu, seed, count, 0);
    for number in 0..count as u32 {
        let operands = [Operand::c32(0x1234_5678 ^ number), generator.read(generator.lane)];
        let temp = generator.hw(Opcode::v_xor_b32, V1, &operands);
        generator.keep(temp);
    }
    generator.permuting_loop();
    generator.end();
    generator.program
}

impl Generator {
    /// A program without regions, and the values that can be read in it.
    fn new(gpu: Gpu, seed: u64, width: usize, padding: usize) -> Generator {
        let mut program = Program::new(gpu);
        program.progress = Progress::Masked;
        let block = program.add_block();
        let descriptor = program.make_temp(RegClass::sgpr(4));
        let (scalar, lane) = (program.make_temp(S1), program.make_temp(V1));
        let (scratch, offset) = (program.make_temp(RegClass::sgpr(4)), program.make_temp(S1));
        let starts = [
            Definition::fixed(descriptor, RegClass::sgpr(4), PhysReg::sgpr(0)),
            Definition::fixed(scalar, S1, PhysReg::sgpr(4)),
            Definition::fixed(lane, V1, PhysReg::vgpr(0)),
            Definition::fixed(scratch, RegClass::sgpr(4), PhysReg::sgpr(8)),
            Definition::fixed(offset, S1, PhysReg::sgpr(12)),
        ];
        program.scratch = ScratchArgs { descriptor: Some(scratch), offset: Some(offset) };
        program.append(block, &NewInst::pseudo(Pseudo::StartProgram, &starts, &[]));
        let mut generator = Generator {
            mask: program.lane_mask(),
            wave64: gpu.wave64(),
            program,
            random: Rng::new(seed),
            block,
            scope: Scope { scalars: vec![scalar], vectors: vec![lane], ..Scope::default() },
            width,
            blocks_left: 40,
            padding,
            descriptor,
            lane,
        };
        generator.mark(Pseudo::LogicalStart);
        generator
    }

    fn mark(&mut self, pseudo: Pseudo) {
        self.program.append(self.block, &NewInst::pseudo(pseudo, &[], &[]));
    }

    fn read(&self, temp: Temp) -> Operand {
        Operand::temp(temp, self.program.class(temp))
    }

    fn emit(&mut self, op: Op, classes: &[RegClass], operands: &[Operand]) -> Vec<Temp> {
        let temps: Vec<Temp> = classes.iter().map(|class| self.program.make_temp(*class)).collect();
        let definitions: Vec<Definition> =
            temps.iter().zip(classes).map(|(temp, class)| Definition::temp(*temp, *class)).collect();
        let new = NewInst { op, ..NewInst::hw(Opcode::s_nop, &definitions, operands) };
        self.program.append(self.block, &new);
        temps
    }

    fn hw(&mut self, opcode: Opcode, class: RegClass, operands: &[Operand]) -> Temp {
        self.emit(Op::Hw(opcode), &[class], operands)[0]
    }

    fn pseudo(&mut self, pseudo: Pseudo, classes: &[RegClass], operands: &[Operand]) -> Vec<Temp> {
        self.emit(Op::Pseudo(pseudo), classes, operands)
    }

    fn pick(&mut self, list: fn(&Scope) -> &Vec<Temp>) -> Option<Temp> {
        let count = list(&self.scope).len();
        (count > 0).then(|| list(&self.scope)[self.random.below(count)])
    }

    fn scalar(&mut self) -> Operand {
        match (self.random.below(4), self.pick(|scope| &scope.scalars)) {
            (0, _) | (_, None) => Operand::c32(self.random.below(60) as u32),
            (_, Some(temp)) => self.read(temp),
        }
    }

    fn vector(&mut self) -> Operand {
        let temp = self.pick(|scope| &scope.vectors).expect("the lane");
        self.read(temp)
    }

    fn keep(&mut self, temp: Temp) {
        let class = self.program.class(temp);
        let width = self.width;
        let list = match (class.is_sgpr(), class.dwords()) {
            (true, 1) => &mut self.scope.scalars,
            (true, _) => &mut self.scope.wide_scalars,
            (false, 1) => &mut self.scope.vectors,
            (false, _) => &mut self.scope.wide_vectors,
        };
        if list.len() >= width {
            let at = self.random.below(list.len());
            list[at] = temp;
        } else {
            list.push(temp);
        }
    }

    /// A condition of the scalar ALU, as a uniform boolean.
    fn condition(&mut self) -> Temp {
        let operands = [self.scalar(), self.scalar()];
        self.hw(Opcode::s_cmp_lt_u32, S1, &operands)
    }

    /// A lane mask.
    fn lanes(&mut self) -> Temp {
        let operands = [self.scalar(), self.vector()];
        let opcode = if self.random.below(2) == 0 { Opcode::v_cmp_lt_u32 } else { Opcode::v_cmp_ge_u32 };
        self.hw(opcode, self.mask, &operands)
    }

    fn step(&mut self) {
        let scc = S1;
        match self.random.below(20) {
            0..=2 => {
                let operands = [self.scalar(), self.vector()];
                let ops = [Opcode::v_xor_b32, Opcode::v_and_b32, Opcode::v_or_b32];
                let op = ops[self.random.below(3)];
                let temp = self.hw(op, V1, &operands);
                self.keep(temp);
            }
            3 => {
                let operands = [self.vector(), self.vector()];
                let temp = self.hw(Opcode::v_mul_lo_u32, V1, &operands);
                self.keep(temp);
            }
            4 => {
                let operands = [self.vector(), self.vector(), Operand::c32(self.random.below(32) as u32)];
                let temp = self.hw(Opcode::v_alignbit_b32, V1, &operands);
                self.keep(temp);
            }
            5 => {
                let mask = self.lanes();
                let operands = [self.vector(), self.vector(), self.read(mask)];
                let temp = self.hw(Opcode::v_cndmask_b32, V1, &operands);
                self.keep(temp);
            }
            6..=8 => {
                let operands = [self.scalar(), self.scalar()];
                let ops = [Opcode::s_xor_b32, Opcode::s_add_u32, Opcode::s_and_b32];
                let op = ops[self.random.below(3)];
                let temps = self.emit(Op::Hw(op), &[S1, scc], &operands);
                self.keep(temps[0]);
                if self.random.below(2) == 0 {
                    self.keep(temps[1]);
                }
            }
            9 => {
                let condition = self.condition();
                let operands = [self.scalar(), self.scalar(), self.read(condition)];
                let temp = self.hw(Opcode::s_cselect_b32, S1, &operands);
                self.keep(temp);
                if self.random.below(2) == 0 {
                    self.keep(condition);
                }
            }
            10 => {
                let Some(old) = self.pick(|scope| &scope.scalars) else { return };
                let operands = [self.scalar(), self.read(old)];
                let temp = self.hw(Opcode::s_bitset1_b32, S1, &operands);
                self.keep(temp);
            }
            11 | 12 => {
                let count = 2 + self.random.below(3);
                let parts: Vec<Operand> = (0..count)
                    .map(|_| if self.random.below(4) == 0 { self.scalar() } else { self.vector() })
                    .collect();
                let temps = self.pseudo(Pseudo::CreateVector, &[RegClass::vgpr(count as u8)], &parts);
                self.keep(temps[0]);
            }
            13 => {
                let count = [2, 4][self.random.below(2)];
                let parts: Vec<Operand> = (0..count).map(|_| self.scalar()).collect();
                let temps = self.pseudo(Pseudo::CreateVector, &[RegClass::sgpr(count)], &parts);
                self.keep(temps[0]);
            }
            14 | 15 => {
                let Some(vector) = self.pick(|scope| &scope.wide_vectors) else { return };
                let operand = self.read(vector);
                let classes = vec![V1; operand.class.dwords().into()];
                for temp in self.pseudo(Pseudo::SplitVector, &classes, &[operand]) {
                    self.keep(temp);
                }
            }
            16 => {
                let Some(vector) = self.pick(|scope| &scope.wide_scalars) else { return };
                let operand = self.read(vector);
                let element = self.random.below(operand.class.dwords().into());
                let number = Operand::c32(element as u32);
                let temps = self.pseudo(Pseudo::ExtractVector, &[S1], &[operand, number]);
                self.keep(temps[0]);
            }
            17 => {
                let operand = self.vector();
                let temps = self.pseudo(Pseudo::AsUniform, &[S1], &[operand]);
                self.keep(temps[0]);
            }
            18 => {
                let (bits, vector) = ([8u32, 16][self.random.below(2)], self.random.below(2) == 0);
                let operand = if vector {
                    self.vector()
                } else {
                    match self.pick(|scope| &scope.scalars) {
                        Some(temp) => self.read(temp),
                        None => return,
                    }
                };
                let element = Operand::c32(self.random.below(32 / bits as usize) as u32);
                let sign = Operand::c32(self.random.below(2) as u32);
                let class = if vector { V1 } else { S1 };
                let (pseudo, operands) = if self.random.below(2) == 0 {
                    (Pseudo::Extract, vec![operand, element, Operand::c32(bits), sign])
                } else {
                    (Pseudo::Insert, vec![operand, element, Operand::c32(bits)])
                };
                let temps = self.pseudo(pseudo, &[class], &operands);
                self.keep(temps[0]);
            }
            _ => self.halves(),
        }
    }

    /// Halves of registers, taken apart and put together.
    fn halves(&mut self) {
        let half = RegClass::vgpr_bytes(2);
        let (a, b) = (self.vector(), self.vector());
        let a = self.pseudo(Pseudo::SplitVector, &[half, half], &[a]);
        let number = Operand::c32(self.random.below(2) as u32);
        let b = self.pseudo(Pseudo::ExtractVector, &[half], &[b, number]);
        let chosen = a[self.random.below(2)];
        let parts = [self.read(chosen), self.read(b[0])];
        let temps = self.pseudo(Pseudo::CreateVector, &[V1], &parts);
        self.keep(temps[0]);
    }

    fn region(&mut self, depth: usize) {
        for _ in 0..self.padding {
            let operands = [Operand::c32(0x1234_5678), self.vector()];
            let temp = self.hw(Opcode::v_xor_b32, V1, &operands);
            self.keep(temp);
        }
        for _ in 0..2 + self.random.below(12) {
            self.step();
        }
        if depth == 0 || self.blocks_left < 6 {
            return;
        }
        match self.random.below(4) {
            0 => self.uniform_if(depth),
            1 => self.divergent_if(depth),
            2 => self.uniform_loop(depth),
            _ => {}
        }
        for _ in 0..self.random.below(6) {
            self.step();
        }
        if self.random.below(2) == 0 {
            self.region(depth - 1);
        }
    }

    fn branch(&mut self, pseudo: Pseudo, condition: &[Operand]) {
        self.program.append(self.block, &NewInst::pseudo(pseudo, &[], condition));
    }

    fn start(&mut self) -> Block {
        self.blocks_left = self.blocks_left.saturating_sub(1);
        self.program.add_block()
    }

    /// Values of two ways: what one of them made, united by phis.
    fn unite(&mut self, before: &Scope, ways: [&Scope; 2], linear_too: bool) {
        self.scope = before.clone();
        let new = |way: &Scope, list: ListOf| -> Vec<Temp> {
            list(way).iter().copied().filter(|temp| !list(before).contains(temp)).collect()
        };
        let mut phis: Vec<(Pseudo, ListOf)> =
            vec![(Pseudo::Phi, |scope| &scope.vectors), (Pseudo::Phi, |scope| &scope.wide_vectors)];
        if linear_too {
            phis.push((Pseudo::LinearPhi, |scope| &scope.scalars));
            phis.push((Pseudo::LinearPhi, |scope| &scope.wide_scalars));
        }
        for (pseudo, list) in phis {
            let (a, b) = (new(ways[0], list), new(ways[1], list));
            for (a, b) in a.into_iter().zip(b) {
                let class = self.program.class(a);
                if class != self.program.class(b) {
                    continue;
                }
                let mut operands = [self.read(a), self.read(b)];
                if self.random.below(6) == 0 && class.dwords() == 1 {
                    operands[1] = Operand::constant(self.random.next_u64() & u64::from(u32::MAX), S1);
                }
                let temps = self.pseudo(pseudo, &[class], &operands);
                self.keep(temps[0]);
            }
        }
    }

    /// One side of an `if`, where the values of `before` can be read: its last block, and what can be read there.
    fn arm(&mut self, start: Block, before: &Scope, depth: usize) -> (Block, Scope) {
        self.block = start;
        self.scope = before.clone();
        self.mark(Pseudo::LogicalStart);
        self.region(depth - 1);
        self.mark(Pseudo::LogicalEnd);
        self.branch(Pseudo::Branch, &[]);
        (self.block, self.scope.clone())
    }

    fn uniform_if(&mut self, depth: usize) {
        let condition = self.condition();
        self.mark(Pseudo::LogicalEnd);
        let operand = self.read(condition);
        self.branch(Pseudo::BranchZ, &[operand]);
        let (from, before) = (self.block, self.scope.clone());
        let then = self.start();
        self.program.link(from, then);
        let (then_end, then_scope) = self.arm(then, &before, depth);
        let other = self.start();
        self.program.link(from, other);
        let (other_end, other_scope) = self.arm(other, &before, depth);
        let merge = self.start();
        self.program.link(then_end, merge);
        self.program.link(other_end, merge);
        self.block = merge;
        self.unite(&before, [&then_scope, &other_scope], true);
        self.mark(Pseudo::LogicalStart);
    }

    fn divergent_if(&mut self, depth: usize) {
        let lanes = self.lanes();
        self.mark(Pseudo::LogicalEnd);
        let exec = Operand::reg(PhysReg::EXEC, self.mask);
        let to_exec = Definition::reg(PhysReg::EXEC, self.mask);
        let saved = self.program.make_temp(self.mask);
        let scc = Definition::reg(PhysReg::SCC, S1);
        let opcode = if self.wave64 { Opcode::s_and_saveexec_b64 } else { Opcode::s_and_saveexec_b32 };
        let operand = self.read(lanes);
        let definitions = [Definition::temp(saved, self.mask), scc, to_exec];
        self.program.append(self.block, &NewInst::hw(opcode, &definitions, &[operand, exec]));
        self.branch(Pseudo::BranchZ, &[exec]);
        let (from, before) = (self.block, self.scope.clone());
        let then = self.start();
        self.program.link(from, then);
        let (then_end, then_scope) = self.arm(then, &before, depth);
        let invert = self.start();
        self.program.link_linear(from, invert);
        self.program.link_linear(then_end, invert);
        self.block = invert;
        let opcode = if self.wave64 { Opcode::s_andn2_b64 } else { Opcode::s_andn2_b32 };
        let operands = [self.read(saved), exec];
        self.program.append(invert, &NewInst::hw(opcode, &[to_exec, scc], &operands));
        self.branch(Pseudo::BranchZ, &[exec]);
        let other = self.start();
        self.program.link_linear(invert, other);
        self.program.link_logical(from, other);
        let (other_end, other_scope) = self.arm(other, &before, depth);
        let merge = self.start();
        self.program.link_linear(invert, merge);
        self.program.link_linear(other_end, merge);
        self.program.link_logical(then_end, merge);
        self.program.link_logical(other_end, merge);
        self.block = merge;
        self.unite(&before, [&then_scope, &other_scope], false);
        let operand = self.read(saved);
        self.program.append(merge, &NewInst::pseudo(Pseudo::ParallelCopy, &[to_exec], &[operand]));
        self.mark(Pseudo::LogicalStart);
    }

    /// A loop of a few rounds that changes some values; its last block branches back.
    fn uniform_loop(&mut self, depth: usize) {
        self.mark(Pseudo::LogicalEnd);
        self.branch(Pseudo::Branch, &[]);
        let (from, before) = (self.block, self.scope.clone());
        let header = self.start();
        self.program.link(from, header);
        self.block = header;
        let counter = self.program.make_temp(S1);
        let mut carried: Vec<(Temp, Temp)> = Vec::new();
        for list in [&before.scalars, &before.vectors, &before.wide_vectors] {
            for temp in list.iter().take(self.random.below(4)) {
                carried.push((*temp, self.program.make_temp(self.program.class(*temp))));
            }
        }
        for (_, phi) in &carried {
            self.keep(*phi);
        }
        let inside = self.scope.clone();
        self.mark(Pseudo::LogicalStart);
        self.region(depth - 1);
        let next = self.program.make_temp(S1);
        let definitions = [Definition::temp(next, S1), Definition::reg(PhysReg::SCC, S1)];
        let operands = [self.read(counter), Operand::c32(1)];
        self.program.append(self.block, &NewInst::hw(Opcode::s_add_u32, &definitions, &operands));
        let rounds = Operand::c32(1 + self.random.below(3) as u32);
        let operands = [self.read(next), rounds];
        let again = self.hw(Opcode::s_cmp_lt_u32, S1, &operands);
        self.mark(Pseudo::LogicalEnd);
        let operand = self.read(again);
        self.branch(Pseudo::BranchNz, &[operand]);
        let (latch, end_scope) = (self.block, self.scope.clone());
        let exit = self.start();
        self.program.link(latch, exit);
        self.program.link(latch, header);
        // What the loop carries: another value of the class from its end.
        let mut phis: Vec<(Temp, Operand, Operand)> = vec![(counter, Operand::c32(0), self.read(next))];
        for (old, phi) in carried {
            let class = self.program.class(old);
            let all = [&end_scope.scalars, &end_scope.vectors, &end_scope.wide_vectors];
            let same: Vec<Temp> = all
                .iter()
                .flat_map(|list| list.iter())
                .copied()
                .filter(|temp| self.program.class(*temp) == class)
                .collect();
            let back = same.get(self.random.below(same.len())).copied().unwrap_or(phi);
            phis.push((phi, self.read(old), self.read(back)));
        }
        let mut insts = Vec::new();
        for (phi, first, back) in phis {
            let class = self.program.class(phi);
            let pseudo = if class.is_sgpr() { Pseudo::LinearPhi } else { Pseudo::Phi };
            let (definitions, operands) = ([Definition::temp(phi, class)], [first, back]);
            insts.push(self.program.make_inst(&NewInst::pseudo(pseudo, &definitions, &operands)));
        }
        self.program.blocks[header].insts.splice(0..0, insts);
        self.block = exit;
        // Everything that the last round knew can be read.
        self.scope = if self.random.below(2) == 0 { end_scope } else { inside };
        self.mark(Pseudo::LogicalStart);
    }

    /// A loop that does nothing but permute the vectors of the scope.
    fn permuting_loop(&mut self) {
        const ROUNDS: u32 = 3;
        self.mark(Pseudo::LogicalEnd);
        self.branch(Pseudo::Branch, &[]);
        let (from, header) = (self.block, self.start());
        self.program.link(from, header);
        self.block = header;
        let before = std::mem::take(&mut self.scope.vectors);
        let inside: Vec<Temp> = before.iter().map(|_| self.program.make_temp(V1)).collect();
        let mut moved = inside.clone();
        for at in (1..moved.len()).rev() {
            moved.swap(at, self.random.below(at + 1));
        }
        let (counter, next) = (self.program.make_temp(S1), self.program.make_temp(S1));
        let operands = [Operand::c32(0), self.read(next)];
        self.program
            .append(header, &NewInst::pseudo(Pseudo::LinearPhi, &[Definition::temp(counter, S1)], &operands));
        for ((phi, first), back) in inside.iter().zip(before).zip(moved) {
            let operands = [self.read(first), self.read(back)];
            self.program
                .append(header, &NewInst::pseudo(Pseudo::Phi, &[Definition::temp(*phi, V1)], &operands));
        }
        self.mark(Pseudo::LogicalStart);
        let definitions = [Definition::temp(next, S1), Definition::reg(PhysReg::SCC, S1)];
        let operands = [self.read(counter), Operand::c32(1)];
        self.program.append(header, &NewInst::hw(Opcode::s_add_u32, &definitions, &operands));
        let operands = [self.read(next), Operand::c32(ROUNDS)];
        let again = self.hw(Opcode::s_cmp_lt_u32, S1, &operands);
        self.mark(Pseudo::LogicalEnd);
        let operand = self.read(again);
        self.branch(Pseudo::BranchNz, &[operand]);
        let exit = self.start();
        self.program.link(header, exit);
        self.program.link(header, header);
        self.block = exit;
        self.scope.vectors = inside;
        self.mark(Pseudo::LogicalStart);
    }

    /// Stores what is left, and ends.
    fn end(&mut self) {
        let mut sum = self.read(self.lane);
        for temp in self.scope.vectors.clone().into_iter().chain(self.scope.scalars.clone()) {
            let odd = self.hw(Opcode::v_alignbit_b32, V1, &[sum, sum, Operand::c32(29)]);
            let operands = [self.read(temp), self.read(odd)];
            sum = {
                let temp = self.hw(Opcode::v_xor_b32, V1, &operands);
                self.read(temp)
            };
        }
        let offset = self.hw(Opcode::v_lshlrev_b32, V1, &[Operand::c32(2), self.read(self.lane)]);
        let mut mods = Mods::default();
        mods.set(Mod::Offen, 1);
        let operands = [sum, self.read(offset), self.read(self.descriptor), Operand::c32(0)];
        let new = NewInst { mods, ..NewInst::hw(Opcode::buffer_store_dword, &[], &operands) };
        self.program.append(self.block, &new);
        self.mark(Pseudo::LogicalEnd);
        self.program.append(self.block, &NewInst::hw(Opcode::s_endpgm, &[], &[]));
    }
}
