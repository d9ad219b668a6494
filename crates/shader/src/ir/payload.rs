//! What an instruction says beside its operation and operands.

use super::entities::{Func, Inst, Region, Resource, Var};
use super::op::Op;
use super::shader::SystemValue;
use std::fmt;

/// Defines an enumeration whose variants have names in the text form.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[doc = $doc:literal])+ $variant:ident $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[doc = $doc])+ $variant,)+ }

        impl $type {
            /// Every variant.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// Name in the text form.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }

            /// The variant with a name of the text form.
            pub fn from_name(name: &str) -> Option<$type> {
                Some(match name { $($name => $type::$variant,)+ _ => return None })
            }
        }
    };
}

/// Defines a set of flags with names in the text form.
macro_rules! flags {
    ($(#[$meta:meta])* pub struct $type:ident: $bits:ident { $($(#[doc = $doc:literal])+ $flag:ident $name:literal = $value:expr;)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
        pub struct $type($bits);

        impl $type {
            $($(#[doc = $doc])+ pub const $flag: $type = $type($value);)+
            /// No flag.
            pub const NONE: $type = $type(0);
            /// Every flag with its name.
            pub const ALL: &'static [($type, &'static str)] = &[$(($type::$flag, $name)),+];

            /// Whether all flags of another set are in this one.
            pub const fn has(self, other: $type) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether this set and another have a flag in common.
            pub const fn any(self, other: $type) -> bool {
                self.0 & other.0 != 0
            }

            /// Both sets.
            #[must_use]
            pub const fn or(self, other: $type) -> $type {
                $type(self.0 | other.0)
            }

            /// The set without the flags of another.
            #[must_use]
            pub const fn without(self, other: $type) -> $type {
                $type(self.0 & !other.0)
            }

            /// The flag with a name of the text form.
            pub fn from_name(name: &str) -> Option<$type> {
                $type::ALL.iter().find(|(_, n)| *n == name).map(|(flag, _)| *flag)
            }

            /// Whether the set is empty.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut separator = "";
                for (flag, name) in $type::ALL {
                    if self.has(*flag) {
                        write!(f, "{separator}{name}")?;
                        separator = "|";
                    }
                }
                Ok(())
            }
        }
    };
}
pub(super) use {flags, named};

named! {
    /// Which memory an access goes to, and what operands name the bytes.
    pub enum Space {
        /// A uniform buffer: descriptor, 32-bit offset in bytes. Out of bounds as the shader's robustness says.
        Uniform "uniform",
        /// A storage buffer: descriptor, 32-bit offset in bytes.
        Storage "storage",
        /// Push constants: 32-bit offset in bytes.
        Push "push",
        /// Memory of the workgroup: 32-bit offset in bytes.
        Shared "shared",
        /// Memory of the invocation: 32-bit offset in bytes.
        Scratch "scratch",
        /// Any memory: 64-bit address.
        Global "global",
    }
}

impl Space {
    /// Whether a descriptor comes before the offset.
    pub const fn has_descriptor(self) -> bool {
        matches!(self, Space::Uniform | Space::Storage)
    }
}

flags! {
    /// How memory, or a texel, is accessed.
    pub struct Access: u16 {
        /// Happens exactly as often as written, and in order with other volatile accesses.
        VOLATILE "volatile" = 1;
        /// Seen by, and sees, accesses of other invocations after barriers.
        COHERENT "coherent" = 2;
        /// Nobody writes these bytes while the shader runs: loads may be shared and moved.
        READONLY "readonly" = 4;
        /// The shader never reads what it writes here.
        WRITEONLY "writeonly" = 8;
        /// Not used again soon.
        NONTEMPORAL "nontemporal" = 16;
        /// The descriptor may differ between invocations of a subgroup.
        NONUNIFORM "nonuniform" = 32;
        /// One access that no other atomic access tears.
        ATOMIC "atomic" = 64;
        /// No other binding refers to these bytes.
        RESTRICT "restrict" = 128;
    }
}

/// What an access to memory says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemAccess {
    /// Which memory.
    pub space: Space,
    /// How.
    pub access: Access,
    /// The address is a multiple of `2^align`. Never less than what the lanes' base needs.
    pub align: u8,
}

