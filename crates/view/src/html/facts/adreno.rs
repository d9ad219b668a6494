//! What a page shows of a dump of msm.

use super::{BufferFacts, DumpFacts, QueueFacts, RegisterFacts, meaning, stages};
use crate::{device, words};
use unwedge_capture::msm::{Devcore, RegisterValue};
use unwedge_hw::{Db, DecodedValue, Gpu, RegSpace, Registers, Variants};

/// Reads them off a dump.
pub(super) fn collect(dump: &Devcore<'_>, db: &Db, facts: &mut DumpFacts) {
    facts.queues = dump
        .rings
        .iter()
        .map(|ring| QueueFacts {
            name: format!("ring {}", ring.id),
            read: ring.rptr.map(u64::from),
            written: ring.wptr.map(u64::from),
            size: ring.size.map(|bytes| u64::from(bytes) / 4),
            retired: ring.retired_fence.map(u64::from),
            submitted: ring.last_fence.map(u64::from),
            ..QueueFacts::default()
        })
        .collect();
    let bo = dump.bos.iter().map(|bo| BufferFacts {
        iova: bo.iova,
        size: bo.size,
        name: bo.name.as_deref().unwrap_or_default().to_owned(),
        held: bo.data.is_some(),
    });
    let rings = dump.rings.iter().filter(|ring| ring.iova != 0).map(|ring| BufferFacts {
        iova: ring.iova,
        size: ring.size.map_or(0, u64::from),
        name: format!("ring {}", ring.id),
        held: ring.data.is_some(),
    });
    facts.buffers = bo.chain(rings).collect();
    let gpu = device::gpu(dump, db);
    let absent = dump.absent(device::generation(dump));
    facts.absent = absent
        .map(|section| (section.name().to_owned(), words::absent::meaning(dump.absent_section(section))))
        .collect();
    let space = |space: RegSpace| gpu.map(|gpu| gpu.space(space));
    let sections = [
        ("registers", &dump.registers, RegSpace::Gpu),
        ("registers-gmu", &dump.registers_gmu, RegSpace::Gmu),
        ("registers-hlsq", &dump.registers_hlsq, RegSpace::Gpu),
    ];
    for (name, values, of) in sections {
        facts.add_registers(name, registers(values, space(of)));
    }
    for cluster in &dump.clusters {
        let context = cluster.context.map(|context| format!(", context {context}")).unwrap_or_default();
        let pipe = cluster.pipe.as_deref().map(|pipe| format!(", {pipe}")).unwrap_or_default();
        let name = format!("cluster {}{pipe}{context}", cluster.name);
        let rows = registers(&cluster.registers, space(RegSpace::Gpu));
        facts.add_registers(name, rows);
    }
    if let Some(gpu) = gpu {
        status(dump, gpu, facts);
    }
}

/// Which blocks are busy, where RBBM_STATUS was read.
fn status(dump: &Devcore<'_>, gpu: Gpu<'_>, facts: &mut DumpFacts) {
    let Some(offset) = gpu.reg_offset("RBBM_STATUS") else { return };
    let read = dump.registers.iter().find(|register| register.reg == offset).map(|register| register.value);
    // Some kernels write zero in the header when they did not read the register; all ones is a GPU without power.
    let read = read.or(dump.rbbm_status.filter(|&value| value != 0)).filter(|&value| value != u32::MAX);
    let ty = gpu.reg(offset).and_then(|reg| reg.ty());
    let fields = read.zip(ty).map(|(value, ty)| ty.decode(value.into(), &mut Variants::default()));
    if let Some(DecodedValue::Fields(fields)) = fields {
        let flag = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.raw != 0);
        facts.stages = stages::stages(stages::ADRENO, flag);
        facts.stages_from = "RBBM_STATUS".to_owned();
    }
}

/// Registers of a section, those of 64 bits whole.
fn registers<'d>(
    values: &'d [RegisterValue],
    space: Option<Registers<'d>>,
) -> impl Iterator<Item = RegisterFacts> + 'd {
    values.iter().enumerate().filter_map(move |(i, &RegisterValue { reg: offset, value })| {
        let reg = space.and_then(|space| space.at(offset));
        if reg.is_some_and(|reg| reg.width() == 64 && reg.dword() == 1) {
            let low = i.checked_sub(1).and_then(|before| values.get(before));
            if low.is_some_and(|low| low.reg.checked_add(1) == Some(offset)) {
                return None;
            }
        }
        let high = values.get(i + 1).filter(|next| offset.checked_add(1) == Some(next.reg));
        let high = reg.filter(|reg| reg.width() == 64 && reg.dword() == 0).and(high);
        let whole = u64::from(high.map_or(0, |high| high.value)) << 32 | u64::from(value);
        let digits = if high.is_some() { 18 } else { 10 };
        Some(RegisterFacts {
            name: reg.map_or_else(|| format!("{offset:#07x}"), |reg| reg.name().to_owned()),
            value: format!("{whole:#0digits$x}"),
            meaning: meaning(reg.filter(|reg| reg.dword() == 0).and_then(|reg| reg.ty()), whole),
        })
    })
}
