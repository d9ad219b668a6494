//! The memory of a dump, unpacked as a judgement asks for it: it is judged again with what it missed, until nothing is missing
//! that the dump holds.

use super::case::Wanted;
use unwedge_base::{Diagnostic, Memory};
use unwedge_capture::intel::{Block, Engine, LazyImage};
use unwedge_hw::intel::platform::Engine as EngineId;

/// Bytes of an address space that are unpacked at most: so many, and so many for each byte of the dump.
const MEMORY: usize = 32 << 20;
/// See [`MEMORY`].
const MEMORY_PER_BYTE: usize = 8;
/// A dump is judged so often at most.
const ROUNDS: usize = 40;

/// Address spaces of a dump.
pub(super) struct Packed<'d, 'a> {
    ggtt: LazyImage<'d, 'a>,
    /// One for engines of the same name.
    ppgtt: Vec<(Option<EngineId>, &'d str, LazyImage<'d, 'a>)>,
}

impl<'d, 'a> Packed<'d, 'a> {
    /// Of a dump of so many bytes.
    pub(super) fn of(blocks: &'d [Block<'a>], engines: &'d [Engine<'a>], bytes: usize) -> Packed<'d, 'a> {
        let limit = MEMORY.saturating_add(MEMORY_PER_BYTE.saturating_mul(bytes));
        let mut packed = Packed { ggtt: LazyImage::ggtt(blocks, limit), ppgtt: Vec::new() };
        let owned = blocks.iter().any(|b| !b.owner.is_empty());
        for engine in engines {
            // Where no block has an owner, all engines see the same.
            if packed.space(engine).is_none() && (owned || packed.ppgtt.is_empty()) {
                let lazy = LazyImage::ppgtt(blocks, engine, limit);
                packed.ppgtt.push((engine.id(), &engine.name, lazy));
            }
        }
        packed
    }

    fn space(&self, engine: &Engine<'_>) -> Option<usize> {
        let id = engine.id();
        self.ppgtt
            .iter()
            .position(|(of, name, _)| if id.is_some() { *of == id } else { *name == engine.name })
    }

    /// The device's table.
    pub(super) fn ggtt(&self) -> &Memory {
        self.ggtt.memory()
    }

    /// The address space of an engine that the dump has, and its number.
    pub(super) fn ppgtt(&self, engine: &Engine<'_>) -> (usize, &Memory) {
        let space = self.space(engine).unwrap_or(0);
        (space, self.ppgtt.get(space).map_or(self.ggtt.memory(), |(.., lazy)| lazy.memory()))
    }

    /// Judges until nothing is asked for that is still packed.
    pub(super) fn judged<R>(&mut self, judge: impl Fn(&Self) -> (R, Vec<Wanted>)) -> R {
        let mut round = 1;
        loop {
            let (result, wanted) = judge(self);
            let mut more = false;
            for wanted in wanted {
                more |= match wanted {
                    Wanted::At(space, address) => {
                        let of_context =
                            self.ppgtt.get_mut(space).is_some_and(|(.., lazy)| lazy.want(address));
                        self.ggtt.want(address) || of_context
                    }
                    Wanted::All(space) => {
                        let of_context = self.ppgtt.get_mut(space).is_some_and(|(.., lazy)| lazy.want_all());
                        self.ggtt.want_all() || of_context
                    }
                };
            }
            if !more || round == ROUNDS {
                return result;
            }
            round += 1;
        }
    }

    /// What could not be unpacked.
    pub(super) fn diagnostics(&self) -> impl Iterator<Item = Diagnostic> {
        let ppgtt = self.ppgtt.iter().flat_map(|(.., lazy)| lazy.diagnostics());
        self.ggtt.diagnostics().iter().chain(ppgtt).cloned()
    }
}
