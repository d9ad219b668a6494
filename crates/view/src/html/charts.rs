//! The pictures of a page, as SVG made from the same facts as the tables beside them: rings and fences, blocks of the GPU, memory around
//! an address.
//!
//! Each has a label for screen readers, and a table with its numbers. Never: a number that no table has.

use super::facts::{BufferFacts, DumpFacts, QueueFacts};
use super::markup::Html;

/// Fences of a queue that are drawn: before the last retired one, and after it.
const FENCES: (u64, u64) = (3, 12);
/// Characters of a name in a picture.
const NAME: usize = 22;

/// A length or place of a picture, as an attribute.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A name as far as it fits.
fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn picture(html: &mut Html, label: &str, (width, height): (f64, f64), inside: impl FnOnce(&mut Html)) {
    let (w, h) = (px(width), px(height));
    let attributes = [
        ("viewBox", &*format!("0 0 {w} {h}")),
        ("width", &*w),
        ("height", &*h),
        ("role", "img"),
        ("aria-label", label),
    ];
    html.element("svg", &attributes, inside);
}

fn rect(html: &mut Html, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let (x, y, w, h) = (px(x), px(y), px(width), px(height));
    html.open("rect", &[("class", class), ("x", &x), ("y", &y), ("width", &w), ("height", &h), ("rx", "3")]);
    html.close("rect");
}

fn label(html: &mut Html, class: &str, (x, y): (f64, f64), text: &str) {
    html.leaf("text", &[("class", class), ("x", &px(x)), ("y", &px(y))], text);
}

fn centred(html: &mut Html, class: &str, (x, y): (f64, f64), text: &str) {
    let attributes = [("class", class), ("x", &*px(x)), ("y", &*px(y)), ("text-anchor", "middle")];
    html.leaf("text", &attributes, text);
}

/// A timeline of the queues: what of each ring is not read, and which fences are retired and pending.
pub(super) fn queues(queues: &[QueueFacts], html: &mut Html) {
    const ROW: f64 = 46.0;
    const RING: (f64, f64) = (150.0, 230.0);
    const FENCE: (f64, f64) = (410.0, 22.0);
    let size = (790.0, 26.0 + ROW * queues.len() as f64);
    picture(html, "Rings and fences; the table below has the numbers", size, |html| {
        label(html, "small", (RING.0, 14.0), "ring: what is written and not read");
        label(html, "small", (FENCE.0, 14.0), "fences: retired, then pending");
        for (i, queue) in queues.iter().enumerate() {
            let y = 24.0 + ROW * i as f64;
            label(html, "", (0.0, y + 18.0), &short(&queue.name, NAME - 4));
            if queue.hung {
                label(html, "small", (0.0, y + 32.0), "hung");
            }
            ring(queue, y, RING, html);
            fences(queue, y, FENCE, html);
        }
    });
}

/// The ring as a bar, with the stretch from the read pointer to the write pointer.
fn ring(queue: &QueueFacts, y: f64, (x, width): (f64, f64), html: &mut Html) {
    let (Some(read), Some(written)) = (queue.read, queue.written) else { return };
    let size = queue.size.unwrap_or(0).max(read).max(written).max(1) as f64;
    rect(html, "block", (x, y + 6.0), (width, 16.0));
    let place = |dword: u64| x + width * (dword as f64 / size).clamp(0.0, 1.0);
    let mut stretch =
        |from: f64, to: f64| rect(html, "unread", (from, y + 6.0), ((to - from).max(2.0), 16.0));
    if read < written {
        stretch(place(read), place(written));
    } else if read > written {
        stretch(place(read), x + width);
        stretch(x, place(written));
    }
    let text = if read == written {
        format!("read to the end, {read:#x}")
    } else {
        format!("{read:#x} to {written:#x}")
    };
    label(html, "small", (x, y + 36.0), &text);
}

/// The fences as boxes.
fn fences(queue: &QueueFacts, y: f64, (x, step): (f64, f64), html: &mut Html) {
    let (Some(retired), Some(open)) = (queue.retired, queue.open()) else { return };
    let before = FENCES.0.min(retired);
    let after = open.min(FENCES.1);
    let mut at = x;
    for _ in 0..before {
        rect(html, "done", (at, y + 6.0), (step - 4.0, 16.0));
        at += step;
    }
    for _ in 0..after {
        rect(html, "unread", (at, y + 6.0), (step - 4.0, 16.0));
        at += step;
    }
    let text = match open {
        0 => format!("{retired} retired, none pending"),
        // The counter went back; there are not that many fences.
        open if open > u64::from(u32::MAX) / 2 => format!("{retired} retired, fewer submitted"),
        open => format!("{retired} retired, {open} pending"),
    };
    label(html, "small", (x, y + 36.0), &text);
}

