//! Rays against nodes of a tree of boxes: `image_bvh_intersect_ray` of gfx10.3 and gfx11.
//!
//! Facts: AMD's manuals of RDNA 2 and 3 and its driver for the descriptor, LLVM for short directions, Mesa for the nodes and for what hardware does at
//! edges of triangles. Numbers are rounded step by step in 32 bits; hardware's steps are not documented, so the last bits
//! of what a triangle gives may differ, and the scale of numerator and denominator does: only their ratios mean something.
//! Nodes are read when the instruction is issued, the result arrives late. Not emulated, and reported: the nodes of gfx12,
//! flags in pointers, other orders than the nearest first, the identifier in place of barycentric coordinates.

use super::access::{self, Dst, MemorySpace, Read};
use super::apply::{self};
use super::counters::WaitCounter;
use super::decoded::DecodedInst;
use super::fault::FaultKind;
use super::issue;
use super::lanes::{bits, splat};
use super::machine::Machine;
use super::operand::number;
use super::pending::RAYS;
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Field, Format, Mod};
use unwedge_isa::amdgcn::semantics::Lanes;
use unwedge_isa::amdgcn::semantics::soft::{self, Env};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand, Reg};

/// What stands for no node.
const INVALID: u32 = u32::MAX;

/// A test of rays with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct RayOp {
    data: Reg,
    descriptor: Reg,
    /// The registers of the address: node, extent, origin, direction and its inverse.
    address: [u8; 12],
    wide: bool,
    short: bool,
}

/// A descriptor of a tree.
struct Tree {
    base: u64,
    last: u64,
    grow: u32,
    sorted: bool,
}

impl Tree {
    fn read(words: [u32; 4], generation: Gfx) -> Result<Tree, &'static str> {
        let all = words.iter().rev().fold(0u128, |all, word| all << 32 | u128::from(*word));
        let field = |lsb: u32, width: u32| (all >> lsb & ((1 << width) - 1)) as u64;
        if field(124, 4) != 8 {
            return Err("a descriptor that is not a tree's");
        }
        if field(120, 1) == 0 {
            return Err("rays that give the triangle's identifier");
        }
        let sorted = field(63, 1) != 0;
        if generation >= Gfx::Gfx11 && sorted && field(53, 2) != 0 {
            return Err("an order of boxes that is not the nearest first");
        }
        Ok(Tree { base: field(0, 40) << 8, last: field(64, 42), grow: field(55, 8) as u32, sorted })
    }
}

struct Ray {
    extent: f32,
    origin: [f32; 3],
    direction: [f32; 3],
    inverse: [f32; 3],
}

impl RayOp {
    pub(super) fn new(inst: &Inst, gpu: &Gpu) -> Option<RayOp> {
        let wide = match inst.opcode() {
            Opcode::image_bvh_intersect_ray => false,
            Opcode::image_bvh64_intersect_ray => true,
            _ => return None,
        };
        let short = inst.mods.has(Mod::A16);
        let mut rays = RayOp { data: Reg::NULL, descriptor: Reg::NULL, address: [0; 12], wide, short };
        let node = 1 + u8::from(wide);
        let grouped = gpu.generation() >= Gfx::Gfx11;
        for (slot, operand) in inst.written() {
            match (slot.field, operand) {
                (Field::Vdata, Operand::Reg { reg, .. }) => rays.data = reg,
                (Field::Srsrc, Operand::Reg { reg, .. }) => rays.descriptor = reg,
                (_, Operand::Reg { reg, .. }) if reg.is_vgpr() => {
                    rays.address = std::array::from_fn(|at| (reg.index() as u8).wrapping_add(at as u8));
                }
                (_, Operand::List(count)) => {
                    let sizes = if grouped { [node, 1, 3, 3, 3] } else { [1; 5] };
                    let parts = inst.list.iter().take(count.into()).zip(sizes.into_iter().chain([1; 13]));
                    let all = parts.flat_map(|(first, size)| (0..size).map(move |at| first.wrapping_add(at)));
                    rays.address.iter_mut().zip(all).for_each(|(place, register)| *place = register);
                }
                _ => {}
            }
        }
        (inst.row().format == Format::Mimg).then_some(rays)
    }
}

