//! Register allocation on SSA form.
//!
//! Takes a program that [`crate::edges`] has prepared, with its [`Liveness`]. Guarantees `Allocated`: every operand and definition has a
//! register, a temporary keeps one register for all its life, and a `p_parallelcopy` gives a value that has to move a new name. Where
//! paths on which a value has different names join, a phi merges them.
//!
//! Blocks are taken in the order of the code. A vector that finds no room moves what is in the way; if that does not help, all values of its bank
//! are laid out anew. Temporaries that end within a register have it to themselves. Never: spills.

mod blocks;
mod definitions;
mod file;
mod hints;
mod instruction;
mod rename;

use crate::error::FinishError;
use crate::ir::shape::Variants;
use crate::ir::{Block, PhysReg, Program, Progress, RegClass, RegCounts, Temp};
use crate::live::Liveness;
use crate::occupancy::{allocated_vgprs, waves};
use blocks::EntryWork;
use file::{RegFile, RegSpan, VECTOR};
use hints::Hints;
use instruction::Work;
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::Gpu;

/// The number of moved vector registers from which another attempt with more registers is worthwhile.
const MANY_MOVED: u32 = 2;

/// How many registers of each bank may be allocated.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    sgprs: u16,
    /// Vector registers without linear ones, which follow.
    vgprs: u16,
}

/// What is known of names. The memory is kept for the next program.
#[derive(Debug, Default)]
pub(crate) struct AllocationTables {
    /// By name.
    regs: Vec<Option<PhysReg>>,
    /// By temporary of the program before: its name now.
    current: Vec<Temp>,
    /// By name: the temporary of the program before.
    original: Vec<Temp>,
    file: RegFile,
    hints: Hints,
    /// By block: temporaries that are alive at its end, with their names.
    ends: Vec<Vec<(Temp, Temp)>>,
    /// By block: names at the end of the logical part of scalars that phis after it read.
    logical_ends: Vec<Vec<(Temp, Temp)>>,
    work: Work,
    entry: EntryWork,
}

struct Allocator<'a> {
    program: &'a mut Program,
    live: &'a Liveness,
    variants: &'a Variants,
    bounds: Bounds,
    tables: &'a mut AllocationTables,
    /// The next register for a linear vector temporary.
    next_linear: u16,
    used: RegCounts,
    moved_vgprs: u32,
    block: Block,
}

/// Gives every temporary a register, and returns how many are used. `before` is the same program, from which a second attempt starts.
///
/// # Errors
///
/// [`FinishError::Registers`] if there are not enough, [`FinishError::Invalid`] for a program that is not strict SSA.
pub(crate) fn allocate(
    program: &mut Program,
    before: &Program,
    live: &Liveness,
    variants: &Variants,
    limits: RegCounts,
    tables: &mut AllocationTables,
) -> Result<RegCounts, FinishError> {
    let linear = live.linear_vgprs;
    let most = limits.vgprs.min(256).saturating_sub(linear);
    // Room that a wave gets anyway saves copies.
    let granted = allocated_vgprs(&program.gpu, live.demand);
    let tight = granted.saturating_sub(linear).min(most);
    let bounds = Bounds { sgprs: limits.sgprs.min(program.gpu.sgprs()), vgprs: tight };
    if tight == most {
        return Ok(attempt(program, live, variants, bounds, tables)?.used);
    }
    let result = attempt(program, live, variants, bounds, tables);
    let wider = match &result {
        Ok(allocated) => roomier_limit(&program.gpu, live, allocated.moved_vgprs).min(most),
        Err(FinishError::Registers { .. }) => most,
        Err(_) => tight,
    };
    if wider <= tight {
        return Ok(result?.used);
    }
    program.clone_from(before);
    match attempt(program, live, variants, Bounds { vgprs: wider, ..bounds }, tables) {
        Err(FinishError::Registers { .. }) if result.is_ok() => {
            program.clone_from(before);
            Ok(attempt(program, live, variants, bounds, tables)?.used)
        }
        wider => Ok(wider?.used),
    }
}

/// The number of vector registers, without linear ones, for another attempt after `moved` registers were moved to make room. It is greater than the demand
/// only if a SIMD holds as many waves with it. 0: no more than the demand.
fn roomier_limit(gpu: &Gpu, live: &Liveness, moved: u32) -> u16 {
    if moved < MANY_MOVED {
        return 0;
    }
    let granted = allocated_vgprs(gpu, live.demand);
    let more = RegCounts { vgprs: granted + 1, ..live.demand };
    match waves(gpu, more) == waves(gpu, live.demand) {
        true => allocated_vgprs(gpu, more).saturating_sub(live.linear_vgprs),
        false => 0,
    }
}

