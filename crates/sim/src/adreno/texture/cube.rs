//! Cubes: the face that a direction hits.
//!
//! Facts: the table of major axes that Vulkan and Direct3D share.

/// A place on a face.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FacePlace {
    /// +X, -X, +Y, -Y, +Z, -Z.
    pub(super) face: u32,
    /// Of three components which is the major one.
    major: usize,
    /// Places on the face from 0 to 1.
    pub(super) s: f64,
    pub(super) t: f64,
}

/// Which component, and its sign, is s, and which is t, on each face.
const AXES: [[(usize, f64); 2]; 6] = [
    [(2, -1.0), (1, -1.0)],
    [(2, 1.0), (1, -1.0)],
    [(0, 1.0), (2, 1.0)],
    [(0, 1.0), (2, -1.0)],
    [(0, 1.0), (1, -1.0)],
    [(0, -1.0), (1, -1.0)],
];

/// Where a direction hits the cube. Of equal components z comes before y before x.
pub(super) fn project(direction: [f64; 3]) -> FacePlace {
    let [x, y, z] = direction.map(f64::abs);
    let major = match () {
        () if z >= x && z >= y => 2,
        () if y >= x => 1,
        () => 0,
    };
    let face = 2 * major + usize::from(direction[major] < 0.0);
    let length = direction[major].abs();
    let place = |(axis, sign): (usize, f64)| {
        if length == 0.0 { 0.5 } else { 0.5 * (sign * direction[axis] / length + 1.0) }
    };
    let [s, t] = AXES[face].map(place);
    FacePlace { face: face as u32, major, s, t }
}

impl FacePlace {
    /// How s and t change where the direction changes so.
    pub(super) fn derivative(&self, direction: [f64; 3], change: [f64; 3]) -> [f64; 2] {
        let length = direction[self.major].abs();
        let longer = change[self.major] * direction[self.major].signum();
        AXES[self.face as usize % 6].map(|(axis, sign)| {
            let value = sign * (change[axis] * length - direction[axis] * longer) / (length * length);
            if value.is_finite() { 0.5 * value } else { 0.0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_hit_their_face() {
        let face = |direction| project(direction).face;
        assert_eq!(face([2.0, 1.0, -1.0]), 0);
        assert_eq!(face([-2.0, 1.0, -1.0]), 1);
        assert_eq!(face([0.5, 1.0, -0.5]), 2);
        assert_eq!(face([0.5, -1.0, -0.5]), 3);
        assert_eq!(face([1.0, 1.0, 1.0]), 4);
        assert_eq!(face([0.0, 0.0, -1.0]), 5);
        let place = project([4.0, -2.0, 1.0]);
        assert_eq!((place.s, place.t), (0.375, 0.75));
    }
}
