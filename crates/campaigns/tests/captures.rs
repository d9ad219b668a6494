//! Broken and hostile captures through everything that takes captures: no panic, no end of the world, and output in
//! proportion.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use unwedge::hw::Db;
use unwedge_campaigns::captures::{ALL, Words, limit, show};
use unwedge_cli::output::SharedOutput;
use unwedge_testkit::captures::{expensive, hostile, mutate, variety};
use unwedge_testkit::count::ByteCounter;

/// Above what a slow machine under load takes without optimization, below what a hang takes.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_ALIVE: u64 = 1 << 26;

/// Bytes printed, and what the program says if it cannot use the capture.
fn printed(words: Words, capture: &[u8], other: &[u8], db: &Rc<Db>) -> (u64, Result<(), String>) {
    let counter = ByteCounter::default();
    let out: SharedOutput = Rc::new(RefCell::new(counter.clone()));
    let result = show(words, &Arc::from(capture), &Arc::from(other), db, MAX_ALIVE, &out);
    (counter.bytes(), result)
}

/// What these command lines print for a capture, and how long that takes, is bounded.
fn views(capture: &[u8], other: &[u8], views: impl IntoIterator<Item = Words>, db: &Rc<Db>) {
    for words in views {
        let started = Instant::now();
        // A capture that cannot be used is said to be so.
        let (bytes, _) = printed(words, capture, other, db);
        let limit = limit(words, (capture.len() + other.len()) as u64);
        assert!(bytes <= limit, "{words:?}: {bytes} bytes from {}", capture.len());
        assert!(started.elapsed() < PATIENCE, "{words:?} took {:?}", started.elapsed());
    }
}

/// Every so many-th of the command lines.
fn some(seed: u64, of: usize) -> impl Iterator<Item = Words> {
    ALL.into_iter().skip(seed as usize % of).step_by(of)
}

#[test]
fn every_command_line_answers_about_whole_captures() {
    let db = Rc::new(Db::builtin());
    for capture in variety() {
        for words in some(0, 1) {
            let (bytes, result) = printed(words, &capture, &capture, &db);
            // Not every generation has every register.
            if let Err(complaint) = result {
                assert_eq!(words.first(), Some(&"query"), "{words:?}: {complaint}");
            } else {
                assert!(bytes > 0, "{words:?}");
            }
        }
    }
}

#[test]
fn mutated_captures() {
    let (captures, db) = (variety(), Rc::new(Db::builtin()));
    for seed in 0..300 {
        let whole = &captures[seed as usize % captures.len()];
        views(&mutate(whole, seed), whole, some(seed / 6, 13), &db);
    }
}

#[test]
fn command_streams_that_cost_much() {
    let db = Rc::new(Db::builtin());
    for seed in 0..150 {
        let whole = hostile(seed);
        let broken = if seed % 2 == 0 { whole.clone() } else { mutate(&whole, seed) };
        views(&broken, &whole, some(seed, 13), &db);
    }
}

#[test]
fn many_of_anything_takes_linear_time() {
    let db = Rc::new(Db::builtin());
    for (i, (_, capture)) in expensive(3_000).iter().enumerate() {
        views(capture, capture, some(i as u64, 13), &db);
    }
}
