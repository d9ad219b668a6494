//! Listings of whole shaders, over those in the reference logs of the data folder.
//!
//! A log gives the words of each shader beside their text. It does not say which GPU it is, nor what follows the last
//! listed word: one GPU must fit all shaders of a log, and nops are put after the words.

mod data;

use unwedge_base::Dwords;
use unwedge_isa::ir3::{Ir3Listing, Ir3ListingOptions};

/// The words and the lines (from the category on) of the listings in a log.
fn listings(log: &str) -> Vec<(Vec<u64>, Vec<&str>)> {
    let mut found: Vec<(Vec<u64>, Vec<&str>)> = Vec::new();
    let mut expected = None;
    for line in log.lines() {
        let Some((index, word)) = prefix(line.trim_start_matches('\t')) else {
            expected = None;
            continue;
        };
        if expected.is_none_or(|next| index != next && index + 1 != next)
            || (index == 0 && expected != Some(1))
        {
            found.push((Vec::new(), Vec::new()));
        }
        let (words, lines) = found.last_mut().unwrap();
        if index == words.len() {
            words.push(word);
        }
        lines.push(line.trim_start_matches('\t'));
        expected = Some(index + 1);
    }
    found.retain(|(words, _)| !words.is_empty());
    found
}

/// `:6:0002:0004[deadbeefx_deadbeefx] `
fn prefix(line: &str) -> Option<(usize, u64)> {
    let (place, rest) = line.strip_prefix(':')?.split_once('[')?;
    let (words, _) = rest.split_once("x] ")?;
    let (high, low) = words.split_once("x_")?;
    let index = place.split(':').nth(1)?.parse().ok()?;
    let word = u64::from_str_radix(high, 16).ok()? << 32 | u64::from_str_radix(low, 16).ok()?;
    Some((index, word))
}

fn wrong(gpu_id: u32, words: &[u64], lines: &[&str]) -> Option<String> {
    let dwords: Vec<u32> = words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
    let padded = Dwords::new(&dwords, dwords.len() + 128);
    let mut listing = Ir3Listing::new(padded, Ir3ListingOptions { gpu_id, raw: true, level: 0 });
    let mut out = Vec::new();
    while listing.instruction(&mut out) {}
    let text = String::from_utf8(out).unwrap();
    let mut have = text.lines();
    for line in lines {
        let got = have.next().unwrap_or("nothing");
        if got != *line {
            return Some(format!("{gpu_id}\n  want {line}\n  have {got}"));
        }
    }
    None
}

#[test]
fn shaders_are_listed_as_in_the_logs() {
    for (file, log) in data::logs() {
        let listings = listings(&log);
        let problem = |gpu_id| listings.iter().find_map(|(words, lines)| wrong(gpu_id, words, lines));
        let problems: Vec<_> = [300, 400, 500, 600, 700].map(problem).into_iter().collect();
        let words: usize = listings.iter().map(|(words, _)| words.len()).sum();
        println!("{file}: {} shaders, {words} instructions", listings.len());
        assert!(
            problems.iter().any(Option::is_none),
            "{file}:\n{}",
            problems.into_iter().flatten().collect::<Vec<_>>().join("\n")
        );
    }
}
