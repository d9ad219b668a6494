//! Instructions that move values between lanes, against a model of them: DPP, `permlane`, and permutations by LDS.
//!
//! The model is a second reading of AMD's ISA manuals (Volcanic Islands to RDNA 4) and of LLVM's description of operands; it
//! shares nothing with the emulator. It only says which lane a lane reads, and whether it is written.

mod rig;

use rig::cases::{Case, GPUS, KEEP, Model, Sources, compare, random, report};
use std::rc::Rc;
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// A wave's size, and which lanes are enabled.
#[derive(Clone, Copy)]
struct Wave {
    lanes: usize,
    exec: u64,
}

impl Wave {
    fn new(gpu: &Gpu, exec: u64) -> Wave {
        let lanes = gpu.lanes() as usize;
        Wave { lanes, exec: exec & (u64::MAX >> (64 - lanes)) }
    }

    fn on(&self, lane: usize) -> bool {
        self.exec >> lane & 1 != 0
    }
}

/// Which lane a lane of a wave of so many reads; `None`: there is none.
type Reads = Rc<dyn Fn(usize, usize) -> Option<usize>>;

fn row(lane: usize) -> usize {
    lane & !15
}

/// Controls of DPP, as they are written, and what they read.
fn controls(generation: Gfx) -> Vec<(String, Reads)> {
    let mut all: Vec<(String, Reads)> = Vec::new();
    for code in 0..256usize {
        let of = move |at: usize| code >> (2 * at) & 3;
        let text = format!("quad_perm:[{},{},{},{}]", of(0), of(1), of(2), of(3));
        all.push((text, Rc::new(move |lane, _| Some(lane & !3 | of(lane & 3)))));
    }
    for n in 1..16 {
        let shl = move |lane: usize, _| (lane % 16 + n < 16).then_some(lane + n);
        let shr = move |lane: usize, _| (lane % 16 >= n).then(|| lane - n);
        let ror = move |lane: usize, _| Some(row(lane) + (lane + 16 - n) % 16);
        all.push((format!("row_shl:{n}"), Rc::new(shl)));
        all.push((format!("row_shr:{n}"), Rc::new(shr)));
        all.push((format!("row_ror:{n}"), Rc::new(ror)));
    }
    all.push(("row_mirror".into(), Rc::new(|lane, _| Some(row(lane) + 15 - lane % 16))));
    all.push(("row_half_mirror".into(), Rc::new(|lane, _| Some((lane & !7) + 7 - lane % 8))));
    if generation < Gfx::Gfx10 {
        all.push(("wave_shl:1".into(), Rc::new(|lane, lanes| (lane + 1 < lanes).then_some(lane + 1))));
        all.push(("wave_shr:1".into(), Rc::new(|lane, _| lane.checked_sub(1))));
        all.push(("wave_rol:1".into(), Rc::new(|lane, lanes| Some((lane + 1) % lanes))));
        all.push(("wave_ror:1".into(), Rc::new(|lane, lanes| Some((lane + lanes - 1) % lanes))));
        // The last lane of the row before; of the first half.
        all.push(("row_bcast:15".into(), Rc::new(|lane, _| row(lane).checked_sub(1))));
        all.push(("row_bcast:31".into(), Rc::new(|lane, _| (lane & 32).checked_sub(1))));
    } else {
        for n in 0..16 {
            all.push((format!("row_share:{n}"), Rc::new(move |lane, _| Some(row(lane) + n))));
            all.push((format!("row_xmask:{n}"), Rc::new(move |lane, _| Some(lane ^ n))));
        }
    }
    all
}

/// What a control is given besides.
#[derive(Clone, Copy)]
struct Masks {
    row: usize,
    bank: usize,
    /// What cannot be read is zero; else the lane is not written.
    bound: bool,
    /// Lanes that are not enabled can be read.
    fetch: bool,
}

