//! ir3 text of words made here: one for each thing the printer has to get right, and any words at all.

use unwedge_base::Dwords;
use unwedge_isa::ir3::{self, Ir3Listing, Ir3ListingOptions};
use unwedge_isa::table::generate;
use unwedge_isa::tables::{IR3, IR3_INSTRUCTION};

#[track_caller]
fn check(gpu_id: u32, word: u64, expected: &str) {
    let mut out = Vec::new();
    ir3::write(word, gpu_id, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn each_category_prints() {
    check(600, 0x0300_0000_0000_0000, "end");
    check(600, 0x0080_0000_ffff_fffe, "br p0.x, #-2");
    check(600, 0x2044_4000_3fc0_0000, "mov.f32f32 r0.x, (1.500000)");
    check(600, 0x4010_0007_6801_0008, "add.f r1.w, r2.x, (neg)(0.5)");
    check(600, 0x6382_0005_1031_5030, "mad.f32 r1.y, (neg)c12.x, r1.x, c12.y");
    check(600, 0x8010_000a_0000_0003, "rcp r2.z, r0.w");
    check(600, 0xa0c0_1f04_0cc0_0005, "sam (f32)(xyzw)r1.x, r0.z, s#6, t#6");
    check(600, 0xc006_0006_0181_800f, "ldg.u32 r1.z, g[r1.z+7], 1");
    check(600, 0xf042_0000_0000_0000, "(sy)bar.g");
}

#[test]
fn generations_differ() {
    check(600, 0xe3c2_0000_0000_0000, "raw 0xE3C2000000000000");
    check(700, 0xe3c2_0000_0000_0000, "lock");
}

fn list(gpu_id: u32, words: &[u64]) -> String {
    let mut out = Vec::new();
    let dwords: Vec<u32> = words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
    let options = Ir3ListingOptions { gpu_id, raw: true, level: 1 };
    let mut listing = Ir3Listing::new(Dwords::from(&dwords[..]), options);
    while listing.instruction(&mut out) {}
    String::from_utf8(out).unwrap()
}

#[test]
fn a_listing_has_labels_cycles_and_an_end() {
    let nops = [0; 8];
    let words = [0x0000_0200_0000_0000, 0x0080_0000_ffff_ffff, 0x0300_0000_0000_0000];
    let expected = "\
\t:0:0000:0000[00000200x_00000000x] l0:
\t:0:0000:0000[00000200x_00000000x] (rpt2)nop
\t:0:0001:0003[00800000x_ffffffffx] br p0.x, #l0
\t:0:0002:0004[03000000x_00000000x] end
\t:0:0003:0005[00000000x_00000000x] nop
\t:0:0004:0006[00000000x_00000000x] nop
\t:0:0005:0007[00000000x_00000000x] nop
\t:0:0006:0008[00000000x_00000000x] nop
";
    assert_eq!(list(600, &[&words[..], &nops].concat()), expected);
}

#[test]
fn a_listing_gives_up_on_what_is_no_shader() {
    let expected = "no match: deadbeefdeadbeef";
    let lines = list(600, &[0xdead_beef_dead_beef; 100]);
    assert_eq!(lines.lines().filter(|line| line.ends_with(expected)).count(), 6);
}

#[test]
fn any_words_print() {
    let mut words: Vec<u64> = vec![0, u64::MAX];
    for leaf in IR3.leaves(IR3_INSTRUCTION) {
        words.extend(generate::words(IR3, leaf, 5, 20).map(|word| word as u64));
    }
    words.extend(words.clone().iter().map(|word| word.rotate_left(13) ^ 0x5555_0000_ffff_0f0f));
    for gpu_id in [0, 299, 300, 430, 540, 600, 690, 700, u32::MAX] {
        for &word in &words {
            let mut out = Vec::new();
            ir3::write(word, gpu_id, &mut out);
            assert!(!out.is_empty());
        }
        for part in words.chunks(50) {
            list(gpu_id, part);
        }
    }
}

#[test]
fn what_is_looked_up_is_what_the_templates_say() {
    use unwedge_isa::table::{DisplayPart, Printer, print};
    /// Prints every part.
    struct Everything;
    impl<'t> Printer<'t> for Everything {
        fn part(&mut self, _: &DisplayPart<'t>, _: &mut Vec<u8>) -> bool {
            false
        }
    }
    let words_each = if cfg!(debug_assertions) { 60 } else { 3000 };
    let (mut short, mut part_wise, mut full) = (Vec::new(), Vec::new(), Vec::new());
    for leaf in IR3.leaves(IR3_INSTRUCTION) {
        let ignored = IR3.ignored(leaf) as u64;
        for (count, word) in generate::words(IR3, leaf, 9, words_each).enumerate() {
            // Every third word has bits set that mean nothing.
            let junk =
                if count % 3 == 0 { (word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) & ignored } else { 0 };
            let word = word as u64 | junk;
            for gpu_id in [299, 300, 400, 499, 500, 600, 650, 699, 700, 899] {
                let Some(decoded) = ir3::decode(word, gpu_id) else { continue };
                [&mut short, &mut part_wise, &mut full].into_iter().for_each(Vec::clear);
                let faults = print(&decoded, &mut Everything, &mut full);
                assert_eq!(faults, print(&decoded, &mut (), &mut part_wise));
                faults.without_ignored().write(64, &mut full);
                faults.without_ignored().write(64, &mut part_wise);
                ir3::write(word, gpu_id, &mut short);
                let text = |bytes| String::from_utf8_lossy(bytes);
                assert_eq!(text(&full), text(&part_wise), "{word:016x} {gpu_id}");
                assert_eq!(text(&full), text(&short), "{word:016x} {gpu_id}");
            }
        }
    }
}
