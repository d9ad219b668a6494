//! The shaders, surfaces and buffers of the work that an engine stopped in, and what of them cannot be right.
//!
//! A draw uses what the pipeline commands before it set, a dispatch what its descriptor says. Memory that the dump does not
//! hold is not a cause: drivers capture some buffers only. What of a kernel's code is wrong, [`EuCode`] has.

use super::bound::BoundBuffers;
use super::case::{IntelCase, Unit};
use super::device::IntelDevice;
use super::eu_code::{EuCode, EuFault};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::{FindingKind, Rule};
use std::collections::HashSet;
use unwedge_capture::intel::MemoryBlockKind;
use unwedge_hw::intel::IntelGpu;
use unwedge_isa::eu::program::KernelEnd;
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::position::CommandPos;
use unwedge_stream::intel::references::{
    DispatchWidth, Reference, ReferenceTarget, ReferenceWalk, Referenced, ShaderStage, StateInMemory,
};
use unwedge_stream::intel::state::IntelWorkKind;
use unwedge_stream::intel::walk::{EventKind, IntelWalk};

/// Kernels of one stop.
const KERNELS: usize = 16;
/// Surfaces and buffers of one stop.
const USES: usize = 512;
/// Surfaces and buffers that are evidence.
const SHOWN_USES: usize = 24;
/// Lines of a kernel that are evidence.
const LINES: usize = 256;
/// Lines of a kernel whose code cannot be right.
const FIRST_LINES: usize = 8;
/// What ends closer before a faulting address is taken for what was meant.
const OVERRUN: u64 = 1 << 20;
/// A page: what the address of a fault names.
const PAGE: u64 = 1 << 12;

/// A kernel of the work at the stop.
#[derive(Debug)]
pub(super) struct KernelAtStop {
    /// The command or state that points to it, and where that is.
    owner: &'static str,
    reference: Reference,
    stage: ShaderStage,
    width: Option<DispatchWidth>,
    grf: Option<u64>,
    code: Option<EuCode>,
}

/// A surface or buffer of the work at the stop.
#[derive(Clone, Debug)]
pub(super) struct MemoryUse {
    /// `surface 1 of the fragment shader`
    name: String,
    /// Format and dimensions of a surface.
    shape: Option<String>,
    address: u64,
    /// The bytes that it has at least.
    size: Option<u64>,
    /// Whether it is in a binding table of which no command says how many entries it has: then it may be none.
    guessed: bool,
}

/// What the work at the stop uses.
#[derive(Debug, Default)]
pub(super) struct WorkAtStop {
    kernels: Vec<KernelAtStop>,
    uses: Vec<MemoryUse>,
}

/// What the work at a place of a walk uses: that of the command there, or of the last one before it that draws or dispatches.
pub(super) fn at_stop<'m>(
    case: &'m IntelCase<'_, '_>,
    unit: &'m Unit<'_, '_>,
    decoder: Decoder,
    walk: IntelWalk<'m>,
    place: CommandPos,
) -> WorkAtStop {
    let mut references = ReferenceWalk::new(decoder.gpu, case.spaces(unit));
    let mut commands = 0;
    for event in walk {
        let counts = matches!(event.kind, EventKind::Command(_) | EventKind::Noops(_));
        if commands > place.index || commands == place.index && !counts {
            break;
        }
        commands += u64::from(counts);
        references.see(&event);
    }
    let work = references.state().last_work();
    let kind = work.and_then(|work| IntelWorkKind::of(work.command.name()?));
    let mut gathered = Gatherer {
        case,
        references: &references,
        unit,
        seen: HashSet::new(),
        guessed: false,
        found: WorkAtStop::default(),
    };
    for (seen, pointers) in references.in_force() {
        let Some(name) = seen.command.name() else { continue };
        let own = work.is_some_and(|work| work.index == seen.index);
        let of_draw = name.starts_with("3DSTATE_") || name == "CONSTANT_BUFFER";
        let used = match kind {
            Some(IntelWorkKind::Dispatch) => own || name == "MEDIA_CURBE_LOAD" || name == "CONSTANT_BUFFER",
            Some(IntelWorkKind::Draw) => own || of_draw,
            Some(IntelWorkKind::Blit) => own,
            None => true,
        };
        if used {
            pointers.iter().for_each(|pointer| gathered.follow(name, pointer, None));
        }
    }
    gathered.found
}

