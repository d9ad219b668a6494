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
    /// Vega, Raven.
    Gfx9 = "9",
    /// Vega 20: registers and packets of gfx9, and a few instructions more.
    Gfx906 = "906",
    /// MI100: registers and packets of gfx9, instructions of Vega 20, and products of matrices.
    Gfx908 = "908",
    /// MI200: registers and packets of gfx9, and one file of vector and accumulation registers.
    Gfx90a = "90a",
    /// MI300: gfx9.4.3 and after.
    Gfx940 = "9.4.3",
    /// MI350: registers and packets of MI300, and more instructions.
    Gfx950 = "9.5",
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
    /// By its number: `10.3`.
    pub fn from_number(number: &str) -> Option<Gfx> {
        Gfx::ALL.into_iter().find(|gfx| gfx.number() == number)
    }

    /// Whether it is Vega or one of the Instinct GPUs after it, the fifth generation of GCN and CDNA.
    pub const fn is_gfx9(self) -> bool {
        self as u8 >= Gfx::Gfx9 as u8 && (self as u8) < Gfx::Gfx10 as u8
    }

    /// Whether it is MI300 or MI350.
    pub const fn is_mi300(self) -> bool {
        matches!(self, Gfx::Gfx940 | Gfx::Gfx950)
    }

    /// Whether vector and accumulation registers are one file: from MI200 to MI350.
    pub const fn has_unified_vgprs(self) -> bool {
        matches!(self, Gfx::Gfx90a | Gfx::Gfx940 | Gfx::Gfx950)
    }
}

impl fmt::Display for Gfx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Version of the graphics core (GC) as the chip's IP discovery table and the kernel state it: `10.3.1` is Van Gogh. Its
/// numbers are not those of the compilers' target, which is gfx1033 there: only the table of chips leads from one to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GcVersion {
    /// 6 to 12.
    pub major: u8,
    /// 3 in 10.3.1.
    pub minor: u8,
    /// 1 in 10.3.1.
    pub revision: u8,
}

impl GcVersion {
    /// The generation whose registers and packets it has, also of versions that no table names.
    pub const fn generation(self) -> Option<Gfx> {
        Some(match (self.major, self.minor, self.revision) {
            (6, ..) => Gfx::Gfx6,
            (7, ..) => Gfx::Gfx7,
            (8, ..) => Gfx::Gfx8,
            (9, 5.., _) => Gfx::Gfx950,
            (9, 4, 3..) => Gfx::Gfx940,
            (9, 4, 2) => Gfx::Gfx90a,
            (9, 4, 1) => Gfx::Gfx908,
            (9, 4, 0) => Gfx::Gfx906,
            (9, ..) => Gfx::Gfx9,
            (10, 3.., _) => Gfx::Gfx10_3,
            (10, ..) => Gfx::Gfx10,
            (11, 5.., _) => Gfx::Gfx11_5,
            (11, ..) => Gfx::Gfx11,
            (12, ..) => Gfx::Gfx12,
            _ => return None,
        })
    }
}

impl fmt::Display for GcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.revision)
    }
}

/// What compilers generate code for, in the notation of LLVM: `gfx1033`, `gfx90a`. Kernels state it as `gfx_target_version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GfxTarget {
    /// 9 in gfx90a.
    pub major: u8,
    /// 0 in gfx90a.
    pub minor: u8,
    /// 10 in gfx90a.
    pub stepping: u8,
}

impl GfxTarget {
    /// The generation that it is of.
    pub const fn generation(self) -> Option<Gfx> {
        Some(match (self.major, self.minor, self.stepping) {
            (9, 0, 6) => Gfx::Gfx906,
            (9, 0, 8) => Gfx::Gfx908,
            (9, 0, 10) => Gfx::Gfx90a,
            (9, 4, _) => Gfx::Gfx940,
            // Elsewhere the first two numbers are enough, and both notations have them.
            (major, minor, _) => return GcVersion { major, minor, revision: u8::MAX }.generation(),
        })
    }

    /// By its numbers with dots between them: `10.3.3` is gfx1033.
    pub fn from_numbers(text: &str) -> Option<GfxTarget> {
        let mut numbers = text.split('.').map(|number| number.parse().ok());
        let target =
            GfxTarget { major: numbers.next()??, minor: numbers.next()??, stepping: numbers.next()?? };
        numbers.next().is_none().then_some(target)
    }

    /// By its name: `gfx1033`. The last two digits are hexadecimal.
    pub fn from_name(name: &str) -> Option<GfxTarget> {
        let digits = name.strip_prefix("gfx")?;
        let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
        let mut rest = rest.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
        Some(GfxTarget { major: major.parse().ok()?, minor: rest.next()??, stepping: rest.next()?? })
    }
}

impl fmt::Display for GfxTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gfx{}{:x}{:x}", self.major, self.minor, self.stepping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_by_core_version() {
        let of = |major, minor, revision| GcVersion { major, minor, revision }.generation();
        assert_eq!(of(10, 1, 10), Some(Gfx::Gfx10));
        assert_eq!(of(10, 3, 6), Some(Gfx::Gfx10_3));
        assert_eq!(of(9, 4, 0), Some(Gfx::Gfx906), "Vega 20");
        assert_eq!(of(9, 4, 1), Some(Gfx::Gfx908), "Arcturus");
        assert_eq!(of(9, 4, 2), Some(Gfx::Gfx90a), "Aldebaran");
        assert_eq!(of(9, 4, 3), Some(Gfx::Gfx940));
        assert_eq!(of(9, 5, 0), Some(Gfx::Gfx950));
        assert_eq!(of(11, 5, 1), Some(Gfx::Gfx11_5));
        assert_eq!(of(13, 0, 0), None);
    }

    #[test]
    fn generations_by_target() {
        let of = |name| GfxTarget::from_name(name).and_then(GfxTarget::generation);
        assert_eq!(of("gfx906"), Some(Gfx::Gfx906), "Vega 20");
        assert_eq!(of("gfx908"), Some(Gfx::Gfx908), "Arcturus");
        assert_eq!(of("gfx90a"), Some(Gfx::Gfx90a), "Aldebaran");
        assert_eq!(of("gfx942"), Some(Gfx::Gfx940));
        assert_eq!(of("gfx950"), Some(Gfx::Gfx950));
        assert_eq!(of("gfx1036"), Some(Gfx::Gfx10_3));
        assert_eq!(of("gfx1153"), Some(Gfx::Gfx11_5));
        assert_eq!(of("gfx1310"), None);
        for name in ["", "gfx", "gfx9", "gfx1", "navi21", "gfx10zz", "gfx\u{e4}12"] {
            assert_eq!(GfxTarget::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn targets_and_core_versions_are_written_differently() {
        let target = GfxTarget::from_numbers("9.0.10").expect("numbers");
        assert_eq!((target.to_string(), GfxTarget::from_name("gfx90a")), ("gfx90a".to_owned(), Some(target)));
        assert_eq!(GfxTarget::from_numbers("10.3"), None);
        assert_eq!(GfxTarget::from_numbers("10.3.0.1"), None);
        assert_eq!(GcVersion { major: 10, minor: 1, revision: 10 }.to_string(), "10.1.10");
    }

    #[test]
    fn generations_by_number() {
        assert!(Gfx::ALL.iter().all(|&gfx| Gfx::from_number(gfx.number()) == Some(gfx)));
        assert_eq!(Gfx::from_number("10.2"), None);
        assert_eq!(Gfx::Gfx940.to_string(), "gfx9.4.3");
    }
}
