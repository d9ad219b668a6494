//! Inputs and outputs of a compiler's passes that insert waits and NOPs: inputs are reported where the outputs have something
//! more, outputs are clean.

mod data;

use data::{Counts, assemble, gpu, packed, shown};
use serde_json::Value;
use std::collections::BTreeSet;
use unwedge_check::amdgcn::{CheckFinding, CheckOptions, CheckReport, Rule, check};
use unwedge_isa::amdgcn::{Gfx, Gpu, codec, waits as table};

/// Blocks with their lines of code; `None`: something in them is no instruction.
type Blocks = Vec<Vec<String>>;

fn blocks(value: &Value) -> Option<Blocks> {
    let mut all = Vec::new();
    for block in value.as_array()? {
        let mut lines = Vec::new();
        for line in block["code"].as_array()? {
            match line {
                Value::String(text) if text.starts_with("mark ") => lines.push(text.clone()),
                Value::String(text) => lines.push(text.split("; desc=").next()?.trim().to_owned()),
                Value::Object(object) => {
                    let line = object.get("line")?.as_str()?;
                    let count = object.get("repeat")?.as_u64()?;
                    lines.extend((0..count).map(|_| line.to_owned()));
                }
                _ => return None,
            }
        }
        all.push(lines);
    }
    Some(all)
}

/// A line as it is assembled. Images of gfx12 whose address is one operand of two registers are written with the first registers
/// of their operands alone: the data are as many as `dmask` has, and the second register of the address is that of the words, v0.
fn whole(line: &str, gpu: &Gpu) -> String {
    let short = || {
        let (name, rest) = line.split_once(" v")?;
        let (data, rest) = rest.split_once(", v")?;
        let (address, rest) = rest.split_once(", ")?;
        let (data, address) = (data.parse::<u32>().ok()?, address.parse::<u32>().ok()?);
        let image =
            matches!(name, "image_load" | "image_store") && rest.contains("dmask:0xf dim:SQ_RSRC_IMG_2D");
        image.then(|| format!("{name} v[{data}:{}], [v{address}, v0], {rest}", data + 3))
    };
    let found = if gpu.generation() == Gfx::Gfx12 { short() } else { None };
    found.unwrap_or_else(|| line.to_owned())
}

/// A place: block and line; the line behind the last is the block's end.
type Place = (usize, usize);

fn numbers(value: &Value) -> Vec<usize> {
    value.as_array().into_iter().flatten().filter_map(|n| n.as_u64().map(|n| n as usize)).collect()
}

/// Checks blocks; gives the places of what is found.
fn run(blocks: &Blocks, gpu: &Gpu, options: &CheckOptions) -> Result<(CheckReport, Vec<Place>), String> {
    let (mut lines, mut places) = (Vec::new(), Vec::new());
    for (b, block) in blocks.iter().enumerate() {
        lines.push(format!("B{b}:"));
        for (l, line) in block.iter().enumerate().filter(|(_, line)| !line.starts_with("mark ")) {
            lines.push(whole(line, gpu));
            places.push((b, l));
        }
    }
    let (code, starts) = assemble(&lines, gpu)?;
    if starts.len() != places.len() {
        return Err(format!("{} lines are {} instructions", places.len(), starts.len()));
    }
    let report = check(&code, gpu, options);
    let end = blocks.len() - 1;
    let found = report.findings.iter().map(|f| match starts.binary_search(&f.at) {
        Ok(n) => places[n],
        Err(_) => (end, blocks[end].len()),
    });
    let found = found.collect();
    Ok((report, found))
}

/// What a line says for each counter: the number.
fn said(line: &str, gpu: &Gpu) -> Option<[u32; 8]> {
    if !line.starts_with("s_wait") || line.contains("depctr") || line.contains("alu") {
        return None;
    }
    let (code, _) = assemble(&[line.to_owned()], gpu).ok()?;
    let words: Vec<u32> = code.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
    let decoded = codec::decode(&words, gpu)?;
    let mut said = [u32::MAX; 8];
    for wait in table::fields(decoded.inst.opcode(), gpu.generation()) {
        let value = wait.field.get(words[0] as u16);
        if value < wait.field.most() {
            said[wait.counter as usize] = value.into();
        }
    }
    Some(said)
}

