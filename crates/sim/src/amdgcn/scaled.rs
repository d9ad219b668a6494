//! Conversions with a scale, of up to 32 elements in each lane.
//!
//! [`unwedge_isa::amdgcn::semantics::scaled`] has what they compute. A result is not known if any bit that it is made of is not:
//! of the elements, the scale, or the random bits.

use super::fault::{FaultKind, Missing};
use super::lanes::{bits, splat};
use super::machine::Machine;
use super::operand::{LaneSource, source};
use super::vector::fetch;
use super::wave::Wave;
use unwedge_isa::amdgcn::model::Mod;
use unwedge_isa::amdgcn::opcode::ScaledOp;
use unwedge_isa::amdgcn::semantics::Lanes;
use unwedge_isa::amdgcn::semantics::scaled::Scaled;
use unwedge_isa::amdgcn::{Inst, Operand};

/// A conversion with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScaledConversion {
    scaled: Scaled,
    /// Sources of elements, the scale, and random bits.
    elements: [LaneSource; 2],
    scale: LaneSource,
    random: LaneSource,
    /// The first bit of the elements in their register.
    first: u16,
    dst: u16,
    /// The first bit of a result that is less than a register.
    place: u16,
    /// Whether the sign of a source that has several elements is changed.
    signs: bool,
}

impl ScaledConversion {
    pub(super) fn new(op: ScaledOp, inst: &Inst) -> Option<ScaledConversion> {
        let scaled = Scaled::of_row(op);
        let select = inst.mods.get(Mod::OpSel) as u16;
        let mut sources = [LaneSource::NONE; 3];
        let (mut count, mut dst) = (0, None);
        for (slot, operand) in inst.written() {
            if slot.access.writes() {
                let Operand::Reg { reg, .. } = operand else { return None };
                dst = reg.lane_number();
            } else {
                *sources.get_mut(count)? = source(inst, slot, operand)?;
                count += 1;
            }
        }
        let [a, b, c] = sources;
        let (elements, random, scale) = match (scaled.two_sources, scaled.stochastic) {
            (true, _) => ([a, b], LaneSource::NONE, c),
            (_, true) => ([a, LaneSource::NONE], b, c),
            _ => ([a, LaneSource::NONE], LaneSource::NONE, b),
        };
        // Bytes and halves of small elements are selected by the first bits, of results by the last ones.
        let first = match scaled.source_bits() {
            8 => 8 * (select & 3),
            16 if scaled.from.bits() == 8 => 16 * (select & 1),
            _ => 0,
        };
        let place = match scaled.result_bits() {
            8 => 8 * (select >> 2 & 3),
            16 => 16 * (select >> 3 & 1),
            _ => 0,
        };
        let several = scaled.count > if scaled.two_sources { 2 } else { 1 };
        let signs = several && elements.iter().any(|source| source.neg || source.abs);
        Some(ScaledConversion { scaled, elements, scale, random, first, dst: dst?, place, signs })
    }
}

/// Registers of a source, and what is not known of them.
struct SourceBits {
    values: Vec<Lanes>,
    unknown: Vec<Lanes>,
}

impl SourceBits {
    fn new(wave: &Wave, source: &LaneSource) -> SourceBits {
        let dwords = 0..source.bits.div_ceil(32).max(1) as u8;
        let unknown = wave.unknown.as_ref().map_or(Vec::new(), |state| {
            let of = |dword| fetch(source, dword, &state.v, |reg| wave.unknown_sreg(reg), false);
            dwords.clone().map(of).collect()
        });
        let of = |dword| fetch(source, dword, &wave.v, |reg| wave.sreg(reg), true);
        SourceBits { values: dwords.map(of).collect(), unknown }
    }

    /// Up to 32 bits of a lane from a bit on.
    fn bits(&self, lane: usize, from: u16, bits: u8) -> u64 {
        let word = |n: u16| self.values.get(usize::from(n)).map_or(0, |lanes| u64::from(lanes[lane]));
        let both = word(from / 32) | word(from / 32 + 1) << 32;
        both >> (from % 32) & ((1 << bits) - 1)
    }

    /// Whether something of so many bits of a lane is not known.
    fn unsure(&self, lane: usize, from: u16, bits: u16) -> bool {
        self.unknown.iter().zip((0..).step_by(32)).any(|(lanes, at)| {
            let low = from.max(at);
            let high = (from + bits).min(at + 32);
            low < high && lanes[lane] >> (low - at) & (u32::MAX >> (32 - (high - low))) != 0
        })
    }
}

/// Executes a conversion.
pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, op: &ScaledConversion) {
    let scaled = &op.scaled;
    let dwords = usize::from(scaled.result_bits().div_ceil(32));
    if usize::from(op.dst) + dwords > wave.v.len() {
        return machine.fault(wave, FaultKind::NoRegister);
    }
    if op.signs {
        return machine.fault(wave, FaultKind::NotEmulated("a sign of a source of several elements"));
    }
    let exec = wave.exec(&machine.gpu);
    let mode = wave.float_mode(machine.gpu.generation());
    let elements = op.elements.map(|source| SourceBits::new(wave, &source));
    let (scale, random) = (SourceBits::new(wave, &op.scale), SourceBits::new(wave, &op.random));
    let mut result = vec![splat(0); dwords];
    let mut unsure = 0u64;
    let (from, to) = (scaled.from.bits(), scaled.to.bits());
    for lane in bits(exec) {
        let element = |number: u8| match scaled.two_sources {
            true => {
                elements[usize::from(number % 2)].bits(lane, u16::from(number / 2) * u16::from(from), from)
            }
            false => elements[0].bits(lane, op.first + u16::from(number) * u16::from(from), from),
        };
        let (power, seed) = (scale.bits(lane, 0, 32) as u32, random.bits(lane, 0, 32) as u32);
        scaled.convert(&mode, power, seed, element, |number, made| {
            let at = usize::from(number) * usize::from(to);
            let (dword, shift) = (at / 32, at % 32);
            result[dword][lane] |= (made << shift) as u32;
            if let Some(next) = result.get_mut(dword + 1) {
                next[lane] |= (made << shift >> 32) as u32;
            }
        });
        let missing = elements.iter().any(|source| source.unsure(lane, op.first, scaled.source_bits()))
            || scale.unsure(lane, 23, 8)
            || random.unsure(lane, 0, 32);
        unsure |= u64::from(missing) << lane;
    }
    let read = [&elements[0], &elements[1], &scale, &random];
    let why = read
        .into_iter()
        .zip([&op.elements[0], &op.elements[1], &op.scale, &op.random])
        .find(|(read, _)| read.unknown.iter().flatten().any(|bits| *bits != 0))
        .map_or(Missing::Undefined, |(_, source)| wave.why_source(source).1);
    // A result of less than a register leaves the rest of it.
    let width = u32::from(scaled.result_bits().min(32));
    let mask = (u32::MAX >> (32 - width)) << op.place;
    for (n, values) in (op.dst..).zip(&result) {
        let at = usize::from(n);
        let old = wave.v[at];
        let new: Lanes = std::array::from_fn(|lane| old[lane] & !mask | values[lane] << op.place & mask);
        let held = wave.unknown.as_ref().map(|state| state.v[at]);
        wave.set_lanes(n, exec, &new);
        if let Some(held) = held {
            let unknown: Lanes = std::array::from_fn(|lane| {
                held[lane] & !mask | if unsure >> lane & 1 != 0 { mask } else { 0 }
            });
            wave.set_unknown_lanes(n, exec, &unknown, why);
        }
    }
}
