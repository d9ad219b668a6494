//! The tree of streams, passes and work of a dump, each with how far it came.
//!
//! The command processor is past what is before the stop. Whether that work is done too follows from the findings about unfinished
//! work; without one, work before the stop is only known to be sent. Never: where the stop is; that is the report's.

use super::markup::Html;
use super::page::folded;
use crate::around::{each_stream, unit};
use crate::plural::counted;
use crate::streams::PacketDecoder;
use unwedge_capture::Dump;
use unwedge_hw::Db;
use unwedge_postmortem::adreno::pass_name;
use unwedge_postmortem::{FindingKind, Report, Rule, RuleRole, Subject};
use unwedge_stream::{
    Exec, Flow, Registers, Step, StepSink, StreamKind, StreamStep, TroubleKind, WaitOperand,
};

/// Nodes of the tree of one dump.
const NODES: usize = 1200;
/// Nodes near the stop are kept beyond those: packets before and after it.
const NEAR: usize = 64;
/// Levels of the tree.
const DEPTH: usize = 24;

/// How far something came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is over.
    Done,
    /// The command processor is past it. Whether it is over is not known.
    Sent,
    /// The engine stopped in it, or it is the work that does not end.
    Running,
    /// The engine has not come to it.
    NotStarted,
    /// The dump does not say.
    Unknown,
}

impl Progress {
    pub(super) const ALL: [Progress; 5] =
        [Progress::Done, Progress::Sent, Progress::Running, Progress::NotStarted, Progress::Unknown];

    /// A mark, a class of the style, and words.
    fn shown(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Progress::Done => ("✓", "state s-done", "done"),
            Progress::Sent => ("→", "state s-sent", "sent"),
            Progress::Running => ("●", "state s-running", "in progress"),
            Progress::NotStarted => ("○", "state s-not-started", "not started"),
            Progress::Unknown => ("?", "state s-unknown", "not known"),
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Progress::Done => "done",
            Progress::Sent => "sent; whether it is done is not known",
            Progress::Running => "in progress at the stop",
            Progress::NotStarted => "not started",
            Progress::Unknown => "not known",
        }
    }
}

/// The work that the report has as unfinished.
struct OpenWork {
    /// The work that does not end.
    culprit: Option<u32>,
    /// How many pieces of work before the stop are not known to be over; `None`: not known.
    open: Option<usize>,
}

impl OpenWork {
    fn of(report: &Report) -> OpenWork {
        let number = |subject: &Subject| match subject {
            Subject::Work { number, .. } => Some(*number),
            _ => None,
        };
        let suspects = report.findings.iter().filter(|finding| finding.kind == FindingKind::Suspect);
        let mut open = OpenWork { culprit: None, open: None };
        for finding in suspects {
            if matches!(finding.rule, Rule::WorkNotFinished | Rule::BlitNotFinished) {
                open.culprit = open.culprit.or(number(&finding.subject));
            }
            open.open = open.open.or(finding.args.number("open").and_then(|open| usize::try_from(open).ok()));
        }
        // Nothing but the command processor is busy.
        let idle = |finding: &unwedge_postmortem::Finding| {
            finding.kind == FindingKind::Busy && finding.rule.row().role == RuleRole::Observation
        };
        if open.culprit.is_none() && open.open.is_none() && report.findings.iter().any(idle) {
            open.open = Some(0);
        }
        open
    }
}

/// A stream, pass, or packet.
struct Node {
    title: String,
    /// Numbers of its first and last packet.
    packets: (usize, usize),
    /// The number of the work that it starts.
    work: Option<u32>,
    /// It groups the packets after a marker.
    is_pass: bool,
    /// The engine stopped in this packet.
    is_stop: bool,
    children: Vec<Node>,
    /// Nodes inside that are not kept.
    left_out: usize,
}

impl Node {
    fn new(title: String, packet: usize) -> Node {
        Node {
            title,
            packets: (packet, packet),
            work: None,
            is_pass: false,
            is_stop: false,
            children: Vec::new(),
            left_out: 0,
        }
    }
}

