//! Loads functions of a code object, one ([`LoadedKernel`]), those of each section ([`LoadedSection`]) or those of a section
//! that is in memory ([`LinkedSection`]): their bytes with relocations done, and what registers hold where they begin.
//!
//! What the bits of a descriptor mean is `isa`'s; this finds the descriptor, the stage of PAL's metadata or the registers
//! that Mesa's objects list. Never: memory, or a dispatch. Facts: LLVM's `AMDGPUUsage`.

use super::metadata::{self, COMPUTE_PGM_RSRC2, KernelArgument, PalStage};
use super::{CodeFunction, CodeObject, ElfSectionKind, is_other_processor};
use std::collections::HashMap;
use unwedge_isa::amdgcn::descriptor::SIZE;
use unwedge_isa::amdgcn::entry::{EntryRegCounts, KernelEntry};
use unwedge_isa::amdgcn::kernel_code;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_isa::amdgcn::{Gpu, GpuError};

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

/// A section with functions, ready to be checked. Functions for waves of different lengths are in sections of their own,
/// with the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedSection {
    /// Its index in [`CodeObject::sections`].
    pub section: usize,
    /// Its address, of an object that is not linked.
    pub address: u64,
    /// Its bytes, relocated as far as the section tells.
    pub code: Vec<u8>,
    /// Dwords of the code, in bytes, that are not known before the object is linked.
    pub unknown: Vec<u32>,
    /// Its functions; never empty.
    pub functions: Vec<LoadedFunction>,
    /// Whether waves have 32 lanes, if there is a choice and it is told.
    pub wave32: Option<bool>,
}

/// A function of a [`LoadedSection`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedFunction {
    /// Its name; empty where no symbol names it.
    pub name: String,
    /// Where it begins in its section, in bytes.
    pub at: u32,
    /// What is set where it begins; `None` where nothing says that the GPU starts it.
    pub start: Option<FunctionStart>,
    /// Whether it may be called: nothing in the object says that the GPU starts it.
    pub called: bool,
}

/// The section of a function of an object that is linked, ready to run: functions call each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedSection {
    /// Its address relative to the object's.
    pub address: u64,
    /// Its dwords.
    pub words: Vec<u32>,
    /// Names of its functions, with where they begin in bytes.
    pub functions: Vec<(String, u32)>,
    /// The function that is run.
    pub name: String,
    /// Where it begins in the section, in bytes.
    pub entry: u32,
    /// Its descriptor; `None` where it is not a kernel of HSA.
    pub descriptor: Option<[u8; SIZE]>,
}

