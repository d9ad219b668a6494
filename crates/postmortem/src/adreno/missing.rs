//! What the dump does not hold, and what therefore cannot be said.

use unwedge_base::Generation;
use unwedge_capture::msm::{Blob, MsmSection};

use crate::absence;
use crate::adreno::case::{AdrenoCase, seen};
use crate::adreno::hang::CpStop;
use crate::adreno::inflight::pool;
use crate::args::{Arg, Args};
use crate::reads::RegisterReads;
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;

/// What is absent: grave gaps one by one, the rest in one finding.
pub fn findings(case: &AdrenoCase<'_>, stop: Option<&CpStop>) -> Vec<Finding> {
    let mut out = Vec::new();
    let dump = case.dump;
    let gap = |rule, subject| Finding::new(rule, Trust::Certain, subject);
    if case.reads == RegisterReads::AllZero {
        let registers = Subject::Section(MsmSection::Registers.name().into());
        let count = dump.registers.len() as u64;
        out.push(gap(Rule::RegistersAllZero, registers).with("registers", Arg::Number(count)));
    } else if case.regs.is_empty() && case.reads == RegisterReads::Answered {
        let registers = Subject::Section(MsmSection::Registers.name().into());
        out.push(
            gap(Rule::RegistersNotCaptured, registers).seen([absent_section(case, MsmSection::Registers)]),
        );
    }
    match stop {
        None => match dump.rings.first() {
            Some(ring) => out.push(gap(Rule::RingPositionNotCaptured, Subject::Ring(ring.id))),
            None => out.push(gap(Rule::RingNotCaptured, Subject::Dump)),
        },
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
    out.extend(cut(case, stop));
    let a6xx = case.gpu.generation() >= Generation::A6xx;
    let sections = [MsmSection::FaultInfo, MsmSection::Bos, MsmSection::RegistersGmu, MsmSection::GmuHfi];
    let of_gpu = |section: &MsmSection| section.is_written_for(Some(case.gpu.generation()));
    let named = |section: &'static str| Args::new().with("section", Arg::name(section));
    let absent = |section: MsmSection| Some(absence::values(named(section.name()), dump.absence(section)?));
    let sections: Vec<Args> = sections.into_iter().filter(of_gpu).filter_map(absent).collect();
    let blocks = [(case.sqe.is_none(), "CP_SQE_STAT"), (pool(case).is_none(), "CP_MEMPOOL")];
    let blocks = blocks.into_iter().filter(|&(absent, _)| a6xx && absent).map(|(_, name)| name);
    let why = dump.absence(MsmSection::IndexedRegisters);
    let blocks = blocks.map(|name| {
        let why = why.map(|why| Arg::name(why.id()));
        named(name).with_some("absence", why)
    });
    let absent: Vec<Args> = sections.into_iter().chain(blocks).collect();
    if !absent.is_empty() {
        let evidence: Vec<Evidence> = absent.iter().filter_map(|args| absent_evidence(case, args)).collect();
        let list: Vec<Arg> = absent.into_iter().map(Arg::Record).collect();
        out.push(gap(Rule::SectionsNotCaptured, Subject::Dump).with("sections", list).seen(evidence));
    }
    out
}

fn absent_evidence(case: &AdrenoCase<'_>, args: &Args) -> Option<Evidence> {
    let name = args.text("section")?.to_owned();
    let section = MsmSection::from_name(&name);
    let holder = section.unwrap_or(MsmSection::IndexedRegisters).name();
    let section = section.map(|section| case.dump.absent_section(section));
    Some(seen(holder, Fact::Absent { name: name.into(), section }))
}

/// Rings and buffers whose contents end before they should: the dump is cut there, or damaged.
fn cut(case: &AdrenoCase<'_>, stop: Option<&CpStop>) -> Vec<Finding> {
    let known = |data: &Option<Blob<'_>>, size: u64| {
        let (words, complete) = data.as_ref()?.decode_known();
        let (known, size) = (words.len() as u64, size / 4);
        (!complete && known < size).then_some((known, size))
    };
    let gap = |rule, subject, (known, size): (u64, u64), cut: bool| {
        Finding::new(rule, Trust::Certain, subject)
            .with("captured", Arg::Number(known))
            .with("dwords", Arg::Number(size))
            .with("cut", cut)
    };
    let is_cut = |data: &Option<Blob<'_>>| data.as_ref().is_some_and(|data| data.cut);
    let mut out = Vec::new();
    for (i, ring) in case.dump.rings.iter().enumerate() {
        let Some(known) = known(&ring.data, ring.size.unwrap_or(0).into()) else { continue };
        let at = stop.filter(|stop| stop.ring == i).and_then(|stop| stop.point.levels.first());
        let at = at.map(|level| level.range.1).filter(|&at| at >= known.0);
        let found = gap(Rule::RingContentsCut, Subject::Ring(ring.id), known, is_cut(&ring.data));
        out.push(found.with_some("stop", at.map(Arg::Number)));
    }
    for bo in &case.dump.bos {
        let Some(known) = known(&bo.data, bo.size) else { continue };
        let levels = stop.into_iter().flat_map(|stop| &stop.point.levels);
        let at = levels.filter(|level| level.base == bo.iova).map(|level| level.range.1).max();
        let found = gap(Rule::BufferContentsCut, Subject::Memory(bo.iova), known, is_cut(&bo.data));
        out.push(
            found
                .with("base", Arg::Address(bo.iova))
                .with_some("stop", at.filter(|&at| at >= known.0).map(Arg::Number)),
        );
    }
    out
}

/// That a section is not there, and what that means.
fn absent_section(case: &AdrenoCase<'_>, section: MsmSection) -> Evidence {
    let absent = case.dump.absent_section(section);
    let fact = Fact::Absent { name: section.name().into(), section: Some(absent) };
    seen(section.name(), fact)
}
