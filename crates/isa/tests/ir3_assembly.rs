//! The ir3 assembler over the texts of the data folder: what the disassembler prints assembles again.

mod data;

use data::{cell, csv};
use std::collections::BTreeMap;
use unwedge_isa::ir3::asm::Assembler;
use unwedge_isa::ir3::{decode, write};

fn text(word: u64, gpu_id: u32) -> String {
    let mut out = Vec::new();
    write(word, gpu_id, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Bits of a word that mean something: texts do not tell of the others.
fn meaningful(word: u64, gpu_id: u32) -> u64 {
    decode(word, gpu_id).map_or(word, |found| word & !(found.table().ignored(found.leaf()) as u64))
}

/// Checks every row of every table: `check` gets the assembler, the GPU, the encoding and the text.
fn every_row(mut check: impl FnMut(&mut Assembler, u32, u64, &str, bool) -> Result<(), String>) {
    let mut assemblers: BTreeMap<u32, Assembler> = BTreeMap::new();
    for (file, rows) in csv("ir3") {
        let (generation, encoding, text) =
            (cell(&rows, "generation"), cell(&rows, "encoding"), cell(&rows, "text"));
        let reassembles = rows[0].iter().position(|column| column == "reassembles");
        let mut wrong = Vec::new();
        for row in rows.iter().skip(1) {
            let gpu_id: u32 = row[generation].parse::<u32>().unwrap() * 100;
            let word = u64::from_str_radix(&row[encoding], 16).unwrap();
            let assembler = assemblers.entry(gpu_id).or_insert_with(|| Assembler::new(gpu_id));
            let yes = reassembles.is_some_and(|at| row[at] == "yes");
            wrong.extend(check(assembler, gpu_id, word, &row[text], yes).err());
        }
        println!("{file}: {} of {} as they should be", rows.len() - 1 - wrong.len(), rows.len() - 1);
        assert!(
            wrong.is_empty(),
            "{file}: {} wrong:\n{}",
            wrong.len(),
            wrong[..wrong.len().min(40)].join("\n")
        );
    }
}

#[test]
fn every_text_assembles_to_an_encoding_that_has_it() {
    every_row(|assembler, gpu_id, word, expected, _| {
        if text(word, gpu_id) != expected {
            return Ok(());
        }
        let word = assembler.instruction(expected).map_err(|error| format!("{gpu_id}{error}"))?;
        let got = text(word, gpu_id);
        if got == expected {
            Ok(())
        } else {
            Err(format!("{gpu_id} {word:016x}\n  want {expected}\n  have {got}"))
        }
    });
}

#[test]
fn texts_that_reassemble_give_their_encoding() {
    every_row(|assembler, gpu_id, word, text, reassembles| {
        // What the disassembler prints otherwise is its own test's to tell of.
        if !reassembles || self::text(word, gpu_id) != text {
            return Ok(());
        }
        let got = assembler.instruction(text).map_err(|error| format!("{gpu_id}{error}"))?;
        if meaningful(got, gpu_id) == meaningful(word, gpu_id) {
            return Ok(());
        }
        Err(format!("{gpu_id} {text}\n  want {word:016x}\n  have {got:016x}"))
    });
}
