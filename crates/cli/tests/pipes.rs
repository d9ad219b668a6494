//! Every command that takes a dump takes it from a pipe, which can be read once.

mod program;

use program::{dumps, text, unwedge};
use unwedge::base::Generation;
use unwedge_testkit::devcore::DevcoreBuilder;

#[test]
fn a_dump_is_read_once() {
    let commands: [&[&str]; 9] = [
        &["explain", "-"],
        &["explain", "--json", "-"],
        &["info", "-"],
        &["info", "--json", "-"],
        &["decode", "-"],
        &["decode", "--json", "-"],
        &["decode", "--around", "hang", "-"],
        &["query", "-"],
        &["lrc", "show", "-"],
    ];
    for (kind, dump) in dumps() {
        for args in commands.iter().filter(|args| args[0] != "lrc" || matches!(kind, "i915" | "xe")) {
            let output = unwedge(args, &dump);
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            // What was lost of a dump is told by an exit status of its own.
            assert!(matches!(output.status.code(), Some(0 | 3)), "{kind} {args:?}: {err}");
            assert!(!out.is_empty(), "{kind} {args:?}: {err}");
        }
    }
}

#[test]
fn crashdec_reads_its_standard_input_once() {
    let output = unwedge(&["crashdec"], &DevcoreBuilder::complete(Generation::A7xx).text());
    assert!(output.status.success() && !output.stdout.is_empty(), "{}", text(&output.stderr));
}
