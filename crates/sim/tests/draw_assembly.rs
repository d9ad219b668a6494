//! Which vertices the primitives of draws have, for every kind of draw packet: stream-out writes them.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{DATA, high, low, register};
use scene::*;
use unwedge_base::Generation::{self, A6xx, A7xx};
use unwedge_hw::Db;

/// Bytes that stream-out may write.
const ROOM: u32 = 0x4000;
/// Where the parameters of indirect draws are.
const PARAMETERS: u64 = RESULTS;
/// Where their count is.
const COUNT: u64 = RESULTS + 0x400;

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    for generation in [A6xx, A7xx] {
        let mut scene = Scene::new(&db, generation);
        record(&mut scene);
        test(scene);
    }
}

/// Vertices that are numbered by their x; that of each and its red are written, and nothing is rasterized.
fn record(scene: &mut Scene<'_>) {
    let vertices: Vec<Vertex> = (0..64).map(|n| vertex(n as f32, 0.0, 0.0, [100.0 + n as f32; 4])).collect();
    scene.more(ROOM as usize).vertices(&vertices);
    scene.set("PC_RASTER_CNTL", &[4]).set("VPC_SO_DISABLE", &[0]);
    scene.set("VPC_SO_CNTL", &[1 << 16]);
    // Component 0 to the second dword, component 4 to the first.
    [1 << 11 | 1 << 2, 0, 1 << 11].into_iter().for_each(|word| {
        scene.set("VPC_SO_PROG", &[word]);
    });
    scene.set("VPC_SO[0].BUFFER_BASE", &[low(MORE), high(MORE), ROOM, 2, 0]);
    scene.set("VPC_SO_STREAM_CNTL", &[1 | 1 << 15]);
}

/// Numbers and reds of the vertices that the draws since the last time wrote.
fn recorded(scene: &mut Scene<'_>) -> Vec<[u32; 2]> {
    scene.done();
    let offset = scene.stream.gpu.reg_offset("VPC_SO[0].BUFFER_OFFSET").unwrap();
    let written = u64::from(register(&scene.machine, offset));
    scene.set("VPC_SO[0].BUFFER_OFFSET", &[0]);
    let float = |at: u64| f32::from_bits(scene.read(MORE + at)) as u32;
    (0..written).step_by(8).map(|at| [float(at), float(at + 4)]).collect()
}

fn numbers(scene: &mut Scene<'_>) -> Vec<u32> {
    recorded(scene).into_iter().map(|[number, _]| number).collect()
}

/// Indices in memory, of so many bytes each.
fn indices(scene: &mut Scene<'_>, bytes: usize, indices: &[u32]) {
    let bytes: Vec<u8> = indices.iter().flat_map(|index| index.to_le_bytes()[..bytes].to_vec()).collect();
    let words: Vec<u32> = bytes
        .chunks(4)
        .map(|part| part.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)))
        .collect();
    scene.put(INDICES, &words);
}

/// A draw of indices from the first one on.
fn draw_indexed(scene: &mut Scene<'_>, primitive: u32, bytes: usize, first: u32, count: u32, room: u32) {
    let size = bytes.trailing_zeros() << 10;
    let [base, top] = [low(DATA + INDICES), high(DATA + INDICES)];
    scene.stream.op("DRAW_INDX_OFFSET", &[primitive | size, 1, count, first, base, top, room]);
}

