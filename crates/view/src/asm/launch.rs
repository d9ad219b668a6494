//! What `amd run` runs, as its options spell it: registers, sizes and memory, and code made ready to run.
//!
//! Never: opens a file.

use super::step::Loaded;
use super::{number, scalar};
use crate::plural::counted;
use std::path::Path;
use unwedge_capture::elf::{CodeObject, LinkError};
use unwedge_isa::amdgcn::entry::KernelEntry;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_sim::amdgcn::{Dispatch, Initial, MAX_GROUPS, MapError, Program, SimMemory, Timing};
use unwedge_sim::hsa::{self, LaunchError, LaunchOptions, LaunchWarning};

/// Where code lies that does not say where.
const CODE: u64 = 0x7f00_0000_0000;
/// The MODE register of graphics: denormals of 16 and 64 bits, clamping of NaN.
const MODE: u32 = 0x1c0;
/// Bytes of GDS.
const GDS: u32 = 4096;
/// The most threads of a workgroup.
const THREADS: u32 = 1024;
/// The most bytes of scratch of a lane.
const SCRATCH: u32 = 1 << 20;

/// An option that cannot be understood, or asks for what a GPU does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunOptionError {
    /// Not a number.
    #[error("`{0}` is not a number")]
    NotANumber(String),
    /// A number that does not fit a register.
    #[error("`{0}` has more than 32 bits")]
    TooWide(String),
    /// More numbers than there are axes.
    #[error("`{0}` has more than three axes")]
    TooManyAxes(String),
    /// An axis with nothing along it.
    #[error("`{text}`: an axis without any {what}")]
    EmptyAxis {
        /// The option.
        text: String,
        /// What is counted along the axes.
        what: &'static str,
    },
    /// More than a dispatch can have.
    #[error("`{text}`: there can be at most {most} {what}")]
    TooMany {
        /// The option.
        text: String,
        /// The most that there can be.
        most: u32,
        /// What is counted along the axes.
        what: &'static str,
    },
    /// Not the name of a scalar register.
    #[error("`{0}` is not a scalar register")]
    NotScalar(String),
    /// Not the name of a vector register.
    #[error("`{0}` is not a vector register")]
    NotVector(String),
    /// A register without a value.
    #[error("`{0}` is not of the form REG=VALUE")]
    NotAssignment(String),
    /// More registers than a workgroup's place has.
    #[error("`{0}`: the place of a workgroup has three registers at most")]
    TooManyPlaces(String),
    /// A buffer without content.
    #[error("`{0}` is neither ADDRESS=FILE nor ADDRESS:BYTES")]
    NotABuffer(String),
    /// A buffer that is too large for this machine, or for its user.
    #[error("a buffer of {0} bytes is more than there is, or than --max-size allows")]
    BufferTooLarge(u64),
    /// Memory without a size.
    #[error("`{0}` is not of the form ADDRESS:BYTES")]
    NotARange(String),
    /// More memory of a kind than the GPU has.
    #[error("{} {of} asked for; there can be at most {most}", counted((*bytes).into(), "byte", "bytes"))]
    TooMuch {
        /// Bytes that are asked for.
        bytes: u32,
        /// `of LDS`.
        of: &'static str,
        /// The most that there can be.
        most: u32,
    },
    /// Something is mapped there already.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// Why code cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// An option does not fit.
    #[error(transparent)]
    Option(#[from] RunOptionError),
    /// Arguments are for kernels of HSA.
    #[error("{0} is not an HSA kernel: set registers with --sgpr and --vgpr")]
    NotKernel(String),
    /// A function is asked for, of code that does not name any.
    #[error("{0} is bare code, without names: --function finds nothing in it")]
    NoNames(String),
    /// The kernel cannot be launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The code object does not have the function.
    #[error("{0}: there is no such function")]
    NoFunction(String),
    /// The code object cannot be linked.
    #[error("{name}: {why}")]
    Link {
        /// What messages call the file.
        name: String,
        /// Why it cannot be linked.
        why: LinkError,
    },
}

