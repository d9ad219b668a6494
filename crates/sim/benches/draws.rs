//! How fast the virtual Adreno draws: pixels and vertices, and a frame of many draws. `cargo bench -p unwedge-sim --bench draws`.

#[path = "../tests/cp_rig/mod.rs"]
#[allow(dead_code, reason = "tests use other parts of it")]
mod cp_rig;
#[path = "../tests/cp_rig/scene.rs"]
#[allow(dead_code, reason = "tests use other parts of it")]
mod scene;

use cp_rig::{STREAM, high, low};
use divan::Bencher;
use divan::counter::ItemsCount;
use scene::{Scene, TRIANGLES, Vertex, vertex};
use unwedge_base::Generation;
use unwedge_hw::Db;
use unwedge_sim::adreno::RunEnd;

const WIDTH: u32 = 1920;
const HEIGHT: u32 = 1080;
/// Where the image and the vertices are.
const IMAGE: u64 = 0x3_0000_0000;
const VERTICES: u64 = 0x4_0000_0000;
/// Bytes of a vertex.
const STRIDE: u32 = 32;

/// GPUs, on one core and on all.
const RUNS: [&str; 4] = ["a630, one core", "a630, all cores", "a740, one core", "a740, all cores"];

fn main() {
    divan::main();
}

/// A scene with a target of a whole screen, and vertices.
fn screen<'d>(db: &'d Db, run: &str, vertices: &[Vertex]) -> Scene<'d> {
    let generation = if run.starts_with("a6") { Generation::A6xx } else { Generation::A7xx };
    let mut scene = Scene::new(db, generation);
    if run.ends_with("one core") {
        scene.machine.compute.threads = 1;
    }
    let bytes = vertices.iter().flatten().flat_map(|value| value.to_bits().to_le_bytes()).collect();
    let memory = &mut scene.machine.space.memory;
    memory.map(VERTICES, bytes).expect("free addresses");
    memory.map(IMAGE, vec![0; (4 * WIDTH * HEIGHT) as usize]).expect("free addresses");
    let [x, y] = [WIDTH, HEIGHT].map(|size| (size as f32 / 2.0).to_bits());
    scene.set("GRAS_CL_VPORT[0].XOFFSET", &[x, x, y, y, 0, 1f32.to_bits()]);
    let last = (WIDTH - 1) | (HEIGHT - 1) << 16;
    for scissor in ["VIEWPORT_SCISSOR[0].TL", "SCREEN_SCISSOR[0].TL", "WINDOW_SCISSOR_TL"] {
        scene.set(&format!("GRAS_SC_{scissor}"), &[0, last]);
    }
    let (pitch, size) = (WIDTH / 16, WIDTH * HEIGHT / 16);
    scene.set("RB_MRT[0].CONTROL", &[0xf << 7, 0, 0x30, pitch, size, low(IMAGE), high(IMAGE), 0]);
    scene
}

/// Triangles from a vertex on.
fn draw(scene: &mut Scene<'_>, first: u32, count: u32) {
    let at = VERTICES + u64::from(first * STRIDE);
    scene.set("VFD_FETCH[0].BASE", &[low(at), high(at), count * STRIDE, STRIDE]);
    scene.draw(TRIANGLES, count);
}

fn run(bencher: Bencher<'_, '_>, mut scene: Scene<'_>, items: usize) {
    let words = scene.load();
    let machine = &mut scene.machine;
    bencher.counter(ItemsCount::new(items)).bench_local(|| {
        machine.begin();
        machine.submit(STREAM, words);
        assert_eq!(machine.run(u64::MAX >> 1), RunEnd::Done);
    });
    // Every one of these draws has it.
    let pixel = IMAGE + u64::from(4 * (536 * WIDTH + 960));
    assert_ne!(machine.space.memory.load(pixel, 4).known(), Some(0), "something is drawn");
}

/// Two triangles in a rectangle, in pixels.
fn rectangle([x, y]: [u32; 2], [width, height]: [u32; 2]) -> [Vertex; 6] {
    let corner = |dx: u32, dy: u32| {
        let place = [(x + dx, WIDTH), (y + dy, HEIGHT)].map(|(at, size)| 2.0 * at as f32 / size as f32 - 1.0);
        vertex(place[0], place[1], 0.5, [dx as f32 / width as f32, dy as f32 / height as f32, 0.5, 1.0])
    };
    [[0, 0], [width, 0], [0, height], [0, height], [width, 0], [width, height]].map(|[x, y]| corner(x, y))
}

/// A triangle over the whole screen, of interpolated colour.
#[divan::bench(args = RUNS, sample_count = 10)]
fn pixels(bencher: Bencher<'_, '_>, on: &str) {
    let db = Db::builtin();
    let mut scene = screen(&db, on, &rectangle([0, 0], [WIDTH, HEIGHT]));
    draw(&mut scene, 0, 6);
    run(bencher, scene, (WIDTH * HEIGHT) as usize);
}

/// Triangles of a pixel or none, all over the screen.
#[divan::bench(args = RUNS, sample_count = 10)]
fn vertices(bencher: Bencher<'_, '_>, on: &str) {
    let db = Db::builtin();
    let (columns, rows) = (240, 135);
    let small = (0..columns * rows).flat_map(|n| {
        let [a, b, c, ..] = rectangle([n % columns * 8, n / columns * 8], [2, 2]);
        [a, b, c]
    });
    let all: Vec<Vertex> = small.collect();
    let mut scene = screen(&db, on, &all);
    draw(&mut scene, 0, all.len() as u32);
    run(bencher, scene, all.len());
}

/// A frame: a thousand draws of a rectangle of 192 by 108 pixels, so that each pixel is drawn ten times.
#[divan::bench(args = RUNS, sample_count = 5)]
fn frame_of_1000_draws(bencher: Bencher<'_, '_>, on: &str) {
    let db = Db::builtin();
    let all: Vec<Vertex> =
        (0..1000).flat_map(|n| rectangle([n % 10 * 192, n / 10 % 10 * 108], [192, 108])).collect();
    let mut scene = screen(&db, on, &all);
    (0..1000).for_each(|n| draw(&mut scene, 6 * n, 6));
    run(bencher, scene, 1000);
}
