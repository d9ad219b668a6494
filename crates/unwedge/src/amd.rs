//! Machine code of AMD GPUs: assembled, disassembled, checked and run.
//!
//! ```
//! use unwedge::amd::{Emit, Gpu, Loader, assemble, check, disassemble};
//! let gpu = Gpu::new("gfx900")?;
//! let source = ".text\n.globl main\n.type main,@function\nmain:\n s_endpgm\n.size main, 4\n";
//! let object = assemble(source, &gpu, Emit::Object(Loader::Hsa(5)))?;
//! assert!(disassemble(&object)?.contains("s_endpgm"));
//! assert!(check(&object, "main")?.findings.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use unwedge_capture::elf::{
    self, CodeObject, LinkError, LoadError, LoadedKernel, NotCodeObject, ProcessorError,
};
use unwedge_check::amdgcn::{self as checker, EntryPreset, ProgramEntry};
use unwedge_sim::amdgcn::{Dispatch, MapError, Outcome, Program, SimMemory, run as run_program};
use unwedge_sim::hsa::{self, LaunchError, LaunchOptions, LaunchWarning};
use unwedge_view::asm::amd::list_object;

pub use unwedge_capture::elf::Loader;
pub use unwedge_check::amdgcn::CheckReport;
pub use unwedge_isa::amdgcn::{Gpu, GpuError};
pub use unwedge_view::asm::amd::{Emit, assemble};

/// Where code objects lie when they run.
const BASE: u64 = 0x7f00_0000_0000;

/// Why something cannot be done with a code object.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// It is not a code object of an AMD GPU.
    #[error(transparent)]
    NotCodeObject(#[from] NotCodeObject),
    /// Its GPU is not known.
    #[error(transparent)]
    Processor(#[from] ProcessorError),
    /// It does not have the function.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It cannot be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The function has no kernel descriptor, so nothing says how to launch it.
    #[error("{0} is not a kernel")]
    NotKernel(String),
    /// Something is mapped already where it belongs.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The kernel cannot be launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// The object's GPU, with waves as long as a function asks for.
fn gpu_of(object: &CodeObject<'_>, function: &str) -> Result<Gpu, CodeError> {
    let gpu = object.gpu()?;
    Ok(object.start(function, &gpu).map_or(gpu, |start| start.mode(gpu)))
}

/// The text of a code object's functions.
///
/// # Errors
/// When it is not a code object, or of a GPU that is not known.
pub fn disassemble(object: &[u8]) -> Result<String, CodeError> {
    let object = elf::read(object)?;
    let gpu = object.gpu()?;
    let mut text = String::new();
    // All functions are asked for, so none is missing.
    let _ = list_object(&object, &gpu, false, None, &mut text);
    Ok(text)
}

/// Checks a function of a code object: what it does that its GPU does not do as it is written.
///
/// # Errors
/// When it is not a code object, of a GPU that is not known, or without the function.
pub fn check(object: &[u8], function: &str) -> Result<CheckReport, CodeError> {
    let object = elf::read(object)?;
    let gpu = gpu_of(&object, function)?;
    let kernel = LoadedKernel::load(&object, function, &gpu)?;
    let set = kernel.start.and_then(|start| start.registers);
    let preset = set.map(|set| EntryPreset { sgprs: set.sgprs, vgprs: set.vgprs });
    let entry = ProgramEntry { at: 0, preset, called: false };
    let options = checker::CheckOptions {
        entries: vec![entry],
        relocated: kernel.unknown,
        ..checker::CheckOptions::default()
    };
    Ok(checker::check(&kernel.code, &gpu, &options))
}

/// Runs a kernel of HSA on the emulator, over the caller's memory. Of `dispatch` counts what the kernel does not say: the
/// number and size of workgroups, the budget of steps, threads.
///
/// A kernel that writes a number to the address that is its argument:
///
/// ```
/// use unwedge::amd::{Emit, Gpu, Loader, assemble, run};
/// use unwedge::sim::amdgcn::{Dispatch, SimMemory};
/// use unwedge::sim::hsa::LaunchOptions;
/// let source = "
///     .text
///     .globl answer
///     .type answer,@function
///     answer:
///     s_load_dwordx2 s[0:1], s[0:1], 0x0
///     s_waitcnt lgkmcnt(0)
///     v_mov_b32 v0, 0
///     v_mov_b32 v1, 42
///     global_store_dword v0, v1, s[0:1]
///     s_endpgm
///     .Lend:
///     .size answer, .Lend - answer
///     .rodata
///     .amdhsa_kernel answer
///     .amdhsa_user_sgpr_kernarg_segment_ptr 1
///     .amdhsa_kernarg_size 8
///     .amdhsa_next_free_sgpr 8
///     .amdhsa_next_free_vgpr 2
///     .end_amdhsa_kernel
/// ";
/// let object = assemble(source, &Gpu::new("gfx900")?, Emit::Object(Loader::Hsa(5)))?;
/// let mut memory = SimMemory::default();
/// memory.map(0x1_0000, vec![0; 4])?;
/// let options = LaunchOptions { kernarg: Some(0x1_0000_u64.to_le_bytes().to_vec()), ..LaunchOptions::default() };
/// let (outcome, warnings) = run(&object, "answer", &options, Dispatch::default(), &mut memory)?;
/// assert!(outcome.faults.is_empty() && warnings.is_empty());
/// assert_eq!(memory.get(0x1_0000, 4), Some(&42_u32.to_le_bytes()[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When it is not a code object, of a GPU that is not known, without the kernel, or when the kernel cannot be launched.
pub fn run(
    object: &[u8],
    kernel: &str,
    launch: &LaunchOptions<'_>,
    mut dispatch: Dispatch,
    memory: &mut SimMemory,
) -> Result<(Outcome, Vec<LaunchWarning>), CodeError> {
    let mut object = elf::read(object)?;
    let gpu = gpu_of(&object, kernel)?;
    let loaded = LoadedKernel::load(&object, kernel, &gpu)?;
    let entry = loaded.entry.ok_or_else(|| CodeError::NotKernel(kernel.to_owned()))?;
    object.link(BASE)?;
    let section =
        object.linked_section(Some(kernel)).ok_or_else(|| CodeError::NotKernel(kernel.to_owned()))?;
    let program = Program::new(&section.words, BASE.wrapping_add(section.address), gpu);
    dispatch.entry = section.entry;
    hsa::map(&object, BASE, memory)?;
    let warnings = hsa::prepare(&object, kernel, &entry, &gpu, launch, &mut dispatch, memory)?;
    Ok((run_program(&program, memory, &dispatch, None), warnings))
}