/// A number: decimal, or hexadecimal after `0x`.
fn wide(text: &str) -> Result<u64, RunOptionError> {
    number(text).ok_or_else(|| RunOptionError::NotANumber(text.to_owned()))
}

fn small(text: &str) -> Result<u32, RunOptionError> {
    u32::try_from(wide(text)?).map_err(|_| RunOptionError::TooWide(text.to_owned()))
}

/// Up to three numbers that are not 0 and whose product is not above another; an axis that is left out has 1.
fn axes(text: &str, most: u32, what: &'static str) -> Result<[u32; 3], RunOptionError> {
    let mut all = [1; 3];
    for (at, part) in text.split(',').enumerate() {
        let axis = all.get_mut(at).ok_or_else(|| RunOptionError::TooManyAxes(text.to_owned()))?;
        *axis = small(part)?;
        if *axis == 0 {
            return Err(RunOptionError::EmptyAxis { text: text.to_owned(), what });
        }
    }
    let count = all.iter().try_fold(1u32, |count, n| count.checked_mul(*n)).filter(|count| *count <= most);
    count.map(|_| all).ok_or_else(|| RunOptionError::TooMany { text: text.to_owned(), most, what })
}

fn scalar_register(name: &str) -> Result<u16, RunOptionError> {
    scalar(name).ok_or_else(|| RunOptionError::NotScalar(name.to_owned()))
}

fn assignment(text: &str) -> Result<(&str, &str), RunOptionError> {
    text.split_once('=').ok_or_else(|| RunOptionError::NotAssignment(text.to_owned()))
}

/// A vector register, and what its lanes hold at first.
fn vector(text: &str) -> Result<(u8, Initial), RunOptionError> {
    let (name, value) = assignment(text)?;
    let register = name.strip_prefix('v').and_then(|digits| digits.parse::<u8>().ok());
    let register = register.ok_or_else(|| RunOptionError::NotVector(name.to_owned()))?;
    let value = match value {
        "local-id-x" => Initial::LocalId(0),
        "local-id-y" => Initial::LocalId(1),
        "local-id-z" => Initial::LocalId(2),
        "local-ids" => Initial::PackedLocalIds,
        _ => Initial::Value(small(value)?),
    };
    Ok((register, value))
}

/// What options say of a dispatch.
#[derive(Clone, Debug)]
pub struct DispatchSpec<'a> {
    /// Workgroups along each axis: `4,2,1`.
    pub groups: &'a str,
    /// Threads of a workgroup along each axis.
    pub size: &'a str,
    /// Bytes of LDS of a workgroup.
    pub lds: Option<&'a str>,
    /// What every workgroup finds at the begin of its LDS.
    pub lds_content: Vec<u8>,
    /// Bytes of scratch of a lane.
    pub scratch: &'a str,
    /// The MODE register.
    pub mode: Option<&'a str>,
    /// Instructions that a workgroup may execute.
    pub steps: u64,
    /// A seed of adversarial timing.
    pub seed: Option<u64>,
    /// Threads of this machine.
    pub threads: usize,
    /// Scalar registers: `s4=0x10`.
    pub scalars: &'a [String],
    /// Vector registers: `v0=local-id-x`.
    pub vectors: &'a [String],
    /// Scalar registers that get the workgroup's place: `s4,s5,s6`.
    pub group_id: Option<&'a str>,
}

impl DispatchSpec<'_> {
    /// The dispatch, on a GPU.
    fn read(&self, gpu: &Gpu) -> Result<Dispatch, RunOptionError> {
        let mut dispatch = Dispatch {
            groups: axes(self.groups, MAX_GROUPS, "workgroups")?,
            size: axes(self.size, THREADS, "threads of a workgroup")?,
            lds: self.lds.map_or(Ok(gpu.lds_bytes()), small)?,
            lds_content: self.lds_content.clone(),
            gds: GDS,
            scratch: small(self.scratch)?,
            mode: self.mode.map_or(Ok(MODE), small)?,
            steps: self.steps,
            timing: self.seed.map_or(Timing::Plain, |seed| Timing::Adversarial { seed }),
            threads: self.threads,
            group_id_in_ttmp: gpu.generation() >= Gfx::Gfx12,
            ..Dispatch::default()
        };
        for text in self.scalars {
            let (name, value) = assignment(text)?;
            dispatch.scalars.push((scalar_register(name)?, small(value)?));
        }
        for text in self.vectors {
            dispatch.vectors.push(vector(text)?);
        }
        if let Some(text) = self.group_id {
            for (at, name) in text.split(',').enumerate() {
                let register = dispatch.group_id.get_mut(at);
                *register.ok_or_else(|| RunOptionError::TooManyPlaces(text.to_owned()))? =
                    Some(scalar_register(name)?);
            }
        }
        Ok(dispatch.bounded())
    }
}

