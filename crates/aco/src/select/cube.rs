//! Directions in cubes, as sampling instructions take them: coordinates on the face that a direction meets, the number of the face, and derivatives on that face.
//!
//! The hardware counts coordinates of a face from 1 to 2, and eight numbers from one cube of an array to the next. Facts: the manuals of the instructions `v_cube*_f32`.

use super::Selector;
use crate::ir::{Operand, RegClass};
use unwedge_isa::amdgcn::model::Mod;
use unwedge_isa::amdgcn::{Mods, Opcode};

/// 1.5: the middle of a face.
const FACE_CENTRE: u32 = 0x3fc0_0000;
/// 8.0: numbers of faces from one cube to the next.
const FACES: u32 = 0x4100_0000;
/// The numbers of the first faces of the axes Y and Z, as floats.
const FACE_Y: u32 = 0x4000_0000;
const FACE_Z: u32 = 0x4080_0000;
const SIGN: u32 = 1 << 31;
const V1: RegClass = RegClass::V1;

/// A direction in a cube.
pub(super) struct CubeDirection {
    /// The number of the face, as a float.
    face: Operand,
    /// Twice the coordinate along the axis of the face.
    major: Operand,
    /// Its reciprocal, without a sign.
    scale: Operand,
    /// The coordinates on the face, not scaled.
    plane: [Operand; 2],
}

impl Selector<'_> {
    /// The face that a direction meets.
    pub(super) fn cube_direction(&mut self, direction: &[Operand]) -> CubeDirection {
        use Opcode as O;
        let xyz = [0, 1, 2].map(|at| direction.get(at).copied().unwrap_or(Operand::undef(V1)));
        let xyz = xyz.map(|axis| self.in_vgpr(axis));
        let [major, s, t, face] = [O::v_cubema_f32, O::v_cubesc_f32, O::v_cubetc_f32, O::v_cubeid_f32]
            .map(|opcode| self.valu(opcode, V1, &xyz));
        let mut absolute = Mods::default();
        absolute.set(Mod::Abs, 1);
        let scale = self.valu_with(O::v_rcp_f32, V1, &[major], absolute);
        CubeDirection { face, major, scale, plane: [s, t] }
    }

    /// Coordinates on the face, and the number of the face plus those of the cubes of earlier layers.
    pub(super) fn cube_coordinates(
        &mut self,
        direction: &CubeDirection,
        layer: Option<Operand>,
    ) -> [Operand; 3] {
        use Opcode as O;
        let centre = self.in_vgpr(Operand::c32(FACE_CENTRE));
        let [s, t] =
            direction.plane.map(|part| self.valu(O::v_fma_f32, V1, &[part, direction.scale, centre]));
        let face = match layer {
            Some(layer) => {
                let (layer, faces) = (self.in_vgpr(layer), self.in_vgpr(Operand::c32(FACES)));
                self.valu(O::v_fma_f32, V1, &[layer, faces, direction.face])
            }
            None => direction.face,
        };
        [s, t, face]
    }

    /// The derivatives of the coordinates on the face, from the derivative of a direction.
    ///
    /// Its components are permuted and negated like those of the direction: `v_cubesc_f32` and `v_cubetc_f32` take axes and signs by the face. A coordinate is a
    /// quotient by twice the absolute value along the axis of the face, so its derivative is that of a quotient.
    pub(super) fn face_derivative(&mut self, direction: &CubeDirection, along: &[Operand]) -> [Operand; 2] {
        use Opcode as O;
        let CubeDirection { face, major, scale, plane } = *direction;
        let [x, y, z] = [0, 1, 2].map(|at| along.get(at).copied().unwrap_or(Operand::undef(V1)));
        let sign = self.valu(O::v_and_b32, V1, &[Operand::c32(SIGN), major]);
        let on_z = self.valu_compare(O::v_cmp_le_f32, &[Operand::c32(FACE_Z), face]);
        let past_x = self.valu_compare(O::v_cmp_le_f32, &[Operand::c32(FACE_Y), face]);
        let [turned_x, turned_z] = [x, z].map(|part| self.valu(O::v_xor_b32, V1, &[sign, part]));
        let [negated_y, negated_z] =
            [y, turned_z].map(|part| self.valu(O::v_xor_b32, V1, &[Operand::c32(SIGN), part]));
        let mut by_axis = |[on_x, on_y, otherwise]: [Operand; 3]| {
            let near = self.choose(past_x, on_y, on_x);
            self.choose(on_z, otherwise, near)
        };
        let along_axis = by_axis([x, y, z]);
        let along_plane = [by_axis([negated_z, x, turned_x]), by_axis([negated_y, turned_z, negated_y])];
        let along_axis = self.valu(O::v_xor_b32, V1, &[sign, along_axis]);
        let along_axis = self.valu(O::v_add_f32, V1, &[along_axis, along_axis]);
        [0, 1].map(|at| {
            let place = self.valu(O::v_mul_f32, V1, &[plane[at], scale]);
            let lost = self.valu(O::v_mul_f32, V1, &[place, along_axis]);
            let rest = self.valu(O::v_sub_f32, V1, &[along_plane[at], lost]);
            self.valu(O::v_mul_f32, V1, &[rest, scale])
        })
    }
}
