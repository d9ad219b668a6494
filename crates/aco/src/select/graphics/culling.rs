//! Primitive shaders that cull (see [`crate::culling`]): between the two parts of the shader, lanes with a primitive test the positions of its vertices. Vertices of
//! primitives that are left get numbers without gaps, and the second part runs for the vertex whose number is that of the lane.
//!
//! Nothing is culled that may be seen. Coordinates are not divided by w except for the size on the screen: the sign of the determinant of x, y and w says which way the visible part
//! of a triangle turns, whatever the signs of w are. If the determinant is within the rounding error of zero, the triangle stays. A comparison with a NaN keeps the triangle, too.
//!
//! LDS has columns with a dword for each vertex of the workgroup ([`Column`]), and the counts of [`super::emitted`] between them.

use super::emitted::{NO_PRIMITIVE, VERTEX_COUNTS};
use super::exports::{Export, ONE};
use super::primitive::{GROUP_VERTICES, PRIMITIVE};
use super::slots::SlotPlace;
use super::{Selected, Selector};
use crate::abi::{Argument, COUNT_BYTES};
use crate::culling::{CLOCKWISE, COUNTERCLOCKWISE, DEGENERATE, OUTSIDE, PRECISION, SMALL};
use crate::ir::{Operand, RegClass};
use crate::stages::MergedWaveInfo;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{Builtin, Shader};

const COLUMN_BYTES: u32 = GROUP_VERTICES * 4;
/// Coordinates of a position.
const COORDINATES: u32 = 4;
/// Vertices of a primitive.
pub(super) const CORNERS: usize = 3;

/// A column of LDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    /// A coordinate of the position.
    Position(u32),
    /// First whether a remaining primitive has the vertex, later the new number of the vertex.
    Number,
    /// What the second part is given in a vector register.
    Argument(u32),
}

impl Column {
    fn offset(self) -> u32 {
        match self {
            Column::Position(coordinate) => coordinate * COLUMN_BYTES,
            Column::Number => COORDINATES * COLUMN_BYTES,
            Column::Argument(number) => COUNTS_OFFSET + COUNT_BYTES + (1 + number) * COLUMN_BYTES,
        }
    }
}

/// Where the counts of vertices are; after them come the vertices by their new numbers.
pub(super) const COUNTS_OFFSET: u32 = (COORDINATES + 1) * COLUMN_BYTES;

/// Arguments in vector registers that the second part may need.
const VERTEX_ARGUMENTS: [Argument; 7] = [
    Argument::VertexId,
    Argument::InstanceId,
    Argument::VertexPrimitive,
    Argument::TessU,
    Argument::TessV,
    Argument::RelativePatch,
    Argument::PatchId,
];

/// Bits of the edge flags of a primitive before gfx12, one for each vertex, in the register of the invocation.
const EDGE_FLAGS: u32 = 8;
/// The edge flags where gfx12 has them: among the vertices.
const PACKED_EDGE_FLAGS: u32 = 0x0402_0100;

/// What is added to sums of magnitudes, so that products which underflow do not matter: 2 to the power of -100.
const TINY: u32 = 27 << 23;
/// More than the rounding errors of a determinant, as a part of the sum of the magnitudes of its terms: 2 to the power of -19.
const DETERMINANT_ERROR: u32 = 108 << 23;
/// More than the rounding errors of a coordinate on the screen, as a part of magnitudes: 2 to the power of -21.
const SCREEN_ERROR: u32 = 106 << 23;
/// The least w by which positions are divided: 2 to the power of -60.
const LEAST_W: u32 = 67 << 23;

/// Signs of operands, a bit for each.
fn signs(negated: i32, absolute: i32) -> Mods {
    let mut mods = Mods::default();
    mods.set(Mod::Neg, negated);
    mods.set(Mod::Abs, absolute);
    mods
}

/// x, y and w of a vertex.
pub(super) type Corner = [Operand; 3];

