//! Two dumps compared by what is said of them: the verdict part by part, then registers that both hold.

use super::registers::{self, ComparedRegisters, RegisterDifference, family};
use super::{SCHEMA, line, refused};
use crate::around::{StateValue, state_at_stop};
use crate::json::Heading;
use crate::plural::counted;
use crate::report::layout::{clean, wrap};
use crate::streams::Family;
use crate::{Style, device, words};
use serde::Serialize;
use std::collections::HashSet;
use std::io::Write;
use unwedge_base::Severity;
use unwedge_capture::Dump;
use unwedge_hw::Db;
use unwedge_postmortem::{AspectState, Fact, Report, ReportAspect, ReportComparison, SetComparison};

/// Columns of names and states.
const NAME: usize = 10;
const STATE: usize = 9;
/// Lines of register differences that are shown.
const REGISTERS: usize = 40;
/// Lines of differences of the state at the stop.
const STATE_VALUES: usize = 12;
/// Columns of text, where nothing says how wide the terminal is.
const WIDTH: usize = 100;
/// The narrowest that text is set for.
const NARROWEST: usize = 60;

/// A dump that is compared.
#[derive(Clone, Copy)]
pub struct ExplainedDump<'a> {
    /// How it is called.
    pub name: &'a str,
    /// The dump.
    pub dump: &'a Dump<'a>,
    /// What is said of it.
    pub report: &'a Report,
}

/// How dumps are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerdictOptions {
    /// JSON lines instead of text.
    pub json: bool,
    /// Every register that differs.
    pub verbose: bool,
    /// How text may style.
    pub style: Style,
    /// Columns of the terminal, if there is one.
    pub width: Option<usize>,
    /// Memory is unpacked in proportion to this.
    pub max_size: u64,
}

/// Compares the verdicts on two dumps, and the registers that both hold. Returns whether something differs: a part of the
/// verdicts, beyond what differs between two runs of one hang, or a register. `db` is the database of Adreno. A failed write is for the owner of
/// `out` to remember.
pub fn verdicts(
    [a, b]: [ExplainedDump<'_>; 2],
    options: VerdictOptions,
    db: &Db,
    out: &mut dyn Write,
) -> bool {
    let facts = Db::amd();
    let comparison = ReportComparison::of(a.report, b.report);
    let families = (family(a.dump, &facts), family(b.dump, &facts));
    let palette = if options.json { Style::default() } else { options.style }.palette();
    let registers = match families {
        // Of a GPU that is not known, the registers that a dump names are compared all the same.
        (x, y) if x == y => Some(registers::compare([a.dump, b.dump], db, &facts, &palette)),
        _ => None,
    };
    // Registers of other families have other names.
    let state = registers.as_ref().map(|_| {
        let of = |side: &ExplainedDump<'_>| state_at_stop(side.report, side.dump, db, options.max_size);
        StateComparison::of(&of(&a), &of(&b))
    });
    let refused = match families {
        (Some(x), Some(y)) if x != y => Some(refused(x, y)),
        (x, y) if x == y => None,
        _ => Some("registers are not compared: one of the GPUs is not known".to_owned()),
    };
    let differs = comparison.differs()
        || refused.is_some()
        || registers.as_ref().is_some_and(|registers| !registers.differences.is_empty())
        || state.as_ref().is_some_and(|state| !state.differences.is_empty());
    let state = state.unwrap_or_default();
    let shown = Shown { sides: [a, b], comparison: &comparison, state: &state, options };
    if options.json {
        shown.json(registers.as_ref(), refused.as_deref(), differs, db, out);
    } else {
        shown.text(registers.as_ref(), refused.as_deref(), db, out);
    }
    differs
}

struct Shown<'a> {
    sides: [ExplainedDump<'a>; 2],
    comparison: &'a ReportComparison,
    state: &'a StateComparison,
    options: VerdictOptions,
}

/// What the streams have set where the dumps stopped, compared.
#[derive(Default)]
struct StateComparison {
    /// Values that both have.
    both: usize,
    differences: Vec<StateDifference>,
}

/// A register that the streams set to other values; `None` where one of them does not set it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StateDifference {
    #[serde(rename = "type")]
    line: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<String>,
}

