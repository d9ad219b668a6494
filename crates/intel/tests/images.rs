//! Contexts that something happened to, for every platform, driver and engine: what differs, and what is said of it.

use unwedge_hw::intel::platform::{Engine, IntelDriver, Platform, Version};
use unwedge_intel::lrc::commands::{LOAD_FORCE_POSTED, LOAD_RELATIVE, load};
use unwedge_intel::lrc::triage::{LrcRegion, identify, triage};
use unwedge_intel::lrc::values::{self, OddReason};
use unwedge_intel::lrc::{LayoutDifference, LayoutMismatch, LrcImage, LrcLayout, LrcOwner, PAGE, PageDword};

/// Every engine of every platform with each of its drivers.
fn targets() -> Vec<(&'static Platform, LrcOwner)> {
    let mut out = Vec::new();
    // Contexts are images of registers from gen8 on.
    for platform in Platform::all().iter().filter(|platform| platform.version().major >= 8) {
        let version = platform.version();
        for &driver in platform.drivers() {
            out.extend(Engine::all(version).map(|engine| (platform, LrcOwner { driver, version, engine })));
        }
    }
    out
}

/// One in so many of them, another one with each `start`: what is slow need not see all.
fn some(start: usize, step: usize) -> impl Iterator<Item = (&'static Platform, LrcOwner)> {
    targets().into_iter().skip(start % step).step_by(step)
}

fn target(platform: &str, engine: &str) -> LrcOwner {
    let platform = Platform::by_name(platform).unwrap();
    let driver = platform.drivers()[0];
    LrcOwner { driver, version: platform.version(), engine: engine.parse().unwrap() }
}

/// A context as an engine saves it: the registers have values that are not odd.
fn saved(layout: &LrcLayout) -> Vec<u32> {
    let mut page = layout.expand();
    for i in 0..layout.dwords() {
        if let Some((_, PageDword::Value)) = layout.word(i) {
            page[i] = match page[i - 1] & 0x7ff {
                0x030 => 0x1000,
                0x034 => 0x0060_0800,
                0x038 => 0x00fe_d000,
                0x03c => 0x3001,
                0x270 => {
                    0x1234_5000 | u32::from(layout.target().is_some_and(|t| t.driver == IntelDriver::Xe))
                }
                0x274..=0x28c | 0x108 | 0x1c0..=0x1c8 => 0,
                _ => 0x7700_0000 | i as u32,
            };
        }
    }
    page
}

fn findings(words: &[u32], layout: &LrcLayout) -> Vec<(usize, std::ops::Range<usize>, LrcRegion)> {
    let image = LrcImage::new(words);
    let verified = layout.verify(image.registers());
    triage(&image, layout, &verified).into_iter().map(|f| (f.page, f.dwords, f.what)).collect()
}

#[test]
fn what_an_engine_saves_is_as_it_has_to_be() {
    for (platform, target) in targets() {
        let layout = LrcLayout::of(target).unwrap();
        let page = saved(&layout);
        let verified = layout.verify(&page);
        let what = format!("{} {} {}", platform.name(), target.driver, target.engine);
        assert!(verified.differences.is_empty(), "{what}: {:?}", verified.differences);
        assert_eq!((verified.compared, verified.missing), (layout.dwords(), 0));
        assert_eq!(findings(&page, &layout), [], "{what}");
        assert_eq!(values::odd(&page, &layout), [], "{what}");
        let first = identify(&page).into_iter().next().unwrap();
        assert!(first.is_exact() && first.target.engine == target.engine, "{what}: {first:?}");
        assert!(first.platforms.contains(&platform.name()), "{what}: {first:?}");
        assert!(first.drivers.contains(&target.driver), "{what}: {first:?}");
    }
}

