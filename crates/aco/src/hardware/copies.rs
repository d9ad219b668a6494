//! Parallel copies become moves in an order that keeps every value.
//!
//! Copies to bytes that no other copy reads come first. A copy of which only a part can be made is split. The rest are
//! cycles. A cycle of scalar registers goes through a free register, or is swapped by exclusive or if `scc` is free; vector registers are swapped.

use super::Emitter;
use crate::error::FinishError;
use std::ops::Range;
use unwedge_isa::amdgcn::Reg;

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopySource {
    /// Bytes of registers from one on; a register has four.
    Byte(u16),
    Const(u32),
}

/// A copy to one register or to bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RegCopy {
    /// The first byte that is written.
    pub to: u16,
    pub bytes: u8,
    pub from: CopySource,
}

impl RegCopy {
    /// A copy to a register.
    pub fn whole(to: u16, from: CopySource) -> RegCopy {
        RegCopy { to: to * 4, bytes: 4, from }
    }

    /// The register that is written.
    pub fn reg(&self) -> u16 {
        self.to / 4
    }

    /// The register that is read.
    pub fn source_reg(&self) -> Option<u16> {
        Some(self.source()?.start / 4)
    }

    pub fn is_whole(&self) -> bool {
        self.bytes == 4
    }

    pub fn is_vector(&self) -> bool {
        Reg(self.reg()).is_vgpr()
    }

    fn is_done(&self) -> bool {
        self.from == CopySource::Byte(self.to)
    }

    fn target(&self) -> Range<u16> {
        self.to..self.to + u16::from(self.bytes)
    }

    fn source(&self) -> Option<Range<u16>> {
        match self.from {
            CopySource::Byte(first) => Some(first..first + u16::from(self.bytes)),
            CopySource::Const(_) => None,
        }
    }

    fn reads(&self, bytes: &Range<u16>) -> bool {
        self.source().is_some_and(|source| source.start < bytes.end && bytes.start < source.end)
    }

    /// The same copy as two copies.
    fn halves(&self) -> [RegCopy; 2] {
        let bytes = self.bytes / 2;
        let high = match self.from {
            CopySource::Byte(first) => CopySource::Byte(first + u16::from(bytes)),
            CopySource::Const(bits) => CopySource::Const(bits >> (8 * bytes)),
        };
        let low = match self.from {
            CopySource::Const(bits) => CopySource::Const(bits & (u32::MAX >> (32 - 8 * bytes))),
            from => from,
        };
        let rest = self.bytes - bytes;
        [
            RegCopy { bytes, from: low, ..*self },
            RegCopy { to: self.to + u16::from(bytes), bytes: rest, from: high },
        ]
    }
}

/// Whether another copy still reads what one overwrites.
fn blocked(copies: &[RegCopy], at: usize) -> bool {
    let target = copies[at].target();
    copies.iter().enumerate().any(|(number, other)| number != at && other.reads(&target))
}

/// Copies to parts of a register; `None` if others still read what they overwrite together.
fn parts_of(copies: &[RegCopy], reg: u16) -> Option<Vec<RegCopy>> {
    let own = |copy: &RegCopy| !copy.is_whole() && copy.reg() == reg;
    let parts: Vec<RegCopy> = copies.iter().copied().filter(own).collect();
    let read = |part: &RegCopy| copies.iter().any(|copy| !own(copy) && copy.reads(&part.target()));
    (!parts.iter().any(read)).then_some(parts)
}

