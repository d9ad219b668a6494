//! The keys, in one table, for the help. Texts fit into 80 columns. Never: what keys do; that is `keys.rs`.

use unwedge_view::browse::{Row, RowLook};

/// Keys and what they do; without keys, a heading.
const KEYS: &[(&str, &str)] = &[
    ("", "Views"),
    ("Tab, Shift-Tab", "next and previous view"),
    ("1 … 7", "a view by its number"),
    ("Enter", "opens a line; follows a call of an IB, or a finding"),
    ("Backspace", "back to where you were"),
    ("q", "closes what is open, else quits"),
    ("Q, Ctrl-C", "quits"),
    ("Ctrl-Z", "suspends"),
    ("", "Moving"),
    ("j k, arrows", "a line down, up"),
    ("space b, PgDn PgUp", "a page down, up"),
    ("d u", "half a page down, up"),
    ("g G, Home End", "first, last line"),
    ("< >", "sideways; left and right too, where nothing folds"),
    ("", "Searching"),
    ("/ ?", "forward, backward; capitals count if you type one"),
    ("n N", "the next hit, the next in the other direction"),
    ("&", "only registers whose name has a text; empty for all"),
    ("", "Jumping"),
    (": 0x1000cd000", "to the packet at an address, else to the buffer"),
    (": draw 18", "to the packet that starts work by its number"),
    (": RB_CCU_CNTL", "to a register by its name"),
    (": 120", "to a line"),
    ("s", "to where the engine stopped"),
    ("", "Streams"),
    ("Enter, o", "unfolds or folds an IB, or the fields of a packet"),
    ("right left", "unfolds, folds"),
    ("+ -", "unfolds, folds all"),
    ("r", "registers that the stream wrote before the packet"),
    ("x", "the buffer that the packet is in"),
    ("", "Buffers"),
    ("f F", "the next, the previous format"),
    (": as dwords", "a format: bytes dwords qwords floats halves text"),
    (": as ir3 a6xx", "code: ir3 a6xx, afuc a6xx, gfx1030, tgl"),
    ("", "Mouse"),
    ("click, wheel", "selects, opens what is selected; scrolls"),
];

/// The lines of the help.
pub(crate) fn rows() -> Vec<Row> {
    let row = |&(keys, text): &(&str, &str)| match keys {
        "" => Row::of(text, RowLook::Heading),
        keys => Row::plain(format!("  {keys:18}  {text}")),
    };
    KEYS.iter().map(row).collect()
}