/// Waits before each instruction, by the instructions' numbers over all blocks.
fn waits(blocks: &Blocks, gpu: &Gpu) -> Vec<(Place, [u32; 8], String)> {
    let mut all = Vec::new();
    for (b, block) in blocks.iter().enumerate() {
        let mut pending = [u32::MAX; 8];
        for (l, line) in block.iter().enumerate() {
            match said(line, gpu) {
                Some(more) => pending.iter_mut().zip(more).for_each(|(a, b)| *a = (*a).min(b)),
                None => {
                    // Interpolation waits by itself.
                    if let Some((_, n)) = line.split_once("wait_exp:") {
                        let n: u32 = n.split_whitespace().next().unwrap().parse().unwrap();
                        pending[1] = pending[1].min(if n == 7 { u32::MAX } else { n });
                    }
                    let bare = line.split(" wait_exp:").next().unwrap().to_owned();
                    all.push(((b, l), std::mem::replace(&mut pending, [u32::MAX; 8]), bare));
                }
            }
        }
        all.push(((b, block.len()), pending, "end".to_owned()));
    }
    all
}

/// Places of the input where the output waits for more.
fn more_waits(input: &Blocks, output: &Blocks, gpu: &Gpu) -> Option<BTreeSet<Place>> {
    let before = waits(input, gpu);
    let after = waits(output, gpu);
    if before.len() != after.len() {
        return None;
    }
    let mut places = BTreeSet::new();
    for ((place, had, line), (_, has, same)) in before.iter().zip(&after) {
        if line != same {
            return None;
        }
        if had.iter().zip(has).any(|(had, has)| has < had) {
            places.insert(*place);
        }
    }
    Some(places)
}

/// Places of the input before which the output has something more, or where it has it otherwise.
fn more_lines(input: &Blocks, output: &Blocks) -> Option<BTreeSet<Place>> {
    let mut places = BTreeSet::new();
    for (b, (before, after)) in input.iter().zip(output).enumerate() {
        let mut at = 0;
        for line in after {
            match before.get(at) {
                Some(have) if have == line => at += 1,
                Some(have)
                    if line.contains("_load")
                        && have.split(" wait_").next() == line.split(" wait_").next() =>
                {
                    places.insert((b, at));
                    at += 1;
                }
                _ => {
                    places.insert((b, at));
                }
            }
        }
        if at != before.len() {
            return None;
        }
    }
    Some(places)
}

/// The start of the run of memory instructions that a place is in: a wait for one of them may stand before all.
fn run_start(input: &Blocks, (b, l): Place) -> Place {
    let memory = |l: usize| {
        let starts = [
            "buffer_",
            "tbuffer_",
            "image_",
            "flat_",
            "global_",
            "scratch_",
            "ds_",
            "lds_",
            "s_load",
            "s_buffer",
            "exp",
            "v_interp_p",
        ];
        input[b].get(l).is_some_and(|line| starts.iter().any(|start| line.starts_with(start)))
    };
    let mut first = l;
    while memory(l) && first > 0 && memory(first - 1) {
        first -= 1;
    }
    (b, first)
}

/// Whether code goes on from block to block as a case says, without branches that are not in it.
fn flows(input: &Blocks, preds: &[Vec<usize>]) -> bool {
    let mut found = vec![BTreeSet::new(); input.len()];
    for (b, block) in input.iter().enumerate() {
        let last = block.last().map_or("", String::as_str);
        let target = last.rsplit_once(" B").and_then(|(_, to)| to.parse::<usize>().ok());
        if let Some(to) = target.and_then(|to| found.get_mut(to)) {
            to.insert(b);
        }
        let ends = ["s_branch ", "s_endpgm", "s_setpc"].iter().any(|name| last.starts_with(name));
        if !ends && b + 1 < input.len() {
            found[b + 1].insert(b);
        }
    }
    found.iter().zip(preds).all(|(found, said)| found.iter().eq(said.iter().collect::<BTreeSet<_>>()))
}