/// Children whose boxes the ray meets, in their places or the nearest first.
fn boxes(tree: &Tree, ray: &Ray, children: [u32; 4], bounds: [[f32; 6]; 4]) -> [u32; 4] {
    let mut found = [(f32::INFINITY, INVALID); 4];
    for ((place, child), bounds) in found.iter_mut().zip(children).zip(bounds) {
        let (mut enter, mut leave, mut sane) = (f32::NEG_INFINITY, f32::INFINITY, true);
        for axis in 0..3 {
            let at = |bound: f32| (bound - ray.origin[axis]) * ray.inverse[axis];
            let (mut near, mut far) = (at(bounds[axis]), at(bounds[axis + 3]));
            sane &= !near.is_nan() && !far.is_nan();
            if ray.inverse[axis].is_sign_negative() {
                std::mem::swap(&mut near, &mut far);
            }
            (enter, leave) = (enter.max(near), leave.min(far));
        }
        // Of the exit so many units in the last place more.
        let grown = f32::from_bits((leave + 0.0).abs().to_bits().saturating_add(tree.grow).min(0x7f80_0000));
        if sane && leave >= 0.0 && enter <= grown && enter < ray.extent {
            *place = (enter, child);
        }
    }
    if tree.sorted {
        for (a, b) in [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)] {
            if found[b].0 < found[a].0 {
                found.swap(a, b);
            }
        }
    }
    found.map(|(_, child)| child)
}

/// Numerator and denominator of the distance, and of two barycentric coordinates that the node chooses.
fn triangle(ray: &Ray, vertices: [[f32; 3]; 3], chosen: u32) -> [u32; 4] {
    let miss = [f32::INFINITY.to_bits(), 1f32.to_bits(), 0, 0];
    let size = ray.direction.map(f32::abs);
    let z = match size {
        [x, y, z] if x >= y => {
            if x >= z {
                0
            } else {
                2
            }
        }
        [_, y, z] => {
            if y >= z {
                1
            } else {
                2
            }
        }
    };
    let (x, y) = ((z + 1) % 3, (z + 2) % 3);
    let along = ray.direction[z];
    // Projected along the ray, times its longest part.
    let points = vertices.map(|vertex| {
        let relative: [f32; 3] = std::array::from_fn(|axis| vertex[axis] - ray.origin[axis]);
        let flat = |axis: usize| relative[axis] * along - ray.direction[axis] * relative[z];
        (flat(x), flat(y), relative[z])
    });
    let edges: [f32; 3] = std::array::from_fn(|at| {
        let (next, last) = (points[(at + 1) % 3], points[(at + 2) % 3]);
        last.0 * next.1 - last.1 * next.0
    });
    let weights = edges.map(|edge| edge * along);
    let numerator = edges[0] * points[0].2 + edges[1] * points[1].2 + edges[2] * points[2].2;
    let denominator = weights[0] + weights[1] + weights[2];
    let outside = edges.iter().any(|edge| *edge < 0.0) && edges.iter().any(|edge| *edge > 0.0);
    let ahead = if denominator < 0.0 { -numerator } else { numerator };
    // On the edge where the second coordinate is zero hardware seems to miss.
    let wrong = denominator == 0.0 || denominator.is_nan() || edges[1] == 0.0;
    if outside || wrong || ahead.is_nan() || ahead < 0.0 {
        return miss;
    }
    let weight = |shift: u32| weights.get((chosen >> shift & 3) as usize).copied().unwrap_or(weights[0]);
    [numerator, denominator, weight(0), weight(2)].map(f32::to_bits)
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, rays: &RayOp) {
    let generation = machine.gpu.generation();
    let lanes = wave.exec(&machine.gpu);
    let words = [0, 1, 2, 3].map(|n| apply::address_scalar(machine, wave, Reg(rays.descriptor.0 + n)));
    if generation >= Gfx::Gfx12 {
        return machine.fault(wave, FaultKind::NotEmulated("rays of gfx12"));
    }
    let tree = match Tree::read(words, generation) {
        Ok(tree) => tree,
        Err(what) => return machine.fault(wave, FaultKind::NotEmulated(what)),
    };
    let count = 11 + usize::from(rays.wide) - if rays.short { 3 } else { 0 };
    let registers: Vec<Lanes> = rays.address[..count]
        .iter()
        .map(|n| apply::address_lanes(machine, wave, Reg::vgpr(*n), lanes))
        .collect();
    let first = usize::from(rays.wide);
    let flags = generation >= Gfx::Gfx11 && words[3] >> 23 & 1 != 0;
    let mut read = Read { values: vec![splat(0); 4], unknown: Vec::new() };
    for lane in bits(lanes) {
        let mut node = u64::from(registers[0][lane]);
        if rays.wide {
            node |= u64::from(registers[1][lane]) << 32;
        }
        if flags && node >> 54 != 0 {
            return machine.fault(wave, FaultKind::NotEmulated("flags in the pointer to a node"));
        }
        let float = |at: usize| f32::from_bits(registers[first + at][lane]);
        let three = |at: usize| [float(at), float(at + 1), float(at + 2)];
        // Three and three halves after each other; from gfx11 on an axis's two in one register.
        let half = |inverse: usize, axis: usize| {
            let (register, high) = match generation >= Gfx::Gfx11 {
                true => (axis, inverse),
                false => ((3 * inverse + axis) / 2, (3 * inverse + axis) & 1),
            };
            let bits = registers[first + 5 + register][lane] >> (16 * high) & 0xffff;
            f32::from_bits(soft::convert(soft::F16, soft::F32, bits.into(), Env::IEEE) as u32)
        };
        let halves = |inverse: usize| [0, 1, 2].map(|axis| half(inverse, axis));
        let ray = Ray {
            extent: float(1),
            origin: three(2),
            direction: if rays.short { halves(0) } else { three(5) },
            inverse: if rays.short { halves(1) } else { three(8) },
        };
        let Some(result) = visit(machine, wave, &tree, &ray, node) else { return };
        read.values.iter_mut().zip(result).for_each(|(place, value)| place[lane] = value);
    }
    let dst = Dst::Vgpr(number(rays.data));
    let made = access::Access::made(decoded.at, MemorySpace::Global, dst, lanes, 4);
    issue::ready(machine, wave, made, read, &[(WaitCounter::Vm, RAYS)]);
}

