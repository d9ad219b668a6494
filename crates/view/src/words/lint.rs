//! The words of findings of lint.

use super::Words;
use crate::plural::counted;
use unwedge_postmortem::lint::{LintFinding, LintRule};
use unwedge_postmortem::{Arg, Args};

/// The words of a finding. A rule without words does not compile.
pub fn lint_words(finding: &LintFinding) -> Words {
    let args = &finding.args;
    let text = |name: &str| args.text(name).unwrap_or("?").to_owned();
    let number = |name: &str| args.number(name).unwrap_or(0);
    let bytes = || counted(number("bytes"), "byte", "bytes");
    let address = || format!("{:#x}", number("address"));
    match finding.rule {
        LintRule::StaleRegister => Words::because(
            format!("{} is used as an earlier submit left it: {:#010x}", text("register"), number("value")),
            [format!("a {} reads it, and nothing in this submit sets it", text("by")), with_it(args)],
        ),
        LintRule::UnsetRegister => Words::because(
            format!("{} is used and never set", text("register")),
            [
                format!("a {} reads it, and nothing in the capture before it sets it", text("by")),
                "The GPU has the value of another process or of a reset".to_owned(),
                with_it(args),
            ],
        ),
        LintRule::UnwrittenAttachment => Words::because(
            format!("an attachment is read that nothing has written, {} at {}", bytes(), address()),
            [
                format!("{} reads it", text("through")),
                "the capture holds zeros there, and no packet before has written them".to_owned(),
                later(finding),
            ],
        ),
        LintRule::UnwrittenGmem => Words::because(
            format!("GMEM is read that nothing has written, {} at {}", bytes(), address()),
            ["a draw tests or blends with what an earlier tile or pass left there".to_owned()],
        ),
        LintRule::UnwrittenLoad => Words::because(
            format!("GMEM is loaded from memory that nothing has written, {} at {}", bytes(), address()),
            [
                "the capture holds zeros there, and no packet before has written them".to_owned(),
                "It is a fault only if something uses what was loaded".to_owned(),
            ],
        ),
        LintRule::UnwrittenRead => Words::because(
            format!("memory is read that no packet has written, {} of zeros at {}", bytes(), address()),
            [
                "either the CPU has written zeros or nobody has written; the capture does not tell them apart".to_owned(),
                later(finding),
            ],
        ),
        LintRule::MissingFlush => Words::because(
            format!("{} at {} {} read while {} holds newer ones", bytes(), address(), was(args), text("dirty_in")),
            [missing(args), stale(args)],
        ),
        LintRule::MissingInvalidate => Words::because(
            format!("{} at {} {} read from before the write", bytes(), address(), was(args)),
            [stale(args), missing(args)],
        ),
        LintRule::MissingWait => Words::because(
            format!("{} at {} {} read before the write is known to be done", bytes(), address(), was(args)),
            [missing(args)],
        ),
        LintRule::LostWrite => Words::because(
            format!("{} at {} {} overwritten with older ones", bytes(), address(), was(args)),
            [
                format!("{} had them dirty when they were written through {}", text("dirty_in"), text("written_through")),
                missing(args),
            ],
        ),
        LintRule::CcuInUse => Words::because(
            format!("RB_CCU_CNTL changes from {:#010x} to {:#010x} while the CCU is in use", number("before"), number("value")),
            [
                args.text("dirty_in").map_or_else(String::new, |unit| format!("{unit} holds lines that are not written back")),
                missing(args),
            ],
        ),
        LintRule::ShaderError | LintRule::ShaderWarning | LintRule::ShaderWaste => {
            let register = args.text("register").map(|register| format!(" ({register})")).unwrap_or_default();
            let first = args.text("first_text").map_or_else(String::new, |first| {
                format!("Instruction {} has to do with it: {first}", number("first"))
            });
            Words::because(
                format!("{} shader at {}: {}{register}", text("stage"), address(), text("is")),
                [format!("Instruction {}: {}", number("instruction"), text("text")), first],
            )
        }
        LintRule::RedundantState => {
            let named = args.list("registers").iter().filter_map(|of| match of {
                Arg::Record(of) => Some(format!("{} {}", of.text("register")?, times(of.number("times")?))),
                _ => None,
            });
            let most = named.collect::<Vec<_>>().join(", ");
            Words::because(
                format!(
                    "{} of {} of set {} write the value that is there",
                    number("redundant"),
                    counted(number("writes"), "register write", "register writes"),
                    number("set")
                ),
                [format!("Most often: {most}")],
            )
        }
        LintRule::NeedlessFlush => Words::because(
            "a cache is cleaned or invalidated that has nothing for it to do",
            [format!("It was executed {}", times(number("times")))],
        ),
        LintRule::NeedlessWait => Words::because(
            "CP_WAIT_FOR_IDLE has nothing to wait for",
            [format!("It was executed {}", times(number("times")))],
        ),
        LintRule::NotJudged => Words::because(
            format!("set {} was not executed to its end, and is judged only as far as it was", number("set")),
            [text("why")],
        ),
    }
}

fn was(args: &Args) -> &'static str {
    if args.number("bytes") == Some(1) { "is" } else { "are" }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The register that is read together with it.
fn with_it(args: &Args) -> String {
    let near = args.text("near").map(|near| format!("{near}, which is read with it, is set"));
    near.unwrap_or_default()
}

fn missing(args: &Args) -> String {
    let names: Vec<&str> = args
        .list("missing")
        .iter()
        .filter_map(|name| match name {
            Arg::Name(name) => Some(name.as_ref()),
            _ => None,
        })
        .collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("Missing between the two: {one}"),
        all => format!("Missing between the two, in this order: {}", all.join(", ")),
    }
}

fn stale(args: &Args) -> String {
    args.text("stale_in")
        .map_or_else(String::new, |unit| format!("{unit} holds the line from before the write"))
}

/// Who wrote the bytes after they were read.
fn later(finding: &LintFinding) -> String {
    let same = finding.writer.as_ref().map(|p| p.iova) == finding.reader.as_ref().map(|p| p.iova);
    match &finding.writer {
        Some(_) if same => "the same packet writes near them".to_owned(),
        Some(_) => "a packet writes near them later".to_owned(),
        None => String::new(),
    }
}
