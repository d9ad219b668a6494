//! What dumps, reports and umr's text say of a hang, in one shape.
//!
//! Never: conclusions. What a source does not say stays absent.

use super::evidence::{evidence, field};
use super::identity::{code_of_dump, code_of_radv, code_of_umr, gfx_of_dump, gfx_of_radv, gfx_of_umr};
use super::umr::{umr_ring_name, umr_runs, umr_stream_contents, umr_stream_engine};
use crate::args::{Arg, Args};
use crate::reads::RegisterReads;
use crate::report::{Evidence, Fact, FieldFact};
use std::collections::BTreeSet;
use unwedge_base::{Buffer, Memory, Span};
use unwedge_capture::amd::{DwordContents, plain_name};
use unwedge_capture::amdgpu::{BankOwner, Devcoredump, RingType};
use unwedge_capture::radv::{KernelEvent, RadvReport, RadvShader};
use unwedge_capture::umr::{PrintedRegister, UmrShader, UmrText, UmrWave};
use unwedge_hw::amd::Amd;
use unwedge_hw::{Db, DecodedField, DecodedValue, Variants};
use unwedge_isa::amdgcn::Gpu;
use unwedge_stream::amd::Engine;

/// Registers whose fields say which blocks are busy.
pub(super) const STATUS_REGISTERS: [&str; 6] = [
    "GRBM_STATUS",
    "GRBM_STATUS2",
    "GRBM_STATUS_SE0",
    "GRBM_STATUS_SE1",
    "GRBM_STATUS_SE2",
    "GRBM_STATUS_SE3",
];

/// Registers that are shown where the GPU did not answer.
const MAX_SILENT: usize = 6;

/// A hang, as far as its sources tell.
pub(super) struct AmdCase<'c> {
    /// The facts, if the generation is known.
    pub(super) amd: Option<Amd<'c>>,
    /// What its code is for; `None` where instructions are not known.
    pub(super) gpu: Option<Gpu>,
    /// Registers, in the order of the source; none where the GPU did not answer.
    pub(super) regs: Vec<Reg<'c>>,
    /// What the registers of the source are worth.
    pub(super) reads: RegisterReads,
    /// Registers that say that the GPU did not answer, and how many there were.
    pub(super) silent: (Vec<Evidence>, usize),
    /// Rings.
    pub(super) rings: Vec<AmdRing<'c>>,
    /// The ring that timed out.
    pub(super) hung: Option<Hung<'c>>,
    /// Contents of indirect buffers.
    pub(super) memory: Memory,
    /// Indirect buffers of which the source says how large they are.
    pub(super) ibs: Vec<CapturedIb>,
    /// Page faults, newest last.
    pub(super) faults: Vec<AmdFault<'c>>,
    /// Waves.
    pub(super) waves: Vec<&'c UmrWave<'c>>,
    /// umr looked for waves and found none.
    pub(super) no_waves: bool,
    /// Code that waves may be in.
    pub(super) shaders: Vec<&'c RadvShader<'c>>,
    /// Shaders that umr listed.
    pub(super) umr_shaders: Vec<&'c UmrShader<'c>>,
    /// Addresses of memory that was read by itself, which is not a stream unless packets call it.
    pub(super) read_memory: BTreeSet<u64>,
    /// RADV's report, for what only it has.
    pub(super) radv: Option<&'c RadvReport<'c>>,
    /// The kernel's dump, for what only it has.
    pub(super) dump: Option<&'c Devcoredump<'c>>,
}

/// A register and where it was read.
pub(super) struct Reg<'c> {
    /// Without its prefix.
    pub(super) name: &'c str,
    pub(super) value: u32,
    /// `gfx_v10_0`, `gfx_v10_0 mec 0, pipe 1, queue 2`, `registers.log`.
    pub(super) section: String,
    pub(super) span: Option<Span>,
    /// Of which queue or instance, where it is of one.
    pub(super) place: Option<&'c BankOwner<'c>>,
}

/// A ring.
pub(super) struct AmdRing<'c> {
    pub(super) name: &'c str,
    pub(super) rptr: Option<u64>,
    pub(super) wptr: Option<u64>,
    pub(super) mask: Option<u32>,
    /// Dwords, as claimed.
    pub(super) size: Option<u64>,
    pub(super) contents: &'c DwordContents,
    pub(super) section: String,
    pub(super) span: Span,
}

