//! Tests of depth and stencil.

use crate::adreno::draw_watch::SampleTest;

/// How depths are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DepthFormat {
    Unorm16,
    /// In the low bits, with stencil above.
    Unorm24,
    Float32,
}

impl DepthFormat {
    /// Of RB_DEPTH_BUFFER_INFO.
    pub(crate) fn of(info: u32) -> DepthFormat {
        match info & 7 {
            1 => DepthFormat::Unorm16,
            2 => DepthFormat::Unorm24,
            _ => DepthFormat::Float32,
        }
    }

    /// The depth in the bits of a texel.
    pub(crate) fn stored(self, bits: u32) -> f32 {
        match self {
            DepthFormat::Unorm16 => self.decode(bits & 0xffff),
            DepthFormat::Unorm24 => self.decode(bits & 0xff_ffff),
            DepthFormat::Float32 => self.decode(bits),
        }
    }

    fn encode(self, z: f32) -> u32 {
        let greatest = match self {
            DepthFormat::Unorm16 => 0xffff,
            DepthFormat::Unorm24 => 0xff_ffff,
            DepthFormat::Float32 => return z.to_bits(),
        };
        // Not a number becomes 0.
        (f64::from(z).clamp(0.0, 1.0) * f64::from(greatest)).round_ties_even() as u32
    }

    fn decode(self, bits: u32) -> f32 {
        match self {
            DepthFormat::Unorm16 => (f64::from(bits) / 65535.0) as f32,
            DepthFormat::Unorm24 => (f64::from(bits) / 16_777_215.0) as f32,
            DepthFormat::Float32 => f32::from_bits(bits),
        }
    }
}

/// The stencil test of one side of primitives. Functions are those of `adreno_compare_func`, what is done with the value of
/// `adreno_stencil_op`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StencilFace {
    pub(crate) func: u32,
    pub(crate) fail: u32,
    pub(crate) pass: u32,
    pub(crate) z_fail: u32,
    pub(crate) reference: u8,
    pub(crate) read_mask: u8,
    pub(crate) write_mask: u8,
}

/// What is tested, and what is written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DepthStencilState {
    pub(crate) z_test: bool,
    pub(crate) z_write: bool,
    pub(crate) z_func: u32,
    /// What is stored must be within.
    pub(crate) bounds: Option<[f32; 2]>,
    pub(crate) clamp: Option<[f32; 2]>,
    /// Of front and back faces.
    pub(crate) stencil: Option<[StencilFace; 2]>,
}

/// What a sample holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredDepthStencil {
    /// As the format has it.
    pub(crate) depth: u32,
    pub(crate) stencil: u8,
}

/// What came of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tested {
    pub(crate) test: SampleTest,
    /// What the sample holds after it.
    pub(crate) stored: StoredDepthStencil,
}

impl Tested {
    /// Whether the sample goes on.
    pub(crate) fn passes(&self) -> bool {
        self.test == SampleTest::Passed
    }
}

fn compare<T: PartialOrd>(function: u32, value: T, stored: T) -> bool {
    match function & 7 {
        0 => false,
        1 => value < stored,
        2 => value == stored,
        3 => value <= stored,
        4 => value > stored,
        5 => value != stored,
        6 => value >= stored,
        _ => true,
    }
}

fn stencil(operation: u32, face: &StencilFace, reference: u8, value: u8) -> u8 {
    let new = match operation & 7 {
        0 => value,
        1 => 0,
        2 => reference,
        3 => value.saturating_add(1),
        4 => value.saturating_sub(1),
        5 => !value,
        6 => value.wrapping_add(1),
        _ => value.wrapping_sub(1),
    };
    value & !face.write_mask | new & face.write_mask
}

