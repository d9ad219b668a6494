//! What `check` finds wrong in the code of the shaders of the work at a stop.
//!
//! Of the check only errors count that the code at hand shows, whatever comes after it: a dump does not say where a shader ends.
//! Whether a wave was there is not known, so nothing of this is more than possible. Never: shaders of other work.

use unwedge_base::Generation;
use unwedge_check::ir3::{CheckFinding, CheckOptions, Level, Rule as Check, WaitNeed, check};
use unwedge_isa::ir3;
use unwedge_stream::adreno::{DrawKind, Stage};

use crate::adreno::case::{AdrenoCase, seen};
use crate::adreno::corrupt::section_of;
use crate::adreno::hang::CpStop;
use crate::adreno::inflight::OpenWork;
use crate::adreno::trace::TracedWork;
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;
use crate::signature::ShaderHash;

/// Instructions of a shader that are checked.
const LONGEST: usize = 1 << 13;
/// Work before the stop whose shaders are checked.
const MOST_WORK: usize = 4;
/// What is wrong in one shader, of which so much is reported.
const MOST_FAULTS: usize = 3;
/// Instructions shown before and after one that is wrong.
const AROUND: usize = 2;
/// Rules about what comes after the code at hand.
const SHAPE: [Check; 2] = [Check::BranchOutside, Check::RunsOff];

/// A shader of the work at a stop.
struct ShaderCode {
    stage: Stage,
    iova: u64,
    words: Vec<u64>,
    gpu_id: u32,
}

/// What is wrong in the shaders of the work that the CP starts, and of the last work that is not known to be done.
pub(super) fn findings(
    case: &AdrenoCase<'_>,
    gpu_id: Option<u32>,
    stop: &CpStop,
    open: &OpenWork<'_>,
) -> Vec<Finding> {
    if case.gpu.generation() < Generation::A5xx {
        return Vec::new();
    }
    let gpu_id = gpu_id.unwrap_or(100 * case.gpu.generation().number());
    let own = stop.scene.own_work.iter();
    let mut shaders: Vec<(Stage, u64)> = Vec::new();
    for &shader in own.chain(open.work.iter().copied().take(MOST_WORK)).flat_map(|work| &work.shaders) {
        if !shaders.contains(&shader) {
            shaders.push(shader);
        }
    }
    let code = |&(stage, iova): &(Stage, u64)| ShaderCode::read(case, stage, iova, gpu_id);
    shaders.iter().filter_map(code).flat_map(|code| code.findings(case)).collect()
}

/// A hash of the code of the shaders of a piece of work; `None` where it has no shaders, or the dump does not hold all of them.
pub(super) fn hash(case: &AdrenoCase<'_>, gpu_id: Option<u32>, work: &TracedWork) -> Option<ShaderHash> {
    let gpu_id = gpu_id.unwrap_or(100 * case.gpu.generation().number());
    let code = |&(stage, iova): &(Stage, u64)| {
        let code = ShaderCode::read(case, stage, iova, gpu_id)?;
        Some(code.words[..code.length()?].to_vec())
    };
    let words = work.shaders.iter().map(code).collect::<Option<Vec<Vec<u64>>>>()?.concat();
    ShaderHash::of(words.into_iter().flat_map(|word| [word as u32, (word >> 32) as u32]))
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Vertex => "vertex",
        Stage::TessControl => "tess-control",
        Stage::TessEval => "tess-eval",
        Stage::Geometry => "geometry",
        Stage::Fragment => "fragment",
        Stage::Compute => "compute",
    }
}

impl ShaderCode {
    /// The code at an address, as far as the dump has it.
    fn read(case: &AdrenoCase<'_>, stage: Stage, iova: u64, gpu_id: u32) -> Option<ShaderCode> {
        let dwords = case.memory.dwords(iova)?;
        let word =
            |at: usize| Some(u64::from(dwords.get(2 * at)?) | u64::from(dwords.get(2 * at + 1)?) << 32);
        let words: Vec<u64> = (0..LONGEST).map_while(word).collect();
        // The dump may not have the contents of the buffer that the code is in.
        let there = words.iter().any(|&word| word != 0);
        there.then_some(ShaderCode { stage, iova, words, gpu_id })
    }

    /// Instructions up to the end: the first `end` that no branch before it leads past. `None` where there is none.
    fn length(&self) -> Option<usize> {
        let mut reached = 0;
        for (at, &word) in self.words.iter().enumerate() {
            let instruction = ir3::Instruction::decode(word, self.gpu_id)?;
            reached = reached.max(instruction.target(at).unwrap_or(0));
            if instruction.opcode == ir3::Opcode::End && reached <= at {
                return Some(at + 1);
            }
        }
        None
    }

