//! A function: regions, instructions and values in arenas of its own.
//!
//! A region is a list of instructions whose last one is a terminator. `block`, `if` and `loop` are instructions that have regions, so
//! regions form a tree. A value is visible after its definition in the same region and in all regions within: what leaves a region
//! leaves as an operand of `break`, and arrives as a result of the instruction that is left. So invocations merge, and values merge,
//! at the same places, and every pass sees all values that leave a loop or an arm.

use super::entities::{Inst, Loc, Region, Value};
use super::op::{Op, Traits};
use super::payload::{Access, ImageFlags, Payload, SlotDir};
use super::types::{Base, Type};
use unwedge_base::entity::{Entity, PrimaryMap, SecondaryMap};

/// An optional entity in the space of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link(u32);

impl Link {
    const NONE: Link = Link(u32::MAX);

    fn of(inst: Option<Inst>) -> Link {
        inst.map_or(Link::NONE, |inst| Link(inst.index() as u32))
    }

    fn get(self) -> Option<Inst> {
        (self != Link::NONE).then(|| Inst::new(self.0 as usize))
    }
}

/// A list of values in the function's pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct List {
    start: u32,
    len: u32,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueDef {
    /// The result of an instruction with a number.
    Result(Inst, u32),
    /// The parameter of a region with a number.
    Param(Region, u32),
    /// Nothing any more.
    Removed,
}

#[derive(Debug, Clone, Copy)]
struct ValueData {
    ty: Type,
    def: ValueDef,
}

/// An instruction.
#[derive(Debug, Clone, Copy)]
struct InstData {
    op: Op,
    exact: bool,
    taken: bool,
    linked: bool,
    region: Region,
    prev: Link,
    next: Link,
    args: List,
    results: List,
    payload: Payload,
    loc: Option<Loc>,
}

/// What has a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionOwner {
    /// The function: its body.
    Function,
    /// A structured instruction.
    Inst(Inst),
}

#[derive(Debug, Clone, Copy)]
struct RegionData {
    owner: RegionOwner,
    params: List,
    first: Link,
    last: Link,
}

/// A function. An empty one has a body without instructions.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name; may be empty.
    pub name: String,
    /// Types of what it returns.
    pub results: Vec<Type>,
    insts: PrimaryMap<Inst, InstData>,
    values: PrimaryMap<Value, ValueData>,
    regions: PrimaryMap<Region, RegionData>,
    pool: Vec<Value>,
}

impl Default for Function {
    fn default() -> Self {
        let mut function = Function {
            name: String::new(),
            results: Vec::new(),
            insts: PrimaryMap::default(),
            values: PrimaryMap::default(),
            regions: PrimaryMap::default(),
            pool: Vec::new(),
        };
        function.add_region();
        function
    }
}

/// Making it.
impl Function {
    /// Makes it empty, as a new one, but keeps its memory.
    pub fn clear(&mut self) {
        self.name.clear();
        self.results.clear();
        self.insts.clear();
        self.values.clear();
        self.regions.clear();
        self.pool.clear();
        self.add_region();
    }

    /// Adds an empty region that nothing refers to yet.
    pub fn add_region(&mut self) -> Region {
        self.regions.push(RegionData {
            owner: RegionOwner::Function,
            params: List::default(),
            first: Link::NONE,
            last: Link::NONE,
        })
    }

    /// Makes an instruction that is in no region yet. Regions of its payload become its own.
    pub fn make_inst(&mut self, op: Op, payload: Payload, args: &[Value], results: &[Type]) -> Inst {
        let args = self.make_list(args);
        let inst = self.insts.next_key();
        let start = self.pool.len() as u32;
        for (number, &ty) in results.iter().enumerate() {
            let value = self.values.push(ValueData { ty, def: ValueDef::Result(inst, number as u32) });
            self.pool.push(value);
        }
        self.insts.push(InstData {
            op,
            exact: false,
            taken: false,
            linked: false,
            region: Region::new(0),
            prev: Link::NONE,
            next: Link::NONE,
            args,
            results: List { start, len: results.len() as u32 },
            payload,
            loc: None,
        });
        self.own_regions(inst, payload);
        inst
    }

    fn own_regions(&mut self, inst: Inst, payload: Payload) {
        match payload {
            Payload::Body(body) => self.regions[body].owner = RegionOwner::Inst(inst),
            Payload::Arms(then, other) => {
                self.regions[then].owner = RegionOwner::Inst(inst);
                self.regions[other].owner = RegionOwner::Inst(inst);
            }
            _ => {}
        }
    }