#[test]
fn commands_have_the_flags_of_their_generation() {
    for (_, target) in targets() {
        let page = LrcLayout::of(target).unwrap().expand();
        let relative = target.version >= Version::new(11, 0);
        assert_eq!(page[1] & LOAD_RELATIVE != 0, relative, "{target:?}");
        let base = target.engine.base(target.version).unwrap();
        assert_eq!(page[2], base + 0x244);
        let layout = LrcLayout::of(target).unwrap();
        let end = 0x0500_0000 | u32::from(target.version.major >= 10);
        assert_eq!(page[layout.dwords()], end, "{target:?}");
    }
    let page = LrcLayout::of(target("tgl", "rcs0")).unwrap().expand();
    assert_eq!(page[1], load(13) | LOAD_FORCE_POSTED | LOAD_RELATIVE);
    assert_eq!(page[1], 0x1108_1019);
}

#[test]
fn every_difference_is_told() {
    let layout = LrcLayout::of(target("skl", "rcs0")).unwrap();
    let mut page = saved(&layout);
    page[1] = 0xdead_0000;
    page[4] ^= 4;
    page[5] = 0x5555_5555;
    page[30] = 7;
    page[0x21] ^= 1 << 12;
    let told: Vec<LayoutDifference> = layout.verify(&page).differences;
    let expected = [
        (1, LayoutMismatch::NoLoad),
        (4, LayoutMismatch::OtherRegister),
        (30, LayoutMismatch::NotSkipped),
        (0x21, LayoutMismatch::OtherLoad),
    ];
    let short: Vec<(usize, LayoutMismatch)> = told.iter().map(|d| (d.dword, d.mismatch)).collect();
    assert_eq!(short, expected, "values are not compared");
    assert_eq!((told[1].expected, told[1].found), (0x2034, 0x2030));
}

#[test]
fn bits_that_the_hardware_ignores_do_not_count() {
    for (name, mask) in [("rcs0", 0x7ff), ("bcs0", 0xfff), ("vcs0", 0x3fff), ("vecs0", 0x3fff)] {
        let layout = LrcLayout::of(target("tgl", name)).unwrap();
        let whole = saved(&layout);
        for bit in 0..32 {
            let mut page = whole.clone();
            page[4] ^= 1 << bit;
            let counts = mask & (1 << bit) != 0;
            assert_eq!(!layout.verify(&page).differences.is_empty(), counts, "{name} bit {bit}");
        }
    }
}

#[test]
fn a_whole_command_in_a_gap_is_no_difference() {
    let layout = LrcLayout::of(target("tgl", "rcs0")).unwrap();
    let mut page = saved(&layout);
    page[60..63].copy_from_slice(&[load(1), 0x2358, 1]);
    let verified = layout.verify(&page);
    assert_eq!(verified.differences, []);
    assert_eq!(verified.extra, std::iter::once(60..63).collect::<Vec<_>>());
    page[60] = load(9);
    let differences = layout.verify(&page).differences;
    assert_eq!(differences.iter().map(|d| d.dword).collect::<Vec<_>>(), [60, 61, 62]);
}

#[test]
fn a_shifted_context_is_named() {
    for (platform, target) in some(1, 7) {
        let layout = LrcLayout::of(target).unwrap();
        let page = saved(&layout);
        for by in [-1isize, 1, 2, 16, 64, 300] {
            let mut shifted = vec![0; PAGE];
            for (i, slot) in shifted.iter_mut().enumerate() {
                *slot = usize::try_from(i as isize - by).ok().and_then(|i| page.get(i)).copied().unwrap_or(0);
            }
            let found = findings(&shifted, &layout);
            let named = found.iter().find_map(|(_, dwords, what)| match what {
                LrcRegion::Shifted { by, matched } => Some((*by, *matched, dwords.clone())),
                _ => None,
            });
            let what = format!("{} {} by {by}: {found:?}", platform.name(), target.engine);
            let (named, matched, dwords) = named.unwrap_or_else(|| panic!("{what}"));
            assert_eq!(named, by, "{what}");
            assert!(
                matched >= 22 && dwords.start == (1 + by).max(1) as usize - usize::from(by < 0),
                "{what}"
            );
        }
    }
}

