//! The operations: one table. Name in the text form, types of operands and result, traits; the doc comment is the meaning.
//!
//! What an operation of this table computes from bits is [`crate::semantics::eval`]; what the others do is defined by their doc
//! comments and by the interpreter. Elementwise operations work lane by lane.

use super::types::{Base, BaseSet};

/// What the type of an operand or result must be, relative to the type variable `T` of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `T` itself, which is of one of these bases.
    T(BaseSet),
    /// As many lanes as `T`, of this base.
    Lanes(Base),
    /// As many lanes as `T`, of any base of the set.
    LanesOf(BaseSet),
    /// A scalar of this base.
    Scalar(Base),
    /// A vector of four lanes of 32 bits.
    Quad,
    /// A vector of two lanes of 32 bits.
    Pair,
    /// A scalar with the base of `T`.
    LaneOfT,
    /// Any type at all.
    Any,
}

/// What passes may assume about an operation: a set of `Traits::*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits(u16);

impl Traits {
    /// No trait.
    pub const NONE: Traits = Traits(0);
    /// Lane by lane from bits to bits, by [`crate::semantics::eval`]: it folds, and it can be scalarized.
    pub const ELEMENTWISE: Traits = Traits(1);
    /// The result depends on operands and payload alone: equal ones may be shared, unused ones removed, and all may be moved.
    pub const PURE: Traits = Traits(2);
    /// `op(a, b) = op(b, a)`; further operands stay.
    pub const COMMUTATIVE: Traits = Traits(4);
    /// `op(op(a, b), c) = op(a, op(b, c))`, bit for bit.
    pub const ASSOCIATIVE: Traits = Traits(8);
    /// Arithmetic of floats: float modes and exactness apply.
    pub const FLOAT: Traits = Traits(16);
    /// Reads what others may write: memory, variables, outputs.
    pub const READS: Traits = Traits(32);
    /// Does more than make a result: it is never removed, and keeps its order with others that read or have effects.
    pub const EFFECT: Traits = Traits(64);
    /// The result depends on which invocations execute it together: it is not moved into or out of flow.
    pub const CONVERGENT: Traits = Traits(128);
    /// Ends a region.
    pub const TERMINATOR: Traits = Traits(256);
    /// Has regions.
    pub const STRUCTURED: Traits = Traits(512);

