//! Descriptors: where they are, and the buffers they describe.

use super::dispatch::BindfulTable;
use super::fault::{FaultKind, MemoryUnit};
use super::group::Machine;
use crate::adreno::texture::{Image, ImageUse, SamplerDescriptor, TexelMemory, TextureFault};
use crate::memory::Load;
use std::rc::Rc;
use unwedge_isa::ir3::DescriptorIndex;

/// Which table a descriptor that is not bindless is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Textures,
    Samplers,
    Images,
    Uniforms,
}

impl Table {
    /// Dwords of a descriptor.
    fn dwords(self) -> usize {
        match self {
            Table::Textures | Table::Images => 16,
            Table::Samplers => 4,
            Table::Uniforms => 2,
        }
    }
}

/// A buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferView {
    /// Its first byte.
    pub(super) base: u64,
    /// Its size in bytes.
    pub(super) bytes: u64,
}

impl BufferView {
    /// The buffer that an image is, if it is one.
    pub(super) fn of(image: &Image) -> Option<BufferView> {
        let bytes = u64::from(image.descriptor.elements()) * u64::from(image.element_bytes());
        image.is_buffer().then(|| BufferView { base: image.buffer_base(), bytes })
    }

    /// The address of an element of so many bytes, if it is in the buffer.
    pub(super) fn element(&self, index: u32, bytes: u32) -> Option<u64> {
        let from = u64::from(index) * u64::from(bytes);
        (from + u64::from(bytes) <= self.bytes).then(|| self.base.wrapping_add(from))
    }
}

impl From<TextureFault> for FaultKind {
    fn from(fault: TextureFault) -> FaultKind {
        match fault {
            TextureFault::Memory(fault) => FaultKind::Memory(fault, MemoryUnit::Texture),
            TextureFault::NotEmulated(what) => FaultKind::NotEmulated(what),
        }
    }
}

impl TexelMemory for Machine<'_> {
    fn read_texel(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), TextureFault> {
        for (at, part) in (0u64..).zip(bytes.chunks_mut(8)) {
            let address = address.wrapping_add(8 * at);
            let value = self.view.read(address, part.len()).at(address).map_err(TextureFault::Memory)?;
            part.copy_from_slice(&value.to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}

impl Machine<'_> {
    /// Up to eight bytes; what is not mapped is a fault.
    pub(super) fn load(&mut self, address: u64, bytes: usize, unit: MemoryUnit) -> Result<u64, FaultKind> {
        let load: Load = match unit {
            MemoryUnit::Constants => self.view.read_constants(address, bytes),
            MemoryUnit::Uche | MemoryUnit::Texture | MemoryUnit::Private => self.view.read(address, bytes),
        };
        load.at(address).map_err(|fault| FaultKind::Memory(fault, unit))
    }

    fn table(&self, table: Table) -> &BindfulTable {
        let tables = &self.dispatch.state.tables;
        match table {
            Table::Textures => &tables.textures,
            Table::Samplers => &tables.samplers,
            Table::Images => &tables.images,
            Table::Uniforms => &tables.uniforms,
        }
    }

    /// The words of a descriptor.
    fn words<const N: usize>(
        &mut self,
        base: Option<u8>,
        table: Table,
        index: u32,
    ) -> Result<[u32; N], FaultKind> {
        let mut words = [0; N];
        let address = match base {
            None => {
                let first = index as usize * table.dwords();
                let of = self.table(table);
                let loaded = of.loaded.get(first..first.saturating_add(N)).unwrap_or_default();
                if loaded.len() == N && loaded.iter().all(Option::is_some) {
                    words.iter_mut().zip(loaded).for_each(|(word, loaded)| *word = loaded.unwrap_or(0));
                    return Ok(words);
                }
                of.address.wrapping_add(4 * first as u64)
            }
            Some(base) => {
                let set = self.dispatch.state.bindless.get(usize::from(base)).copied();
                let missing = FaultKind::NotEmulated("a set of descriptors that the GPU does not have");
                let set = set.ok_or(missing)?;
                (set & !3).wrapping_add(u64::from(index) * (8 << (set & 3)))
            }
        };
        for (at, word) in (0u64..).zip(words.iter_mut()) {
            *word = self.load(address.wrapping_add(4 * at), 4, MemoryUnit::Constants)? as u32;
        }
        Ok(words)
    }

    /// An image, texture or buffer; `None` for a null descriptor.
    pub(super) fn image(
        &mut self,
        base: Option<u8>,
        table: Table,
        index: u32,
    ) -> Result<Option<Rc<Image>>, FaultKind> {
        let words = self.words::<16>(base, table, index)?;
        let usage = if table == Table::Images { ImageUse::Storage } else { ImageUse::Texture };
        Ok(Image::new(&words, usage, self.dispatch.state.bank, self.dispatch.state.window)?.map(Rc::new))
    }

    /// A sampler.
    pub(super) fn sampler(&mut self, base: Option<u8>, index: u32) -> Result<SamplerDescriptor, FaultKind> {
        Ok(SamplerDescriptor::decode(&self.words::<4>(base, Table::Samplers, index)?))
    }

    /// Address and size in bytes of a uniform buffer.
    pub(super) fn uniform_buffer(&mut self, base: Option<u8>, index: u32) -> Result<(u64, u64), FaultKind> {
        let [low, high] = self.words::<2>(base, Table::Uniforms, index)?;
        let word = u64::from(low) | u64::from(high) << 32;
        Ok((word & ((1 << 49) - 1), (word >> 49) * 16))
    }
}

/// The images that an instruction names, each looked up and decoded once.
pub(super) struct Images {
    base: Option<u8>,
    table: Table,
    /// All fibers have the same.
    uniform: bool,
    known: Vec<(u32, Option<Rc<Image>>)>,
}

impl Images {
    pub(super) fn new(base: Option<u8>, table: Table, index: DescriptorIndex) -> Images {
        Images { base, table, uniform: index != DescriptorIndex::Nonuniform, known: Vec::new() }
    }

    /// An image; `None` for a null descriptor.
    pub(super) fn get(
        &mut self,
        machine: &mut Machine<'_>,
        index: u32,
    ) -> Result<Option<Rc<Image>>, FaultKind> {
        let known = self.known.iter().find(|(of, _)| self.uniform || *of == index);
        if let Some((_, image)) = known {
            return Ok(image.clone());
        }
        let image = machine.image(self.base, self.table, index)?;
        self.known.push((index, image.clone()));
        Ok(image)
    }
}