#[test]
fn a_context_whose_end_moved_is_named() {
    for (platform, target) in some(1, 7) {
        let layout = LrcLayout::of(target).unwrap();
        let mut page = saved(&layout);
        page.splice(9..9, [0x1111, 0x2222, 0x3333]);
        page.truncate(PAGE);
        let found = findings(&page, &layout);
        let moved = found.iter().any(|(_, dwords, what)| {
            matches!(what, LrcRegion::Shifted { by: 3, .. }) && (12..40).contains(&dwords.start)
        });
        assert!(moved, "{} {}: {found:?}", platform.name(), target.engine);
    }
}

#[test]
fn poison_is_named_with_its_range() {
    for (platform, target) in some(4, 7) {
        let layout = LrcLayout::of(target).unwrap();
        for value in [0x5a5a_5a5a, 0x6b6b_6b6b, 0xdead_beef, 0xcccc_cccc, 0xffff_ffff, 0, 0x1234_5678] {
            let mut page = saved(&layout);
            page[8..30].fill(value);
            let found = findings(&page, &layout);
            let named = found.iter().any(|(_, dwords, what)| {
                matches!(what, LrcRegion::Fill { value: v, .. } if *v == value)
                    && dwords.start <= 8
                    && dwords.end >= 30
            });
            assert!(named, "{} {} {value:#x}: {found:?}", platform.name(), target.engine);
            page.fill(value);
            let found = findings(&page, &layout);
            let named = found.iter().any(|(_, dwords, what)| match what {
                LrcRegion::Fill { value: v, .. } => *v == value && *dwords == (0..PAGE),
                LrcRegion::Blank => value == 0,
                _ => false,
            });
            assert!(named, "{} {} {value:#x}: {found:?}", platform.name(), target.engine);
        }
    }
}

#[test]
fn a_part_that_was_overwritten_is_named() {
    for (platform, target) in some(4, 7) {
        let layout = LrcLayout::of(target).unwrap();
        let mut page = saved(&layout);
        for (i, word) in page[35..50].iter_mut().enumerate() {
            *word = (i as u32 + 3).wrapping_mul(0x9e37_79b9) | 1;
        }
        let found = findings(&page, &layout);
        let named = found.iter().any(|(_, dwords, what)| {
            matches!(what, LrcRegion::Overwritten { .. }) && dwords.start >= 34 && dwords.end <= 50
        });
        assert!(named, "{} {}: {found:?}", platform.name(), target.engine);
    }
}

/// Each dword belongs to one part at most of which is said what lies there, however parts of several values lie beside each other.
#[test]
fn findings_do_not_overlap() {
    for (seed, (platform, target)) in some(2, 5).enumerate() {
        let layout = LrcLayout::of(target).unwrap();
        for round in 0..40 {
            let mut noise =
                (1..).map(|i| (i + 64 * (round + 40 * seed as u32)).wrapping_mul(0x9e37_79b9) >> 8);
            let mut page = saved(&layout);
            for value in [0, 0xdead_beef, 0, 0x1234_5678, 0] {
                let (start, long) =
                    (noise.next().unwrap() as usize % 200, noise.next().unwrap() as usize % 30);
                match noise.next().unwrap() % 3 {
                    0 => page[start..start + long].iter_mut().zip(&mut noise).for_each(|(w, n)| *w = n),
                    _ => page[start..start + long].fill(value),
                }
            }
            let mut found = findings(&page, &layout);
            found.retain(|(_, _, what)| {
                matches!(what, LrcRegion::Fill { .. } | LrcRegion::Overwritten { .. } | LrcRegion::Text(_))
            });
            found.sort_by_key(|(_, dwords, _)| dwords.start);
            let apart = found.windows(2).all(|two| two[0].1.end <= two[1].1.start);
            assert!(apart, "{} {} round {round}: {found:?}", platform.name(), target.engine);
        }
    }
}

