//! Loads a function of a code object: its bytes with relocations done, and what registers hold where it begins.
//!
//! What the bits of a descriptor mean is `isa`'s; this finds the descriptor, the stage of PAL's metadata or the registers
//! that Mesa's objects list. Never: memory, or a dispatch. Facts: LLVM's `AMDGPUUsage`.

use super::metadata::{self, COMPUTE_PGM_RSRC2, KernelArgument, PalStage};
use super::{CodeFunction, CodeObject, ElfSectionKind};
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::descriptor::SIZE;
use unwedge_isa::amdgcn::entry::{EntryRegCounts, KernelEntry};
use unwedge_isa::amdgcn::model::Gfx;

/// What is set where a function begins, as far as its object tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionStart {
    /// How many registers are set, if that is told.
    pub registers: Option<StartRegisters>,
    /// Whether its waves have 32 lanes, if there is a choice and it is told.
    pub wave32: Option<bool>,
}

/// How many registers are set where a function begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartRegisters {
    /// Scalar registers, from `s0` on.
    pub sgprs: u16,
    /// Vector registers, from `v0` on.
    pub vgprs: u16,
}

/// A kernel or another function, ready to be checked or run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedKernel {
    /// Its name; empty where no symbol names it.
    pub name: String,
    /// Its address; within its section, of an object that is not linked.
    pub address: u64,
    /// Its bytes, relocated as far as its section tells.
    pub code: Vec<u8>,
    /// Dwords of the code, in bytes, that are not known before the object is linked.
    pub unknown: Vec<u32>,
    /// What is set where it begins; `None` where nothing says that the GPU starts it.
    pub start: Option<FunctionStart>,
    /// What its descriptor asks for: registers, LDS, scratch. `None` for what has no descriptor.
    pub entry: Option<KernelEntry>,
    /// Its arguments, where metadata tells them.
    pub arguments: Option<Vec<KernelArgument>>,
}

/// Why a function cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The object has no function of this name.
    #[error("no function {name}{}", functions(.there))]
    NoFunction {
        /// The name.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
    /// The object is for another processor.
    #[error("the object is for {object}, not for {asked}")]
    OtherProcessor {
        /// That of the object.
        object: &'static str,
        /// That asked for.
        asked: String,
    },
}

fn functions(there: &[String]) -> String {
    if there.is_empty() { String::new() } else { format!("; there are {}", there.join(", ")) }
}

impl From<EntryRegCounts> for FunctionStart {
    fn from(set: EntryRegCounts) -> FunctionStart {
        let registers = Some(StartRegisters { sgprs: set.sgprs, vgprs: set.vgprs });
        FunctionStart { registers, wave32: set.wave32 }
    }
}

impl LoadedKernel {
    /// Loads a function by its name.
    ///
    /// # Errors
    /// When the object has no function of this name, or is for another processor than `gpu`.
    pub fn load(object: &CodeObject<'_>, name: &str, gpu: &Gpu) -> Result<LoadedKernel, LoadError> {
        if let Some(processor) = object.processor().filter(|name| Gpu::new(name).is_ok())
            && processor != gpu.name()
        {
            return Err(LoadError::OtherProcessor { object: processor, asked: gpu.name().to_owned() });
        }
        let functions = object.functions();
        let Some(function) = functions.iter().find(|function| function.name == name) else {
            let named = functions.iter().map(|f| f.name.to_owned()).filter(|name| !name.is_empty());
            return Err(LoadError::NoFunction { name: name.to_owned(), there: named.collect() });
        };
        Ok(LoadedKernel::of(object, function, gpu))
    }

    /// Loads a function of an object, whichever processor it is for.
    pub fn of(object: &CodeObject<'_>, function: &CodeFunction<'_>, gpu: &Gpu) -> LoadedKernel {
        let (bytes, unknown) = object.relocated(function.section);
        let section = object.sections.get(function.section).map_or(0, |section| section.address);
        let first = function.address.wrapping_sub(section);
        let end = first.saturating_add(function.code.len() as u64);
        let range = usize::try_from(first).ok().zip(usize::try_from(end).ok());
        let code = range.and_then(|(first, end)| bytes.get(first..end)).unwrap_or_default().to_vec();
        let inside = unknown.into_iter().filter(|at| (first..end).contains(&u64::from(*at)));
        LoadedKernel {
            name: function.name.to_owned(),
            address: function.address,
            code,
            unknown: inside.map(|at| at.wrapping_sub(first as u32)).collect(),
            start: object.start(function.name, gpu),
            entry: object.descriptor(function.name).map(|bytes| KernelEntry::of(&bytes, gpu)),
            arguments: object.arguments(function.name),
        }
    }
}

impl CodeObject<'_> {
    /// The descriptor of a kernel of HSA v3 and later.
    pub fn descriptor(&self, kernel: &str) -> Option<[u8; SIZE]> {
        self.descriptor_of(kernel)?.try_into().ok()
    }

    /// The arguments of a kernel, where metadata tells them.
    pub fn arguments(&self, kernel: &str) -> Option<Vec<KernelArgument>> {
        self.notes().find_map(|note| metadata::arguments(note, kernel))
    }

    /// The metadata of kernels and pipelines as YAML.
    pub fn metadata(&self) -> Option<String> {
        self.notes().find_map(metadata::text)
    }

    /// What is set at the start of a function, where the object tells: by a descriptor, the metadata of PAL, or the
    /// registers that Mesa's objects list.
    pub fn start(&self, function: &str, gpu: &Gpu) -> Option<FunctionStart> {
        let generation = gpu.generation();
        if let Some(bytes) = self.descriptor(function) {
            return Some(EntryRegCounts::of(&bytes, generation).into());
        }
        if let Some(stage) = self.stage(function) {
            // Whoever does not tell user registers has not told what else is set.
            let told = stage.rsrc2.map(|rsrc2| (rsrc2, stage.user_sgprs.unwrap_or(rsrc2 >> 1 & 31)));
            let told = told.filter(|(_, user)| *user > 0);
            let set = told.map(|(rsrc2, user)| {
                EntryRegCounts::of_rsrc2(rsrc2 & !(31 << 1) | user.min(31) << 1, generation)
            });
            return Some(FunctionStart {
                registers: set.and_then(|set| FunctionStart::from(set).registers),
                wave32: stage.wave32.filter(|_| generation >= Gfx::Gfx10),
            });
        }
        Some(EntryRegCounts::of_rsrc2(self.config(4 * COMPUTE_PGM_RSRC2)?, generation).into())
    }

    /// The stage of a pipeline of PAL whose code a function is. What the hardware sets for stages of graphics depends on
    /// how they are merged, and is not told.
    fn stage(&self, function: &str) -> Option<PalStage> {
        let stages = self.notes().filter_map(metadata::stages).flatten();
        stages.into_iter().find(|stage| stage.entry == function)
    }

    /// A register that Mesa's objects list, by its offset in bytes.
    fn config(&self, register: u32) -> Option<u32> {
        let config = self.sections.iter().find(|section| section.name == ".AMDGPU.config")?;
        let pairs = config.bytes.as_chunks::<8>().0.iter();
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        pairs
            .map(|pair| (word(&pair[..4]), word(&pair[4..])))
            .find(|pair| pair.0 == register)
            .map(|pair| pair.1)
    }

    fn notes(&self) -> impl Iterator<Item = &[u8]> {
        self.sections.iter().filter(|section| section.kind == ElfSectionKind::Note).map(|note| &*note.bytes)
    }
}
