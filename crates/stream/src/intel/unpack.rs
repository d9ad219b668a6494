//! The memory of a dump, unpacked where streams lead: whoever reads it says what was missing, and reads again with that, until
//! nothing is missing that the dump holds.
//!
//! Never: what is read of it.

use unwedge_base::{Diagnostic, Memory};
use unwedge_capture::intel::{DumpEngine, LazyImage, MemoryBlock};
use unwedge_hw::intel::platform::Engine as EngineId;

/// It is read so often at most.
const ROUNDS: usize = 40;

/// Memory that was looked up and may still be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// At an address of the device's table.
    Ggtt(u64),
    /// At an address of an address space, by its number.
    Ppgtt(usize, u64),
    /// At an address, in the address space or in the device's table.
    Either(usize, u64),
    /// The first buffer after an address in the address space, where it starts within so many bytes.
    After(usize, u64, u64),
    /// All of an address space, and of the device's table.
    All(usize),
}

/// The address spaces of a dump.
pub struct AddressSpaces<'d, 'a> {
    ggtt: LazyImage<'d, 'a>,
    /// One for engines of the same name.
    ppgtt: Vec<(Option<EngineId>, &'d str, LazyImage<'d, 'a>)>,
}

impl<'d, 'a> AddressSpaces<'d, 'a> {
    /// Nothing unpacked yet; of each address space at most `limit` bytes will be.
    pub fn new(
        blocks: &'d [MemoryBlock<'a>],
        engines: &'d [DumpEngine<'a>],
        limit: usize,
    ) -> AddressSpaces<'d, 'a> {
        let mut packed = AddressSpaces { ggtt: LazyImage::ggtt(blocks, limit), ppgtt: Vec::new() };
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

    fn space(&self, engine: &DumpEngine<'_>) -> Option<usize> {
        let id = engine.id();
        self.ppgtt
            .iter()
            .position(|(of, name, _)| if id.is_some() { *of == id } else { *name == engine.name })
    }

    /// The device's table.
    pub fn ggtt(&self) -> &Memory {
        self.ggtt.memory()
    }

    /// The address space of an engine that the dump has, and its number.
    pub fn ppgtt(&self, engine: &DumpEngine<'_>) -> (usize, &Memory) {
        let space = self.space(engine).unwrap_or(0);
        (space, self.ppgtt.get(space).map_or(self.ggtt.memory(), |(.., lazy)| lazy.memory()))
    }

    /// Reads until nothing is asked for that is still packed, and returns what was read last.
    pub fn settle<R>(&mut self, read: impl Fn(&Self) -> (R, Vec<Wanted>)) -> R {
        let mut round = 1;
        loop {
            let (result, wanted) = read(self);
            let mut more = false;
            for wanted in wanted {
                more |= match wanted {
                    Wanted::Ggtt(address) => self.ggtt.want(address),
                    Wanted::Ppgtt(space, address) => self.want(space, address),
                    Wanted::Either(space, address) => {
                        let of_context = self.want(space, address);
                        self.ggtt.want(address) || of_context
                    }
                    Wanted::After(space, address, within) => {
                        self.ppgtt.get_mut(space).is_some_and(|(.., lazy)| lazy.want_after(address, within))
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

    fn want(&mut self, space: usize, address: u64) -> bool {
        self.ppgtt.get_mut(space).is_some_and(|(.., lazy)| lazy.want(address))
    }

    /// What could not be unpacked.
    pub fn diagnostics(&self) -> impl Iterator<Item = Diagnostic> {
        let ppgtt = self.ppgtt.iter().flat_map(|(.., lazy)| lazy.diagnostics());
        self.ggtt.diagnostics().iter().chain(ppgtt).cloned()
    }
}