/// Why the GPU of an object is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProcessorError {
    /// It does not name its processor.
    #[error("the code object does not name its processor")]
    None,
    /// Its processor is not known.
    #[error(transparent)]
    Unknown(#[from] GpuError),
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

impl FunctionStart {
    /// A GPU in the mode that the function is for: waves of 32 or 64 lanes, where that is told.
    #[must_use]
    pub fn mode(self, gpu: Gpu) -> Gpu {
        self.wave32.map_or(gpu, |wave32| gpu.with_wave64(!wave32))
    }
}

impl LoadedSection {
    /// A GPU in the mode that the functions are for, as [`FunctionStart::mode`].
    #[must_use]
    pub fn mode(&self, gpu: Gpu) -> Gpu {
        self.wave32.map_or(gpu, |wave32| gpu.with_wave64(!wave32))
    }
}

impl LoadedKernel {
    /// Loads a function by its name.
    ///
    /// # Errors
    /// When the object has no function of this name, or is for another processor than `gpu`.
    pub fn load(object: &CodeObject<'_>, name: &str, gpu: &Gpu) -> Result<LoadedKernel, LoadError> {
        if let Some(processor) = object.other_processor(gpu) {
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
        let starts = FunctionStarts::of(object);
        let inside = unknown.into_iter().filter(|at| (first..end).contains(&u64::from(*at)));
        LoadedKernel {
            name: function.name.to_owned(),
            address: function.address,
            code,
            unknown: inside.map(|at| at.wrapping_sub(first as u32)).collect(),
            start: starts.start(function.name, gpu.generation()),
            entry: starts.descriptors.get(function.name).map(|bytes| KernelEntry::of(bytes, gpu)),
            arguments: object.arguments(function.name),
        }
    }
}

/// What an object tells about the start of its functions. It may have many of them, so this is read once for all.
struct FunctionStarts<'c> {
    descriptors: HashMap<&'c str, [u8; SIZE]>,
    /// The stages of pipelines of PAL by the function that is their code. What the hardware sets for stages of graphics depends on
    /// how they are merged, and is not told.
    stages: HashMap<String, PalStage>,
    /// The register that Mesa's objects list.
    rsrc2: Option<u32>,
}

impl<'c> FunctionStarts<'c> {
    fn of(object: &'c CodeObject<'_>) -> FunctionStarts<'c> {
        let mut stages = HashMap::new();
        for stage in object.notes().filter_map(metadata::stages).flatten() {
            stages.entry(stage.entry.clone()).or_insert(stage);
        }
        let rsrc2 = object.config(4 * COMPUTE_PGM_RSRC2);
        FunctionStarts { descriptors: object.launch_descriptors(), stages, rsrc2 }
    }

    fn start(&self, function: &str, generation: Gfx) -> Option<FunctionStart> {
        if let Some(bytes) = self.descriptors.get(function) {
            return Some(EntryRegCounts::of(bytes, generation).into());
        }
        if let Some(stage) = self.stages.get(function) {
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
        Some(EntryRegCounts::of_rsrc2(self.rsrc2?, generation).into())
    }
}

impl CodeObject<'_> {
    /// The GPU that the object names.
    ///
    /// # Errors
    /// When it names none, or one that is not known.
    pub fn gpu(&self) -> Result<Gpu, ProcessorError> {
        let gpu = Gpu::new(self.processor().ok_or(ProcessorError::None)?)?;
        match self.xnack() {
            Some(true) => Ok(gpu.with_features("+xnack")?),
            Some(false) => Ok(gpu.with_features("-xnack")?),
            None => Ok(gpu),
        }
    }

    /// The processor that the object names, if it is not that of a GPU ([`is_other_processor`]).
    pub fn other_processor(&self, gpu: &Gpu) -> Option<&'static str> {
        self.processor().filter(|own| is_other_processor(own, gpu))
    }

    /// The sections with functions, or with the one of a name. With `mode`, what functions say of the length of waves
    /// counts. Code that no symbol covers is a function if it is all there is of its section.
    pub fn loaded_sections(&self, wanted: Option<&str>, gpu: &Gpu, mode: bool) -> Vec<LoadedSection> {
        let mut sections: Vec<LoadedSection> = Vec::new();
        let starts = FunctionStarts::of(self);
        for function in self.functions() {
            let Some(section) = self.sections.get(function.section) else { continue };
            let at = function.address.wrapping_sub(section.address) as u32;
            if wanted.is_some_and(|name| name != function.name) || function.name.is_empty() && at != 0 {
                continue;
            }
            let start = starts.start(function.name, gpu.generation());
            let wave32 = start.and_then(|start| start.wave32).filter(|_| mode);
            let called = start.is_none() && !function.kernel;
            let loaded = LoadedFunction { name: function.name.to_owned(), at, start, called };
            let same = |known: Option<bool>| known.is_none() || wave32.is_none() || known == wave32;
            let known = sections.iter_mut().find(|it| it.section == function.section && same(it.wave32));
            if let Some(known) = known {
                known.functions.push(loaded);
                known.wave32 = known.wave32.or(wave32);
                continue;
            }
            let (code, unknown) = self.relocated(function.section);
            let (address, functions) = (section.address, vec![loaded]);
            let section = function.section;
            sections.push(LoadedSection { section, address, code, unknown, functions, wave32 });
        }
        sections
    }

    /// The section to run a function of: the one of a name; or the first kernel of HSA, or the first function if there is
    /// none. The object has to be linked.
    pub fn linked_section(&self, wanted: Option<&str>) -> Option<LinkedSection> {
        let functions = self.functions();
        let mut fitting =
            functions.iter().filter(|function| wanted.is_none_or(|name| name == function.name)).peekable();
        let first = fitting.peek().copied();
        // Functions that kernels call may stand before them.
        let descriptors = self.launch_descriptors();
        let found = fitting.find(|function| descriptors.contains_key(function.name)).or(first)?;
        let section = self.sections.get(found.section)?;
        let at = |function: &CodeFunction<'_>| function.address.wrapping_sub(section.address) as u32;
        let siblings = functions.iter().filter(|function| function.section == found.section);
        Some(LinkedSection {
            address: section.address,
            words: section.bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
            functions: siblings.map(|function| (function.name.to_owned(), at(function))).collect(),
            name: found.name.to_owned(),
            entry: at(found),
            descriptor: descriptors.get(found.name).copied(),
        })
    }

    /// The descriptors of kernels by name. The fields of headers of HSA v2 are put in the form of a descriptor.
    fn launch_descriptors(&self) -> HashMap<&str, [u8; SIZE]> {
        let headers = self.kernel_headers().into_iter();
        let mut all: HashMap<_, _> =
            headers.map(|(name, header)| (name, kernel_code::as_descriptor(header))).collect();
        let described = self.descriptors().into_iter();
        all.extend(described.filter_map(|(name, bytes)| Some((name, bytes.try_into().ok()?))));
        all
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
        FunctionStarts::of(self).start(function, gpu.generation())
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
