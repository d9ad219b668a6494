//! Over dumps that testkit makes: every section, era, generation and quirk.

use unwedge_base::{Generation, Severity};
use unwedge_capture::msm::lines::{DevcoreLines, MsmSection};
use unwedge_capture::msm::{Devcore, sniff};
use unwedge_testkit::devcore::{DevcoreBuilder, MsmEra, Quirk, variety};

fn losses(dump: &Devcore<'_>) -> Vec<String> {
    dump.diagnostics.iter().filter(|d| d.severity == Severity::Loss).map(|d| d.to_string()).collect()
}

fn written(dump: &Devcore<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    dump.write(&mut out);
    out
}

#[test]
fn what_was_built_is_what_is_read_from_its_text() {
    for generation in Generation::ALL {
        for era in MsmEra::ALL {
            let built = DevcoreBuilder::complete(generation).era(era).build();
            let text = written(&built);
            let read = Devcore::read(&text).unwrap();
            assert_eq!(read, built, "{generation} {era:?}");
            assert_eq!(losses(&read), [""; 0], "{generation} {era:?}");
            assert!(!read.layout.has_exceptions(), "{generation} {era:?}");
        }
    }
}

#[test]
fn every_quirk_is_written_back_as_it_was() {
    for (what, text) in variety() {
        assert!(sniff(&text), "{what}");
        let dump = Devcore::read(&text).unwrap();
        assert_eq!(String::from_utf8_lossy(&written(&dump)), String::from_utf8_lossy(&text), "{what}");
    }
}

#[test]
fn quirks_do_not_change_what_is_said() {
    let plain = DevcoreBuilder::complete(Generation::A6xx).era(MsmEra::V6_17);
    let same = [
        Quirk::SignedFences,
        Quirk::FaultFar,
        Quirk::FaultOnOneLine,
        Quirk::CarriageReturns,
        Quirk::OtherIndentation,
        Quirk::HeadingOfTheDocument,
    ];
    for quirk in same {
        let text = plain.clone().quirk(quirk).text();
        let read = Devcore::read(&text).unwrap();
        assert_eq!(read, plain.clone().build(), "{quirk:?}");
        assert_eq!(losses(&read), [""; 0], "{quirk:?}");
    }
}

#[test]
fn misspelt_names_have_a_canonical_one() {
    let text = DevcoreBuilder::complete(Generation::A6xx).era(MsmEra::V5_8).text();
    let dump = Devcore::read(&text).unwrap();
    let names: Vec<_> = dump.indexed.iter().map(|i| (i.name.as_ref(), i.canonical_name())).collect();
    assert_eq!(names[0], ("CP_SEQ_STAT", "CP_SQE_STAT".into()));
    assert_eq!(names[2], ("CP_UCODE_DBG_DATA", "CP_UCODE_DBG".into()));
    assert_eq!(names[4], ("CP_MEMPOOOL", "CP_MEMPOOL".into()));
}

#[test]
fn unknown_things_are_kept_and_listed() {
    let text = DevcoreBuilder::complete(Generation::A6xx).quirk(Quirk::UnknownThings).text();
    let mut dump = Devcore::read(&text).unwrap();
    assert!(dump.sections().iter().any(|s| s.name == "wave-dump" && s.section.is_none()));
    assert_eq!(dump.bos[0].extra, [b"    madv: willneed".as_slice()]);
    dump.bos[0].size = 8192;
    let text = String::from_utf8(written(&dump)).unwrap();
    assert!(text.contains("size: 8192\n"), "a change is written");
    assert!(text.contains("madv: willneed\n"), "and unknown keys with it");
    assert!(text.contains("wave-dump:\n  - sp: 0\n    state: idle\n"));
}

#[test]
fn a_changed_dump_is_written_with_its_changes_only() {
    let text = DevcoreBuilder::complete(Generation::A6xx).text();
    let mut dump = Devcore::read(&text).unwrap();
    dump.bos.remove(0);
    dump.cmdline = None;
    dump.registers.push(unwedge_capture::msm::RegisterValue { reg: 0x900, value: 3 });
    let changed = written(&dump);
    let again = Devcore::read(&changed).unwrap();
    assert_eq!(again, dump);
    assert_eq!(losses(&again), [""; 0]);
}

#[test]
fn sections_are_listed_with_their_extent() {
    let text = DevcoreBuilder::complete(Generation::A6xx).text();
    let dump = Devcore::read(&text).unwrap();
    let registers = dump.sections().iter().find(|s| s.section == Some(MsmSection::Registers)).unwrap();
    assert_eq!(registers.entries, dump.registers.len());
    let bytes = &text[registers.span.start as usize..registers.span.end as usize];
    assert!(bytes.starts_with(b"registers:\n  - { offset: 0x"));
    assert_eq!(bytes.iter().filter(|&&c| c == b'\n').count(), 1 + registers.entries);
}