    fn make_list(&mut self, values: &[Value]) -> List {
        let start = self.pool.len() as u32;
        self.pool.extend_from_slice(values);
        List { start, len: values.len() as u32 }
    }

    /// A list with one more value; moved to the end of the pool if it is not there.
    fn extended(&mut self, list: List, value: Value) -> List {
        let List { mut start, len } = list;
        if (start + len) as usize != self.pool.len() {
            start = self.pool.len() as u32;
            self.pool.extend_from_within(list.start as usize..(list.start + len) as usize);
        }
        self.pool.push(value);
        List { start, len: len + 1 }
    }

    /// Adds a parameter to a region.
    pub fn add_param(&mut self, region: Region, ty: Type) -> Value {
        let list = self.regions[region].params;
        let value = self.values.push(ValueData { ty, def: ValueDef::Param(region, list.len) });
        self.regions[region].params = self.extended(list, value);
        value
    }

    /// Adds a result to an instruction.
    pub fn add_result(&mut self, inst: Inst, ty: Type) -> Value {
        let list = self.insts[inst].results;
        let value = self.values.push(ValueData { ty, def: ValueDef::Result(inst, list.len) });
        self.insts[inst].results = self.extended(list, value);
        value
    }

    /// Adds an operand to an instruction.
    pub fn add_arg(&mut self, inst: Inst, value: Value) {
        let list = self.insts[inst].args;
        self.insts[inst].args = self.extended(list, value);
    }

    /// Replaces the operands of an instruction.
    pub fn set_args(&mut self, inst: Inst, args: &[Value]) {
        let list = self.insts[inst].args;
        if args.len() <= list.len as usize {
            self.pool[list.start as usize..][..args.len()].copy_from_slice(args);
            self.insts[inst].args.len = args.len() as u32;
        } else {
            self.insts[inst].args = self.make_list(args);
        }
    }

    /// Removes the results of a structured instruction, a call or the parameters of a loop for which `keep` is false; those that
    /// stay are numbered anew. Operands of breaks are the caller's.
    pub fn retain_results(&mut self, inst: Inst, mut keep: impl FnMut(u32) -> bool) {
        let list = self.insts[inst].results;
        let kept = self.retain(list, &mut keep);
        self.insts[inst].results = kept;
        for (number, at) in (kept.start..kept.start + kept.len).enumerate() {
            let value = self.pool[at as usize];
            self.values[value].def = ValueDef::Result(inst, number as u32);
        }
    }

    /// Removes the parameters of a region for which `keep` is false; those that stay are numbered anew. Operands are the caller's.
    pub fn retain_params(&mut self, region: Region, mut keep: impl FnMut(u32) -> bool) {
        let list = self.regions[region].params;
        let kept = self.retain(list, &mut keep);
        self.regions[region].params = kept;
        for (number, at) in (kept.start..kept.start + kept.len).enumerate() {
            let value = self.pool[at as usize];
            self.values[value].def = ValueDef::Param(region, number as u32);
        }
    }

    /// Removes the operands of an instruction for which `keep` is false.
    pub fn retain_args(&mut self, inst: Inst, mut keep: impl FnMut(u32) -> bool) {
        let list = self.insts[inst].args;
        let mut len = 0;
        for number in 0..list.len {
            if keep(number) {
                self.pool[(list.start + len) as usize] = self.pool[(list.start + number) as usize];
                len += 1;
            }
        }
        self.insts[inst].args.len = len;
    }

    fn retain(&mut self, list: List, keep: &mut impl FnMut(u32) -> bool) -> List {
        let mut len = 0;
        for number in 0..list.len {
            let value = self.pool[(list.start + number) as usize];
            if keep(number) {
                self.pool[(list.start + len) as usize] = value;
                len += 1;
            } else {
                self.values[value].def = ValueDef::Removed;
            }
        }
        List { start: list.start, len }
    }

    /// Turns an instruction into another operation in its place. Its results stay.
    pub fn replace_inst(&mut self, inst: Inst, op: Op, payload: Payload, args: &[Value]) {
        self.set_args(inst, args);
        let data = &mut self.insts[inst];
        data.op = op;
        data.payload = payload;
        self.own_regions(inst, payload);
    }

    /// Replaces the payload of an instruction.
    pub fn set_payload(&mut self, inst: Inst, payload: Payload) {
        self.insts[inst].payload = payload;
        self.own_regions(inst, payload);
    }

    /// Says whether float arithmetic must be done as written (`NoContraction`).
    pub fn set_exact(&mut self, inst: Inst, exact: bool) {
        self.insts[inst].exact = exact;
    }

