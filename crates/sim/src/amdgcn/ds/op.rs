//! Instructions of LDS and GDS with their operands.

use super::super::access::{AccessShape, Form};
use unwedge_isa::amdgcn::model::{Access, Direction, Field, Mod, Pair, Trait};
use unwedge_isa::amdgcn::semantics::atomic;
use unwedge_isa::amdgcn::{Inst, Opcode, Operand, Reg};

/// What is done to what waves share beside memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Init,
    SemaphoreV,
    SemaphoreBulk,
    SemaphoreP,
    ReleaseAll,
    Barrier,
    /// Waves have their turn in the order of their numbers.
    Ordered,
    /// A register of streamout is added to or subtracted from.
    Streamout {
        add: bool,
    },
}

impl Sync {
    pub(super) fn of(opcode: Opcode) -> Option<Sync> {
        Some(match opcode {
            Opcode::ds_gws_init => Sync::Init,
            Opcode::ds_gws_sema_v => Sync::SemaphoreV,
            Opcode::ds_gws_sema_br => Sync::SemaphoreBulk,
            Opcode::ds_gws_sema_p => Sync::SemaphoreP,
            Opcode::ds_gws_sema_release_all => Sync::ReleaseAll,
            Opcode::ds_gws_barrier => Sync::Barrier,
            Opcode::ds_ordered_count => Sync::Ordered,
            Opcode::ds_add_gs_reg_rtn => Sync::Streamout { add: true },
            Opcode::ds_sub_gs_reg_rtn => Sync::Streamout { add: false },
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum DsKind {
    /// Loads: bytes of each value, how many values an offset counts if there are two.
    Load {
        form: Form,
        bytes: u8,
        two: Option<u32>,
    },
    Store {
        bytes: u8,
        two: Option<u32>,
        high: bool,
    },
    Atomic {
        atomic: atomic::Atomic,
        width: atomic::AtomicWidth,
        returns: bool,
        compares: bool,
        two: Option<u32>,
    },
    /// The second value is in memory, at an offset.
    FromMemory {
        atomic: atomic::Atomic,
        width: atomic::AtomicWidth,
    },
    Swizzle,
    Permute,
    Bpermute {
        /// Lanes that are off are read, too.
        inactive: bool,
    },
    /// A counter at `m0`, added to or subtracted from by how many lanes there are.
    Append {
        add: bool,
    },
    AddTid {
        load: bool,
    },
    Sync(Sync),
    /// `ds_condxchg32_rtn_b64`.
    ExchangeIf,
    /// `ds_bvh_stack_rtn_b32`.
    Stack,
}

/// An access with its operands.
#[derive(Debug, Clone, Copy)]
pub(in crate::amdgcn) struct DsOp {
    pub(super) kind: DsKind,
    pub(super) dst: Option<Reg>,
    pub(super) address: Option<Reg>,
    pub(super) data: [Option<Reg>; 2],
    pub(super) offset: u32,
    pub(super) offsets: [u32; 2],
    pub(super) gds: bool,
}

/// How many values an offset counts.
fn stride(pair: Pair) -> u32 {
    pair.stride.into()
}

/// A load that transposes elements of so many bits.
fn columns(bytes: u8, bits: u8) -> DsKind {
    DsKind::Load { form: Form::Columns { bits }, bytes, two: None }
}

impl DsOp {
    pub(in crate::amdgcn) fn new(inst: &Inst) -> Option<DsOp> {
        let row = inst.row();
        let kind = match (row.access?, row.opcode) {
            (_, Opcode::ds_swizzle_b32) => DsKind::Swizzle,
            (_, Opcode::ds_permute_b32) => DsKind::Permute,
            (_, Opcode::ds_bpermute_b32) => DsKind::Bpermute { inactive: false },
            (_, Opcode::ds_bpermute_fi_b32) => DsKind::Bpermute { inactive: true },
            (_, Opcode::ds_read_b64_tr_b4) => columns(8, 4),
            (_, Opcode::ds_read_b64_tr_b8) => columns(8, 8),
            (_, Opcode::ds_read_b64_tr_b16) => columns(8, 16),
            (_, Opcode::ds_read_b96_tr_b6) => columns(12, 6),
            (_, Opcode::ds_append) => DsKind::Append { add: true },
            (_, Opcode::ds_consume) => DsKind::Append { add: false },
            (_, Opcode::ds_condxchg32_rtn_b64) => DsKind::ExchangeIf,
            (_, Opcode::ds_bvh_stack_rtn_b32) => DsKind::Stack,
            (_, opcode) if let Some(sync) = Sync::of(opcode) => DsKind::Sync(sync),
            (Access::Value(direction, ..), _) if row.traits.has(Trait::Addtid) => {
                DsKind::AddTid { load: direction == Direction::Load }
            }
            (Access::Value(Direction::Load, element, pair), _) => {
                let AccessShape { form, bytes } = element.into();
                DsKind::Load { form, bytes, two: pair.map(stride) }
            }
            (Access::Value(Direction::Store, element, pair), _) => {
                let high = element.high_half() == Some(true);
                DsKind::Store { bytes: element.bytes(), two: pair.map(stride), high }
            }
            (Access::Atomic { from_memory: true, .. }, _) => {
                let (atomic, width) = atomic::of_row(row)?;
                DsKind::FromMemory { atomic, width }
            }
            (Access::Atomic { pair, .. }, _) => {
                let (atomic, width) = atomic::of_row(row)?;
                let returns = inst.written().any(|(slot, _)| slot.access.writes());
                let compares = atomic::has_second(row);
                DsKind::Atomic { atomic, width, returns, compares, two: pair.map(stride) }
            }
            _ => return None,
        };
        let mut access = DsOp {
            kind,
            dst: None,
            address: None,
            data: [None; 2],
            offset: inst.mods.get(Mod::Offset) as u32 & 0xffff,
            offsets: [inst.mods.get(Mod::Offset0) as u32, inst.mods.get(Mod::Offset1) as u32],
            gds: inst.mods.has(Mod::Gds),
        };
        for (slot, operand) in inst.written() {
            let Operand::Reg { reg, .. } = operand else { continue };
            match slot.field {
                Field::Vdst => access.dst = Some(reg),
                Field::Addr => access.address = Some(reg),
                Field::Data0 => access.data[0] = Some(reg),
                Field::Data1 => access.data[1] = Some(reg),
                _ => {}
            }
        }
        Some(access)
    }
}
