//! What commands and states point to: kernels, binding tables, surfaces, samplers, other states, buffers.
//!
//! The rows of `rows.rs` say which field of which command or structure is a pointer, what it counts from and what is there; what of it
//! is not the same on all generations stands beside it. Memory that a dump does not hold is absent, and never zero.
//!
//! Never: formatting, what a hang means.

mod media;
mod rows;

use super::commands::Command;
use super::state::{Base, IntelState, WalkedCommand};
use super::walk::{EventKind, IntelEvent, Space, Spaces, canonical};
pub(super) use rows::row_of_offset;
use rows::{ROWS, ReferenceRow, RowTarget};
use std::collections::{HashMap, HashSet};
use unwedge_hw::intel::{FieldLayout, FieldValue, IntelGpu, IntelInstruction, IntelValue};

/// A stage of the pipelines, or a unit that runs kernels of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShaderStage {
    /// Vertex shader.
    Vertex,
    /// Hull, or tessellation control shader.
    Hull,
    /// Domain, or tessellation evaluation shader.
    Domain,
    /// Geometry shader.
    Geometry,
    /// Pixel, or fragment shader.
    Pixel,
    /// Task shader.
    Task,
    /// Mesh shader.
    Mesh,
    /// Compute and media kernels.
    Compute,
    /// The clip unit's threads, gen4 and gen5.
    Clip,
    /// The strips and fans unit's threads, gen4 and gen5.
    StripsFans,
    /// The system routine: the exception handler.
    SystemRoutine,
}

impl ShaderStage {
    /// Every one, with its name and the letters that fields of commands have for it.
    const NAMES: [(ShaderStage, &'static str, &'static str); 11] = [
        (ShaderStage::Vertex, "vertex shader", "VS"),
        (ShaderStage::Hull, "tessellation control shader", "HS"),
        (ShaderStage::Domain, "tessellation evaluation shader", "DS"),
        (ShaderStage::Geometry, "geometry shader", "GS"),
        (ShaderStage::Pixel, "fragment shader", "PS"),
        (ShaderStage::Task, "task shader", "TASK_SHADER"),
        (ShaderStage::Mesh, "mesh shader", "MESH_SHADER"),
        (ShaderStage::Compute, "compute shader", "CS"),
        (ShaderStage::Clip, "clip thread", "CLIP"),
        (ShaderStage::StripsFans, "strips and fans thread", "SF"),
        (ShaderStage::SystemRoutine, "system routine", "SIP"),
    ];

    /// `fragment shader`
    pub fn name(self) -> &'static str {
        ShaderStage::NAMES.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// `PS`
    pub fn letters(self) -> &'static str {
        ShaderStage::NAMES.iter().find(|row| row.0 == self).map_or("", |row| row.2)
    }

    /// The stage whose letters stand in the name of a field.
    fn of_field(name: &str) -> Option<ShaderStage> {
        let word = |letters: &str| name.split(' ').any(|word| word == letters);
        ShaderStage::NAMES.iter().find(|row| word(row.2)).map(|row| row.0)
    }
}

/// How many channels a thread of a kernel works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DispatchWidth {
    /// So many, one register a component.
    Simd(u32),
    /// Two vectors of four components.
    Vec4,
}

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferUse {
    /// Vertices.
    Vertex,
    /// Indices.
    Index,
    /// Push constants of a stage.
    Constant,
    /// The constants of media and compute kernels.
    Curbe,
    /// The indirect data of a dispatch.
    IndirectData,
    /// Arguments of an indirect draw or dispatch.
    IndirectArguments,
    /// What stream output writes.
    StreamOut,
    /// Depth, stencil, and their auxiliary surfaces.
    Depth,
    /// Scratch space of threads.
    Scratch,
    /// A surface's memory.
    Surface,
    /// A surface's auxiliary memory.
    AuxSurface,
    /// A surface's clear color.
    ClearColor,
    /// What ray tracing keeps of its threads.
    RayTracing,
}