/// The vertices of a primitive that are drawn; those that are only adjacent are not written.
#[test]
fn every_kind_of_primitive() {
    let cases: [(&str, u32, u32, &[u32]); 13] = [
        ("points", 1, 3, &[0, 1, 2]),
        ("lines", 2, 5, &[0, 1, 2, 3]),
        ("line strip", 3, 4, &[0, 1, 1, 2, 2, 3]),
        ("triangles", 4, 7, &[0, 1, 2, 3, 4, 5]),
        ("triangle fan", 5, 5, &[1, 2, 0, 2, 3, 0, 3, 4, 0]),
        ("triangle strip", 6, 5, &[0, 1, 2, 1, 3, 2, 2, 3, 4]),
        ("line loop", 7, 3, &[0, 1, 1, 2, 2, 0]),
        ("rectangles", 8, 4, &[0, 1, 2, 3]),
        ("lines with adjacency", 10, 8, &[1, 2, 5, 6]),
        ("line strip with adjacency", 11, 5, &[1, 2, 2, 3]),
        ("triangles with adjacency", 12, 12, &[0, 2, 4, 6, 8, 10]),
        ("triangle strip with adjacency", 13, 10, &[0, 2, 4, 4, 2, 6, 4, 6, 8]),
        ("points of a list", 9, 2, &[0, 1]),
    ];
    each(|mut scene| {
        for (name, primitive, count, expected) in cases {
            scene.draw(primitive, count);
            let found = numbers(&mut scene);
            // Which vertex a triangle of a strip begins with does not change what it is.
            let rotated = |at: usize, size: usize| {
                (0..size).any(|turn| (0..size).all(|n| found[at + (n + turn) % size] == expected[at + n]))
            };
            let size = if matches!(primitive, 6 | 13) { 3 } else { 1 };
            assert_eq!(found.len(), expected.len(), "{name}: {found:?}");
            assert!((0..found.len()).step_by(size).all(|at| rotated(at, size)), "{name}: {found:?}");
        }
    });
}

#[test]
fn every_size_of_index_with_base_and_first() {
    each(|mut scene| {
        for bytes in [1, 2, 4] {
            indices(&mut scene, bytes, &[9, 7, 5, 3, 1, 0, 2, 4]);
            draw_indexed(&mut scene, TRIANGLES, bytes, 0, 6, 8);
            assert_eq!(numbers(&mut scene), [9, 7, 5, 3, 1, 0], "{bytes}");
            // From the third index on, ten vertices further.
            scene.set("VFD_INDEX_OFFSET", &[10]);
            draw_indexed(&mut scene, TRIANGLES, bytes, 2, 3, 8);
            assert_eq!(numbers(&mut scene), [15, 13, 11], "{bytes}");
            // Past the end of the buffer an index is 0.
            draw_indexed(&mut scene, TRIANGLES, bytes, 7, 3, 8);
            assert_eq!(numbers(&mut scene), [14, 10, 10], "{bytes}");
            scene.set("VFD_INDEX_OFFSET", &[0]);
        }
        scene.set("VFD_INDEX_OFFSET", &[20]).draw(TRIANGLES, 3);
        assert_eq!(numbers(&mut scene), [20, 21, 22], "without indices the first vertex");
    });
}

#[test]
fn restarts_by_the_size_of_indices() {
    each(|mut scene| {
        for bytes in [1usize, 2, 4] {
            let restart = u32::MAX >> (32 - 8 * bytes);
            let list = [0, 1, 2, restart, 3, 4, restart, restart, 5, 6, 7];
            indices(&mut scene, bytes, &list);
            scene.set("PC_PRIMITIVE_CNTL_0", &[1]).set("PC_RESTART_INDEX", &[u32::MAX]);
            let cases: [(u32, &[u32]); 4] = [
                (3, &[0, 1, 1, 2, 3, 4, 5, 6, 6, 7]),
                (STRIP, &[0, 1, 2, 5, 6, 7]),
                (5, &[1, 2, 0, 6, 7, 5]),
                // A list goes on, without what was incomplete.
                (TRIANGLES, &[0, 1, 2, 5, 6, 7]),
            ];
            for (primitive, expected) in cases {
                draw_indexed(&mut scene, primitive, bytes, 0, 11, 11);
                assert_eq!(numbers(&mut scene), expected, "{bytes} {primitive}");
            }
            // A restart is found before the base is added.
            scene.set("VFD_INDEX_OFFSET", &[1]);
            draw_indexed(&mut scene, 3, bytes, 0, 6, 11);
            assert_eq!(numbers(&mut scene), [1, 2, 2, 3, 4, 5], "{bytes}");
            scene.set("VFD_INDEX_OFFSET", &[0]).set("PC_PRIMITIVE_CNTL_0", &[0]);
        }
    });
}