    fn findings(&self, case: &AdrenoCase<'_>) -> Vec<Finding> {
        let report = check(&self.words, self.gpu_id, &CheckOptions::default());
        let counts = |f: &CheckFinding| f.level == Level::Error && !SHAPE.contains(&f.rule);
        let faults: Vec<CheckFinding> = report.findings.into_iter().filter(counts).collect();
        let more = faults.len().saturating_sub(MOST_FAULTS);
        let mut out: Vec<Finding> =
            faults.iter().take(MOST_FAULTS).map(|fault| self.finding(case, fault)).collect();
        if let Some(last) = out.last_mut().filter(|_| more > 0) {
            last.args = std::mem::take(&mut last.args).with("more", Arg::Number(more as u64));
        }
        out
    }

    fn finding(&self, case: &AdrenoCase<'_>, fault: &CheckFinding) -> Finding {
        let rule = if fault.need.is_some() { Rule::Ir3CodeMissesWait } else { Rule::Ir3CodeBreaksRule };
        let (at, first) = (fault.at as usize, fault.first.map(|first| first as usize));
        let first = first.filter(|&first| first != at);
        let stage = stage_name(self.stage);
        let subject = Subject::Shader { name: Some(stage.to_owned()), iova: Some(self.iova) };
        Finding::new(rule, Trust::Possible, subject)
            .with("check", Arg::name(fault.rule.info().name))
            .with("stage", Arg::name(stage))
            .with("address", Arg::Address(self.iova))
            .with("offset", Arg::Value(offset(at)))
            .with_some("instruction", self.text(at).map(Arg::Text))
            .with_some("register", fault.register.map(|register| Arg::Text(register.to_string())))
            .with_some("wait", fault.need.and_then(wait_name).map(Arg::name))
            .with_some("cycles", fault.need.and_then(cycles).map(Arg::Number))
            .with_some("first", first.map(|first| Arg::Value(offset(first))))
            .with_some("first_instruction", first.and_then(|first| self.text(first)).map(Arg::Text))
            .seen(self.evidence(case, &[Some(at), first]))
    }

    fn text(&self, at: usize) -> Option<String> {
        let mut line = Vec::new();
        ir3::write(*self.words.get(at)?, self.gpu_id, &mut line);
        Some(String::from_utf8_lossy(&line).split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The instructions around those that are marked.
    fn evidence(&self, case: &AdrenoCase<'_>, marked: &[Option<usize>]) -> Vec<Evidence> {
        let marked: Vec<usize> = marked.iter().copied().flatten().collect();
        let near = |at: &usize| marked.iter().any(|marked| marked.abs_diff(*at) <= AROUND);
        let line = |at: usize| {
            let word = self.words.get(at)?;
            let place = Args::new()
                .with("address", Arg::Address(self.iova))
                .with("offset", Arg::Value(offset(at)))
                .with("marked", marked.contains(&at));
            let words = vec![*word as u32, (word >> 32) as u32];
            let fact = Fact::Code { place, words, text: self.text(at) };
            let iova = self.iova.checked_add(offset(at));
            Some(Evidence { iova, ..seen(section_of(case, iova), fact) })
        };
        let from = marked.iter().min().map_or(0, |first| first.saturating_sub(AROUND));
        let to = marked.iter().max().map_or(0, |last| last.saturating_add(AROUND));
        (from..=to.min(self.words.len())).filter(near).filter_map(line).collect()
    }
}

/// Bytes from the start of a shader to an instruction.
fn offset(at: usize) -> u64 {
    8 * at as u64
}

fn wait_name(need: WaitNeed) -> Option<&'static str> {
    match need {
        WaitNeed::Ss => Some("(ss)"),
        WaitNeed::Sy => Some("(sy)"),
        WaitNeed::SsOrSy => Some("(ss) or (sy)"),
        WaitNeed::Nops(_) => None,
    }
}

fn cycles(need: WaitNeed) -> Option<u64> {
    match need {
        WaitNeed::Nops(count) => Some(count.into()),
        _ => None,
    }
}

/// Registers that name the code of a stage, and those that say whether the stage is used.
pub(super) const STAGES: [(Stage, &str, &str); 6] = [
    (Stage::Vertex, "SP_VS_OBJ_START", "SP_VS_CONFIG"),
    (Stage::TessControl, "SP_HS_OBJ_START", "SP_HS_CONFIG"),
    (Stage::TessEval, "SP_DS_OBJ_START", "SP_DS_CONFIG"),
    (Stage::Geometry, "SP_GS_OBJ_START", "SP_GS_CONFIG"),
    (Stage::Fragment, "SP_FS_OBJ_START", "SP_FS_CONFIG"),
    (Stage::Compute, "SP_CS_OBJ_START", "SP_CS_CONFIG"),
];

/// Whether work of a kind runs shaders of a stage.
pub(super) fn runs(work: DrawKind, stage: Stage) -> bool {
    match work {
        DrawKind::Draw => stage != Stage::Compute,
        DrawKind::Dispatch => stage == Stage::Compute,
        DrawKind::Blit | DrawKind::Event => false,
    }
}