impl BufferUse {
    /// `vertex buffer`
    pub fn name(self) -> &'static str {
        match self {
            BufferUse::Vertex => "vertex buffer",
            BufferUse::Index => "index buffer",
            BufferUse::Constant => "push constants",
            BufferUse::Curbe => "CURBE",
            BufferUse::IndirectData => "indirect data",
            BufferUse::IndirectArguments => "indirect arguments",
            BufferUse::StreamOut => "stream output buffer",
            BufferUse::Depth => "depth buffer",
            BufferUse::Scratch => "scratch space",
            BufferUse::Surface => "surface memory",
            BufferUse::AuxSurface => "auxiliary surface memory",
            BufferUse::ClearColor => "clear color",
            BufferUse::RayTracing => "ray tracing buffer",
        }
    }
}

/// What a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceTarget {
    /// A kernel.
    Kernel {
        /// The stage that runs it.
        stage: ShaderStage,
        /// The channels of its threads, where the commands say it.
        width: Option<DispatchWidth>,
        /// The first register of its payload after the header, where the commands say it.
        grf: Option<u64>,
    },
    /// A binding table.
    BindingTable {
        /// The stage that uses it.
        stage: Option<ShaderStage>,
        /// Its entries, where a command says how many are prefetched: there may be more.
        entries: Option<u32>,
    },
    /// States, one after the other.
    States {
        /// The structure of the tables.
        structure: &'static str,
        /// How many, at least 1.
        count: u32,
        /// The stage that uses them.
        stage: Option<ShaderStage>,
        /// The channels of the threads that are started with them.
        width: Option<DispatchWidth>,
    },
    /// A buffer.
    Buffer {
        /// What it is for.
        usage: BufferUse,
        /// The bytes of it that are used, where a command says it.
        size: Option<u64>,
    },
}

/// A pointer, resolved against the state where it is.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// The field; empty for an entry of a binding table.
    pub field: &'static str,
    /// The elements of groups that the field is in; of an entry of a binding table its number.
    pub index: Option<u32>,
    /// What the field holds.
    pub offset: u64,
    /// What it counts from; `None` for an address.
    pub base: Option<Base>,
    /// The address; `None` where the base is not known.
    pub address: Option<u64>,
    /// What is there.
    pub target: ReferenceTarget,
}

/// Fields that are read of one command at most.
const MAX_FIELDS: usize = 4096;
/// References of one command at most.
const MAX_REFERENCES: usize = 256;
/// Descriptors that one command loads at most.
const MAX_DESCRIPTORS: u64 = 64;
/// Bytes of a descriptor.
const DESCRIPTOR: u64 = 32;
/// Render targets that blending is set for.
const RENDER_TARGETS: u32 = 8;
/// Entries of a binding table whose length no command says.
const USUAL_ENTRIES: u32 = 32;
/// Entries of a binding table at most.
const MAX_ENTRIES: u32 = 256;
/// Addresses of one stream that are looked up at most.
const MAX_LOOKED_UP: usize = 1 << 16;
/// GT_MODE, and the bit that makes binding table pointers count 256 bytes.
const GT_MODE: (u32, u32) = (0x7008, 10);

/// A state in memory.
#[derive(Clone, Copy, Debug)]
pub struct StateInMemory<'m> {
    /// The structure's name.
    pub name: &'static str,
    /// Its address.
    pub address: u64,
    /// Its number among those that are together.
    pub index: u32,
    /// Its length in dwords.
    pub dwords: u32,
    /// The dwords that the dump holds of it: fewer where the memory ends within.
    pub words: &'m [u32],
    layout: FieldLayout,
    stage: Option<ShaderStage>,
    width: Option<DispatchWidth>,
}

impl<'m> StateInMemory<'m> {
    /// Its fields.
    pub fn fields(&self) -> impl Iterator<Item = FieldValue> + use<'m> {
        self.layout.values(self.words, self.dwords)
    }

    /// The value of one of its own fields.
    pub fn value(&self, field: &str) -> Option<IntelValue> {
        self.layout.value(field, self.words)
    }

    /// The number in one of its own fields.
    pub fn number(&self, field: &str) -> Option<u64> {
        self.value(field)?.number()
    }
}

