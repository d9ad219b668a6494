//! Signatures: what is the same whenever the same thing goes wrong, as a short line that people can read and programs can
//! count.
//!
//! Never in one: addresses, process names, numbers of draws, values of registers, names of files. What is in one: the
//! vendor and family of the GPU, the rules that fired, the stable part of their subjects, the names and flags of their values, the
//! packet at the stop, and a hash of the code of the shaders that do not end.

use crate::args::{Arg, Args};
use crate::head::GpuIdentity;
use crate::report::{Finding, HangPoint, Report, Subject};
use crate::rules::{FindingKind, RuleRole};
use std::fmt;
use unwedge_base::hash::Fnv1a;

/// Values that describe what was near a fault, and differ between equal hangs.
const CIRCUMSTANCES: [&str; 3] = ["target", "before", "after"];

/// Causes that a signature names.
const CAUSES: usize = 2;

impl Report {
    /// What identifies this hang among others: `adreno/a6xx/poison-in-stream(agree)/garbage@IB1`. Two equal hangs with other
    /// addresses and processes have the same. Where nothing explains the hang, it has what was seen:
    /// `adreno/a6xx/unexplained+only-cp-busy/CP_WAIT_REG_MEM@IB1`. Where shaders hang, their code is a part:
    /// `adreno/a7xx/shader-processors-stuck/CP_WAIT_FOR_IDLE@IB2/shader-3f2a9c04`.
    pub fn signature(&self) -> String {
        let findings = || self.findings.iter().filter(|f| f.kind != FindingKind::NotCaptured);
        let packet = self.hang.as_ref().and_then(|hang| hang.packet.as_deref());
        // The cause counts although it may be only possible: it is what tells such hangs apart.
        let cause = self.cause.map(|cause| cause.finding);
        let others = self.causes.iter().copied().filter(|&i| Some(i) != cause);
        let causes = cause.into_iter().chain(others).filter_map(|i| self.findings.get(i)).take(CAUSES);
        let mut reasons: Vec<String> = causes.map(|finding| finding.signature_at(packet)).collect();
        if reasons.is_empty() {
            let seen = || findings().filter(|f| f.rule.row().role == RuleRole::Observation).take(CAUSES);
            let seen = seen().chain(findings().filter(|_| seen().next().is_none()).take(1));
            reasons.push("unexplained".to_owned());
            reasons.extend(seen.map(|finding| finding.signature_at(packet)));
        }
        let family = self.gpu.family().map_or_else(|| "unknown".to_owned(), |family| token(&family));
        let place = self.hang.as_ref().map(|hang| format!("/{}", place(hang, &self.gpu))).unwrap_or_default();
        let shader = self.shader.filter(|_| self.cause_finding().is_some_and(Finding::is_of_work));
        let shader = shader.map(|hash| format!("/{hash}")).unwrap_or_default();
        format!("{}/{family}/{}{place}{shader}", self.gpu.vendor(), reasons.join("+"))
    }
}

/// A hash of the code of one or several shaders: `shader-3f2a9c04`. FNV-1a of the dwords, folded to 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShaderHash(u32);

impl ShaderHash {
    /// The hash of code; `None` if there is no code.
    pub fn of(words: impl IntoIterator<Item = u32>) -> Option<ShaderHash> {
        let mut words = words.into_iter().peekable();
        words.peek()?;
        let mut hash = Fnv1a::default();
        words.for_each(|word| hash.add(&word.to_le_bytes()));
        let hash = hash.value();
        Some(ShaderHash((hash >> 32) as u32 ^ hash as u32))
    }
}

impl fmt::Display for ShaderHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shader-{:08x}", self.0)
    }
}

impl Finding {
    /// Whether it is about work that does not end, and not about the stream.
    fn is_of_work(&self) -> bool {
        let by_work =
            || self.args.record("origin").is_some_and(|origin| origin.text("gives") == Some("work"));
        match self.kind {
            FindingKind::CodeFault | FindingKind::Busy | FindingKind::Suspect | FindingKind::InFlight => true,
            FindingKind::Fault => by_work(),
            _ => false,
        }
    }

