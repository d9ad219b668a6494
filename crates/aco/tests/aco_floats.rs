//! Random arithmetic on floats of 32 and 16 bits, with halves of registers, literals, signs, conversions, comparisons, clamps and moves between lanes. The optimized program
//! has the same results as the original one on the emulator, for all GPUs. `UNWEDGE_SEEDS=N` makes more programs.

mod rig;

use rig::straight::{allowed, part_words, stored};
use rig::translate::{CaseArgument, PartResult, store};
use rig::{GPUS, seeds};
use unwedge_aco::ir::shape::Variants;
use unwedge_aco::ir::{
    Block, Definition, FloatFreedom, NewInst, Operand, PhysReg, Program, Pseudo, RegClass, Temp, text,
};
use unwedge_aco::{Limits, Passes, finish, optimize, valid};
use unwedge_isa::amdgcn::listing::{self, AmdListingOptions};
use unwedge_isa::amdgcn::model::{Form, Gfx, Mod, Type};
use unwedge_isa::amdgcn::{Gpu, Mods, Opcode};
use unwedge_testkit::mutate::Rng;

const V1: RegClass = RegClass::V1;
const S1: RegClass = RegClass::S1;
/// The numbers of vector and scalar registers with arguments.
const VECTORS: u8 = 6;
const SCALARS: u8 = 3;
/// Denormals that are kept: all, those of 16 bits, none.
const MODES: [u8; 3] = [0xf0, 0xc0, 0];

/// A program under construction.
struct Generator {
    program: Program,
    variants: Variants,
    random: Rng,
    block: Block,
    freedom: FloatFreedom,
    /// Registers with arbitrary bits, whose halves are used.
    words: Vec<Operand>,
    /// Floats of 32 and 16 bits.
    floats: Vec<Operand>,
    halves: Vec<Operand>,
}

impl Generator {
    fn append(&mut self, new: &NewInst, class: RegClass) -> Operand {
        let temp = self.program.make_temp(class);
        let inst = self
            .program
            .append(self.block, &NewInst { definitions: &[Definition::temp(temp, class)], ..*new });
        self.program[inst].freedom = self.freedom;
        Operand::temp(temp, class)
    }

    fn pick(&mut self, list: fn(&Generator) -> &Vec<Operand>) -> Operand {
        let at = self.random.below(list(self).len());
        list(self)[at]
    }

    /// A float of 32 bits: a value, a scalar, or a literal in a register.
    fn float(&mut self) -> Operand {
        const LITERALS: [u32; 8] = [
            0x3fc0_0000,
            0x4040_0000,
            0x3dcc_cccd,
            0x4090_0000,
            0xc2c8_0000,
            0x387f_c000,
            0x3f80_0000,
            0x3e80_0000,
        ];
        if self.random.below(4) > 0 {
            return self.pick(|own| &own.floats);
        }
        let literal = [Operand::c32(LITERALS[self.random.below(LITERALS.len())])];
        let class = if self.random.below(2) == 0 { V1 } else { S1 };
        self.append(&NewInst::pseudo(Pseudo::ParallelCopy, &[], &literal), class)
    }

    fn half(&mut self) -> Operand {
        if !self.halves.is_empty() && self.random.below(3) > 0 {
            return self.pick(|own| &own.halves);
        }
        let word = if self.random.below(4) == 0 { self.moved() } else { self.pick(|own| &own.words) };
        let number = Operand::c32(self.random.below(2) as u32);
        self.append(&NewInst::pseudo(Pseudo::ExtractVector, &[], &[word, number]), RegClass::vgpr_bytes(2))
    }

    /// A word of another lane.
    fn moved(&mut self) -> Operand {
        let word = self.pick(|own| &own.words);
        let gfx = self.program.gpu.generation();
        if gfx < Gfx::Gfx8 {
            return word;
        }
        let (mut mods, mut form) = (Mods::default(), Form::Dpp);
        if gfx >= Gfx::Gfx10 && self.random.below(2) == 0 {
            mods.set(Mod::Dpp8, (self.random.next_u64() & 0xff_ffff) as i32);
            form = Form::Dpp8;
        } else {
            for (id, value) in
                [(Mod::DppCtrl, 0x140), (Mod::RowMask, 15), (Mod::BankMask, 15), (Mod::BoundCtrl, 1)]
            {
                mods.set(id, value);
            }
        }
        self.append(&NewInst { mods, form, ..NewInst::hw(Opcode::v_mov_b32, &[], &[word]) }, V1)
    }