    /// Both sets.
    pub const fn or(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// Whether all traits of another set are in this one.
    pub const fn has(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The row of an operation.
#[derive(Debug, Clone, Copy)]
pub struct OpRow {
    /// Name in the text form.
    pub name: &'static str,
    /// Type of the result; `None` where it has none, or any number of them.
    pub result: Option<Rule>,
    /// Types of the operands that it always has; operations whose payload adds operands list those before them.
    pub operands: &'static [Rule],
    /// What passes may assume.
    pub traits: Traits,
}

const INT: Rule = Rule::T(BaseSet::INT);
const FLT: Rule = Rule::T(BaseSet::FLOAT);
const BIT: Rule = Rule::T(BaseSet::BITS);
const ANY: Rule = Rule::T(BaseSet::ANY);
const L1: Rule = Rule::Lanes(Base::B1);
const L32: Rule = Rule::Lanes(Base::B32);
const INTS: Rule = Rule::LanesOf(BaseSet::INT);
const FLTS: Rule = Rule::LanesOf(BaseSet::FLOAT);
const BOOL: Rule = Rule::Scalar(Base::B1);
const S32: Rule = Rule::Scalar(Base::B32);
const LANE: Rule = Rule::LaneOfT;
const FREE: Rule = Rule::Any;
const QUAD: Rule = Rule::Quad;
const PAIR: Rule = Rule::Pair;

const ALU: Traits = Traits::ELEMENTWISE.or(Traits::PURE);
const COM: Traits = ALU.or(Traits::COMMUTATIVE);
const ASC: Traits = COM.or(Traits::ASSOCIATIVE);
const FLO: Traits = ALU.or(Traits::FLOAT);
const FCO: Traits = COM.or(Traits::FLOAT);
const PUR: Traits = Traits::PURE;
const NON: Traits = Traits::NONE;
const RD: Traits = Traits::READS;
const WR: Traits = Traits::EFFECT;
const RW: Traits = Traits::EFFECT.or(Traits::READS);
const CNV: Traits = Traits::CONVERGENT;
const SYN: Traits = Traits::EFFECT.or(Traits::READS).or(Traits::CONVERGENT);
const END: Traits = Traits::TERMINATOR.or(Traits::EFFECT);
const FLW: Traits = Traits::STRUCTURED;

macro_rules! result {
    (-) => {
        None
    };
    ($rule:ident) => {
        Some($rule)
    };
}

macro_rules! ops {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $result:tt = [$($operand:ident),*] $traits:ident;)+) => {
        /// An operation. Its doc comment is its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Op { $( $(#[doc = $doc])+ $variant, )+ }

        impl Op {
            /// Every operation, in the order of the table.
            pub const ALL: &'static [Op] = &[$(Op::$variant),+];

            /// The operation with a name of the text form.
            pub fn from_name(name: &str) -> Option<Op> {
                Some(match name { $($name => Op::$variant,)+ _ => return None })
            }

            /// Its row.
            #[inline]
            pub const fn row(self) -> &'static OpRow {
                const ROWS: &[OpRow] = &[$(
                    OpRow { name: $name, result: result!($result), operands: &[$($operand),*], traits: $traits },
                )+];
                &ROWS[self as usize]
            }
        }
    };
}

