//! The page of a listing: the text that a command prints, with its colours, folded at its headings.
//!
//! Colours are the escape sequences that [`crate::Style`] writes. Never: sequences of anybody else; a listing replaces those.

use super::markup::Html;
use super::page::{Page, folded, scrolling};
use std::io::{self, Write};

/// Bytes of a listing that a page has.
const LONGEST: usize = 4 << 20;
/// Lines below a heading that are not folded.
const SHORT: usize = 24;

/// What a page of a listing is about.
#[derive(Clone, Copy, Debug)]
pub struct ListingPage<'a> {
    /// The heading: `Decode of crash.devcore`.
    pub title: &'a str,
    /// The command that prints the same as text.
    pub command: &'a str,
}

/// Writes the page of a listing.
///
/// # Errors
/// Those of `out`, if it cannot be written to.
pub fn listing(page: ListingPage<'_>, text: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let cut = text.len() > LONGEST;
    let kept = text.get(..LONGEST).unwrap_or(text);
    let kept = match kept.iter().rposition(|&byte| byte == b'\n') {
        Some(end) if cut => &kept[..end],
        _ => kept,
    };
    let shown = String::from_utf8_lossy(kept);
    let lines: Vec<&str> = shown.lines().collect();
    let mut body = Page::new(page.title);
    body.section("listing", "Listing", |html| {
        for group in groups(&lines) {
            match group {
                [heading, inside @ ..] if inside.len() > SHORT => {
                    let summary = format!("{} ({} lines)", plain(heading).trim(), inside.len());
                    folded(html, &summary, false, |html| block(inside, html));
                }
                group => block(group, html),
            }
        }
        if cut {
            let more = text.len() - kept.len();
            let note = format!("{more} bytes more are left out: `{}` prints all.", page.command);
            html.leaf("p", &[("class", "dim")], &note);
        }
    });
    let whole = body.finish(|html| {
        html.leaf("h1", &[], page.title);
        html.element("p", &[], |html| {
            html.text("As printed by ");
            html.leaf("code", &[], page.command);
            html.text(".");
        });
    });
    out.write_all(whole.as_bytes())
}

/// Lines by heading: one that is not indented, and those below it that are. Short ones in a row are one group.
fn groups<'l, 't>(lines: &'l [&'t str]) -> Vec<&'l [&'t str]> {
    let is_heading = |line: &str| {
        let line = plain(line);
        !line.is_empty() && !line.starts_with([' ', '\t'])
    };
    let starts: Vec<usize> = (0..lines.len()).filter(|&at| at == 0 || is_heading(lines[at])).collect();
    let mut out: Vec<&'l [&'t str]> = Vec::new();
    let mut open = 0;
    for (i, &start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(lines.len());
        if end - start > SHORT + 1 {
            if open < start {
                out.push(&lines[open..start]);
            }
            out.push(&lines[start..end]);
            open = end;
        }
    }
    if open < lines.len() {
        out.push(&lines[open..]);
    }
    out
}

/// Lines as they are, with their colours.
fn block(lines: &[&str], html: &mut Html) {
    if lines.iter().all(|line| line.is_empty()) {
        return;
    }
    scrolling(html, "Listing", |html| {
        html.element("pre", &[], |html| {
            for line in lines {
                coloured(line, html);
                html.fixed("\n");
            }
        });
    });
}

/// A colour that a listing may have: a class of the style.
fn class(codes: &str) -> Option<&'static str> {
    Some(match codes {
        "1" => "a1",
        "2" => "a2",
        "31" => "a31",
        "32" => "a32",
        "33" => "a33",
        "34" => "a34",
        "35" => "a35",
        "36" => "a36",
        "1;31" => "a1 a31",
        "1;32" => "a1 a32",
        "1;33" => "a1 a33",
        "1;34" => "a1 a34",
        "1;35" => "a1 a35",
        "1;36" => "a1 a36",
        _ => return None,
    })
}

/// The stretches of a line: the codes of their colour, and their text.
fn stretches(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| match part.split_once('m') {
        Some((codes, text)) if codes.bytes().all(|b| b.is_ascii_digit() || b == b';') => (codes, text),
        _ => ("", part),
    });
    std::iter::once(("", first)).chain(rest)
}

fn coloured(line: &str, html: &mut Html) {
    for (codes, text) in stretches(line).filter(|(_, text)| !text.is_empty()) {
        match class(codes) {
            Some(class) => html.leaf("span", &[("class", class)], text),
            None => html.text(text),
        }
    }
}

/// A line without its colours.
fn plain(line: &str) -> String {
    stretches(line).map(|(_, text)| text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> String {
        let mut out = Vec::new();
        let about = ListingPage { title: "<b>", command: "unwedge decode x" };
        listing(about, text.as_bytes(), &mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn colours_are_classes_and_markup_is_text() {
        let shown = page("\x1b[1;31mCAUSE\x1b[0m <script>\n");
        assert!(shown.contains("<span class=\"a1 a31\">CAUSE</span> &lt;script&gt;\n"), "{shown}");
        assert!(shown.contains("<h1>&lt;b&gt;</h1>") && !shown.contains('\x1b'), "{shown}");
    }

    #[test]
    fn what_is_below_a_heading_is_folded_where_it_is_long() {
        let long: String = (0..100).map(|n| format!("  line {n}\n")).collect();
        let shown = page(&format!("short:\n  one\nlong:\n{long}"));
        assert!(shown.contains("<summary>long: (100 lines)</summary>"), "{shown}");
        assert_eq!(shown.matches("<details>").count(), 1);
    }

    #[test]
    fn a_listing_that_is_too_long_is_cut_at_a_line() {
        let shown = page(&"a line of a listing\n".repeat(LONGEST / 10));
        assert!(shown.contains("bytes more are left out") && shown.len() < LONGEST + (1 << 16));
    }
}
