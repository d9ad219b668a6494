//! Pairs of 16 bits: takes a shader without operations on vectors; combines two independent operations on 16 bits into one on both lanes of a pair, where
//! that takes fewer instructions. The bits of results do not change. What becomes a pair has two lanes of 16 bits, which selection keeps in one register; logic and selects become those of words.
//!
//! First, values that are packed into a pair anyway are computed as one, down to where its lanes come from ([`Pairing::plan`]). Then operations that read
//! the same pairs are joined from the loads on. An instruction waits for its partner, and they become one at the place of the later one. If something
//! needs the first of them before, both stay single.

use crate::select::packed_opcode;
use unwedge_base::entity::SecondaryMap;
use unwedge_shader::analysis::divergence::Divergence;
use unwedge_shader::analysis::jumps::Jumps;
use unwedge_shader::ir::{
    Base, Builder, Function, Inst, Op, Payload, Region, Scope, Shader, Traits, Type, Value,
};

/// Two lanes of 16 bits.
pub(crate) const PAIR: Type = Type { base: Base::B16, lanes: 2 };
/// How deep operands are planned as pairs.
const MAX_DEPTH: u32 = 12;
/// How many earlier operations of a region are compared with one.
const WINDOW: usize = 24;

/// Whether there are operations that could become one.
pub(super) fn has_halves(shader: &Shader) -> bool {
    let func = shader.entry();
    func.walk().filter(|&inst| is_halved(func, inst)).nth(1).is_some()
}

/// Makes pairs. Returns whether there was one.
pub(super) fn join(shader: &mut Shader) -> bool {
    let func = shader.entry_mut();
    let mut pairing = Pairing {
        divergence: Divergence::of(func, Scope::Subgroup),
        partners: SecondaryMap::default(),
        waits: SecondaryMap::default(),
        made: SecondaryMap::default(),
        waiting: 0,
        any: false,
        func,
    };
    if pairing.pass_words() {
        pairing.divergence = Divergence::of(pairing.func, Scope::Subgroup);
    }
    pairing.plan_all();
    pairing.plan_rest();
    if !pairing.any {
        return false;
    }
    pairing.any = false;
    let mut regions = vec![pairing.func.body()];
    while let Some(region) = regions.pop() {
        pairing.emit(region, &mut regions);
    }
    let Pairing { func, made, any, .. } = pairing;
    func.replace_values(|value| made[value].unwrap_or(value));
    any
}

/// Whether an instruction is one of 16 bits that can be half of one on pairs.
fn is_halved(func: &Function, inst: Inst) -> bool {
    let op = func.op(inst);
    let known = packed_opcode(op).is_some() || matches!(op, Op::FNeg | Op::FAbs);
    (known || is_word_op(op)) && func.ty(func.result(inst)) == PAIR.lane()
}

/// Whether an operation on a pair is the one on the word.
fn is_word_op(op: Op) -> bool {
    matches!(op, Op::IAnd | Op::IOr | Op::IXor | Op::INot | Op::Select)
}

struct Pairing<'a> {
    func: &'a mut Function,
    divergence: Divergence,
    /// The other half of a pair, and whether this instruction is the upper one.
    partners: SecondaryMap<Inst, Option<(Inst, bool)>>,
    /// The instruction waits for its partner.
    waits: SecondaryMap<Inst, bool>,
    waiting: usize,
    /// What takes the place of lanes of pairs.
    made: SecondaryMap<Value, Option<Value>>,
    any: bool,
}