struct Gatherer<'g, 'm, 'c, 'a> {
    case: &'g IntelCase<'c, 'a>,
    unit: &'g Unit<'c, 'a>,
    references: &'g ReferenceWalk<'m>,
    seen: HashSet<(u64, &'static str)>,
    /// See [`MemoryUse::guessed`].
    guessed: bool,
    found: WorkAtStop,
}

impl<'m> Gatherer<'_, 'm, '_, '_> {
    fn follow(&mut self, owner: &'static str, reference: &Reference, stage: Option<ShaderStage>) {
        let what = self.references.resolve(reference);
        if let (Referenced::Absent, Some(address)) = (&what, reference.address) {
            self.case.want(self.unit, address);
        }
        match (reference.target, what) {
            (ReferenceTarget::Kernel { stage, width, grf }, what) => {
                let words = match what {
                    Referenced::Kernel(words) => Some(words),
                    _ => None,
                };
                let same = self
                    .found
                    .kernels
                    .iter()
                    .any(|k| k.reference.address == reference.address && k.stage == stage);
                if self.found.kernels.len() < KERNELS && !same {
                    let code = words.map(|words| self.code(reference, words));
                    self.found.kernels.push(KernelAtStop {
                        owner,
                        reference: *reference,
                        stage,
                        width,
                        grf,
                        code,
                    });
                }
            }
            (ReferenceTarget::Buffer { usage, size }, _) => {
                let index = reference.index.map_or(String::new(), |index| format!(" {index}"));
                let name = format!("{}{index} of {owner}", usage.name());
                self.used(reference, name, None, size);
            }
            (ReferenceTarget::BindingTable { stage, entries: said }, Referenced::Table(entries, _)) => {
                self.guessed = said.is_none_or(|said| said == 0);
                for (&entry, index) in entries.iter().zip(0..) {
                    if let Some(surface) = self.references.of_entry(index, entry) {
                        self.follow(owner, &surface, stage);
                    }
                }
                self.guessed = false;
            }
            (ReferenceTarget::States { .. }, Referenced::States(states)) => {
                for state in states {
                    self.state(reference, &state, stage);
                }
            }
            _ => {}
        }
    }

    fn state(&mut self, reference: &Reference, state: &StateInMemory<'m>, stage: Option<ShaderStage>) {
        if !self.seen.insert((state.address, state.name)) {
            return;
        }
        if state.name != "RENDER_SURFACE_STATE" {
            let pointers = self.references.of_state(state);
            return pointers.iter().for_each(|pointer| self.follow(state.name, pointer, stage));
        }
        let surface = SurfaceShape::of(state, self.references.gpu());
        let Some(address) = surface.address else { return };
        let of = stage.map_or(String::new(), |stage| format!(" of the {}", stage.name()));
        let name = format!("surface {}{of}", reference.index.unwrap_or(state.index));
        let base = Reference { address: Some(address), ..*reference };
        self.used(&base, name, surface.text, surface.size);
    }

    fn used(&mut self, reference: &Reference, name: String, shape: Option<String>, size: Option<u64>) {
        let Some(address) = reference.address.filter(|&address| address != 0) else { return };
        if self.found.uses.len() < USES {
            // What is there matters for its end only.
            self.case.want(self.unit, address);
            self.found.uses.push(MemoryUse { name, shape, address, size, guessed: self.guessed });
        }
    }

    fn code(&self, reference: &Reference, words: &[u32]) -> EuCode {
        let device = IntelDevice {
            driver: self.case.driver,
            platform: self.case.platform,
            version: self.case.version,
        };
        let block = reference.address.and_then(|address| self.unit.ppgtt.find(address));
        EuCode::read(&device, words, block.is_none_or(|block| self.case.is_cut(block)))
    }
}

/// What a surface state says of memory.
struct SurfaceShape {
    address: Option<u64>,
    /// Format and dimensions.
    text: Option<String>,
    /// The bytes that the surface has at least: of a buffer all, of an image the first layer of the first level.
    size: Option<u64>,
}