#[test]
fn text_is_shown() {
    let layout = LrcLayout::of(target("tgl", "rcs0")).unwrap();
    let mut page = saved(&layout);
    let text = b"unwedge was here, and wrote over it.";
    for (slot, bytes) in page[4..].iter_mut().zip(text.as_chunks::<4>().0) {
        *slot = u32::from_le_bytes(*bytes);
    }
    let found = findings(&page, &layout);
    let expected = String::from_utf8_lossy(text).into_owned();
    assert_eq!(found, [(0, 4..13, LrcRegion::Text(expected))]);
}

#[test]
fn another_page_in_its_place_is_named() {
    let layout = LrcLayout::of(target("icl", "rcs0")).unwrap();
    let mut image: Vec<u32> = (0..4 * PAGE as u32).map(|i| i.wrapping_mul(0x0101_4247) | 1).collect();
    image[PAGE..2 * PAGE].copy_from_slice(&saved(&layout));
    assert_eq!(findings(&image, &layout), []);
    let mut broken = image.clone();
    broken.copy_within(3 * PAGE + 20..3 * PAGE + 60, PAGE + 20);
    let found = findings(&broken, &layout);
    assert!(
        matches!(found.as_slice(), [(1, dwords, LrcRegion::CopyOfPage(3))] if dwords.start >= 20 && dwords.end <= 60),
        "{found:?}"
    );
    let mut copied = image.clone();
    copied.copy_within(PAGE..2 * PAGE, 2 * PAGE);
    assert_eq!(findings(&copied, &layout), [(2, 0..PAGE, LrcRegion::CopyOfPage(1))]);
}

#[test]
fn a_context_of_another_engine_or_platform_is_named() {
    for (i, (platform, target)) in targets().into_iter().enumerate() {
        let page = saved(&LrcLayout::of(target).unwrap());
        for (other, wanted) in some(i, 61) {
            let layout = LrcLayout::of(wanted).unwrap();
            let what =
                || format!("{} {} as {} {}", platform.name(), target.engine, other.name(), wanted.engine);
            let verified = layout.verify(&page);
            let found = findings(&page, &layout);
            if !verified.differences.is_empty() {
                let named = found.iter().any(|(_, _, what)| {
                    matches!(what, LrcRegion::OtherContext(c) if c.is_exact() && c.target.engine == target.engine
                        && c.platforms.contains(&platform.name()))
                });
                assert!(named, "{}: {found:?}", what());
            } else if target.version == wanted.version && target.engine != wanted.engine {
                let named = found.iter().any(|(_, _, what)| *what == LrcRegion::OtherBase(target.engine));
                assert!(named, "{}: {found:?}", what());
            }
        }
    }
}

#[test]
fn a_damaged_context_is_not_taken_for_an_older_one() {
    // What gen8 has is how gen9 begins.
    let layout = LrcLayout::of(target("skl", "rcs0")).unwrap();
    let mut page = saved(&layout);
    page[0x52..0xad].fill(0x6b6b_6b6b);
    let found = findings(&page, &layout);
    assert!(
        found.iter().all(|(_, _, what)| matches!(what, LrcRegion::Fill { value: 0x6b6b_6b6b, .. })),
        "{found:?}"
    );
}

#[test]
fn cut_pages_are_compared_as_far_as_they_go() {
    let layout = LrcLayout::of(target("dg2", "ccs1")).unwrap();
    let page = saved(&layout);
    for length in [0, 1, 2, 30, layout.dwords() - 1, layout.dwords(), PAGE] {
        let verified = layout.verify(&page[..length]);
        assert_eq!(verified.differences, []);
        assert_eq!(verified.compared, length.min(layout.dwords()));
        assert_eq!(verified.missing, layout.dwords() - verified.compared);
    }
}