/// Checks that a workgroup can have what the command line or the kernel asks for.
fn check_fit(dispatch: &Dispatch, gpu: &Gpu) -> Result<(), RunOptionError> {
    for (bytes, most, of) in
        [(dispatch.lds, gpu.lds_bytes(), "of LDS"), (dispatch.scratch, SCRATCH, "of scratch for each lane")]
    {
        if bytes > most {
            return Err(RunOptionError::TooMuch { bytes, of, most });
        }
    }
    Ok(())
}

/// Memory of zeros, of which none is taken from the machine before it is written.
///
/// # Errors
/// When it is larger than `max_size`, or than there is.
pub fn zeros(size: u64, max_size: u64) -> Result<Vec<u8>, RunOptionError> {
    let fits = usize::try_from(size).ok().filter(|_| size <= max_size);
    let fits = fits.filter(|size| Vec::<u8>::new().try_reserve_exact(*size).is_ok());
    fits.map(|size| vec![0; size]).ok_or(RunOptionError::BufferTooLarge(size))
}

/// Maps a buffer: `ADDRESS=FILE`, whose content `read` gives, or `ADDRESS:BYTES`, which is zero.
///
/// # Errors
/// When it is neither, is larger than `max_size`, or overlaps another; and those of `read`.
pub fn map_buffer<E: From<RunOptionError>>(
    text: &str,
    memory: &mut SimMemory,
    max_size: u64,
    read: impl FnOnce(&Path) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let (address, bytes) = match (text.split_once('='), text.split_once(':')) {
        (Some((address, file)), _) => (address, read(Path::new(file))?),
        (None, Some((address, size))) => (address, zeros(wide(size)?, max_size)?),
        _ => return Err(RunOptionError::NotABuffer(text.to_owned()).into()),
    };
    memory.map(wide(address)?, bytes).map_err(RunOptionError::from)?;
    Ok(())
}

/// Memory that is wanted after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedMemory<'a> {
    /// `ADDRESS:BYTES`.
    pub range: &'a str,
    /// Where it begins.
    pub address: u64,
    /// How many bytes it has.
    pub size: u64,
    /// The file that it goes to, if it is not shown.
    pub file: Option<&'a str>,
}

impl<'a> WantedMemory<'a> {
    /// Reads `ADDRESS:BYTES` or `ADDRESS:BYTES=FILE`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &'a str) -> Result<WantedMemory<'a>, RunOptionError> {
        let (range, file) = text.split_once('=').map_or((text, None), |(range, file)| (range, Some(file)));
        let (address, size) =
            range.split_once(':').ok_or_else(|| RunOptionError::NotARange(range.to_owned()))?;
        Ok(WantedMemory { range, address: wide(address)?, size: wide(size)?, file })
    }

    /// Its bytes, where all of it is mapped.
    pub fn bytes<'m>(&self, memory: &'m SimMemory) -> Option<&'m [u8]> {
        usize::try_from(self.size).ok().and_then(|size| memory.get(self.address, size))
    }
}

/// How code is started.
#[derive(Clone, Debug)]
pub struct StartSpec<'a> {
    /// What messages call the file of the code.
    pub name: &'a str,
    /// The function of a code object; without it the first kernel, or the first function.
    pub function: Option<&'a str>,
    /// The dispatch.
    pub dispatch: DispatchSpec<'a>,
    /// Arguments of a kernel of HSA.
    pub arguments: &'a [String],
    /// The bytes of all arguments.
    pub kernarg: Option<Vec<u8>>,
    /// Waves are as the GPU's options say, not as the file does.
    pub keep_features: bool,
}

