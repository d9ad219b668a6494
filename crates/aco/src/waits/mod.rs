//! Waits: an instruction does not use a register before a late write to it has ended, or overwrite one before a late read has.
//!
//! Takes a machine program. Guarantees the waits that the counters of `data/amd/waits.txt` make necessary. Existing waits are kept as far as
//! something is pending for them. Where paths join, what is pending on any of them is pending.
//!
//! Never: looks at what memory accesses touch. The checker reads the same table, and shares no code with this.

mod pending;

use crate::machine::{MachineInst, MachineProgram, plain};
pub(crate) use pending::events;
use pending::{PendingSet, only_stores};
use std::collections::BTreeSet;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::waits::{Counter, fields};
use unwedge_isa::amdgcn::{Gfx, Gpu, Opcode, Operand, Reg};

/// By counter: the number to wait for.
type WaitNumbers = [Option<u16>; Counter::COUNT];

/// Inserts waits.
pub fn insert(program: &mut MachineProgram) {
    insert_for(program, false);
}

/// Inserts waits for everything that is pending before each instruction.
pub fn insert_all(program: &mut MachineProgram) {
    insert_for(program, true);
}

fn insert_for(program: &mut MachineProgram, all: bool) {
    let gpu = program.gpu;
    let count = program.blocks.len();
    let mut starts: Vec<PendingSet> = vec![PendingSet::default(); count];
    let mut made: Vec<Vec<(usize, MachineInst)>> = vec![Vec::new(); count];
    let mut due: BTreeSet<usize> = (0..count).collect();
    while let Some(block) = due.pop_first() {
        let mut pending = starts[block].clone();
        // The last result of a block is the right one, because a block whose start changes is followed again.
        made[block].clear();
        follow(&program.blocks[block].insts, &gpu, &mut pending, all, &mut made[block]);
        for succ in &program.blocks[block].succs {
            if starts[*succ].join(&pending) {
                due.insert(*succ);
            }
        }
    }
    for (block, waits) in program.blocks.iter_mut().zip(made) {
        block.insts.retain(|inst| inst.inst.row().role != Role::Wait);
        insert_at(&mut block.insts, &waits);
    }
}

/// Puts instructions at the places of a block that are given with them, in ascending order.
fn insert_at(insts: &mut Vec<MachineInst>, new: &[(usize, MachineInst)]) {
    let Some((_, filler)) = new.first() else { return };
    let mut end = insts.len();
    insts.resize(end + new.len(), *filler);
    for (more, (at, wait)) in new.iter().enumerate().rev() {
        insts.copy_within(*at..end, at + more + 1);
        insts[at + more] = *wait;
        end = *at;
    }
}

/// Follows a block; `out` gets waits, each with the place of the instruction before which it comes. Waits of the block itself are among them.
fn follow(
    insts: &[MachineInst],
    gpu: &Gpu,
    pending: &mut PendingSet,
    all: bool,
    out: &mut Vec<(usize, MachineInst)>,
) {
    let generation = gpu.generation();
    let mut asked: WaitNumbers = [None; Counter::COUNT];
    // Places count what is not a wait.
    let mut end = 0;
    for (at, inst) in insts.iter().enumerate() {
        if inst.inst.row().role == Role::Wait {
            ask(inst, generation, &mut asked);
            continue;
        }
        let place = end;
        end += 1;
        let mut numbers = if all { [Some(0); Counter::COUNT] } else { pending.needs(&inst.inst, gpu) };
        if numbers.iter().chain(&asked).all(Option::is_none) {
            pending.begin(&inst.inst, gpu);
            continue;
        }
        join_stores(&insts[at..], gpu, pending, &mut numbers);
        for ((counter, number), asked) in Counter::ALL.iter().zip(&mut numbers).zip(&mut asked) {
            let least = match (*number, asked.take()) {
                (Some(own), Some(asked)) => Some(own.min(asked)),
                (own, asked) => own.or(asked),
            };
            *number = least.filter(|number| pending.wait(*counter, *number));
        }
        write(&numbers, place, gpu, out);
        pending.begin(&inst.inst, gpu);
    }
    // A wait at the end of a block holds for what comes next.
    for (counter, number) in Counter::ALL.iter().zip(&mut asked) {
        *number = number.filter(|number| pending.wait(*counter, *number));
    }
    write(&asked, end, gpu, out);
}

