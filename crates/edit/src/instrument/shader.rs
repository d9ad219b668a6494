//! Shaders replaced by others: in their place if these are not longer, else elsewhere, and all that names them follows.
//!
//! What names a shader: SP_*_OBJ_START, and CP_LOAD_STATE6 that loads it into the instruction cache; SP_*_INSTRLEN has its
//! length. Never: how many registers or constants a shader may use, which its other state says.

use super::InstrumentError;
use crate::rewrite::{RewriteError, SetEdit};
use std::collections::{BTreeMap, BTreeSet};
use unwedge_base::Generation;
use unwedge_hw::Gpu;
use unwedge_isa::ir3::asm::Assembler;
use unwedge_stream::adreno::payload::LoadStateHeader;
use unwedge_stream::adreno::{AdrenoEvent, AdrenoOp, StateSource, StateType};

/// Stages that have a shader.
const STAGES: [&str; 6] = ["VS", "HS", "DS", "GS", "FS", "CS"];
/// Instructions of a unit that lengths are counted in.
const UNIT: usize = 16;
/// Zeros after a moved shader: instructions are fetched ahead.
const PADDING: u64 = 0x200;

/// A shader that is put in the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaderReplacement {
    /// Address of the shader that is replaced.
    pub iova: u64,
    /// What the assembly is called in messages.
    pub name: String,
    /// ir3 assembly.
    pub source: String,
}

/// Units that are loaded at most: as many as the instruction cache holds (Mesa, `freedreno_devices.py`, `instr_cache_size`).
fn cache_units(generation: Generation) -> u32 {
    if generation >= Generation::A7xx { 127 } else { 64 }
}

/// The number by which the assembler knows a generation.
pub(crate) fn gpu_id(generation: Generation) -> u32 {
    100 * generation as u32
}

/// By stage, the first register of the shader's address, and that of its length.
type StageRegisters = [(Option<u32>, Option<u32>); 6];

/// What the streams of a set say about shaders.
#[derive(Debug, Default)]
pub(super) struct ShaderReferences {
    /// The registers of a generation.
    registers: Option<(Generation, StageRegisters)>,
    /// Address of the dword that has the low half of a shader's address, the stage, and the halves.
    starts: BTreeMap<u64, (usize, u32)>,
    highs: BTreeMap<u64, u32>,
    /// By stage, address of the dword that has a length, and the length.
    lengths: [BTreeMap<u64, u32>; 6],
    /// Address of the payload of packets that load a shader from memory, and where from.
    loads: BTreeMap<u64, u64>,
}

impl ShaderReferences {
    pub(super) fn clear(&mut self) {
        *self = ShaderReferences { registers: self.registers, ..ShaderReferences::default() };
    }

    /// Takes in what a walk meets.
    pub(super) fn watch(&mut self, gpu: Gpu<'_>, event: &AdrenoEvent<'_>) {
        let generation = gpu.generation();
        let registers = match self.registers {
            Some((of, registers)) if of == generation => registers,
            _ => {
                let named = |stage: &str, what: &str| gpu.reg_offset(&format!("SP_{stage}_{what}"));
                let registers = STAGES.map(|stage| (named(stage, "OBJ_START"), named(stage, "INSTRLEN")));
                self.registers = Some((generation, registers));
                registers
            }
        };
        match event {
            AdrenoEvent::RegWrite(write) => {
                let Some(at) = write.place.iova else { return };
                for (stage, (start, length)) in registers.into_iter().enumerate() {
                    if start == Some(write.reg) {
                        self.starts.insert(at, (stage, write.value));
                    } else if start.map(|reg| reg + 1) == Some(write.reg) {
                        self.highs.insert(at, write.value);
                    } else if length == Some(write.reg)
                        && let Some(lengths) = self.lengths.get_mut(stage)
                    {
                        lengths.insert(at, write.value);
                    }
                }
            }
            AdrenoEvent::Packet(packet) => {
                let loads = matches!(
                    packet.op,
                    AdrenoOp::LoadState6 | AdrenoOp::LoadState6Geom | AdrenoOp::LoadState6Frag
                );
                if loads && let Some(iova) = packet.place.iova {
                    let header = LoadStateHeader::parse(packet.payload, generation);
                    if header.ty == StateType::Shader && header.source == StateSource::Indirect {
                        self.loads.insert(iova + 4, header.place);
                    }
                }
            }
            _ => {}
        }
    }

    /// The dwords that have the address of a shader, with the stage of each.
    fn of(&self, iova: u64) -> Vec<(u64, usize)> {
        let halves = (iova as u32, (iova >> 32) as u32);
        let starts = self.starts.iter().filter(|(at, (_, low))| {
            *low == halves.0 && self.highs.get(&(*at + 4)).copied() == Some(halves.1)
        });
        starts.map(|(at, (stage, _))| (*at, *stage)).collect()
    }

    /// The dword that has the length of the shader whose address is at `at`: the nearest one of its stage.
    fn length_of(&self, at: u64, stage: usize) -> Option<(u64, u32)> {
        let lengths = self.lengths.get(stage)?;
        let after = lengths.range(at..).next();
        let before = lengths.range(..at).next_back();
        let nearest = [before, after].into_iter().flatten().min_by_key(|(place, _)| place.abs_diff(at))?;
        Some((*nearest.0, *nearest.1))
    }

    /// Puts a shader in the place of another. Returns the address where it is, or none if the set does not have the other.
    pub(super) fn replace(
        &self,
        replacement: &ShaderReplacement,
        set: &mut SetEdit<'_>,
    ) -> Result<Option<u64>, RewriteError> {
        let iova = replacement.iova;
        let references = self.of(iova);
        if references.is_empty() {
            return Ok(None);
        }
        let code = assemble(replacement, set.gpu().generation())?;
        let units = u32::try_from(code.len().div_ceil(2 * UNIT)).unwrap_or(u32::MAX);
        let lengths: BTreeSet<(u64, u32)> =
            references.iter().filter_map(|&(at, stage)| self.length_of(at, stage)).collect();
        let room = lengths.iter().map(|(_, units)| *units).min().unwrap_or(0);
        let mut padded = code;
        if units <= room {
            padded.resize(room as usize * 2 * UNIT, 0);
            if set.patch(iova, &padded) {
                return Ok(Some(iova));
            }
            return Err(InstrumentError::ShaderMemory(iova).into());
        }
        let size = 4 * padded.len() as u64 + PADDING;
        let moved = set.add_buffer(padded, size)?;
        let halves = [moved as u32, (moved >> 32) as u32];
        for (at, _) in references {
            set.patch(at, &halves);
        }
        for (at, _) in &lengths {
            set.patch(*at, &[units]);
        }
        for (&at, _) in self.loads.iter().filter(|(_, from)| **from == iova) {
            if let Some(&word) = set.words(at, 1).first() {
                let loaded = units.min(cache_units(set.gpu().generation()));
                set.patch(at, &[word & 0x3f_ffff | loaded << 22, halves[0], halves[1]]);
            }
        }
        Ok(Some(moved))
    }
}

/// The dwords of a shader.
fn assemble(replacement: &ShaderReplacement, generation: Generation) -> Result<Vec<u32>, InstrumentError> {
    let (program, errors) =
        Assembler::new(gpu_id(generation)).assemble(&replacement.name, &replacement.source);
    if !errors.is_empty() {
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        return Err(InstrumentError::Assembly(text.join("\n")));
    }
    Ok(program.words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]).collect())
}
