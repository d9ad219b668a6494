//! Rays against boxes and triangles.

mod rig;

use std::collections::HashMap;
use unwedge_isa::amdgcn::Reg;
use unwedge_sim::MemoryFaultCause;
use unwedge_sim::amdgcn::{
    FaultKind, Initial, Missing, Outcome, Program, SimMemory, Timing, WaitCounter, run,
};
use unwedge_testkit::pack::bytes;

const BASE: u64 = 0x4_0000;
const NONE: u32 = u32::MAX;

struct Ray {
    extent: f32,
    origin: [f32; 3],
    direction: [f32; 3],
}

/// Straight along Z from the middle.
const AHEAD: Ray = Ray { extent: 100.0, origin: [0.0, 0.0, -10.0], direction: [0.001, 0.002, 1.0] };

/// The descriptor of a tree of so many nodes: address, order, growth in units in the last place.
fn tree(nodes: u64, sorted: bool, grow: u32) -> [u32; 4] {
    let base = (BASE >> 8) as u32;
    [base, grow << 23 | u32::from(sorted) << 31, (nodes - 1) as u32, 1 << 24 | 8 << 28]
}

/// Runs one test of a node; the result stands in `v[40:43]`.
fn shoot(
    name: &str,
    form: &str,
    nodes: &[u32],
    descriptor: [u32; 4],
    ray: &Ray,
    node: u64,
    timing: Timing,
) -> ([u32; 4], Outcome) {
    let gpu = rig::gpu(name);
    let program = Program::new(&rig::words(&format!("{form}\ns_endpgm"), &gpu), 0, gpu);
    let mut memory = SimMemory::default();
    memory.map(BASE, bytes(nodes)).expect("free");
    memory.map(rig::BUFFER, vec![0; rig::SIZE]).expect("free");
    let inverse = ray.direction.map(|part| 1.0 / part);
    let floats = [&[ray.extent][..], &ray.origin, &ray.direction, &inverse].concat();
    let wide = form.contains("bvh64");
    let mut registers = vec![node as u32];
    if wide {
        registers.push((node >> 32) as u32);
    }
    registers.extend(floats.iter().map(|value| value.to_bits()));
    let mut dispatch = rig::dispatch(&gpu, timing);
    dispatch.scalars.extend((12..).zip(descriptor));
    dispatch.vectors.extend((20u8..).zip(registers).map(|(n, value)| (n, Initial::Value(value))));
    let mut seen: HashMap<Reg, Vec<u32>> = HashMap::new();
    let mut tell = |trace: &unwedge_sim::amdgcn::Trace| seen.extend(trace.writes.iter().cloned());
    let outcome = run(&program, &mut memory, &dispatch, Some(&mut tell));
    let result = [40u8, 41, 42, 43].map(|n| seen.get(&Reg::vgpr(n)).map_or(0, |lanes| lanes[5]));
    (result, outcome)
}

const FORMS: [(&str, &str); 4] = [
    ("gfx1030", "image_bvh_intersect_ray v[40:43], v[20:30], s[12:15]"),
    ("gfx1030", "image_bvh64_intersect_ray v[40:43], v[20:31], s[12:15]"),
    ("gfx1100", "image_bvh_intersect_ray v[40:43], [v20, v21, v[22:24], v[25:27], v[28:30]], s[12:15]"),
    (
        "gfx1100",
        "image_bvh64_intersect_ray v[40:43], [v[20:21], v22, v[23:25], v[26:28], v[29:31]], s[12:15]",
    ),
];

/// A node of four boxes, each two wide and high, between two places along Z.
fn boxes(spans: [(f32, f32, f32); 4], half: bool) -> Vec<u32> {
    let mut words: Vec<u32> = (1..5).map(|child| child * 0x100).collect();
    let mut numbers = Vec::new();
    for (x, near, far) in spans {
        numbers.extend([x - 1.0, -1.0, near, x + 1.0, 1.0, far]);
    }
    if half {
        // Small integers.
        let bits = |value: f32| {
            let full = value.to_bits();
            if value == 0.0 {
                0
            } else {
                full >> 16 & 0x8000 | ((full >> 23 & 0xff) - 112) << 10 | full >> 13 & 0x3ff
            }
        };
        words.extend(numbers.chunks(2).map(|pair| bits(pair[0]) | bits(pair[1]) << 16));
    } else {
        words.extend(numbers.iter().map(|value| value.to_bits()));
        words.extend([0; 4]);
    }
    words
}