/// The colour is the instance's, which its base and its divisor decide.
#[test]
fn instances_have_a_base_and_a_divisor() {
    each(|mut scene| {
        let colour = 1 << 31 | 0x82 << 20 | 1 << 17 | 16 << 5;
        for (divisor, base, expected) in
            [(1, 0, [100, 101, 102, 103]), (1, 5, [105, 106, 107, 108]), (2, 3, [103, 103, 104, 104])]
        {
            scene.set("VFD_DECODE[0].INSTR", &[1 << 31 | 0x82 << 20, 1, colour, divisor]);
            scene.set("VFD_INSTANCE_START_OFFSET", &[base]).draw_instances(1, 4, 2);
            let expected: Vec<[u32; 2]> = expected.iter().flat_map(|red| [[0, *red], [1, *red]]).collect();
            assert_eq!(recorded(&mut scene), expected, "{divisor} {base}");
        }
    });
}

fn parameters(scene: &mut Scene<'_>, words: &[u32]) {
    scene.put(PARAMETERS, words);
}

#[test]
fn indirect_draws() {
    each(|mut scene| {
        let place = [low(DATA + PARAMETERS), high(DATA + PARAMETERS)];
        let index = [low(DATA + INDICES), high(DATA + INDICES)];
        let counted = [low(DATA + COUNT), high(DATA + COUNT)];
        indices(&mut scene, 2, &[8, 6, 4, 2, 0, 1, 3, 5]);
        // Vertices, instances, first vertex, first instance.
        parameters(&mut scene, &[2, 1, 3, 0]);
        scene.stream.op("DRAW_INDIRECT", &[1 | 2 << 6, place[0], place[1]]);
        assert_eq!(numbers(&mut scene), [3, 4]);
        // Indices, instances, first index, base vertex, first instance.
        parameters(&mut scene, &[3, 2, 1, 10, 0]);
        let size = 1 << 10;
        scene.stream.op("DRAW_INDX_INDIRECT", &[1 | size, index[0], index[1], 16, place[0], place[1]]);
        assert_eq!(numbers(&mut scene), [16, 14, 12, 16, 14, 12]);
        // Three draws, 32 bytes apart.
        let list = [[1, 1, 0, 0, 0, 0, 0, 0], [2, 1, 7, 0, 0, 0, 0, 0], [1, 1, 30, 0, 0, 0, 0, 0]];
        parameters(&mut scene, list.as_flattened());
        scene.stream.op("DRAW_INDIRECT_MULTI", &[1 | 2 << 6, 2, 3, place[0], place[1], 32]);
        assert_eq!(numbers(&mut scene), [0, 7, 8, 30]);
        // As many as memory says, and no more than the packet.
        for (count, expected) in [(0, &[][..]), (2, &[0, 7, 8]), (9, &[0, 7, 8, 30])] {
            scene.put(COUNT, &[count]);
            let payload = [1 | 2 << 6, 6, 3, place[0], place[1], counted[0], counted[1], 32];
            scene.stream.op("DRAW_INDIRECT_MULTI", &payload);
            assert_eq!(numbers(&mut scene), expected, "{count}");
        }
        let list = [[1, 1, 7, 0, 0, 0, 0, 0], [2, 1, 0, 20, 0, 0, 0, 0]];
        parameters(&mut scene, list.as_flattened());
        let payload = [1 | size, 4, 2, index[0], index[1], 8, place[0], place[1], 32];
        scene.stream.op("DRAW_INDIRECT_MULTI", &payload);
        assert_eq!(numbers(&mut scene), [5, 28, 26]);
        scene.put(COUNT, &[1]);
        let payload = [1 | size, 7, 2, index[0], index[1], 8, place[0], place[1], counted[0], counted[1], 32];
        scene.stream.op("DRAW_INDIRECT_MULTI", &payload);
        assert_eq!(numbers(&mut scene), [5]);
    });
}

