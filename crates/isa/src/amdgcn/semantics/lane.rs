//! Operations over all lanes of a wave at once. One definition gives both the function of one lane and the loop over all,
//! which the compiler turns into vector instructions.

use super::Mode;

/// How many lanes a wave has at most.
pub const LANES: usize = 64;

/// One register of a wave.
pub type Lanes = [u32; LANES];

/// An operation on lanes of 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct Lane {
    /// One lane.
    pub one: fn(&Mode, u32, u32, u32) -> u32,
    /// Every lane: `many(mode, result, sources…)`.
    pub many: fn(&Mode, &mut Lanes, &Lanes, &Lanes, &Lanes),
    /// Which bits of the result depend on which of the sources.
    pub spread: Spread,
}

/// How unknown bits of sources spread into a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Every bit depends on every bit.
    All,
    /// Each bit is a bit of a source, or a bitwise function of some.
    Bits,
    /// Bits depend on the same and lower ones of the sources.
    Up,
    /// Every bit, unless the result is the same with all unknown bits clear and all set: what lies between is so, too.
    Steady,
}

/// Defines a [`super::Op::Lane`] by an expression over up to three sources.
macro_rules! lanes {
    ($spread:ident, $m:ident, $a:ident, $b:ident, $c:ident, $e:expr) => {
        $crate::amdgcn::semantics::Op::Lane($crate::amdgcn::semantics::Lane {
            one: |$m: &$crate::amdgcn::semantics::Mode, $a: u32, $b: u32, $c: u32| -> u32 { $e },
            many: |$m, result, x, y, z| {
                for (((place, &$a), &$b), &$c) in result.iter_mut().zip(x).zip(y).zip(z) {
                    *place = $e;
                }
            },
            spread: $crate::amdgcn::semantics::Spread::$spread,
        })
    };
}

/// One source.
macro_rules! u1 {
    (|$a:ident| $e:expr) => {
        lanes!(All, _m, $a, _b, _c, $e)
    };
    (bits |$a:ident| $e:expr) => {
        lanes!(Bits, _m, $a, _b, _c, $e)
    };
    (steady |$a:ident| $e:expr) => {
        lanes!(Steady, _m, $a, _b, _c, $e)
    };
    (mode |$m:ident, $a:ident| $e:expr) => {
        lanes!(All, $m, $a, _b, _c, $e)
    };
}

/// Two sources.
macro_rules! u2 {
    (|$a:ident, $b:ident| $e:expr) => {
        lanes!(All, _m, $a, $b, _c, $e)
    };
    (bits |$a:ident, $b:ident| $e:expr) => {
        lanes!(Bits, _m, $a, $b, _c, $e)
    };
    (up |$a:ident, $b:ident| $e:expr) => {
        lanes!(Up, _m, $a, $b, _c, $e)
    };
    (mode |$m:ident, $a:ident, $b:ident| $e:expr) => {
        lanes!(All, $m, $a, $b, _c, $e)
    };
}

/// Three sources.
macro_rules! u3 {
    (|$a:ident, $b:ident, $c:ident| $e:expr) => {
        lanes!(All, _m, $a, $b, $c, $e)
    };
    (bits |$a:ident, $b:ident, $c:ident| $e:expr) => {
        lanes!(Bits, _m, $a, $b, $c, $e)
    };
    (up |$a:ident, $b:ident, $c:ident| $e:expr) => {
        lanes!(Up, _m, $a, $b, $c, $e)
    };
    (mode |$m:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        lanes!(All, $m, $a, $b, $c, $e)
    };
    (bits mode |$m:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        lanes!(Bits, $m, $a, $b, $c, $e)
    };
}

pub(super) use {lanes, u1, u2, u3};