/// Makes the copies. `free`: a scalar register that may be overwritten; `scc`: it holds something.
pub(super) fn lower(
    emitter: &mut Emitter<'_>,
    mut copies: Vec<RegCopy>,
    mut free: Option<u16>,
    scc: bool,
) -> Result<(), FinishError> {
    let touches_scc =
        copies.iter().any(|copy| copy.reg() == Reg::SCC.0 || copy.source_reg() == Some(Reg::SCC.0));
    let mut scc = scc || touches_scc;
    // The register that `scc` waits in.
    let mut kept_scc = None;
    loop {
        copies.retain(|copy| !copy.is_done());
        let ready = (0..copies.len()).filter(|at| !blocked(&copies, *at)).min_by_key(|at| {
            let copy = &copies[*at];
            // Those last that one instruction makes together with copies that cannot be made yet.
            let alone = match copy.is_whole() {
                true => pair(emitter, &copies, copy).is_some_and(|other| blocked(&copies, other)),
                false => parts_of(&copies, copy.reg()).is_none(),
            };
            // Constants after others, as no other copy waits for them.
            (alone, matches!(copy.from, CopySource::Const(_)))
        });
        if let Some(at) = ready {
            make(emitter, &mut copies, at)?;
            continue;
        }
        let Some(&copy) = copies.first() else {
            if let Some(reg) = kept_scc {
                emitter.move_reg(&RegCopy::whole(Reg::SCC.0, CopySource::Byte(reg * 4)));
            }
            return Ok(());
        };
        let vector = copies.iter().find(|copy| copy.is_vector()).copied();
        if let Some(copy) = vector {
            if merge_any(emitter, &mut copies) || swap_whole(emitter, &mut copies)? || split_any(&mut copies)
            {
                continue;
            }
            let Some(source) = copy.source() else { return Ok(()) };
            if split_around(&mut copies, &copy.target()) || split_around(&mut copies, &source) {
                continue;
            }
            let odd = copy.bytes == 2 && (copy.to % 2 != 0 || source.start % 2 != 0);
            if odd || copy.bytes == 3 {
                split(&mut copies, &copy);
                continue;
            }
            emitter.swap_vector(copy.to, source.start, copy.bytes)?;
            exchange(&mut copies, copy.target(), source);
            continue;
        }
        let Some(source) = copy.source() else { return Ok(()) };
        let mut scalars = copies.iter().filter(|copy| copy.reg() != Reg::SCC.0);
        let paired = scalars.clone().find(|copy| pair(emitter, &copies, copy).is_some()).copied();
        let scalar = scalars.next().copied();
        if let (Some(reg), true, false, Some(_)) = (free, scc, touches_scc, paired) {
            emitter.move_reg(&RegCopy::whole(reg, CopySource::Byte(Reg::SCC.0 * 4)));
            (kept_scc, free, scc) = (Some(reg), None, false);
        }
        if let Some(RegCopy { to, from: CopySource::Byte(from), .. }) = paired.filter(|_| !scc) {
            let (to, from) = (to & !7, from & !7);
            emitter.swap_scalar_pair(to / 4, from / 4);
            exchange(&mut copies, to..to + 8, from..from + 8);
            continue;
        }
        match (free, scalar) {
            (Some(reg), Some(cycle)) => {
                // The value that is overwritten waits in the free register.
                let saved = cycle.reg();
                emitter.move_reg(&RegCopy::whole(reg, CopySource::Byte(saved * 4)));
                for other in copies.iter_mut().filter(|other| other.source_reg() == Some(saved)) {
                    other.from = CopySource::Byte(reg * 4);
                }
                drain_cycle(emitter, &mut copies, saved);
                free = (!copies.iter().any(|other| other.source_reg() == Some(reg))).then_some(reg);
            }
            (None, Some(_)) if !scc => {
                emitter.swap_scalar(copy.reg(), source.start / 4);
                exchange(&mut copies, copy.target(), source);
            }
            _ => return Err(emitter.not_done("a cycle of scalar registers, none free, and scc in use")),
        }
    }
}

