//! A compiled compute shader on the emulator: memory as a driver lays it out, what buffers hold afterwards, and whether the interpreter of the
//! shader IR leaves the same.

use super::{CompileView, CompileViewError, Options, kernel};
use crate::asm::run::{FaultLine, fault_line};
use crate::plural::counted;
use crate::shader::request::descriptor_name;
use crate::shader::run::BufferDump;
use crate::shader::{OutputRequest, Workgroups};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use thiserror::Error;
use unwedge_aco::Compiled;
use unwedge_aco::abi::{Argument, descriptor_bytes, descriptor_offset};
use unwedge_capture::elf::NotCodeObject;
use unwedge_hw::amd::formats;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch as ShaderDispatch, Limits as ShaderLimits, NoImages,
    Options as ShaderOptions, RunError, run_compute,
};
use unwedge_shader::ir::{ResourceClass, Shader, Stage};
use unwedge_sim::amdgcn::{
    Dispatch, Initial, MAX_GROUPS, MapError, Program, SCRATCH_BUFFER, SimMemory, Timing, Watch, watch,
};
use unwedge_sim::hsa::LaunchError;

/// Steps of the interpreter for an instruction of the code, at most.
const STEPS_OF_INSTRUCTION: u64 = 16;
/// Low words of the addresses of descriptor sets start here.
const TABLES: u64 = 0x0001_0000;
/// The code.
const CODE: u64 = 0x4000_0000;
/// Buffers, one after the other.
pub(super) const BUFFERS: u64 = 0x1_0000_0000;
/// Bytes of a table: it is as large as its last descriptor is far.
pub(super) const TABLE_LIMIT: u32 = 1 << 20;
/// Bytes of all tables.
const TABLES_LIMIT: usize = 1 << 26;
/// What starts of tables and buffers are multiples of; at least as much is free between them.
pub(super) const ALIGNMENT: u64 = 0x1_0000;

/// A run on the emulator.
#[derive(Debug)]
pub struct EmulationRequest<'a> {
    /// Workgroups.
    pub workgroups: Workgroups,
    /// Instructions that a workgroup may execute. Where there are many workgroups, each may execute its share of a bound for all of them.
    pub steps: u64,
    /// Time everything as badly as hardware may, by this seed.
    pub seed: Option<u64>,
    /// Threads of this machine.
    pub threads: usize,
    /// Compare with the interpreter.
    pub compare: bool,
    /// Buffers that are wanted afterwards; all that change, if there are none.
    pub outputs: &'a [OutputRequest],
}