impl<'c> AmdRing<'c> {
    /// Its size in dwords, as claimed.
    pub(super) fn claimed(&self) -> Option<u64> {
        self.size.or(self.mask.map(|mask| u64::from(mask) + 1))
    }

    /// All of its dwords, if none is missing: only then does the oldest follow the newest.
    pub(super) fn whole(&self) -> Option<&'c [u32]> {
        let size = self.claimed();
        self.contents.whole().filter(|dwords| size.is_none_or(|size| dwords.len() as u64 >= size))
    }
}

/// The ring that timed out.
pub(super) struct Hung<'c> {
    pub(super) ring: &'c str,
    /// Newest fence that was signaled, and emitted.
    pub(super) fences: Option<(u64, u64)>,
    pub(super) evidence: Evidence,
}

/// How much of an indirect buffer was captured, in dwords.
pub(super) struct CapturedIb {
    pub(super) iova: u64,
    pub(super) captured: u64,
    /// Its size, where the source says it.
    pub(super) claimed: Option<u64>,
}

/// A page fault.
pub(super) struct AmdFault<'c> {
    pub(super) hub: Option<&'c str>,
    pub(super) address: Option<u64>,
    pub(super) status: Option<u32>,
    pub(super) vmid: Option<u32>,
    pub(super) process: Option<&'c str>,
    pub(super) section: &'static str,
    pub(super) span: Option<Span>,
}