/// Makes a copy whose target no other reads, together with those that the same instruction can make.
fn make(emitter: &mut Emitter<'_>, copies: &mut Vec<RegCopy>, at: usize) -> Result<(), FinishError> {
    let copy = copies[at];
    if !copy.is_whole() {
        let parts = parts_of(copies, copy.reg()).filter(|parts| parts.len() > 1);
        if parts.is_some_and(|parts| emitter.merge_parts(copy.reg(), &parts)) {
            copies.retain(|other| other.is_whole() || other.reg() != copy.reg());
        } else if emitter.move_part(&copy)? {
            copies.remove(at);
        } else {
            split(copies, &copy);
        }
        return Ok(());
    }
    let partner = pair(emitter, copies, &copy).filter(|other| {
        let target = copies[*other].target();
        !copies.iter().any(|reader| reader.reads(&target))
    });
    match partner {
        Some(other) => {
            emitter.move_pair(&copy, &copies[other]);
            copies.remove(at.max(other));
            copies.remove(at.min(other));
        }
        None => {
            emitter.move_reg(&copy);
            copies.remove(at);
        }
    }
    Ok(())
}

/// Writes a register of which all parts can be made by one instruction together, if there is one.
fn merge_any(emitter: &mut Emitter<'_>, copies: &mut Vec<RegCopy>) -> bool {
    let regs: Vec<u16> = copies.iter().filter(|copy| !copy.is_whole()).map(RegCopy::reg).collect();
    let merged = regs
        .into_iter()
        .find(|reg| parts_of(copies, *reg).is_some_and(|parts| emitter.merge_parts(*reg, &parts)));
    if let Some(reg) = merged {
        copies.retain(|copy| copy.is_whole() || copy.reg() != reg);
    }
    merged.is_some()
}

/// Swaps a register with one of which other copies write parts, by one instruction. Bytes of that which nothing overwrites come back from where they are then.
fn swap_whole(emitter: &mut Emitter<'_>, copies: &mut Vec<RegCopy>) -> Result<bool, FinishError> {
    let part_of = |reg: Option<u16>, other: &RegCopy| !other.is_whole() && Some(other.reg()) == reg;
    let swapped = copies.iter().filter(|copy| copy.is_whole() && copy.is_vector()).find(|copy| {
        let from = copy.source_reg();
        from.is_some_and(|reg| Reg(reg).is_vgpr())
            && copies.iter().any(|other| part_of(from, other) && other.reads(&copy.target()))
            && !copies.iter().any(|other| other.is_whole() && Some(other.reg()) == from)
    });
    let Some(&copy) = swapped.filter(|_| emitter.swaps_vectors()) else { return Ok(false) };
    let (Some(from), to) = (copy.source(), copy.target()) else { return Ok(false) };
    emitter.swap_vector(to.start, from.start, 4)?;
    let written: Vec<Range<u16>> =
        copies.iter().filter(|other| part_of(copy.source_reg(), other)).map(RegCopy::target).collect();
    exchange(copies, to.clone(), from.clone());
    let kept = |byte: u16| !written.iter().any(|target| target.contains(&byte));
    let mut at = 0;
    while at < 4 {
        let bytes = if at % 2 == 0 && kept(from.start + at) && kept(from.start + at + 1) { 2 } else { 1 };
        if kept(from.start + at) {
            let own = RegCopy { to: from.start + at, bytes, from: CopySource::Byte(to.start + at) };
            copies.push(own);
        }
        at += u16::from(bytes);
    }
    Ok(true)
}

/// Splits a copy of vector registers of which a part can be made.
fn split_any(copies: &mut Vec<RegCopy>) -> bool {
    for at in 0..copies.len() {
        let copy = copies[at];
        if copy.bytes < 2 || !copy.is_vector() {
            continue;
        }
        let mut tried: Vec<RegCopy> = copies.iter().copied().filter(|other| *other != copy).collect();
        let rest = tried.len();
        for half in copy.halves() {
            if half.bytes < 2 { tried.push(half) } else { tried.extend(half.halves()) }
        }
        if (rest..tried.len()).any(|at| !blocked(&tried, at)) {
            split(copies, &copy);
            return true;
        }
    }
    false
}