/// The most consecutive stores with a common wait.
const JOINED: usize = 8;

/// Lets consecutive stores wait for all that they read before the first of them: stores take little time, and one wait is shorter than several.
fn join_stores(insts: &[MachineInst], gpu: &Gpu, pending: &PendingSet, numbers: &mut WaitNumbers) {
    let Some((first, rest)) = insts.split_first() else { return };
    if numbers.iter().all(Option::is_none) || !only_stores(&first.inst, gpu) {
        return;
    }
    let format = first.inst.row().format;
    let joined = rest.iter().take(JOINED - 1);
    for next in joined.take_while(|next| next.inst.row().format == format && only_stores(&next.inst, gpu)) {
        for (number, other) in numbers.iter_mut().zip(pending.needs(&next.inst, gpu)) {
            if let (Some(number), Some(other)) = (number, other) {
                *number = other.min(*number);
            }
        }
    }
}

/// Adds the numbers that a wait instruction waits for.
fn ask(inst: &MachineInst, generation: Gfx, asked: &mut WaitNumbers) {
    let immediate = inst.inst.written().find_map(|(_, operand)| match operand {
        Operand::Imm(value) => Some(value as u16),
        _ => None,
    });
    for wait in fields(inst.inst.opcode(), generation) {
        let number = wait.field.get(immediate.unwrap_or_default());
        if number < wait.field.most() {
            let place = &mut asked[wait.counter as usize];
            *place = Some(place.map_or(number, |other| other.min(number)));
        }
    }
}

/// Instructions that wait, those for several counters first.
const WAITS: [Opcode; 11] = [
    Opcode::s_waitcnt,
    Opcode::s_waitcnt_vscnt,
    Opcode::s_wait_loadcnt_dscnt,
    Opcode::s_wait_storecnt_dscnt,
    Opcode::s_wait_loadcnt,
    Opcode::s_wait_samplecnt,
    Opcode::s_wait_bvhcnt,
    Opcode::s_wait_storecnt,
    Opcode::s_wait_dscnt,
    Opcode::s_wait_kmcnt,
    Opcode::s_wait_expcnt,
];

/// Writes waits for some numbers, which come before the instruction at a place.
fn write(numbers: &WaitNumbers, at: usize, gpu: &Gpu, out: &mut Vec<(usize, MachineInst)>) {
    if numbers.iter().all(Option::is_none) {
        return;
    }
    let mut open = *numbers;
    let generation = gpu.generation();
    for opcode in WAITS {
        let own = || fields(opcode, generation);
        let asked = own().filter(|wait| open[wait.counter as usize].is_some()).count();
        let joint = matches!(opcode, Opcode::s_wait_loadcnt_dscnt | Opcode::s_wait_storecnt_dscnt);
        if asked == 0 || joint && asked < 2 {
            continue;
        }
        let immediate = own().fold(0, |immediate, wait| {
            // The greatest value of the field is no wait, so a wait for more accesses waits for one less.
            let most = wait.field.most();
            let number = open[wait.counter as usize].take();
            immediate | wait.field.put(number.map_or(most, |number| number.min(most.saturating_sub(1))))
        });
        let number = Operand::Imm(immediate.into());
        let operands = [Operand::reg(Reg::NULL, 1), number];
        let with_null = opcode == Opcode::s_waitcnt_vscnt;
        let wait = plain(opcode, if with_null { &operands } else { &operands[1..] }, gpu);
        out.extend(wait.map(|wait| (at, wait)));
    }
}
