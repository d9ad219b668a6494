//! The page of a listing: the text that a command prints, with its colours, folded at its headings.
//!
//! Colours are the escape sequences that [`crate::Style`] writes. Never: sequences of anybody else; a listing replaces those.

use super::markup::Html;
use super::page::{Page, folded, scrolling};
use std::io::{self, Write};

/// Bytes of a listing that a page has.
pub const LISTING_BYTES: usize = 4 << 20;
/// Lines below a heading that are not folded.
const SHORT: usize = 24;
/// Digits of an address at the start of a line.
const ADDRESS: usize = 8;
/// Lines of a listing that is not folded when a page is opened, and lines in a row that are not folded.
const FEW: usize = 300;

/// A listing.
#[derive(Clone, Copy, Debug)]
pub struct ListingPage<'a> {
    /// The heading: `Decode of crash.devcore`.
    pub title: &'a str,
    /// Its first [`LISTING_BYTES`] at most, with colours.
    pub text: &'a [u8],
    /// Bytes after those.
    pub more: u64,
}

/// Writes the page of a listing.
///
/// # Errors
/// Those of `out`, if it cannot be written to.
pub fn listing(page: ListingPage<'_>, out: &mut dyn Write) -> io::Result<()> {
    let kept = page.text.get(..LISTING_BYTES).unwrap_or(page.text);
    let kept = match kept.iter().rposition(|&byte| byte == b'\n') {
        Some(end) if kept.len() < page.text.len() || page.more > 0 => &kept[..end],
        _ => kept,
    };
    let more = page.more.saturating_add((page.text.len() - kept.len()) as u64);
    let shown = String::from_utf8_lossy(kept);
    let lines: Vec<&str> = shown.lines().collect();
    let mut body = Page::new(page.title);
    body.section("listing", "Listing", |html| {
        if lines.is_empty() {
            html.leaf("p", &[], "The command printed nothing.");
        }
        for (number, group) in (1..).zip(groups(&lines)) {
            match group {
                LineGroup::Long { heading, inside } => {
                    let summary = format!("{} ({} lines)", plain(heading).trim(), inside.len());
                    folded(html, &summary, lines.len() <= FEW, |html| block(number, inside, html));
                }
                LineGroup::Short(run) if run.len() > FEW => {
                    let headings = || run.iter().filter(|line| is_heading(line)).map(|line| plain(line));
                    let [first, last] =
                        [headings().next(), headings().next_back()].map(Option::unwrap_or_default);
                    let summary = format!("{} … {} ({} lines)", first.trim(), last.trim(), run.len());
                    folded(html, &summary, false, |html| block(number, run, html));
                }
                LineGroup::Short(run) => block(number, run, html),
            }
        }
        if more > 1 {
            let note =
                format!("{more} bytes more are left out: the command prints all of them without --html.");
            html.leaf("p", &[("class", "dim")], &note);
        }
    });
    let whole = body.finish(|html| html.leaf("h1", &[], page.title));
    out.write_all(whole.as_bytes())
}

/// Lines that are shown together.
#[derive(Debug, PartialEq)]
enum LineGroup<'l, 't> {
    /// More than [`SHORT`] lines below a heading.
    Long { heading: &'t str, inside: &'l [&'t str] },
    /// Headings with fewer lines.
    Short(&'l [&'t str]),
}

/// Whether a line names what is below it: it is not indented, and begins neither with an address nor with a mark.
fn is_heading(line: &str) -> bool {
    let line = plain(line);
    let first = line.split([':', '\t', ' ']).next().unwrap_or_default();
    let address = first.len() >= ADDRESS && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    line.starts_with(|first: char| !first.is_whitespace() && !['!', '*', '+'].contains(&first)) && !address
}

/// Lines by heading: it, and those below it that are none. Short ones in a row are one group.
fn groups<'l, 't>(lines: &'l [&'t str]) -> Vec<LineGroup<'l, 't>> {
    let starts: Vec<usize> = (0..lines.len()).filter(|&at| at == 0 || is_heading(lines[at])).collect();
    let mut out = Vec::new();
    let mut open = 0;
    for (i, &start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(lines.len());
        if end - start > SHORT + 1 {
            if open < start {
                out.push(LineGroup::Short(&lines[open..start]));
            }
            out.push(LineGroup::Long { heading: lines[start], inside: &lines[start + 1..end] });
            open = end;
        }
    }
    if open < lines.len() {
        out.push(LineGroup::Short(&lines[open..]));
    }
    out
}

/// Lines as they are, with their colours.
fn block(number: usize, lines: &[&str], html: &mut Html) {
    if lines.iter().all(|line| line.is_empty()) {
        return;
    }
    scrolling(html, &format!("Part {number}"), |html| {
        html.element("pre", &[], |html| {
            for line in lines {
                coloured(line, html);
                html.fixed("\n");
            }
        });
    });
}

/// The classes of the style for the codes of a colour.
fn classes(codes: &str) -> String {
    let class = |code: &str| match code {
        "1" | "2" | "31" | "32" | "33" | "34" | "35" | "36" => Some(format!("a{code}")),
        _ => None,
    };
    codes.split(';').filter_map(class).collect::<Vec<_>>().join(" ")
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
        let classes = classes(codes);
        if classes.is_empty() {
            html.text(text);
        } else {
            html.leaf("span", &[("class", &classes)], text);
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
        let about = ListingPage { title: "<b>", text: text.as_bytes(), more: 0 };
        listing(about, &mut out).expect("memory takes it");
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
        let long: String = (0..400).map(|n| format!("  line {n}\n")).collect();
        let shown = page(&format!("short:\n  one\nlong:\n{long}"));
        assert!(shown.contains("<summary>long: (400 lines)</summary>"), "{shown}");
        assert_eq!(shown.matches("<details>").count(), 1);
    }

    /// However many short parts there are in a row, none is folded below the heading of the first.
    #[test]
    fn short_parts_are_not_folded() {
        let parts: String = (0..100).map(|n| format!("part {n}:\n  one\n")).collect();
        let shown = page(&parts);
        assert!(!shown.contains("<details") && shown.contains("\npart 99:\n  one\n"), "{shown}");
    }

    /// A page of thousands of lines in a row is folded where a short one is not.
    #[test]
    fn many_short_parts_are_folded_as_one() {
        let parts: String = (0..200).map(|n| format!("part {n}:\n  one\n")).collect();
        let shown = page(&parts);
        assert!(shown.contains("<summary>part 0: … part 199: (400 lines)</summary>"), "{shown}");
        assert_eq!(shown.matches("<details").count(), 1);
    }

    /// Dumps of memory and marked registers in a stream are not headings.
    #[test]
    fn addresses_and_marks_are_not_headings() {
        let line = |n: u32| format!("!+\t00000003\n00000001000e3{n:03x}:\t0000: 70460001\n");
        let long: String = (0..200).map(line).collect();
        let shown = page(&format!("got cmdszdw=83\n{long}next:\n  one\n"));
        assert!(shown.contains("<summary>got cmdszdw=83 (400 lines)</summary>"), "{shown}");
        assert_eq!(shown.matches("<details").count(), 1);
    }

    #[test]
    fn an_empty_listing_is_not_an_empty_page() {
        assert!(page("").contains("<p>The command printed nothing.</p>"));
    }

    #[test]
    fn a_listing_that_is_too_long_is_cut_at_a_line() {
        let shown = page(&"a line of a listing\n".repeat(LISTING_BYTES / 10));
        assert!(shown.contains("bytes more are left out") && shown.len() < LISTING_BYTES + (1 << 16));
    }
}