ops! {
    /// A constant scalar: [`super::Payload::Const`]. Vectors of constants are [`Op::Vec`] of these.
    Const "const" ANY = [] PUR;
    /// A value of which nothing is known. Every use may see other bits.
    Undef "undef" ANY = [] PUR;
    /// A vector of as many scalars as it has lanes.
    Vec "vec" ANY = [] PUR;
    /// One lane of a vector: [`super::Payload::Lane`].
    Extract "extract" FREE = [FREE] PUR;
    /// The lane of a vector that a value chooses. Undefined past the last lane.
    ExtractDyn "extract_dyn" LANE = [ANY, S32] PUR;
    /// The vector with the lane that a value chooses replaced: vector, scalar, lane. Undefined past the last lane.
    InsertDyn "insert_dyn" ANY = [ANY, LANE, S32] PUR;
    /// The same bits in lanes of another width, the first lane in the lowest bits.
    Bitcast "bitcast" FREE = [FREE] PUR;
    /// The second operand where the first is true, else the third.
    Select "select" ANY = [L1, ANY, ANY] ALU;

    /// Sum, wrapping.
    IAdd "iadd" INT = [INT, INT] ASC;
    /// Difference, wrapping.
    ISub "isub" INT = [INT, INT] ALU;
    /// Product, wrapping.
    IMul "imul" INT = [INT, INT] ASC;
    /// Upper half of the signed product.
    IMulHigh "imul_high" INT = [INT, INT] COM;
    /// Upper half of the unsigned product.
    UMulHigh "umul_high" INT = [INT, INT] COM;
    /// Signed quotient, rounded toward zero. Undefined for a divisor of zero (folds to 0) and for the least number by -1 (wraps).
    IDiv "idiv" INT = [INT, INT] ALU;
    /// Unsigned quotient. Undefined for a divisor of zero (folds to 0).
    UDiv "udiv" INT = [INT, INT] ALU;
    /// Signed remainder with the sign of the dividend. Undefined as [`Op::IDiv`] is (folds to 0).
    IRem "irem" INT = [INT, INT] ALU;
    /// Signed remainder with the sign of the divisor. Undefined as [`Op::IDiv`] is (folds to 0).
    IMod "imod" INT = [INT, INT] ALU;
    /// Unsigned remainder. Undefined for a divisor of zero (folds to 0).
    UMod "umod" INT = [INT, INT] ALU;
    /// 1 where the unsigned sum wraps, else 0.
    UAddCarry "uadd_carry" INT = [INT, INT] COM;
    /// 1 where the unsigned difference wraps, else 0.
    USubBorrow "usub_borrow" INT = [INT, INT] ALU;
    /// Negation, wrapping.
    INeg "ineg" INT = [INT] ALU;
    /// Absolute value, wrapping.
    IAbs "iabs" INT = [INT] ALU;
    /// Signed minimum.
    IMin "imin" INT = [INT, INT] ASC;
    /// Signed maximum.
    IMax "imax" INT = [INT, INT] ASC;
    /// Unsigned minimum.
    UMin "umin" INT = [INT, INT] ASC;
    /// Unsigned maximum.
    UMax "umax" INT = [INT, INT] ASC;

    /// Bitwise and.
    IAnd "iand" BIT = [BIT, BIT] ASC;
    /// Bitwise or.
    IOr "ior" BIT = [BIT, BIT] ASC;
    /// Bitwise exclusive or.
    IXor "ixor" BIT = [BIT, BIT] ASC;
    /// Bitwise complement.
    INot "inot" BIT = [BIT] ALU;
    /// Shift left. The count is taken modulo the width; it has 32 bits in every width.
    IShl "ishl" INT = [INT, L32] ALU;
    /// Arithmetic shift right; the count as in [`Op::IShl`].
    IShr "ishr" INT = [INT, L32] ALU;
    /// Logical shift right; the count as in [`Op::IShl`].
    UShr "ushr" INT = [INT, L32] ALU;
    /// How many bits are set.
    BitCount "bit_count" L32 = [INT] ALU;
    /// The bits in reverse order.
    BitReverse "bit_reverse" INT = [INT] ALU;
    /// Number of the lowest set bit; -1 if there is none.
    FindLsb "find_lsb" L32 = [INT] ALU;
    /// Number of the highest set bit; -1 if there is none.
    FindUMsb "find_umsb" L32 = [INT] ALU;
    /// Number of the highest bit that differs from the sign; -1 if there is none.
    FindIMsb "find_imsb" L32 = [INT] ALU;
    /// Base with `count` bits from `offset` on replaced by the lowest of the second operand: base, insert, offset, count.
    /// Undefined where offset + count is more than the width (folds to the base).
    BitfieldInsert "bitfield_insert" INT = [INT, INT, L32, L32] ALU;
    /// `count` bits from `offset` on, zero-extended: base, offset, count. Undefined where offset + count is more than the width
    /// (folds to 0).
    UBitfieldExtract "ubitfield_extract" INT = [INT, L32, L32] ALU;
    /// The same, sign-extended.
    IBitfieldExtract "ibitfield_extract" INT = [INT, L32, L32] ALU;

    /// Equal bits. Handles are equal if they are the same element of the same binding.
    IEq "ieq" L1 = [ANY, ANY] COM;
    /// Different bits. Handles differ as [`Op::IEq`] says.
    INe "ine" L1 = [ANY, ANY] COM;
    /// Signed less than.
    ILt "ilt" L1 = [INT, INT] ALU;
    /// Signed greater than or equal.
    IGe "ige" L1 = [INT, INT] ALU;
    /// Unsigned less than.
    ULt "ult" L1 = [INT, INT] ALU;
    /// Unsigned greater than or equal.
    UGe "uge" L1 = [INT, INT] ALU;

    /// Sum, rounded once.
    FAdd "fadd" FLT = [FLT, FLT] FCO;
    /// Difference, rounded once.
    FSub "fsub" FLT = [FLT, FLT] FLO;
    /// Product, rounded once.
    FMul "fmul" FLT = [FLT, FLT] FCO;
    /// `a · b + c`, rounded once.
    FFma "ffma" FLT = [FLT, FLT, FLT] FCO;
    /// Quotient. The interpreter rounds it correctly; a machine may be off by 2.5 units in the last place.
    FDiv "fdiv" FLT = [FLT, FLT] FLO;
    /// The other sign, of NaNs too: changes one bit, and flushes nothing.
    FNeg "fneg" FLT = [FLT] ALU;
    /// No sign, of NaNs too: changes one bit, and flushes nothing.
    FAbs "fabs" FLT = [FLT] ALU;
    /// Minimum. A NaN loses against a number; -0 is less than +0.
    FMin "fmin" FLT = [FLT, FLT] FCO;
    /// Maximum. A NaN loses against a number; -0 is less than +0.
    FMax "fmax" FLT = [FLT, FLT] FCO;
    /// The greatest integer that is not greater.
    FFloor "ffloor" FLT = [FLT] FLO;
    /// The least integer that is not less.
    FCeil "fceil" FLT = [FLT] FLO;
    /// The integer part.
    FTrunc "ftrunc" FLT = [FLT] FLO;
    /// The nearest integer, ties to even.
    FRoundEven "fround_even" FLT = [FLT] FLO;
    /// Square root, correctly rounded by the interpreter.
    FSqrt "fsqrt" FLT = [FLT] FLO;
    /// One over the square root, correctly rounded by the interpreter within one unit in the last place.
    FRsqrt "frsqrt" FLT = [FLT] FLO;
    /// Sine of radians.
    FSin "fsin" FLT = [FLT] FLO;
    /// Cosine of radians.
    FCos "fcos" FLT = [FLT] FLO;
    /// Two to the power of.
    FExp2 "fexp2" FLT = [FLT] FLO;
    /// Logarithm to base two.
    FLog2 "flog2" FLT = [FLT] FLO;
    /// `a · 2^b` with `b` a signed integer.
    FLdexp "fldexp" FLT = [FLT, L32] FLO;
    /// The significand in [0.5, 1), with the sign; zeros, infinities and NaNs stay.
    FFrexpSig "ffrexp_sig" FLT = [FLT] FLO;
    /// The exponent that belongs to [`Op::FFrexpSig`]; 0 for zeros, infinities and NaNs.
    FFrexpExp "ffrexp_exp" L32 = [FLT] FLO;
    /// Rounded to 16 bits and back, denormals of 16 bits to zero.
    FQuantizeF16 "fquantize_f16" FLT = [FLT] FLO;

    /// Equal numbers; false for NaN.
    FEq "feq" L1 = [FLT, FLT] FCO;
    /// Different numbers; true for NaN.
    FNeu "fneu" L1 = [FLT, FLT] FCO;
    /// Less than; false for NaN.
    FLt "flt" L1 = [FLT, FLT] FLO;
    /// Greater than or equal; false for NaN.
    FGe "fge" L1 = [FLT, FLT] FLO;

    /// A signed integer in another width: sign-extended or cut.
    I2I "i2i" INT = [INTS] ALU;
    /// An unsigned integer in another width: zero-extended or cut.
    U2U "u2u" INT = [INTS] ALU;
    /// A signed integer as a float, rounded by the mode of the result's width.
    I2F "i2f" FLT = [INTS] FLO;
    /// An unsigned integer as a float, rounded by the mode of the result's width.
    U2F "u2f" FLT = [INTS] FLO;
    /// A float as a signed integer, toward zero. Undefined past the ends of the range (folds to the end) and for NaN (folds to 0).
    F2I "f2i" INT = [FLTS] FLO;
    /// A float as an unsigned integer, toward zero. Undefined as [`Op::F2I`] is.
    F2U "f2u" INT = [FLTS] FLO;
    /// A float in another width, rounded by the mode of the result's width.
    F2F "f2f" FLT = [FLTS] FLO;
    /// A float in another width, rounded to the nearest even in any mode.
    F2FRte "f2f_rte" FLT = [FLTS] FLO;
    /// A float in another width, rounded toward zero in any mode.
    F2FRtz "f2f_rtz" FLT = [FLTS] FLO;

    /// A system value, the same at every time: [`super::Payload::SysVal`].
    SysVal "sysval" FREE = [] PUR;
    /// Whether the invocation is a helper now: [`Op::Demote`] changes it.
    IsHelper "is_helper" BOOL = [] RD;
    /// The descriptor of a binding at an array index: [`super::Payload::Resource`].
    Descriptor "descriptor" FREE = [S32] PUR;
    /// Size in bytes of what a buffer descriptor gives access to: descriptor.
    BufferSize "buffer_size" S32 = [FREE] PUR;
    /// Loads a leaf of a variable: [`super::Payload::Var`]; operands are the path of indices. Undefined past the end of an array.
    LoadVar "load_var" FREE = [] RD;
    /// Stores a leaf of a variable: value, then the path. Lanes that the mask leaves out stay. Nothing is stored past an end.
    StoreVar "store_var" - = [FREE] WR;
    /// The input variable interpolated elsewhere: [`super::Payload::Interp`]; the sample or the offset if it takes one, then the path.
    InterpVar "interp_var" FREE = [] RD;
    /// Loads lanes of bytes that follow each other: [`super::Payload::Mem`]; descriptor if the space has one, offset or address.
    Load "load" FREE = [] RD;
    /// Stores: value, then as [`Op::Load`].
    Store "store" - = [FREE] WR;
    /// Reads, computes and writes without interference: [`super::Payload::Atomic`]; value, then as [`Op::Load`]. The result is
    /// what memory held before.
    Atomic "atomic" ANY = [ANY] RW;
    /// The same, where memory is written only if it is equal to the second operand: new value, compared value, then as [`Op::Load`].
    AtomicCompare "atomic_compare" ANY = [ANY, ANY] RW;
    /// Loads lanes of an interface slot: [`super::Payload::Slot`]; vertex if the access has one, offset in slots. In a fragment shader,
    /// an input without a vertex has the value of the provoking vertex. Undefined for an offset past the payload's count.
    LoadSlot "load_slot" FREE = [] RD;
    /// Stores to an interface slot: value, then as [`Op::LoadSlot`]. Nothing is stored past the payload's count.
    StoreSlot "store_slot" - = [FREE] WR;
    /// The barycentric coordinates i, j of an interpolation: [`super::Payload::Bary`]; the sample or the offset if it takes one.
    Barycentric "barycentric" PAIR = [] NON;
    /// Loads and interpolates an interface slot: barycentric coordinates, offset in slots; [`super::Payload::Slot`]. The result is
    /// `v0 + i * (v1 - v0) + j * (v2 - v0)` of the slot at the three vertices, in floats of 32 bits. Lanes of 16 bits are extended
    /// before, and the result is rounded to 16 bits.
    LoadInterpolated "load_interpolated" FREE = [PAIR, S32] NON;

    /// Samples an image: [`super::Payload::Image`]. Operands: image, sampler, coordinates, then those that the payload names. Without
    /// a level or derivatives, differences of the coordinates within the quad choose the level, to which the bias is added. Where quads
    /// have no derivatives ([`super::ShaderInfo::has_derivatives`]), the level is the bias, or 0.
    ImageSample "image_sample" FREE = [FREE, FREE, FREE] RD;
    /// Gathers one component of four texels; operands as [`Op::ImageSample`].
    ImageGather "image_gather" FREE = [FREE, FREE, FREE] RD;
    /// The levels of detail (as accessed, as computed) that sampling would use: image, sampler, coordinates.
    ImageQueryLod "image_query_lod" PAIR = [FREE, FREE, FREE] CNV;
    /// Reads a texel of a sampled image or a texel buffer: image, integer coordinates, then those that the payload names.
    ImageFetch "image_fetch" FREE = [FREE, FREE] RD;
    /// Reads a texel of a storage image: image, coordinates, then those that the payload names.
    ImageLoad "image_load" FREE = [FREE, FREE] RD;
    /// Writes a texel: texel, image, coordinates, then those that the payload names.
    ImageStore "image_store" - = [FREE, FREE, FREE] WR;
    /// [`Op::Atomic`] on a texel: value, image, coordinates, then those that the payload names.
    ImageAtomic "image_atomic" ANY = [ANY, FREE, FREE] RW;
    /// [`Op::AtomicCompare`] on a texel: new value, compared value, image, coordinates, then those that the payload names.
    ImageAtomicCompare "image_atomic_compare" ANY = [ANY, ANY, FREE, FREE] RW;
    /// Width, height, depth and layers of a level, as many as the image has: image, level.
    ImageSize "image_size" FREE = [FREE, S32] PUR;
    /// How many levels an image has.
    ImageLevels "image_levels" S32 = [FREE] PUR;
    /// How many samples a texel has.
    ImageSamples "image_samples" S32 = [FREE] PUR;

    /// Orders memory, and waits for other invocations if it has an execution scope: [`super::Payload::Barrier`].
    Barrier "barrier" - = [] SYN;
    /// True in the active invocation with the lowest number of the subgroup.
    Elect "elect" BOOL = [] CNV;
    /// Whether the operand is true in any active invocation of the subgroup.
    VoteAny "vote_any" BOOL = [BOOL] CNV;
    /// Whether the operand is true in all active invocations.
    VoteAll "vote_all" BOOL = [BOOL] CNV;
    /// Whether the operand has the same bits in all active invocations.
    VoteIEq "vote_ieq" BOOL = [BIT] CNV;
    /// Whether the operand is the same number in all active invocations; false for NaN.
    VoteFEq "vote_feq" BOOL = [FLT] CNV;
    /// The invocations where the operand is true, one bit each.
    Ballot "ballot" QUAD = [BOOL] CNV;
    /// The bit of this invocation in four words, as [`Op::Ballot`] makes them.
    InverseBallot "inverse_ballot" BOOL = [QUAD] CNV;
    /// The operand of the active invocation with the lowest number.
    ReadFirst "read_first" BIT = [BIT] CNV;
    /// The operand of the invocation with a number that is the same in all active invocations: value, number. Undefined if it is
    /// not active.
    Broadcast "broadcast" BIT = [BIT, S32] CNV;
    /// The operand of the invocation with a number: value, number. Undefined if it is not active or past the subgroup.
    Shuffle "shuffle" BIT = [BIT, S32] CNV;
    /// [`Op::Shuffle`] from own number ^ second operand.
    ShuffleXor "shuffle_xor" BIT = [BIT, S32] CNV;
    /// [`Op::Shuffle`] from own number - second operand.
    ShuffleUp "shuffle_up" BIT = [BIT, S32] CNV;
    /// [`Op::Shuffle`] from own number + second operand.
    ShuffleDown "shuffle_down" BIT = [BIT, S32] CNV;
    /// The operand of the invocation of the quad with a number from 0 to 3: value, number.
    QuadBroadcast "quad_broadcast" BIT = [BIT, S32] CNV;
    /// The operand of the neighbour in the quad: [`super::Payload::Quad`].
    QuadSwap "quad_swap" BIT = [BIT] CNV;
    /// An operation over all active invocations of the cluster: [`super::Payload::Reduce`].
    Reduce "reduce" BIT = [BIT] CNV;
    /// The same over the active invocations up to this one.
    InclusiveScan "inclusive_scan" BIT = [BIT] CNV;
    /// The same over those before this one; the identity of the operation in the first.
    ExclusiveScan "exclusive_scan" BIT = [BIT] CNV;
    /// Derivative in x, fine or coarse as the back end likes.
    Ddx "ddx" FLT = [FLT] CNV;
    /// Derivative in y, fine or coarse as the back end likes.
    Ddy "ddy" FLT = [FLT] CNV;
    /// Derivative in x of the row of the quad that the invocation is in.
    DdxFine "ddx_fine" FLT = [FLT] CNV;
    /// Derivative in y of the column of the quad that the invocation is in.
    DdyFine "ddy_fine" FLT = [FLT] CNV;
    /// Derivative in x of the quad's first row.
    DdxCoarse "ddx_coarse" FLT = [FLT] CNV;
    /// Derivative in y of the quad's first column.
    DdyCoarse "ddy_coarse" FLT = [FLT] CNV;
    /// Makes the invocation a helper: from now on its stores, atomics and outputs have no effect.
    Demote "demote" - = [] SYN;
    /// The time of a clock, low and high word: [`super::Payload::Scope`].
    Clock "clock" PAIR = [] RW;
    /// Ends a vertex of a geometry shader: outputs become undefined. [`super::Payload::Stream`].
    EmitVertex "emit_vertex" - = [] SYN;
    /// Ends a primitive of a geometry shader. [`super::Payload::Stream`].
    EndPrimitive "end_primitive" - = [] SYN;

    /// What registers of an AMD GPU hold when the program starts, as many words as the result has: [`super::Payload::Register`]. The
    /// interpreter does not run this and the other operations of this group, which stand for instructions of these GPUs.
    AmdRegister "amd_register" FREE = [] PUR;
    /// The descriptor that words are: eight of an image, four of a buffer or sampler.
    AmdDescriptor "amd_descriptor" FREE = [FREE] PUR;
    /// Loads words from memory that does not change: address, offset in bytes.
    AmdLoadScalar "amd_load_scalar" FREE = [PAIR, S32] PUR;
    /// Loads words from a buffer: descriptor, offset of the invocation, offset of the subgroup, number of the element;
    /// [`super::Payload::Buffer`].
    AmdLoadBuffer "amd_load_buffer" FREE = [FREE, S32, S32, S32] RD;
    /// Stores words: value, then as [`Op::AmdLoadBuffer`].
    AmdStoreBuffer "amd_store_buffer" - = [FREE, FREE, S32, S32, S32] WR;
    /// Exports four words: [`super::Payload::Export`].
    AmdExport "amd_export" - = [QUAD] RW;
    /// Sends a message with a word: [`super::Payload::Number`].
    AmdSendMessage "amd_send_message" - = [S32] SYN;
    /// Whether the number of the invocation in its subgroup is less than seven bits of the operand, from the bit
    /// [`super::Payload::Number`] on.
    AmdLaneBelow "amd_lane_below" BOOL = [S32] PUR;
    /// A sum, and how many bits of a mask belong to earlier invocations of the subgroup: mask, sum.
    AmdMaskedCount "amd_masked_count" S32 = [PAIR, S32] PUR;
    /// In each 16 lanes, the value of the lane that four bits of two words choose: value, words for the lower and upper eight lanes.
    AmdPermuteLane16 "amd_permute_lane16" S32 = [S32, S32, S32] CNV;
    /// The sum of the third operand and the products of the four bytes of the first two.
    AmdDot4 "amd_dot4" S32 = [S32, S32, S32] PUR;
    /// Where a direction meets a cube: the two coordinates on the face, the second axis first, twice the coordinate along the axis of the face,
    /// and the number of the face, as floats.
    AmdCube "amd_cube" QUAD = [S32, S32, S32] PUR;
    /// Tests a ray against a node of a tree of boxes: descriptor, node (two words), extent, origin, direction, inverse direction (three words each).
    AmdIntersectRay "amd_intersect_ray" QUAD = [FREE, PAIR, S32, FREE, FREE, FREE] RD;
    /// Two floats as floats of 16 bits, rounded toward zero, the first in the lower half.
    AmdPackHalf "amd_pack_half" S32 = [S32, S32] PUR;
    /// Two floats as unsigned normalized numbers of 16 bits, the first in the lower half.
    AmdPackUnorm "amd_pack_unorm" S32 = [S32, S32] PUR;
    /// The same, signed.
    AmdPackSnorm "amd_pack_snorm" S32 = [S32, S32] PUR;
    /// A product of floats that is +0 if one of them is a zero, whatever the other is.
    AmdMulZero "amd_mul_zero" S32 = [S32, S32] PUR;
    /// Sine of a number of turns: of 2π times the operand.
    AmdSin "amd_sin" S32 = [S32] PUR;
    /// Cosine of a number of turns.
    AmdCos "amd_cos" S32 = [S32] PUR;
    /// Loads components of an element of a vertex buffer, converted from their format to words: operands as of [`Op::AmdLoadBuffer`];
    /// [`super::Payload::Typed`].
    AmdLoadTyped "amd_load_typed" FREE = [FREE, S32, S32, S32] RD;
    /// The descriptor of the constants that the driver places after the code, of [`super::ShaderInfo::constant_size`] bytes.
    AmdConstants "amd_constants" QUAD = [] PUR;
    /// Adds to a word of the global data share, and returns what it was: value, offset in bytes, `m0`.
    AmdAtomicAddGds "amd_atomic_add_gds" S32 = [S32, S32, S32] RW;
    /// Adds the number of active lanes to a word of the memory of the workgroup, and returns what it was: offset in bytes, a constant.
    AmdAppendShared "amd_append_shared" S32 = [S32] SYN;
    /// The same, which subtracts.
    AmdConsumeShared "amd_consume_shared" S32 = [S32] SYN;

    /// Executes its region, which ends with breaks. The results are the operands of the break. [`super::Payload::Body`].
    Block "block" - = [] FLW;
    /// Executes its first region where the operand is true, else the second. [`super::Payload::Arms`].
    If "if" - = [BOOL] FLW;
    /// Executes its region with its operands as parameters, and again at each `continue` of it. [`super::Payload::Body`].
    Loop "loop" - = [] FLW;
    /// Calls a function of the shader: [`super::Payload::Callee`].
    Call "call" - = [] SYN;
    /// Leaves the enclosing `block`, `if` or `loop` that [`super::Payload::Target`] names; operands are its results.
    Break "break" - = [] END;
    /// Starts the enclosing `loop` that [`super::Payload::Target`] names again; operands are its parameters.
    Continue "continue" - = [] END;
    /// Returns from the function; operands are its results.
    Return "return" - = [] END;
    /// Ends the invocation at once.
    Terminate "terminate" - = [] END;
    /// Is not reached: if it is, everything is undefined.
    Unreachable "unreachable" - = [] END;
}

impl Op {
    /// Name in the text form.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it has all traits of a set.
    pub const fn has(self, traits: Traits) -> bool {
        self.row().traits.has(traits)
    }

    /// Whether it moves its first operand between invocations of the subgroup or quad, without changing the bits.
    pub const fn is_subgroup_move(self) -> bool {
        matches!(
            self,
            Op::ReadFirst
                | Op::Broadcast
                | Op::Shuffle
                | Op::ShuffleXor
                | Op::ShuffleUp
                | Op::ShuffleDown
                | Op::QuadBroadcast
                | Op::QuadSwap
        )
    }

    /// Whether it combines the values of the invocations of the subgroup or cluster.
    pub const fn is_reduction(self) -> bool {
        matches!(self, Op::Reduce | Op::InclusiveScan | Op::ExclusiveScan)
    }

    /// Whether it is a derivative.
    pub const fn is_derivative(self) -> bool {
        matches!(self, Op::Ddx | Op::Ddy | Op::DdxFine | Op::DdyFine | Op::DdxCoarse | Op::DdyCoarse)
    }
}