    /// Marks an `if` whose first arm is nearly always taken by some invocation of a wave. A wave may then execute the arm even if no invocation takes it, provided that
    /// this has no effect.
    pub fn set_taken(&mut self, inst: Inst, taken: bool) {
        self.insts[inst].taken = taken;
    }

    /// Sets the source position.
    pub fn set_loc(&mut self, inst: Inst, loc: Option<Loc>) {
        self.insts[inst].loc = loc;
    }

    /// Replaces operands everywhere: `map(v)` is used instead of `v`.
    pub fn replace_values(&mut self, mut map: impl FnMut(Value) -> Value) {
        for data in self.insts.values() {
            if data.linked {
                for value in
                    &mut self.pool[data.args.start as usize..(data.args.start + data.args.len) as usize]
                {
                    *value = map(*value);
                }
            }
        }
    }
}

/// The order of instructions.
impl Function {
    /// Appends an instruction to a region.
    pub fn append(&mut self, region: Region, inst: Inst) {
        let last = self.regions[region].last;
        let data = &mut self.insts[inst];
        debug_assert!(!data.linked, "{inst} is in a region already");
        (data.linked, data.region, data.prev, data.next) = (true, region, last, Link::NONE);
        let link = Link::of(Some(inst));
        match last.get() {
            Some(last) => self.insts[last].next = link,
            None => self.regions[region].first = link,
        }
        self.regions[region].last = link;
    }

    /// Inserts an instruction before another one.
    pub fn insert_before(&mut self, before: Inst, inst: Inst) {
        let (region, prev) = (self.insts[before].region, self.insts[before].prev);
        let data = &mut self.insts[inst];
        debug_assert!(!data.linked, "{inst} is in a region already");
        (data.linked, data.region, data.prev, data.next) = (true, region, prev, Link::of(Some(before)));
        let link = Link::of(Some(inst));
        self.insts[before].prev = link;
        match prev.get() {
            Some(prev) => self.insts[prev].next = link,
            None => self.regions[region].first = link,
        }
    }

    /// Inserts an instruction after another one.
    pub fn insert_after(&mut self, after: Inst, inst: Inst) {
        match self.next(after) {
            Some(next) => self.insert_before(next, inst),
            None => self.append(self.insts[after].region, inst),
        }
    }

    /// Takes an instruction out of its region. It, and its results, stay valid and may be inserted again.
    pub fn unlink(&mut self, inst: Inst) {
        let data = &mut self.insts[inst];
        if !data.linked {
            return;
        }
        data.linked = false;
        let (region, prev, next) = (data.region, data.prev, data.next);
        match prev.get() {
            Some(prev) => self.insts[prev].next = next,
            None => self.regions[region].first = next,
        }
        match next.get() {
            Some(next) => self.insts[next].prev = prev,
            None => self.regions[region].last = prev,
        }
    }

    /// Moves all instructions of a region, in order, before an instruction of another region. Parameters stay.
    pub fn splice_before(&mut self, before: Inst, from: Region) {
        while let Some(inst) = self.first(from) {
            self.unlink(inst);
            self.insert_before(before, inst);
        }
    }

    /// The first instruction of a region.
    pub fn first(&self, region: Region) -> Option<Inst> {
        self.regions[region].first.get()
    }

    /// The last instruction of a region: its terminator when it is finished.
    pub fn last(&self, region: Region) -> Option<Inst> {
        self.regions[region].last.get()
    }

    /// The instruction after another one.
    pub fn next(&self, inst: Inst) -> Option<Inst> {
        self.insts[inst].next.get()
    }

    /// The instruction before another one.
    pub fn prev(&self, inst: Inst) -> Option<Inst> {
        self.insts[inst].prev.get()
    }