#[test]
fn odd_values_are_told() {
    let whys = |platform: &str, changes: &[(u32, u32)]| -> Vec<OddReason> {
        let layout = LrcLayout::of(target(platform, "rcs0")).unwrap();
        let mut page = saved(&layout);
        for &(register, value) in changes {
            let at = page.iter().position(|&w| w == 0x2000 + register).unwrap();
            page[at + 1] = value;
        }
        values::odd(&page, &layout).into_iter().map(|odd| odd.why).collect()
    };
    for (changes, why) in [
        (&[(0x03c, 0x3000)][..], OddReason::RingDisabled),
        (&[(0x03c, 0x2001)], OddReason::RingSize(0x3000)),
        (&[(0x038, 0xfed0)], OddReason::StartUnaligned),
        (&[(0x034, 0x4000)], OddReason::HeadOutside { head: 0x4000, size: 0x4000 }),
        (&[(0x034, 0x0060_1010)], OddReason::HeadPastTail { head: 0x1010, tail: 0x1000 }),
        (&[(0x034, 0x801)], OddReason::HeadUnaligned),
        (&[(0x030, 0x8000)], OddReason::TailOutside { tail: 0x8000, size: 0x4000 }),
        (&[(0x030, 0x1004)], OddReason::TailUnaligned),
        (&[(0x270, 0x1234_5004)], OddReason::PdpUnaligned),
        (&[(0x274, 0x8000_0000)], OddReason::PdpHigh),
        (&[(0x1c0, 1)], OddReason::NoAddress),
        (&[(0x1c4, 3)], OddReason::NoAddress),
        (&[(0x1c4, 0x1003), (0x1c8, 0x40)], OddReason::IndirectOffset { found: 0x40, usual: 0xd << 6 }),
        (&[(0x09c, 0x100)], OddReason::RingStopped),
    ] {
        assert!(whys("tgl", changes).contains(&why), "{changes:x?}: {:?}", whys("tgl", changes));
    }
    // Where the hardware saves MI_MODE of a blitter, behind the table.
    let blitter = LrcLayout::of(target("tgl", "bcs0")).unwrap();
    let mut page = saved(&blitter);
    page[0x60] = 0x2_209c;
    assert_eq!(values::odd(&page, &blitter), []);
    page[0x60] = 0x2_20a0;
    assert_eq!(values::odd(&page, &blitter)[0].why, OddReason::OtherRegister);
    // xe sets flags in the root of the page tables; the present one it always sets.
    assert_eq!(whys("lnl", &[(0x270, 0x1234_501b)]), []);
    assert_eq!(whys("lnl", &[(0x270, 0x1234_5000)]), [OddReason::RootNotPresent]);
    // The ring of an indirect ring state is elsewhere.
    assert_eq!(whys("lnl", &[(0x244, 0x0010_0010), (0x03c, 0)]), []);
}

/// The tail of a ring that is used for longer starts anew before the head does. Drivers leave a cache line between the two.
#[test]
fn a_ring_that_wrapped_is_nothing_odd() {
    for (platform, engine) in [("bdw", "rcs0"), ("icl", "vcs0"), ("tgl", "bcs0"), ("dg2", "ccs0")] {
        let layout = LrcLayout::of(target(platform, engine)).unwrap();
        let whys = |head: u32, tail: u32| -> Vec<OddReason> {
            let mut page = saved(&layout);
            (page[5], page[7]) = (head, tail);
            values::odd(&page, &layout).into_iter().map(|odd| odd.why).collect()
        };
        // Whatever the head counts of its wraps.
        for count in [0, 1, 0x7ff] {
            let head = |offset: u32| count << 21 | offset;
            for (at, tail) in [(0x0, 0x0), (0x0, 0x3ff8), (0x1000, 0x1000), (0xff8, 0x1000)] {
                assert_eq!(whys(head(at), tail), [], "{platform} {at:#x} {tail:#x}");
            }
            for (at, tail) in [(0x1040, 0x1000), (0x2000, 0x1000), (0x3ffc, 0)] {
                let found = whys(head(at), tail);
                assert_eq!(found, [OddReason::RingWrapped { head: at, tail }], "{platform}");
                assert!(found[0].is_usual());
            }
            for (at, tail) in [(0x1004, 0x1000), (0x103c, 0x1000), (0x3ffc, 0x3ff8)] {
                let found = whys(head(at), tail);
                assert_eq!(found, [OddReason::HeadPastTail { head: at, tail }], "{platform}");
                assert!(!found[0].is_usual());
            }
            let outside = whys(head(0x4000), 0x1000);
            assert_eq!(outside, [OddReason::HeadOutside { head: 0x4000, size: 0x4000 }], "{platform}");
        }
    }
}