impl<'c> AmdCase<'c> {
    pub(super) fn empty(amd: Option<Amd<'c>>, gpu: Option<Gpu>) -> AmdCase<'c> {
        AmdCase {
            amd,
            gpu,
            regs: Vec::new(),
            reads: RegisterReads::Answered,
            silent: (Vec::new(), 0),
            rings: Vec::new(),
            hung: None,
            memory: Memory::default(),
            ibs: Vec::new(),
            faults: Vec::new(),
            waves: Vec::new(),
            no_waves: false,
            shaders: Vec::new(),
            umr_shaders: Vec::new(),
            read_memory: BTreeSet::new(),
            radv: None,
            dump: None,
        }
    }

    /// Of a kernel's dump.
    pub(super) fn of_dump(dump: &'c Devcoredump<'c>, db: &'c Db) -> AmdCase<'c> {
        let mut case =
            AmdCase::empty(gfx_of_dump(dump, db).map(|gfx| db.amd_gpu(gfx)), code_of_dump(dump, db));
        case.dump = Some(dump);
        for ip in &dump.ips {
            for bank in &ip.banks {
                let section = match place_words(&bank.place) {
                    words if words.is_empty() => ip.name.clone().into_owned(),
                    words => format!("{} {words}", ip.name),
                };
                case.regs.extend(bank.registers.iter().map(|r| Reg {
                    name: r.plain_name(),
                    value: r.value,
                    section: section.clone(),
                    span: Some(ip.span),
                    place: Some(&bank.place),
                }));
            }
        }
        for reg in &dump.reset_registers {
            let Some(found) = case.amd.and_then(|amd| amd.reg(reg.offset)) else { continue };
            case.regs.push(Reg {
                name: found.name(),
                value: reg.value,
                section: "AMDGPU register dumps".to_owned(),
                span: None,
                place: None,
            });
        }
        case.rings = dump
            .rings
            .iter()
            .map(|ring| AmdRing {
                name: &ring.name,
                rptr: ring.rptr,
                wptr: ring.wptr,
                mask: ring.mask,
                size: ring.size.map(u64::from),
                contents: &ring.contents,
                section: format!("ring {}", ring.name),
                span: ring.span,
            })
            .collect();
        case.hung = dump.timeout.as_ref().map(|timeout| Hung {
            ring: &timeout.ring,
            fences: None,
            evidence: Evidence {
                span: Some(timeout.span),
                ..evidence(
                    "Ring timed out details",
                    field("Ring Name", Arg::name(timeout.ring.clone().into_owned())),
                )
            },
        });
        case.faults.extend(dump.fault.as_ref().map(|fault| AmdFault {
            hub: Some(&fault.hub),
            address: fault.address,
            status: fault.status,
            vmid: None,
            process: None,
            section: "Page fault information",
            span: Some(fault.span),
        }));
        case.drop_unanswered();
        for ib in &dump.ibs {
            case.add_ib(ib.iova, ib.contents.len() as u64, ib.size);
        }
        case.memory.extend(
            dump.ibs.iter().flat_map(|ib| buffers(ib.iova, ib.contents.runs(), format!("IB #{}", ib.number))),
        );
        case
    }

    /// Of a report of RADV.
    pub(super) fn of_radv(report: &'c RadvReport<'c>, db: &'c Db) -> AmdCase<'c> {
        let mut case =
            AmdCase::empty(gfx_of_radv(report, db).map(|gfx| db.amd_gpu(gfx)), code_of_radv(report, db));
        case.radv = Some(report);
        case.registers(&report.registers, "registers.log");
        if let Some(ring) = &report.umr_ring {
            case.umr(ring, "umr_ring.log");
        }
        if let Some(waves) = &report.umr_waves {
            case.umr(waves, "umr_waves.log");
        }
        case.drop_unanswered();
        case.shaders.extend(report.pipeline.iter().flat_map(|pipeline| &pipeline.shaders));
        case.shaders.extend(report.trap.iter().filter_map(|trap| trap.shader.as_ref()));
        for event in &report.kernel {
            match event {
                KernelEvent::Timeout { ring, signaled, emitted } => {
                    let timeout = Args::new()
                        .with("ring", Arg::name(ring.clone().into_owned()))
                        .with_some("signaled", signaled.map(Arg::Number))
                        .with_some("emitted", emitted.map(Arg::Number));
                    case.hung = Some(Hung {
                        ring,
                        fences: signaled.zip(*emitted),
                        evidence: evidence("dmesg.log", Fact::Record(timeout)),
                    });
                }
                KernelEvent::Fault { hub, vmid, address, status, process } => case.faults.push(AmdFault {
                    hub: Some(hub),
                    address: *address,
                    status: *status,
                    vmid: *vmid,
                    process: process.as_deref(),
                    section: "dmesg.log",
                    span: None,
                }),
            }
        }
        if let Some(fault) = report.vm_fault.as_ref().filter(|fault| fault.address.is_some()) {
            // RADV asks the kernel for the fault of its own process: it comes before what the log says of any.
            case.faults.push(AmdFault {
                hub: None,
                address: fault.address,
                status: fault.status,
                vmid: None,
                process: None,
                section: "vm_fault.log",
                span: Some(fault.span),
            });
        }
        case
    }

    /// Of text that umr printed.
    pub(super) fn of_umr(text: &'c UmrText<'c>, db: &'c Db) -> AmdCase<'c> {
        let mut case = AmdCase::empty(gfx_of_umr(text, db).map(|gfx| db.amd_gpu(gfx)), code_of_umr(text, db));
        case.umr(text, "umr");
        case.drop_unanswered();
        case
    }

    fn umr(&mut self, text: &'c UmrText<'c>, section: &str) {
        self.registers(&text.registers, section);
        self.waves.extend(&text.waves);
        self.umr_shaders.extend(&text.shaders);
        self.no_waves |= text.no_waves;
        for memory in &text.memory {
            let read = buffers(memory.address, memory.contents.runs(), String::new());
            for buffer in read {
                self.read_memory.insert(buffer.iova);
                self.memory.extend([buffer]);
            }
        }
        for ring in &text.rings {
            self.rings.push(AmdRing {
                name: umr_ring_name(ring),
                rptr: ring.rptr,
                wptr: ring.wptr,
                mask: None,
                size: None,
                contents: &ring.contents,
                section: section.to_owned(),
                span: ring.span,
            });
            let engine = umr_stream_engine(ring, ring.kind());
            for ib in &ring.ibs {
                // Packets of other engines must not be decoded as those of this one.
                if engine.is_none() || umr_stream_engine(ring, ib.kind.or(ring.kind())) != engine {
                    continue;
                }
                let contents = umr_stream_contents(ib, self.amd);
                let runs = umr_runs(ib, &contents).filter(|run| !run.inside);
                let runs = runs.map(|run| (run.start, run.dwords));
                self.memory.extend(buffers(ib.iova, runs, String::new()).collect::<Vec<_>>());
                self.add_ib(ib.iova, contents.len() as u64, ib.size);
            }
        }
    }

    /// Counts dwords of a buffer that was captured in one piece or several.
    fn add_ib(&mut self, iova: u64, captured: u64, claimed: Option<u32>) {
        match self.ibs.iter_mut().find(|ib| ib.iova == iova) {
            Some(ib) => {
                ib.captured = ib.captured.saturating_add(captured);
                ib.claimed = ib.claimed.max(claimed.map(u64::from));
            }
            None => self.ibs.push(CapturedIb { iova, captured, claimed: claimed.map(u64::from) }),
        }
    }

    fn registers(&mut self, registers: &'c [PrintedRegister<'c>], section: &str) {
        self.regs.extend(registers.iter().filter_map(|r| {
            let (section, span) = (section.to_owned(), Some(r.span));
            Some(Reg { name: plain_name(&r.name), value: r.value?, section, span, place: None })
        }));
    }

    /// Looks at whether the GPU answered. What registers read as where it did not says nothing of it.
    fn drop_unanswered(&mut self) {
        let values = || self.regs.iter().map(|reg| reg.value);
        let witness = |reg: &&Reg<'_>| STATUS_REGISTERS.contains(&reg.name);
        let witnesses = || self.regs.iter().filter(witness);
        let reads = match RegisterReads::of(witnesses().map(|reg| reg.value), values()) {
            RegisterReads::Answered => RegisterReads::of(values(), values()),
            reads => reads,
        };
        if reads == RegisterReads::Answered {
            return;
        }
        let shown =
            if witnesses().next().is_some() { witnesses().collect() } else { Vec::from_iter(&self.regs) };
        let evidence = shown.into_iter().take(MAX_SILENT).map(Reg::evidence).collect();
        self.silent = (evidence, self.regs.len());
        self.reads = reads;
        self.regs.clear();
    }

    /// The first register of this name.
    pub(super) fn reg(&self, name: &str) -> Option<&Reg<'c>> {
        self.regs.iter().find(|reg| reg.name == name)
    }

    /// Every register of this name: FIFOs are listed once per entry.
    pub(super) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Reg<'c>> {
        self.regs.iter().filter(move |reg| reg.name == name)
    }

    /// An address of two registers.
    pub(super) fn address(&self, low: &str, high: &str) -> Option<u64> {
        Some(u64::from(self.reg(low)?.value) | u64::from(self.reg(high)?.value) << 32)
    }

    /// The ring that timed out, if its contents are there; of a report without a name for it, the only one there is.
    pub(super) fn hung_ring(&self) -> Option<&AmdRing<'c>> {
        match &self.hung {
            Some(hung) => self.rings.iter().find(|ring| ring.name == hung.ring),
            None if self.dump.is_none() => match self.rings.as_slice() {
                [ring] => Some(ring),
                _ => None,
            },
            None => None,
        }
    }