/// What a dump has where a reference leads.
#[derive(Clone, Debug)]
pub enum Referenced<'m> {
    /// The base is not known, so the address is not.
    Unknown,
    /// The dump does not hold the memory there.
    Absent,
    /// A kernel, and all that follows in its buffer.
    Kernel(&'m [u32]),
    /// The entries of a binding table, as far as the dump holds them, and how many there are to be.
    Table(&'m [u32], u32),
    /// States, as far as the dump holds them.
    States(Vec<StateInMemory<'m>>),
    /// The memory is in the dump.
    Held,
}

/// Follows a walk, and says of each command where it points.
#[derive(Debug)]
pub struct ReferenceWalk<'m> {
    state: IntelState<'m>,
    spaces: Spaces<'m>,
    gpu: IntelGpu,
    traits: HashMap<IntelInstruction, CommandTraits>,
    /// Commands whose pointers a later one of their kind has left as they were in part.
    earlier: Vec<WalkedCommand<'m>>,
}

impl<'m> ReferenceWalk<'m> {
    /// Nothing met yet.
    pub fn new(gpu: IntelGpu, spaces: Spaces<'m>) -> ReferenceWalk<'m> {
        ReferenceWalk {
            state: IntelState::new(gpu),
            spaces,
            gpu,
            traits: HashMap::new(),
            earlier: Vec::new(),
        }
    }

    /// The GPU whose commands it follows.
    pub fn gpu(&self) -> IntelGpu {
        self.gpu
    }

    /// The state as the commands met so far leave it.
    pub fn state(&self) -> &IntelState<'m> {
        &self.state
    }

    /// The next event of a walk; what its command points to, none for most.
    pub fn see(&mut self, event: &IntelEvent<'m>) -> Vec<Reference> {
        let traits = match event.kind {
            EventKind::Command(Command { instruction: Some(instruction), .. }) => {
                *self.traits.entry(instruction).or_insert_with(|| CommandTraits::of(instruction.name()))
            }
            _ => CommandTraits::default(),
        };
        if let EventKind::Command(command) = event.kind
            && traits.stays
        {
            self.keep_what_stays(&command);
        }
        self.state.see(event);
        match event.kind {
            EventKind::Command(command) if traits.points => self.of_command(&command),
            _ => Vec::new(),
        }
    }

    /// What all commands that are in force point to, in the order they were met.
    pub fn in_force(&self) -> Vec<(WalkedCommand<'m>, Vec<Reference>)> {
        let mut commands = self.state.commands();
        commands.extend(&self.earlier);
        commands.sort_by_key(|seen| std::cmp::Reverse(seen.index));
        // Of what a command left as it was, the one before it counts.
        let mut set = HashSet::new();
        let mut all = Vec::new();
        for seen in commands {
            let instruction = seen.command.instruction;
            let mut references = self.of_command(&seen.command);
            if seen.command.name().is_some_and(|name| CommandTraits::of(name).stays) {
                references.retain(|reference| set.insert((instruction, reference.field)));
            }
            if !references.is_empty() {
                all.push((seen, references));
            }
        }
        all.reverse();
        all
    }

    /// Keeps the last command of a kind where the next one leaves some of its pointers as they are.
    fn keep_what_stays(&mut self, command: &Command<'m>) {
        let Some(name) = command.name() else { return };
        let mut changed: HashSet<_> = self.of_command(command).iter().map(|found| found.field).collect();
        let of_kind = |seen: &WalkedCommand<'m>| seen.command.instruction == command.instruction;
        let (mut kind, mut others): (Vec<_>, Vec<_>) = self.earlier.drain(..).partition(of_kind);
        kind.extend(self.state.last(name));
        kind.sort_by_key(|seen| std::cmp::Reverse(seen.index));
        for seen in kind {
            let before = changed.len();
            changed.extend(self.of_command(&seen.command).iter().map(|found| found.field));
            if changed.len() > before {
                others.push(seen);
            }
        }
        self.earlier = others;
    }

    /// What a command points to, by the state now.
    pub fn of_command(&self, command: &Command<'_>) -> Vec<Reference> {
        let Some(name) = command.name() else { return Vec::new() };
        let mut found = Vec::new();
        if ROWS.iter().any(|row| row.is_of(name)) {
            let fields: Vec<FieldValue> = command.fields().take(MAX_FIELDS).collect();
            found = self.of_fields(name, &fields, None, None);
        }
        if media::picks_descriptor(name) {
            let fields: Vec<FieldValue> = command.fields().take(MAX_FIELDS).collect();
            found.extend(self.picked_descriptors(&fields));
        }
        found
    }

    /// What a state in memory points to.
    pub fn of_state(&self, state: &StateInMemory<'m>) -> Vec<Reference> {
        if !ROWS.iter().any(|row| row.is_of(state.name)) {
            return Vec::new();
        }
        let fields: Vec<FieldValue> = state.fields().take(MAX_FIELDS).collect();
        self.of_fields(state.name, &fields, state.stage, state.width)
    }

    /// The surface state that an entry of a binding table points to; `None` for an entry of zero, which is not in use.
    pub fn of_entry(&self, index: u32, entry: u32) -> Option<Reference> {
        let offset = u64::from(entry & !0x1f);
        (entry != 0).then(|| Reference {
            field: "",
            index: Some(index),
            offset,
            base: Some(Base::SurfaceState),
            address: self.address(Base::SurfaceState, offset),
            target: ReferenceTarget::States {
                structure: "RENDER_SURFACE_STATE",
                count: 1,
                stage: None,
                width: None,
            },
        })
    }

    /// What the dump has there.
    pub fn resolve(&self, reference: &Reference) -> Referenced<'m> {
        let Some(address) = reference.address else { return Referenced::Unknown };
        let Some(words) = self.words(address) else { return Referenced::Absent };
        match reference.target {
            ReferenceTarget::Kernel { .. } => Referenced::Kernel(words),
            ReferenceTarget::Buffer { .. } => Referenced::Held,
            ReferenceTarget::BindingTable { entries, .. } => {
                let count = entries.filter(|&n| n > 0).unwrap_or(USUAL_ENTRIES).min(MAX_ENTRIES);
                Referenced::Table(words.get(..count as usize).unwrap_or(words), count)
            }
            ReferenceTarget::States { structure, count, stage, width } => {
                let Some(found) = self.gpu.structure(structure) else { return Referenced::Held };
                // The states of all render targets follow in one structure, from gen8 on after a dword that is of all.
                let targets = if structure == "BLEND_STATE" { 2 * RENDER_TARGETS } else { 0 };
                let dwords = (found.dwords() + targets).max(1);
                let states = (0..count).map_while(|index| {
                    let from = index.checked_mul(dwords)?;
                    let rest = words.get(from as usize..).filter(|rest| !rest.is_empty())?;
                    Some(StateInMemory {
                        name: found.name(),
                        address: address.wrapping_add(u64::from(from) * 4),
                        index,
                        dwords,
                        words: rest.get(..dwords as usize).unwrap_or(rest),
                        layout: found.layout(),
                        stage,
                        width,
                    })
                });
                Referenced::States(states.collect())
            }
        }
    }

    /// The addresses that a reference, and all that it leads to, has in memory that is not there. What `seen` has is left out,
    /// and what is looked up is added to it.
    pub fn missing(&self, reference: &Reference, seen: &mut HashSet<u64>, missing: &mut Vec<u64>) {
        let Some(address) = reference.address else { return };
        if seen.len() >= MAX_LOOKED_UP || !seen.insert(address) {
            return;
        }
        let mut inner = Vec::new();
        match self.resolve(reference) {
            Referenced::Absent => missing.push(address),
            Referenced::Table(entries, _) => {
                let entries = entries.iter().zip(0..);
                inner.extend(entries.filter_map(|(&entry, index)| self.of_entry(index, entry)));
            }
            Referenced::States(states) => inner.extend(states.iter().flat_map(|state| self.of_state(state))),
            Referenced::Unknown | Referenced::Kernel(_) | Referenced::Held => {}
        }
        inner.iter().for_each(|reference| self.missing(reference, seen, missing));
    }

    /// What the dump holds from an address on. Before gen8 contexts share the device's table, or mirror it.
    pub fn words(&self, address: u64) -> Option<&'m [u32]> {
        let of_context = self.spaces.words(Space::Ppgtt, address);
        let of_device = || self.spaces.words(Space::Ggtt, address).filter(|_| self.gpu.number() < 80);
        of_context.or_else(of_device)
    }

    fn address(&self, base: Base, offset: u64) -> Option<u64> {
        let address = self.state.base(base)?.address.wrapping_add(offset);
        Some(if self.gpu.number() < 80 { address & 0xffff_ffff } else { canonical(address) })
    }

    /// What fields of a command or state point to.
    fn of_fields(
        &self,
        owner: &str,
        fields: &[FieldValue],
        stage: Option<ShaderStage>,
        width: Option<DispatchWidth>,
    ) -> Vec<Reference> {
        let rows: Vec<&ReferenceRow> = ROWS.iter().filter(|row| row.is_of(owner)).collect();
        let of = OwnerFields { owner, fields, gpu: self.gpu, stage, width };
        let mut found = Vec::new();
        for field in fields {
            let Some(row) = rows.iter().find(|row| row.has(field.name)) else { continue };
            let Some(value) = field.value().and_then(IntelValue::number) else { continue };
            if !matches!(field.value(), Some(IntelValue::Bool(_))) {
                found.extend(self.of_field(row, &of, field, value));
            }
            if found.len() >= MAX_REFERENCES {
                break;
            }
        }
        found
    }

    fn of_field(
        &self,
        row: &ReferenceRow,
        of: &OwnerFields<'_>,
        field: &FieldValue,
        value: u64,
    ) -> Option<Reference> {
        if row.flag.is_some_and(|flag| of.number(flag) == Some(0)) {
            return None;
        }
        let (mut offset, mut base) = (value, row.base_on(self.gpu.number()));
        let target = match row.target {
            RowTarget::Kernel(stage) => of.kernel(stage, field)?,
            RowTarget::BindingTable => {
                // Drivers of gen4 and gen5 leave the tables of units that have none at zero.
                if value == 0 && self.gpu.number() < 60 {
                    return None;
                }
                if self.counts_256_bytes() {
                    offset <<= 3;
                }
                base = Some(self.base_of_tables());
                let stage = of.stage_of(field);
                let own = of.number("Binding Table Entry Count").map(|n| n as u32);
                let entries = own.or_else(|| self.of_stage(stage?, "Binding Table Entry Count"));
                ReferenceTarget::BindingTable { stage, entries }
            }
            RowTarget::Samplers => {
                let stage = of.stage_of(field);
                let own = of.number("Sampler Count").map(|n| n as u32);
                let fours = own.or_else(|| self.of_stage(stage?, "Sampler Count")).unwrap_or(0);
                let count = fours.min(4) * 4;
                ReferenceTarget::States {
                    structure: "SAMPLER_STATE",
                    count: count.max(1),
                    stage,
                    width: None,
                }
            }
            RowTarget::States(structure) => {
                if structure == "SAMPLER_BORDER_COLOR_STATE" && value == 0 {
                    return None;
                }
                let structure = self.media_state(of, structure);
                let count = match of.number("Interface Descriptor Total Length") {
                    Some(bytes) => (bytes / DESCRIPTOR).clamp(1, MAX_DESCRIPTORS) as u32,
                    None if of.owner == "VFE_STATE" => self.descriptors_of_mode(of.number("VFE Mode")),
                    None => 1,
                };
                ReferenceTarget::States { structure, count, stage: of.stage, width: of.width }
            }
            RowTarget::Buffer(usage) => {
                // Where nothing is bound the address is 0.
                if value == 0 && (base.is_none() || of.size(usage, field).unwrap_or(0) == 0) {
                    return None;
                }
                ReferenceTarget::Buffer { usage, size: of.size(usage, field) }
            }
        };
        let mut address = match base {
            Some(base) => self.address(base, offset),
            None => Some(canonical(offset)),
        };
        let constants = matches!(row.target, RowTarget::Buffer(BufferUse::Constant));
        let index = of.index_of(field).or_else(|| number_in(field.name).filter(|_| constants));
        if constants && (index == Some(0) || of.owner == "CONSTANT_BUFFER") {
            (base, address) = self.first_constants(of.owner, value);
        }
        Some(Reference { field: field.name, index, offset, base, address, target })
    }

    /// Where the first constant buffer of a stage is. It is an offset from Dynamic State Base (from General State Base on gen4
    /// and gen5, which have one constant buffer) unless a bit of a register is set; where no command has written that
    /// register, an address that the dump holds is taken for one.
    fn first_constants(&self, owner: &str, value: u64) -> (Option<Base>, Option<u64>) {
        let as_address = (None, Some(canonical(value)));
        let base = if self.gpu.number() < 60 { Base::GeneralState } else { Base::DynamicState };
        let as_offset = (Some(base), self.address(base, value));
        let (register, bit) = match self.gpu.number() {
            // INSTPM
            ..90 => (0x20c0, 6),
            // CS_DEBUG_MODE2
            _ => (0x20d8, 4),
        };
        if owner.ends_with("_ALL") {
            return as_address;
        }
        match self.state.masked_bit(register, bit) {
            Some(true) => as_address,
            Some(false) => as_offset,
            None if as_offset.1 == as_address.1 => as_offset,
            None if self.words(canonical(value)).is_some() => as_address,
            None if as_offset.1.is_some_and(|at| self.words(at).is_some()) => as_offset,
            None => (None, None),
        }
    }

    /// What pointers to binding tables count from.
    fn base_of_tables(&self) -> Base {
        match self.state.base(Base::BindingTablePool) {
            Some(pool) if pool.address != 0 => Base::BindingTablePool,
            _ => Base::SurfaceState,
        }
    }

    fn counts_256_bytes(&self) -> bool {
        (110..125).contains(&self.gpu.number()) && self.state.masked_bit(GT_MODE.0, GT_MODE.1) == Some(true)
    }

    /// A number in the command that sets a stage's kernel.
    fn of_stage(&self, stage: ShaderStage, field: &str) -> Option<u32> {
        let letters = match stage {
            ShaderStage::Pixel if self.gpu.number() < 70 => "WM",
            stage => stage.letters(),
        };
        let number = if self.gpu.number() < 60 {
            self.unit_state(&format!("{letters}_STATE"))?.number(field)
        } else {
            let seen = self.state.last(&format!("3DSTATE_{letters}"))?;
            seen.command.instruction?.layout().value(field, seen.command.words)?.number()
        };
        u32::try_from(number?).ok()
    }

    /// The state of a unit of gen4 and gen5, as far as the dump holds it.
    fn unit_state(&self, name: &str) -> Option<StateInMemory<'m>> {
        let pointers = self.of_command(&self.state.last("3DSTATE_PIPELINED_POINTERS")?.command);
        let of_unit = pointers.iter().find(
            |found| matches!(found.target, ReferenceTarget::States { structure, .. } if structure == name),
        )?;
        match self.resolve(of_unit) {
            Referenced::States(states) => states.into_iter().next(),
            _ => None,
        }
    }
}