    /// Adds one of `opcodes` that the GPU has, with vector registers where it needs them.
    fn arithmetic(&mut self, opcodes: &[Opcode], operands: &[Operand], class: RegClass) -> Option<Operand> {
        let known: Vec<Opcode> =
            opcodes.iter().copied().filter(|opcode| self.variants.has(*opcode)).collect();
        let opcode = *known.get(self.random.below(known.len().max(1)))?;
        // All GPUs allow one scalar operand, and in short encodings only as the first one.
        let vector = |operand: &Operand| if operand.class.is_sgpr() { None } else { Some(*operand) };
        let mut read = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            read.push(match vector(operand) {
                Some(operand) => operand,
                None if at == 0 => *operand,
                None => self.append(&NewInst::pseudo(Pseudo::ParallelCopy, &[], &[*operand]), V1),
            });
        }
        Some(self.append(&NewInst::hw(opcode, &[], &read), class))
    }

    /// A float that two comparisons choose. Half of them are tests for NaNs, of values that the other ones compare.
    fn choice(&mut self) {
        use Opcode as O;
        const COMPARES: [Opcode; 14] = [
            O::v_cmp_lt_f32,
            O::v_cmp_le_f32,
            O::v_cmp_gt_f32,
            O::v_cmp_ge_f32,
            O::v_cmp_eq_f32,
            O::v_cmp_lg_f32,
            O::v_cmp_o_f32,
            O::v_cmp_u_f32,
            O::v_cmp_nlt_f32,
            O::v_cmp_nle_f32,
            O::v_cmp_ngt_f32,
            O::v_cmp_nge_f32,
            O::v_cmp_nlg_f32,
            O::v_cmp_neq_f32,
        ];
        let mask = self.program.lane_mask();
        let values = [self.pick(|own| &own.words), self.pick(|own| &own.words), Operand::c32(0x4080_0000)];
        let compare = |own: &mut Generator| {
            let a = values[own.random.below(2)];
            let (opcode, b) = match own.random.below(3) {
                0 => ([O::v_cmp_neq_f32, O::v_cmp_eq_f32][own.random.below(2)], a),
                _ => (COMPARES[own.random.below(COMPARES.len())], values[own.random.below(3)]),
            };
            let operands = if b.as_const().is_some() { [b, a] } else { [a, b] };
            own.append(&NewInst::hw(opcode, &[], &operands), mask)
        };
        let mut chosen = compare(self);
        for _ in 0..1 + self.random.below(2) {
            let other = compare(self);
            let wide = mask.bytes() == 8;
            let opcode = match (wide, self.random.below(2)) {
                (true, 0) => O::s_or_b64,
                (true, _) => O::s_and_b64,
                (false, 0) => O::s_or_b32,
                (false, _) => O::s_and_b32,
            };
            let temp = self.program.make_temp(mask);
            let to = [Definition::temp(temp, mask), Definition::reg(PhysReg::SCC, S1)];
            self.program.append(self.block, &NewInst::hw(opcode, &to, &[chosen, other]));
            chosen = Operand::temp(temp, mask);
        }
        let operands = [Operand::c32(0), Operand::c32(0x3f80_0000), chosen];
        let made = self.append(&NewInst::hw(O::v_cndmask_b32, &[], &operands), V1);
        self.floats.push(made);
    }

    /// Half a register between two constants.
    fn clamped_half(&mut self) {
        use Opcode as O;
        const BOUNDS: [u64; 8] = [0, 0x8000, 0x3c00, 0xc000, 1, 0xfff0, 0x7e00, 0x4400];
        let half = RegClass::vgpr_bytes(2);
        let word = self.pick(|own| &own.words);
        let number = Operand::c32(self.random.below(2) as u32);
        let value = self.append(&NewInst::pseudo(Pseudo::ExtractVector, &[], &[word, number]), half);
        let [min, max] =
            [[O::v_min_f16, O::v_max_f16], [O::v_min_i16, O::v_max_i16], [O::v_min_u16, O::v_max_u16]]
                [self.random.below(3)];
        let opcodes = if self.random.below(2) == 0 { [min, max] } else { [max, min] };
        let mut value = value;
        for opcode in opcodes {
            let bound = Operand::constant(BOUNDS[self.random.below(BOUNDS.len())], half);
            value = self.append(&NewInst::hw(opcode, &[], &[bound, value]), half);
        }
        self.halves.push(value);
    }

    fn step(&mut self) {
        use Opcode as O;
        let half = RegClass::vgpr_bytes(2);
        match self.random.below(12) {
            0 | 1 => {
                let operands = [self.float(), self.float()];
                let opcodes = [O::v_add_f32, O::v_mul_f32, O::v_sub_f32, O::v_max_f32];
                let made = self.arithmetic(&opcodes, &operands, V1);
                self.floats.extend(made);
            }
            2..=4 => {
                let operands = [self.float(), self.float(), self.float()];
                // Operations that round twice flush denormals.
                let opcodes = [O::v_fma_f32, O::v_fma_f32, O::v_mad_f32];
                let made = self.arithmetic(&opcodes, &operands, V1);
                self.floats.extend(made);
            }
            5 => {
                let operands = [self.half()];
                let made = self.arithmetic(&[O::v_cvt_f32_f16], &operands, V1);
                self.floats.extend(made);
            }
            6 => {
                let operands = [self.float()];
                let made = self.arithmetic(&[O::v_cvt_f16_f32], &operands, half);
                self.halves.extend(made);
            }
            7 | 8 if self.program.gpu.generation() >= Gfx::Gfx8 => {
                let operands = [self.half(), self.half()];
                let opcodes = [O::v_add_f16, O::v_mul_f16, O::v_sub_f16, O::v_min_f16];
                let made = self.arithmetic(&opcodes, &operands, half);
                self.halves.extend(made);
            }
            9 => self.choice(),
            10 if self.program.gpu.generation() >= Gfx::Gfx8 => self.clamped_half(),
            _ => {
                let operands = [Operand::c32(1 << 31), self.pick(|own| &own.floats)];
                let made = self.arithmetic(&[O::v_xor_b32], &operands, V1);
                self.floats.extend(made);
            }
        }
    }
}