named! {
    /// What an atomic operation writes. [`crate::semantics::atomic`] computes it.
    pub enum AtomicOp {
        /// The sum.
        Add "add",
        /// The signed minimum.
        IMin "imin",
        /// The signed maximum.
        IMax "imax",
        /// The unsigned minimum.
        UMin "umin",
        /// The unsigned maximum.
        UMax "umax",
        /// Bitwise and.
        And "and",
        /// Bitwise or.
        Or "or",
        /// Bitwise exclusive or.
        Xor "xor",
        /// The operand.
        Exchange "exchange",
        /// The sum of floats.
        FAdd "fadd",
        /// The minimum of floats.
        FMin "fmin",
        /// The maximum of floats.
        FMax "fmax",
    }
}

named! {
    /// Who takes part.
    pub enum Scope {
        /// The invocation alone.
        Invocation "invocation",
        /// The subgroup.
        Subgroup "subgroup",
        /// The workgroup.
        Workgroup "workgroup",
        /// Everything that the queue family runs.
        QueueFamily "queue_family",
        /// The device.
        Device "device",
    }
}

flags! {
    /// How a barrier orders memory.
    pub struct Order: u8 {
        /// Later accesses stay after it.
        ACQUIRE "acquire" = 1;
        /// Earlier accesses stay before it.
        RELEASE "release" = 2;
        /// What was written is made available.
        AVAILABLE "available" = 4;
        /// What is available is made visible.
        VISIBLE "visible" = 8;
    }
}

flags! {
    /// Which memory a barrier orders.
    pub struct MemoryKinds: u8 {
        /// Storage and uniform buffers, and global memory.
        BUFFERS "buffers" = 1;
        /// Workgroup memory.
        SHARED "shared" = 2;
        /// Images and texel buffers.
        IMAGES "images" = 4;
        /// Outputs of the shader.
        OUTPUTS "outputs" = 8;
    }
}

/// What a barrier says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BarrierInfo {
    /// Who waits for each other; the invocation alone where it only orders memory.
    pub execution: Scope,
    /// Between whom memory is ordered.
    pub memory: Scope,
    /// How.
    pub order: Order,
    /// Which memory.
    pub kinds: MemoryKinds,
}

named! {
    /// The shape of an image.
    pub enum Dim {
        /// One dimension.
        D1 "1d",
        /// Two.
        D2 "2d",
        /// Three.
        D3 "3d",
        /// Six faces, addressed by a direction or by face.
        Cube "cube",
        /// Texels of a buffer.
        Buffer "buffer",
        /// The attachment at the fragment: coordinates are relative to the fragment, and the layer is the one that is rendered to, or the
        /// view with multiview. One of the two is 0, because stages do not choose layers with multiview.
        Subpass "subpass",
    }
}

impl Dim {
    /// Coordinates without the layer. Storage images of cubes are addressed by x, y and face; subpasses by x and y.
    pub const fn coordinates(self) -> u8 {
        match self {
            Dim::D1 | Dim::Buffer => 1,
            Dim::D2 | Dim::Subpass => 2,
            Dim::D3 | Dim::Cube => 3,
        }
    }
}

flags! {
    /// What an access to an image is given beside the image, sampler and coordinates, in this order of operands, and how the image
    /// is.
    pub struct ImageFlags: u16 {
        /// A reference for depth comparison, 32 bits.
        DREF "dref" = 1;
        /// A bias of the level.
        BIAS "bias" = 2;
        /// The level: a float for sampling, an integer else.
        LOD "lod" = 4;
        /// Derivatives in x and in y: two operands.
        GRAD "grad" = 8;
        /// Texels to add to the coordinates.
        OFFSET "offset" = 16;
        /// The sample of a multisampled image.
        SAMPLE "sample" = 32;
        /// The least level. It needs derivatives, those of `grad` or of the quad, and excludes an explicit level.
        MIN_LOD "min_lod" = 64;
        /// The image has layers: the last coordinate.
        ARRAY "array" = 128;
        /// The image is multisampled.
        MS "ms" = 256;
        /// Texels are integers whose signed extension is read.
        SIGNED "signed" = 512;
        /// Coordinates of a cube are those on a face, and its number, as [`super::Op::AmdCube`] computes them; derivatives are of
        /// those on the face. The interpreter does not run it.
        FACES "faces" = 1024;
    }
}

