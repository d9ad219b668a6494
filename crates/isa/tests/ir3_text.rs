//! The text of ir3 instructions over the encodings of the data folder.

mod data;

use data::{cell, csv};
use unwedge_isa::ir3;

fn text(word: u64, gpu_id: u32) -> String {
    let mut out = Vec::new();
    ir3::write(word, gpu_id, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Mesa's own test has this row switched off: the text says `u32` where the type bits say `f32`, as other rows show.
const NOT_SO: &str = "c702026e0480025c";

#[test]
fn every_encoding_has_its_text() {
    for (file, rows) in csv("ir3") {
        let (generation, encoding, expected) =
            (cell(&rows, "generation"), cell(&rows, "encoding"), cell(&rows, "text"));
        let mut wrong = Vec::new();
        let count = rows.len() - 1;
        for row in rows.iter().skip(1) {
            let gpu_id: u32 = row[generation].parse::<u32>().unwrap() * 100;
            let word = u64::from_str_radix(&row[encoding], 16).unwrap();
            let got = text(word, gpu_id);
            if got != row[expected] && row[encoding] != NOT_SO {
                wrong.push(format!("{gpu_id} {word:016x}\n  want {}\n  have {got}", row[expected]));
            }
        }
        println!("{file}: {} of {count} equal", count - wrong.len());
        assert!(
            wrong.is_empty(),
            "{file}: {} of {count} differ:\n{}",
            wrong.len(),
            wrong[..wrong.len().min(40)].join("\n")
        );
    }
}