    /// The instructions of a region in order, without those of regions within.
    pub fn insts(&self, region: Region) -> impl Iterator<Item = Inst> + '_ {
        std::iter::successors(self.first(region), |&inst| self.next(inst))
    }

    /// All instructions in the order of the text: a structured instruction, then those of its regions, then the next one.
    pub fn walk(&self) -> impl Iterator<Item = Inst> + '_ {
        std::iter::successors(self.first(self.body()), |&inst| self.after(inst))
    }

    /// The instruction that [`Function::walk`] visits after one.
    #[inline]
    pub fn after(&self, inst: Inst) -> Option<Inst> {
        let data = &self.insts[inst];
        match (&data.payload, data.next.get()) {
            (Payload::Body(_) | Payload::Arms(..), _) | (_, None) => self.after_region(inst),
            (_, next) => next,
        }
    }

    /// The same where a region may start or end.
    fn after_region(&self, inst: Inst) -> Option<Inst> {
        let [first, second] = self.regions_of(inst);
        if let Some(inside) = first.and_then(|r| self.first(r)).or_else(|| second.and_then(|r| self.first(r)))
        {
            return Some(inside);
        }
        let mut inst = inst;
        loop {
            if let Some(next) = self.next(inst) {
                return Some(next);
            }
            let region = self.region(inst);
            let RegionOwner::Inst(owner) = self.owner(region) else { return None };
            if let Payload::Arms(then, other) = self.payload(owner)
                && then == region
                && let Some(first) = self.first(other)
            {
                return Some(first);
            }
            inst = owner;
        }
    }
}

/// Looking at it.
impl Function {
    /// The function's body. Its parameters are those of the function.
    pub fn body(&self) -> Region {
        Region::new(0)
    }

    /// How many values were ever made: the length of a map over them.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// How many instructions were ever made.
    pub fn inst_count(&self) -> usize {
        self.insts.len()
    }

    /// How many regions were ever made.
    pub fn region_count(&self) -> usize {
        self.regions.len()
    }

    /// The operation.
    #[inline]
    pub fn op(&self, inst: Inst) -> Op {
        self.insts[inst].op
    }

    /// The payload.
    #[inline]
    pub fn payload(&self, inst: Inst) -> Payload {
        self.insts[inst].payload
    }

    /// The operands.
    #[inline]
    pub fn args(&self, inst: Inst) -> &[Value] {
        let list = self.insts[inst].args;
        &self.pool[list.start as usize..(list.start + list.len) as usize]
    }

    /// The operands for change.
    pub fn args_mut(&mut self, inst: Inst) -> &mut [Value] {
        let list = self.insts[inst].args;
        &mut self.pool[list.start as usize..(list.start + list.len) as usize]
    }

    /// The results.
    #[inline]
    pub fn results(&self, inst: Inst) -> &[Value] {
        let list = self.insts[inst].results;
        &self.pool[list.start as usize..(list.start + list.len) as usize]
    }

    /// The only result.
    ///
    /// # Panics
    /// When the instruction has none.
    pub fn result(&self, inst: Inst) -> Value {
        self.results(inst)[0]
    }

    /// Parameters of a region.
    pub fn params(&self, region: Region) -> &[Value] {
        let list = self.regions[region].params;
        &self.pool[list.start as usize..(list.start + list.len) as usize]
    }

    /// Whether float arithmetic must be done as written.
    pub fn exact(&self, inst: Inst) -> bool {
        self.insts[inst].exact
    }

    /// Whether a wave nearly always takes the first arm of an `if`.
    pub fn taken(&self, inst: Inst) -> bool {
        self.insts[inst].taken
    }

    /// The source position.
    pub fn loc(&self, inst: Inst) -> Option<Loc> {
        self.insts[inst].loc
    }

    /// Whether the instruction is in a region.
    pub fn is_linked(&self, inst: Inst) -> bool {
        self.insts[inst].linked
    }

    /// The region of an instruction.
    pub fn region(&self, inst: Inst) -> Region {
        self.insts[inst].region
    }

    /// What has a region.
    pub fn owner(&self, region: Region) -> RegionOwner {
        self.regions[region].owner
    }

    /// The regions of a structured instruction.
    pub fn regions_of(&self, inst: Inst) -> [Option<Region>; 2] {
        match self.payload(inst) {
            Payload::Body(body) => [Some(body), None],
            Payload::Arms(then, other) => [Some(then), Some(other)],
            _ => [None, None],
        }
    }

    /// How many regions are around each region.
    pub fn region_depths(&self) -> SecondaryMap<Region, u32> {
        let mut depths = SecondaryMap::default();
        depths.reset(self.region_count());
        let around = |region: Region| match self.owner(region) {
            RegionOwner::Inst(owner) if self.is_linked(owner) => Some(self.region(owner)),
            _ => None,
        };
        let mut open = Vec::new();
        for region in self.regions.keys() {
            // Up to a region whose depth is known, or that is not in another one; then back.
            let mut at = region;
            while depths[at] == 0
                && let Some(outer) = around(at)
            {
                open.push(at);
                at = outer;
            }
            let mut depth = depths[at];
            while let Some(inner) = open.pop() {
                depth += 1;
                depths[inner] = depth;
            }
        }
        depths
    }