/// The generator, the registers of the arguments, and the address of the results.
struct StartedProgram {
    generator: Generator,
    arguments: Vec<CaseArgument>,
    descriptor: Temp,
    address: Temp,
}

/// Begins a program that has its arguments.
fn start(gpu: Gpu, seed: u64) -> StartedProgram {
    let mut program = Program::new(gpu);
    let block = program.add_block();
    program.blocks[block].top_level = true;
    let descriptor = program.make_temp(RegClass::sgpr(4));
    let address = program.make_temp(V1);
    let mut starts = vec![
        Definition::fixed(descriptor, RegClass::sgpr(4), PhysReg::sgpr(0)),
        Definition::fixed(address, V1, PhysReg::vgpr(0)),
    ];
    let mut arguments = Vec::new();
    let mut argument = |program: &mut Program, reg: PhysReg, class: RegClass| {
        let temp: Temp = program.make_temp(class);
        starts.push(Definition::fixed(temp, class, reg));
        arguments.push(CaseArgument { reg, dwords: 1, most: u32::MAX, temp: Some(temp) });
        Operand::temp(temp, class)
    };
    let words: Vec<Operand> =
        (1..=VECTORS).map(|number| argument(&mut program, PhysReg::vgpr(number), V1)).collect();
    let scalars: Vec<Operand> =
        (4..4 + SCALARS).map(|number| argument(&mut program, PhysReg::sgpr(number), S1)).collect();
    program.append(block, &NewInst::pseudo(Pseudo::StartProgram, &starts, &[]));
    program.append(block, &NewInst::pseudo(Pseudo::LogicalStart, &[], &[]));
    let mut random = Rng::new(seed);
    let freedom = if random.below(2) == 0 { FloatFreedom::ALL } else { FloatFreedom::default() };
    let generator = Generator {
        variants: Variants::of(&gpu),
        floats: words.iter().chain(&scalars).copied().collect(),
        halves: Vec::new(),
        words,
        program,
        random,
        block,
        freedom,
    };
    StartedProgram { generator, arguments, descriptor, address }
}