impl Pairing<'_> {
    /// The pair that a value is a lane of, and which lane.
    fn home(&self, value: Value) -> Option<(Value, u8)> {
        let inst = self.func.def_inst(value)?;
        match self.func.payload(inst) {
            Payload::Lane(lane) if self.func.op(inst) == Op::Extract => {
                let vector = self.func.args(inst)[0];
                (self.func.ty(vector) == PAIR).then_some((vector, lane))
            }
            _ => None,
        }
    }

    /// Whether two values need no instruction to be a pair, or to be read as one.
    fn is_pair(&self, a: Value, b: Value) -> bool {
        if a == b || self.func.const_bits(a).is_some() && self.func.const_bits(b).is_some() {
            return true;
        }
        if let (Some((a, _)), Some((b, _))) = (self.home(a), self.home(b)) {
            return a == b;
        }
        match (self.func.def_inst(a), self.func.def_inst(b)) {
            (Some(a), Some(b)) if self.partners[a].is_some_and(|(partner, _)| partner == b) => true,
            // Counts of shifts: only their low bits matter.
            (Some(a), Some(b)) if self.is_extension(a) && self.is_extension(b) => {
                self.is_pair(self.func.args(a)[0], self.func.args(b)[0])
            }
            _ => false,
        }
    }

    fn is_extension(&self, inst: Inst) -> bool {
        matches!(self.func.op(inst), Op::U2U | Op::I2I)
            && self.func.ty(self.func.args(inst)[0]) == PAIR.lane()
            && self.func.ty(self.func.result(inst)) == Type::B32
    }

    /// Whether two instructions may become one.
    fn fits(&self, a: Inst, b: Inst) -> bool {
        let func = &*self.func;
        let op = func.op(a);
        let same = a != b && op == func.op(b) && is_halved(func, a) && is_halved(func, b);
        // Uniform integers are computed by scalar instructions.
        let vector = |inst: Inst| op.has(Traits::FLOAT) || self.divergence.is_divergent(func.result(inst));
        same && func.exact(a) == func.exact(b)
            && func.region(a) == func.region(b)
            && vector(a)
            && vector(b)
            && self.partners[a].is_none()
            && self.partners[b].is_none()
            && (op != Op::Select || func.args(a)[0] == func.args(b)[0])
    }

    /// Where two lanes that one instruction computes arrive at a merge or at the start of a loop, they arrive as a word. Returns whether there was such a place.
    fn pass_words(&mut self) -> bool {
        let jumps = Jumps::of(self.func);
        let structured: Vec<Inst> = self
            .func
            .walk()
            .filter(|&inst| matches!(self.func.op(inst), Op::Block | Op::If | Op::Loop))
            .collect();
        let mut words = SecondaryMap::<Value, Option<Value>>::default();
        let mut changed = false;
        for inst in structured {
            let breaks: Vec<Inst> = jumps.breaks(inst).collect();
            let results = self.func.results(inst).to_vec();
            let numbers = self.arriving_pairs(&results, &breaks);
            if !numbers.is_empty()
                && let Some(next) = self.func.next(inst)
            {
                changed = true;
                for &jump in &breaks {
                    pass_pairs(self.func, jump, &numbers);
                }
                let added: Vec<Value> =
                    numbers.iter().map(|_| self.func.add_result(inst, Type::B32)).collect();
                self.func.retain_results(inst, |at| !numbers.iter().any(|first| is_of(*first, at)));
                split_pairs(self.func, next, &results, &numbers, &added, &mut words);
            }
            let (Op::Loop, Payload::Body(body)) = (self.func.op(inst), self.func.payload(inst)) else {
                continue;
            };
            let starts: Vec<Inst> = jumps.continues(inst).chain([inst]).collect();
            let params = self.func.params(body).to_vec();
            let numbers = self.arriving_pairs(&params, &starts);
            if !numbers.is_empty()
                && let Some(first) = self.func.first(body)
            {
                changed = true;
                for &jump in &starts {
                    pass_pairs(self.func, jump, &numbers);
                }
                let added: Vec<Value> =
                    numbers.iter().map(|_| self.func.add_param(body, Type::B32)).collect();
                self.func.retain_params(body, |at| !numbers.iter().any(|first| is_of(*first, at)));
                split_pairs(self.func, first, &params, &numbers, &added, &mut words);
            }
        }
        if changed {
            self.func.replace_values(|value| words[value].unwrap_or(value));
        }
        changed
    }

    /// The indices of the values passed by jumps that are the lower half of a word; the next value is the upper half.
    fn arriving_pairs(&self, values: &[Value], jumps: &[Inst]) -> Vec<u32> {
        let mut numbers = Vec::new();
        let mut at = 0;
        while at + 1 < values.len() {
            let halves = values[at..at + 2].iter().all(|value| self.func.ty(*value) == PAIR.lane());
            let computed = jumps.iter().any(|jump| {
                let args = self.func.args(*jump);
                let maker = |at: usize| args.get(at).and_then(|arg| self.func.def_inst(*arg));
                matches!((maker(at), maker(at + 1)), (Some(low), Some(high)) if self.fits(low, high))
            });
            if halves && computed {
                numbers.push(at as u32);
                at += 1;
            }
            at += 1;
        }
        numbers
    }

    /// How many instructions it takes to make a pair of two values, less those that become unnecessary. `planned` has the instructions that become one.
    fn plan(&self, a: Value, b: Value, depth: u32, planned: &mut Vec<[Inst; 2]>) -> i32 {
        if self.is_pair(a, b) {
            return 0;
        }
        let (Some(low), Some(high)) = (self.func.def_inst(a), self.func.def_inst(b)) else { return 1 };
        if planned.contains(&[low, high]) {
            return 0;
        }
        let taken = |inst: Inst| planned.iter().flatten().any(|own| *own == inst);
        if depth == 0 || !self.fits(low, high) || taken(low) || taken(high) {
            return 1;
        }
        let before = planned.len();
        planned.push([low, high]);
        let args = |inst: Inst| self.func.args(inst).iter().copied();
        let costs = args(low).zip(args(high));
        let cost = costs.map(|(a, b)| self.plan(a, b, depth - 1, planned)).sum::<i32>() - 1;
        if cost > 0 {
            planned.truncate(before);
            return 1;
        }
        cost
    }

    fn accept(&mut self, planned: &[[Inst; 2]]) {
        for &[low, high] in planned {
            self.partners[low] = Some((high, false));
            self.partners[high] = Some((low, true));
            self.any = true;
        }
    }

    /// Plans values that are packed into a pair, the last ones first.
    fn plan_all(&mut self) {
        let func = &*self.func;
        let is_root = |inst: &Inst| func.op(*inst) == Op::Vec && func.ty(func.result(*inst)) == PAIR;
        let roots: Vec<Inst> = func.walk().filter(is_root).collect();
        for root in roots.into_iter().rev() {
            let &[a, b] = self.func.args(root) else { continue };
            let mut planned = Vec::new();
            if self.plan(a, b, MAX_DEPTH, &mut planned) <= 0 {
                self.accept(&planned);
            }
        }
    }

    /// Plans operations whose operands are pairs already.
    fn plan_rest(&mut self) {
        let mut recent: Vec<Inst> = Vec::new();
        let mut region = None;
        let insts: Vec<Inst> = self.func.walk().filter(|&inst| is_halved(self.func, inst)).collect();
        for inst in insts {
            if region != Some(self.func.region(inst)) {
                recent.clear();
                region = Some(self.func.region(inst));
            }
            if self.partners[inst].is_some() {
                continue;
            }
            let first = recent.len().saturating_sub(WINDOW);
            let found = recent[first..]
                .iter()
                .rposition(|&other| self.fits(other, inst) && self.is_read_in_pairs(other, inst));
            match found {
                Some(at) => {
                    let other = recent.remove(first + at);
                    self.accept(&[[other, inst]]);
                }
                None => recent.push(inst),
            }
        }
    }

    /// Whether all operands of two instructions are pairs.
    fn is_read_in_pairs(&self, a: Inst, b: Inst) -> bool {
        let args = |inst: Inst| self.func.args(inst).iter().copied();
        args(a).zip(args(b)).all(|(a, b)| self.is_pair(a, b)) && !args(a).eq(args(b))
    }

    /// Makes pairs in a region, and adds the regions in it.
    fn emit(&mut self, region: Region, inner: &mut Vec<Region>) {
        let mut next = self.func.first(region);
        while let Some(inst) = next {
            next = self.func.next(inst);
            let regions: Vec<Region> = self.func.regions_of(inst).into_iter().flatten().collect();
            if let Some((partner, upper)) = self.partners[inst] {
                if !self.waits[partner] {
                    self.waits[inst] = true;
                    self.waiting += 1;
                    continue;
                }
                for of in [partner, inst] {
                    self.force_args(of, inst);
                }
                // It stays single if it needs its partner.
                if self.partners[inst].is_some() {
                    self.waits[partner] = false;
                    self.waiting -= 1;
                    let [low, high] = if upper { [partner, inst] } else { [inst, partner] };
                    self.make(low, high, inst);
                    continue;
                }
            }
            self.force_args(inst, inst);
            for region in regions {
                self.force_inner(region, inst);
                inner.push(region);
            }
        }
    }

    /// Makes operands of an instruction that wait for partners single, before another instruction.
    fn force_args(&mut self, inst: Inst, before: Inst) {
        if self.waiting == 0 {
            return;
        }
        for at in 0..self.func.args(inst).len() {
            if let Some(maker) = self.func.def_inst(self.func.args(inst)[at]) {
                self.force(maker, before);
            }
        }
    }

    fn force(&mut self, inst: Inst, before: Inst) {
        if !self.waits[inst] {
            return;
        }
        self.waits[inst] = false;
        self.waiting -= 1;
        if let Some((partner, _)) = self.partners[inst] {
            (self.partners[inst], self.partners[partner]) = (None, None);
        }
        self.force_args(inst, before);
        // A pair that it reads may have been made after its place.
        self.func.unlink(inst);
        self.func.insert_before(before, inst);
    }

    /// The same for all that regions read.
    fn force_inner(&mut self, region: Region, before: Inst) {
        let mut open = vec![region];
        while self.waiting > 0
            && let Some(region) = open.pop()
        {
            let mut next = self.func.first(region);
            while let Some(inst) = next {
                next = self.func.next(inst);
                self.force_args(inst, before);
                open.extend(self.func.regions_of(inst).into_iter().flatten());
            }
        }
    }

    /// Makes one instruction of two, before an instruction.
    fn make(&mut self, low: Inst, high: Inst, before: Inst) {
        let op = self.func.op(low);
        let args = |func: &Function, inst: Inst| func.args(inst).to_vec();
        let lanes: Vec<(Value, Value)> =
            args(self.func, low).into_iter().zip(args(self.func, high)).collect();
        let current = |value: Value| self.made[value].unwrap_or(value);
        let lanes: Vec<(Value, Value)> = lanes.into_iter().map(|(a, b)| (current(a), current(b))).collect();
        let mut b = Builder::before(self.func, before);
        let mut read = Vec::new();
        for (at, &(low, high)) in lanes.iter().enumerate() {
            if op == Op::Select && at == 0 {
                read.push(low);
                continue;
            }
            let mut pair = pair_of(&mut b, low, high);
            if is_word_op(op) {
                pair = b.bitcast(Type::B32, pair);
            }
            read.push(pair);
        }
        let made = b.alu(op, &read);
        let made = b.bitcast(PAIR, made);
        let [first, second] = [0, 1].map(|lane| b.extract(made, lane));
        for (inst, value) in [(low, first), (high, second)] {
            self.made[self.func.result(inst)] = Some(value);
            self.func.unlink(inst);
        }
        self.any = true;
    }
}