impl ImageFlags {
    /// The flags that stand for operands.
    pub const OPERANDS: ImageFlags = ImageFlags(0x7f);

    /// How many operands the flags stand for.
    pub const fn operands(self) -> usize {
        (self.0 & ImageFlags::OPERANDS.0).count_ones() as usize + self.has(ImageFlags::GRAD) as usize
    }

    /// Which of the operands after the coordinates belongs to a flag.
    pub const fn operand(self, flag: ImageFlags) -> Option<usize> {
        if !self.has(flag) || flag.0.count_ones() != 1 {
            return None;
        }
        Some(ImageFlags(self.0 & (flag.0 - 1)).operands())
    }
}

/// What an access to an image says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageAccess {
    /// The image's shape.
    pub dim: Dim,
    /// What else it is given.
    pub flags: ImageFlags,
    /// How texels are accessed.
    pub access: Access,
    /// The component that a gather takes.
    pub component: u8,
    /// The texel format of a storage image, as the number of `SpvImageFormat`; 0 if unknown.
    pub format: u8,
}

named! {
    /// Where an input is interpolated.
    pub enum InterpAt {
        /// At the centre of the pixel.
        Pixel "pixel",
        /// At the centroid of what is covered.
        Centroid "centroid",
        /// At the sample that is shaded.
        Sample "sample",
        /// At the sample of an operand.
        AtSample "at_sample",
        /// At an offset from the centre: an operand of two floats.
        AtOffset "at_offset",
    }
}

impl InterpAt {
    /// Whether it takes an operand.
    pub const fn has_operand(self) -> bool {
        matches!(self, InterpAt::AtSample | InterpAt::AtOffset)
    }
}

named! {
    /// Which way a value goes between stages.
    pub enum SlotDir {
        /// Into the shader.
        Input "in",
        /// Out of the shader.
        Output "out",
    }
}

/// An access to an interface slot: four components of 32 bits between two stages. A lane of 64 bits takes two components, the low word
/// first. A lane of any other width takes the low bits of one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotAccess {
    /// Input or output.
    pub dir: SlotDir,
    /// Whether the first operand is a vertex of the primitive. An interpolated load has none.
    pub vertex: bool,
    /// Whether slots are those of the patch or primitive.
    pub patch: bool,
    /// The first component.
    pub component: u8,
    /// The slot. [`super::SlotLayout`] says which built-in or location it is.
    pub slot: u16,
    /// The number of slots, from this one on, that the offset chooses from: 1 to [`super::MAX_ACCESS_SLOTS`]. The offset is less than this.
    pub count: u16,
    /// The second source of blending, or the stream of a geometry shader.
    pub index: u8,
}

impl SlotAccess {
    /// An access to one slot, from its first component on.
    pub const fn of(dir: SlotDir, slot: u16) -> SlotAccess {
        SlotAccess { dir, vertex: false, patch: false, component: 0, slot, count: 1, index: 0 }
    }
}

/// Registers of an AMD GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AmdRegisters {
    /// Vector registers, or scalar ones.
    pub vector: bool,
    /// The first of them.
    pub first: u16,
}

/// The initial values of registers of an AMD GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AmdInput {
    /// The registers.
    pub registers: AmdRegisters,
    /// No word is greater than this.
    pub most: u32,
}

impl AmdInput {
    /// Registers without a bound.
    pub const fn of(registers: AmdRegisters) -> AmdInput {
        AmdInput { registers, most: u32::MAX }
    }
}

/// An export of an AMD GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AmdExport {
    /// The code of the target.
    pub target: u8,
    /// The components that are exported, a bit each.
    pub enabled: u8,
    /// The first two words have two components each.
    pub compressed: bool,
    /// The last export of its sort.
    pub done: bool,
    /// The lanes that take part are the pixels that are written.
    pub valid: bool,
}

/// An access to a buffer by the instructions of an AMD GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AmdBuffer {
    /// What is added to the offsets, in bytes.
    pub offset: u32,
    /// How memory is accessed.
    pub access: Access,
}