/// Whether a block can be come to from itself.
fn in_loop(preds: &[Vec<usize>], block: usize) -> bool {
    let (mut seen, mut todo) = (BTreeSet::new(), preds[block].clone());
    while let Some(at) = todo.pop() {
        if seen.insert(at) {
            todo.extend(&preds[at]);
        }
    }
    seen.contains(&block)
}

/// What kind of difference a place of waits is that one has and the other has not: `mine` are those of the checker, `theirs` those of
/// the compiler.
fn class(
    input: &Blocks,
    preds: &[Vec<usize>],
    mine: &BTreeSet<Place>,
    theirs: &BTreeSet<Place>,
    place: Place,
) -> &'static str {
    let (b, l) = place;
    let run = |p: &Place| run_start(input, *p) == run_start(input, place);
    let before = |p: &&Place| p.0 == b && p.1 < l;
    let here = || input[b].iter().take(l + 1);
    let images = || here().any(|line| line.starts_with("image_"));
    let gds = || input.iter().flatten().any(|line| line.starts_with("ds_") && line.ends_with(" gds"));
    let missed = theirs.contains(&place);
    let (own, other) = if missed { (theirs, mine) } else { (mine, theirs) };
    match () {
        () if other.iter().any(run) => "waits for all of a run before its first",
        () if images() => "registers of an image's address that are not in its text",
        () if missed && in_loop(preds, b) => "a wait of the first look at a loop",
        () if missed && gds() => "expcnt for results of GDS",
        () if missed && here().any(|line| line.contains("wait_exp:")) => {
            "a wait behind v_interp, which waits itself"
        }
        () if !missed && other.iter().any(|p| before(&p)) => "waits earlier in the block",
        () if !missed && other.iter().any(|p| p.0 != b) => "waits earlier, in another block",
        () if own.len() > 1 => "another, of several",
        () => "another",
    }
}

struct Tally {
    in_runs: usize,
    same: usize,
    all: usize,
    clean: usize,
}

/// Places of the input where the output has more.
type More = dyn Fn(&Blocks, &Blocks, &Gpu) -> Option<BTreeSet<Place>>;