/// Whether a number is one of two consecutive ones.
fn is_of(first: u32, number: u32) -> bool {
    number == first || number == first + 1
}

/// Passes words in place of pairs of lanes.
fn pass_pairs(func: &mut Function, jump: Inst, numbers: &[u32]) {
    let args = func.args(jump).to_vec();
    let mut b = Builder::before(func, jump);
    let mut words = Vec::new();
    for &first in numbers {
        let [low, high] = [0, 1].map(|lane| args[first as usize + lane]);
        let pair = pair_of(&mut b, low, high);
        words.push(b.bitcast(Type::B32, pair));
    }
    func.retain_args(jump, |at| !numbers.iter().any(|first| is_of(*first, at)));
    words.into_iter().for_each(|word| func.add_arg(jump, word));
}

/// Takes words apart, before an instruction.
fn split_pairs(
    func: &mut Function,
    before: Inst,
    values: &[Value],
    numbers: &[u32],
    words: &[Value],
    lanes: &mut SecondaryMap<Value, Option<Value>>,
) {
    let mut b = Builder::before(func, before);
    for (&first, &word) in numbers.iter().zip(words) {
        let pair = b.bitcast(PAIR, word);
        for lane in 0..2 {
            lanes[values[first as usize + usize::from(lane)]] = Some(b.extract(pair, lane));
        }
    }
}

/// The vector of two values, which may be lanes of one already.
fn pair_of(b: &mut Builder<'_>, low: Value, high: Value) -> Value {
    let home = |value: Value| {
        let inst = b.func.def_inst(value)?;
        let Payload::Lane(lane) = b.func.payload(inst) else { return None };
        Some((b.func.args(inst)[0], lane))
    };
    match (home(low), home(high)) {
        (Some((vector, 0)), Some((other, 1))) if vector == other && b.func.ty(vector) == PAIR => vector,
        _ => b.vec(&[low, high]),
    }
}
