//! Where a wave goes on: branches, the fibers that wait, predication.
//!
//! Of fibers that part, those that go on earlier in the program run first; the others wait until the wave comes to
//! where they are at an instruction with `(jp)`, or until nobody is left before them.

use super::wave::{Mask, Predication, Wave, all_fibers};
use unwedge_isa::ir3::{Attributes, Instruction, Opcode};

/// Fibers that wait here go on with those that arrive.
pub(super) fn join(wave: &mut Wave) {
    let pc = wave.pc;
    wave.parked.retain(|&(at, fibers)| {
        if at == pc {
            wave.active |= fibers;
        }
        at != pc
    });
}

fn park(wave: &mut Wave, at: usize, fibers: Mask) {
    if fibers == 0 {
        return;
    }
    match wave.parked.binary_search_by_key(&at, |entry| entry.0) {
        Ok(found) => {
            if let Some(entry) = wave.parked.get_mut(found) {
                entry.1 |= fibers;
            }
        }
        Err(place) => wave.parked.insert(place, (at, fibers)),
    }
}

/// Goes on with those that wait first in the program; with nobody, the wave has ended.
fn resume(wave: &mut Wave) {
    if wave.parked.is_empty() {
        wave.active = 0;
        wave.ended = true;
        return;
    }
    let (at, fibers) = wave.parked.remove(0);
    (wave.pc, wave.active) = (at, fibers);
}

/// All active fibers go on at a place; those that wait before it come first.
fn jump(wave: &mut Wave, target: usize) {
    match wave.parked.first() {
        Some(&(first, _)) if first > wave.pc && first < target => {
            let fibers = wave.active;
            park(wave, target, fibers);
            resume(wave);
        }
        _ => wave.pc = target,
    }
}

/// Some fibers go on at a place, the others at the next instruction.
fn branch(wave: &mut Wave, taken: Mask, target: usize) {
    let next = wave.pc + 1;
    let stays = wave.active & !taken;
    if taken == 0 || target == next {
        wave.pc = next;
    } else if stays == 0 {
        jump(wave, target);
    } else if target > next {
        park(wave, target, taken);
        (wave.pc, wave.active) = (next, stays);
    } else {
        park(wave, next, stays);
        (wave.pc, wave.active) = (target, taken);
    }
}

/// The fibers of a predicate source.
fn condition(wave: &Wave, instruction: &Instruction, at: usize) -> Mask {
    let Some(source) = instruction.srcs.get(at) else { return 0 };
    let unwedge_isa::ir3::OperandKind::Predicate(component) = source.kind else { return 0 };
    let bits = wave.predicates[usize::from(component) % 4];
    wave.active & if source.negate { !bits } else { bits }
}

/// The last active fiber of the first cluster that has one leaves it; the others of it jump.
fn all_but_last(active: Mask) -> Mask {
    let cluster = active.trailing_zeros().min(127) / 8 * 8;
    let fibers = active & (0xff << cluster);
    let last = 127 - fibers.leading_zeros().min(127);
    fibers & !(1 << last)
}

/// Executes an instruction of category 0; whether it ends the preamble.
pub(super) fn exec(wave: &mut Wave, instruction: &Instruction) -> bool {
    use Opcode::*;
    let target = match instruction.attributes {
        // A target before the program is past its end, too.
        Attributes::Flow { target: Some(_), .. } => instruction.target(wave.pc).unwrap_or(usize::MAX),
        _ => wave.pc + 1,
    };
    let first = condition(wave, instruction, 0);
    match instruction.opcode {
        Jump => jump(wave, target),
        Br => branch(wave, first, target),
        Brao => {
            let taken = first | condition(wave, instruction, 1);
            branch(wave, taken, target);
        }
        Braa => {
            let taken = first & condition(wave, instruction, 1);
            branch(wave, taken, target);
        }
        Bany => branch(wave, if first != 0 { wave.active } else { 0 }, target),
        Ball => branch(wave, if first == wave.active { wave.active } else { 0 }, target),
        Getone => {
            let others = wave.active & wave.active.wrapping_sub(1);
            branch(wave, others, target);
        }
        Getlast => {
            let others = all_but_last(wave.active);
            branch(wave, others, target);
        }
        Shps if !wave.runs_preamble => jump(wave, target),
        Shpe if wave.runs_preamble => {
            wave.pc += 1;
            return true;
        }
        End | Chsh => resume(wave),
        Kill => {
            // They go on as helpers of their quads.
            wave.helpers |= wave.exec() & first;
            wave.pc += 1;
            if wave.helpers == all_fibers(wave.lanes) {
                wave.parked.clear();
                resume(wave);
            }
        }
        Predt | Predf => {
            wave.predicated = wave.predicates[0];
            wave.predication =
                if instruction.opcode == Predt { Predication::True } else { Predication::False };
            wave.pc += 1;
        }
        Prede => {
            wave.predication = Predication::None;
            wave.pc += 1;
        }
        _ => wave.pc += 1,
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(active: Mask, pc: usize) -> Wave {
        let mut wave = Wave::new(0, 64, 4);
        (wave.active, wave.pc) = (active, pc);
        wave
    }

    #[test]
    fn the_earlier_side_runs_first_and_the_other_joins() {
        let mut w = wave(0b1111, 10);
        branch(&mut w, 0b0011, 20);
        assert_eq!((w.pc, w.active), (11, 0b1100));
        // The side that jumps over the place where others wait lets them go first.
        w.pc = 15;
        jump(&mut w, 30);
        assert_eq!((w.pc, w.active), (20, 0b0011));
        w.pc = 30;
        join(&mut w);
        assert_eq!((w.active, w.parked.len()), (0b1111, 0));
    }

    #[test]
    fn a_loop_collects_those_that_leave() {
        let mut w = wave(0b111, 10);
        branch(&mut w, 0b110, 5);
        assert_eq!((w.pc, w.active), (5, 0b110));
        w.pc = 10;
        branch(&mut w, 0b100, 5);
        w.pc = 10;
        branch(&mut w, 0, 5);
        assert_eq!((w.pc, w.active), (11, 0b100));
        join(&mut w);
        assert_eq!(w.active, 0b111);
        resume(&mut w);
        assert!(w.ended);
    }

    #[test]
    fn the_last_of_a_cluster() {
        assert_eq!(all_but_last(0b1011_0000), 0b0011_0000);
        assert_eq!(all_but_last(0b1_0000_0000), 0);
    }
}