/// The result of an attempt.
#[derive(Debug, Clone, Copy, Default)]
struct AttemptResult {
    used: RegCounts,
    /// Vector registers whose values were moved because others needed their registers.
    moved_vgprs: u32,
}

fn attempt(
    program: &mut Program,
    live: &Liveness,
    variants: &Variants,
    bounds: Bounds,
    tables: &mut AllocationTables,
) -> Result<AttemptResult, FinishError> {
    let mut work = std::mem::take(&mut tables.work);
    let mut allocator = Allocator::new(program, live, variants, bounds, tables);
    let result = allocator.run(&mut work);
    let allocated = AttemptResult { used: allocator.used, moved_vgprs: allocator.moved_vgprs };
    tables.work = work;
    result.map(|()| allocated)
}

/// Resizes to as many empty lists, reusing the memory of the existing ones.
fn empty_lists<T>(lists: &mut Vec<Vec<T>>, count: usize) {
    lists.iter_mut().for_each(Vec::clear);
    lists.resize_with(count, Vec::new);
}

impl<'a> Allocator<'a> {
    fn new(
        program: &'a mut Program,
        live: &'a Liveness,
        variants: &'a Variants,
        bounds: Bounds,
        tables: &'a mut AllocationTables,
    ) -> Allocator<'a> {
        let temps = program.temp_count();
        let blocks = program.blocks.len();
        tables.regs.clear();
        tables.regs.resize(temps, None);
        for names in [&mut tables.current, &mut tables.original] {
            names.clear();
            names.extend((0..temps).map(Temp::new));
        }
        tables.hints.set(program, live, variants);
        empty_lists(&mut tables.ends, blocks);
        empty_lists(&mut tables.logical_ends, blocks);
        Allocator {
            program,
            live,
            variants,
            bounds,
            tables,
            next_linear: VECTOR + bounds.vgprs,
            used: RegCounts::default(),
            moved_vgprs: 0,
            block: Block::new(0),
        }
    }

    fn run(&mut self, work: &mut Work) -> Result<(), FinishError> {
        let (mut unions, mut out) = (Vec::new(), Vec::new());
        for block in self.program.blocks.keys() {
            self.block = block;
            let mut insts = std::mem::take(&mut self.program.blocks[block].insts);
            let phis = insts.iter().take_while(|inst| self.program.op(**inst).is_phi()).count();
            let (phis, rest) = insts.split_at(phis);
            out.reserve(insts.len());
            self.enter(phis, &mut unions, &mut out)?;
            for &inst in rest {
                self.instruction(inst, work, &mut out)?;
            }
            self.leave();
            insts.clear();
            self.program.blocks[block].insts = std::mem::replace(&mut out, insts);
        }
        self.fill_phis()?;
        rename::remove_trivial(self.program, &unions);
        self.program.progress = Progress::Allocated;
        Ok(())
    }

    /// A name for a temporary of the program before, or for a copy of one.
    fn rename(&mut self, original: Option<Temp>, class: RegClass) -> Temp {
        let name = self.program.make_temp(class);
        self.tables.regs.push(None);
        self.tables.original.push(original.unwrap_or(name));
        debug_assert_eq!(self.tables.regs.len(), self.program.temp_count());
        name
    }

    /// A name gets its register.
    fn place(&mut self, name: Temp, span: RegSpan) {
        self.tables.regs[name.index()] = Some(span.reg());
        self.note(span);
        let original = self.tables.original[name.index()];
        self.tables.hints.placed(original, span.reg());
    }

    /// Registers are used.
    fn note(&mut self, span: RegSpan) {
        if span.first >= VECTOR {
            self.used.vgprs = self.used.vgprs.max(span.end() - VECTOR);
        } else if span.end() <= self.bounds.sgprs {
            self.used.sgprs = self.used.sgprs.max(span.end());
        }
    }

    fn span(&self, name: Temp) -> Option<RegSpan> {
        Some(RegSpan::new(self.tables.regs[name.index()]?, self.program.class(name)))
    }

    /// Registers that a class may have: first, and one past the last.
    fn range(&self, class: RegClass) -> (u16, u16) {
        if class.is_sgpr() { (0, self.bounds.sgprs) } else { (VECTOR, VECTOR + self.bounds.vgprs) }
    }

    fn exhausted(&self, class: RegClass) -> FinishError {
        let (bank, limit) =
            if class.is_sgpr() { ("scalar", self.bounds.sgprs) } else { ("vector", self.bounds.vgprs) };
        FinishError::Registers { block: self.block, bank, limit }
    }

    fn invalid(&self, reason: &'static str) -> FinishError {
        FinishError::Invalid { block: self.block, reason }
    }
}