/// Code that is ready to run.
pub struct Started {
    /// The code.
    pub code: Loaded,
    /// In which state waves begin.
    pub dispatch: Dispatch,
    /// What a kernel of HSA may miss.
    pub warnings: Vec<LaunchWarning>,
}

impl StartSpec<'_> {
    fn has_arguments(&self) -> bool {
        !self.arguments.is_empty() || self.kernarg.is_some()
    }

    /// Starts a function of a code object, which is linked and mapped.
    ///
    /// # Errors
    /// When an option does not fit, the object does not have the function or cannot be linked, or a kernel cannot be
    /// launched.
    pub fn object(
        &self,
        object: &mut CodeObject<'_>,
        gpu: Gpu,
        memory: &mut SimMemory,
    ) -> Result<Started, StartError> {
        object.link(CODE).map_err(|why| StartError::Link { name: self.name.to_owned(), why })?;
        let section = object
            .linked_section(self.function)
            .ok_or_else(|| StartError::NoFunction(self.name.to_owned()))?;
        let base = CODE.wrapping_add(section.address);
        let code = |gpu: Gpu| Loaded {
            program: Program::new(&section.words, base, gpu),
            base,
            functions: section.functions.clone(),
        };
        let Some(descriptor) = section.descriptor else {
            if self.has_arguments() {
                return Err(StartError::NotKernel(section.name));
            }
            hsa::map(object, CODE, memory).map_err(RunOptionError::from)?;
            let dispatch = Dispatch { entry: section.entry, ..self.dispatch.read(&gpu)? };
            check_fit(&dispatch, &gpu)?;
            return Ok(Started { code: code(gpu), dispatch, warnings: Vec::new() });
        };
        let start = object.start(&section.name, &gpu).filter(|_| !self.keep_features);
        let gpu = start.map_or(gpu, |start| start.mode(gpu));
        let entry = KernelEntry::of(&descriptor, &gpu);
        // Registers of the options come after those of the kernel, and count.
        let own = self.dispatch.read(&gpu)?;
        let mut dispatch =
            Dispatch { entry: section.entry, scalars: Vec::new(), vectors: Vec::new(), ..own.clone() };
        hsa::map(object, CODE, memory).map_err(RunOptionError::from)?;
        let options = LaunchOptions {
            kernarg: self.kernarg.clone(),
            values: self.arguments,
            keep_lds: self.dispatch.lds.is_some(),
            keep_mode: self.dispatch.mode.is_some(),
        };
        let warnings = hsa::prepare(object, &section.name, &entry, &gpu, &options, &mut dispatch, memory)?;
        dispatch.scalars.extend(own.scalars);
        dispatch.vectors.extend(own.vectors);
        for (register, own) in dispatch.group_id.iter_mut().zip(own.group_id) {
            *register = own.or(*register);
        }
        check_fit(&dispatch, &gpu)?;
        Ok(Started { code: code(gpu), dispatch, warnings })
    }

    /// Checks that the options are for bare code: it has neither arguments nor functions.
    ///
    /// # Errors
    /// When they are not.
    pub fn check_bare(&self) -> Result<(), StartError> {
        match self.function {
            _ if self.has_arguments() => Err(StartError::NotKernel(self.name.to_owned())),
            Some(_) => Err(StartError::NoNames(self.name.to_owned())),
            None => Ok(()),
        }
    }

    /// Starts bare code.
    ///
    /// # Errors
    /// As [`StartSpec::check_bare`], and when an option does not fit.
    pub fn bare(&self, code: &[u8], gpu: Gpu) -> Result<Started, StartError> {
        self.check_bare()?;
        let (words, _) = code.as_chunks::<4>();
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let code = Loaded { program: Program::new(&words, CODE, gpu), base: CODE, functions: Vec::new() };
        let dispatch = self.dispatch.read(&gpu)?;
        check_fit(&dispatch, &gpu)?;
        Ok(Started { code, dispatch, warnings: Vec::new() })
    }
}
