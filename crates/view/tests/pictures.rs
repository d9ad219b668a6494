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
use unwedge_sim::adreno::TargetName;
use unwedge_testkit::rd::CaptureBuilder;
use unwedge_view::replay::{
    FramePicture, PictureDiff, Pictures, PixelWanted, ReplayOptions, ReplayParts, Replayed, compare_pictures,
    replay_with,
};

/// Bytes of the data of a scene.
const BYTES: u64 = 0x1_0000;
const WHITE: [f32; 4] = [1.0; 4];

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
        let images = [
            "draw=0:mrt0",
            "draw=1:mrt0",
            "draw=1:depth",
            "draw=1:mrt0:stored",
            "draw=9:mrt0",
            "draw=0:mrt0:layer=9",
            "draw=0:mrt0:stored:layer=1",
            "draw=0:mrt0:sample=1",
            "draw=0:mrt3",
        ];
        let (replayed, frames) = replayed(&bytes, &options([9, 9], &images));
        let picture = |at: usize| replayed.images[at].as_deref().unwrap();
        assert_eq!([3, 20].map(|x| texel(picture(0), x, 9)), [GREEN8, 0]);
        assert_eq!([3, 9, 20].map(|x| texel(picture(1), x, 9)), [GREEN8, GREEN8, BLUE8]);
        let (width, height, depths) = decode(picture(2));
        assert_eq!((width, height), (SIZE, SIZE));
        let depth = |x: usize| u16::from_be_bytes(depths[2 * x..2 * x + 2].try_into().unwrap());
        assert_eq!([3, 20].map(depth), [16384, 32768]);
        let why = |at: usize| replayed.images[at].as_ref().unwrap_err().as_str();
        assert_eq!(why(4), "draw 9 was not executed: 3 draws, dispatches and blits were, counted from 0");
        assert_eq!(why(5), "mrt0 after draw 0: it has no layer 9: it has 1 layer, counted from 0");
        assert_eq!(why(6), "mrt0 after draw 0: it has no layer 1: it has 1 layer, counted from 0");
        assert_eq!(why(7), "mrt0 after draw 0: it has no sample 1: it has 1 sample, counted from 0");
        assert_eq!(why(8), "mrt3 after draw 0: the draw has no such image");
        // All draws have the same images: one pass, and what it leaves is what is stored.
        assert_eq!(frames.keys().collect::<Vec<_>>(), ["set000-submit000-pass000-mrt0"]);
        let frame = &frames["set000-submit000-pass000-mrt0"];
        assert_eq!(frame.as_slice(), picture(3));
        assert_eq!([3, 9, 20].map(|x| texel(frame, x, 9)), [GREEN8, GREEN8, BLUE8]);
    });
}

/// An image of three layers has pictures of each, and of no fourth one.
#[test]
fn layers_have_pictures() {
    each(|mut scene| {
        // The first vertex gives the layer, which is in its red.
        let mut vertices = strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE);
        vertices.iter_mut().for_each(|vertex| vertex[4] = f32::from_bits(2));
        scene.vertices(&vertices).set("VPC_VS_LAYER_CNTL", &[0xff00]).set("GRAS_MAX_LAYER_INDEX", &[2]);
        scene.code(FRAGMENT_CODE, "bary.f (ei)r0.z, 3, r0.x\nmov.u32u32 r0.w, r0.z\nmov.u32u32 r1.x, r0.z\nmov.u32u32 r1.y, r0.z\nend");
        let bytes = capture(scene.draw(STRIP, 4));
        let images = ["draw=0:mrt0", "draw=0:mrt0:layer=2", "draw=0:mrt0:layer=3"];
        let (replayed, frames) = replayed(&bytes, &options([9, 9], &images));
        let picture = |at: usize| replayed.images[at].as_deref().unwrap();
        assert_eq!([texel(picture(0), 3, 3), texel(picture(1), 3, 3)], [0, u32::MAX]);
        let why = replayed.images[2].as_ref().unwrap_err();
        assert_eq!(why, "mrt0 after draw 0: it has no layer 3: it has 3 layers, counted from 0");
        assert_eq!(frames.len(), 3);
    });
}

