//! Pictures, histories of pixels and traces of fibers of captures that draw. The captures are made here.

#[path = "../../sim/tests/cp_rig/mod.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "../../sim/tests/cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{DATA, STREAM, data, high, low};
use scene::*;
use serde_json::Value;
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_testkit::rd::CaptureBuilder;
use unwedge_view::replay::{
    FramePicture, PictureDiff, Pictures, PixelWanted, ReplayOptions, ReplayParts, Replayed, compare_pictures,
    replay_with,
};

/// Bytes of the data of a scene.
const BYTES: u64 = 0x1_0000;

/// The capture of what a scene has written so far, in one submit.
fn capture(scene: &mut Scene<'_>) -> Vec<u8> {
    let words = std::mem::take(&mut scene.stream.words);
    let held: Vec<u32> = (0..BYTES).step_by(4).map(|at| data(&scene.machine, at)).collect();
    let gpu_id = if scene.stream.gpu.generation() == A6xx { 630 } else { 740 };
    CaptureBuilder::new(gpu_id, "test\0")
        .buffer(DATA, &held)
        .buffer(STREAM, &words)
        .submit(STREAM, words.len() as u32)
        .bytes()
}

fn replayed(bytes: &[u8], options: &ReplayOptions) -> (Replayed, Pictures) {
    let mut frames = Pictures::new();
    let mut take = |frame: FramePicture| {
        let png = frame.png.unwrap_or_else(|why| panic!("{}: {why}", frame.name));
        assert!(frames.insert(frame.name, png).is_none(), "a name comes twice");
    };
    let mut parts = ReplayParts { frames: Some(&mut take), ..ReplayParts::default() };
    let (replayed, lost) = replay_with(bytes, options, &mut parts, &Db::builtin(), 1 << 32);
    assert!(replayed.is_complete() && lost.is_empty(), "{lost:?}");
    (replayed, frames)
}

fn decode(png: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut samples = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut samples).unwrap();
    samples.truncate(info.buffer_size());
    (info.width, info.height, samples)
}

/// The RGBA8 texel of a picture.
fn texel(png: &[u8], x: u32, y: u32) -> u32 {
    let (width, _, samples) = decode(png);
    let at = 4 * (y * width + x) as usize;
    u32::from_le_bytes(samples[at..at + 4].try_into().unwrap())
}

fn options(pixel: [u32; 2], images: &[&str]) -> ReplayOptions {
    let [x, y] = pixel;
    ReplayOptions {
        images: images.iter().map(|spec| spec.parse().unwrap()).collect(),
        coverage: Some(0..=u64::MAX),
        pixel: Some(PixelWanted { pixel: [x, y, 0], target: None, submits: 0..=u32::MAX }),
        ..ReplayOptions::new(1 << 32)
    }
}

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    [A6xx, A7xx].into_iter().for_each(|generation| test(Scene::new(&db, generation)));
}

/// Two rectangles that overlap, the nearer one first, with depth; then the first one again without.
fn overlapping(scene: &mut Scene<'_>) {
    let a7xx = scene.stream.gpu.generation() == A7xx;
    let near = strip([-1.0, -1.0], [0.0, 1.0], 0.25, GREEN);
    let far = strip([-0.5, -1.0], [1.0, 1.0], 0.5, BLUE);
    scene.vertices(&[near, far].concat());
    let [base, top] = [low(DATA + DEPTH), high(DATA + DEPTH)];
    scene.put(DEPTH, &[1f32.to_bits(); 0x1000]);
    scene.set("RB_DEPTH_BUFFER_INFO", &[4 | if a7xx { 3 << 5 } else { 0 }, SIZE / 8, 0, base, top, 0]);
    scene.set("RB_DEPTH_CNTL", &[1 | 1 << 1 | 1 << 2 | 1 << 6]);
    scene.draw(STRIP, 4);
    scene.set("VFD_INDEX_OFFSET", &[4]).draw(STRIP, 4);
    scene.set("RB_DEPTH_CNTL", &[0]).set("VFD_INDEX_OFFSET", &[0]).draw(STRIP, 4);
}