/// Tests a sample of a depth. A reference may take the place of the state's.
pub(crate) fn test(
    state: &DepthStencilState,
    format: DepthFormat,
    front: bool,
    reference: Option<u8>,
    stored: StoredDepthStencil,
    z: f32,
) -> Tested {
    let fails = |test, stored| Tested { test, stored };
    if let Some([least, greatest]) = state.bounds {
        let depth = format.decode(stored.depth);
        if !(least..=greatest).contains(&depth) {
            return fails(SampleTest::DepthBounds, stored);
        }
    }
    let z = state.clamp.map_or(z, |[least, greatest]| z.max(least).min(greatest));
    let face = state.stencil.map(|[face, back]| if front { face } else { back });
    let reference = reference.or(face.map(|face| face.reference)).unwrap_or(0);
    let after = |operation: fn(&StencilFace) -> u32| match &face {
        Some(face) => stencil(operation(face), face, reference, stored.stencil),
        None => stored.stencil,
    };
    if let Some(face) = &face {
        let mask = face.read_mask;
        if !compare(face.func, reference & mask, stored.stencil & mask) {
            let stored = StoredDepthStencil { stencil: after(|face| face.fail), ..stored };
            return fails(SampleTest::Stencil, stored);
        }
    }
    let depth = format.encode(z);
    let passes = !state.z_test
        || match format {
            DepthFormat::Float32 => compare(state.z_func, z, f32::from_bits(stored.depth)),
            DepthFormat::Unorm16 | DepthFormat::Unorm24 => compare(state.z_func, depth, stored.depth),
        };
    if !passes {
        let stored = StoredDepthStencil { stencil: after(|face| face.z_fail), ..stored };
        return fails(SampleTest::Depth, stored);
    }
    let writes = state.z_test && state.z_write;
    let depth = if writes { depth } else { stored.depth };
    Tested {
        test: SampleTest::Passed,
        stored: StoredDepthStencil { depth, stencil: after(|face| face.pass) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: StencilFace =
        StencilFace { func: 7, fail: 0, pass: 0, z_fail: 0, reference: 5, read_mask: 0xff, write_mask: 0xff };

    fn stored(depth: u32, stencil: u8) -> StoredDepthStencil {
        StoredDepthStencil { depth, stencil }
    }

    #[test]
    fn every_comparison() {
        for function in 0..8 {
            for z in [0.25f32, 0.5, 0.75] {
                let state =
                    DepthStencilState { z_test: true, z_write: true, z_func: function, ..Default::default() };
                let expected = [false, z < 0.5, z == 0.5, z <= 0.5, z > 0.5, z != 0.5, z >= 0.5, true];
                let tested = test(&state, DepthFormat::Float32, true, None, stored(0.5f32.to_bits(), 0), z);
                assert_eq!(tested.passes(), expected[function as usize], "{function} {z}");
                let after = if tested.passes() { z } else { 0.5 };
                assert_eq!(tested.stored.depth, after.to_bits());
            }
        }
    }

    #[test]
    fn depths_are_rounded() {
        for (format, z, bits) in [
            (DepthFormat::Unorm16, 1.0, 0xffff),
            (DepthFormat::Unorm16, 0.5, 0x8000),
            (DepthFormat::Unorm24, 2.0, 0xff_ffff),
            (DepthFormat::Unorm24, -1.0, 0),
            (DepthFormat::Unorm24, f32::NAN, 0),
            (DepthFormat::Float32, -1.0, (-1f32).to_bits()),
        ] {
            assert_eq!(format.encode(z), bits, "{format:?} {z}");
        }
        let bounds = DepthStencilState { bounds: Some([0.25, 0.5]), ..Default::default() };
        for (depth, passes) in [(0x3fff, false), (0x4000, true), (0x7fff, true), (0x8001, false)] {
            assert_eq!(
                test(&bounds, DepthFormat::Unorm16, true, None, stored(depth, 0), 0.0).passes(),
                passes
            );
        }
    }

    /// What each operation makes of each value, on each of the three ways out of the test.
    #[test]
    fn every_stencil_operation() {
        for operation in 0..8 {
            for value in 0..=255u8 {
                let new = [
                    value,
                    0,
                    5,
                    value.saturating_add(1),
                    value.saturating_sub(1),
                    !value,
                    value.wrapping_add(1),
                    value.wrapping_sub(1),
                ][operation as usize];
                let mask = 0x3c;
                let expected = value & !mask | new & mask;
                let ways = [
                    (StencilFace { fail: operation, func: 0, ..FACE }, 7, false),
                    (StencilFace { z_fail: operation, ..FACE }, 0, false),
                    (StencilFace { pass: operation, ..FACE }, 7, true),
                ];
                for (face, z_func, passes) in ways {
                    let face = StencilFace { write_mask: mask, ..face };
                    let state = DepthStencilState {
                        z_test: true,
                        z_func,
                        stencil: Some([FACE, face]),
                        ..Default::default()
                    };
                    let tested = test(&state, DepthFormat::Unorm24, false, None, stored(0, value), 0.5);
                    assert_eq!((tested.passes(), tested.stored), (passes, stored(0, expected)), "{face:?}");
                }
            }
        }
    }

    #[test]
    fn the_shader_may_give_the_reference() {
        let face = StencilFace { func: 2, pass: 2, ..FACE };
        let state = DepthStencilState { stencil: Some([face; 2]), ..Default::default() };
        let with =
            |reference| test(&state, DepthFormat::Float32, true, reference, stored(0, 9), 0.0).passes();
        assert_eq!([with(None), with(Some(9)), with(Some(5))], [false, true, false]);
    }
}
