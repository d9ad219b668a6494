//! Pages of reports: for every hang that the kit makes, and for dumps whose names and strings are hostile.
//!
//! `UNWEDGE_PAGES` names a folder that the pages are written to, for `ci/pages.py` and for people to look at, and the dumps, for pages of other
//! commands.

use std::collections::HashSet;
use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::Db;
use unwedge_testkit::hangs::{HangDump, HangRun, hangs};
use unwedge_view::{around, html};

/// Bytes of the page of a dump that the kit makes.
const LARGEST: usize = 320 << 10;

fn page(hang: &HangDump, db: &Db) -> String {
    let parts: Vec<DumpPart<'_>> = hang.files.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
    let dump = Dump::read(&parts).unwrap_or_else(|error| panic!("{}: {error}", hang.name));
    let report = around::explained(&dump, db, 1 << 30);
    let mut out = Vec::new();
    html::explain(&dump, db, 1 << 30, &report, Some("a dump"), &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

/// The elements of a page that are opened and not closed, or closed and not opened. End tags that are optional in HTML may be
/// missing.
fn unbalanced(page: &str) -> Vec<String> {
    const VOID: [&str; 4] = ["meta", "link", "input", "!DOCTYPE"];
    const OPTIONAL: [&str; 6] = ["tr", "td", "th", "thead", "tbody", "li"];
    let mut open: Vec<String> = Vec::new();
    let mut wrong = Vec::new();
    let mut rest = page;
    while let Some((_, tag)) = rest.split_once('<') {
        let Some((tag, after)) = tag.split_once('>') else { break };
        rest = after;
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default().to_owned();
        if VOID.contains(&&*name) || OPTIONAL.contains(&&*name) {
            continue;
        }
        if tag.starts_with('/') {
            if open.last() != Some(&name) {
                wrong.push(format!("</{name}> in {open:?}"));
            }
            open.pop();
        } else {
            // The contents of a script or a style are not markup.
            if let Some((_, after)) =
                rest.split_once(&format!("</{name}>")).filter(|_| name == "script" || name == "style")
            {
                rest = after;
                continue;
            }
            open.push(name);
        }
    }
    wrong.extend(open);
    wrong
}

fn ids(page: &str) -> Vec<&str> {
    page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

fn check(name: &str, page: &str) {
    assert_eq!(unbalanced(page), Vec::<String>::new(), "{name}");
    assert_eq!(page.matches("<script").count(), 1, "{name}: its own alone");
    assert_eq!(page.matches("<h1>").count(), 1, "{name}");
    for loads in [" src=", "url(", "http:", "https:", "@import", " onload", " onerror"] {
        assert!(!page.contains(loads), "{name} loads nothing: {loads}");
    }
    let ids = ids(page);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "{name}: {ids:?}");
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&link), "{name}: {link} leads nowhere");
    }
    for id in ["verdict", "missing"] {
        assert!(ids.contains(&id), "{name} lacks {id}");
    }
    let empty = page.find("<tbody></table>").map(|at| &page[at.saturating_sub(200)..at]);
    assert_eq!(empty, None, "{name}: an empty table");
    assert!(!page.contains("\u{1b}"), "{name}");
}

#[test]
fn every_hang_has_a_page() {
    let db = Db::builtin();
    let folder = std::env::var_os("UNWEDGE_PAGES").map(std::path::PathBuf::from);
    let (mut all, mut with) = (0, std::collections::BTreeMap::<&str, usize>::new());
    for hang in hangs(HangRun::BOTH[0]) {
        let page = page(&hang, &db);
        check(&hang.name, &page);
        assert!(page.len() < LARGEST, "{}: {} bytes", hang.name, page.len());
        assert!(page.contains(HangRun::BOTH[0].process) || !hang.name.starts_with("msm"), "{}", hang.name);
        all += 1;
        for section in ["queues", "streams", "blocks", "packets", "shaders", "memory", "registers"] {
            *with.entry(section).or_default() += usize::from(ids(&page).contains(&section));
        }
        if let Some(folder) = &folder {
            let name: String =
                hang.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            let dumps = folder.join(&name);
            std::fs::create_dir_all(&dumps).expect("a folder");
            for (file, bytes) in &hang.files {
                std::fs::write(dumps.join(file), bytes).expect("the dump");
            }
            std::fs::write(folder.join(format!("kit-{name}.html")), page).expect("the page");
        }
    }
    eprintln!("{all} pages; with {with:?}");
    assert!(all > 60 && with.values().all(|&pages| pages > 3), "{with:?}");
}

/// Names of processes and buffers, and lines of logs, are text wherever they are shown.
#[test]
fn markup_of_a_dump_is_text() {
    const EVIL: &str = "</title><script>alert(1)</script><img src=x onerror=alert(2)>";
    let db = Db::builtin();
    let mut evil = 0;
    for mut hang in hangs(HangRun::BOTH[0]) {
        for (_, bytes) in &mut hang.files {
            let text = String::from_utf8_lossy(bytes).replace(HangRun::BOTH[0].process, EVIL);
            *bytes = text.into_bytes();
        }
        let page = page(&hang, &db);
        check(&hang.name, &page.replace(" src=x onerror=alert", ""));
        assert!(!page.contains("<img") && !page.contains("<script>alert"), "{}", hang.name);
        evil += usize::from(page.contains("&lt;script&gt;alert(1)"));
    }
    assert!(evil > 20, "the name is shown in {evil} pages");
}

/// However long a name is, the page is not.
#[test]
fn a_page_is_bounded() {
    let db = Db::builtin();
    let mut hang =
        hangs(HangRun::BOTH[0]).into_iter().find(|hang| hang.name.starts_with("msm")).expect("one");
    for (_, bytes) in &mut hang.files {
        let name = "x".repeat(4 << 20);
        *bytes = String::from_utf8_lossy(bytes).replace(HangRun::BOTH[0].process, &name).into_bytes();
    }
    assert!(page(&hang, &db).len() < LARGEST);
}