    /// Type of a value.
    #[inline]
    pub fn ty(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// Changes the type of a value, as lowering does.
    pub fn set_ty(&mut self, value: Value, ty: Type) {
        self.values[value].ty = ty;
    }

    /// Where a value comes from.
    #[inline]
    pub fn def(&self, value: Value) -> ValueDef {
        self.values[value].def
    }

    /// The instruction that a value is the result of.
    pub fn def_inst(&self, value: Value) -> Option<Inst> {
        match self.def(value) {
            ValueDef::Result(inst, _) => Some(inst),
            _ => None,
        }
    }

    /// The bits of a constant scalar.
    pub fn const_bits(&self, value: Value) -> Option<u64> {
        match self.payload(self.def_inst(value)?) {
            Payload::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// Whether a value is a constant scalar or a vector of constants.
    pub fn is_constant(&self, value: Value) -> bool {
        let Some(inst) = self.def_inst(value) else { return false };
        match self.op(inst) {
            Op::Const => true,
            Op::Vec => self.args(inst).iter().all(|&arg| self.const_bits(arg).is_some()),
            _ => false,
        }
    }

    /// The bits of all lanes of a constant scalar or a vector of constants.
    pub fn const_lanes(&self, value: Value) -> Option<Lanes> {
        let inst = self.def_inst(value)?;
        let mut lanes = Lanes { bits: [0; Type::MAX_LANES], len: self.ty(value).lanes };
        match self.op(inst) {
            Op::Const => lanes.bits[0] = self.const_bits(value)?,
            Op::Vec => {
                for (lane, &arg) in lanes.bits.iter_mut().zip(self.args(inst)) {
                    *lane = self.const_bits(arg)?;
                }
            }
            _ => return None,
        }
        Some(lanes)
    }

    /// Traits of an instruction: those of its operation, sharpened by its payload. Loads of memory that nobody writes read nothing that
    /// changes: equal ones may be shared and unused ones removed. They are not pure, because their address may be out of bounds where
    /// the shader does not execute them. Volatile loads have effects, sampling by implicit derivatives depends on the other invocations.
    pub fn traits(&self, inst: Inst) -> Traits {
        let traits = self.op(inst).row().traits;
        let access = match self.payload(inst) {
            Payload::Mem(mem) => mem.access,
            Payload::Image(image) => {
                let explicit = image.flags.any(ImageFlags::LOD.or(ImageFlags::GRAD));
                let samples = self.op(inst) == Op::ImageSample;
                let convergent = if samples && !explicit { Traits::CONVERGENT } else { Traits::NONE };
                return match self.op(inst) {
                    Op::ImageSample | Op::ImageGather | Op::ImageFetch => {
                        if image.access.has(Access::VOLATILE) {
                            Traits::READS.or(Traits::EFFECT)
                        } else {
                            convergent
                        }
                    }
                    _ if image.access.has(Access::VOLATILE) => traits.or(Traits::EFFECT),
                    _ => traits,
                };
            }
            // Inputs do not change.
            Payload::Slot(slot) if slot.dir == SlotDir::Input => return Traits::NONE,
            _ => return traits,
        };
        match self.op(inst) {
            Op::Load if access.has(Access::VOLATILE) => Traits::READS.or(Traits::EFFECT),
            Op::Load if access.has(Access::READONLY) => Traits::NONE,
            _ => traits,
        }
    }

    /// Whether an instruction may be removed when none of its results is used.
    pub fn is_removable(&self, inst: Inst) -> bool {
        let traits = self.traits(inst);
        !traits.has(Traits::EFFECT) && !traits.has(Traits::TERMINATOR) && !traits.has(Traits::STRUCTURED)
    }

    /// The mask that a lane of a value has.
    pub fn mask(&self, value: Value) -> u64 {
        let base = self.ty(value).base;
        if base == Base::Handle { u64::MAX } else { base.mask() }
    }
}

/// Bits of the lanes of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    bits: [u64; Type::MAX_LANES],
    len: u8,
}

impl Lanes {
    /// Lanes with these bits; `None` if they are more than a value has.
    pub fn new(bits: &[u64]) -> Option<Lanes> {
        let mut lanes = Lanes { bits: [0; Type::MAX_LANES], len: bits.len() as u8 };
        lanes.bits.get_mut(..bits.len())?.copy_from_slice(bits);
        Some(lanes)
    }
}

impl std::ops::DerefMut for Lanes {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.bits[..self.len as usize]
    }
}

impl std::ops::Deref for Lanes {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.bits[..self.len as usize]
    }
}
