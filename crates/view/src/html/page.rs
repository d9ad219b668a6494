//! The frame of a page: head, style, headings, and the parts that all pages are made of.
//!
//! A page is one file that loads nothing: its policy forbids it. It can be read without its script, which adds search fields
//! and opens what is folded before a page is printed.

use super::markup::Html;
use unwedge_postmortem::Trust;

/// The style of every page.
const STYLE: &str = include_str!("style.css");
/// The script of every page.
const SCRIPT: &str = include_str!("page.js");

/// A page.
pub(crate) struct Page {
    html: Html,
    /// The sections so far: id and heading.
    sections: Vec<(&'static str, &'static str)>,
    title: String,
}

impl Page {
    /// An empty page.
    pub(crate) fn new(title: &str) -> Page {
        Page { html: Html::default(), sections: Vec::new(), title: title.to_owned() }
    }

    /// A section with its heading.
    pub(crate) fn section(
        &mut self,
        id: &'static str,
        heading: &'static str,
        inside: impl FnOnce(&mut Html),
    ) {
        self.sections.push((id, heading));
        let label = format!("{id}-heading");
        self.html.element("section", &[("id", id), ("aria-labelledby", &label)], |html| {
            html.leaf("h2", &[("id", &label)], heading);
            inside(html);
        });
        self.html.fixed("\n");
    }

    /// The whole page. `head` writes what is above the sections.
    pub(crate) fn finish(self, head: impl FnOnce(&mut Html)) -> String {
        let mut out = Html::default();
        out.fixed("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        out.fixed("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        out.fixed("<meta name=\"color-scheme\" content=\"light dark\">\n");
        // Whatever a dump holds, the page asks for nothing.
        out.fixed(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; \
            script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n<link rel=\"icon\" href=\"data:,\">\n",
        );
        out.leaf("title", &[], &self.title);
        out.fixed("\n<style>\n");
        out.fixed(STYLE);
        out.fixed(
            "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the report</a>\n<header>",
        );
        head(&mut out);
        out.fixed("</header>\n");
        if self.sections.len() > 1 {
            out.element("nav", &[("aria-label", "Sections")], |out| {
                out.element("ul", &[], |out| {
                    for (id, heading) in &self.sections {
                        out.element("li", &[], |out| {
                            out.leaf("a", &[("href", &format!("#{id}"))], heading);
                        });
                    }
                });
            });
        }
        let mut page = out.into_string();
        page.push_str("\n<main id=\"main\" tabindex=\"-1\">\n");
        page.push_str(&self.html.into_string());
        page.push_str("</main>\n<footer><p>Written by unwedge ");
        page.push_str(env!("CARGO_PKG_VERSION"));
        page.push_str(". This page loads nothing.</p></footer>\n<script>\n");
        page.push_str(SCRIPT);
        page.push_str("</script>\n</body>\n</html>\n");
        page
    }
}

/// A level of trust, as a word with a colour.
pub(crate) fn trust(html: &mut Html, trust: Trust) {
    let class = match trust {
        Trust::Certain => "trust certain",
        Trust::Likely => "trust likely",
        Trust::Possible => "trust possible",
        Trust::Guess => "trust guess",
    };
    html.leaf("span", &[("class", class), ("title", crate::words::trust(trust))], trust.word());
}

/// A fold with its summary.
pub(crate) fn folded(html: &mut Html, summary: &str, open: bool, inside: impl FnOnce(&mut Html)) {
    if open {
        html.fixed("<details open>")
    } else {
        html.fixed("<details>")
    }
    html.leaf("summary", &[], summary);
    inside(html);
    html.fixed("</details>");
}

/// A region for what may be wider than the page: it scrolls by itself, also with the keyboard.
pub(crate) fn scrolling(html: &mut Html, label: &str, inside: impl FnOnce(&mut Html)) {
    let attributes = [("class", "scroll"), ("role", "region"), ("tabindex", "0"), ("aria-label", label)];
    html.element("div", &attributes, inside);
}

/// A table: its heads, and rows that a function writes with [`row`]. End tags of rows and cells are left out, as HTML allows.
pub(crate) fn table(html: &mut Html, caption: &str, heads: &[&str], rows: impl FnOnce(&mut Html)) {
    scrolling(html, caption, |html| {
        html.element("table", &[], |html| {
            html.leaf("caption", &[], caption);
            html.fixed("<thead><tr>");
            for head in heads {
                html.open("th", &[("scope", "col")]);
                html.text(head);
            }
            html.fixed("<tbody>");
            rows(html);
        });
    });
}

/// A row of a table.
pub(crate) fn row<'a>(html: &mut Html, cells: impl IntoIterator<Item = &'a str>) {
    html.fixed("<tr>");
    for cell in cells {
        html.fixed("<td>");
        html.text(cell);
    }
}