impl Selector<'_> {
    fn column(&mut self, vertex: Operand, column: Column) -> SlotPlace {
        SlotPlace::at(self.scaled(vertex, 4), column.offset())
    }

    /// The end of the first part.
    pub(super) fn store_culled_position(&mut self) {
        let position = self.position().map(|value| value.filter(|value| !value.is_undef()));
        let vertex = self.group_vertex();
        for (coordinate, value) in (0..).zip(position) {
            let place = self.column(vertex, Column::Position(coordinate));
            self.store_local(place, &[Some(value.unwrap_or(Operand::c32(0)))]);
        }
        let place = self.column(vertex, Column::Number);
        self.store_local(place, &[Some(Operand::c32(0))]);
    }

    /// What is between the parts. Returns the lanes that run the second one, and what they are given.
    pub(in crate::select) fn cull(&mut self, second: &Shader) -> Selected<(Operand, Vec<Argument>)> {
        let given = self.vertex_arguments(second);
        let last = Column::Argument(given.len() as u32).offset();
        self.program.lds_bytes = self.program.lds_bytes.max(last);
        self.local_barrier();
        let primitives = self.field(Argument::MergedWaveInfo, MergedWaveInfo::SECOND);
        let lanes = self.first_lanes(primitives);
        let numbered = given.iter().position(|argument| *argument == Argument::VertexPrimitive);
        let primitive = self.lanes_value(lanes, Operand::c32(NO_PRIMITIVE), |selector| {
            if let Some(at) = numbered {
                let [first, .., last] = selector.corner_numbers();
                let provoking = if selector.options.graphics.last_vertex_provokes { last } else { first };
                let place = selector.column(provoking, Column::Argument(at as u32));
                let primitive = selector.given(Argument::GeometryPrimitive);
                selector.store_local(place, &[Some(primitive)]);
            }
            selector.judged_primitive()
        })?;
        self.local_barrier();
        let thread = self.group_vertex();
        let vertices = self.field(Argument::MergedWaveInfo, MergedWaveInfo::FIRST);
        let exists = self.first_lanes(vertices);
        let read = self.choose(exists, thread, Operand::c32(0));
        let place = self.column(read, Column::Number);
        let flag = self.load_local(place, 1)[0];
        let flag = self.choose(exists, flag, Operand::c32(0));
        let kept = self.valu_compare(Opcode::v_cmp_lg_u32, &[Operand::c32(0), flag]);
        let total = self.count_over_waves(kept)?;
        let number = self.number_in_group(VERTEX_COUNTS, kept);
        self.only_lanes(kept, |selector| {
            let place = selector.numbered_place(number);
            selector.store_local(place, &[Some(thread)]);
            let place = selector.column(thread, Column::Number);
            selector.store_local(place, &[Some(number)]);
            // Lanes with a primitive have stored its number already.
            let own = (0..).zip(&given).filter(|(_, argument)| **argument != Argument::VertexPrimitive);
            for (at, argument) in own {
                let place = selector.column(thread, Column::Argument(at));
                let value = selector.given(*argument);
                selector.store_local(place, &[Some(value)]);
            }
            Ok(())
        })?;
        self.local_barrier();
        let none = self.salu_compare(Opcode::s_cmp_eq_u32, &[total, Operand::c32(0)]);
        let all = self.field(Argument::GroupInfo, super::primitive::PRIMITIVES);
        let [all, primitives] = [all, primitives]
            .map(|count| self.hw(Opcode::s_cselect_b32, RegClass::S1, &[Operand::c32(0), count, none]));
        let first = self.is_first_wave();
        self.ask_for(first, total, all)?;
        let lanes = self.first_lanes(primitives);
        self.only_lanes(lanes, |selector| {
            let renumbered = selector.renumbered(primitive);
            selector.export(&[Export::one(PRIMITIVE, renumbered)], 0, false);
            Ok(())
        })?;
        Ok((self.valu_compare(Opcode::v_cmp_gt_u32, &[total, thread]), given))
    }

    /// The arguments in vector registers that a shader reads.
    fn vertex_arguments(&self, shader: &Shader) -> Vec<Argument> {
        let reads = crate::abi::vertex_reads(shader, &self.options.graphics);
        VERTEX_ARGUMENTS.into_iter().filter(|own| reads.contains(own)).collect()
    }

    /// The lane gets the vertex with its number: its position, and what the second part is given.
    pub(in crate::select) fn take_vertex(&mut self, given: &[Argument]) {
        let number = self.group_vertex();
        let place = self.numbered_place(number);
        let vertex = self.load_local(place, 1)[0];
        let mut load = |column| {
            let place = self.column(vertex, column);
            self.load_local(place, 1)[0]
        };
        let position = std::array::from_fn(|coordinate| Some(load(Column::Position(coordinate as u32))));
        let values: Vec<Operand> = (0..).zip(given).map(|(at, _)| load(Column::Argument(at))).collect();
        self.outputs.insert((Builtin::Position.slots().start, 0), position);
        for (argument, value) in given.iter().zip(values) {
            if let Some(temp) = value.as_temp() {
                self.args.insert(*argument, temp);
            }
        }
    }

    /// The vertices of the primitive of a lane, counted in the workgroup.
    pub(super) fn corner_numbers(&mut self) -> [Operand; CORNERS] {
        let [per, width, distance] = if self.gfx >= Gfx::Gfx12 { [3, 8, 9] } else { [2, 16, 16] };
        std::array::from_fn(|corner| {
            let word = self.given(Argument::VertexOffset((corner / per) as u8));
            let bits = [Operand::c32((corner % per * distance) as u32), Operand::c32(width as u32)];
            self.valu(Opcode::v_bfe_u32, RegClass::V1, &[word, bits[0], bits[1]])
        })
    }

    /// Bits from one vertex to the next in the word of a primitive.
    pub(super) fn corner_distance(&self) -> u32 {
        if self.gfx >= Gfx::Gfx12 { 9 } else { 10 }
    }

    fn joined(&mut self, words: &[Operand]) -> Operand {
        let (mut all, rest) = (words[0], &words[1..]);
        for word in rest {
            all = self.valu(Opcode::v_or_b32, RegClass::V1, &[all, *word]);
        }
        all
    }

    pub(super) fn shifted_left(&mut self, word: Operand, distance: u32) -> Operand {
        if distance == 0 {
            return word;
        }
        self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[Operand::c32(distance), word])
    }

    /// The edge flags of a primitive where they are exported.
    fn edge_flags(&mut self) -> Vec<Operand> {
        if self.gfx >= Gfx::Gfx12 {
            let word = self.given(Argument::VertexOffset(0));
            return vec![self.valu(
                Opcode::v_and_b32,
                RegClass::V1,
                &[Operand::c32(PACKED_EDGE_FLAGS), word],
            )];
        }
        let word = self.given(Argument::GeometryInvocation);
        let distance = self.corner_distance();
        (0..CORNERS as u32)
            .map(|corner| {
                let bits = [word, Operand::c32(EDGE_FLAGS + corner), Operand::c32(1)];
                let flag = self.valu(Opcode::v_bfe_u32, RegClass::V1, &bits);
                self.shifted_left(flag, corner * distance + 9)
            })
            .collect()
    }

    /// The word of a primitive with its edge flags and vertices.
    pub(super) fn packed_primitive(&mut self, numbers: [Operand; CORNERS]) -> Operand {
        let distance = self.corner_distance();
        let mut words = self.edge_flags();
        for (corner, vertex) in (0..).zip(numbers) {
            words.push(self.shifted_left(vertex, corner * distance));
        }
        self.joined(&words)
    }

    /// The primitive of a lane with the vertices as they were counted first, or none if it is culled. If it is not, its vertices are marked.
    fn judged_primitive(&mut self) -> Selected<Operand> {
        let numbers = self.corner_numbers();
        let corners: [Corner; CORNERS] = numbers.map(|vertex| {
            [0, 1, 3].map(|coordinate| {
                let place = self.column(vertex, Column::Position(coordinate));
                self.load_local(place, 1)[0]
            })
        });
        let culled = self.culled(&corners);
        let word = self.packed_primitive(numbers);
        let primitive = self.choose(culled, Operand::c32(NO_PRIMITIVE), word);
        // No vertex has a number so high that it sets this bit.
        let kept = self.valu_compare(Opcode::v_cmp_gt_u32, &[Operand::c32(NO_PRIMITIVE), primitive]);
        self.only_lanes(kept, |selector| {
            for vertex in numbers {
                let place = selector.column(vertex, Column::Number);
                selector.store_local(place, &[Some(Operand::c32(1))]);
            }
            Ok(())
        })?;
        Ok(primitive)
    }

    /// The primitive with the new numbers of its vertices.
    fn renumbered(&mut self, primitive: Operand) -> Operand {
        let distance = self.corner_distance();
        let edges = (0..CORNERS as u32).fold(0, |all, corner| all | 1 << (corner * distance + distance - 1));
        let mut words = vec![self.valu(Opcode::v_and_b32, RegClass::V1, &[Operand::c32(edges), primitive])];
        for corner in 0..CORNERS as u32 {
            let bits = [primitive, Operand::c32(corner * distance), Operand::c32(8)];
            // A primitive that is culled has vertices that exist, too.
            let vertex = self.valu(Opcode::v_bfe_u32, RegClass::V1, &bits);
            let place = self.column(vertex, Column::Number);
            let number = self.load_local(place, 1)[0];
            words.push(self.shifted_left(number, corner * distance));
        }
        let word = self.joined(&words);
        let culled = self.valu_compare(Opcode::v_cmp_eq_u32, &[Operand::c32(NO_PRIMITIVE), primitive]);
        self.choose(culled, Operand::c32(NO_PRIMITIVE), word)
    }

    pub(super) fn both(&mut self, a: Operand, b: Operand) -> Operand {
        let opcode = self.sized(Opcode::s_and_b32, Opcode::s_and_b64);
        let mask = self.program.lane_mask();
        self.salu(opcode, mask, &[a, b])
    }

    fn either(&mut self, a: Operand, b: Operand) -> Operand {
        let opcode = self.sized(Opcode::s_or_b32, Opcode::s_or_b64);
        let mask = self.program.lane_mask();
        self.salu(opcode, mask, &[a, b])
    }

    /// A lane mask if a bit of the state is set, else no lanes.
    fn if_state(&mut self, bit: u32, mask: Operand) -> Operand {
        let state = self.given(Argument::CullState);
        let number = Operand::c32(bit.trailing_zeros());
        let on = self.salu_compare(Opcode::s_bitcmp1_b32, &[state, number]);
        let opcode = self.sized(Opcode::s_cselect_b32, Opcode::s_cselect_b64);
        let (class, none) = (self.program.lane_mask(), self.full_mask(false));
        self.hw(opcode, class, &[mask, none, on])
    }

    /// The lanes whose triangle cannot be seen.
    pub(super) fn culled(&mut self, corners: &[Corner; CORNERS]) -> Operand {
        let [clockwise, counterclockwise] = self.turning(corners);
        let degenerate = self.degenerate(corners);
        let outside = self.outside(corners);
        let small = self.small(corners);
        let tests = [
            (CLOCKWISE, clockwise),
            (COUNTERCLOCKWISE, counterclockwise),
            (DEGENERATE, degenerate),
            (OUTSIDE, outside),
            (SMALL, small),
        ];
        let mut all = None;
        for (bit, mask) in tests {
            let mask = self.if_state(bit, mask);
            all = Some(match all {
                Some(others) => self.either(others, mask),
                None => mask,
            });
        }
        all.unwrap_or(self.full_mask(false))
    }

    /// The lanes whose triangle is certainly clockwise, and those whose triangle is certainly counterclockwise.
    fn turning(&mut self, corners: &[Corner; CORNERS]) -> [Operand; 2] {
        use Opcode::{v_fma_f32, v_mul_f32};
        let v1 = RegClass::V1;
        let tiny = self.in_vgpr(Operand::c32(TINY));
        let (mut determinant, mut magnitude) = (None, tiny);
        for first in 0..CORNERS {
            let [x, ..] = corners[first];
            let ([_, y1, w1], [_, y2, w2]) = (corners[(first + 1) % CORNERS], corners[(first + 2) % CORNERS]);
            let product = self.valu(v_mul_f32, v1, &[y2, w1]);
            let minor = self.valu_with(v_fma_f32, v1, &[y1, w2, product], signs(4, 0));
            let part = self.valu_with(v_fma_f32, v1, &[y2, w1, tiny], signs(0, 3));
            let part = self.valu_with(v_fma_f32, v1, &[y1, w2, part], signs(0, 3));
            determinant = Some(match determinant {
                Some(sum) => self.valu(v_fma_f32, v1, &[x, minor, sum]),
                None => self.valu(v_mul_f32, v1, &[x, minor]),
            });
            magnitude = self.valu_with(v_fma_f32, v1, &[x, part, magnitude], signs(0, 1));
        }
        let determinant = determinant.unwrap_or(tiny);
        let error = self.valu(v_mul_f32, v1, &[Operand::c32(DETERMINANT_ERROR), magnitude]);
        let mask = self.program.lane_mask();
        let below = self.valu_with(Opcode::v_cmp_lt_f32, mask, &[determinant, error], signs(2, 0));
        let above = self.valu_compare(Opcode::v_cmp_gt_f32, &[determinant, error]);
        [below, above]
    }

    /// The lanes whose triangle has a position twice.
    fn degenerate(&mut self, corners: &[Corner; CORNERS]) -> Operand {
        let differences: [Operand; CORNERS] = std::array::from_fn(|first| {
            let (a, b) = (corners[first], corners[(first + 1) % CORNERS]);
            let parts = [0, 1, 2].map(|at| self.valu(Opcode::v_xor_b32, RegClass::V1, &[a[at], b[at]]));
            self.joined(&parts)
        });
        let least = self.valu(Opcode::v_min_u32, RegClass::V1, &[differences[0], differences[1]]);
        let least = self.valu(Opcode::v_min_u32, RegClass::V1, &[least, differences[2]]);
        self.valu_compare(Opcode::v_cmp_eq_u32, &[Operand::c32(0), least])
    }

    /// The lanes for all of whose corners a comparison holds.
    fn all_corners(
        &mut self,
        corners: &[Corner; CORNERS],
        mut compare: impl FnMut(&mut Self, Corner) -> Operand,
    ) -> Operand {
        let [a, b, c] = corners.map(|corner| compare(self, corner));
        let all = self.both(a, b);
        self.both(all, c)
    }

    /// The lanes whose triangle is beyond one side of the view volume.
    fn outside(&mut self, corners: &[Corner; CORNERS]) -> Operand {
        let mask = self.program.lane_mask();
        let mut outside = self.all_corners(corners, |selector, [.., w]| {
            selector.valu_compare(Opcode::v_cmp_ge_f32, &[Operand::c32(0), w])
        });
        for axis in [0, 1] {
            for (opcode, negated) in [(Opcode::v_cmp_gt_f32, 0), (Opcode::v_cmp_lt_f32, 2)] {
                let side = self.all_corners(corners, |selector, corner| {
                    selector.valu_with(opcode, mask, &[corner[axis], corner[2]], signs(negated, 0))
                });
                outside = self.either(outside, side);
            }
        }
        outside
    }

    /// The lanes whose triangle has no centre of a pixel in its bounds. All corners must have a positive w.
    fn small(&mut self, corners: &[Corner; CORNERS]) -> Operand {
        let v1 = RegClass::V1;
        let before = self.all_corners(corners, |selector, [.., w]| {
            selector.valu_compare(Opcode::v_cmp_lt_f32, &[Operand::c32(LEAST_W), w])
        });
        let state = self.given(Argument::CullState);
        let field = Operand::c32(PRECISION.0 | PRECISION.1 << 16);
        let exponent = self.salu(Opcode::s_bfe_i32, RegClass::S1, &[state, field]);
        let precision = self.valu(Opcode::v_ldexp_f32, v1, &[Operand::c32(ONE), exponent]);
        let inverses = corners.map(|[.., w]| self.valu(Opcode::v_rcp_f32, v1, &[w]));
        let mut missed = None;
        for axis in [0u8, 1] {
            let scale = self.given(Argument::ViewportTransform(axis));
            let translation = self.given(Argument::ViewportTransform(axis + 2));
            let places: [Operand; CORNERS] = std::array::from_fn(|at| {
                let divided =
                    self.valu(Opcode::v_mul_f32, v1, &[corners[at][usize::from(axis)], inverses[at]]);
                self.valu(Opcode::v_fma_f32, v1, &[scale, divided, translation])
            });
            let [a, b, c] = places;
            // The sum is a NaN if one of them is, and then nothing is equal.
            let sum = self.valu_with(Opcode::v_add_f32, v1, &[a, b], signs(0, 3));
            let sum = self.valu_with(Opcode::v_add_f32, v1, &[sum, c], signs(0, 2));
            let sum = self.valu_with(Opcode::v_add_f32, v1, &[translation, sum], signs(0, 1));
            let margin = self.valu(Opcode::v_fma_f32, v1, &[Operand::c32(SCREEN_ERROR), sum, precision]);
            let bound = |selector: &mut Self, opcode| {
                let two = selector.valu(opcode, v1, &[a, b]);
                selector.valu(opcode, v1, &[two, c])
            };
            let low = bound(self, Opcode::v_min_f32);
            let high = bound(self, Opcode::v_max_f32);
            let low = self.valu(Opcode::v_sub_f32, v1, &[low, margin]);
            let high = self.valu(Opcode::v_add_f32, v1, &[high, margin]);
            let [low, high] = [low, high].map(|place| self.valu(Opcode::v_rndne_f32, v1, &[place]));
            let same = self.valu_compare(Opcode::v_cmp_eq_f32, &[low, high]);
            missed = Some(match missed {
                Some(other) => self.either(other, same),
                None => same,
            });
        }
        match missed {
            Some(missed) => self.both(before, missed),
            None => before,
        }
    }
}
