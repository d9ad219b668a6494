//! Look-ups in the built-in register database.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use unwedge_base::Generation;
use unwedge_hw::{Db, Palette, Variants};

fn main() {
    divan::main();
}

#[divan::bench]
fn open() -> Db {
    Db::builtin()
}

/// Every offset up to 64 Ki, most of them not a register.
#[divan::bench]
fn by_offset(bencher: Bencher<'_, '_>) {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    bencher
        .counter(ItemsCount::new(0x1_0000u32))
        .bench(|| (0..0x1_0000).filter(|o| gpu.reg(*o).is_some()).count());
}

#[divan::bench]
fn by_name(bencher: Bencher<'_, '_>) {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    bencher.bench(|| gpu.reg_offset(black_box("RB_MRT[3].CONTROL")));
}

#[divan::bench]
fn write_value(bencher: Bencher<'_, '_>) {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    let ty =
        gpu.reg_offset("RBBM_STATUS").and_then(|o| gpu.reg(o)).and_then(|r| r.ty()).expect("a6xx has it");
    let mut text = Vec::with_capacity(1024);
    bencher.bench_local(|| {
        text.clear();
        ty.write(black_box(0x00c7_00e5), &mut Variants::default(), &Palette::default(), &mut text);
        text.len()
    });
}