/// What hardware saves differs from what a driver wrote in values, and behind the table: neither counts.
#[test]
fn what_hardware_adds_is_no_difference() {
    let noise = |i: usize| (i as u32 + 1).wrapping_mul(0x9e37_79b9).rotate_left(7);
    for (platform, target) in targets() {
        let layout = LrcLayout::of(target).unwrap();
        let what = format!("{} {} {}", platform.name(), target.driver, target.engine);
        let mut page = layout.expand();
        for (i, word) in page.iter_mut().enumerate() {
            if let Some((_, PageDword::Value)) = layout.word(i) {
                *word = noise(i);
            }
        }
        let end = layout.dwords();
        for behind in
            [&[0x0500_0000][..], &[0x0500_0001], &[0, 0, 0, 0, 0, 0x0500_0001], &[load(1), 0x2358, 7, 0], &[]]
        {
            page[end..].fill(0);
            page[end..end + behind.len()].copy_from_slice(behind);
            let verified = layout.verify(&page);
            assert_eq!((verified.differences, verified.extra), (vec![], vec![]), "{what} {behind:x?}");
            assert_eq!(findings(&page, &layout), [], "{what} {behind:x?}");
        }
        page[end..].iter_mut().enumerate().for_each(|(i, word)| *word = noise(i));
        assert_eq!(layout.verify(&page).differences, [], "{what}");
    }
}

/// One flag of one load: that dword, and nothing else.
#[test]
fn another_flag_of_a_load_is_the_one_difference() {
    for (platform, target) in targets() {
        let layout = LrcLayout::of(target).unwrap();
        let whole = saved(&layout);
        let commands =
            (0..layout.dwords()).filter(|&i| matches!(layout.word(i), Some((_, PageDword::Command))));
        for dword in commands {
            for flag in [LOAD_FORCE_POSTED, LOAD_RELATIVE, 2] {
                let mut page = whole.clone();
                page[dword] ^= flag;
                let (expected, found) = (whole[dword], page[dword]);
                let told = LayoutDifference { dword, expected, found, mismatch: LayoutMismatch::OtherLoad };
                let what = format!("{} {}", platform.name(), target.engine);
                assert_eq!(layout.verify(&page).differences, [told], "{what} {flag:#x}");
            }
        }
    }
}