impl Masks {
    fn random(bits: u64, generation: Gfx) -> Masks {
        let all = bits & 0x3000 != 0;
        Masks {
            row: if all { 15 } else { bits as usize & 15 },
            bank: if all { 15 } else { bits as usize >> 4 & 15 },
            bound: bits >> 8 & 1 != 0,
            fetch: generation >= Gfx::Gfx10 && bits >> 9 & 1 != 0,
        }
    }

    fn text(&self) -> String {
        let bound = if self.bound { " bound_ctrl:1" } else { "" };
        let fetch = if self.fetch { " fi:1" } else { "" };
        format!("row_mask:{:#x} bank_mask:{:#x}{bound}{fetch}", self.row, self.bank)
    }

    /// What a lane's source is, if the lane is written.
    fn source(&self, from: Option<usize>, lane: usize, wave: Wave, source: &[u32]) -> Option<u32> {
        if !wave.on(lane) || self.row >> (lane / 16) & 1 == 0 || self.bank >> (lane / 4 % 4) & 1 == 0 {
            return None;
        }
        match from.filter(|from| wave.on(*from) || self.fetch) {
            Some(from) => Some(source[from]),
            None => self.bound.then_some(0),
        }
    }
}

/// Sets of enabled lanes.
fn execs(random: &mut impl FnMut() -> u64) -> [u64; 4] {
    [u64::MAX, random(), random() | random(), random() & random()]
}

/// What a lane has, if it is written.
type Value = Rc<dyn Fn(usize, &Sources) -> Option<u32>>;

/// Compares what `make` has to say for every GPU.
fn all(what: &str, mut make: impl FnMut(&str, &Gpu, &mut dyn FnMut(String, u64, Value))) {
    let (mut compared, mut wrong) = (0, Vec::new());
    for name in GPUS {
        let mut cases = Vec::new();
        make(name, &rig::gpu(name), &mut |code, exec, value| {
            let model: Model = Rc::new(move |lane, v| value(lane, v).map(Into::into));
            cases.push(Case { code, exec, model });
        });
        compared += cases.len();
        wrong.extend(compare(name, KEEP, &cases));
    }
    report(what, compared, &wrong);
}

#[test]
fn dpp() {
    all("DPP", |name, gpu, add| {
        let generation = gpu.generation();
        if generation < Gfx::Gfx8 {
            return;
        }
        let mut random = random(name);
        for (text, from) in controls(generation) {
            for exec in execs(&mut random) {
                let masks = Masks::random(random(), generation);
                let wave = Wave::new(gpu, exec);
                let from = from.clone();
                let add_to = random() & 3 == 0;
                let source = move |lane: usize, source: &[u32]| {
                    masks.source(from(lane, wave.lanes), lane, wave, source)
                };
                if add_to {
                    // The other source is the lane's own.
                    let op = if generation >= Gfx::Gfx9 { "v_xor_b32_dpp v20" } else { "v_or_b32_dpp v20" };
                    let exclusive = generation >= Gfx::Gfx9;
                    add(
                        format!("{op}, v10, v11 {text} {}", masks.text()),
                        wave.exec,
                        Rc::new(move |lane, v| {
                            let a = source(lane, &v[0])?;
                            Some(if exclusive { a ^ v[1][lane] } else { a | v[1][lane] })
                        }),
                    );
                } else {
                    add(
                        format!("v_mov_b32_dpp v20, v10 {text} {}", masks.text()),
                        wave.exec,
                        Rc::new(move |lane, v| source(lane, &v[0])),
                    );
                }
            }
        }
    });
}

