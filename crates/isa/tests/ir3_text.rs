//! The text of ir3 instructions over the encodings of the data folder.

mod data;

use data::{cell, csv};
use unwedge_isa::ir3;
use unwedge_isa::ir3::asm::Assembler;

fn text(word: u64, gpu_id: u32) -> String {
    let mut out = Vec::new();
    ir3::write(word, gpu_id, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A text no encoding has is no fault of the printer: the assembler refuses it, while other rows of that instruction
/// are right. Such rows are counted and shown, and must stay rare.
const MOST_UNHAD: f64 = 0.0002;

struct Row {
    file: String,
    gpu_id: u32,
    word: u64,
    expected: String,
    got: String,
}

impl Row {
    fn right(&self) -> bool {
        self.expected == self.got
    }

    /// The instruction and the generation.
    fn instruction(&self) -> (Option<&'static str>, u32) {
        (ir3::decode(self.word, self.gpu_id).map(|found| found.name()), self.gpu_id)
    }
}

fn rows() -> Vec<Row> {
    let mut all = Vec::new();
    for (file, rows) in csv("ir3") {
        let (generation, encoding, expected) =
            (cell(&rows, "generation"), cell(&rows, "encoding"), cell(&rows, "text"));
        for row in rows.iter().skip(1) {
            let gpu_id = row[generation].parse::<u32>().unwrap() * 100;
            let word = u64::from_str_radix(&row[encoding], 16).unwrap();
            let (expected, got) = (row[expected].clone(), text(word, gpu_id));
            all.push(Row { file: file.clone(), gpu_id, word, expected, got });
        }
    }
    all
}

#[test]
fn every_encoding_has_its_text() {
    let rows = rows();
    let (right, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.right());
    let (unhad, wrong): (Vec<&Row>, Vec<&Row>) = others.into_iter().partition(|row| {
        Assembler::new(row.gpu_id).instruction(&row.expected).is_err()
            && right.iter().any(|other| other.instruction() == row.instruction())
    });
    println!("{} of {} equal", right.len(), rows.len());
    let show = |row: &&Row| {
        format!("{} {} {:016x}\n  want {}\n  have {}", row.file, row.gpu_id, row.word, row.expected, row.got)
    };
    for row in &unhad {
        println!("no encoding has this text:\n{}", show(row));
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.iter().take(40).map(show).collect::<Vec<_>>().join("\n")
    );
    assert!(
        unhad.len() as f64 <= rows.len() as f64 * MOST_UNHAD,
        "{} texts that no encoding has",
        unhad.len()
    );
}