    /// The engine that reads buffers that no ring leads to: that of the ring that timed out, else graphics. `None` where that
    /// ring is of a video engine or of the scheduler, whose packets are not followed.
    pub(super) fn loose_engine(&self) -> Option<Engine> {
        let named = self.hung.is_some() || self.hung_ring().is_some();
        self.engine().or((!named).then_some(Engine::Gfx))
    }

    /// What the ring that timed out feeds.
    pub(super) fn engine(&self) -> Option<Engine> {
        let name = self.hung.as_ref().map(|hung| hung.ring).or(self.hung_ring().map(|ring| ring.name))?;
        engine_of(name)
    }

    /// The fields of a register's value that are not zero, by the facts.
    pub(super) fn fields(&self, reg: &Reg<'_>) -> Vec<DecodedField<'c>> {
        let ty = self.amd.and_then(|amd| amd.register(reg.name)).and_then(|found| found.ty());
        match ty.map(|ty| ty.decode(reg.value.into(), &mut Variants::new())) {
            Some(DecodedValue::Fields(fields)) => {
                fields.into_iter().filter(|f| f.raw != 0 && !f.name.is_empty()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Names of the fields of a register that are set.
    pub(super) fn set_fields(&self, reg: &Reg<'_>) -> Vec<&'c str> {
        self.fields(reg).into_iter().map(|field| field.name).collect()
    }
}

impl Reg<'_> {
    /// The register as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        self.evidence_of(Vec::new())
    }

    /// The register as evidence, for the sake of a field that is set.
    pub(super) fn evidence_with(&self, field: &str) -> Evidence {
        self.evidence_with_all(&[field])
    }

    /// The register as evidence, for the sake of fields that are set.
    pub(super) fn evidence_with_all(&self, fields: &[&str]) -> Evidence {
        let fact = |name: &&str| FieldFact { name: (*name).to_owned().into(), value: 1, meaning: None };
        self.evidence_of(fields.iter().map(fact).collect())
    }

    fn evidence_of(&self, fields: Vec<FieldFact>) -> Evidence {
        let fact = Fact::Register { name: self.name.to_owned().into(), value: self.value.into(), fields };
        Evidence { span: self.span, ..evidence(&*self.section, fact) }
    }
}

/// A field of a wave's register: as umr decoded it, or by the facts.
pub(super) fn wave_field(case: &AmdCase<'_>, wave: &UmrWave<'_>, register: &str, name: &str) -> Option<u64> {
    if let Some(value) = wave.field(register, name) {
        return Some(value.into());
    }
    let raw = wave.register(register)?;
    let ty = case.amd?.register(&format!("SQ_WAVE_{register}"))?.ty()?;
    match ty.decode(raw.into(), &mut Variants::new()) {
        DecodedValue::Fields(fields) => fields.into_iter().find(|f| f.name == name).map(|f| f.raw),
        _ => None,
    }
}

/// The type of a ring, by its name.
fn ring_type(ring: &str) -> Option<RingType> {
    // umr names rings by the path of the GPU, too.
    let name = ring.rsplit_once(['@', '/']).map_or(ring, |(_, name)| name).trim_start_matches("amdgpu_ring_");
    RingType::from_ring_name(name)
}

/// Whose packets a ring holds, for listings. Post-mortems look at those of [`engine_of`] only.
pub fn listed_engine_of(ring: &str) -> Option<Engine> {
    engine_of(ring).or_else(|| match ring_type(ring)? {
        RingType::VcnEnc => Some(Engine::Vcn),
        RingType::VcnDec => Some(Engine::VcnDecode),
        RingType::VcnJpeg => Some(Engine::Jpeg),
        RingType::Mes => Some(Engine::Mes),
        _ => None,
    })
}

/// What a ring feeds, by its name; `None` for engines whose packets a post-mortem does not follow.
pub fn engine_of(ring: &str) -> Option<Engine> {
    match ring_type(ring)? {
        RingType::Gfx => Some(Engine::Gfx),
        RingType::Compute | RingType::Kiq => Some(Engine::Compute),
        RingType::Sdma => Some(Engine::Sdma),
        _ => None,
    }
}

/// `mec 0, pipe 1, queue 2`
fn place_words(place: &BankOwner<'_>) -> String {
    match place {
        BankOwner::Block => String::new(),
        BankOwner::Instance(n) => format!("instance {n}"),
        BankOwner::Compute { xcc: Some(xcc), mec, pipe, queue } => {
            format!("xcc {xcc}, mec {mec}, pipe {pipe}, queue {queue}")
        }
        BankOwner::Compute { xcc: None, mec, pipe, queue } => {
            format!("mec {mec}, pipe {pipe}, queue {queue}")
        }
        BankOwner::Gfx { me, pipe, queue } => format!("me {me}, pipe {pipe}, queue {queue}"),
        BankOwner::Video { unit, instance, .. } => format!("{unit}{instance}"),
    }
}

/// What is known of a buffer, one piece for each stretch without a gap.
fn buffers<'c>(
    iova: u64,
    runs: impl Iterator<Item = (u64, &'c [u32])>,
    name: String,
) -> impl Iterator<Item = Buffer> {
    runs.map(move |(offset, dwords)| Buffer {
        iova: iova.saturating_add(offset.saturating_mul(4)),
        size: dwords.len() as u64 * 4,
        contents: Some(dwords.to_vec()),
        name: name.clone(),
    })
}
