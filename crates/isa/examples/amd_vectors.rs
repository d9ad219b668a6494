//! Checks the AMD tables against vectors (`$UNWEDGE_DATA/amd/vectors/*.csv.gz`) and tells by generation and encoding what
//! differs: `cargo run --release -p unwedge-isa --example amd_vectors -- [--gen G] [--encoding E] [--show N] [--rules]`.

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use unwedge_isa::amdgcn::{Gpu, codec, text};

/// Fields of one line of CSV.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                out.last_mut().expect("one").push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out.last_mut().expect("one").push(c),
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// By generation, encoding and direction: rows, those that are wrong, and how often each mnemonic is, with an example.
type Told = BTreeMap<(String, String, &'static str), (usize, usize, BTreeMap<String, (usize, String)>)>;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| args.iter().position(|a| a == name).and_then(|at| args.get(at + 1).cloned());
    let show: usize = option("--show").and_then(|n| n.parse().ok()).unwrap_or(3);
    let (only_gen, only_encoding) = (option("--gen"), option("--encoding"));
    let rules = args.iter().any(|a| a == "--rules");
    let data = std::env::var_os("UNWEDGE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let mut files: Vec<PathBuf> = std::fs::read_dir(data.join("amd/vectors"))
        .expect("vectors")
        .filter_map(|f| f.ok().map(|f| f.path()))
        .filter(|f| f.to_string_lossy().ends_with(".csv.gz"))
        .collect();
    files.sort();
    // By generation, encoding and direction: rows, wrong ones, examples by mnemonic.
    let mut told: Told = BTreeMap::new();
    for file in files {
        let mut source = String::new();
        let packed = std::fs::File::open(&file).expect("readable");
        GzDecoder::new(packed).read_to_string(&mut source).expect("gzip");
        let mut lines = source.lines();
        let header = fields(lines.next().unwrap_or_default());
        let column = |name: &str| header.iter().position(|h| h == name);
        let (Some(generation), Some(mcpu), Some(asm)) = (column("gen"), column("mcpu"), column("asm")) else {
            continue;
        };
        let verdict = column("verdict");
        if verdict.is_some() != rules {
            continue;
        }
        for line in lines {
            let row = fields(line);
            let encoding = match verdict {
                Some(_) => row[column("mutation").expect("mutation")].clone(),
                None => row[column("encoding").expect("encoding")].clone(),
            };
            if only_gen.as_ref().is_some_and(|g| *g != row[generation])
                || only_encoding.as_ref().is_some_and(|e| *e != encoding)
            {
                continue;
            }
            let features = column("features").map_or("", |at| &row[at]);
            let gpu = Gpu::new(&row[mcpu]).and_then(|gpu| gpu.with_features(features)).expect("a GPU");
            let mut tell = |direction: &'static str, wrong: Option<String>| {
                let entry = told.entry((row[generation].clone(), encoding.clone(), direction)).or_default();
                entry.0 += 1;
                if let Some(wrong) = wrong {
                    entry.1 += 1;
                    let mnemonic = row[asm].split(' ').next().unwrap_or_default().to_owned();
                    entry.2.entry(mnemonic).or_insert((0, wrong)).0 += 1;
                }
            };
            let assembled = text::parse_line(&row[asm], &gpu, &())
                .map_err(|e| e.to_string())
                .and_then(|inst| codec::encode(&inst, &gpu).map_err(|e| e.to_string()));
            if let Some(verdict) = verdict {
                let ours = if assembled.is_ok() { "accepted" } else { "rejected" };
                let wrong = format!(
                    "{} -> LLVM {} ({}), here {}",
                    row[asm],
                    row[verdict],
                    row[column("llvm_error").expect("error")],
                    assembled.as_ref().map_or_else(Clone::clone, |w| format!("{:08x?}", w.as_slice()))
                );
                tell("rule", (ours != row[verdict]).then_some(wrong));
                continue;
            }
            let bytes = &row[column("bytes").expect("bytes")];
            let got = assembled.map(|words| {
                let mut out = Vec::new();
                words.write(&mut out);
                hex(&out)
            });
            let wrong = if got.as_ref() == Ok(bytes) {
                None
            } else {
                Some(format!("{} -> {got:?}, not {bytes}", row[asm]))
            };
            tell("asm", wrong);
            let raw: Vec<u8> = (0..bytes.len() / 2)
                .map(|at| u8::from_str_radix(&bytes[at * 2..at * 2 + 2], 16).expect("hex"))
                .collect();
            let words: Vec<u32> =
                raw.chunks(4).map(|c| u32::from_le_bytes(c.try_into().expect("dwords"))).collect();
            let mut printed = String::new();
            match codec::decode(&words, &gpu) {
                Some(decoded) if usize::from(decoded.dwords) == words.len() => {
                    text::write(&decoded.inst, &gpu, &mut printed)
                }
                Some(decoded) => printed = format!("{} dwords of {}", decoded.dwords, words.len()),
                None => printed.push_str("(none)"),
            }
            if row[generation] == "gfx6" || row[generation] == "gfx7" {
                // There is no other disassembler: the text must assemble to the same bytes.
                let again = text::parse_line(&printed, &gpu, &())
                    .map_err(|e| e.to_string())
                    .and_then(|inst| codec::encode(&inst, &gpu).map_err(|e| e.to_string()));
                let same = again.as_ref().is_ok_and(|again| again.as_slice() == words);
                let text_same = printed == row[asm];
                tell("again", (!same).then(|| format!("{bytes} -> {printed} ({})", row[asm])));
                tell("text", (!text_same).then(|| format!("{bytes} -> {printed}, not {}", row[asm])));
            } else {
                tell(
                    "disasm",
                    (printed != row[asm]).then(|| format!("{bytes} -> {printed}, not {}", row[asm])),
                );
            }
        }
    }
    let mut total: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for ((generation, encoding, direction), (rows, wrong, examples)) in &told {
        let sum = total.entry(direction).or_default();
        sum.0 += rows;
        sum.1 += wrong;
        if *wrong == 0 {
            continue;
        }
        println!("{generation} {encoding} {direction}: {wrong} of {rows} wrong");
        let mut most: Vec<_> = examples.values().collect();
        most.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        for (count, example) in most.iter().take(show) {
            println!("    {count:5} {example}");
        }
    }
    for (direction, (rows, wrong)) in total {
        println!("{direction}: {} of {rows} right", rows - wrong);
    }
}
