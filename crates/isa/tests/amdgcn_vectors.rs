//! AMD's instructions against LLVM's: texts and their bytes, texts and LLVM's verdict, from the data folder.
//!
//! Of gfx6 and gfx7 LLVM has no disassembler: there what is disassembled must assemble to the same bytes, and say the text
//! again but for spellings that [`otherwise()`] knows.

mod amdgcn;
mod data;

use amdgcn::{assemble, disassemble, gpu};
use data::{amd_vectors, cell};
use std::collections::BTreeMap;
use unwedge_isa::amdgcn::model::Class;
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Operand, text};

/// Of a thousand rows at most one may differ. What does is printed, whether or not it is too much.
const PER_THOUSAND: usize = 1;

/// Of a hundred verdicts at most one may differ: LLVM takes offsets that it cannot encode, and cuts them.
const VERDICTS_PER_HUNDRED: usize = 1;

/// Of a hundred rows of gfx6 and gfx7 at least so many are said again as they are, letter by letter.
const SAME_PER_HUNDRED: usize = 88;

/// How many rows that differ are printed, without `UNWEDGE_ALL=1`.
const SHOWN: usize = 200;

/// Rows of one kind, and what was wrong with them.
#[derive(Default)]
struct Told {
    rows: usize,
    wrong: Vec<String>,
}

impl Told {
    fn add(&mut self, wrong: Option<String>) {
        self.rows += 1;
        self.wrong.extend(wrong);
    }
}

/// Prints what differs and whether that is few enough.
fn few_enough(told: &BTreeMap<(String, &str), Told>, part: usize, of: usize) {
    let mut all: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for ((name, kind), Told { rows, wrong }) in told {
        println!("{name}, {kind}: {} of {rows} as they should be", rows - wrong.len());
        let sum = all.entry(kind).or_default();
        *sum = (sum.0 + rows, sum.1 + wrong.len());
    }
    let shown = if std::env::var_os("UNWEDGE_ALL").is_some() { usize::MAX } else { SHOWN };
    for line in told.values().flat_map(|told| &told.wrong).take(shown) {
        println!("    {line}");
    }
    for (kind, (rows, wrong)) in all {
        println!("{kind}: {} of {rows}", rows - wrong);
        assert!(wrong * of <= rows * part, "{kind}: {wrong} of {rows} differ");
    }
}

fn hex(words: &[u32]) -> String {
    words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
}

fn words(hex: &str) -> Vec<u32> {
    let digits = |at: usize| u32::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len() / 8)
        .map(|word| (0..4).fold(0, |sum, byte| sum | digits(8 * word + 2 * byte) << (8 * byte)))
        .collect()
}

#[test]
fn texts_are_bytes_and_bytes_are_texts() {
    let mut told: BTreeMap<(String, &str), Told> = BTreeMap::new();
    let mut spelled: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for (file, rows) in amd_vectors() {
        if !rows[0].iter().any(|column| column == "bytes") {
            continue;
        }
        let [mcpu, features, asm, bytes] = ["mcpu", "features", "asm", "bytes"].map(|name| cell(&rows, name));
        let name = file.rsplit('/').next().unwrap_or_default().to_owned();
        for row in &rows[1..] {
            let gpu = gpu(&row[mcpu], &row[features]);
            let (text, bytes) = (&row[asm], words(&row[bytes]));
            let mut tell = |kind, wrong| told.entry((name.clone(), kind)).or_default().add(wrong);
            let got = assemble(text, &gpu);
            tell(
                "assembled",
                (got.as_ref() != Ok(&bytes))
                    .then(|| format!("{name}: {text}: {got:x?}, not {}", hex(&bytes))),
            );
            let shown = disassemble(&bytes, &gpu);
            if gpu.generation() > Gfx::Gfx7 {
                let same = shown.as_ref() == Some(text);
                tell(
                    "disassembled",
                    (!same).then(|| format!("{name}: {}: {shown:?}, not {text}", hex(&bytes))),
                );
            } else {
                let again = shown.as_ref().map(|shown| assemble(shown, &gpu));
                let same = again == Some(Ok(bytes.clone()));
                tell(
                    "disassembled and assembled",
                    (!same).then(|| format!("{name}: {text}: {shown:?}: {again:x?}")),
                );
                let why = shown.as_ref().map_or(Some(DIFFERENT), |shown| otherwise(text, shown, &gpu));
                let unexplained = why == Some(DIFFERENT);
                tell(AGAIN, unexplained.then(|| format!("{name}: {text}: {shown:?}")));
                if let Some(rule) = why {
                    *spelled.entry((name.clone(), rule)).or_default() += 1;
                }
            }
        }
    }
    for ((name, rule), rows) in &spelled {
        println!("{name}: {rows} said again otherwise: {rule}");
    }
    few_enough(&told, PER_THOUSAND, 1000);
    for ((name, _), Told { rows, .. }) in told.iter().filter(|((_, kind), _)| *kind == AGAIN) {
        let other: usize = spelled.iter().filter(|((of, _), _)| of == name).map(|(_, rows)| rows).sum();
        println!("{name}: {} of {rows} said again letter by letter", rows - other);
        assert!((rows - other) * 100 >= rows * SAME_PER_HUNDRED, "{name}: {other} of {rows} otherwise");
    }
}

