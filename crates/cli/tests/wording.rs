//! Help and documents read as kernel developers write: no text has a phrase that has gone wrong before. What reports say is
//! looked at beside their words, in the crate that makes them.

mod program;

use std::path::Path;
use std::process::Stdio;

/// Phrases that are wrong in prose. Spaces are single, and code is left out.
const PHRASES: &[&str] = &[
    " behind ",
    "in front of",
    " is told",
    " are told",
    " is said",
    " are said",
    "nothing says",
    " the cure",
    "mistake",
    " stands at ",
    " stand at ",
    "does not get on",
    "made anew",
    "came past",
    "comes past",
    "the streamer",
    "was held to be",
    "no kernels",
    " is no instruction",
    " is no packet",
    " is no command",
    " is no register",
    " is no difference",
    " is no error",
    " is no letter",
    " is no sign",
    " are no instruction",
    " are no command",
    " a msm ",
    " a rd ",
    " a i915 ",
    " a amdgpu ",
    " an xe ",
    " a IB",
    " an RADV ",
];

/// The phrases of a text.
fn faults(text: &str) -> Vec<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // To tell things apart is English.
    let text = format!(" {words} ").replace("told apart", "distinguished");
    let around = |at: usize| {
        let near = |at: usize, by: isize| {
            let mut to = at.saturating_add_signed(by).min(text.len());
            while !text.is_char_boundary(to) {
                to -= 1;
            }
            to
        };
        text[near(at, -40)..near(at, 60)].to_owned()
    };
    PHRASES.iter().flat_map(|phrase| text.match_indices(phrase)).map(|(at, _)| around(at)).collect()
}

/// A document without its blocks of code and what is set as code in a line.
fn prose(markdown: &str) -> String {
    let mut fenced = false;
    let mut out = String::new();
    for line in markdown.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            out.extend(line.split('`').step_by(2).map(|part| format!("{part} code ")));
            out.push('\n');
        }
    }
    out
}

/// The help of a command, and the commands under it.
fn help(of: &[String]) -> Option<(String, Vec<String>)> {
    let mut command = program::command();
    let output = command.args(of).arg("--help").stdin(Stdio::null()).output().expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("text");
    if !output.status.success() {
        return None;
    }
    let listed = text.lines().skip_while(|line| !line.starts_with("Usage:"));
    let listed = listed.take_while(|line| !line.starts_with("Options:") && !line.starts_with("Arguments:"));
    let name = |line: &str| {
        let name = line.strip_prefix("  ")?.split_once("  ")?.0;
        (!name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit()))
            .then(|| name.to_owned())
    };
    let under = listed.filter_map(name).filter(|name| name != "help").collect();
    Some((text, under))
}

#[test]
fn no_help_has_a_phrase_that_has_gone_wrong_before() {
    let (mut open, mut seen, mut wrong) = (vec![Vec::new()], 0, Vec::new());
    while let Some(command) = open.pop() {
        let Some((text, under)) = help(&command) else { continue };
        seen += 1;
        wrong.extend(faults(&text).into_iter().map(|fault| format!("{}: {fault}", command.join(" "))));
        open.extend(under.into_iter().map(|name| [command.clone(), vec![name]].concat()));
    }
    assert!(seen > 30, "commands were asked for help: {seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_document_has_a_phrase_that_has_gone_wrong_before() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md"), root.join("ARCHITECTURE.md"), root.join("CHANGELOG.md")];
    let docs = std::fs::read_dir(root.join("docs")).expect("the documents");
    files.extend(docs.map(|file| file.expect("a document").path()));
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("text");
        wrong.extend(faults(&prose(&text)).into_iter().map(|fault| format!("{}: {fault}", file.display())));
    }
    assert!(files.len() > 15, "documents were read: {}", files.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files of Rust below a folder.
fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| match path.extension() {
            _ if path.is_dir() => sources(&path),
            Some(extension) if extension == "rs" => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

#[test]
fn no_error_has_a_phrase_that_has_gone_wrong_before() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut seen, mut wrong) = (0, Vec::new());
    for file in sources(&crates).iter().filter(|file| file.components().any(|part| part.as_os_str() == "src"))
    {
        let text = std::fs::read_to_string(file).expect("text");
        // A message ends at its quotation mark; names of arguments are not prose.
        let messages = text.split("#[error(\"").skip(1).filter_map(|rest| rest.split('"').next());
        for message in messages.map(|message| {
            let parts = message.split('{').enumerate();
            parts
                .map(
                    |(i, part)| if i == 0 { part } else { part.split_once('}').map_or("", |(_, text)| text) },
                )
                .collect::<String>()
        }) {
            seen += 1;
            let nouns =
                [" is no number", " is no multiple", " no power of", " may stand", " should stand", "said"];
            let own = nouns.iter().filter(|phrase| format!(" {message}").contains(**phrase));
            let faults = faults(&message).into_iter().chain(own.map(|phrase| (*phrase).to_owned()));
            wrong.extend(faults.map(|fault| format!("{}: {fault}: {message}", file.display())));
        }
    }
    assert!(seen > 150, "messages were read: {seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_phrases_find_what_they_are_for() {
    for wrong in ["All errors are told.", "the page\n  behind the table", "a msm dump"] {
        assert!(!faults(wrong).is_empty(), "{wrong}");
    }
    for right in ["All errors are reported.", "the page after the table", "an msm dump"] {
        assert_eq!(faults(right), [""; 0], "{right}");
    }
    assert_eq!(prose("a `behind ` b\n```\n behind \n```\n    behind \n"), "a  code  b code \n");
}
