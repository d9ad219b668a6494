//! The sentences of reports: a title and a reason for every rule, the words of evidence and of advice.
//!
//! One function a rule, in the file of its vendor. The table below has no default arm: a rule without words does not
//! compile. Never: a decision; what the words say is in the finding.

mod adreno;
mod amd;
mod intel;

use unwedge_postmortem::{Advice, Evidence, Fact, Finding, Report, Rule};

/// The words of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// One line, for the verdict.
    pub title: String,
    /// Why, in one or two sentences; may be empty.
    pub why: String,
}

impl Words {
    fn new(title: impl Into<String>, why: impl Into<String>) -> Words {
        Words { title: title.into(), why: why.into() }
    }
}

/// The words of a finding.
pub fn finding(f: &Finding) -> Words {
    let Some(rule) = f.rule else { return Words::new(&*f.title, &*f.why) };
    match rule {
        // Adreno.
        Rule::UnknownGpu => adreno::unknown_gpu(),
        // AMD.
        // Intel.
    }
}

/// Why it hung, in the titles of the strongest causes: for the reason of the hang point.
pub fn because(report: &Report) -> String {
    let causes = report.causes.iter().filter_map(|&i| report.findings.get(i));
    causes.take(2).map(|f| finding(f).title).collect::<Vec<_>>().join("; ")
}

/// What a piece of evidence says, in a few words: `CP_IB1_REM_SIZE = 0x5`.
pub fn evidence(e: &Evidence) -> String {
    match &e.fact {
        Fact::Prose(what) => what.clone(),
        _ => String::new(),
    }
}

/// What to do, ready to paste. `file` is what commands call the dump; without it they say FILE.
pub fn action(advice: &Advice, file: Option<&str>) -> String {
    let action = advice.action.clone();
    match (file, action.split_once(" FILE")) {
        (Some(file), Some((before, after))) => format!("{before} {}{after}", quoted(file)),
        _ => action,
    }
}

/// A file's name as a shell takes it.
fn quoted(file: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@".contains(c);
    if !file.is_empty() && file.chars().all(plain) {
        file.to_owned()
    } else {
        format!("'{}'", file.replace('\'', r"'\''"))
    }
}

/// What it will tell.
pub fn reason(advice: &Advice) -> String {
    advice.reason.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_postmortem::Args;

    #[test]
    fn advised_commands_name_the_file() {
        let named = |file| {
            let action = "unwedge decode FILE --around hang".to_owned();
            let advice = Advice { id: None, args: Args::new(), action, reason: String::new() };
            super::action(&advice, file)
        };
        assert_eq!(named(Some("a/crash.devcore.gz")), "unwedge decode a/crash.devcore.gz --around hang");
        assert_eq!(named(Some("it's here")), r"unwedge decode 'it'\''s here' --around hang");
        assert_eq!(named(None), "unwedge decode FILE --around hang");
    }
}
