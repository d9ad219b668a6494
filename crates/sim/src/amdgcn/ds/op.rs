//! Instructions of LDS and GDS with their operands.

use super::super::access::Form;
use unwedge_isa::amdgcn::model::Mod;
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
    /// Loads: bytes of each piece, whether there are two, how far offsets are scaled.
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
    Bpermute,
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

fn size(name: &str) -> u8 {
    match name {
        _ if name.ends_with("b128") => 16,
        _ if name.ends_with("b96") => 12,
        _ if name.ends_with("b64") => 8,
        _ if name.contains("16")
            && !name.contains("_u8")
            && !name.contains("_i8")
            && !name.contains("_b8") =>
        {
            2
        }
        _ if name.contains('8') => 1,
        _ => 4,
    }
}

impl DsOp {
    pub(in crate::amdgcn) fn new(inst: &Inst) -> Option<DsOp> {
        let name = inst.row().name;
        let rest = name.strip_prefix("ds_")?;
        let two = if rest.contains("2st64") {
            Some(64)
        } else if rest.starts_with("read2") || rest.starts_with("write2") || rest.starts_with("wrxchg2") {
            Some(1)
        } else {
            None
        };
        let half = rest.contains("_d16").then(|| rest.ends_with("_hi"));
        let kind = match inst.opcode() {
            Opcode::ds_swizzle_b32 => DsKind::Swizzle,
            Opcode::ds_permute_b32 => DsKind::Permute,
            Opcode::ds_bpermute_b32 => DsKind::Bpermute,
            Opcode::ds_append => DsKind::Append { add: true },
            Opcode::ds_consume => DsKind::Append { add: false },
            Opcode::ds_read_addtid_b32 => DsKind::AddTid { load: true },
            Opcode::ds_write_addtid_b32 => DsKind::AddTid { load: false },
            Opcode::ds_condxchg32_rtn_b64 => DsKind::ExchangeIf,
            Opcode::ds_bvh_stack_rtn_b32 => DsKind::Stack,
            opcode if let Some(sync) = Sync::of(opcode) => DsKind::Sync(sync),
            _ if rest.contains("_src2_") => {
                let (atomic, width) = atomic::of_row(inst.row())?;
                DsKind::FromMemory { atomic, width }
            }
            _ if rest.starts_with("read") => {
                let bytes = if two.is_some() && rest.ends_with("64") { 8 } else { size(rest) };
                let signed = rest.contains("_i8") || rest.contains("_i16");
                let form = match (half, bytes) {
                    (Some(high), _) => {
                        let bytes = if rest.contains("_u8") || rest.contains("_i8") { 1 } else { 2 };
                        Form::Half { bytes, signed, high }
                    }
                    (None, 1 | 2) => Form::Extended { bytes, signed },
                    _ => Form::Dwords,
                };
                let bytes = if let Form::Half { bytes, .. } = form { bytes } else { bytes };
                DsKind::Load { form, bytes, two }
            }
            _ if rest.starts_with("write") => {
                let bytes = match rest {
                    _ if rest.starts_with("write_b8") => 1,
                    _ if rest.starts_with("write_b16") => 2,
                    _ if two.is_some() && rest.ends_with("64") => 8,
                    _ => size(rest),
                };
                DsKind::Store { bytes, two, high: half == Some(true) }
            }
            _ => {
                let (atomic, width) = atomic::of_row(inst.row())?;
                let compares = atomic::has_second(inst.row());
                DsKind::Atomic { atomic, width, returns: rest.contains("rtn"), compares, two }
            }
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
            match slot.field.name() {
                "vdst" => access.dst = Some(reg),
                "addr" => access.address = Some(reg),
                "data0" => access.data[0] = Some(reg),
                "data1" => access.data[1] = Some(reg),
                _ => {}
            }
        }
        Some(access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_by_name() {
        for (name, bytes) in
            [("read_u8_d16_hi", 1), ("read_i16", 2), ("read_b96", 12), ("read_b32", 4), ("write_b128", 16)]
        {
            assert_eq!(size(name), bytes, "{name}");
        }
    }
}
