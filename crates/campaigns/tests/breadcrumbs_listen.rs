//! Datagrams of all kinds through the listener.

use std::io::{self, Write};
use unwedge::edit::breadcrumbs::BreadcrumbMap;
use unwedge::edit::rewrite::AddressSpace;
use unwedge::hw::Db;
use unwedge_campaigns::breadcrumbs::{limit, listen};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::rd;

#[derive(Default)]
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn datagrams_of_all_kinds_print_no_more_than_they_may() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 20_000 } else { 300 };
    let (capture, mut rng) = (rd::capture(630, 2), Rng::new(4));
    let space = AddressSpace::scan(&capture[..]);
    let map = BreadcrumbMap::read(space, &capture[..], &Db::builtin(), 1 << 30).expect("a map").0;
    for round in 0..rounds {
        let mut bytes = Vec::new();
        for n in 0..rng.below(2000) as u32 {
            // Numbers in order, near it, or any.
            let number = match rng.below(8) {
                0 => rng.next_u64() as u32,
                1 => n.saturating_sub(rng.below(5) as u32),
                2 => n + rng.below(5) as u32,
                3 => continue,
                _ => n,
            };
            let size = if rng.below(16) == 0 { rng.below(256) as u8 } else { 4 };
            bytes.push(size);
            bytes.extend(number.to_be_bytes());
        }
        let mut out = Counter::default();
        let datagrams = listen(&bytes, Some(&map).filter(|_| round % 2 == 0), &mut out);
        assert!(out.0 <= limit(datagrams), "{} bytes for {datagrams} datagrams", out.0);
    }
}