#[test]
fn dpp8() {
    all("DPP8", |name, gpu, add| {
        if gpu.generation() < Gfx::Gfx10 {
            return;
        }
        let mut random = random(name);
        for _ in 0..200 {
            let bits = random();
            let sel: [usize; 8] = std::array::from_fn(|at| (bits >> (3 * at)) as usize & 7);
            let fetch = bits >> 40 & 1 != 0;
            let exec = execs(&mut random)[(bits >> 44) as usize & 3];
            let wave = Wave::new(gpu, exec);
            let list = sel.map(|n| n.to_string()).join(",");
            add(
                format!("v_mov_b32_dpp v20, v10 dpp8:[{list}]{}", if fetch { " fi:1" } else { "" }),
                wave.exec,
                Rc::new(move |lane, v| {
                    let from = (lane & !7) + sel[lane % 8];
                    // Lanes that are not enabled are zero.
                    wave.on(lane).then(|| if wave.on(from) || fetch { v[0][from] } else { 0 })
                }),
            );
        }
    });
}

/// Selectors of rows: 4 bits for each lane in two scalar registers, or what each lane has.
#[test]
fn permlane16() {
    all("v_permlane16 and x16", |name, gpu, add| {
        if gpu.generation() < Gfx::Gfx10 {
            return;
        }
        let mut random = random(name);
        for round in 0..300 {
            let (bits, select) = (random(), random());
            let (cross, by_lanes) = (round % 2 != 0, round % 3 == 0 && gpu.generation() >= Gfx::Gfx12);
            let masks = Masks { row: 15, bank: 15, bound: bits & 2 != 0, fetch: bits & 1 != 0 };
            let wave = Wave::new(gpu, execs(&mut random)[bits as usize >> 2 & 3]);
            let name = if cross { "v_permlanex16" } else { "v_permlane16" };
            let mut code = if by_lanes {
                format!("{name}_var_b32 v20, v10, v11")
            } else {
                let (low, high) = (select as u32, select >> 32);
                format!("s_mov_b32 s20, {low:#x}\ns_mov_b32 s21, {high:#x}\n{name}_b32 v20, v10, s20, s21")
            };
            if masks.fetch || masks.bound {
                code += &format!(" op_sel:[{},{}]", u8::from(masks.fetch), u8::from(masks.bound));
            }
            add(
                code,
                wave.exec,
                Rc::new(move |lane, v| {
                    let place = if by_lanes { v[1][lane].into() } else { select >> (4 * (lane % 16)) };
                    let from = (row(lane) ^ if cross { 16 } else { 0 }) + place as usize % 16;
                    masks.source(Some(from), lane, wave, &v[0])
                }),
            );
        }
    });
}

/// Halves of a wave of 64 lanes change places, whether enabled or not; of 32 nothing changes.
#[test]
fn permlane64() {
    all("v_permlane64", |name, gpu, add| {
        if gpu.generation() < Gfx::Gfx11 {
            return;
        }
        let mut random = random(name);
        for exec in execs(&mut random) {
            let wave = Wave::new(gpu, exec);
            add(
                "v_permlane64_b32 v20, v10".into(),
                wave.exec,
                Rc::new(move |lane, v| (wave.lanes == 64 && wave.on(lane)).then(|| v[0][lane ^ 32])),
            );
        }
    });
}

/// Waits for LDS.
fn wait(generation: Gfx) -> &'static str {
    if generation >= Gfx::Gfx12 { "s_wait_dscnt 0" } else { "s_waitcnt lgkmcnt(0)" }
}

/// What a lane reads by an offset of `ds_swizzle_b32`.
fn swizzled(offset: usize, lane: usize, rotates: bool) -> usize {
    let half = lane & !31;
    let within = lane & 31;
    if rotates && offset >= 0xe000 {
        // For Fourier transforms: bits of the number reversed, and those of the mask kept.
        let mask = offset & 31;
        let reversed = (0..5).fold(0, |all, bit| all << 1 | within >> bit & 1);
        return half + (reversed >> mask.count_ones() | within & mask);
    }
    if rotates && offset >= 0xc000 {
        let (mask, by) = (offset & 31, offset >> 5 & 31);
        let moved = if offset >> 10 & 1 == 0 { within + by } else { within + 32 - by };
        return half + (within & mask | moved & !mask & 31);
    }
    if offset & 0x8000 != 0 {
        return lane & !3 | offset >> (2 * (lane & 3)) & 3;
    }
    half + ((within & offset & 31 | offset >> 5 & 31) ^ offset >> 10 & 31)
}