impl StartedProgram {
    /// Finishes the program: it stores the values that it does not read itself. Returns it with its arguments and results.
    fn end(self) -> (Program, Vec<CaseArgument>, Vec<PartResult>) {
        let StartedProgram { generator, arguments, descriptor, address } = self;
        let Generator { mut program, floats, halves, block, freedom, .. } = generator;
        let insts = &program.blocks[block].insts;
        let read: Vec<Temp> =
            insts.iter().flat_map(|inst| program.operands(*inst)).filter_map(Operand::as_temp).collect();
        let floats = floats.iter().map(|value| (*value, Type::F32));
        let results = floats.chain(halves.iter().map(|value| (*value, Type::F16)));
        let mut parts = Vec::new();
        for (value, ty) in results {
            if value.as_temp().is_some_and(|temp| !read.contains(&temp)) {
                let offset = parts.len() as u32 * rig::translate::PART_BYTES;
                store(&mut program, block, (value, ty), [descriptor, address], offset)
                    .expect("a small result");
                parts.push(PartResult { ty, freedom: FloatFreedom { nans: true, ..freedom } });
            }
        }
        program.append(block, &NewInst::pseudo(Pseudo::LogicalEnd, &[], &[]));
        program.append(block, &NewInst::hw(Opcode::s_endpgm, &[], &[]));
        (program, arguments, parts)
    }
}

/// A random program, the registers of its arguments, and its results.
fn generate(gpu: Gpu, seed: u64) -> (Program, Vec<CaseArgument>, Vec<PartResult>) {
    let mut started = start(gpu, seed);
    let first = started.generator.half();
    started.generator.halves.push(first);
    for _ in 0..24 {
        started.generator.step();
    }
    started.end()
}

fn shown(program: &Program) -> String {
    let mut shown = String::new();
    text::print(program, &mut shown);
    shown
}

/// Checks that a program has the same results after the optimizer.
fn check(gpu: Gpu, seed: u64) -> Result<(), String> {
    let (program, arguments, parts) = generate(gpu, seed);
    let mode = MODES[seed as usize % MODES.len()];
    let mut optimized = program.clone();
    optimize(&mut optimized, mode, Passes::default());
    if let Err(violations) = valid::ir(&optimized, &Variants::of(&gpu)) {
        return Err(format!("{}\n{}", violations[0].describe(&optimized), shown(&optimized)));
    }
    let wanted = stored(&program, mode, &arguments, seed)?;
    let got = stored(&optimized, mode, &arguments, seed)
        .map_err(|error| format!("{error}\n{}", shown(&optimized)))?;
    for (number, part) in parts.iter().enumerate() {
        for (got, wanted) in part_words(&got, number).into_iter().zip(part_words(&wanted, number)) {
            if !allowed(part, got, wanted) {
                let programs = [shown(&program), shown(&optimized)].join("\n");
                return Err(format!("result {number}: {got:x}, not {wanted:x}\n{programs}"));
            }
        }
    }
    Ok(())
}

#[test]
fn optimized_floats_are_the_same() {
    for name in GPUS {
        let gpu = Gpu::new(name).expect("a GPU").with_wave64(true);
        for seed in seeds(40) {
            if let Err(why) = check(gpu, seed) {
                panic!("{name}, seed {seed}: {why}");
            }
        }
    }
}

/// Checks that the code of a program has a line with these words.
#[track_caller]
fn check_code(name: &str, mode: u8, wanted: &[&str], make: impl Fn(&mut Generator)) {
    let gpu = Gpu::new(name).expect("a GPU").with_wave64(true);
    let mut started = start(gpu, 0);
    make(&mut started.generator);
    let (mut program, _, _) = started.end();
    optimize(&mut program, mode, Passes::default());
    let code = finish(&mut program, &Limits::of(&gpu)).expect("code");
    let bytes: Vec<u8> = code.words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut listing = String::new();
    listing::write(&bytes, &gpu, &AmdListingOptions::default(), &mut listing, &mut |_, _| ());
    let found = listing.lines().any(|line| wanted.iter().all(|word| line.contains(word)));
    assert!(found, "{name}: no {wanted:?}:\n{listing}");
}