/// The tree of one stream.
pub(super) struct StreamTree {
    root: Node,
    stop: Option<(usize, usize)>,
    /// Work that is executed before the stop, in order.
    before: Vec<u32>,
}

/// The trees of a dump.
pub(super) fn trees(report: &Report, dump: &Dump<'_>, db: &Db, max_size: u64) -> Vec<StreamTree> {
    let (mut trees, mut left) = (Vec::new(), NODES);
    each_stream(report, dump, db, max_size, &mut |stream, stop| {
        if left == 0 && stop.is_none() {
            return;
        }
        let mut builder = TreeBuilder {
            decoder: stream.decoder,
            stack: vec![Node::new(stream.name.clone(), 0)],
            packets: 0,
            name: None,
            at: None,
            exec: Exec::Always,
            stop,
            left: if stop.is_some() { left.max(NODES / 4) } else { left / 2 },
            before: Vec::new(),
        };
        stream.walk(&mut builder);
        let (root, before, kept) = builder.finish();
        left = left.saturating_sub(kept);
        if !root.children.is_empty() || root.left_out > 0 {
            trees.push(StreamTree { root, stop, before });
        }
    });
    // The one that hung first.
    trees.sort_by_key(|tree| tree.stop.is_none());
    trees
}

/// Makes nodes of the steps of a walk.
struct TreeBuilder<'m> {
    decoder: PacketDecoder<'m>,
    /// The stream, and what it is in, the innermost last. The first is never taken away.
    stack: Vec<Node>,
    packets: usize,
    /// The packet that the steps are of, and its address.
    name: Option<String>,
    at: Option<u64>,
    exec: Exec,
    stop: Option<(usize, usize)>,
    left: usize,
    before: Vec<u32>,
}

impl TreeBuilder<'_> {
    fn finish(mut self) -> (Node, Vec<u32>, usize) {
        while self.stack.len() > 1 {
            self.leave();
        }
        let root = self.stack.pop().unwrap_or_else(|| Node::new(String::new(), 0));
        fn kept(node: &Node) -> usize {
            1 + node.children.iter().map(kept).sum::<usize>()
        }
        let count = kept(&root);
        (root, self.before, count)
    }

    fn is_near(&self) -> bool {
        self.stop.is_some_and(|(first, last)| {
            self.packets.saturating_add(NEAR) >= first && self.packets <= last.saturating_add(NEAR)
        })
    }

    fn is_at_stop(&self) -> bool {
        self.stop.is_some_and(|(first, last)| (first..=last).contains(&self.packets))
    }

    /// Adds a node for the current packet, or adds to the one that it has.
    fn add(&mut self, more: &str, work: Option<u32>) {
        let (packets, near, stop) = (self.packets, self.is_near(), self.is_at_stop());
        let name = self.name.clone();
        let at = self.at;
        let room = self.left > 0 || near;
        let Some(top) = self.stack.last_mut() else { return };
        match top
            .children
            .last_mut()
            .filter(|node| node.packets == (packets, packets) && node.children.is_empty())
        {
            Some(node) if !node.is_pass => {
                node.work = node.work.or(work);
                if !more.is_empty() {
                    node.title.push_str(more);
                }
            }
            _ if room => {
                let name = name.unwrap_or_else(|| "not a valid packet".to_owned());
                let place = at.map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
                let mut node = Node::new(format!("{name}{place}{more}"), packets);
                (node.work, node.is_stop) = (work, stop);
                top.children.push(node);
                self.left = self.left.saturating_sub(1);
            }
            _ => top.left_out = top.left_out.saturating_add(1),
        }
    }

    fn enter(&mut self, stream: &StreamStep<'_>) {
        let kind = match stream.kind {
            StreamKind::Call => "IB",
            StreamKind::Chain => "chained IB",
            StreamKind::State => "state",
            StreamKind::Repeat => "repeated IB",
            StreamKind::Beside => "IB beside",
        };
        let level = match stream.kind {
            StreamKind::Call | StreamKind::Chain => format!("{kind}{}", stream.level),
            _ => kind.to_owned(),
        };
        let at = stream.iova.map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
        let size = stream.claimed.map(|n| format!(", {}", counted(n, "dword", "dwords"))).unwrap_or_default();
        let skipped = if stream.exec == Exec::NotTaken { " (skipped by its predicate)" } else { "" };
        self.stack.push(Node::new(format!("{level}{at}{size}{skipped}"), self.packets.saturating_add(1)));
    }

    /// Closes the innermost node, and puts it into the one around it if it holds something.
    fn leave(&mut self) {
        let Some(mut node) = self.stack.pop() else { return };
        node.packets.1 = self.packets.max(node.packets.0);
        let holds_stop =
            self.stop.is_some_and(|(first, last)| node.packets.0 <= last && first <= node.packets.1);
        let deep = self.stack.len() >= DEPTH;
        let empty = node.children.is_empty() && node.left_out == 0 && !holds_stop;
        let Some(parent) = self.stack.last_mut() else {
            self.stack.push(node);
            return;
        };
        if empty {
            // A state that only sets registers.
            return;
        }
        if deep || self.left == 0 && !holds_stop && node.children.is_empty() {
            parent.left_out = parent.left_out.saturating_add(1 + node.left_out);
        } else {
            self.left = self.left.saturating_sub(1);
            parent.children.push(node);
        }
    }

    /// A marker starts a pass, which ends at the next one of the same stream.
    fn pass(&mut self, name: &str) {
        if self.stack.last().is_some_and(|top| top.is_pass) {
            // What the marker itself adds is of the new pass.
            self.packets = self.packets.saturating_sub(1);
            self.leave();
            self.packets = self.packets.saturating_add(1);
        }
        let mut node = Node::new(format!("pass: {name}"), self.packets);
        node.is_pass = true;
        self.stack.push(node);
    }

    fn marker(&self, packet: &unwedge_stream::PacketStep<'_>) -> Option<&'static str> {
        let PacketDecoder::Adreno(gpu) = self.decoder else { return None };
        let name = self.name.as_deref()?;
        matches!(name, "CP_SET_MARKER" | "CP_SET_RENDER_MODE")
            .then(|| pass_name(gpu.generation(), packet.payload.get(0)?))?
    }
}

