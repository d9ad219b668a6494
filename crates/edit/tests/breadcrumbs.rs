//! Captures with breadcrumbs: numbers, the packets that they are of, and what stays as it was.

use std::time::Duration;
use unwedge_edit::breadcrumbs::{
    BreadcrumbEditor, BreadcrumbMap, BreadcrumbSide, BreadcrumbStats, Mailbox, read_datagram,
};
use unwedge_edit::rewrite::{AddressSpace, RewriteError, Rewritten, rewrite};
use unwedge_hw::Db;
use unwedge_testkit::captures;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::rd::capture;

const LIMIT: u64 = 1 << 30;

fn instrumented(bytes: &[u8], waits: bool) -> Result<(Vec<u8>, Rewritten, u32), RewriteError> {
    let (mut out, mut editor) = (Vec::new(), BreadcrumbEditor::new(waits));
    let space = AddressSpace::scan(bytes);
    let rewritten = rewrite(bytes, space, &mut editor, &Db::builtin(), LIMIT, &mut out)?;
    Ok((out, rewritten, editor.count()))
}

fn map(bytes: &[u8]) -> BreadcrumbMap {
    let space = AddressSpace::scan(bytes);
    BreadcrumbMap::read(space, bytes, &Db::builtin(), LIMIT).expect("nothing is written").0
}

#[test]
fn the_original_and_the_instrumented_capture_have_the_same_packets_at_the_same_numbers() {
    for gpu_id in [540, 630, 740] {
        let original = capture(gpu_id, 3);
        for waits in [true, false] {
            let (edited, rewritten, count) = instrumented(&original, waits).expect("it is instrumented");
            assert!(rewritten.diagnostics.is_empty() && count > 0, "{gpu_id}: {:?}", rewritten.diagnostics);
            let (before, after) = (map(&original), map(&edited));
            assert!(!before.instrumented && after.instrumented, "{gpu_id}");
            assert_eq!((before.len(), after.len()), (count as usize / 2, count as usize / 2), "{gpu_id}");
            for number in 1..=count {
                let (a, b) = (before.find(number).expect("a packet"), after.find(number).expect("a packet"));
                let packet = |(packet, side): (&unwedge_edit::breadcrumbs::BreadcrumbPacket, _)| {
                    (packet.before, packet.name.clone(), packet.submit, side)
                };
                assert_eq!(packet(a), packet(b), "{gpu_id}: {number}");
                let side = if number % 2 == 1 { BreadcrumbSide::Before } else { BreadcrumbSide::After };
                assert_eq!(a.1, side);
            }
            assert_eq!((before.find(0), before.find(count + 1)), (None, None));
        }
    }
}

#[test]
fn breadcrumbs_are_put_in_once_and_only_where_their_packets_are_known() {
    let (edited, ..) = instrumented(&capture(630, 1), true).expect("it is instrumented");
    let again = instrumented(&edited, true).expect_err("it has them").to_string();
    assert!(again.contains("breadcrumbs already"), "{again}");
    let old = instrumented(&capture(430, 1), true).expect_err("an a4xx").to_string();
    assert!(old.contains("not known for"), "{old}");
}

#[test]
fn broken_captures_and_datagrams_do_no_harm() {
    let mut rng = Rng::new(21);
    let whole = captures::variety();
    for round in 0..300 {
        let mut bytes = whole[round % whole.len()].clone();
        if round % 2 == 0 {
            bytes = instrumented(&bytes, true).map_or(bytes, |(edited, ..)| edited);
        }
        for _ in 0..4 {
            let at = rng.below(bytes.len());
            bytes[at] ^= 1 << rng.below(8);
        }
        bytes.truncate(rng.below(bytes.len()) + 1);
        let map = map(&bytes);
        let _ = instrumented(&bytes, true);
        let mut stats = BreadcrumbStats::default();
        for datagram in bytes.chunks(1 + rng.below(8)) {
            match read_datagram(datagram) {
                Ok(number) => {
                    stats.take(number, Duration::from_millis(round as u64));
                    let _ = map.find(number);
                }
                Err(_) => stats.malformed(),
            }
        }
    }
    assert_eq!(Mailbox::read(0, &[]), None);
}