#[test]
fn boxes_that_are_met() {
    // The third stands aside; the others at different distances.
    let spans = [(0.0, 6.0, 7.0), (0.0, 1.0, 2.0), (50.0, 1.0, 2.0), (0.0, 3.0, 9.0)];
    for (name, form) in FORMS {
        for (half, node) in [(false, 5u64), (true, 4)] {
            let nodes = boxes(spans, half);
            let shoot = |sorted: bool, ray: &Ray| {
                let size = nodes.len() as u64 / 16;
                let (result, outcome) =
                    shoot(name, form, &nodes, tree(size, sorted, 1), ray, node, Timing::Plain);
                assert!(outcome.faults.is_empty(), "{name} {form}: {:?}", outcome.faults);
                result
            };
            assert_eq!(shoot(false, &AHEAD), [0x100, 0x200, NONE, 0x400], "{form}");
            assert_eq!(shoot(true, &AHEAD), [0x200, 0x400, 0x100, NONE], "{form}");
            // Not farther than the extent, not behind; from within a box it is met.
            let near = Ray { extent: 12.0, ..AHEAD };
            assert_eq!(shoot(true, &near), [0x200, NONE, NONE, NONE]);
            let behind = Ray { direction: [0.001, 0.002, -1.0], ..AHEAD };
            assert_eq!(shoot(true, &behind), [NONE; 4]);
            let inside = Ray { origin: [0.0, 0.0, 6.5], ..AHEAD };
            assert_eq!(shoot(true, &inside), [0x400, 0x100, NONE, NONE]);
        }
    }
}

/// Five vertices make four triangles, of which the pointer names one.
#[test]
fn triangles_that_are_met() {
    let vertices: [[f32; 3]; 5] =
        [[-2.0, -2.0, 4.0], [2.0, -2.0, 4.0], [0.0, 3.0, 6.0], [5.0, 3.0, 8.0], [-3.0, 3.0, 5.0]];
    let mut words: Vec<u32> = vertices.iter().flatten().map(|value| value.to_bits()).collect();
    // For each triangle the second and third coordinate.
    words.push(0x0909_0909);
    let corners = [[0, 1, 2], [1, 3, 2], [2, 3, 4], [2, 4, 0]];
    for (name, form) in FORMS {
        for (kind, corner) in corners.iter().enumerate() {
            let [a, b, c] = corner.map(|n: usize| vertices[n].map(f64::from));
            // Through a point of the triangle, or beside it.
            for (weights, hit) in
                [([0.2, 0.5, 0.3], true), ([0.6, 0.2, 0.2], true), ([-0.2, 0.7, 0.5], false)]
            {
                let point: [f64; 3] = std::array::from_fn(|axis| {
                    weights[0] * a[axis] + weights[1] * b[axis] + weights[2] * c[axis]
                });
                for origin in [[0.25, 0.5, -10.0], [1.0, -7.0, 20.0], [-30.0, 2.0, 1.0]] {
                    let direction: [f64; 3] = std::array::from_fn(|axis| (point[axis] - origin[axis]) / 3.0);
                    let ray = Ray {
                        extent: 100.0,
                        origin: origin.map(|value| value as f32),
                        direction: direction.map(|value| value as f32),
                    };
                    let (result, outcome) =
                        shoot(name, form, &words, tree(1, true, 0), &ray, kind as u64, Timing::Plain);
                    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
                    let [t, denominator, i, j] = result.map(|bits| f64::from(f32::from_bits(bits)));
                    if !hit {
                        assert!(t.is_infinite() && denominator == 1.0, "{name} {kind} {weights:?}");
                        continue;
                    }
                    let close = |found: f64, expected: f64| (found / denominator - expected).abs() < 1e-3;
                    assert!(close(t, 3.0), "{name} {kind} {origin:?}: {t} {denominator}");
                    assert!(
                        close(i, weights[1]) && close(j, weights[2]),
                        "{name} {kind}: {i} {j} {denominator}"
                    );
                }
            }
        }
        // Behind the ray nothing is met.
        let away = Ray { direction: [0.0, 0.0, -1.0], ..AHEAD };
        let (result, _) = shoot(name, form, &words, tree(1, true, 0), &away, 0, Timing::Plain);
        assert_eq!(result[..2], [f32::INFINITY.to_bits(), 1f32.to_bits()]);
    }
}