impl StepSink for TreeBuilder<'_> {
    fn step(&mut self, _: &Registers, step: &Step<'_>) -> Flow {
        if let Some((place, _)) = unit(step) {
            self.packets = self.packets.saturating_add(1);
            self.at = place.iova;
            self.name = None;
        }
        match step {
            Step::Packet(packet) => {
                self.exec = packet.exec;
                if self.left > 0 || self.is_near() {
                    self.name = self.decoder.name(packet);
                }
                if let Some(pass) = self.marker(packet).filter(|_| packet.exec != Exec::NotTaken) {
                    self.pass(pass);
                }
                if self.is_at_stop() {
                    self.add("", None);
                }
            }
            Step::Enter(stream) => self.enter(stream),
            Step::Leave(_) => {
                while self.stack.len() > 1 && self.stack.last().is_some_and(|top| top.is_pass) {
                    self.leave();
                }
                if self.stack.len() > 1 {
                    self.leave();
                }
            }
            Step::Missing(stream) => {
                let at = stream.iova.map(|iova| format!(" {iova:#x}")).unwrap_or_default();
                self.add(&format!(" (the dump does not hold{at})"), None);
            }
            Step::Work(work) => {
                let executed = self.exec != Exec::NotTaken;
                if executed && self.stop.is_none_or(|(first, _)| self.packets < first) {
                    self.before.push(work.number);
                }
                let count = work.count.map(|count| format!(", {count} indices")).unwrap_or_default();
                let instances = work.instances.filter(|&n| n > 1);
                let instances = instances.map(|n| format!(", {n} instances")).unwrap_or_default();
                let skipped = if executed { "" } else { " (skipped by its predicate)" };
                let text = format!(", {} {}{count}{instances}{skipped}", work.kind.name(), work.number);
                self.add(&text, Some(work.number).filter(|_| executed));
            }
            Step::Wait(wait) => {
                let on = match wait.operand {
                    WaitOperand::Memory(iova) => format!(" waits for memory at {iova:#x}"),
                    WaitOperand::Register(_) => " waits for a register".to_owned(),
                    WaitOperand::OnChip(_) => " waits for memory of the command processor".to_owned(),
                };
                self.add(&on, None);
            }
            Step::Trouble(trouble) => {
                if let TroubleKind::BadHeader { .. } = trouble.kind {
                    self.add("", None);
                }
            }
            Step::Write(_) => {}
        }
        Flow::Continue
    }
}