#[test]
fn pictures_are_taken_after_draws_and_passes() {
    each(|mut scene| {
        overlapping(&mut scene);
        let bytes = capture(&mut scene);
        let images = ["draw=0:mrt0", "draw=1:mrt0", "draw=1:depth", "draw=1:mrt0:stored", "draw=9:mrt0"];
        let (replayed, frames) = replayed(&bytes, &options([9, 9], &images));
        let picture = |at: usize| replayed.images[at].as_deref().unwrap();
        assert_eq!([3, 20].map(|x| texel(picture(0), x, 9)), [GREEN8, 0]);
        assert_eq!([3, 9, 20].map(|x| texel(picture(1), x, 9)), [GREEN8, GREEN8, BLUE8]);
        let (width, height, depths) = decode(picture(2));
        assert_eq!((width, height), (SIZE, SIZE));
        let depth = |x: usize| u16::from_be_bytes(depths[2 * x..2 * x + 2].try_into().unwrap());
        assert_eq!([3, 20].map(depth), [16384, 32768]);
        assert!(replayed.images[4].as_ref().is_err_and(|why| why.contains("draw 9")));
        // All draws have the same images: one pass, and what it leaves is what is stored.
        assert_eq!(frames.keys().collect::<Vec<_>>(), ["set000-submit000-pass000-mrt0"]);
        let frame = &frames["set000-submit000-pass000-mrt0"];
        assert_eq!(frame.as_slice(), picture(3));
        assert_eq!([3, 9, 20].map(|x| texel(frame, x, 9)), [GREEN8, GREEN8, BLUE8]);
    });
}

#[test]
fn fragments_are_counted() {
    each(|mut scene| {
        overlapping(&mut scene);
        let (replayed, _) = replayed(&capture(&mut scene), &options([0, 0], &[]));
        let json = serde_json::to_value(&replayed).unwrap();
        let coverage = &json["coverage"];
        // The second rectangle is shaded where it is not behind the first one.
        let half = u64::from(SIZE * SIZE / 2);
        assert_eq!((&coverage["fragments"], &coverage["primitives"]), (&(3 * half).into(), &6.into()));
        let pixels = |count: u64| {
            let counts = coverage["counts"].as_array().unwrap();
            counts.iter().find(|row| row["count"] == count).map(|row| row["pixels"].as_u64().unwrap())
        };
        assert_eq!([0, 1, 2].map(pixels), [Some(0), Some(half), Some(half)]);
        let overdraw = replayed.overdraw().unwrap();
        assert_ne!(texel(&overdraw, 3, 3), texel(&overdraw, 20, 3));
        let wireframe = replayed.wireframe().unwrap();
        // The right edge of the first rectangle, and the inside of its upper triangle.
        assert!(texel(&wireframe, 16, 9) != 0xff00_0000 && texel(&wireframe, 1, 4) == 0xff00_0000);
    });
}

fn events(replayed: &Replayed) -> Vec<Value> {
    let history = serde_json::to_value(replayed.pixel.as_ref().unwrap()).unwrap();
    history["events"].as_array().unwrap().clone()
}

#[test]
fn a_pixel_has_a_history() {
    each(|mut scene| {
        overlapping(&mut scene);
        let (replayed, _) = replayed(&capture(&mut scene), &options([9, 9], &[]));
        let events = events(&replayed);
        let [first, second, third] = &events[..] else { panic!("{events:#?}") };
        assert!(events.iter().all(|event| event["type"] == "fragment" && event["submit"] == 0));
        assert_eq!((&first["work"], &second["work"], &third["work"]), (&0.into(), &1.into(), &2.into()));
        let test = &first["tests"][0];
        assert_eq!((&test["result"], &test["early"]), (&"passed".into(), &true.into()));
        assert_eq!(test["depth"], serde_json::json!([1.0, 0.25]));
        assert_eq!(first["shaded"][0]["colours"][0]["floats"], serde_json::json!([0.0, 1.0, 0.0, 1.0]));
        let write = &first["writes"][0];
        assert_eq!((&write["target"], &write["before"]["bytes"]), (&"mrt0".into(), &"00000000".into()));
        assert_eq!(write["after"]["bytes"], "00ff00ff");
        assert_eq!(write["iova"], format!("{:#018x}", DATA + u64::from(4 * (9 * SIZE + 9))));
        assert_eq!((&second["tests"][0]["result"], &second["shaded"]), (&"depth".into(), &Value::Null));
        assert_eq!(second["writes"], Value::Null);
        assert_eq!(
            (&third["tests"], &third["writes"][0]["before"]["bytes"]),
            (&Value::Null, &"00ff00ff".into())
        );
        let mut text = Vec::new();
        replayed.pixel.as_ref().unwrap().text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("failed (depth)") && text.contains("at the end"), "{text}");
    });
}

