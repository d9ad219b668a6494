//! `--html OUT`: pages in files and on standard output.

mod program;

use program::Folder;
use unwedge::base::Generation;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::pm4;
use unwedge_testkit::rd::CaptureBuilder;

fn dumps() -> Folder {
    let dump = |process: &str| DevcoreBuilder::complete(Generation::A6xx).process(process, process).text();
    Folder::of(&[("a.devcore", dump("one")), ("b.devcore", dump("<i>two</i>"))])
}

#[test]
fn explain_writes_a_page_in_place_of_text() {
    let folder = dumps();
    let (code, out, err) = folder.run(&["explain", "b.devcore", "--html", "page.html"], b"");
    assert_eq!((code, &*out), (Some(0), ""), "{err}");
    let page = std::fs::read_to_string(folder.path("page.html")).expect("the page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("&lt;i&gt;two&lt;/i&gt;"), "{page}");
    let (code, shown, _) = folder.run(&["explain", "b.devcore", "--html", "-"], b"");
    assert_eq!((code, shown), (Some(0), page.clone()));
    let (_, signature, _) = folder.run(&["explain", "b.devcore", "--signature"], b"");
    let signature = signature.split('\t').next().expect("a signature");
    assert!(page.contains(signature), "{signature}");
}

#[test]
fn a_page_is_of_one_dump() {
    let folder = dumps();
    let (code, _, err) = folder.run(&["explain", "a.devcore", "b.devcore", "--html", "page.html"], b"");
    assert!(code == Some(2) && err.contains("--html is the page of one dump"), "{code:?} {err}");
    let (code, _, err) = folder.run(&["explain", "a.devcore", "--html", "absent/page.html"], b"");
    assert!(code != Some(0) && err.contains("absent/page.html"), "{code:?} {err}");
}

#[test]
fn listings_are_pages_with_their_colours() {
    let folder = dumps();
    for args in [&["decode", "a.devcore"][..], &["diff", "a.devcore", "b.devcore"]] {
        let (code, page, err) = folder.run(&[args, &["--html", "-"]].concat(), b"");
        assert_eq!(code, Some(0), "{args:?}: {err}");
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<pre>"), "{page}");
        assert!(page.contains("<span class=\"a") && !page.contains('\x1b'), "{args:?}");
    }
}

/// Findings of `amd check` and `lrc verify` as pages: the same exit status, and the text of the listing.
#[test]
fn checks_are_pages() {
    let folder = Folder::of(&[("code.hex", "f4000001\nfa000000\n80010000\nbf810000\n")]);
    let check = ["amd", "check", "--gpu", "gfx1030", "code.hex"];
    let (code, text, _) = folder.run(&check, b"");
    assert_eq!(code, Some(4), "{text}");
    let (paged, page, err) = folder.run(&[&check[..], &["--html", "-"]].concat(), b"");
    assert_eq!(paged, code, "{err}");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("s_add_u32"), "{page}");
    let rule = text.split(['[', ']']).nth(1).unwrap_or_default();
    assert!(!rule.is_empty() && page.contains(rule), "{rule}: {page}");
}

/// Findings of `lint`: the same exit status as the text, and the packets that it names.
#[test]
fn findings_of_lint_are_a_page() {
    // The CP reads what it wrote without waiting for the write.
    let write = pm4::pkt7(pm4::CP_MEM_WRITE, &[0x3000_0000, 0, 7]);
    let stream = [write, pm4::pkt7(pm4::CP_MEM_TO_MEM, &[0, 0x3000_0040, 0, 0x3000_0000, 0])].concat();
    let capture = CaptureBuilder::new(630, "synthetic\0").buffer(0x3000_0000, &[0; 64]);
    let capture = capture.buffer(0x2000_0000, &stream).submit(0x2000_0000, stream.len() as u32).bytes();
    let folder = Folder::of(&[("a.rd", capture)]);
    let (code, text, err) = folder.run(&["lint", "a.rd"], b"");
    assert_eq!(code, Some(4), "{text} {err}");
    let (paged, shown, err) = folder.run(&["lint", "a.rd", "--html", "page.html"], b"");
    assert_eq!((paged, &*shown), (code, ""), "{err}");
    let page = std::fs::read_to_string(folder.path("page.html")).expect("the page");
    assert!(page.contains("missing-wait") && page.contains("CP_MEM_TO_MEM"), "{page}");
    let (code, _, err) = folder.run(&["lint", "a.rd", "--html", "-", "--json"], b"");
    assert_eq!(code, Some(2), "{err}");
}
