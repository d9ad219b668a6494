//! State at a point of a walk: the last command of each kind, base addresses, pointers resolved, registers written,
//! draws and dispatches counted.
//!
//! It is what the commands said, not what the hardware did: a predicated batch counts as executed, and what was set before
//! the walk began is not known. Every value names the command it came from.
//!
//! Never: formatting, reading of memory.

use super::commands::Command;
use super::position::CommandPos;
use super::references::row_of_offset;
use super::walk::{EventKind, IntelEvent, Space};
use std::collections::{BTreeMap, HashMap};
use unwedge_hw::intel::{FieldValue, IntelGpu, IntelInstruction, IntelValue};

/// A command that was met.
#[derive(Clone, Copy, Debug)]
pub struct WalkedCommand<'m> {
    /// Where its header stands.
    pub address: u64,
    /// The space of the address.
    pub space: Space,
    /// The command.
    pub command: Command<'m>,
    /// How many commands were met before it.
    pub index: u64,
}

/// A base address that offsets count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    /// Scratch space and stateless messages.
    GeneralState,
    /// Surface states and binding tables.
    SurfaceState,
    /// Samplers, viewports, blending, interface descriptors, push constants.
    DynamicState,
    /// Indirect objects.
    IndirectObject,
    /// Kernels.
    Instruction,
    /// Bindless surface states.
    BindlessSurface,
    /// Bindless samplers.
    BindlessSampler,
    /// Binding tables, where they have a pool of their own.
    BindingTablePool,
}

impl Base {
    /// Every one, with the field of STATE_BASE_ADDRESS that sets it; the pool has a command of its own.
    const FIELDS: [(Base, &'static str, &'static str); 7] = [
        (Base::GeneralState, "General State Base Address", "General State Base Address Modify Enable"),
        (Base::SurfaceState, "Surface State Base Address", "Surface State Base Address Modify Enable"),
        (Base::DynamicState, "Dynamic State Base Address", "Dynamic State Base Address Modify Enable"),
        (Base::IndirectObject, "Indirect Object Base Address", "Indirect Object Base Address Modify Enable"),
        (Base::Instruction, "Instruction Base Address", "Instruction Base Address Modify Enable"),
        (
            Base::BindlessSurface,
            "Bindless Surface State Base Address",
            "Bindless Surface State Base Address Modify Enable",
        ),
        (
            Base::BindlessSampler,
            "Bindless Sampler State Base Address",
            "Bindless Sampler State Base Address Modify Enable",
        ),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match Base::FIELDS.iter().find(|(base, ..)| *base == self) {
            Some((_, field, _)) => field,
            None => "Binding Table Pool Base Address",
        }
    }
}

/// A base address and the command that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseAddress {
    /// The address.
    pub address: u64,
    /// Where the command stands.
    pub set_at: u64,
}

/// An offset of a state command, resolved.
#[derive(Clone, Copy, Debug)]
pub struct Pointer<'m> {
    /// The command that has it.
    pub seen: WalkedCommand<'m>,
    /// The field, with its value.
    pub field: FieldValue,
    /// The offset.
    pub offset: u64,
    /// What it counts from.
    pub base: Base,
    /// The address; `None` when the base address is not known.
    pub address: Option<u64>,
}

/// How a register got its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterOrigin {
    /// This value, by MI_LOAD_REGISTER_IMM.
    Value(u32),
    /// From memory at this address, by MI_LOAD_REGISTER_MEM.
    Memory(u64),
    /// From another register, by MI_LOAD_REGISTER_REG.
    Register(u32),
}

/// A register write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWrite {
    /// What was written.
    pub written: RegisterOrigin,
    /// The offset counts from the engine's base (gen11 on).
    pub relative: bool,
    /// Where the command stands.
    pub set_at: u64,
}

/// How often things were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands.
    pub commands: u64,
    /// 3DPRIMITIVE, EXECUTE_INDIRECT_DRAW and their like.
    pub draws: u64,
    /// GPGPU_WALKER, COMPUTE_WALKER, MEDIA_OBJECT and their like.
    pub dispatches: u64,
    /// Blits and fills of the blitter.
    pub blits: u64,
    /// PIPE_CONTROL.
    pub pipe_controls: u64,
    /// Dwords that are no command.
    pub unknown_dwords: u64,
}

/// What kind of work a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntelWorkKind {
    /// It draws.
    Draw,
    /// It starts threads that do not draw.
    Dispatch,
    /// The blitter copies or fills.
    Blit,
}

