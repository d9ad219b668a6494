//! What the dump does not hold, and what therefore cannot be said.

use unwedge_base::Generation;
use unwedge_capture::msm::MsmSection;

use crate::adreno::case::{AdrenoCase, seen};
use crate::adreno::hang::CpStop;
use crate::adreno::inflight::pool;
use crate::args::Arg;
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;

/// What is absent: grave gaps one by one, the rest in one finding.
pub fn findings(case: &AdrenoCase<'_>, stop: Option<&CpStop>) -> Vec<Finding> {
    let mut out = Vec::new();
    let dump = case.dump;
    let gap = |rule, subject| Finding::new(rule, Trust::Certain, subject);
    if case.regs.is_empty() {
        let registers = Subject::Section(MsmSection::Registers.name().into());
        out.push(gap(Rule::RegistersNotCaptured, registers).seen([absent_section(MsmSection::Registers)]));
    }
    match stop {
        None => out.push(gap(Rule::RingNotCaptured, Subject::Dump)),
        Some(stop) => {
            if let Some(ring) = dump.rings.get(stop.ring).filter(|r| r.data.is_none()) {
                out.push(gap(Rule::RingDwordsNotCaptured, Subject::Ring(ring.id)));
            }
            for level in ["IB1", "IB2"] {
                let base = case.regs.address(&format!("CP_{level}_BASE")).filter(|&b| b != 0);
                if let Some(base) = base.filter(|&b| case.memory.dwords(b).is_none()) {
                    out.push(
                        gap(Rule::IbNotCaptured, Subject::Memory(base))
                            .with("level", Arg::name(level))
                            .with("base", Arg::Address(base)),
                    );
                }
            }
        }
    }
    let a6xx = case.gpu.generation() >= Generation::A6xx;
    let sections = [
        (dump.fault.is_none(), MsmSection::FaultInfo),
        (dump.bos.is_empty(), MsmSection::Bos),
        (a6xx && dump.registers_gmu.is_empty(), MsmSection::RegistersGmu),
        (a6xx && dump.gmu_hfi.is_none(), MsmSection::GmuHfi),
    ];
    let blocks = [(a6xx && case.sqe.is_none(), "CP_SQE_STAT"), (a6xx && pool(case).is_none(), "CP_MEMPOOL")];
    let sections = sections.into_iter().filter(|(absent, _)| *absent).map(|(_, s)| absent_section(s));
    let blocks = blocks.into_iter().filter(|(absent, _)| *absent).map(|(_, name)| {
        let section = MsmSection::IndexedRegisters.name();
        seen(section, Fact::Absent { name: name.into(), reason: None })
    });
    let evidence: Vec<Evidence> = sections.chain(blocks).collect();
    if !evidence.is_empty() {
        out.push(gap(Rule::SectionsNotCaptured, Subject::Dump).seen(evidence));
    }
    out
}

/// That a section is not there, and what that means.
fn absent_section(section: MsmSection) -> Evidence {
    let fact = Fact::Absent { name: section.name().into(), reason: Some(section.absence().into()) };
    seen(section.name(), fact)
}
