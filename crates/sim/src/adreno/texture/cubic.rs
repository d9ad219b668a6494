//! Weights of cubic filters, as TPL1_BICUBIC_WEIGHTS_TABLE holds them.
//!
//! Facts: the registers' values as Mesa and the kernel write them are Catmull-Rom splines in 256ths, at distances of 0 to 4 eighths of a
//! texel. Between two of these distances the weights are taken to be linear; what hardware does is not known.

/// Registers of the table.
const REGISTERS: usize = 5;
/// What the kernel writes for GPUs of the a650's kind (`a6xx_hw_init`), and Turnip on a7xx.
const CATMULL_ROM: [u32; REGISTERS] = [0, 0x3fe0_5ff4, 0x3fa0_ebee, 0x3f51_93ed, 0x3f02_43f0];

/// Weights in 256ths of the texels at -1, 0, 1 and 2 from the one before a place, at 0 to 8 eighths of the way to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CubicWeights([[i32; 4]; 9]);

impl CubicWeights {
    /// From the registers. A table that is all zeros was not written by what is executed, but by the kernel.
    pub(crate) fn new(registers: [u32; REGISTERS]) -> CubicWeights {
        let registers = if registers == [0; REGISTERS] { CATMULL_ROM } else { registers };
        let mut table = [[0; 4]; 9];
        for (at, word) in registers.into_iter().enumerate() {
            let [first, third, fourth] = [0, 10, 20].map(|low| (word << (22 - low)) as i32 >> 22);
            let weights = [first, 256 - first - third - fourth, third, fourth];
            table[8 - at] = [weights[3], weights[2], weights[1], weights[0]];
            table[at] = weights;
        }
        CubicWeights(table)
    }

    /// The four texels around a place and their weights: the one before it, and how far it is from that in 256ths.
    pub(super) fn taps(&self, before: i64, distance: u32) -> [(i64, f64); 4] {
        let (at, rest) = (distance as usize / 32 % 8, f64::from(distance % 32) / 32.0);
        let [near, far] = [self.0[at], self.0[at + 1]];
        std::array::from_fn(|tap| {
            let weight = f64::from(near[tap]) * (1.0 - rest) + f64::from(far[tap]) * rest;
            (before.saturating_add(tap as i64 - 1), weight / 256.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spline of VK_EXT_filter_cubic, to half a unit at the entries and 1/64 between them.
    #[test]
    fn the_table_is_a_catmull_rom_spline() {
        let weights = CubicWeights::new([0; REGISTERS]);
        for distance in 0..256 {
            let t = f64::from(distance) / 256.0;
            let spline = [
                -0.5 * t + t * t - 0.5 * t * t * t,
                1.0 - 2.5 * t * t + 1.5 * t * t * t,
                0.5 * t + 2.0 * t * t - 1.5 * t * t * t,
                -0.5 * t * t + 0.5 * t * t * t,
            ];
            let taps = weights.taps(7, distance);
            assert_eq!(taps.map(|(texel, _)| texel), [6, 7, 8, 9]);
            let limit = if distance % 32 == 0 { 1.0 / 256.0 } else { 1.0 / 64.0 };
            for ((_, weight), spline) in taps.into_iter().zip(spline) {
                assert!((weight - spline).abs() <= limit, "{distance}: {weight} {spline}");
            }
            assert_eq!(taps.iter().map(|(_, weight)| weight).sum::<f64>(), 1.0);
        }
        // Another table: half of the texel before.
        let other = CubicWeights::new([128, 0, 0, 0, 0]);
        assert_eq!(other.taps(0, 0).map(|(_, weight)| weight), [0.5, 0.5, 0.0, 0.0]);
    }
}