impl IntelWorkKind {
    /// Of a command; `None` where it sets state, or waits.
    pub fn of(name: &str) -> Option<IntelWorkKind> {
        if name.starts_with("3DPRIMITIVE") || name == "EXECUTE_INDIRECT_DRAW" || name.starts_with("3DMESH") {
            Some(IntelWorkKind::Draw)
        } else if matches!(
            name,
            "GPGPU_WALKER" | "GPGPU_OBJECT" | "COMPUTE_WALKER" | "EXECUTE_INDIRECT_DISPATCH"
        ) || name.starts_with("MEDIA_OBJECT")
        {
            Some(IntelWorkKind::Dispatch)
        } else if name.ends_with("_BLT")
            || name.ends_with("_BLT_IMMEDIATE")
            || matches!(name, "MEM_COPY" | "MEM_SET")
        {
            (!name.starts_with("XY_SETUP")).then_some(IntelWorkKind::Blit)
        } else {
            None
        }
    }
}

/// What a command means for the state, by its name; found out once per command of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    State,
    BaseAddresses,
    BindingTablePool,
    Work(IntelWorkKind),
    PipeControl,
    LoadImmediate,
    LoadMemory,
    LoadRegister,
    Other,
}

impl Role {
    fn of(name: &str) -> Role {
        if let Some(work) = IntelWorkKind::of(name) {
            return Role::Work(work);
        }
        match name {
            "STATE_BASE_ADDRESS" => Role::BaseAddresses,
            "3DSTATE_BINDING_TABLE_POOL_ALLOC" => Role::BindingTablePool,
            "PIPE_CONTROL" => Role::PipeControl,
            "MI_LOAD_REGISTER_IMM" => Role::LoadImmediate,
            "MI_LOAD_REGISTER_MEM" => Role::LoadMemory,
            "MI_LOAD_REGISTER_REG" => Role::LoadRegister,
            _ if name.starts_with("MI_") => Role::Other,
            _ => Role::State,
        }
    }
}

/// State as the commands met so far leave it.
#[derive(Clone, Debug)]
pub struct IntelState<'m> {
    gpu: IntelGpu,
    last: HashMap<IntelInstruction, WalkedCommand<'m>>,
    roles: HashMap<IntelInstruction, Role>,
    bases: BTreeMap<Base, BaseAddress>,
    registers: BTreeMap<u32, RegisterWrite>,
    counts: Counts,
    work: Option<WalkedCommand<'m>>,
}