named! {
    /// What components of a vertex format are.
    pub enum AmdNumber {
        /// 0 to 1.
        Unorm "unorm",
        /// -1 to 1.
        Snorm "snorm",
        /// An unsigned integer as a float.
        Uscaled "uscaled",
        /// A signed integer as a float.
        Sscaled "sscaled",
        /// An unsigned integer.
        Uint "uint",
        /// A signed integer.
        Sint "sint",
        /// A float.
        Float "float",
    }
}

/// An access to a buffer that converts: its components have one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AmdTyped {
    /// Where it is.
    pub buffer: AmdBuffer,
    /// How many components an element has.
    pub lanes: u8,
    /// Bits of a component.
    pub bits: u8,
    /// What they are.
    pub number: AmdNumber,
    /// The power of two that addresses of elements are a multiple of.
    pub align: u8,
}

named! {
    /// A neighbour in the quad.
    pub enum QuadDir {
        /// Left or right.
        Horizontal "x",
        /// Above or below.
        Vertical "y",
        /// Both.
        Diagonal "xy",
    }
}

/// What an instruction says beside its operation and operands. Each operation has one of the variants, named by its doc comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Nothing.
    None,
    /// The bits of a constant; none above the width are set.
    Const(u64),
    /// A lane.
    Lane(u8),
    /// A system value.
    SysVal(SystemValue),
    /// A binding, and how its descriptor is chosen (`NONUNIFORM`).
    Resource(Resource, Access),
    /// A variable; stores write the lanes of the mask.
    Var(Var, u16),
    /// An input variable, and where it is interpolated.
    Interp(Var, InterpAt),
    /// An access to memory.
    Mem(MemAccess),
    /// An atomic operation on memory; compared ones say `Exchange`.
    Atomic(AtomicOp, MemAccess),
    /// An access to an interface slot.
    Slot(SlotAccess),
    /// Barycentric coordinates: where, and whether they are linear on the screen instead of in perspective.
    Bary(InterpAt, bool),
    /// An access to an image.
    Image(ImageAccess),
    /// An atomic operation on a texel; compared ones say `Exchange`.
    ImageAtomic(AtomicOp, ImageAccess),
    /// A barrier.
    Barrier(BarrierInfo),
    /// A neighbour in the quad.
    Quad(QuadDir),
    /// An associative elementwise operation, [`Op::FAdd`] or [`Op::FMul`], [`Op::FMin`] or [`Op::FMax`]; invocations of a cluster, 0 for the subgroup.
    Reduce(Op, u8),
    /// A scope.
    Scope(Scope),
    /// A vertex stream.
    Stream(u8),
    /// Registers that hold something when the program starts.
    Register(AmdInput),
    /// An export.
    Export(AmdExport),
    /// An access to a buffer.
    Buffer(AmdBuffer),
    /// An access to a buffer that converts.
    Typed(AmdTyped),
    /// A number: a message, or a bit.
    Number(u8),
    /// The region of a `block` or `loop`.
    Body(Region),
    /// The regions of an `if`.
    Arms(Region, Region),
    /// The structured instruction that a `break` or `continue` refers to.
    Target(Inst),
    /// The function that is called.
    Callee(Func),
}

/// Which variant of [`Payload`] an operation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadForm {
    /// [`Payload::None`].
    None,
    /// [`Payload::Const`].
    Const,
    /// [`Payload::Lane`].
    Lane,
    /// [`Payload::SysVal`].
    SysVal,
    /// [`Payload::Resource`].
    Resource,
    /// [`Payload::Var`].
    Var,
    /// [`Payload::Interp`].
    Interp,
    /// [`Payload::Mem`].
    Mem,
    /// [`Payload::Atomic`].
    Atomic,
    /// [`Payload::Slot`].
    Slot,
    /// [`Payload::Bary`].
    Bary,
    /// [`Payload::Image`].
    Image,
    /// [`Payload::ImageAtomic`].
    ImageAtomic,
    /// [`Payload::Barrier`].
    Barrier,
    /// [`Payload::Quad`].
    Quad,
    /// [`Payload::Reduce`].
    Reduce,
    /// [`Payload::Scope`].
    Scope,
    /// [`Payload::Stream`].
    Stream,
    /// [`Payload::Register`].
    Register,
    /// [`Payload::Export`].
    Export,
    /// [`Payload::Buffer`].
    Buffer,
    /// [`Payload::Typed`].
    Typed,
    /// [`Payload::Number`].
    Number,
    /// [`Payload::Body`].
    Body,
    /// [`Payload::Arms`].
    Arms,
    /// [`Payload::Target`].
    Target,
    /// [`Payload::Callee`].
    Callee,
}