impl SurfaceShape {
    fn of(state: &StateInMemory<'_>, gpu: IntelGpu) -> SurfaceShape {
        const NULL: u64 = 7;
        const BUFFERS: [u64; 2] = [4, 5];
        const RAW: u64 = 0x1ff;
        let number = |field: &str| state.number(field);
        let kind = number("Surface Type");
        let dimensions =
            || Some((number("Width")?, number("Height")?, number("Depth")?, number("Surface Pitch")?));
        let (Some(kind), Some((width, height, depth, pitch))) = (kind, dimensions()) else {
            return SurfaceShape { address: None, text: None, size: None };
        };
        let format = number("Surface Format");
        let named = match state.value("Surface Format") {
            Some(unwedge_hw::intel::IntelValue::Enum(_, name)) => name.to_owned(),
            _ => format.map_or(String::new(), |format| format!("format {format:#x}")),
        };
        let (text, size) = if BUFFERS.contains(&kind) {
            // Before gen7 the middle field has a bit less.
            let depth_at = if gpu.number() < 70 { 20 } else { 21 };
            let entries = (width | height << 7 | depth << depth_at) + 1;
            // The size of a raw buffer has the bytes that its last dword lacks added to it.
            let (bytes, of) = match format {
                Some(RAW) => (entries & !3, "bytes"),
                _ => ((entries - 1).saturating_mul(pitch + 1) + 1, "entries"),
            };
            (format!("buffer of {entries} {of}, {named}"), bytes)
        } else {
            // Rows of a tile or of a compressed block are not counted where they may not be whole.
            let linear = number("Tile Mode").or_else(|| number("Tiled Surface")) == Some(0);
            let compressed =
                ["BC", "DXT", "ETC", "EAC", "FXT", "ASTC"].iter().any(|part| named.contains(part));
            let rows = if compressed { height / 12 } else { height };
            let rows = if linear { rows } else { rows & !0x7f };
            let layers = if kind == 1 && depth == 0 { String::new() } else { format!("x{}", depth + 1) };
            let bytes = rows.saturating_mul(pitch + 1) + 1;
            (format!("{}x{}{layers} {named}", width + 1, height + 1), bytes)
        };
        let address = number("Surface Base Address").filter(|_| kind != NULL);
        SurfaceShape { address, text: Some(text), size: Some(size) }
    }
}

fn width_arg(width: Option<DispatchWidth>) -> Option<Arg> {
    match width? {
        DispatchWidth::Simd(n) => Some(Arg::Number(n.into())),
        DispatchWidth::Vec4 => None,
    }
}

impl KernelAtStop {
    fn args(&self) -> Args {
        Args::new()
            .with("stage", Arg::name(self.stage.name()))
            .with_some("simd", width_arg(self.width))
            .with_some("address", self.reference.address.map(Arg::Address))
    }

    fn evidence(&self, case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>, lines: usize) -> Vec<Evidence> {
        let address = self.reference.address;
        let end = self.code.as_ref().and_then(|code| code.end);
        let pointer = Args::new()
            .with("kernel_of", Arg::name(self.owner))
            .with("field", Arg::name(self.reference.field))
            .with("offset", Arg::Value(self.reference.offset))
            .with_some("address", address.map(Arg::Address))
            .with_some("buffer", address.and_then(|address| case.block_at(unit, address)))
            .with("stage", Arg::name(self.stage.name()))
            .with_some("simd", width_arg(self.width))
            .with_some("payload_register", self.grf.map(Arg::Number))
            .with_some("base", self.reference.base.map(|base| Arg::name(base.name())))
            .with_some("bytes", self.length())
            .with_some("end", end.map(|end| Arg::name(end_id(end))));
        let opaque = self.code.as_ref().filter(|code| code.length.is_none());
        let pointer = pointer.with_some("bytes_to_end", opaque.map(|code| Arg::Number(code.held as u64)));
        let pointer = Evidence { iova: address, ..unit.seen(Fact::Record(pointer)) };
        let dwords = opaque.filter(|_| lines > 0).map(|code| {
            let (count, words) = (code.held as u64 / 4, code.first.clone());
            let fact = Fact::Dwords { level: None, first: None, count, words, packet: None };
            Evidence { iova: address, ..unit.seen(fact) }
        });
        let lines = self.code.iter().flat_map(|code| &code.lines).take(lines);
        let lines = lines.map(|line| unit.seen(Fact::Line(line.clone())));
        std::iter::once(pointer).chain(dwords).chain(lines).collect()
    }

