//! What `edit` and `bisect` print. Never: edits, or runs trials.

use crate::plural::counted;
use unwedge_base::{Diagnostic, Generation};
use unwedge_edit::bisect::{BisectEnd, BisectItem, BisectPlan, BisectSearch};
use unwedge_edit::instrument::{Instrumentation, Instrumenter, MemoryCopy};
use unwedge_edit::rewrite::Rewritten;
use unwedge_hw::Db;

/// Numbers of a draw that are listed.
const NUMBERS: usize = 8;

/// What was edited, and where copies and shaders are, a line each. `result` is what the edited capture is called.
pub fn edited(
    rewritten: &Rewritten,
    options: &Instrumentation,
    editor: &Instrumenter<'_>,
    result: &str,
) -> Vec<String> {
    let mut lines = vec![format!(
        "{}, {} moved, {} added",
        counted(rewritten.edited, "packet edited", "packets edited"),
        counted(rewritten.moved, "stream", "streams"),
        counted(rewritten.added, "buffer", "buffers")
    )];
    for (shader, (sets, place)) in options.shaders.iter().zip(editor.replaced()) {
        if let Some(place) = place {
            let sets = counted(*sets, "set of buffers", "sets of buffers");
            lines.push(format!("shader {:#x} is at {place:#x}, in {sets}", shader.iova));
        }
    }
    for MemoryCopy { work, name, from, to, size, set } in editor.copies() {
        lines.push(format!(
            "after {work}, {name} ({from:#x}, {size} bytes) is copied: \
            unwedge replay --dump-mem {set}@{to:#x}:{size}={name}.bin {result}"
        ));
    }
    lines
}

/// What was asked for, and the capture does not have.
pub fn missing(options: &Instrumentation, editor: &Instrumenter<'_>) -> Vec<Diagnostic> {
    let works = editor.works();
    let there = counted(works.into(), "draw, dispatch, blit or event", "draws, dispatches, blits and events");
    let mut lost = Vec::new();
    let mut lose = |message: String| lost.push(Diagnostic::loss(None, message));
    if let Some(work) = options.crash_at.filter(|work| *work >= works) {
        lose(format!("--crash-at {work}: the capture has {there}"));
    }
    if options.nop.as_ref().is_some_and(|nop| !(0..works).any(|work| nop.contain(work))) {
        lose(format!("--nop: the capture has {there}, and none of these"));
    }
    for dump in options.dumps.iter().filter(|dump| dump.work >= works) {
        lose(format!("--dump-after {}: the capture has {there}", dump.work));
    }
    for work in editor.in_gmem() {
        lose(format!(
            "--dump-after {work}: its attachments are in GMEM, not in memory; \
            `unwedge replay --image draw={work}:mrt0=FILE` shows them"
        ));
    }
    for (shader, (sets, _)) in options.shaders.iter().zip(editor.replaced()) {
        if *sets == 0 {
            lose(format!("--shader {:#x}: nothing names a shader there", shader.iova));
        }
    }
    lost
}

/// How a search ended.
pub fn bisected(end: BisectEnd, plan: &BisectPlan, search: &BisectSearch, db: &Db) -> String {
    let trials = counted(search.trials() as u64, "trial", "trials");
    let of = search.total();
    let item = |index: usize| plan.items().get(index).map(|item| describe(item, db)).unwrap_or_default();
    match end {
        BisectEnd::Culprit(index) => format!("{}\n{} of {of}, {trials}", item(index), index + 1),
        BisectEnd::Among(first, last) => format!(
            "{} to {}\n{} to {} of {of}, {trials}: the trials between were skipped",
            item(first),
            item(last),
            first + 1,
            last + 1
        ),
        BisectEnd::NeverBad => format!("the fault does not show with all of {of}"),
        BisectEnd::AlwaysBad => format!("the fault shows without any of {of}"),
        BisectEnd::Untestable => "the trial with all items, or the one with none, was skipped".to_owned(),
    }
}

fn describe(item: &BisectItem, db: &Db) -> String {
    match item {
        BisectItem::Draw { set, iova, works } => {
            let numbers: Vec<String> = works.iter().take(NUMBERS).map(u32::to_string).collect();
            let more = if works.len() > NUMBERS { ", …" } else { "" };
            format!("draw {}{more} at {iova:#x}, set {set}", numbers.join(", "))
        }
        BisectItem::Packet { set, iova } => format!("packet at {iova:#x}, set {set}"),
        BisectItem::Register(reg) => {
            // Registers that are stomped are of a6xx and a7xx, which share most names.
            let generations = [Generation::A6xx, Generation::A7xx].into_iter();
            let name = generations.filter_map(|generation| db.gpu(generation).reg(*reg)).next();
            format!("register {reg:#07x} {}", name.map_or("without a name", |reg| reg.name()))
        }
        BisectItem::Instruction { shader, index, word } => {
            format!("instruction {index} of the shader at {shader:#x}: {word:016x}")
        }
    }
}