#[test]
fn other_nodes_and_what_is_not_emulated() {
    let nodes = boxes([(0.0, 1.0, 2.0); 4], false);
    for (name, form) in FORMS {
        let go = |descriptor, node| shoot(name, form, &nodes, descriptor, &AHEAD, node, Timing::Plain);
        // Instances and procedural nodes are the program's; so is what lies beyond the end.
        for node in [6, 7, 2 << 3 | 4, 1 << 3 | 5] {
            let (result, outcome) = go(tree(2, true, 0), node);
            assert_eq!((result, outcome.faults.len()), ([NONE; 4], 0), "{node}");
        }
        let not = |descriptor| {
            let outcome = go(descriptor, 5).1;
            outcome.faults.iter().any(|fault| matches!(fault.kind, FaultKind::NotEmulated(_)))
        };
        assert!(not([0; 4]));
        let [a, b, c, d] = tree(2, true, 0);
        assert!(not([a, b, c, d & !(1 << 24)]));
        // Memory that is not there.
        let (_, outcome) = go([a + 0x100, b, c, d], 5);
        let unmapped = |kind: &FaultKind| matches!(kind, FaultKind::Memory(fault) if fault.cause == MemoryFaultCause::Unmapped);
        assert!(outcome.faults.iter().any(|fault| unmapped(&fault.kind)));
    }
}

#[test]
fn results_are_late() {
    let nodes = boxes([(0.0, 1.0, 2.0); 4], false);
    for (name, form) in FORMS {
        let store = if name == "gfx1100" { "global_store_b32" } else { "global_store_dword" };
        let go = |wait: &str| {
            let code = format!("{form}\n{wait}\n{store} v[2:3], v41, off");
            let outcome =
                shoot(name, &code, &nodes, tree(2, true, 0), &AHEAD, 5, Timing::Adversarial { seed: 2 }).1;
            outcome.faults.into_iter().find_map(|fault| match fault.kind {
                FaultKind::Stored(_, missing) => Some(missing),
                _ => None,
            })
        };
        assert_eq!(go(""), Some(Missing::Load { at: 0, counter: WaitCounter::Vm }), "{name}");
        assert_eq!(go("s_waitcnt vmcnt(0)"), None, "{name}");
    }
}

/// Directions of 16 bits: on gfx10.3 one after the other, on gfx11 an axis's direction and inverse together.
#[test]
fn short_directions() {
    let spans = [(0.0, 6.0, 7.0), (0.0, 1.0, 2.0), (50.0, 1.0, 2.0), (0.0, 3.0, 9.0)];
    let nodes = boxes(spans, false);
    // 0.5, 0.25 and 1 with their inverses.
    let (direction, inverse) = ([0x3800u32, 0x3400, 0x3c00], [0x4000u32, 0x4400, 0x3c00]);
    for (name, form, registers) in [
        (
            "gfx1030",
            "image_bvh_intersect_ray v[40:43], v[20:27], s[12:15] a16",
            [
                direction[0] | direction[1] << 16,
                direction[2] | inverse[0] << 16,
                inverse[1] | inverse[2] << 16,
            ],
        ),
        (
            "gfx1100",
            "image_bvh_intersect_ray v[40:43], [v20, v21, v[22:24], v[25:27]], s[12:15] a16",
            std::array::from_fn(|axis| direction[axis] | inverse[axis] << 16),
        ),
    ] {
        let moves: String =
            registers.iter().zip(25..).map(|(value, n)| format!("v_mov_b32 v{n}, {value:#x}\n")).collect();
        // From where the first and the fourth box are met.
        let ray = Ray { extent: 100.0, origin: [-2.5, -1.25, 1.5], direction: [1.0; 3] };
        let code = format!("{moves}{form}");
        let (result, outcome) = shoot(name, &code, &nodes, tree(2, true, 0), &ray, 5, Timing::Plain);
        assert!(outcome.faults.is_empty(), "{name}: {:?}", outcome.faults);
        // At a distance of 3 to 7 along X it is within the boxes: at 4.5 to 5.5 along Z, and 1.5 to 7.5.
        assert_eq!(result, [0x400, 0x100, NONE, NONE], "{name}");
    }
}