    /// Bytes of its code, where it is known how far it goes.
    fn length(&self) -> Option<Arg> {
        Some(Arg::Number(self.code.as_ref()?.length? as u64))
    }

    /// What the hardware does not define of its code. Whether a thread was there is not known.
    fn code_findings(&self, case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Vec<Finding> {
        let (Some(address), Some(code)) = (self.reference.address, &self.code) else { return Vec::new() };
        let finding = |fault: &EuFault| {
            let rule = if fault.misses_wait() { Rule::EuCodeMissesWait } else { Rule::EuCodeBreaksRule };
            let place = self.args();
            let args =
                fault.args().iter().fold(place.clone(), |args, (name, arg)| args.with(name, arg.clone()));
            let lines = fault.lines.iter().map(|line| {
                let place = place.clone().with("offset", Arg::Value(line.offset)).with("marked", line.marked);
                let fact = Fact::Code { place, words: line.words.clone(), text: Some(line.text.clone()) };
                Evidence { iova: address.checked_add(line.offset), ..unit.seen(fact) }
            });
            let found = Finding::new(rule, Trust::Possible, Subject::Memory(address));
            Finding { args, ..found }.seen(self.evidence(case, unit, 0).into_iter().chain(lines))
        };
        let mut findings: Vec<Finding> = code.faults.iter().map(finding).collect();
        if let Some(last) = findings.last_mut().filter(|_| code.more_faults > 0) {
            last.args = std::mem::take(&mut last.args).with("more", Arg::Number(code.more_faults as u64));
        }
        findings
    }

    /// What is wrong with its end.
    fn finding(&self, case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Option<Finding> {
        let address = self.reference.address?;
        let found = |rule, trust| {
            let found = Finding::new(rule, trust, Subject::Memory(address));
            let args = self.args().with_some("bytes", self.length());
            Some(Finding { args, ..found }.seen(self.evidence(case, unit, FIRST_LINES)))
        };
        let Some(code) = &self.code else {
            let holds = |b: &&unwedge_capture::intel::MemoryBlock<'_>| {
                let start = b.address.unwrap_or(u64::MAX);
                b.error.is_some()
                    && b.length.is_some_and(|n| (start..start.saturating_add(n)).contains(&address))
            };
            let block = case.blocks_of(unit, MemoryBlockKind::Vm).find(|b| holds(b))?;
            let error = block.error.map(|error| Arg::Text(error.to_string()));
            let unreadable = found(Rule::EuCodeUnreadable, Trust::Possible)?;
            return Some(unreadable.with_some("error", error));
        };
        let cut = || unit.ppgtt.find(address).is_none_or(|block| case.is_cut(block));
        match code.end {
            _ if code.zero => found(Rule::EuCodeZero, Trust::Likely),
            Some(KernelEnd::Illegal | KernelEnd::NotCode) => found(Rule::EuCodeIllegal, Trust::Likely),
            Some(KernelEnd::Cut) if !cut() => found(Rule::EuCodeWithoutEnd, Trust::Possible),
            _ => None,
        }
    }
}

fn end_id(end: KernelEnd) -> &'static str {
    match end {
        KernelEnd::EndOfThread => "end-of-thread",
        KernelEnd::Illegal => "illegal",
        KernelEnd::NotCode => "not-code",
        KernelEnd::Cut => "cut",
    }
}

impl MemoryUse {
    fn args(&self) -> Args {
        Args::new()
            .with("use", Arg::Text(self.name.clone()))
            .with("address", Arg::Address(self.address))
            .with_some("bytes", self.size.map(Arg::Number))
            .with_some("shape", self.shape.clone().map(Arg::Text))
    }

    fn end(&self) -> Option<u64> {
        Some(self.address.saturating_add(self.size?))
    }