/// Compares all cases of a pass.
fn compare(pass: &str, rules: &dyn Fn(Rule) -> bool, more: &More) -> Tally {
    let mut counts = Counts::default();
    let mut tally = Tally { in_runs: 0, same: 0, all: 0, clean: 0 };
    let mut examples = std::collections::BTreeMap::new();
    for (file, text) in packed("cases", pass) {
        for line in text.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let id = case["id"].as_str().unwrap();
            let generation = case["gfx"].as_str().unwrap();
            let gpu = gpu(generation, case["wave"].as_u64().unwrap());
            let (Some(input), Some(output)) = (blocks(&case["in"]), blocks(&case["out"])) else {
                counts.add(format!("{file}: has pseudo instructions"));
                continue;
            };
            let preds: Vec<Vec<usize>> =
                case["in"].as_array().unwrap().iter().map(|block| numbers(&block["preds"])).collect();
            let Some(places) = more(&input, &output, &gpu) else {
                counts.add(format!("{file}: input and output do not compare"));
                continue;
            };
            if !flows(&input, &preds) {
                counts.add(format!("{file}: blocks that do not go on as the case says"));
                continue;
            }
            if input.iter().flatten().any(|line| line.starts_with("mark ")) {
                counts.add(format!("{file}: marks use registers that are not told"));
                continue;
            }
            let ends = input.last().and_then(|b| b.last()).is_some_and(|line| line.starts_with("s_endpgm"));
            let options = CheckOptions {
                continues: !ends,
                exports: id.contains("export_priority"),
                ..CheckOptions::default()
            };
            let runs = run(&input, &gpu, &options).and_then(|i| Ok((i, run(&output, &gpu, &options)?)));
            let ((report, found), (after, found_after)) = match runs {
                Ok(runs) => runs,
                Err(error) => {
                    counts.add(format!("{file}: {generation}: not read"));
                    if shown() > 3 {
                        println!("{id}: {error}");
                    }
                    continue;
                }
            };
            tally.all += 1;
            let of = |f: &CheckFinding| {
                rules(f.rule) && f.open.unwrap_or(f.rule).info().source.split(' ').any(|s| s == "M")
            };
            let mine: BTreeSet<Place> =
                report.faults().zip_places(&found, &report).filter(|(f, _)| of(f)).map(|(_, p)| p).collect();
            let left: Vec<_> =
                after.faults().zip_places(&found_after, &after).filter(|(f, _)| of(f)).collect();
            let (missed, extra): (Vec<_>, Vec<_>) =
                (places.difference(&mine).collect(), mine.difference(&places).collect());
            tally.same += usize::from(missed.is_empty() && extra.is_empty());
            let runs = |places: &BTreeSet<Place>| {
                places.iter().map(|p| run_start(&input, *p)).collect::<BTreeSet<Place>>()
            };
            tally.in_runs += usize::from(runs(&places) == runs(&mine));
            tally.clean += usize::from(left.is_empty());
            let mut tell = |what: String, place: Place, code: &Blocks| {
                counts.add(format!("{generation}: {what}"));
                let n = examples.entry(format!("{generation} {what}")).or_insert(0);
                *n += 1;
                if *n <= shown() && shown() > 3 {
                    println!("--- {id}: {what} at {place:?}");
                    for (b, block) in code.iter().enumerate() {
                        println!("  B{b}: {}", case["in"][b]["preds"]);
                        for (l, line) in block.iter().enumerate() {
                            println!("    {} {line}", if (b, l) == place { ">" } else { " " });
                        }
                    }
                    println!("  output: {}", case["out"]);
                }
            };
            let class = |place| class(&input, &preds, &mine, &places, place);
            for place in missed {
                tell(format!("missed: {}", class(*place)), *place, &input);
            }
            for place in extra {
                let f =
                    report.faults().zip_places(&found, &report).find(|(f, p)| p == place && of(f)).unwrap().0;
                tell(
                    format!(
                        "extra {} {:?}: {}",
                        f.rule.info().name,
                        f.open.map(|r| r.info().name),
                        class(*place)
                    ),
                    *place,
                    &input,
                );
            }
            for (f, place) in left {
                tell(
                    format!("output: {} {:?}", f.rule.info().name, f.open.map(|r| r.info().name)),
                    place,
                    &output,
                );
            }
        }
    }
    counts.show(pass);
    println!(
        "{pass}: {} cases, {} reported exactly, {} in the same runs of memory instructions, {} clean outputs",
        tally.all, tally.same, tally.in_runs, tally.clean
    );
    tally
}

/// Faults with the places of all findings of their report.
trait ZipPlaces<'a>: Sized + Iterator<Item = &'a CheckFinding> {
    fn zip_places(
        self,
        places: &'a [Place],
        report: &'a CheckReport,
    ) -> impl Iterator<Item = (Self::Item, Place)> {
        self.filter_map(move |f| {
            let n = report.findings.iter().position(|other| std::ptr::eq(other, f))?;
            Some((f, places[n]))
        })
    }
}

impl<'a, I: Iterator<Item = &'a CheckFinding>> ZipPlaces<'a> for I {}

#[test]
fn waits_that_are_inserted() {
    let rules = |rule| matches!(rule, Rule::Wait | Rule::FlatWait | Rule::SmemStoreLoad);
    let tally = compare("insert_waitcnt", &rules, &more_waits);
    assert!(tally.same * 1000 >= tally.all * 975 && tally.in_runs * 1000 >= tally.all * 985);
    assert!(tally.clean * 1000 >= tally.all * 998);
}

#[test]
fn hazards_that_are_resolved() {
    let others = |rule: Rule| {
        !matches!(
            rule,
            Rule::Wait
                | Rule::FlatWait
                | Rule::SmemStoreLoad
                | Rule::DcacheWb
                | Rule::ScratchDealloc
                | Rule::InstPrefetch
                | Rule::FlatOffset
                | Rule::NsaClause
                | Rule::ScratchOffsetNegative
                | Rule::LongClause
        )
    };
    let more = |input: &Blocks, output: &Blocks, _: &Gpu| more_lines(input, output);
    let tally = compare("insert_nops", &others, &more);
    assert!(tally.same * 1000 >= tally.all * 996 && tally.clean * 1000 >= tally.all * 998);
}