/// The shader is given the number of the draw, the first vertex and the first instance as constants.
#[test]
fn draws_of_one_packet_are_numbered() {
    each(|mut scene| {
        let place = [low(DATA + PARAMETERS), high(DATA + PARAMETERS)];
        parameters(&mut scene, [[1, 1, 5, 0], [1, 1, 6, 9]].as_flattened());
        // The constants are integers; red is the sum of the three.
        scene.code(
            VERTEX_CODE,
            "mov.u32u32 r1.x, c4.x\nadd.u r1.x, r1.x, c4.y\nadd.u r1.x, r1.x, c4.z\ncov.u32f32 r1.x, r1.x\nend",
        );
        let payload = [1 | 2 << 6, 2 | 4 << 8, 2, place[0], place[1], 16];
        scene.stream.op("DRAW_INDIRECT_MULTI", &payload);
        assert_eq!(recorded(&mut scene), [[5, 5], [6, 1 + 6 + 9]]);
    });
}

/// A draw of what stream-out wrote before, counted in bytes.
#[test]
fn automatic_draws() {
    each(|mut scene| {
        scene.put(COUNT, &[5 * 32 + 64]);
        let place = [low(DATA + COUNT), high(DATA + COUNT)];
        scene.stream.op("DRAW_AUTO", &[1 | 2 << 6, 1, place[0], place[1], 64, 32]);
        assert_eq!(numbers(&mut scene), [0, 1, 2, 3, 4]);
    });
}

/// Attributes past the end of their buffer are zeros.
#[test]
fn attributes_end_with_their_buffer() {
    each(|mut scene| {
        let [base, top] = [low(DATA + VERTICES), high(DATA + VERTICES)];
        // Two vertices, and the position of a third.
        scene.set("VFD_FETCH[0].BASE", &[base, top, 2 * 32 + 16, 32]).draw(1, 4);
        assert_eq!(recorded(&mut scene), [[0, 100], [1, 101], [2, 0], [0, 0]]);
    });
}

fn scene_of(db: &Db, generation: Generation) -> Scene<'_> {
    let mut scene = Scene::new(db, generation);
    record(&mut scene);
    scene
}

/// Every vertex format gives the components that its texels hold, with 0, 0, 1 for those that it has not.
#[test]
fn every_vertex_format() {
    use unwedge_hw::adreno::format::{ColorSwap, Format, Numeric};
    let db = Db::builtin();
    let mut checked = 0;
    for format in Format::all().filter(|format| !format.is_block()) {
        let Some(number) = format.vertex_format() else { continue };
        let codec = format.codec();
        let float = codec.numeric() == Numeric::Float;
        let swap = if format.swap() == ColorSwap::Wzyx { 0 } else { format.swap().code() };
        let mut scene = scene_of(&db, A7xx);
        let bytes = [
            0x12u8, 0x34, 0x3a, 0x40, 0x01, 0x7f, 0x3c, 0x3e, 0x10, 0x20, 0x30, 0x3f, 0x05, 0x06, 0x07, 0x41,
        ];
        let size = codec.bytes() as usize;
        if size > bytes.len() {
            continue;
        }
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        scene.put(VERTICES, &words);
        let instruction = u32::from(float) << 31 | swap << 28 | number.0 << 20;
        scene.set("VFD_DECODE[0].INSTR", &[instruction, 1, instruction, 1]);
        // All four components of the colour are written.
        scene.set("VPC_SO_CNTL", &[1 << 16]);
        [0, 2].into_iter().for_each(|first: u32| {
            scene.set("VPC_SO_PROG", &[1 << 11 | first << 2 | 1 << 23 | (first + 1) << 14]);
        });
        scene.set("VPC_SO[0].BUFFER_BASE", &[low(MORE), high(MORE), ROOM, 4, 0]).draw(1, 1).done();
        let found = [0, 1, 2, 3].map(|n| scene.read(MORE + 4 * n));
        // Of the same number there may be a form whose integers become floats.
        let mut expected = vec![codec.unpack(&bytes[..size], 0, 0).unwrap()];
        for other in Format::all()
            .filter(|other| other.vertex_format() == Some(number) && other.swap() == format.swap())
        {
            expected.extend(other.codec().unpack(&bytes[..size], 0, 0));
        }
        assert!(expected.contains(&found), "{}: {found:x?}, not {expected:x?}", format.name());
        checked += 1;
    }
    assert!(checked > 60, "{checked}");
}