#[test]
fn a_cut_dump_says_where_it_was_cut() {
    let text = DevcoreBuilder::complete(Generation::A6xx).text();
    let whole = Devcore::read(&text).unwrap();
    for section in whole.sections() {
        let middle = (section.span.start + section.span.end) / 2;
        let Ok(cut) = Devcore::read(&text[..middle as usize]) else {
            panic!("{} is not there", section.name)
        };
        let said = losses(&cut).join("; ");
        assert!(said.contains("cut") && said.contains(section.name.as_ref()), "{}: {said}", section.name);
    }
    for (generation, heading) in
        [(Generation::A5xx, "\nbos:\n"), (Generation::A5xx, "\nregisters:\n"), (Generation::A6xx, "\nbos:\n")]
    {
        let text = String::from_utf8(DevcoreBuilder::complete(generation).text()).unwrap();
        let end = text.find(heading).unwrap() + heading.len();
        let said = losses(&Devcore::read(&text.as_bytes()[..end]).unwrap()).join("; ");
        assert!(said.contains("cut in section"), "{generation}, cut after {heading:?}: {said}");
    }
    let lines: Vec<_> = DevcoreLines::new(&text).collect();
    let half = lines[lines.len() / 2].span.end as usize;
    assert!(!losses(&Devcore::read(&text[..half]).unwrap()).is_empty(), "cut after a line");
}

#[test]
fn sizes_are_claims() {
    let text = String::from_utf8(DevcoreBuilder::complete(Generation::A6xx).text()).unwrap();
    let small = text.replace("    size: 4096\n", "    size: 4\n");
    let dump = Devcore::read(small.as_bytes()).unwrap();
    assert!(losses(&dump).iter().any(|l| l.contains("where 1 have room")), "{:?}", losses(&dump));
    assert!(dump.bos[0].data.as_ref().unwrap().decode().len() > 1, "the data is kept");
    let large = text.replace("    size: 4096\n", "    size: 18446744073709551615\n");
    let dump = Devcore::read(large.as_bytes()).unwrap();
    assert_eq!(dump.bos[0].size, u64::MAX);
    assert!(dump.memory().read(dump.bos[0].iova).is_some());
}

#[test]
fn a_second_dump_is_not_mixed_into_the_first() {
    let one = DevcoreBuilder::complete(Generation::A6xx).text();
    let two = [one.clone(), DevcoreBuilder::complete(Generation::A3xx).text()].concat();
    let dump = Devcore::read(&two).unwrap();
    assert_eq!(dump, Devcore::read(&one).unwrap());
    assert_eq!(losses(&dump).len(), 1);
    assert_eq!(written(&dump), two);
}

#[test]
fn what_is_not_a_dump_is_refused() {
    for text in
        [&b""[..], b"\n\n\n", b"---\ntitle: my dump\n", b"\x1f\x8b\x08\0\0\0", b"hello, world\n- { a: 1 }\n"]
    {
        assert!(Devcore::read(text).is_err(), "{text:?}");
    }
}

#[test]
fn blocks_of_a7xx_have_pipes_and_locations() {
    let text = DevcoreBuilder::complete(Generation::A7xx).era(MsmEra::V6_17).text();
    let dump = Devcore::read(&text).unwrap();
    let block = &dump.shader_blocks[0];
    assert_eq!((block.pipe.as_deref(), block.location), (Some("A7XX_PIPE_BR"), Some(2)));
    let places: Vec<_> = block.banks.iter().map(|b| (b.index, b.usptp)).collect();
    assert_eq!(places, [(0, Some(0)), (0, Some(1)), (1, Some(0))]);
    let cluster = &dump.clusters[2];
    assert_eq!(
        (cluster.name.as_ref(), cluster.context, cluster.location),
        ("CLUSTER_SP_VS", Some(0), Some(4))
    );
}

#[test]
fn two_threads_read_what_each_reads_alone() {
    let texts = [Generation::A3xx, Generation::A7xx].map(|g| DevcoreBuilder::complete(g).text());
    let alone = texts.each_ref().map(|text| Devcore::read(text).unwrap());
    std::thread::scope(|scope| {
        let threads = texts.each_ref().map(|text| scope.spawn(|| Devcore::read(text).unwrap()));
        let together = threads.map(|thread| thread.join().unwrap());
        assert_eq!(together, alone);
    });
}

#[test]
fn data_that_ends_inside_of_a_group_is_reported() {
    let text = String::from_utf8(DevcoreBuilder::a6xx().bo(0x1000, 64, "", &[1, 2, 3]).text()).unwrap();
    let cut = text.replace("!!!!$\n", "!!!\n");
    let dump = Devcore::read(cut.as_bytes()).unwrap();
    assert_eq!(dump.bos[0].data.as_ref().unwrap().decode(), [1, 2, 0]);
    assert!(losses(&dump).iter().any(|l| l.contains("inside of a group")), "{:?}", losses(&dump));
}