/// The blocks of the GPU in their stages, the busy ones lit. `waits` has the blocks that findings are about.
pub(super) fn blocks(facts: &DumpFacts, waits: &[(String, String)], html: &mut Html) {
    const BLOCK: (f64, f64) = (112.0, 46.0);
    const LEFT: f64 = 150.0;
    const ACROSS: usize = 5;
    let rows = |blocks: usize| blocks.div_ceil(ACROSS).max(1);
    let all: usize = facts.stages.iter().map(|stage| rows(stage.blocks.len())).sum();
    let step = (BLOCK.0 + 10.0, BLOCK.1 + 14.0);
    let size = (LEFT + step.0 * ACROSS as f64, step.1 * all as f64 + 6.0);
    picture(html, "Blocks of the GPU; the table below lists those that are busy", size, |html| {
        let mut y = 4.0;
        for (i, stage) in facts.stages.iter().enumerate() {
            label(html, "", (0.0, y + 27.0), stage.name);
            for (j, block) in stage.blocks.iter().enumerate() {
                let at = (LEFT + step.0 * (j % ACROSS) as f64, y + step.1 * (j / ACROSS) as f64);
                rect(html, if block.busy { "block busy" } else { "block" }, at, BLOCK);
                let middle = at.0 + BLOCK.0 / 2.0;
                let lit = if block.busy { "lit" } else { "" };
                centred(html, lit, (middle, at.1 + 20.0), &short(&block.name, 16));
                let waiting = waits.iter().any(|(name, _)| *name == block.name);
                let state = match (block.busy, waiting) {
                    (true, true) => "busy, waits",
                    (true, false) => "busy",
                    (false, true) => "waits",
                    (false, false) => "idle",
                };
                centred(html, if block.busy { "lit small" } else { "small" }, (middle, at.1 + 36.0), state);
            }
            y += step.1 * rows(stage.blocks.len()) as f64;
            if i + 1 < facts.stages.len() {
                let (x, from, to) = (px(LEFT + BLOCK.0 / 2.0), px(y - 13.0), px(y - 1.0));
                html.open("line", &[("class", "edge"), ("x1", &x), ("x2", &x), ("y1", &from), ("y2", &to)]);
                html.close("line");
            }
        }
    });
}

/// Buffers around an address.
pub(super) struct Neighbourhood<'f> {
    pub(super) address: u64,
    /// Those before it, the one that it is in, those after it.
    pub(super) before: Vec<&'f BufferFacts>,
    pub(super) inside: Vec<&'f BufferFacts>,
    pub(super) after: Vec<&'f BufferFacts>,
}

impl<'f> Neighbourhood<'f> {
    /// Up to `most` buffers on either side of an address.
    pub(super) fn of(buffers: &'f [BufferFacts], address: u64, most: usize) -> Neighbourhood<'f> {
        let end = |buffer: &BufferFacts| buffer.iova.saturating_add(buffer.size);
        let mut below: Vec<&BufferFacts> =
            buffers.iter().filter(|buffer| end(buffer) <= address && buffer.iova <= address).collect();
        below.sort_by_key(|buffer| end(buffer));
        let before = below.split_off(below.len().saturating_sub(most));
        let inside = buffers.iter().filter(|buffer| buffer.iova <= address && address < end(buffer));
        let after = buffers.iter().filter(|buffer| buffer.iova > address);
        Neighbourhood {
            address,
            before,
            inside: inside.take(most).collect(),
            after: after.take(most).collect(),
        }
    }

    /// Bytes from a buffer to the address, or back.
    pub(super) fn gap(&self, buffer: &BufferFacts) -> u64 {
        let end = buffer.iova.saturating_add(buffer.size);
        self.address.saturating_sub(end).max(buffer.iova.saturating_sub(self.address))
    }
}

/// The buffers around an address, the lowest first; not to scale.
pub(super) fn memory(around: &Neighbourhood<'_>, what: &str, html: &mut Html) {
    const ROW: f64 = 34.0;
    const WIDTH: f64 = 720.0;
    let outside = usize::from(around.inside.is_empty());
    let rows = around.before.len() + around.inside.len() + around.after.len() + outside;
    let name = format!("Memory around {:#x}; the table below has the addresses", around.address);
    picture(html, &name, (WIDTH, ROW * rows as f64 + 4.0), |html| {
        let mut y = 2.0;
        let mut line = |html: &mut Html, class: &str, text: &str, note: &str| {
            rect(html, class, (170.0, y), (WIDTH - 172.0, ROW - 6.0));
            label(html, "", (180.0, y + 19.0), text);
            label(html, "small", (0.0, y + 19.0), note);
            y += ROW;
        };
        let text = |buffer: &BufferFacts| {
            let name = if buffer.name.is_empty() { "buffer" } else { &buffer.name };
            format!("{:#x} + {:#x}  {}", buffer.iova, buffer.size, short(name, NAME))
        };
        let away = |buffer: &BufferFacts, word: &str| format!("{:#x} bytes {word}", around.gap(buffer));
        for buffer in &around.before {
            line(html, "block", &text(buffer), &away(buffer, "before"));
        }
        for buffer in &around.inside {
            let offset = around.address.saturating_sub(buffer.iova);
            line(html, "fault", &text(buffer), &format!("{what} at + {offset:#x}"));
        }
        if around.inside.is_empty() {
            line(html, "fault", &format!("{:#x}  in no buffer of the dump", around.address), what);
        }
        for buffer in &around.after {
            line(html, "block", &text(buffer), &away(buffer, "after"));
        }
    });
}