impl<'m> IntelState<'m> {
    /// Nothing met yet.
    pub fn new(gpu: IntelGpu) -> IntelState<'m> {
        IntelState {
            gpu,
            last: HashMap::new(),
            roles: HashMap::new(),
            bases: BTreeMap::new(),
            registers: BTreeMap::new(),
            counts: Counts::default(),
            work: None,
        }
    }

    /// As the commands of a walk in front of a place leave it.
    pub fn before(
        gpu: IntelGpu,
        walk: impl Iterator<Item = IntelEvent<'m>>,
        place: CommandPos,
    ) -> IntelState<'m> {
        let mut state = IntelState::new(gpu);
        let mut commands = 0;
        for event in walk {
            if commands >= place.index {
                break;
            }
            commands += u64::from(matches!(event.kind, EventKind::Command(_) | EventKind::Noops(_)));
            state.see(&event);
        }
        state
    }

    /// The next event of a walk.
    pub fn see(&mut self, event: &IntelEvent<'m>) {
        match event.kind {
            EventKind::Command(command) => self.command(event, command),
            EventKind::Noops(count) => self.counts.commands += u64::from(count),
            EventKind::Unknown(words) => self.counts.unknown_dwords += words.len() as u64,
            _ => {}
        }
    }

    fn command(&mut self, event: &IntelEvent<'m>, command: Command<'m>) {
        let seen = WalkedCommand {
            address: event.address,
            space: event.space,
            command,
            index: self.counts.commands,
        };
        self.counts.commands += 1;
        let Some(instruction) = command.instruction else { return };
        let role = *self.roles.entry(instruction).or_insert_with(|| Role::of(instruction.name()));
        match role {
            Role::Other => return,
            Role::State => {}
            Role::BaseAddresses => self.base_addresses(&seen),
            Role::BindingTablePool => {
                let of = |field| instruction.layout().value(field, command.words);
                if let Some(IntelValue::Address(address)) = of("Binding Table Pool Base Address") {
                    // Where it can be off, offsets count from Surface State Base.
                    let off = of("Binding Table Pool Enable").and_then(IntelValue::number) == Some(0);
                    let address = if off { 0 } else { address };
                    let base = BaseAddress { address, set_at: event.address };
                    self.bases.insert(Base::BindingTablePool, base);
                }
            }
            Role::PipeControl => self.counts.pipe_controls += 1,
            Role::Work(work) => {
                match work {
                    IntelWorkKind::Draw => self.counts.draws += 1,
                    IntelWorkKind::Dispatch => self.counts.dispatches += 1,
                    IntelWorkKind::Blit => self.counts.blits += 1,
                }
                self.work = Some(seen);
            }
            Role::LoadImmediate => {
                for pair in command.words.get(1..).unwrap_or_default().chunks_exact(2) {
                    if let &[offset, value] = pair {
                        self.write(&seen, offset, RegisterOrigin::Value(value));
                    }
                }
                return;
            }
            Role::LoadMemory => {
                if let Some((&offset, address)) = command.words.get(1..).and_then(<[u32]>::split_first) {
                    let word = |i: usize| u64::from(address.get(i).copied().unwrap_or_default());
                    self.write(&seen, offset, RegisterOrigin::Memory((word(1) << 32 | word(0)) & !3));
                }
                return;
            }
            Role::LoadRegister => {
                if let Some(&[from, to]) = command.words.get(1..3) {
                    self.write(&seen, to, RegisterOrigin::Register(from & 0x7f_fffc));
                }
                return;
            }
        }
        self.last.insert(instruction, seen);
    }

    fn write(&mut self, seen: &WalkedCommand<'m>, offset: u32, written: RegisterOrigin) {
        let relative = seen.command.header() >> 19 & 1 == 1;
        let write = RegisterWrite { written, relative, set_at: seen.address };
        self.registers.insert(offset & 0x7f_fffc, write);
    }

    fn base_addresses(&mut self, seen: &WalkedCommand<'m>) {
        let Some(instruction) = seen.command.instruction else { return };
        let (layout, words) = (instruction.layout(), seen.command.words);
        for (base, field, enable) in Base::FIELDS {
            if let (Some(IntelValue::Address(address)), Some(IntelValue::Bool(true))) =
                (layout.value(field, words), layout.value(enable, words))
            {
                self.bases.insert(base, BaseAddress { address, set_at: seen.address });
            }
        }
    }

    /// The last command of a name, unless it is an MI command.
    pub fn last(&self, name: &str) -> Option<WalkedCommand<'m>> {
        self.last.iter().find(|(instruction, _)| instruction.name() == name).map(|(_, seen)| *seen)
    }

    /// The last command of each kind that sets state or does work, in the order they were met.
    pub fn commands(&self) -> Vec<WalkedCommand<'m>> {
        let mut list: Vec<_> = self.last.values().copied().collect();
        list.sort_by_key(|seen| seen.index);
        list
    }

    /// The last command that does work: a draw, a dispatch, a blit.
    pub fn last_work(&self) -> Option<WalkedCommand<'m>> {
        self.work
    }

    /// A base address; `None` when no command has set it.
    pub fn base(&self, base: Base) -> Option<BaseAddress> {
        self.bases.get(&base).copied()
    }

    /// All base addresses that are known.
    pub fn bases(&self) -> impl Iterator<Item = (Base, BaseAddress)> {
        self.bases.iter().map(|(base, at)| (*base, *at))
    }

    /// Register writes by offset: the last one of each.
    pub fn registers(&self) -> impl Iterator<Item = (u32, RegisterWrite)> {
        self.registers.iter().map(|(offset, write)| (*offset, *write))
    }

    /// A bit of a register whose upper half says which bits a write changes; `None` where the last write does not change it,
    /// or none is known.
    pub fn masked_bit(&self, offset: u32, bit: u32) -> Option<bool> {
        match self.registers.get(&offset)?.written {
            RegisterOrigin::Value(value) if bit < 16 && value >> (16 + bit) & 1 == 1 => {
                Some(value >> bit & 1 == 1)
            }
            _ => None,
        }
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The offsets of a command that count from base addresses, resolved against those known now.
    pub fn pointers_of(&self, seen: WalkedCommand<'m>) -> impl Iterator<Item = Pointer<'m>> {
        let owner = seen.command.name().unwrap_or_default();
        seen.command.fields().filter_map(move |field| {
            // The states of gen4 and gen5 have addresses of their tables that count from a base.
            let Some(IntelValue::Offset(offset) | IntelValue::Address(offset)) = field.value() else {
                return None;
            };
            let row = row_of_offset(owner, field.name)?;
            let flag = row.flag.and_then(|flag| {
                seen.command.instruction?.layout().value(flag, seen.command.words)?.number()
            });
            if flag == Some(0) {
                return None;
            }
            let mut base = row.base_on(self.gpu.number())?;
            if base == Base::SurfaceState
                && field.name.contains("Binding Table")
                && let Some(pool) = self.base(Base::BindingTablePool)
                && pool.address != 0
            {
                base = Base::BindingTablePool;
            }
            let address = self.base(base).map(|b| b.address.wrapping_add(offset));
            Some(Pointer { seen, field, offset, base, address })
        })
    }

    /// The pointers of all state that is set, in the order it was set.
    pub fn pointers(&self) -> Vec<Pointer<'m>> {
        self.commands().into_iter().flat_map(|seen| self.pointers_of(seen)).collect()
    }
}
