//! Dead code: takes any shader; afterwards every instruction has an effect, controls flow that has one, or is used by one that
//! does. Results and parameters that nobody uses are gone, in loops too, and so are stores to variables that nobody loads.
//!
//! Loops stay even if they compute nothing, since they may not end.

use crate::analysis::jumps::Jumps;
use crate::ir::{Function, Inst, Op, Payload, RegionOwner, Shader, Traits, Value, ValueDef, Var};
use unwedge_base::entity::SecondaryMap;

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    let mut loaded = SecondaryMap::<Var, bool>::default();
    loaded.reset(shader.vars.len());
    for (var, data) in shader.vars.iter() {
        loaded[var] = data.storage.is_interface();
    }
    for func in shader.functions() {
        for inst in func.walk().filter(|&inst| func.op(inst) == Op::LoadVar) {
            if let Payload::Var(var, _) = func.payload(inst) {
                loaded[var] = true;
            }
        }
    }
    shader.functions_mut().iter_mut().fold(false, |changed, func| function(func, &loaded) | changed)
}

fn function(func: &mut Function, loaded: &SecondaryMap<Var, bool>) -> bool {
    let jumps = Jumps::of(func);
    let mut marker = Marker {
        func,
        jumps: &jumps,
        live: SecondaryMap::default(),
        used: SecondaryMap::default(),
        work: Vec::new(),
        open: Vec::new(),
    };
    marker.live.reset(func.inst_count());
    marker.used.reset(func.value_count());
    for inst in func.walk() {
        if is_root(func, inst, loaded) {
            marker.mark(inst);
        }
    }
    marker.run();
    let (live, used) = (marker.live, marker.used);
    sweep(func, &jumps, &live, &used)
}

/// Whether an instruction must stay in any case.
fn is_root(func: &Function, inst: Inst, loaded: &SecondaryMap<Var, bool>) -> bool {
    match (func.op(inst), func.payload(inst)) {
        (Op::StoreVar, Payload::Var(var, _)) => loaded[var],
        // Breaks belong to what they leave.
        (Op::Break, _) => false,
        (Op::Loop, _) => true,
        _ => func.traits(inst).has(Traits::EFFECT),
    }
}

struct Marker<'a> {
    func: &'a Function,
    jumps: &'a Jumps,
    live: SecondaryMap<Inst, bool>,
    used: SecondaryMap<Value, bool>,
    work: Vec<Inst>,
    /// Memory of [`Marker::uses`].
    open: Vec<Value>,
}

impl Marker<'_> {
    fn mark(&mut self, inst: Inst) {
        if !self.live[inst] {
            self.live[inst] = true;
            self.work.push(inst);
        }
    }

    fn run(&mut self) {
        while let Some(inst) = self.work.pop() {
            let func = self.func;
            if let RegionOwner::Inst(owner) = func.owner(func.region(inst)) {
                self.mark(owner);
            }
            match func.op(inst) {
                // Their operands live by what receives them, and so do those of loops.
                Op::Break | Op::Continue | Op::Loop => {}
                _ => {
                    for &arg in func.args(inst) {
                        self.uses(arg);
                    }
                }
            }
            for region in func.regions_of(inst).into_iter().flatten() {
                if let Some(last) = func.last(region) {
                    self.mark(last);
                }
            }
            if func.op(inst).has(Traits::STRUCTURED) {
                let jumps = self.jumps;
                jumps.breaks(inst).chain(jumps.continues(inst)).for_each(|jump| self.mark(jump));
            }
        }
    }

    /// Marks a value, and the values that may become it, without recursion.
    fn uses(&mut self, value: Value) {
        let (func, jumps) = (self.func, self.jumps);
        if self.used[value] {
            return;
        }
        if let ValueDef::Result(inst, _) = func.def(value)
            && !func.op(inst).has(Traits::STRUCTURED)
        {
            self.used[value] = true;
            self.mark(inst);
            return;
        }
        let mut stack = std::mem::take(&mut self.open);
        stack.push(value);
        while let Some(value) = stack.pop() {
            if self.used[value] {
                continue;
            }
            self.used[value] = true;
            match func.def(value) {
                ValueDef::Result(inst, number) => {
                    self.mark(inst);
                    if func.op(inst).has(Traits::STRUCTURED) && func.op(inst) != Op::Call {
                        stack.extend(jumps.breaks(inst).map(|jump| func.args(jump)[number as usize]));
                    }
                }
                ValueDef::Param(region, number) => {
                    if let RegionOwner::Inst(owner) = func.owner(region) {
                        stack.push(func.args(owner)[number as usize]);
                        stack.extend(jumps.continues(owner).map(|jump| func.args(jump)[number as usize]));
                    }
                }
                ValueDef::Removed => {}
            }
        }
        self.open = stack;
    }
}

fn sweep(
    func: &mut Function,
    jumps: &Jumps,
    live: &SecondaryMap<Inst, bool>,
    used: &SecondaryMap<Value, bool>,
) -> bool {
    let mut changed = false;
    let mut structured = Vec::new();
    let mut next = func.first(func.body());
    while let Some(inst) = next {
        if live[inst] {
            next = func.after(inst);
            if matches!(func.op(inst), Op::Block | Op::If | Op::Loop) {
                structured.push(inst);
            }
        } else {
            // Its regions go with it. Every region has a live terminator, so there is a next instruction.
            next = func.next(inst);
            func.unlink(inst);
            changed = true;
        }
    }
    for &inst in &structured {
        if func.results(inst).iter().any(|&value| !used[value]) {
            let results: Vec<bool> = func.results(inst).iter().map(|&value| used[value]).collect();
            changed = true;
            jumps.breaks(inst).for_each(|jump| func.retain_args(jump, |at| results[at as usize]));
            func.retain_results(inst, |at| results[at as usize]);
        }
        let (Op::Loop, Payload::Body(body)) = (func.op(inst), func.payload(inst)) else { continue };
        if func.params(body).iter().any(|&value| !used[value]) {
            let params: Vec<bool> = func.params(body).iter().map(|&value| used[value]).collect();
            changed = true;
            jumps.continues(inst).for_each(|jump| func.retain_args(jump, |at| params[at as usize]));
            func.retain_args(inst, |at| params[at as usize]);
            func.retain_params(body, |at| params[at as usize]);
        }
    }
    changed
}
