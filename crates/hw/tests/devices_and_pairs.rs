//! Which device a chip id is, and how the halves of 64-bit registers come together.

use unwedge_base::{ChipId, Generation};
use unwedge_hw::{Db, PairStep, Pairs, RegSpace, RegWrite};

#[test]
fn devices_are_found_by_gpu_id_or_chip_id() {
    let db = Db::builtin();
    let find = |gpu, chip| db.device(gpu, ChipId(chip)).map(|d| (d.name(), d.generation()));
    let fd630 = Some(("FD630", Generation::A6xx));
    assert_eq!(find(630, 0), fd630);
    assert_eq!(find(0, 0x0603_0002), fd630, "the table's patch 0xff stands for any");
    assert_eq!(find(0, 0x43_0603_0002), fd630, "whatever the bits above");
    assert_eq!(find(0, 0xbe_0603_0500), Some(("Adreno 8c Gen 3", Generation::A6xx)), "exact before any");
    assert_eq!(find(0, 0x1234_0603_0500).map(|d| d.0), Some("Adreno 7c+ Gen 3"), "any speed bin");
    assert_eq!(find(0, 0x4305_1401), Some(("FD750", Generation::A7xx)));
    assert_eq!(find(730, 0), Some(("FD730", Generation::A7xx)), "its name has the number");
    assert_eq!(find(730, 0x0703_0002), Some(("FD725", Generation::A7xx)), "a chip id says more than a name");
    assert_eq!(find(631, 0x0603_0000), None, "a GPU id decides where both have one");
    assert_eq!(find(0, 0), None);
    assert_eq!(find(0, 0x0909_0909), None);
}

#[test]
fn devices_say_what_they_are_made_of() {
    let db = Db::builtin();
    let fd630 = db.device(630, ChipId(0)).unwrap();
    assert_eq!(fd630.gpu_id(), Some(630));
    assert_eq!(fd630.gmem_align(), Some((16, 4)));
    assert_eq!(fd630.tile_align(), Some((32, 16)));
    assert_eq!((fd630.ccus(), fd630.sp_cores(), fd630.vsc_pipes()), (Some(2), Some(2), Some(32)));
    assert_eq!(fd630.property("no such thing"), None);
    assert!(fd630.flag("a6xx.indirect_draw_wfm_quirk"));
    let fd200 = db.devices().next().unwrap();
    assert_eq!(fd200.tile_max(), Some((512, u32::MAX)), "no limit in height");
    assert_eq!(fd200.ccus(), None, "the table does not say");
    let gen3: Vec<&str> = db.devices().filter(|d| d.has_gen3_control()).map(|d| d.name()).collect();
    assert!(!gen3.is_empty() && gen3.iter().all(|name| *name == "FD750"));
}

fn pairs(db: &Db) -> Pairs<'_> {
    Pairs::new(db.gpu(Generation::A6xx).space(RegSpace::Gpu))
}

#[test]
fn halves_come_together() {
    let db = Db::builtin();
    let base = db.gpu(Generation::A6xx).reg_offset("CP_RB_BASE").unwrap();
    let mut pairs = pairs(&db);
    assert_eq!(pairs.push(base, 0x1000), PairStep::Held);
    let whole = RegWrite { offset: base, value: 0x5_0000_1000 };
    assert_eq!(pairs.push(base + 1, 5), PairStep::Complete(whole));
    let control = db.gpu(Generation::A6xx).reg_offset("CP_RB_CNTL").unwrap();
    assert_eq!(pairs.push(control, 7), PairStep::Complete(RegWrite { offset: control, value: 7 }));
    assert_eq!(pairs.finish(), None);
}

#[test]
fn a_missing_half_costs_nothing_else() {
    let db = Db::builtin();
    let base = db.gpu(Generation::A6xx).reg_offset("CP_RB_BASE").unwrap();
    let mut pairs = pairs(&db);
    assert_eq!(pairs.push(base + 1, 5), PairStep::LoneHigh(RegWrite { offset: base + 1, value: 5 }));
    assert_eq!(pairs.push(base, 0x1000), PairStep::Held);
    let low = RegWrite { offset: base, value: 0x1000 };
    assert_eq!(pairs.push(0x8820, 3), PairStep::Broken { low, next: (0x8820, 3) });
    assert_eq!(pairs.push(0x8820, 3), PairStep::Complete(RegWrite { offset: 0x8820, value: 3 }));
    assert_eq!(pairs.push(base, 1), PairStep::Held);
    assert_eq!(pairs.finish(), Some(RegWrite { offset: base, value: 1 }));
}

#[test]
fn mesa_takes_a_high_half_not_named_hi_for_a_low_one() {
    let db = Db::builtin();
    let registers = db.gpu(Generation::A6xx).space(RegSpace::Gpu);
    let high = registers.iter().find(|r| r.name().ends_with("+0x1") && r.dword() == 1).unwrap().offset();
    let write = RegWrite { offset: high, value: 1 };
    assert_eq!(Pairs::new(registers).push(high, 1), PairStep::LoneHigh(write));
    let mut mesa = Pairs::like_mesa(registers);
    assert_eq!(mesa.push(high, 1), PairStep::Held);
    let joined = RegWrite { offset: high, value: 0x2_0000_0001 };
    assert_eq!(mesa.push(high + 1, 2), PairStep::Complete(joined));
}

#[test]
fn unknown_registers_are_whole() {
    let db = Db::builtin();
    let unknown = RegWrite { offset: u32::MAX, value: 9 };
    assert_eq!(pairs(&db).push(u32::MAX, 9), PairStep::Complete(unknown));
}