impl PayloadForm {
    /// The variant that the payload of an operation has.
    pub const fn of_op(op: Op) -> PayloadForm {
        match op {
            Op::Const => PayloadForm::Const,
            Op::Extract => PayloadForm::Lane,
            Op::SysVal => PayloadForm::SysVal,
            Op::Descriptor => PayloadForm::Resource,
            Op::LoadVar | Op::StoreVar => PayloadForm::Var,
            Op::InterpVar => PayloadForm::Interp,
            Op::Load | Op::Store => PayloadForm::Mem,
            Op::Atomic | Op::AtomicCompare => PayloadForm::Atomic,
            Op::LoadSlot | Op::StoreSlot | Op::LoadInterpolated => PayloadForm::Slot,
            Op::Barycentric => PayloadForm::Bary,
            Op::ImageSample
            | Op::ImageGather
            | Op::ImageQueryLod
            | Op::ImageFetch
            | Op::ImageLoad
            | Op::ImageStore
            | Op::ImageSize
            | Op::ImageLevels
            | Op::ImageSamples => PayloadForm::Image,
            Op::ImageAtomic | Op::ImageAtomicCompare => PayloadForm::ImageAtomic,
            Op::Barrier => PayloadForm::Barrier,
            Op::QuadSwap => PayloadForm::Quad,
            Op::Reduce | Op::InclusiveScan | Op::ExclusiveScan => PayloadForm::Reduce,
            Op::Clock => PayloadForm::Scope,
            Op::EmitVertex | Op::EndPrimitive => PayloadForm::Stream,
            Op::AmdRegister => PayloadForm::Register,
            Op::AmdExport => PayloadForm::Export,
            Op::AmdLoadBuffer | Op::AmdStoreBuffer => PayloadForm::Buffer,
            Op::AmdLoadTyped => PayloadForm::Typed,
            Op::AmdSendMessage | Op::AmdLaneBelow => PayloadForm::Number,
            Op::Block | Op::Loop => PayloadForm::Body,
            Op::If => PayloadForm::Arms,
            Op::Break | Op::Continue => PayloadForm::Target,
            Op::Call => PayloadForm::Callee,
            _ => PayloadForm::None,
        }
    }

    /// The variant that a payload is.
    pub const fn of(payload: &Payload) -> PayloadForm {
        match payload {
            Payload::None => PayloadForm::None,
            Payload::Const(_) => PayloadForm::Const,
            Payload::Lane(_) => PayloadForm::Lane,
            Payload::SysVal(_) => PayloadForm::SysVal,
            Payload::Resource(..) => PayloadForm::Resource,
            Payload::Var(..) => PayloadForm::Var,
            Payload::Interp(..) => PayloadForm::Interp,
            Payload::Mem(_) => PayloadForm::Mem,
            Payload::Atomic(..) => PayloadForm::Atomic,
            Payload::Slot(_) => PayloadForm::Slot,
            Payload::Bary(..) => PayloadForm::Bary,
            Payload::Image(_) => PayloadForm::Image,
            Payload::ImageAtomic(..) => PayloadForm::ImageAtomic,
            Payload::Barrier(_) => PayloadForm::Barrier,
            Payload::Quad(_) => PayloadForm::Quad,
            Payload::Reduce(..) => PayloadForm::Reduce,
            Payload::Scope(_) => PayloadForm::Scope,
            Payload::Stream(_) => PayloadForm::Stream,
            Payload::Register(_) => PayloadForm::Register,
            Payload::Export(_) => PayloadForm::Export,
            Payload::Buffer(_) => PayloadForm::Buffer,
            Payload::Typed(_) => PayloadForm::Typed,
            Payload::Number(_) => PayloadForm::Number,
            Payload::Body(_) => PayloadForm::Body,
            Payload::Arms(..) => PayloadForm::Arms,
            Payload::Target(_) => PayloadForm::Target,
            Payload::Callee(_) => PayloadForm::Callee,
        }
    }
}
