//! Bytes and images of any kind: nothing panics, what is read is written again.

use unwedge_hw::intel::platform::{Engine, Platform};
use unwedge_intel::lrc::encoding::{decode, encode};
use unwedge_intel::lrc::layout::Addressing;
use unwedge_intel::lrc::triage::{identify, triage};
use unwedge_intel::lrc::{
    LrcImage, LrcLayout, LrcLayoutError, LrcOwner, PAGE, commands, diff, tables, values,
};
use unwedge_testkit::contexts;
use unwedge_testkit::mutate::Rng;

const TABLES: u64 = 20_000;
const IMAGES: u64 = 400;

#[test]
fn any_bytes_are_a_table_or_an_error() {
    let mut read = 0;
    for seed in 0..TABLES {
        let mut rng = Rng::new(seed);
        let start: Vec<_> = tables::Builtin::all().collect();
        let mut bytes = rng.pick(&start).unwrap().bytes().to_vec();
        if seed % 3 == 0 {
            bytes = (0..rng.below(300)).map(|_| rng.next_u64() as u8).collect();
        }
        for _ in 0..rng.below(4) {
            let at = rng.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.next_u64() as u8;
            }
        }
        bytes.truncate(bytes.len() - if seed % 5 == 0 { rng.below(bytes.len()) } else { 0 });
        let Ok((steps, length)) = decode(&bytes) else { continue };
        read += 1;
        assert_eq!(encode(&steps).as_deref(), Ok(&bytes[..length]));
        let addressing = Addressing { base: rng.next_u64() as u32, relative: None, end_marked: true };
        match LrcLayout::of_steps(&steps, addressing) {
            Ok(layout) => assert!(layout.verify(&layout.expand()).differences.is_empty()),
            Err(error) => assert!(matches!(error, LrcLayoutError::TooLong(n) if n >= PAGE)),
        }
    }
    assert!(read > TABLES / 4, "{read} were tables");
}

#[test]
fn any_image_is_looked_at() {
    // Contexts are images of registers from gen8 on.
    let platforms: Vec<&Platform> = Platform::all().iter().filter(|p| p.version().major >= 8).collect();
    let mut differing = 0;
    for seed in 0..IMAGES {
        let mut rng = Rng::new(seed);
        let platform = *rng.pick(&platforms).unwrap();
        let (version, driver) = (platform.version(), *rng.pick(platform.drivers()).unwrap());
        let engines: Vec<Engine> = Engine::all(version).collect();
        let target = LrcOwner { driver, version, engine: *rng.pick(&engines).unwrap() };
        let layout = LrcLayout::of(target).unwrap();
        let words = contexts::mutate(&contexts::context(&layout.expand(), seed), seed);
        let image = LrcImage::new(&words);
        let verified = layout.verify(image.registers());
        assert!(verified.compared + verified.missing == layout.dwords());
        differing += u64::from(!verified.differences.is_empty());
        for finding in triage(&image, &layout, &verified) {
            let dwords = finding.dwords;
            assert!(
                dwords.start < dwords.end && dwords.end <= image.nth(finding.page).len(),
                "{seed}: {dwords:?}"
            );
        }
        values::odd(image.registers(), &layout);
        identify(image.registers());
        let walked: usize = commands::walk(image.state()).map(|c| c.dwords.len()).sum();
        assert!(walked <= image.state().len());
        diff::diff(image.state(), &words, 0x7ff);
    }
    assert!(differing > IMAGES / 4, "{differing} differ");
}
