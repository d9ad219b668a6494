//! Generated programs with branches and loops: they get the waits that a simulation of their paths asks for, and then each
//! wait is removed or weakened. The checker has to say what the simulation says.
//!
//! The simulation knows registers and pipes from how the programs are made, not from their code.

use std::collections::BTreeMap;
use unwedge_check::eu::{CheckOptions, Level, Rule, check};
use unwedge_isa::eu::{Field as F, Instruction, Platform, program};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    Gen12,
    Gen125,
    Xe2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Integer,
    Long,
    Math,
    Send,
    If,
    Else,
    Endif,
    While,
    End,
}

/// A wait before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The pipe, 4 for all, and the distance.
    Distance(usize, u8),
    /// The token, and whether sources are enough.
    Token(u8, bool),
}

#[derive(Debug, Clone)]
struct Op {
    kind: Kind,
    destination: Option<u8>,
    sources: Vec<u8>,
    target: usize,
    token: u8,
    waits: Vec<Wait>,
}

/// xorshift
fn next(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

impl Op {
    fn of(kind: Kind) -> Self {
        Self { kind, destination: None, sources: Vec::new(), target: 0, token: 0, waits: Vec::new() }
    }

    fn is_unordered(&self, generation: Generation) -> bool {
        matches!(self.kind, Kind::Send | Kind::End)
            || (self.kind == Kind::Math && generation != Generation::Xe2)
    }

    /// The pipe of an in-order instruction: float, integer, long, math.
    fn pipe(&self, generation: Generation) -> Option<usize> {
        match self.kind {
            _ if self.is_unordered(generation) => None,
            _ if generation == Generation::Gen12 => Some(0),
            Kind::Float => Some(0),
            Kind::Long => Some(2),
            Kind::Math => Some(3),
            _ => Some(1),
        }
    }
}

/// Branches nest: a loop or an `if` around others.
fn generate(state: &mut u64) -> Vec<Op> {
    fn body(ops: &mut Vec<Op>, state: &mut u64, depth: u64) {
        for _ in 0..3 + next(state, 5) {
            match next(state, 12) {
                0 if depth < 2 => {
                    let at = ops.len();
                    ops.push(Op::of(Kind::If));
                    body(ops, state, depth + 1);
                    if next(state, 2) == 0 {
                        ops[at].target = ops.len() + 1;
                        let other = ops.len();
                        ops.push(Op::of(Kind::Else));
                        body(ops, state, depth + 1);
                        ops[other].target = ops.len();
                    } else {
                        ops[at].target = ops.len();
                    }
                    ops.push(Op::of(Kind::Endif));
                }
                1 if depth < 1 => {
                    let start = ops.len();
                    body(ops, state, depth + 1);
                    ops.push(Op { target: start, ..Op::of(Kind::While) });
                }
                kind => {
                    let kinds = [
                        Kind::Float,
                        Kind::Integer,
                        Kind::Long,
                        Kind::Math,
                        Kind::Send,
                        Kind::Float,
                        Kind::Integer,
                    ];
                    let kind = kinds[kind as usize % kinds.len()];
                    let register = |state: &mut u64| 10 + next(state, 12) as u8;
                    let count = if matches!(kind, Kind::Send | Kind::Math) { 1 } else { 2 };
                    let sources = (0..count).map(|_| register(state)).collect();
                    let (destination, token) = (Some(register(state)), next(state, 6) as u8);
                    ops.push(Op { destination, sources, token, ..Op::of(kind) });
                }
            }
        }
    }
    let mut ops = Vec::new();
    body(&mut ops, state, 0);
    ops.push(Op { sources: vec![120], token: 7, ..Op::of(Kind::End) });
    ops
}

/// What is pending on one path.
#[derive(Clone, Default)]
struct Machine {
    issued: [u32; 4],
    /// Instruction, pipe, its number in the pipe.
    ordered: Vec<(usize, usize, u32)>,
    /// Instruction, token, sources and destination not done.
    unordered: Vec<(usize, u8, bool, bool)>,
}

impl Machine {
    fn back(&self, pipe: usize, number: u32) -> u32 {
        self.issued[pipe] - number
    }

    fn wait(&mut self, wait: Wait) {
        match wait {
            Wait::Distance(of, distance) => {
                let issued = self.issued;
                self.ordered.retain(|(_, pipe, number)| {
                    (of != 4 && of != *pipe) || issued[*pipe] - number < u32::from(distance)
                });
            }
            Wait::Token(token, sources) => {
                for item in self.unordered.iter_mut().filter(|item| item.1 == token) {
                    item.2 = false;
                    item.3 &= sources;
                }
            }
        }
    }

    /// Runs an instruction; gives the first wait that it would have needed.
    fn step(&mut self, ops: &[Op], at: usize, generation: Generation) -> Option<Wait> {
        let op = &ops[at];
        op.waits.iter().for_each(|wait| self.wait(*wait));
        let unordered = op.is_unordered(generation);
        if unordered {
            self.wait(Wait::Token(op.token, false));
        }
        let pipe = op.pipe(generation);
        let writes = |register: &u8| op.destination == Some(*register);
        for (first, of, number) in &self.ordered {
            let first = &ops[*first];
            let result = first.destination;
            let reads_it = result.is_some_and(|r| op.sources.contains(&r));
            let writes_it = result.is_some() && result == op.destination;
            let too_early = pipe != Some(*of) && first.sources.iter().any(writes);
            if reads_it || writes_it || too_early {
                return Some(Wait::Distance(*of, self.back(*of, *number).min(7) as u8));
            }
        }
        for (first, token, reading, writing) in &self.unordered {
            let first = &ops[*first];
            let result = first.destination;
            let used = result.is_some_and(|r| op.sources.contains(&r) || op.destination == Some(r));
            if *writing && used {
                return Some(Wait::Token(*token, false));
            }
            if *reading && first.sources.iter().any(writes) {
                return Some(Wait::Token(*token, true));
            }
        }
        match pipe {
            Some(pipe) => {
                self.ordered.retain(|(step, ..)| *step != at);
                self.ordered.push((at, pipe, self.issued[pipe]));
                self.issued[pipe] += 1;
                let issued = self.issued;
                self.ordered
                    .retain(|(_, pipe, number)| issued[*pipe] - number <= if *pipe == 2 { 14 } else { 10 });
            }
            None => {
                self.unordered.retain(|(step, ..)| *step != at);
                self.unordered.push((at, op.token, true, op.destination.is_some()));
            }
        }
        None
    }
}

/// The first wait that is missing on some path, and the instruction.
fn missing(ops: &[Op], generation: Generation) -> Option<(usize, Wait)> {
    let mut paths = vec![(0, Machine::default(), vec![0u8; ops.len()])];
    while let Some((mut at, mut machine, mut taken)) = paths.pop() {
        while at < ops.len() {
            if let Some(wait) = machine.step(ops, at, generation) {
                return Some((at, wait));
            }
            let op = &ops[at];
            let jumps = match op.kind {
                Kind::If | Kind::Else => true,
                Kind::While => taken[at] < 2,
                _ => false,
            };
            if jumps {
                taken[at] += 1;
                let mut other = taken.clone();
                // A loop in a loop starts anew.
                (op.target..at).for_each(|inner| other[inner] = 0);
                paths.push((op.target, machine.clone(), other));
            }
            at += 1;
        }
    }
    None
}

/// Adds waits until none is missing.
fn annotate(ops: &mut [Op], generation: Generation) {
    for _ in 0..500 {
        let Some((at, wait)) = missing(ops, generation) else { return };
        let same = ops[at].waits.iter_mut().find(|have| match (&have, &wait) {
            (Wait::Distance(a, _), Wait::Distance(b, _)) => a == b,
            (Wait::Token(a, _), Wait::Token(b, _)) => a == b,
            _ => false,
        });
        match same {
            Some(have) => *have = wait,
            None => ops[at].waits.push(wait),
        }
    }
    panic!("the program cannot be annotated");
}

/// The bits of a wait of `sync`.
fn wait_bits(wait: Wait, generation: Generation) -> u64 {
    match (wait, generation) {
        (Wait::Distance(_, distance), Generation::Gen12) => u64::from(distance),
        (Wait::Distance(pipe, distance), Generation::Gen125) => {
            [0x10, 0x18, 0x50, 0x08, 0x08][pipe] | u64::from(distance)
        }
        (Wait::Distance(pipe, distance), Generation::Xe2) => {
            [0x10, 0x18, 0x20, 0x28, 0x08][pipe] | u64::from(distance)
        }
        (Wait::Token(token, sources), Generation::Xe2) => {
            (if sources { 0xa0 } else { 0x80 }) | u64::from(token)
        }
        (Wait::Token(token, sources), _) => (if sources { 0x30 } else { 0x20 }) | u64::from(token),
    }
}

struct Encoder {
    platform: Platform,
    generation: Generation,
}

impl Encoder {
    fn assembled(&self, text: &str) -> Instruction {
        let bytes = program::assemble(self.platform, text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        Instruction::decode(self.platform, bytes.try_into().unwrap())
    }

    fn instruction(&self, op: &Op) -> Instruction {
        let destination = op.destination.map_or(0, u64::from);
        let source = |index: usize| op.sources.get(index).map_or(0, |r| u64::from(*r));
        let (size, options) = match self.generation {
            Generation::Xe2 => ("16", "16,16,1"),
            _ => ("8", "8,8,1"),
        };
        let channels = if size == "16" { "1H" } else { "1Q" };
        let two = |name: &str, size: &str, region: &str, kind: &str| {
            let text = format!(
                "{name}({size}) g1<1>{kind} g2<{region}>{kind} g3<{region}>{kind} {{ align1 {channels} }};"
            );
            let mut inst = self.assembled(&text);
            inst.set(F::DstRegisterNumber, destination);
            inst.set(F::Src0RegisterNumber, source(0));
            inst.set(F::Src1RegisterNumber, source(1));
            inst
        };
        match op.kind {
            Kind::Float => two("add", size, &options.replace("16,16,1", "8,8,1"), "F"),
            Kind::Integer => two("add", size, "8,8,1", "D"),
            // Doubles of 8 channels fill a register of Xe2.
            Kind::Long if self.generation == Generation::Xe2 => {
                let mut inst = self.assembled("add(8) g1<1>DF g2<8,8,1>DF g3<8,8,1>DF { align1 1Q };");
                inst.set(F::DstRegisterNumber, destination);
                inst.set(F::Src0RegisterNumber, source(0));
                inst.set(F::Src1RegisterNumber, source(1));
                inst
            }
            Kind::Long => two("mul", size, "8,8,1", "D"),
            Kind::Math => {
                let mut inst = two("add", size, "8,8,1", "F");
                inst.set(F::Opcode, 56);
                inst.set(F::MathFunction, 4);
                inst.set(F::Src1RegisterFile, 0);
                inst.set(F::Src1RegisterNumber, 0);
                inst
            }
            Kind::Send | Kind::End => {
                let mut inst = Instruction { bits: 0, platform: self.platform };
                inst.set(F::Opcode, 49);
                inst.set(F::ExecutionSize, if size == "16" { 4 } else { 3 });
                inst.set(F::DstRegisterFile, u64::from(op.destination.is_some()));
                inst.set(F::DstRegisterNumber, destination);
                inst.set(F::SendsSrc0RegisterFile, 1);
                inst.set(F::Src0RegisterNumber, source(0));
                inst.set(F::SendSharedFunction, 10);
                let returned = u64::from(op.destination.is_some());
                inst.set(F::SendDescriptor, 1 << 25 | returned << 20 | 1 << 19);
                inst.set(F::SendEndOfThread, u64::from(op.kind == Kind::End));
                inst
            }
            Kind::If | Kind::Else | Kind::Endif | Kind::While => {
                let mut inst = Instruction { bits: 0, platform: self.platform };
                let code = match op.kind {
                    Kind::If => 34,
                    Kind::Else => 36,
                    Kind::Endif => 37,
                    _ => 39,
                };
                inst.set(F::Opcode, code);
                inst.set(F::ExecutionSize, 3);
                inst.set(F::PredicateControl, u64::from(matches!(op.kind, Kind::If | Kind::While)));
                inst
            }
        }
    }

    fn program(&self, ops: &[Op]) -> Vec<u8> {
        let mut starts = Vec::new();
        let mut at = 0;
        for op in ops {
            starts.push(at);
            at += 16 * (op.waits.len() as i64 + 1);
        }
        let mut bytes = Vec::new();
        for (op, start) in ops.iter().zip(&starts) {
            for wait in &op.waits {
                let mut sync = self.assembled("sync nop(1) null<0,1,0>UB { align1 WE_all 1N };");
                sync.set(F::SoftwareScoreboard, wait_bits(*wait, self.generation));
                bytes.extend(sync.encode());
            }
            let mut inst = self.instruction(op);
            if op.is_unordered(self.generation) {
                let set = if self.generation == Generation::Xe2 { 0xc0 } else { 0x40 };
                inst.set(F::SoftwareScoreboard, set | u64::from(op.token));
            }
            if matches!(op.kind, Kind::If | Kind::Else | Kind::While) {
                let distance = starts[op.target] - (start + 16 * op.waits.len() as i64);
                inst.set(F::BranchJIP, u64::from(distance as i32 as u32));
                inst.set(F::BranchUIP, u64::from(distance as i32 as u32));
            } else if op.kind == Kind::Endif {
                inst.set(F::BranchJIP, 16);
            }
            bytes.extend(inst.encode());
        }
        bytes
    }

    /// What the checker says that is worse than a note.
    fn findings(&self, ops: &[Op]) -> Vec<Rule> {
        let report = check(self.platform, &self.program(ops), CheckOptions::default());
        assert!(report.complete && report.whole);
        report.of_level(Level::Warning).map(|f| f.rule).collect()
    }
}

fn mutations(wait: Wait, generation: Generation) -> Vec<(&'static str, Option<Wait>)> {
    let mut mutations = vec![("removed", None)];
    match wait {
        Wait::Distance(pipe, distance) => {
            if distance < 7 {
                mutations.push(("farther", Some(Wait::Distance(pipe, distance + 1))));
            }
            if generation != Generation::Gen12 {
                mutations.push(("other pipe", Some(Wait::Distance((pipe + 1) % 3, distance))));
            }
        }
        Wait::Token(token, sources) => {
            if !sources {
                mutations.push(("sources only", Some(Wait::Token(token, true))));
            }
            mutations.push(("other token", Some(Wait::Token((token + 1) % 8, sources))));
        }
    }
    mutations
}

#[test]
fn waits_that_are_removed_or_weakened_are_found() {
    let platforms = [("tgl", Generation::Gen12), ("dg2", Generation::Gen125), ("lnl", Generation::Xe2)];
    for (name, generation) in platforms {
        let encoder = Encoder { platform: Platform::by_name(name).unwrap(), generation };
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ name.len() as u64;
        // For each way: how many, how many matter, how many of those are found, how many others are silent.
        let mut counts: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
        for _ in 0..40 {
            let mut ops = generate(&mut state);
            annotate(&mut ops, generation);
            assert_eq!(encoder.findings(&ops), [], "{name} {ops:#?}");
            for at in 0..ops.len() {
                for index in 0..ops[at].waits.len() {
                    for (way, wait) in mutations(ops[at].waits[index], generation) {
                        let mut mutated = ops.clone();
                        match wait {
                            Some(wait) => mutated[at].waits[index] = wait,
                            None => {
                                mutated[at].waits.remove(index);
                            }
                        }
                        let matters = missing(&mutated, generation).is_some();
                        let found = !encoder.findings(&mutated).is_empty();
                        let count = counts.entry(way).or_default();
                        count[0] += 1;
                        count[1] += usize::from(matters);
                        count[2] += usize::from(matters && found);
                        count[3] += usize::from(!matters && !found);
                    }
                }
            }
        }
        println!("{name}");
        for (way, [all, matter, found, silent]) in &counts {
            println!("  {way}: {all}, {matter} matter, {found} of them found, {silent} of the others silent");
        }
        for (way, [all, matter, found, silent]) in counts {
            assert!(all > 20, "{way}");
            assert_eq!((found, silent), (matter, all - matter), "{name} {way}");
        }
    }
}
