//! What a page shows of what AMD GPUs leave: dumps of amdgpu, reports of RADV, text of umr.

use super::{BufferFacts, DumpFacts, QueueFacts, RegisterFacts, meaning, stages};
use crate::words;
use std::collections::HashMap;
use unwedge_capture::Dump;
use unwedge_capture::amd::plain_name;
use unwedge_capture::amdgpu::{AmdgpuSection, Devcoredump};
use unwedge_capture::umr::{PrintedRegister, UmrRing};
use unwedge_hw::amd::Amd;
use unwedge_hw::{Db, DecodedValue, Variants};
use unwedge_postmortem::amd::{Streams, gfx_of_dump};

/// Reads them off a dump, report or text.
pub(super) fn collect(dump: &Dump<'_>, facts: &mut DumpFacts) {
    let db = Db::amd();
    let mut status = HashMap::new();
    match dump {
        Dump::Amdgpu(dump) => {
            of_kernel(dump, &db, facts, &mut status);
            buffers(Streams::of_amdgpu(dump, &db), facts);
        }
        Dump::Radv(report) => {
            printed("registers.log", &report.registers, facts, &mut status);
            rings(report.umr_ring.iter().flat_map(|text| &text.rings), facts);
            buffers(Streams::of_radv(report, &db), facts);
            let known: Vec<u64> = facts.buffers.iter().map(|buffer| buffer.iova).collect();
            let listed = report.bo_ranges.iter().filter(|range| !known.contains(&range.iova));
            facts.buffers.extend(listed.map(|range| BufferFacts {
                iova: range.iova,
                size: range.end.saturating_sub(range.iova),
                name: String::new(),
                held: false,
            }));
            let absent = report.absent();
            facts.absent = absent.map(|(missing, name)| (name, words::absent::meaning(missing))).collect();
        }
        Dump::Umr(text) => {
            printed("registers", &text.registers, facts, &mut status);
            rings(text.rings.iter(), facts);
            buffers(Streams::of_umr(text, &db), facts);
        }
        Dump::Msm(_) | Dump::I915(_) | Dump::Xe(_) => {}
    }
    if !status.is_empty() {
        facts.stages = stages::stages(stages::AMD, |flag| status.get(flag).copied());
        facts.stages_from = "GRBM_STATUS and GRBM_STATUS2".to_owned();
    }
}

/// Buffers that the streams are in.
fn buffers(streams: Option<Streams<'_>>, facts: &mut DumpFacts) {
    let Some(streams) = streams else { return };
    facts.buffers.extend(streams.memory().buffers().iter().map(|buffer| BufferFacts {
        iova: buffer.iova,
        size: buffer.size,
        name: buffer.name.clone(),
        held: buffer.contents.is_some(),
    }));
}

fn of_kernel(dump: &Devcoredump<'_>, db: &Db, facts: &mut DumpFacts, status: &mut HashMap<String, bool>) {
    let amd = gfx_of_dump(dump, db).map(|gfx| db.amd_gpu(gfx));
    let ring = |pointer: Option<u64>, mask: Option<u32>| {
        pointer.map(|pointer| mask.map_or(pointer, |mask| pointer & u64::from(mask)))
    };
    facts.queues = dump
        .rings
        .iter()
        .map(|r| QueueFacts {
            name: r.name.clone().into_owned(),
            read: ring(r.rptr, r.mask),
            written: ring(r.wptr, r.mask),
            size: r.size.map(u64::from),
            ..QueueFacts::default()
        })
        .collect();
    for block in &dump.ips {
        for (number, bank) in block.banks.iter().enumerate() {
            let name = match number {
                0 => block.name.to_string(),
                _ => format!("{}, bank {number}", block.name),
            };
            let rows = bank.registers.iter().map(|register| {
                let ty = amd.and_then(|amd| amd.register(plain_name(&register.name))?.ty());
                RegisterFacts {
                    name: plain_name(&register.name).to_owned(),
                    value: format!("{:#010x}", register.value),
                    meaning: meaning(ty, register.value.into()),
                }
            });
            facts.add_registers(name, rows);
            for register in bank.registers.iter().filter(|register| register.value != u32::MAX) {
                flags(amd, plain_name(&register.name), register.value, status);
            }
        }
    }
    let missing = |section: AmdgpuSection| {
        Some((section.name().to_owned(), words::absent::meaning(dump.absent_section(section)?)))
    };
    facts.absent = AmdgpuSection::ALL.into_iter().filter_map(missing).collect();
}

/// Notes the flags of the registers that show which blocks are busy.
fn flags(amd: Option<Amd<'_>>, name: &str, value: u32, status: &mut HashMap<String, bool>) {
    if !matches!(name, "GRBM_STATUS" | "GRBM_STATUS2") {
        return;
    }
    let ty = amd.and_then(|amd| amd.register(name)?.ty());
    if let Some(DecodedValue::Fields(fields)) = ty.map(|ty| ty.decode(value.into(), &mut Variants::default()))
    {
        for field in fields {
            *status.entry(field.name.to_owned()).or_default() |= field.raw != 0;
        }
    }
}

/// Registers with the fields that were printed with them.
fn printed(
    section: &str,
    registers: &[PrintedRegister<'_>],
    facts: &mut DumpFacts,
    status: &mut HashMap<String, bool>,
) {
    let rows = registers.iter().map(|register| {
        let fields = register.fields.iter().filter(|field| field.value != Some(0));
        let fields: Vec<String> = fields.map(|field| format!("{} = {}", field.name, field.text)).collect();
        RegisterFacts {
            name: plain_name(&register.name).to_owned(),
            value: register.value.map(|value| format!("{value:#010x}")).unwrap_or_default(),
            meaning: fields.join(" | "),
        }
    });
    facts.add_registers(section, rows);
    let read = registers.iter().filter(|register| register.value != Some(u32::MAX));
    for register in read.filter(|r| matches!(plain_name(&r.name), "GRBM_STATUS" | "GRBM_STATUS2")) {
        for field in &register.fields {
            *status.entry(field.name.to_string()).or_default() |= field.value.is_some_and(|value| value != 0);
        }
    }
}

fn rings<'r, 'a: 'r>(rings: impl Iterator<Item = &'r UmrRing<'a>>, facts: &mut DumpFacts) {
    let queue = |ring: &UmrRing<'_>| {
        Some(QueueFacts {
            name: ring.name.as_ref()?.to_string(),
            read: ring.rptr,
            written: ring.wptr,
            ..QueueFacts::default()
        })
    };
    facts.queues.extend(rings.filter_map(queue));
}