    /// What identifies this finding among others: its rule, the stable part of its subject, its names and flags.
    pub fn signature(&self) -> String {
        self.signature_at(None)
    }

    /// The same, without the packet at the stop, which has a part of its own.
    fn signature_at(&self, packet: Option<&str>) -> String {
        let mut out = self.rule.row().id.to_owned();
        let mut named: Vec<String> = packet.map(token).into_iter().collect();
        let mut is_new = |name: &String| {
            let new = !name.is_empty() && !named.contains(name);
            if new {
                named.push(name.clone());
            }
            new
        };
        if let Some(subject) = subject(&self.subject).map(|subject| token(&subject)).filter(&mut is_new) {
            out.push(':');
            out.push_str(&subject);
        }
        let mut names = Vec::new();
        collect(&self.args, &mut names);
        let names: Vec<String> = names.iter().map(|name| token(name)).filter(is_new).collect();
        if !names.is_empty() {
            out.push_str(&format!("({})", names.join(",")));
        }
        out
    }
}

/// A name without what separates the parts of a signature: `SQC-data` of `SQC (data)`. Comparison signs stay.
fn token(name: &str) -> String {
    let separates = |c: char| c.is_whitespace() || c.is_control() || "()/+:,@".contains(c);
    let words: Vec<&str> = name.split(separates).filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// The packet at the stop and the level of its stream: `CP_NOP@IB1`.
fn place(hang: &HangPoint, gpu: &GpuIdentity) -> String {
    let packet = match (&hang.packet, hang.header) {
        (Some(packet), _) => token(packet),
        (None, Some(_)) => "garbage".to_owned(),
        (None, None) => "unknown".to_owned(),
    };
    format!("{packet}@{}", gpu.level_name(hang.innermost().map_or(0, |at| at.level)))
}

/// The part of a subject that is the same in every run; `None` for the GPU as a whole and what has no such part.
fn subject(subject: &Subject) -> Option<String> {
    match subject {
        Subject::Gpu | Subject::Dump | Subject::Memory(_) | Subject::Context(_) | Subject::Process(_) => None,
        Subject::Ring(number) => Some(format!("ring{number}")),
        Subject::Engine(name) => Some(engine_class(name).to_owned()),
        Subject::Packet { name, .. } | Subject::Shader { name, .. } => name.clone(),
        Subject::Work { kind, .. } => Some((*kind).to_owned()),
        Subject::Block(name) | Subject::Register(name) | Subject::Section(name) => Some(name.to_string()),
    }
}

/// An engine without its instance: `comp` of `comp_1.2.1`, `sdma` of `sdma0`. On which of several equal ones a hang happens
/// differs from run to run.
fn engine_class(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_'))
}

/// Names, and flags that are set.
fn collect(args: &Args, out: &mut Vec<String>) {
    for (name, arg) in args.iter().filter(|(name, _)| !CIRCUMSTANCES.contains(name)) {
        match arg {
            Arg::Flag(true) => out.push(name.to_owned()),
            arg => collect_arg(arg, out),
        }
    }
}

fn collect_arg(arg: &Arg, out: &mut Vec<String>) {
    match arg {
        Arg::Name(name) => out.push(name.to_string()),
        Arg::List(list) => list.iter().for_each(|arg| collect_arg(arg, out)),
        Arg::Record(args) => collect(args, out),
        Arg::Number(_) | Arg::Value(_) | Arg::Address(_) | Arg::Flag(_) | Arg::Text(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Trust;
    use crate::rules::Rule;

    #[test]
    fn which_of_equal_engines_hangs_is_not_in_a_signature() {
        let of = |name: &str| {
            Finding::new(Rule::JobTimedOut, Trust::Certain, Subject::Engine(name.to_owned())).signature()
        };
        assert_eq!(of("comp_1.2.1"), of("comp_1.0.0"));
        assert_eq!(of("sdma0"), of("sdma1"));
        assert_ne!(of("gfx_0.0.0"), of("comp_1.0.0"));
        assert_eq!(of("rcs0"), "job-timed-out:rcs");
    }
}