/// Work is counted together, but only draws have pictures.
#[test]
fn work_that_is_not_a_draw_has_no_picture() {
    each(|mut scene| {
        scene.stream.op("BLIT", &[3]);
        overlapping(&mut scene);
        let (replayed, _) = replayed(&capture(&mut scene), &options([9, 9], &["draw=0:mrt0", "draw=1:mrt0"]));
        assert_eq!(replayed.images[0], Err("mrt0 after draw 0: 0 is a blit, not a draw".to_owned()));
        assert!(replayed.images[1].is_ok());
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

/// Depth and colour of four samples, of which the primitive covers two.
#[test]
fn samples_have_a_history() {
    each(|mut scene| {
        for name in ["GRAS_RAS_MSAA_CNTL", "GRAS_DEST_MSAA_CNTL", "RB_RAS_MSAA_CNTL", "RB_DEST_MSAA_CNTL"] {
            scene.set(name, &[2]);
        }
        let a7xx = scene.stream.gpu.generation() == A7xx;
        // Four samples of a pixel lie together, in 16 rows.
        scene.set("RB_MRT[0].PITCH", &[SIZE / 4, SIZE * SIZE / 4]);
        scene.set("GRAS_SC_WINDOW_SCISSOR_BR", &[(SIZE - 1) | 15 << 16]);
        let [base, top] = [low(DATA + DEPTH), high(DATA + DEPTH)];
        scene.put(DEPTH, &[0.5f32.to_bits(); 0x1000]);
        scene.set("RB_DEPTH_BUFFER_INFO", &[4 | if a7xx { 3 << 5 } else { 0 }, SIZE / 2, 0, base, top, 0]);
        scene.set("RB_DEPTH_CNTL", &[1 | 1 << 1 | 1 << 2 | 1 << 6]);
        // Up to the middle of column 20: its samples 0 and 2, at 6/16 and 2/16.
        scene.vertices(&strip([-1.0, -1.0], [41.0 / 32.0 - 1.0, 1.0], 0.25, RED)).draw(STRIP, 4);
        let (replayed, _) = replayed(&capture(&mut scene), &options([20, 9], &["draw=0:mrt0:sample=1"]));
        let events = events(&replayed);
        let [event] = &events[..] else { panic!("{events:#?}") };
        assert_eq!(event["covered"], serde_json::json!([0, 2]));
        let tests = event["tests"].as_array().unwrap();
        let tested: Vec<(&Value, &Value)> =
            tests.iter().map(|test| (&test["sample"], &test["depth"])).collect();
        let depth = serde_json::json!([0.5, 0.25]);
        assert_eq!(tested, [(&0.into(), &depth), (&2.into(), &depth)]);
        let writes: Vec<(&Value, &Value, &Value)> = event["writes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|write| (&write["sample"], &write["before"]["bytes"], &write["after"]["bytes"]))
            .collect();
        let red = "ff0000ff".into();
        assert_eq!(writes, [(&0.into(), &"00000000".into(), &red), (&2.into(), &"00000000".into(), &red)]);
        let history = serde_json::to_value(replayed.pixel.as_ref().unwrap()).unwrap();
        let colours: Vec<(&Value, &Value)> = history["values"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|value| value["target"] == "mrt0")
            .map(|value| (&value["sample"], &value["bytes"]))
            .collect();
        let black = "00000000".into();
        assert_eq!(colours, [(&0.into(), &red), (&1.into(), &black), (&2.into(), &red), (&3.into(), &black)]);
        let second = replayed.images[0].as_deref().unwrap();
        assert_eq!([texel(second, 19, 9), texel(second, 20, 9)], [RED8, 0]);
    });
}

/// A history of a submit or an image that does not exist names it, with those that do.
#[test]
fn histories_of_what_is_not_there() {
    each(|mut scene| {
        overlapping(&mut scene);
        let bytes = capture(&mut scene);
        let not_there = |target, submits| {
            let wanted = PixelWanted { pixel: [9, 9, 0], target, submits };
            let options = ReplayOptions { pixel: Some(wanted.clone()), ..ReplayOptions::new(1 << 32) };
            replayed(&bytes, &options).0.pixel.unwrap().not_there(&wanted)
        };
        assert_eq!(not_there(None, 0..=u32::MAX), None);
        assert_eq!(not_there(Some(TargetName::Depth), 0..=0), None);
        let why = not_there(Some(TargetName::Colour(3)), 0..=u32::MAX);
        assert_eq!(why.as_deref(), Some("no draw has mrt3: images of draws are mrt0, depth"));
        let why = not_there(Some(TargetName::Stencil), 0..=u32::MAX);
        assert_eq!(why.as_deref(), Some("no draw has stencil: images of draws are mrt0, depth"));
        let why = not_there(None, 7..=7);
        assert_eq!(why.as_deref(), Some("no submit 7 was replayed: submit 0 was"));
        let why = not_there(None, 3..=u32::MAX);
        assert_eq!(why.as_deref(), Some("no submit from 3 on was replayed: submit 0 was"));
    });
}

/// A render area of 27 by 30 in bins of GMEM: stores are aligned, and nothing has written the last columns and rows.
#[test]
fn what_nothing_has_written_is_unknown() {
    each(|mut scene| {
        const LAST: [u32; 2] = [26, 29];
        scene.set("GRAS_SC_VIEWPORT_SCISSOR[0].TL", &[0, LAST[0] | LAST[1] << 16]);
        scene
            .vertices(&strip([-1.0, -1.0], [0.0, 1.0], 0.25, GREEN))
            .put(IMAGE, &[BLUE8; (SIZE * SIZE) as usize]);
        let start = scene.stream.words.clone();
        let (_, plain) = {
            scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[0, LAST[0] | LAST[1] << 16]).put(IMAGE, &[0; 1024]);
            let bytes = capture(scene.draw(STRIP, 4));
            replayed(&bytes, &options([9, 9], &[]))
        };
        let binned = |scene: &mut Scene<'_>, clears: bool, images: &[&str]| {
            scene.stream.words.clone_from(&start);
            bins(scene, |scene, [first, last]| {
                scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[first, last]);
                scene.set("RB_BLIT_SCISSOR_TL", &[0, LAST[0] | LAST[1] << 16]);
                if clears {
                    scene.set("RB_BLIT_CLEAR_COLOR_DW0", &[0, 0, 0, 0, 2 | 0xf << 4]);
                    resolve(scene);
                }
                scene.draw(STRIP, 4);
                scene.set("RB_BLIT_SCISSOR_TL", &[first, last]).set("RB_BLIT_INFO", &[0]);
                resolve(scene);
            });
            replayed(&capture(scene), &options([20, 9], images))
        };
        // All that is rendered is cleared: the pictures of the pass are those of a render in memory.
        let (_, frames) = binned(&mut scene, true, &[]);
        let diffs = compare_pictures(&plain, &frames);
        assert!(diffs.len() == 1 && !diffs.iter().any(PictureDiff::differs), "{diffs:?}");
        assert_eq!(decode(&frames["set000-submit000-pass000-mrt0"]).0, LAST[0] + 1);
        // Nothing is cleared: the right half is unknown, in GMEM, where it is stored, and in the history.
        let memory = format!("{DATA:#x}:R8G8B8A8_UNORM:32x32");
        let images = ["draw=0:mrt0", "draw=0:mrt0:stored", &memory];
        let (replayed, frames) = binned(&mut scene, false, &images);
        let frame = &frames["set000-submit000-pass000-mrt0"];
        for png in replayed.images.iter().map(|png| png.as_deref().unwrap()).chain([frame.as_slice()]) {
            assert_eq!([3, 20].map(|x| texel(png, x, 9)), [GREEN8, 0]);
        }
        assert_eq!(replayed.picture_remarks.len(), 4);
        let remark = &replayed.picture_remarks[0];
        assert!(remark.contains("256 pixels are unknown and transparent"), "{remark}");
        let events = events(&replayed);
        let [store] = &events[..] else { panic!("{events:#?}") };
        assert_eq!(
            (&store["type"], &store["writes"][0]["before"]["bytes"]),
            (&"store".into(), &"00000000".into())
        );
        assert_eq!(store["writes"][0]["after"], Value::Null);
        let mut text = Vec::new();
        replayed.pixel.as_ref().unwrap().text(&mut text).unwrap();
        assert!(String::from_utf8(text).unwrap().contains("-> unknown"));
    });
}

/// The values before the first write to a sample in GMEM, and before its first test of depth, are unknown.
#[test]
fn what_is_before_the_first_write_is_unknown() {
    each(|mut scene| {
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.25, GREEN));
        let a7xx = scene.stream.gpu.generation() == A7xx;
        scene.set("RB_DEPTH_BUFFER_INFO", &[4 | if a7xx { 3 << 5 } else { 0 }, SIZE / 8, 0, 0, 0, 0x8000]);
        // Always, and written.
        scene.set("RB_DEPTH_CNTL", &[1 | 1 << 1 | 7 << 2 | 1 << 6]);
        bins(&mut scene, |scene, [first, last]| {
            scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[first, last]);
            scene.draw(STRIP, 4).draw(STRIP, 4);
        });
        let (replayed, _) = replayed(&capture(&mut scene), &options([9, 9], &["draw=0:depth"]));
        let events = events(&replayed);
        let [first, second] = &events[..] else { panic!("{events:#?}") };
        let seen = |event: &Value| {
            (event["tests"][0]["depth"].clone(), event["writes"][0]["before"]["bytes"].clone())
        };
        assert_eq!(seen(first), (serde_json::json!([null, 0.25]), Value::Null));
        assert_eq!(seen(second), (serde_json::json!([0.25, 0.25]), "00ff00ff".into()));
        assert!(replayed.picture_remarks.is_empty(), "the depth of the bin is known after the draw");
    });
}