/// What a node gives for a ray; `None`: its memory is not there.
fn visit(machine: &mut Machine<'_>, wave: &Wave, tree: &Tree, ray: &Ray, node: u64) -> Option<[u32; 4]> {
    let (kind, number) = ((node & 7) as u32, node >> 3);
    // A box of whole floats takes the place of two nodes.
    let end = number.saturating_add(u64::from(kind == 5));
    if kind > 5 || end > tree.last {
        return Some([INVALID; 4]);
    }
    let address = tree.base.wrapping_add(number << 6) & 0xffff_ffff_ffff;
    let mut words = [0u32; 28];
    for (at, word) in words.iter_mut().enumerate().take(if kind == 5 { 28 } else { 16 }) {
        let address = address + 4 * at as u64;
        *word = apply::load(machine, wave, address, 4)? as u32;
    }
    let children = [words[0], words[1], words[2], words[3]];
    Some(match kind {
        5 => {
            let bound = |child: usize, at: usize| f32::from_bits(words[4 + child * 6 + at]);
            boxes(
                tree,
                ray,
                children,
                std::array::from_fn(|child| std::array::from_fn(|at| bound(child, at))),
            )
        }
        4 => {
            let bound = |child: usize, at: usize| {
                let number = child * 6 + at;
                let bits = words[4 + number / 2] >> (16 * (number & 1)) & 0xffff;
                f32::from_bits(soft::convert(soft::F16, soft::F32, bits.into(), Env::IEEE) as u32)
            };
            boxes(
                tree,
                ray,
                children,
                std::array::from_fn(|child| std::array::from_fn(|at| bound(child, at))),
            )
        }
        _ => {
            let vertex = |n: usize| std::array::from_fn(|axis| f32::from_bits(words[3 * n + axis]));
            let [a, b, c] = [[0, 1, 2], [1, 3, 2], [2, 3, 4], [2, 4, 0]][kind as usize];
            triangle(ray, [vertex(a), vertex(b), vertex(c)], words[15] >> (8 * kind))
        }
    })
}