/// Splits the copies that read some bytes of a range and others outside of it.
fn split_around(copies: &mut Vec<RegCopy>, range: &Range<u16>) -> bool {
    let crosses = |copy: &&RegCopy| {
        let inside = |source: Range<u16>| range.start <= source.start && source.end <= range.end;
        copy.reads(range) && !copy.source().is_some_and(inside)
    };
    let Some(copy) = copies.iter().find(crosses).copied() else { return false };
    split(copies, &copy);
    true
}

fn split(copies: &mut Vec<RegCopy>, copy: &RegCopy) {
    copies.retain(|other| other != copy);
    copies.extend(copy.halves());
}

/// After the value of a register was saved: makes the copies of its cycle.
fn drain_cycle(emitter: &mut Emitter<'_>, copies: &mut Vec<RegCopy>, start: u16) {
    let mut to = start;
    while let Some(at) = copies.iter().position(|copy| copy.reg() == to) {
        if copies.iter().any(|copy| copy.source_reg() == Some(to)) {
            return;
        }
        let copy = copies.remove(at);
        emitter.move_reg(&copy);
        match copy.source_reg() {
            Some(next) => to = next,
            None => return,
        }
    }
}

/// After bytes were swapped: the first have their values, and what they held is in the others.
fn exchange(copies: &mut [RegCopy], to: Range<u16>, from: Range<u16>) {
    for copy in copies {
        copy.from = match copy.from {
            CopySource::Byte(byte) if to.contains(&byte) => CopySource::Byte(byte - to.start + from.start),
            CopySource::Byte(byte) if from.contains(&byte) => CopySource::Byte(byte - from.start + to.start),
            other => other,
        };
    }
}

/// The copy that one instruction of 64 bits can make together with another one.
fn pair(emitter: &Emitter<'_>, copies: &[RegCopy], copy: &RegCopy) -> Option<usize> {
    let to = copy.reg();
    let find = |reg: u16| copies.iter().position(|other| other.is_whole() && other.reg() == reg);
    if copy.is_vector() {
        if !emitter.moves_vector_pairs() {
            return None;
        }
        let follows = |other: Option<usize>| {
            let other = other?;
            let (low, high) =
                if copies[other].to > copy.to { (copy, &copies[other]) } else { (&copies[other], copy) };
            is_vector_pair(low, high).then_some(other)
        };
        return follows(find(to + 1)).or_else(|| follows(find(to - 1)));
    }
    if to > Reg::EXEC_HI.0 || to == Reg::M0.0 {
        return None;
    }
    let other = find(to ^ 1)?;
    let (low, high) = if to & 1 == 0 { (copy, &copies[other]) } else { (&copies[other], copy) };
    let together = match (low.from, high.from) {
        (CopySource::Byte(_), CopySource::Byte(_)) => {
            let (a, b) = (low.source_reg()?, high.source_reg()?);
            a % 2 == 0 && b == a + 1 && !Reg(a).is_vgpr() && a < Reg::EXEC_HI.0 && a != Reg::M0.0
        }
        (CopySource::Const(a), CopySource::Const(b)) => {
            let bits = u64::from(b) << 32 | u64::from(a);
            (-16..=64).contains(&(bits as i64))
        }
        _ => false,
    };
    together.then_some(other)
}

/// Whether one instruction of 64 bits moves both: registers that follow each other, scalar ones from an even number on, or a constant of 64 bits that
/// is read with zeros above a literal.
fn is_vector_pair(low: &RegCopy, high: &RegCopy) -> bool {
    match (low.from, high.from) {
        (CopySource::Byte(_), CopySource::Byte(_)) => {
            let (Some(a), Some(b)) = (low.source_reg(), high.source_reg()) else { return false };
            let scalars = a % 2 == 0 && !Reg(b).is_vgpr() && a < Reg::M0.0;
            b == a + 1 && (Reg(a).is_vgpr() || scalars)
        }
        (CopySource::Const(low), CopySource::Const(high)) => {
            let bits = u64::from(high) << 32 | u64::from(low);
            high == 0 || (-16..=64).contains(&(bits as i64))
        }
        _ => false,
    }
}