/// What the rows have of a command.
#[derive(Clone, Copy, Debug, Default)]
struct CommandTraits {
    /// It points somewhere.
    points: bool,
    /// Some of its pointers may stay as they were.
    stays: bool,
}

impl CommandTraits {
    fn of(name: &str) -> CommandTraits {
        let mut rows = ROWS.iter().filter(|row| row.is_of(name));
        let points = rows.clone().next().is_some() || media::picks_descriptor(name);
        CommandTraits { points, stays: rows.any(|row| row.stays()) }
    }
}

/// The number at the end of a field's name.
fn number_in(name: &str) -> Option<u32> {
    name.rsplit(' ').next()?.parse().ok()
}

/// What SIMD Size of a walker means.
fn simd_size(value: u64) -> Option<DispatchWidth> {
    (value < 3).then(|| DispatchWidth::Simd(8 << value))
}

/// The fields of a command or state, for looking up one beside another.
struct OwnerFields<'f> {
    owner: &'f str,
    fields: &'f [FieldValue],
    gpu: IntelGpu,
    stage: Option<ShaderStage>,
    width: Option<DispatchWidth>,
}

impl OwnerFields<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        self.fields.iter().find(|f| f.name == name)?.value()?.number()
    }

    /// Of a field in the same structure, and there in the same element of a group.
    fn beside(&self, field: &FieldValue, name: &str) -> Option<u64> {
        let (first, _) = self.structure_of(field);
        let mut own = self.fields.get(first..)?.iter().take_while(|f| f.depth >= field.depth);
        let same =
            |f: &&FieldValue| f.name == name && f.depth == field.depth && f.indices() == field.indices();
        own.find(same)?.value()?.number()
    }

    /// The first field of the structure that a field is in, by its number, and the element that the structure is of a group.
    fn structure_of(&self, field: &FieldValue) -> (usize, Option<u32>) {
        let same = |f: &FieldValue| f.start == field.start && f.name == field.name && f.depth == field.depth;
        let before = self.fields.iter().take_while(|f| !same(f)).enumerate();
        let around = before.filter(|(_, f)| f.depth < field.depth).last();
        around.map_or((0, None), |(at, f)| (at + 1, f.indices().last().copied()))
    }

    /// The number of what a field is of, among those of its kind.
    fn index_of(&self, field: &FieldValue) -> Option<u32> {
        let own = || field.indices().last().copied().or_else(|| self.structure_of(field).1);
        let buffer = self.beside(field, "Vertex Buffer Index").and_then(|n| u32::try_from(n).ok());
        buffer.or_else(own)
    }

    fn is_set(&self, name: &str) -> Option<bool> {
        self.number(name).map(|n| n != 0)
    }

    /// The stage that a field is of, by its own name or by who has it.
    fn stage_of(&self, field: &FieldValue) -> Option<ShaderStage> {
        let of_owner = match self.owner {
            "VS_STATE" => Some(ShaderStage::Vertex),
            "GS_STATE" => Some(ShaderStage::Geometry),
            "CLIP_STATE" => Some(ShaderStage::Clip),
            "SF_STATE" => Some(ShaderStage::StripsFans),
            "WM_STATE" => Some(ShaderStage::Pixel),
            "INTERFACE_DESCRIPTOR_DATA" | "COMPUTE_WALKER" | "EXECUTE_INDIRECT_DISPATCH" => {
                Some(ShaderStage::Compute)
            }
            _ => None,
        };
        self.stage.or(of_owner).or_else(|| ShaderStage::of_field(field.name))
    }

    /// The kernel of a field; `None` where the stage is off, or does not run this one.
    fn kernel(&self, stage: ShaderStage, field: &FieldValue) -> Option<ReferenceTarget> {
        let gen_number = self.gpu.number();
        let payload = "Dispatch GRF Start Register For URB Data";
        let (width, grf) = match stage {
            ShaderStage::Pixel => self.pixel_kernel(field)?,
            ShaderStage::Compute => (self.number("SIMD Size").and_then(simd_size).or(self.width), None),
            ShaderStage::Task | ShaderStage::Mesh => (self.number("SIMD Size").and_then(simd_size), None),
            ShaderStage::Clip | ShaderStage::StripsFans => (None, self.number(payload)),
            ShaderStage::SystemRoutine => (None, None),
            _ => {
                let named = ["Enable", "Function Enable", "VS Function Enable", "GS Enable"];
                if named.iter().find_map(|name| self.is_set(name)) == Some(false) {
                    return None;
                }
                let simd8 = match stage {
                    ShaderStage::Vertex => self.is_set("SIMD8 Dispatch Enable"),
                    ShaderStage::Domain => self.number("Dispatch Mode").map(|mode| mode != 0),
                    ShaderStage::Geometry => self.number("Dispatch Mode").map(|mode| mode == 3),
                    _ => None,
                };
                let width = match (gen_number, simd8) {
                    (200.., _) => Some(DispatchWidth::Simd(16)),
                    (110.., _) | (80.., Some(true)) => Some(DispatchWidth::Simd(8)),
                    (80.., Some(false)) | (..80, _) => Some(DispatchWidth::Vec4),
                    (80.., None) => None,
                };
                // The kernel of two patches is there only where a mode asks for it.
                let second = field.name != "Kernel Start Pointer" && stage == ShaderStage::Domain;
                if second && self.number("Dispatch Mode").is_none_or(|mode| mode < 2) {
                    return None;
                }
                (width, self.number(payload))
            }
        };
        Some(ReferenceTarget::Kernel { stage, width, grf })
    }

    /// Width and payload of a pixel kernel, by its number; `None` where it is not run.
    fn pixel_kernel(&self, field: &FieldValue) -> Option<(Option<DispatchWidth>, Option<u64>)> {
        let nth = number_in(field.name).unwrap_or(0);
        // Gen4 to gen6 have it beside the kernels, later ones in a command of its own.
        if self.is_set("Thread Dispatch Enable") == Some(false) {
            return None;
        }
        let payload = format!("Dispatch GRF Start Register For Constant/Setup Data {nth}");
        let grf = self.number(&payload);
        if self.gpu.number() >= 200 {
            if self.is_set(&format!("Kernel {nth} Enable")) != Some(true) {
                return None;
            }
            let wide = self.number(&format!("Kernel[{nth}] : SIMD Width"));
            return Some((wide.map(|wide| DispatchWidth::Simd(16 << wide.min(1))), grf));
        }
        let on = |width: u32| self.is_set(&format!("{width} Pixel Dispatch Enable")) == Some(true);
        let widths = [8, 16, 32].into_iter().filter(|&width| on(width));
        let enabled = widths.clone().count();
        // Gen4 has one pointer for all widths. Where several are on, a jump table is there, with an entry for each.
        if self.gpu.number() < 50 && enabled > 1 {
            return Some((None, grf));
        }
        let width = match (enabled, nth) {
            (1, 0) => widths.clone().next(),
            (2.., 0) => Some(8).filter(|_| on(8)),
            (2.., 1) => Some(32).filter(|_| on(32)),
            (2.., 2) => Some(16).filter(|_| on(16)),
            _ => None,
        };
        width.map(|width| (Some(DispatchWidth::Simd(width)), grf))
    }

    /// The bytes of a vertex buffer of gen4, which has the highest index instead of an end.
    fn vertices(&self, field: &FieldValue) -> Option<u64> {
        let last = self.beside(field, "Max Index").filter(|&last| last > 0)?;
        self.beside(field, "Buffer Pitch")?.checked_mul(last.checked_add(1)?)
    }

    /// The bytes of a buffer that are used.
    fn size(&self, usage: BufferUse, field: &FieldValue) -> Option<u64> {
        let dwords = |n: u64| n.saturating_add(1).saturating_mul(4);
        let end = |name: &str| {
            let end = self.beside(field, name)?;
            end.checked_add(1)?.checked_sub(field.value()?.number()?)
        };
        match usage {
            BufferUse::Vertex => self
                .beside(field, "Buffer Size")
                .or_else(|| end("End Address"))
                .or_else(|| self.vertices(field)),
            BufferUse::Index => self.beside(field, "Buffer Size").or_else(|| end("Buffer Ending Address")),
            BufferUse::Constant => {
                let length = self
                    .beside(field, "Read Length")
                    .or_else(|| self.beside(field, "Constant Buffer Read Length"));
                let on_gen6 = || {
                    let of = field.name.strip_prefix("Pointer to ")?;
                    Some(
                        (self.beside(field, &format!("{of} Read Length"))?.saturating_add(1))
                            .saturating_mul(32),
                    )
                };
                let on_gen4 = || Some(self.number("Buffer Length")?.saturating_add(1).saturating_mul(64));
                length.map(|n| n.saturating_mul(32)).or_else(on_gen6).or_else(on_gen4)
            }
            BufferUse::StreamOut => {
                self.beside(field, "Surface Size").map(dwords).or_else(|| end("Surface End Address"))
            }
            BufferUse::Curbe => self.number("CURBE Total Data Length"),
            BufferUse::IndirectData => self.beside(field, "Indirect Data Length"),
            BufferUse::Scratch => {
                let per_thread = self
                    .number("Per-Thread Scratch Space")
                    .or_else(|| self.number("Per Thread Scratch Space"));
                per_thread.filter(|&n| n > 0 && n < 12).map(|n| 1024 << n)
            }
            _ => None,
        }
    }
}
