//! What `breadcrumbs listen` makes of datagrams in memory. Never: sockets.

use std::io::Write;
use std::time::Duration;
use unwedge::edit::breadcrumbs::{
    BreadcrumbMap, BreadcrumbStats, BreakGate, Breakpoint, Receipt, read_datagram,
};
use unwedge_view::breadcrumbs;

/// The most that is printed for a datagram.
const PER_DATAGRAM: u64 = 256;
/// The most that is printed beside lines: gaps, up to those that are remembered.
const FLOOR: u64 = 256 << 10;

/// Takes bytes for datagrams, each behind a byte with its size and the time before it; prints their lines, and what came of all.
pub fn listen(mut bytes: &[u8], map: Option<&BreadcrumbMap>, out: &mut dyn Write) -> u64 {
    let mut stats = BreadcrumbStats::default();
    let mut gate = BreakGate::new(Breakpoint { breadcrumb: 3, hits: 1 });
    let (mut now, mut datagrams) = (Duration::ZERO, 0);
    while let Some((&header, rest)) = bytes.split_first() {
        let (datagram, rest) = rest.split_at(usize::from(header % 8).min(rest.len()));
        (bytes, datagrams) = (rest, datagrams + 1);
        now += Duration::from_millis(u64::from(header) * 4);
        let Ok(breadcrumb) = read_datagram(datagram) else {
            stats.malformed();
            continue;
        };
        let _ = gate.arrive(breadcrumb);
        let receipt = stats.take(breadcrumb, now);
        if receipt != Receipt::Doubled {
            // A counter takes everything.
            let _ = breadcrumbs::line(breadcrumb, receipt, &stats, map, out);
        }
        let _ = breadcrumbs::status(&stats, now);
    }
    let _ = breadcrumbs::text(&stats, 0, map, out);
    let _ = breadcrumbs::json(&stats, 0, map, out);
    datagrams
}

/// The most that is printed for so many datagrams.
pub fn limit(datagrams: u64) -> u64 {
    FLOOR + PER_DATAGRAM.saturating_mul(datagrams)
}