/// Why there is no result.
#[derive(Debug, Error)]
pub enum EmulationError {
    /// A graphics stage.
    #[error("{0} shaders are not run; compute shaders are")]
    Stage(&'static str),
    /// The shader has images or samplers.
    #[error("the shader has {0}, and --run binds buffers only")]
    Resource(&'static str),
    /// A buffer is wanted that is not bound.
    #[error("--out {}: no --buffer is given for it", descriptor_name(*.0))]
    Unbound(BindingPoint),
    /// A descriptor has no place, or one that is too far.
    #[error("the place of descriptor {} in its set is not known, or too far", descriptor_name(*.0))]
    Descriptor(BindingPoint),
    /// More workgroups than are run.
    #[error("--groups asks for {0} workgroups; at most {MAX_GROUPS} are run")]
    Groups(u64),
    /// Memory is too large.
    #[error(transparent)]
    Memory(#[from] MapError),
    /// The code object of the kernel cannot be made.
    #[error(transparent)]
    Object(#[from] CompileViewError),
    /// The code object of the kernel cannot be read.
    #[error(transparent)]
    NotRead(#[from] NotCodeObject),
    /// The code object has no kernel descriptor.
    #[error("the code object has no kernel")]
    NoKernel,
    /// The kernel cannot be launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The interpreter does not come to the end.
    #[error("the interpreter: {0}")]
    Interpreter(#[from] RunError),
}

impl EmulationError {
    /// The error for resources of a class that `--run` does not bind.
    pub(super) fn of_class(class: ResourceClass) -> EmulationError {
        EmulationError::Resource(match class {
            ResourceClass::UniformTexelBuffer | ResourceClass::StorageTexelBuffer => "texel buffers",
            ResourceClass::Sampler => "samplers",
            _ => "images",
        })
    }
}

/// Where a buffer is not what the interpreter leaves.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Difference {
    set: u32,
    binding: u32,
    index: u32,
    /// The first byte that differs, rounded down to a word.
    byte: usize,
    code: String,
    interpreter: String,
    /// Words that differ.
    words: usize,
}

/// The part of the JSON object about a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RunReport<'a> {
    workgroups: [u32; 3],
    instructions: u64,
    faults: &'a [FaultLine],
    /// Whether the interpreter leaves the same; absent if it was not asked, does not come to the end, or reports what Vulkan leaves undefined.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal: Option<bool>,
    /// Findings of the interpreter.
    #[serde(skip_serializing_if = "crate::json::is_zero")]
    findings: usize,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    differences: &'a [Difference],
    buffers: &'a [BufferDump],
}

/// Why what the code leaves is not compared with what the interpreter leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotCompared {
    /// So many findings of the interpreter.
    #[error(
        "the shader does what Vulkan leaves undefined ({}; see shader run), so results differ",
        counted(*.0 as u64, "finding", "findings")
    )]
    Undefined(usize),
    /// It has executed so many instructions.
    #[error("the interpreter has not come to the end after {0} steps")]
    Steps(u64),
}

/// What came of a run.
#[derive(Debug)]
pub struct EmulationView {
    workgroups: [u32; 3],
    instructions: u64,
    faults: Vec<FaultLine>,
    /// Whether it was compared; `None` if that was not asked.
    comparison: Option<Result<(), NotCompared>>,
    differences: Vec<Difference>,
    buffers: Vec<BufferDump>,
}

/// A descriptor of a buffer of plain bytes.
pub(super) fn descriptor(base: u64, size: u64, generation: Gfx) -> [u32; 4] {
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    [base as u32, (base >> 32) as u32, size, formats::raw_buffer(generation).unwrap_or_default()]
}

/// The descriptor of scratch memory, for code up to gfx10.
fn scratch_descriptor(gpu: &Gpu) -> [u32; 4] {
    let swizzled = 1 << 31;
    let stride = if gpu.wave64() { 3 << 21 } else { 2 << 21 };
    let rest = match gpu.generation() {
        Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 => 1 << 19,
        generation if generation >= Gfx::Gfx10 => 3 << 28,
        _ => 0,
    };
    [SCRATCH_BUFFER as u32, (SCRATCH_BUFFER >> 32) as u32 | swizzled, u32::MAX, stride | 1 << 23 | rest]
}

fn word(bytes: &[u8], number: usize) -> u32 {
    let bytes = bytes.get(number * 4..).unwrap_or_default();
    bytes.iter().take(4).rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// The initial state of a run.
pub(super) struct EmulationStart {
    pub memory: SimMemory,
    /// By number of a memory of the bindings: its address.
    pub buffers: Vec<u64>,
    pub program: Program,
    pub dispatch: Dispatch,
}

/// The address for whatever follows `size` bytes at `start`.
fn after(start: u64, size: usize) -> u64 {
    (start + size as u64 + ALIGNMENT).next_multiple_of(ALIGNMENT)
}

/// Maps the memories of bindings from an address on. Returns the address of each, and the next free one.
pub(super) fn map_buffers(
    bindings: &Bindings,
    memory: &mut SimMemory,
    first: u64,
) -> Result<(Vec<u64>, u64), MapError> {
    let mut buffers = Vec::new();
    let mut next = first;
    for bytes in &bindings.memory {
        buffers.push(next);
        if !bytes.is_empty() {
            memory.map(next, bytes.clone())?;
        }
        next = after(next, bytes.len());
    }
    Ok((buffers, next))
}

/// Memory of a run: where the tables of descriptor sets, push constants and buffers are.
struct Layout {
    memory: SimMemory,
    /// By set: the low word of its address.
    tables: BTreeMap<u32, u32>,
    push: u32,
    /// By number of a memory of the bindings: its address.
    buffers: Vec<u64>,
}

impl Layout {
    fn of(shader: &Shader, bindings: &Bindings, options: &Options) -> Result<Layout, EmulationError> {
        let generation = options.gpu.generation();
        let high = u64::from(options.address_high) << 32;
        let mut memory = SimMemory::default();
        let (buffers, _) = map_buffers(bindings, &mut memory, BUFFERS)?;
        let mut sets: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        let mut held = 0;
        let mut place = |point: BindingPoint, offset: Option<u32>, words: &[u32]| {
            let table = sets.entry(point.set).or_default();
            let refused = EmulationError::Descriptor(point);
            let Some(offset) = offset.filter(|offset| *offset < TABLE_LIMIT) else { return Err(refused) };
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let range = offset as usize..offset as usize + bytes.len();
            held += range.end.saturating_sub(table.len());
            if held > TABLES_LIMIT {
                return Err(refused);
            }
            table.resize(table.len().max(range.end), 0);
            table[range].copy_from_slice(&bytes);
            Ok(())
        };
        for resource in shader.resources.values() {
            let class = match resource.class {
                class @ (ResourceClass::UniformBuffer | ResourceClass::StorageBuffer) => class,
                class => return Err(EmulationError::of_class(class)),
            };
            let (set, binding) = (resource.set, resource.binding);
            let first = descriptor_offset(shader, set, binding);
            // What is not bound has a descriptor of no bytes.
            place(BindingPoint { set, binding, index: 0 }, first, &[0; 4])?;
            let own =
                bindings.buffers.iter().filter(|(point, _)| (point.set, point.binding) == (set, binding));
            for (point, view) in own {
                let offset = point.index.checked_mul(descriptor_bytes(class));
                let offset = offset.zip(first).and_then(|(offset, first)| offset.checked_add(first));
                let words = descriptor(buffers[view.memory] + view.offset, view.size, generation);
                place(*point, offset, &words)?;
            }
        }
        let mut low = TABLES;
        let mut tables = BTreeMap::new();
        for (set, bytes) in sets {
            tables.insert(set, low as u32);
            low = after(low, bytes.len());
            memory.map(high | u64::from(tables[&set]), bytes)?;
        }
        let push = low as u32;
        // Loads of push constants may be of whole cache lines.
        let mut bytes = bindings.push.clone();
        bytes.resize(bytes.len().next_multiple_of(64).max(256), 0);
        memory.map(high | low, bytes)?;
        Ok(Layout { memory, tables, push, buffers })
    }

    /// Sets the registers as a driver does.
    fn set_registers(&self, compiled: &Compiled, gpu: &Gpu, push: &[u8], dispatch: &mut Dispatch) {
        let groups = dispatch.groups;
        dispatch.lds = compiled.code.lds_bytes;
        dispatch.scratch = compiled.code.scratch_bytes;
        dispatch.mode = 0x100 | u32::from(compiled.float_mode);
        dispatch.group_id_in_ttmp = gpu.generation() >= Gfx::Gfx12;
        for location in compiled.args.iter() {
            let reg = location.reg.reg();
            let vector = reg.index() as u8;
            let scalar = match location.argument {
                Argument::WorkgroupId(axis) => {
                    dispatch.group_id[usize::from(axis)] = Some(reg.0);
                    continue;
                }
                Argument::LocalId(axis) => {
                    dispatch.vectors.push((vector, Initial::LocalId(axis)));
                    continue;
                }
                Argument::LocalIdsPacked => {
                    dispatch.vectors.push((vector, Initial::PackedLocalIds));
                    continue;
                }
                Argument::RingOffsets => {
                    let words = (reg.0..).zip(scratch_descriptor(gpu));
                    dispatch.scalars.extend(words.take(location.dwords.into()));
                    continue;
                }
                Argument::DescriptorSet(set) => self.tables.get(&set).copied(),
                Argument::PushConstant(number) => Some(word(push, number as usize)),
                Argument::PushConstants => Some(self.push),
                Argument::NumWorkgroups(axis) => Some(groups[usize::from(axis)]),
                Argument::ScratchOffset => Some(0),
                _ => None,
            };
            dispatch.scalars.extend(scalar.map(|scalar| (reg.0, scalar)));
        }
    }

    /// The initial state of a run as a driver sets it up.
    fn start(
        shader: &Shader,
        compiled: &Compiled,
        bindings: &Bindings,
        options: &Options,
        mut dispatch: Dispatch,
    ) -> Result<EmulationStart, EmulationError> {
        let layout = Layout::of(shader, bindings, options)?;
        layout.set_registers(compiled, &options.gpu, &bindings.push, &mut dispatch);
        let program = Program::new(&compiled.code.words, CODE, options.gpu);
        Ok(EmulationStart { memory: layout.memory, buffers: layout.buffers, program, dispatch })
    }
}

/// A shader that flushes denormals as its code does, where it leaves that to the machine.
fn as_compiled(shader: &Shader, float_mode: u8) -> Shader {
    let mut shader = shader.clone();
    // Widths of 16 and 64 bits share two bits.
    for (mode, shift) in shader.info.float_modes.iter_mut().zip([6, 4, 6]) {
        mode.flush.get_or_insert(float_mode >> shift & 3 == 0);
    }
    shader
}

impl EmulationView {
    /// Runs compiled code of a shader, which is given as it was before it was lowered. Buffers have their content afterwards.
    ///
    /// # Errors
    /// What cannot be run.
    pub fn of(
        shader: &Shader,
        compiled: &CompileView,
        options: &Options,
        bindings: &mut Bindings,
        request: &EmulationRequest<'_>,
    ) -> Result<EmulationView, EmulationError> {
        if shader.info.stage != Stage::Compute {
            return Err(EmulationError::Stage(shader.info.stage.name()));
        }
        let unbound = |output: &&OutputRequest| !bindings.buffers.contains_key(&output.point);
        if let Some(output) = request.outputs.iter().find(unbound) {
            return Err(EmulationError::Unbound(output.point));
        }
        let groups = request.workgroups.0.iter().fold(1u64, |all, axis| all.saturating_mul((*axis).into()));
        if groups > MAX_GROUPS.into() {
            return Err(EmulationError::Groups(groups));
        }
        let gpu = &options.gpu;
        let dispatch = Dispatch {
            groups: request.workgroups.0,
            size: shader.info.workgroup_size,
            steps: request.steps,
            timing: request.seed.map_or(Timing::Plain, |seed| Timing::Adversarial { seed }),
            threads: request.threads,
            ..Dispatch::default()
        }
        .bounded();
        let start = match &compiled.compiled.args.kernel {
            Some(args) => kernel::start(compiled, args, bindings, options, dispatch),
            None => Layout::start(shader, &compiled.compiled, bindings, options, dispatch),
        };
        let EmulationStart { mut memory, buffers, program, dispatch } = start?;
        let outcome = watch(&program, &mut memory, &dispatch, Watch::Nobody);
        let before = bindings.memory.clone();
        for (bytes, address) in bindings.memory.iter_mut().zip(&buffers) {
            if let Some(left) = memory.get(*address, bytes.len()) {
                bytes.copy_from_slice(left);
            }
        }
        let mut view = EmulationView {
            workgroups: request.workgroups.0,
            instructions: outcome.steps,
            faults: outcome.faults.iter().map(|fault| fault_line(&program, fault)).collect(),
            comparison: None,
            differences: Vec::new(),
            buffers: Vec::new(),
        };
        if request.compare {
            let own = Bindings { memory: before.clone(), ..bindings.clone() };
            let flushing = as_compiled(shader, compiled.compiled.float_mode);
            view.compare(&flushing, [false; 3], &mut own.clone(), bindings, gpu, request)?;
            // Minima and maxima of GPUs before gfx9 keep denormals in every mode, and so does memory in atomic operations. The shader allows that, too.
            if flushing.info.float_modes != shader.info.float_modes && !view.differences.is_empty() {
                let differences = std::mem::take(&mut view.differences);
                let open = shader.info.float_modes.map(|mode| mode.flush.is_none());
                view.compare(&flushing, open, &mut own.clone(), bindings, gpu, request)?;
                if !view.differences.is_empty() || view.not_compared().is_some() {
                    (view.differences, view.comparison) = (differences, Some(Ok(())));
                }
            }
        }
        for (&point, buffer) in &bindings.buffers {
            let Some(bytes) = bindings.memory.get(buffer.memory) else { continue };
            let asked = request.outputs.iter().any(|output| output.point == point && output.file.is_none());
            let changed = before.get(buffer.memory).is_some_and(|before| before != bytes);
            if asked || request.outputs.is_empty() && changed {
                view.buffers.push(BufferDump::of(point, bytes));
            }
        }
        Ok(view)
    }

    /// Runs the interpreter on `own`, and compares it with what the code left. Minima and maxima may keep denormals that other operations flush.
    fn compare(
        &mut self,
        shader: &Shader,
        extremes_keep_denormals: [bool; 3],
        own: &mut Bindings,
        left: &Bindings,
        gpu: &Gpu,
        request: &EmulationRequest<'_>,
    ) -> Result<(), EmulationError> {
        let subgroup_size = gpu.lanes();
        // The interpreter counts the steps of all waves.
        let [x, y, z] = request.workgroups.0.map(u64::from);
        let waves = shader
            .info
            .workgroup_size
            .iter()
            .fold(1, |lanes: u64, size| lanes.saturating_mul((*size).into()));
        let waves =
            waves.div_ceil(subgroup_size.into()).saturating_mul(x).saturating_mul(y).saturating_mul(z);
        // The code has come to its end, or used up its own steps: the interpreter does not need many times as many.
        let defaults = ShaderLimits::default();
        let enough = self.instructions.saturating_mul(STEPS_OF_INSTRUCTION).saturating_add(defaults.steps);
        let limits = ShaderLimits { steps: request.steps.saturating_mul(waves).min(enough), ..defaults };
        let options =
            ShaderOptions { subgroup_size, limits, extremes_keep_denormals, ..ShaderOptions::default() };
        let ran =
            run_compute(shader, ShaderDispatch::new(request.workgroups.0), own, &mut NoImages, &options);
        let comparison = match ran {
            Ok(report) if report.findings.is_empty() => Ok(()),
            Ok(report) => Err(NotCompared::Undefined(report.findings.len())),
            Err(RunError::Steps(steps)) => Err(NotCompared::Steps(steps)),
            Err(error) => return Err(error.into()),
        };
        self.comparison = Some(comparison);
        if comparison.is_err() {
            return Ok(());
        }
        for (&BindingPoint { set, binding, index }, buffer) in &left.buffers {
            let (Some(code), Some(wanted)) = (left.memory.get(buffer.memory), own.memory.get(buffer.memory))
            else {
                continue;
            };
            let differ = |number: &usize| word(code, *number) != word(wanted, *number);
            let mut differing = (0..code.len().div_ceil(4)).filter(differ);
            if let Some(first) = differing.next() {
                self.differences.push(Difference {
                    set,
                    binding,
                    index,
                    byte: first * 4,
                    code: format!("{:08x}", word(code, first)),
                    interpreter: format!("{:08x}", word(wanted, first)),
                    words: 1 + differing.count(),
                });
            }
        }
        Ok(())
    }

    /// Whether there were no faults, and what the interpreter leaves is the same if it was asked.
    pub fn is_good(&self) -> bool {
        self.faults.is_empty() && self.differences.is_empty()
    }

    /// Why it was not compared with the interpreter, if that was asked.
    pub fn not_compared(&self) -> Option<NotCompared> {
        self.comparison.and_then(Result::err)
    }

    fn is_equal(&self) -> Option<bool> {
        matches!(self.comparison, Some(Ok(()))).then_some(self.differences.is_empty())
    }

    pub(super) fn report(&self) -> RunReport<'_> {
        RunReport {
            workgroups: self.workgroups,
            instructions: self.instructions,
            faults: &self.faults,
            equal: self.is_equal(),
            findings: match self.not_compared() {
                Some(NotCompared::Undefined(findings)) => findings,
                _ => 0,
            },
            differences: &self.differences,
            buffers: &self.buffers,
        }
    }

    /// Faults, differences, buffers, and a line that sums up.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for fault in &self.faults {
            write!(out, "{fault}")?;
        }
        for buffer in &self.buffers {
            buffer.text(out)?;
        }
        for Difference { set, binding, index, byte, code, interpreter, words } in &self.differences {
            let point = BindingPoint { set: *set, binding: *binding, index: *index };
            let words = counted(*words as u64, "word differs", "words differ");
            let name = descriptor_name(point);
            writeln!(
                out,
                "buffer {name}: {words} from what the interpreter leaves, the first at byte {byte:#x}: {code}, not {interpreter}"
            )?;
        }
        if self.is_equal() == Some(true) {
            writeln!(out, "the interpreter leaves the same")?;
        }
        let workgroups: u64 = self.workgroups.iter().fold(1, |all, &n| all.saturating_mul(n.into()));
        writeln!(
            out,
            "{}, {}, {}",
            counted(workgroups, "workgroup", "workgroups"),
            counted(self.instructions, "instruction", "instructions"),
            counted(self.faults.len() as u64, "fault", "faults")
        )
    }
}
