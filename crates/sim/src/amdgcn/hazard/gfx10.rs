//! gfx10: what is read late, and instructions that must not meet. gfx10.3 has none of these.

use super::*;
use unwedge_isa::amdgcn::waits;

/// What a wave did lately.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// Scalar registers read by vector memory.
    vmem_read: OpenHazard,
    /// Scalar registers read by scalar memory.
    smem_read: OpenHazard,
    /// `exec` read by something else than the vector ALU.
    exec_read: OpenHazard,
    /// Vector memory or LDS, and whether a branch followed.
    vmem_branch: Option<(u32, bool)>,
    ds_branch: Option<(u32, bool)>,
    /// The comparison before, and whether it wrote `exec`.
    compared: Option<(u32, bool)>,
    /// The instruction just before was `v_writelane`, or an image instruction of 4 dwords or more.
    writelane: Option<u32>,
    big_image: Option<u32>,
    /// Instructions of a clause that are left.
    clause: u32,
    /// A scalar store that nothing waited for.
    scalar_store: Option<u32>,
    /// Scalar memory was written, and not put through.
    stored: Option<u32>,
}

impl Late {
    pub(super) fn issue(
        &mut self,
        decoded: &DecodedInst,
        unit: Unit,
        effects: &Effects,
        found: &mut BrokenRules,
    ) {
        let (inst, at) = (&decoded.inst, decoded.at);
        let row = inst.row();
        let mut rule = |name: &'static str, open: &OpenHazard, writes: &Regs| {
            if open.regs.meets(writes) {
                found.push((name, open.at));
            }
        };
        let writes = effects.writes.scalar();
        match unit {
            Unit::Salu | Unit::Smem => rule("vmem_to_scalar_write", &self.vmem_read, &writes),
            Unit::Valu => {
                rule("smem_to_vector_write", &self.smem_read, &writes);
                rule("vcmpx_exec_war", &self.exec_read, &writes.both(&pair(Reg::EXEC)));
            }
            _ => {}
        }
        let wait = row.role == Role::Wait;
        if unit == Unit::Valu || wait || depctr(inst, &waits::VM_VSRC) {
            self.vmem_read.close();
        }
        let idle = wait || matches!(row.opcode, Opcode::s_setvskip | Opcode::s_version);
        if unit == Unit::Salu && !idle || decoded.waits.contains(&(WaitCounter::Lgkm, 0)) {
            self.smem_read.close();
        }
        let writes_scalar = unit == Unit::Valu && !writes.is_empty();
        if writes_scalar || depctr(inst, &waits::SA_SDST) {
            self.exec_read.close();
        }
        let reads = effects.reads.scalar();
        match unit {
            Unit::Vmem | Unit::Ds => self.vmem_read.add(&reads, at),
            Unit::Smem => self.smem_read.add(&reads, at),
            _ => {}
        }
        // That vector memory and branches read it is not counted by one source.
        if matches!(unit, Unit::Salu | Unit::Smem) && effects.reads.meets(&pair(Reg::EXEC)) {
            self.exec_read.add(&pair(Reg::EXEC), at);
        }
        if branches(row.role) {
            for open in [&mut self.vmem_branch, &mut self.ds_branch].into_iter().flatten() {
                open.1 = true;
            }
        }
        if row.opcode == Opcode::s_waitcnt_vscnt && immediate(inst) == 0 {
            (self.vmem_branch, self.ds_branch) = (None, None);
        }
        match unit {
            Unit::Vmem if inst.row().format != Format::Flat => {
                if let Some((first, true)) = self.ds_branch {
                    found.push(("lds_branch_vmem_war", first));
                }
                // What is between the two kinds hides the earlier one.
                (self.vmem_branch, self.ds_branch) = (Some((at, false)), None);
            }
            Unit::Ds => {
                if let Some((first, true)) = self.vmem_branch {
                    found.push(("lds_branch_vmem_war", first));
                }
                (self.ds_branch, self.vmem_branch) = (Some((at, false)), None);
            }
            _ => {}
        }
        if branches(row.role) && immediate(inst) == 0x3f {
            found.push(("offset_3f", at));
        }
        if unit == Unit::Vmem && inst.mods.get(Mod::Offset) != 0 {
            let offset = inst.mods.get(Mod::Offset);
            match inst.variant().encoding {
                Encoding::Flat => found.push(("flat_offset", at)),
                Encoding::Scratch if offset < 0 && offset % 4 != 0 => {
                    found.push(("scratch_offset_unaligned", at));
                }
                _ => {}
            }
        }
        self.neighbours(decoded, unit, found);
    }

    /// Comparisons, images with addresses one by one, and scalar stores.
    fn neighbours(&mut self, decoded: &DecodedInst, unit: Unit, found: &mut BrokenRules) {
        let (inst, at) = (&decoded.inst, decoded.at);
        let row = inst.row();
        if row.traits.has(Trait::Permlane) {
            // The notes say that any comparison triggers it, others that it is one that writes exec.
            let rule = |exec: bool| if exec { "vcmpx_permlane_10" } else { "vopc_permlane" };
            found.extend(self.compared.map(|(first, exec)| (rule(exec), first)));
        }
        if unit == Unit::Valu && row.opcode != Opcode::v_nop {
            let compares = inst.row().format == Format::Vopc;
            self.compared = compares.then(|| (at, row.traits.has(Trait::Cmpx)));
        }
        let listed = inst.written().any(|(_, operand)| matches!(operand, Operand::List(_)));
        if listed {
            found.extend(self.writelane.map(|first| ("writelane_to_nsa", first)));
            if self.clause > 0 {
                found.push(("nsa_clause", at));
            }
        }
        if matches!(inst.row().format, Format::Mubuf | Format::Mtbuf) && inst.mods.get(Mod::Offset) & 6 != 0 {
            found.extend(self.big_image.map(|first| ("nsa_to_vmem", first)));
        }
        self.writelane = (row.opcode == Opcode::v_writelane_b32).then_some(at);
        self.big_image = (listed && decoded.next - at >= 16).then_some(at);
        self.clause = match row.opcode {
            Opcode::s_clause => (immediate(inst) as u32 & 63) + 1,
            _ => self.clause.saturating_sub(1),
        };
        if row.opcode == Opcode::s_inst_prefetch {
            found.push(("inst_prefetch", at));
        }
        if decoded.waits.contains(&(WaitCounter::Lgkm, 0)) {
            self.scalar_store = None;
        }
        if unit == Unit::Smem {
            let (traits, buffer) = (row.traits, row.traits.has(Trait::Buffer));
            if traits.has(Trait::Store) || traits.has(Trait::Atomic) {
                self.stored = Some(at);
                self.scalar_store = Some(at).filter(|_| buffer);
            } else if buffer {
                found.extend(self.scalar_store.map(|first| ("smem_store_load", first)));
            }
        }
        self.stored = self.stored.filter(|_| row.opcode != Opcode::s_dcache_wb);
        if row.opcode == Opcode::s_endpgm {
            found.extend(self.stored.map(|first| ("dcache_wb", first)));
        }
    }
}