impl StreamTree {
    fn progress(&self, node: &Node, open: &OpenWork) -> Progress {
        let Some((first, last)) = self.stop else { return Progress::Unknown };
        if node.is_stop || node.packets.0 <= last && first <= node.packets.1 {
            return Progress::Running;
        }
        if node.packets.0 > last {
            return Progress::NotStarted;
        }
        if !node.children.is_empty() {
            let of_children = node.children.iter().map(|child| self.progress(child, open));
            let rank = |progress: &Progress| match progress {
                Progress::Running => 3,
                Progress::Sent => 2,
                _ => 1,
            };
            return of_children.max_by_key(rank).unwrap_or(Progress::Done);
        }
        let Some(number) = node.work else { return Progress::Done };
        match (open.culprit, open.open) {
            (Some(culprit), _) if number == culprit => Progress::Running,
            (Some(culprit), _) if number < culprit => Progress::Done,
            (Some(_), _) => Progress::Sent,
            (None, Some(count)) => {
                let from = self.before.len().saturating_sub(count);
                match self.before.get(from) {
                    Some(&oldest) if number >= oldest => Progress::Sent,
                    _ => Progress::Done,
                }
            }
            (None, None) => Progress::Sent,
        }
    }

    fn write(&self, node: &Node, open: &OpenWork, html: &mut Html) {
        let progress = self.progress(node, open);
        let (mark, class, words) = progress.shown();
        html.fixed("<li>");
        let line = |html: &mut Html| {
            html.leaf("span", &[("class", class), ("title", words)], mark);
            html.leaf("span", &[("class", "vh")], words);
            html.fixed(" ");
            match node.is_stop {
                true => html.leaf("strong", &[], &format!("{} — the stop", node.title)),
                false => html.text(&node.title),
            }
        };
        if node.children.is_empty() && node.left_out == 0 {
            line(html);
            return;
        }
        html.fixed(if progress == Progress::Running { "<details open>" } else { "<details>" });
        html.element("summary", &[], line);
        html.element("ul", &[], |html| {
            for child in &node.children {
                self.write(child, open, html);
            }
            if node.left_out > 0 {
                html.leaf("li", &[("class", "dim")], &format!("… and {} more", node.left_out));
            }
        });
        html.close("details");
    }
}

/// Writes the trees; nothing where there are none.
pub(super) fn write(trees: &[StreamTree], report: &Report, html: &mut Html) {
    let open = OpenWork::of(report);
    html.element("ul", &[("class", "legend")], |html| {
        for progress in Progress::ALL {
            let (mark, class, _) = progress.shown();
            html.element("li", &[], |html| {
                html.leaf("span", &[("class", class), ("aria-hidden", "true")], mark);
                html.text(progress.meaning());
            });
        }
    });
    for (i, tree) in trees.iter().enumerate() {
        let inside = |html: &mut Html| {
            html.element("div", &[("class", "tree")], |html| {
                html.element("ul", &[], |html| {
                    for child in &tree.root.children {
                        tree.write(child, &open, html);
                    }
                    if tree.root.left_out > 0 {
                        html.leaf("li", &[("class", "dim")], &format!("… and {} more", tree.root.left_out));
                    }
                });
            });
        };
        let hung = if tree.stop.is_some() { ", where the engine stopped" } else { "" };
        folded(html, &format!("{}{hung}", tree.root.title), i == 0, inside);
    }
}