impl StateComparison {
    fn of(a: &[StateValue], b: &[StateValue]) -> StateComparison {
        let mut compared = StateComparison::default();
        let text = |value: &StateValue| value.text.trim().to_owned();
        let mut differs = |name: &str, a: Option<&StateValue>, b: Option<&StateValue>| {
            compared.differences.push(StateDifference {
                line: "state",
                name: name.to_owned(),
                a: a.map(text),
                b: b.map(text),
            });
        };
        let mut both = 0;
        for value in a {
            let other = b.iter().find(|other| other.name == value.name);
            both += usize::from(other.is_some());
            if other.is_none_or(|other| other.value != value.value) {
                differs(&value.name, Some(value), other);
            }
        }
        for value in b.iter().filter(|value| a.iter().all(|other| other.name != value.name)) {
            differs(&value.name, None, Some(value));
        }
        compared.both = both;
        compared
    }
}

impl Shown<'_> {
    fn text(
        &self,
        registers: Option<&ComparedRegisters>,
        refused: Option<&str>,
        db: &Db,
        out: &mut dyn Write,
    ) {
        let mut lines = Vec::new();
        for (side, dump) in ["A", "B"].into_iter().zip(self.sides) {
            lines.push(format!("{side}: {}", clean(dump.name)));
        }
        lines.push(String::new());
        for &(aspect, state) in &self.comparison.aspects {
            self.aspect(aspect, state, &mut lines);
        }
        let signature = if self.comparison.same_signature { AspectState::Same } else { AspectState::Differs };
        let [a, b] = self.sides.map(|side| Some(clean(&side.report.signature())));
        let sides = match signature {
            AspectState::Same => [a, None],
            _ => [a.map(|a| format!("A: {a}")), b.map(|b| format!("B: {b}"))],
        };
        // Not broken into lines: a signature is there to be copied.
        for (i, text) in sides.into_iter().flatten().enumerate() {
            let start = if i == 0 { self.start("signature", signature) } else { " ".repeat(NAME + STATE) };
            lines.push(format!("{start}{text}"));
        }
        self.findings(&mut lines);
        self.state(&mut lines);
        lines.push(String::new());
        match (registers, refused) {
            (Some(registers), _) => self.registers(registers, &mut lines),
            (None, Some(refused)) => lines.push(refused.to_owned()),
            (None, None) => {}
        }
        for line in lines {
            let _ = writeln!(out, "{line}");
        }
        let [a, b] = self.sides.map(|side| device::database(side.dump, db));
        let _ = writeln!(out, "{}", device::database_line(&a));
        if a != b {
            let _ = writeln!(out, "{}", device::database_line(&b));
        }
    }

    /// A part of the verdicts.
    fn aspect(&self, aspect: ReportAspect, state: AspectState, lines: &mut Vec<String>) {
        if aspect == ReportAspect::Busy {
            return self.busy(state, lines);
        }
        let [a, b] = self.sides.map(|side| words::aspect(side.report, aspect).map(|text| clean(&text)));
        self.row(words::aspect_name(aspect), state, a, b, lines);
    }

    fn row(
        &self,
        name: &str,
        state: AspectState,
        a: Option<String>,
        b: Option<String>,
        lines: &mut Vec<String>,
    ) {
        let unknown = || "not known".to_owned();
        let texts = match state {
            AspectState::Unknown => return,
            AspectState::Same => vec![a.or(b).unwrap_or_else(unknown)],
            AspectState::Alike | AspectState::Differs => {
                vec![format!("A: {}", a.unwrap_or_else(unknown)), format!("B: {}", b.unwrap_or_else(unknown))]
            }
        };
        self.cells(name, state, &texts, lines);
    }

    /// Text after the name of a part and its state.
    fn cells(&self, name: &str, state: AspectState, texts: &[String], lines: &mut Vec<String>) {
        let width = self.options.width.unwrap_or(WIDTH).max(NARROWEST);
        let texts = texts.iter().flat_map(|text| wrap(text, width - NAME - STATE, 3));
        for (i, text) in texts.enumerate() {
            if i > 0 {
                lines.push(format!("{}{text}", " ".repeat(NAME + STATE)));
                continue;
            }
            lines.push(format!("{}{text}", self.start(name, state)));
        }
    }

    /// The name of a part and its state.
    fn start(&self, name: &str, state: AspectState) -> String {
        let colour = match state {
            AspectState::Same => "32",
            AspectState::Alike => "33",
            AspectState::Differs => "1;31",
            AspectState::Unknown => "2",
        };
        let word = self.options.style.paint(colour, state.id());
        format!("{name:<NAME$}{word}{}", " ".repeat(STATE.saturating_sub(state.id().len())))
    }

    fn busy(&self, state: AspectState, lines: &mut Vec<String>) {
        let SetComparison { both, only_a, only_b } = &self.comparison.busy;
        let parts = [("both: ", both), ("A only: ", only_a), ("B only: ", only_b)];
        let parts = parts.into_iter().filter(|(_, blocks)| !blocks.is_empty());
        let texts: Vec<String> = match state {
            AspectState::Unknown => return,
            AspectState::Same => vec![both.join(" ")],
            _ => parts.map(|(name, blocks)| format!("{name}{}", blocks.join(" "))).collect(),
        };
        self.cells(words::aspect_name(ReportAspect::Busy), state, &texts, lines);
    }

    /// Findings that one of them has alone.
    fn findings(&self, lines: &mut Vec<String>) {
        let mut texts = Vec::new();
        for (name, (side, only)) in
            ["A only", "B only"].into_iter().zip(self.sides.iter().zip(&self.comparison.findings_only))
        {
            let findings = only.iter().filter_map(|&i| side.report.findings.get(i));
            texts
                .extend(findings.map(|finding| {
                    format!("{name}: {}", clean(&words::finding(side.report, finding).title))
                }));
        }
        if !texts.is_empty() {
            self.cells("findings", AspectState::Differs, &texts, lines);
        }
    }

    /// What the streams had set at the stop.
    fn state(&self, lines: &mut Vec<String>) {
        let StateComparison { both, differences } = self.state;
        if *both == 0 && differences.is_empty() {
            return;
        }
        let all = counted(*both as u64, "value", "values");
        let title = match differences.len() {
            0 => format!("state at the stop: {all} in both, none differs"),
            1 => format!("state at the stop: {all} in both, 1 differs"),
            n => format!("state at the stop: {all} in both, {n} differ"),
        };
        lines.push(String::new());
        lines.push(self.options.style.bold(&title));
        let most = if self.options.verbose { usize::MAX } else { STATE_VALUES };
        for difference in differences.iter().take(most) {
            let value = |text: &Option<String>| clean(text.as_deref().unwrap_or("not set"));
            let (a, b) = (value(&difference.a), value(&difference.b));
            lines.push(format!("    {}: {a} -> {b}", clean(&difference.name)));
        }
        if let Some(more @ 1..) = differences.len().checked_sub(most) {
            lines.push(format!(
                "{}: -v shows all",
                counted(more as u64, "more value differs", "more values differ")
            ));
        }
    }

    /// Registers that differ, those that the verdicts rest on first.
    fn registers(&self, registers: &ComparedRegisters, lines: &mut Vec<String>) {
        let ComparedRegisters { both, differences } = registers;
        let all = counted(*both as u64, "register", "registers");
        let verb = if differences.len() == 1 { "differs" } else { "differ" };
        let title = match (both, differences.len()) {
            (0, _) => "no register is in both dumps".to_owned(),
            (_, 0) => format!("{all} in both dumps, none differs"),
            (_, n) => format!("{all} in both dumps, {n} {verb}"),
        };
        lines.push(self.options.style.bold(&title));
        let rested_on = self.evidence();
        let (first, rest): (Vec<_>, Vec<_>) =
            differences.iter().partition(|difference| rested_on.contains(difference.name.as_str()));
        let (mut shown, most) = (0, if self.options.verbose { usize::MAX } else { REGISTERS });
        let mut section = None;
        for (i, difference) in first.iter().chain(&rest).enumerate() {
            if shown >= most {
                let more = differences.len() - i;
                let more = counted(more as u64, "more register differs", "more registers differ");
                lines.push(format!("{more}: -v shows all"));
                return;
            }
            if section != Some(&difference.section) {
                lines.push(clean(&difference.section));
                section = Some(&difference.section);
            }
            for part in &difference.parts {
                let field = part.field.as_ref().map(|field| format!(".{field}")).unwrap_or_default();
                let value = |text: &Option<String>| text.clone().unwrap_or_else(|| "not known".to_owned());
                let name = clean(&difference.name);
                lines.push(format!("    {name}{field}: {} -> {}", value(&part.a), value(&part.b)));
                shown += 1;
            }
        }
    }

    /// Names of registers that findings of either report rest on.
    fn evidence(&self) -> HashSet<&str> {
        let findings = self.sides.iter().flat_map(|side| &side.report.findings);
        let facts = findings.flat_map(|finding| &finding.evidence).map(|evidence| &evidence.fact);
        facts
            .filter_map(|fact| match fact {
                Fact::Register { name, .. } | Fact::PacketHeader { register: name, .. } => Some(&**name),
                _ => None,
            })
            .collect()
    }

    fn json(
        &self,
        registers: Option<&ComparedRegisters>,
        refused: Option<&str>,
        differs: bool,
        db: &Db,
        out: &mut dyn Write,
    ) {
        let tables = device::database(self.sides[0].dump, db);
        let [a, b] = self.sides.map(|side| JsonSide {
            file: side.name,
            generation: family(side.dump, &Db::amd()).map(Family::name),
            signature: side.report.signature(),
            cause: side.report.cause_finding().map(|finding| finding.rule.row().id),
        });
        let heading = Heading::of_lines("unwedge.diff", SCHEMA, &tables);
        line(&JsonHeader { heading, compares: "verdicts", a, b }, out);
        for &(aspect, state) in &self.comparison.aspects {
            let [a, b] = self.sides.map(|side| words::aspect(side.report, aspect));
            let blocks = Some(&self.comparison.busy).filter(|_| aspect == ReportAspect::Busy);
            let blocks = blocks.map(|blocks| JsonBlocks {
                both: &blocks.both,
                only_a: &blocks.only_a,
                only_b: &blocks.only_b,
            });
            line(&JsonAspect { line: "aspect", aspect: aspect.id(), state: state.id(), a, b, blocks }, out);
        }
        for (of, (side, only)) in
            ["a", "b"].into_iter().zip(self.sides.iter().zip(&self.comparison.findings_only))
        {
            for finding in only.iter().filter_map(|&i| side.report.findings.get(i)) {
                let title = words::finding(side.report, finding).title;
                let (rule, trust) = (finding.rule.row().id, finding.trust.word());
                line(&JsonFindingOnly { line: "finding", only: of, rule, trust, title }, out);
            }
        }
        if let Some(message) = refused {
            line(&super::Note { ty: "note", message }, out);
        }
        for difference in &self.state.differences {
            line(difference, out);
        }
        for difference in registers.iter().flat_map(|registers| &registers.differences) {
            line::<RegisterDifference>(difference, out);
        }
        let lost =
            |side: &ExplainedDump<'_>| side.report.diagnostics.iter().any(|d| d.severity == Severity::Loss);
        line(&super::DiffEnd { ty: "end", differs, lost: self.sides.iter().any(lost) }, out);
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonHeader<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    compares: &'static str,
    a: JsonSide<'a>,
    b: JsonSide<'a>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonSide<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<String>,
    signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonAspect<'a> {
    #[serde(rename = "type")]
    line: &'static str,
    aspect: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<JsonBlocks<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonBlocks<'a> {
    both: &'a [String],
    only_a: &'a [String],
    only_b: &'a [String],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonFindingOnly {
    #[serde(rename = "type")]
    line: &'static str,
    only: &'static str,
    rule: &'static str,
    trust: &'static str,
    title: String,
}

crate::schema::shapes!(lines: StateDifference, JsonHeader<'_>, JsonAspect<'_>, JsonFindingOnly);