#[test]
fn ds_swizzle() {
    all("ds_swizzle", |name, gpu, add| {
        let generation = gpu.generation();
        let mut random = random(name);
        let rotates = generation >= Gfx::Gfx9;
        let offsets: Vec<usize> = (0..64)
            .map(|at| match at % 3 {
                0 => 0x8000 | random() as usize & 0xff,
                1 if rotates => 0xc000 | random() as usize & 0x7ff,
                _ => random() as usize & 0x7fff,
            })
            .chain((0xe000..0xe020).filter(|_| rotates))
            .collect();
        for offset in offsets {
            let wave = Wave::new(gpu, execs(&mut random)[offset & 3]);
            add(
                format!("ds_swizzle_b32 v20, v10 offset:{offset}\n{}", wait(generation)),
                wave.exec,
                Rc::new(move |lane, v| {
                    let from = swizzled(offset, lane, rotates);
                    wave.on(lane).then(|| if wave.on(from) { v[0][from] } else { 0 })
                }),
            );
        }
    });
}

/// Examples of the manual: which lane each of 32 reads.
#[test]
fn butterflies() {
    let numbers = |text: &str| -> Vec<usize> {
        text.split(',').map(|n| usize::from_str_radix(n, 16).expect("a number") - 1).collect()
    };
    for (offset, lanes) in [
        (0xe000, "1,11,9,19,5,15,d,1d,3,13,b,1b,7,17,f,1f,2,12,a,1a,6,16,e,1e,4,14,c,1c,8,18,10,20"),
        (0xe010, "1,9,5,d,3,b,7,f,2,a,6,e,4,c,8,10,11,19,15,1d,13,1b,17,1f,12,1a,16,1e,14,1c,18,20"),
    ] {
        let read: Vec<usize> = (0..32).map(|lane| swizzled(offset, lane, true)).collect();
        assert_eq!(read, numbers(lanes));
    }
}

/// Lanes that a permutation reaches: on gfx10 and gfx11 halves of 64 are apart.
fn reach(gpu: &Gpu) -> usize {
    let apart = (Gfx::Gfx10..Gfx::Gfx12).contains(&gpu.generation());
    if apart || !gpu.wave64() { 32 } else { 64 }
}

#[test]
fn ds_permute() {
    all("ds_permute and ds_bpermute", |name, gpu, add| {
        let generation = gpu.generation();
        if generation < Gfx::Gfx8 {
            return;
        }
        let mut random = random(name);
        let reach = reach(gpu);
        for round in 0..60 {
            let offset = if round % 3 == 0 { random() as usize & 0xff } else { 0 };
            let wave = Wave::new(gpu, execs(&mut random)[round & 3]);
            let suffix = if offset == 0 { String::new() } else { format!(" offset:{offset}") };
            let place = move |lane: usize, v: &[u32]| {
                (lane & !(reach - 1)) + (v[lane] as usize).wrapping_add(offset) / 4 % reach
            };
            add(
                format!("ds_bpermute_b32 v20, v11, v10{suffix}\n{}", wait(generation)),
                wave.exec,
                Rc::new(move |lane, v| {
                    let from = place(lane, &v[1]);
                    wave.on(lane).then(|| if wave.on(from) { v[0][from] } else { 0 })
                }),
            );
            add(
                format!("ds_permute_b32 v20, v11, v10{suffix}\n{}", wait(generation)),
                wave.exec,
                Rc::new(move |lane, v| {
                    // The last of those that write there.
                    let from =
                        (0..wave.lanes).rev().find(|from| wave.on(*from) && place(*from, &v[1]) == lane);
                    wave.on(lane).then(|| from.map_or(0, |from| v[0][from]))
                }),
            );
        }
    });
}
