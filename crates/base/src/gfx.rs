//! Generations of AMD's graphics core.

use std::fmt;

/// Declares the generations with their numbers.
macro_rules! generations {
    ($($(#[$doc:meta])* $variant:ident = $number:literal,)*) => {
        /// A generation of AMD's graphics core: which registers, packets and instructions a chip has. Facts that do not tell
        /// two of them apart say so where they stand.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Gfx { $($(#[$doc])* $variant,)* }

        impl Gfx {
            /// Every generation, oldest first.
            pub const ALL: [Gfx; [$($number,)*].len()] = [$(Gfx::$variant,)*];

            /// Its number, as tables of instructions and rules state it: `10.3`.
            pub const fn number(self) -> &'static str {
                match self { $(Gfx::$variant => $number,)* }
            }

            /// Its name: `gfx10.3`.
            pub const fn name(self) -> &'static str {
                match self { $(Gfx::$variant => concat!("gfx", $number),)* }
            }
        }
    };
}

generations! {
    /// Southern Islands.
    Gfx6 = "6",
    /// Sea Islands.
    Gfx7 = "7",
    /// Volcanic Islands, Polaris.
    Gfx8 = "8",
    /// Vega, Raven, MI100, MI200.
    Gfx9 = "9",
    /// Vega 20: registers and packets of gfx9, and a few instructions more.
    Gfx906 = "906",
    /// MI300: gfx9.4.3 and after.
    Gfx940 = "9.4.3",
    /// Navi 1x.
    Gfx10 = "10",
    /// Navi 2x.
    Gfx10_3 = "10.3",
    /// Navi 3x.
    Gfx11 = "11",
    /// Strix.
    Gfx11_5 = "11.5",
    /// Navi 4x.
    Gfx12 = "12",
}

impl Gfx {
    /// By the version of the graphics core: 10, 3 for gfx1030; 9, 4, 3 for gfx943.
    pub const fn from_version(major: u32, minor: u32, stepping: u32) -> Option<Gfx> {
        Some(match (major, minor, stepping) {
            (6, ..) => Gfx::Gfx6,
            (7, ..) => Gfx::Gfx7,
            (8, ..) => Gfx::Gfx8,
            (9, 4, 3..) | (9, 5.., _) => Gfx::Gfx940,
            (9, 0, 6) => Gfx::Gfx906,
            (9, ..) => Gfx::Gfx9,
            (10, 3.., _) => Gfx::Gfx10_3,
            (10, ..) => Gfx::Gfx10,
            (11, 5.., _) => Gfx::Gfx11_5,
            (11, ..) => Gfx::Gfx11,
            (12, ..) => Gfx::Gfx12,
            _ => return None,
        })
    }

    /// By its number: `10.3`.
    pub fn from_number(number: &str) -> Option<Gfx> {
        Gfx::ALL.into_iter().find(|gfx| gfx.number() == number)
    }
}

impl fmt::Display for Gfx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_by_version() {
        assert_eq!(Gfx::from_version(10, 1, 0), Some(Gfx::Gfx10));
        assert_eq!(Gfx::from_version(10, 3, 6), Some(Gfx::Gfx10_3));
        assert_eq!(Gfx::from_version(9, 0, 6), Some(Gfx::Gfx906));
        assert_eq!(Gfx::from_version(9, 4, 2), Some(Gfx::Gfx9));
        assert_eq!(Gfx::from_version(9, 4, 3), Some(Gfx::Gfx940));
        assert_eq!(Gfx::from_version(9, 5, 0), Some(Gfx::Gfx940));
        assert_eq!(Gfx::from_version(11, 5, 1), Some(Gfx::Gfx11_5));
        assert_eq!(Gfx::from_version(13, 0, 0), None);
    }

    #[test]
    fn generations_by_number() {
        assert!(Gfx::ALL.iter().all(|&gfx| Gfx::from_number(gfx.number()) == Some(gfx)));
        assert_eq!(Gfx::from_number("10.2"), None);
        assert_eq!(Gfx::Gfx940.to_string(), "gfx9.4.3");
    }
}
