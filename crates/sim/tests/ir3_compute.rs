//! Every dispatch of the recorded compute captures gives its words, and leaves what is around them alone.

mod ir3_data;

use ir3_data::{Capture, Submitted, capture, expected, folder, number, table};
use std::collections::BTreeMap;
use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{Options, Timing, run};
use unwedge_testkit::parallel;

/// A dispatch of the index.
struct Row {
    dispatch: usize,
    shader: String,
    push_constant: String,
    output: u64,
    words: u64,
    fill: u32,
}

/// The dispatches of each capture.
fn index(folder: &std::path::Path) -> BTreeMap<String, Vec<Row>> {
    let mut captures: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in table(&folder.join("index.csv")) {
        captures.entry(row["capture"].clone()).or_default().push(Row {
            dispatch: number(&row["dispatch"]) as usize,
            shader: row["shader"].clone(),
            push_constant: row["push_constant"].clone(),
            output: number(&row["output_iova"]),
            words: number(&row["words"]),
            fill: number(&row["fill"]) as u32,
        });
    }
    captures
}

/// What of the words around and in an output is not as it must be.
fn difference(memory: &SimMemory, row: &Row, words: &[u32]) -> Option<String> {
    let mut wrong = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let found = memory.load(row.output + 4 * at as u64, 4).known();
        if found != Some((*word).into()) {
            wrong.push(format!("word {at} is {:x?}, not {word:x}", found.unwrap_or(u64::MAX)));
        }
    }
    let end = row.output + 4 * row.words;
    if memory.load(end, 4).known() != Some(row.fill.into()) {
        wrong.push("the word after it was written".into());
    }
    (!wrong.is_empty()).then(|| format!("{} words: {}", wrong.len(), wrong[..wrong.len().min(3)].join(", ")))
}

fn check(capture: &mut Capture, row: &Row, words: &[u32], options: &Options) -> Result<(), String> {
    let submitted: &Submitted = capture.dispatches.get(row.dispatch).ok_or("is not in the capture")?;
    let program = capture.program(submitted);
    let dispatch = submitted.dispatch.clone();
    run(&program, &dispatch, &mut capture.memory, options).map_err(|fault| fault.to_string())?;
    difference(&capture.memory, row, words).map_or(Ok(()), Err)
}

/// Runs all rows of all captures with each of some options.
fn all(options: &[Options]) {
    let Some(folder) = folder("compute") else { return };
    let expected = expected(&folder.join("expected.csv.gz"));
    let captures = index(&folder);
    let jobs: Vec<_> =
        options.iter().flat_map(|options| captures.iter().map(move |own| (options, own))).collect();
    let failures = parallel::map(&jobs, |(options, (name, rows))| {
        let mut capture = capture(&folder.join(name));
        let mut failures = Vec::new();
        for row in rows.iter() {
            let words = &expected[&(row.shader.clone(), row.push_constant.clone())];
            if let Err(why) = check(&mut capture, row, words, options) {
                failures.push(format!("{name} {} {}: {why}", row.shader, row.push_constant));
            }
        }
        println!("{name}: {} of {}", rows.len() - failures.len(), rows.len());
        failures
    })
    .concat();
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures[..failures.len().min(40)].join("\n"));
}

#[test]
fn every_dispatch_gives_its_words() {
    all(&[Options::default()]);
}

/// What real hardware may do later is done later, in an order that a seed chooses: the words are the same.
#[test]
fn every_dispatch_gives_its_words_in_bad_timing() {
    let seeds = [1, 2, 3, 4, 5];
    all(&seeds.map(|seed| Options { timing: Timing::Adversarial { seed }, ..Options::default() }));
}