    /// It goes on past the end of the buffer it starts in, into memory that is of no other.
    fn finding(&self, case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Option<Finding> {
        let (block, end) = (unit.ppgtt.find(self.address)?, self.end()?);
        let past = end.checked_sub(block.end()).filter(|&past| past > 0)?;
        if unit.ppgtt.find(end.saturating_sub(1)).is_some() {
            return None;
        }
        // A buffer that was not unpacked yet may be there.
        case.want(unit, end.saturating_sub(1));
        let whole = block.contents.is_some() && !case.is_cut(block);
        whole.then(|| {
            let found = Finding::new(Rule::SurfacePastBuffer, Trust::Possible, Subject::Memory(self.address));
            let args = self.args().with("past", Arg::Value(past));
            let args = args.with_some("buffer", case.block_at(unit, self.address));
            Finding { args, ..found }
        })
    }

    /// None of it is in a buffer that is in use.
    fn freed(&self, case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>, bound: &BoundBuffers) -> Option<Finding> {
        let held = || case.block_at(unit, self.address).is_some();
        let freed = !self.guessed && !bound.has_some(self.address, self.size.unwrap_or(1)) && !held();
        freed.then(|| {
            let found = Finding::new(Rule::SurfaceNotBound, Trust::Possible, Subject::Memory(self.address));
            let args = self.args().with("buffers", Arg::Number(bound.count));
            Finding { args, ..found }
        })
    }
}

impl WorkAtStop {
    /// The shaders, surfaces and buffers.
    pub(super) fn evidence(&self, case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Vec<Evidence> {
        let kernels = self.kernels.iter().flat_map(|kernel| kernel.evidence(case, unit, LINES));
        let uses = self.uses.iter().take(SHOWN_USES).map(|used| {
            let args = used.args().with_some("buffer", case.block_at(unit, used.address));
            Evidence { iova: Some(used.address), ..unit.seen(Fact::Record(args)) }
        });
        kernels.chain(uses).collect()
    }

    /// The shaders, for the finding on the work.
    pub(super) fn shaders(&self) -> Option<Arg> {
        let system = |kernel: &&KernelAtStop| kernel.stage != ShaderStage::SystemRoutine;
        let all: Vec<Arg> = self.kernels.iter().filter(system).map(|kernel| kernel.args().into()).collect();
        (!all.is_empty()).then(|| all.into())
    }

    /// What of it cannot be right.
    pub(super) fn findings(&self, case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Vec<Finding> {
        let kernels = self.kernels.iter().flat_map(|kernel| match kernel.finding(case, unit) {
            Some(finding) => vec![finding],
            None if kernel.stage == ShaderStage::SystemRoutine => Vec::new(),
            None => kernel.code_findings(case, unit),
        });
        let past = self.uses.iter().filter_map(|used| used.finding(case, unit)).take(4);
        let bound = BoundBuffers::of(case, unit);
        let freed =
            bound.iter().flat_map(|bound| self.uses.iter().filter_map(|u| u.freed(case, unit, bound)));
        kernels.chain(past).chain(freed.take(4)).collect()
    }

    /// Adds to faults the surface or buffer that holds their page, or that ends shortly before it.
    pub(super) fn name_surfaces(&self, findings: &mut [Finding]) {
        let faults = findings.iter_mut().filter(|f| f.kind == FindingKind::Fault);
        for fault in faults.filter(|fault| fault.args.get("surface").is_none()) {
            let Some(page) =
                fault.args.number("address").filter(|_| fault.args.text("space") != Some("GGTT"))
            else {
                continue;
            };
            let holds =
                |used: &&MemoryUse| used.address < page + PAGE && used.end().is_some_and(|end| end > page);
            let before = |used: &MemoryUse| page.checked_sub(used.end()?).filter(|&by| by < OVERRUN);
            let holder = self.uses.iter().find(holds).map(|used| (used, None));
            let nearest = || {
                let near = self.uses.iter().filter_map(|used| Some((used, before(used)?)));
                near.min_by_key(|(_, by)| *by).map(|(used, by)| (used, Some(by)))
            };
            if let Some((used, by)) = holder.or_else(nearest) {
                let args = used.args().with_some("distance", by.map(Arg::Value));
                fault.args = std::mem::take(&mut fault.args).with("surface", Arg::Record(args));
            }
        }
    }
}