#[test]
fn literals_are_in_products_and_sums() {
    let three = Operand::c32(0x4040_0000);
    let copy = |own: &mut Generator, bits: u32| {
        own.append(&NewInst::pseudo(Pseudo::ParallelCopy, &[], &[Operand::c32(bits)]), V1)
    };
    let sum = |opcode: Opcode, operands: fn(&[Operand], Operand) -> [Operand; 3]| {
        move |own: &mut Generator| {
            let literal = copy(own, three.as_const().unwrap_or_default() as u32);
            let operands = operands(&own.words, literal);
            let made = own.append(&NewInst::hw(opcode, &[], &operands), V1);
            own.floats.push(made);
            // What is read lives on, so that the result is not added to the register of the summand.
            let words = [own.words[0], own.words[1]];
            let read = own.append(&NewInst::hw(Opcode::v_xor_b32, &[], &words), V1);
            own.floats.push(read);
        }
    };
    for (name, long, added, multiplied) in [
        ("gfx900", Opcode::v_mad_f32, "v_madak_f32", "v_madmk_f32"),
        ("gfx1010", Opcode::v_mad_f32, "v_madak_f32", "v_madmk_f32"),
        ("gfx1030", Opcode::v_fma_f32, "v_fmaak_f32", "v_fmamk_f32"),
    ] {
        check_code(
            name,
            0xc0,
            &[added, "0x40400000"],
            sum(long, |words, literal| [words[0], words[1], literal]),
        );
        check_code(
            name,
            0xc0,
            &[multiplied, "0x40400000"],
            sum(long, |words, literal| [literal, words[0], words[1]]),
        );
    }
    check_code("gfx1030", 0xf0, &["v_fma_mix_f32", "0x42003e00, 0x42003e00"], |own| {
        let operands = [own.words[0], copy(own, 0x3fc0_0000), copy(own, 0x4040_0000)];
        let made = own.append(&NewInst::hw(Opcode::v_fma_f32, &[], &operands), V1);
        own.floats.push(made);
    });
}

#[test]
fn upper_halves_are_read_in_place() {
    let half = RegClass::vgpr_bytes(2);
    let upper = |own: &mut Generator, word: Operand| {
        let operands = [word, Operand::c32(1)];
        own.append(&NewInst::pseudo(Pseudo::ExtractVector, &[], &operands), half)
    };
    check_code("gfx1100", 0xc0, &["v_add_f16_e32", ".l, v1.h, v2.h"], |own| {
        let operands = [own.words[0], own.words[1]].map(|word| upper(own, word));
        let made = own.append(&NewInst::hw(Opcode::v_add_f16, &[], &operands), half);
        own.halves.push(made);
    });
    check_code("gfx1100", 0xc0, &["v_mul_f16_dpp", ".l, v1.h, v2.h row_mirror"], |own| {
        let mut mods = Mods::default();
        for (id, value) in
            [(Mod::DppCtrl, 0x140), (Mod::RowMask, 15), (Mod::BankMask, 15), (Mod::BoundCtrl, 1)]
        {
            mods.set(id, value);
        }
        let word = [own.words[0]];
        let moved = NewInst { mods, form: Form::Dpp, ..NewInst::hw(Opcode::v_mov_b32, &[], &word) };
        let moved = own.append(&moved, V1);
        let operands = [moved, own.words[1]].map(|word| upper(own, word));
        let made = own.append(&NewInst::hw(Opcode::v_mul_f16, &[], &operands), half);
        own.halves.push(made);
    });
}

#[test]
fn products_of_upper_halves_are_added_by_one_instruction() {
    let half = RegClass::vgpr_bytes(2);
    for name in ["gfx1100", "gfx1200"] {
        check_code(name, 0xc0, &["v_fma_f16"], |own| {
            own.program.contract = true;
            let upper = [0, 1, 2].map(|at| {
                let operands = [own.words[at], Operand::c32(1)];
                own.append(&NewInst::pseudo(Pseudo::ExtractVector, &[], &operands), half)
            });
            let product = own.append(&NewInst::hw(Opcode::v_mul_f16, &[], &upper[..2]), half);
            let sum = own.append(&NewInst::hw(Opcode::v_add_f16, &[], &[product, upper[2]]), half);
            own.halves.push(sum);
        });
    }
}