/// What is asked of gfx6 and gfx7 besides.
const AGAIN: &str = "said again";

/// No rule says why texts differ.
const DIFFERENT: &str = "?";

/// Why a text of gfx6 and gfx7 and what is disassembled from its bytes differ, if they do. Both must be read as the same
/// instruction, but for what bytes do not say; and the difference must be one of these spellings:
/// the texts come from a generator, not from a disassembler, and have several for the same.
fn otherwise(text: &str, shown: &str, gpu: &Gpu) -> Option<&'static str> {
    if text == shown {
        return None;
    }
    let read = |line: &str| text::parse_line(line, gpu, &()).ok();
    let (Some(own), Some(again)) = (read(text), read(shown)) else { return Some(DIFFERENT) };
    let parts = |line| str::split_once(line, ' ').unwrap_or((line, ""));
    let ((name, rest), (shown_name, shown_rest)) = (parts(text), parts(shown));
    if own != again {
        // The encoding has the first register of an address and not how many there are.
        let first =
            |place: Operand| if let Operand::Reg { reg, .. } = place { Operand::reg(reg, 1) } else { place };
        let address = own.written().position(|(slot, _)| slot.class == Class::ImageAddr);
        let narrow = |mut inst: Inst| {
            if let Some(place) = address.and_then(|at| inst.operands.get_mut(at)) {
                *place = first(*place);
            }
            inst
        };
        if let Some((before, after)) = text.split_once(" clamp")
            && assemble(&format!("{before}{after}"), gpu) == assemble(text, gpu)
        {
            return otherwise(&format!("{before}{after}"), shown, gpu).or(Some("clamp where it has no bit"));
        }
        let same = address.is_some() && name == shown_name && narrow(own) == narrow(again);
        return Some(if same { "how many registers an address has" } else { DIFFERENT });
    }
    // `v_add_co_u32` is a name of later generations; a suffix may be said where it is not needed.
    let bare = |name: &str| name.trim_end_matches("_e64").replace("_co_u32", "_i32");
    let operands =
        |rest: &str| rest.split(", ").filter(|operand| *operand != "vcc").collect::<Vec<_>>().join(" ");
    let (own, again) = (operands(rest), operands(shown_rest));
    let number = own.split(' ').zip(again.split(' ')).find(|(own, again)| own != again).map(|(own, _)| own);
    let digits = number.map(|own| {
        own.trim_start_matches("format:").trim_start_matches("neg(").trim_start_matches(['-', '|'])
    });
    Some(if bare(name) != bare(shown_name) {
        DIFFERENT
    } else if rest == shown_rest {
        "another name, or a suffix"
    } else if own == again {
        "vcc is left out"
    } else if digits.is_some_and(|own| own.starts_with(|c: char| c.is_ascii_digit())) {
        "a number in another form, or one that has a name"
    } else {
        DIFFERENT
    })
}

#[test]
fn what_llvm_takes_is_taken() {
    let mut told: BTreeMap<(String, &str), Told> = BTreeMap::new();
    for (_, rows) in amd_vectors() {
        if !rows[0].iter().any(|column| column == "verdict") {
            continue;
        }
        let columns = ["mcpu", "mutation", "verdict", "llvm_error", "asm"];
        let [mcpu, mutation, verdict, llvm, asm] = columns.map(|name| cell(&rows, name));
        for row in &rows[1..] {
            let gpu = gpu(&row[mcpu], "");
            let got = assemble(&row[asm], &gpu);
            let same = got.is_ok() == (row[verdict] == "accepted");
            let wrong =
                || format!("{}: {}: {got:x?}, LLVM: {} {}", row[mcpu], row[asm], row[verdict], row[llvm]);
            told.entry((row[mutation].clone(), "verdicts")).or_default().add((!same).then(wrong));
        }
    }
    few_enough(&told, VERDICTS_PER_HUNDRED, 100);
}