/// The pixel is inside of the triangle, in the lower bin. What is rendered in bins has the pictures and the history of what is rendered in memory.
#[test]
fn bins_are_one_pass() {
    each(|mut scene| {
        let triangle =
            [vertex(-1.0, -0.9, 0.0, RED), vertex(0.8, 0.1, 0.0, GREEN), vertex(-0.3, 1.0, 0.0, BLUE)];
        scene.vertices(&triangle).put(IMAGE, &[BLUE8; (SIZE * SIZE) as usize]);
        let start = scene.stream.words.clone();
        let plain = capture(scene.draw(TRIANGLES, 3));
        let (_, plain) = replayed(&plain, &options([12, 20], &[]));
        scene.stream.words = start;
        let events_of = scene.stream.gpu.enumeration("vgt_event_type").unwrap();
        let blit = events_of.value_of("BLIT").or(events_of.value_of("CCU_RESOLVE")).unwrap() as u32;
        let a6xx = scene.stream.gpu.generation() == A6xx;
        let event = if a6xx { "EVENT_WRITE" } else { "EVENT_WRITE7" };
        if !a6xx {
            scene.set("RB_UNKNOWN_8812", &[0]);
        }
        // Bins of 32 by 16.
        scene.set("RB_BIN_CONTROL", &[1 | 1 << 8]);
        for bin in 0..2 {
            let (first, last) = (bin << 20, (SIZE - 1) | (16 * bin + 15) << 16);
            scene.set("RB_WINDOW_OFFSET", &[first]).set("RB_WINDOW_OFFSET2", &[first]);
            scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[first, last]);
            scene.set("RB_BLIT_SCISSOR_TL", &[first, last]);
            let [base, top] = [low(DATA + IMAGE), high(DATA + IMAGE)];
            scene.set("RB_BLIT_GMEM_MSAA_CNTL", &[0, 0, 0x30 << 7, base, top, SIZE / 16]);
            scene.set("RB_BLIT_CLEAR_COLOR_DW0", &[BLUE8, 0, 0, 0, 2 | 0xf << 4]);
            scene.stream.op(event, &[blit]);
            scene.draw(TRIANGLES, 3);
            scene.set("RB_BLIT_INFO", &[0]);
            scene.stream.op(event, &[blit]);
        }
        let images = ["draw=0:mrt0", "draw=1:mrt0", "draw=0:mrt0:stored"];
        let (replayed, binned) = replayed(&capture(&mut scene), &options([12, 20], &images));
        let diffs = compare_pictures(&plain, &binned);
        assert!(diffs.len() == 1 && !diffs.iter().any(PictureDiff::differs), "{diffs:?}");
        let picture = |at: usize| decode(replayed.images[at].as_deref().unwrap());
        let [upper, lower, whole] = [0, 1, 2].map(picture);
        assert_eq!((upper.1, lower.1, whole.1), (16, 16, SIZE));
        assert_eq!([upper.2, lower.2].concat(), whole.2);
        let kinds: Vec<Value> = events(&replayed).iter().map(|event| event["type"].clone()).collect();
        assert_eq!(kinds, ["clear", "fragment", "store"]);
    });
}

#[test]
fn fibers_are_traced() {
    each(|mut scene| {
        overlapping(&mut scene);
        let bytes = capture(&mut scene);
        let trace = |spec: &str| {
            let options =
                ReplayOptions { fibers: Some(spec.parse().unwrap()), ..ReplayOptions::new(1 << 32) };
            let (replayed, _) =
                replay_with(&bytes[..], &options, &mut ReplayParts::default(), &Db::builtin(), 1 << 32);
            let mut lines = Vec::new();
            replayed.write_fibers(true, &mut lines).unwrap();
            let lines = String::from_utf8(lines).unwrap();
            lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<Value>>()
        };
        let lines = trace("draw=0:pixel=3,3");
        let [head, bary, end] = &lines[..] else { panic!("{lines:#?}") };
        assert_eq!((&head["stage"], &head["primitive"]), (&"fragment".into(), &0.into()));
        assert!(bary["text"].as_str().unwrap().contains("bary.f") && end["text"] == "end", "{lines:#?}");
        let floats: Vec<f64> =
            bary["writes"].as_array().unwrap().iter().map(|write| write["float"].as_f64().unwrap()).collect();
        assert_eq!(floats, [0.0, 1.0, 0.0, 1.0]);
        let names = bary["reads"].as_array().unwrap().iter().map(|read| read["name"].as_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), ["r0.x", "r0.y"]);
        let vertex = trace("draw=1:vertex=5");
        assert_eq!((&vertex[0]["stage"], vertex.len()), (&"vertex".into(), 2));
        // Position and colour of the sixth vertex, which is of the second rectangle.
        let start = |at: usize| vertex[0]["starts"][at]["float"].as_f64().unwrap();
        assert_eq!([0, 1, 2, 3, 6].map(start), [1.0, -1.0, 0.5, 1.0, 1.0]);
        // Behind the first rectangle nothing is shaded.
        assert_eq!(trace("draw=1:pixel=9,9").len(), 0);
    });
}