/// Sets up bins of 32 by 16, and gives the first and last pixel of each.
fn bins(scene: &mut Scene<'_>, mut bin: impl FnMut(&mut Scene<'_>, [u32; 2])) {
    scene.gmem(1);
    for n in 0..2 {
        let (first, last) = (n << 20, (SIZE - 1) | (16 * n + 15) << 16);
        scene.set("RB_WINDOW_OFFSET", &[first]).set("RB_WINDOW_OFFSET2", &[first]);
        let [base, top] = [low(DATA + IMAGE), high(DATA + IMAGE)];
        scene.set("RB_BLIT_GMEM_MSAA_CNTL", &[0, 0, 0x30 << 7, base, top, SIZE / 16]);
        bin(scene, [first, last]);
    }
}

/// The event that loads, stores or clears GMEM.
fn resolve(scene: &mut Scene<'_>) {
    let name = if scene.stream.gpu.generation() == A6xx { "BLIT" } else { "CCU_RESOLVE" };
    scene.event(name);
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
        bins(&mut scene, |scene, [first, last]| {
            scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[first, last]);
            scene.set("RB_BLIT_SCISSOR_TL", &[first, last]);
            scene.set("RB_BLIT_CLEAR_COLOR_DW0", &[BLUE8, 0, 0, 0, 2 | 0xf << 4]);
            resolve(scene);
            scene.draw(TRIANGLES, 3);
            scene.set("RB_BLIT_INFO", &[0]);
            resolve(scene);
        });
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