/// Up to gen9 a context has absolute addresses, so that another instance's is not this one's; from gen11 on the hardware
/// looks at bits that the instances share.
#[test]
fn the_context_of_another_instance() {
    let (mut absolute, mut shared) = (0, 0);
    for (platform, own) in targets() {
        let others = Engine::all(own.version)
            .filter(|e| e.class == own.engine.class && e.instance != own.engine.instance)
            .map(|engine| LrcOwner { engine, ..own });
        let layout = LrcLayout::of(own).unwrap();
        for other in others {
            let page = saved(&LrcLayout::of(other).unwrap());
            let differences = layout.verify(&page).differences;
            let what = format!("{}: {} as {}", platform.name(), other.engine, own.engine);
            let found = findings(&page, &layout);
            if own.version < Version::new(11, 0) {
                absolute += 1;
                let registers = (0..layout.dwords())
                    .filter(|&i| matches!(layout.word(i), Some((_, PageDword::Register))));
                let dwords: Vec<usize> = differences.iter().map(|d| d.dword).collect();
                assert_eq!(dwords, registers.collect::<Vec<_>>(), "{what}");
                assert!(differences.iter().all(|d| d.mismatch == LayoutMismatch::OtherRegister), "{what}");
                let named = matches!(&found[..], [(_, _, LrcRegion::OtherContext(c))] if c.target.engine == other.engine);
                assert!(named, "{what}: {found:?}");
            } else if differences.is_empty() {
                shared += 1;
                let named =
                    matches!(&found[..], [(_, _, LrcRegion::OtherBase(engine))] if *engine == other.engine);
                assert!(named, "{what}: {found:?}");
            }
        }
    }
    assert!(absolute > 0 && shared > 0, "{absolute} {shared}");
}

/// Which page has the registers, of images of any length.
#[test]
fn the_register_page_is_found() {
    for (platform, target) in some(2, 5) {
        let layout = LrcLayout::of(target).unwrap();
        let registers = saved(&layout);
        let status = vec![0x0101_0101; PAGE];
        let state = vec![0x7700_0007; 18 * PAGE];
        for (parts, page, pages) in [
            (&[&registers[..PAGE / 2]][..], 0, 1),
            (&[&registers], 0, 1),
            // The state without the status page, as xe dumps it.
            (&[&registers, &state], 0, 19),
            // 80 KiB: what i915 dumps.
            (&[&status, &registers, &state], 1, 20),
            (&[&status, &registers[..PAGE / 2]], 1, 2),
            // With the page shared with the GuC that old kernels had in front.
            (&[&status, &status, &registers, &state], 2, 21),
        ] {
            let words = parts.concat();
            let image = LrcImage::new(&words);
            let what = format!("{} {} {} dwords", platform.name(), target.engine, words.len());
            assert_eq!((image.page(), image.pages()), (page, pages), "{what}");
            assert!(image.is_recognized(), "{what}");
            assert_eq!(image.usual_page(), usize::from(pages > 1), "{what}");
            let verified = layout.verify(image.registers());
            assert_eq!(verified.differences, [], "{what}");
            assert_eq!(verified.missing, layout.dwords().saturating_sub(image.registers().len()), "{what}");
        }
        // One that nothing is left of is looked for where it usually is.
        let words = [&status[..], &status, &state].concat();
        assert_eq!((LrcImage::new(&words).page(), LrcImage::new(&words).is_recognized()), (1, false));
    }
}

#[test]
fn the_indirect_ring_state_is_a_page_of_its_own() {
    let layout = LrcLayout::of_indirect_ring_state(target("lnl", "vcs0")).unwrap();
    let page = layout.expand();
    assert_eq!(page[1..3], [load(5) | LOAD_FORCE_POSTED | LOAD_RELATIVE, 0x1c_0034]);
    assert!(layout.verify(&page).differences.is_empty());
    assert!(LrcLayout::of_indirect_ring_state(target("mtl", "rcs0")).is_err());
}

#[test]
fn what_there_is_not_is_an_error() {
    let error = |driver, version: &str, engine: &str| {
        let target = LrcOwner { driver, version: version.parse().unwrap(), engine: engine.parse().unwrap() };
        LrcLayout::of(target).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(error(IntelDriver::I915, "12.00", "ccs0").unwrap_err(), "graphics 12.00 have no engine ccs0");
    assert_eq!(error(IntelDriver::I915, "20.04", "rcs0").unwrap_err(), "i915 does not drive graphics 20.04");
    assert_eq!(error(IntelDriver::Xe, "11.00", "rcs0").unwrap_err(), "xe does not drive graphics 11.00");
    assert_eq!(error(IntelDriver::Xe, "12.50", "rcs0"), Ok(()));
}
