//! A word as a typed instruction: operation, operands, flags, and what its category adds.
//!
//! Everything is read from the table that also prints the word, by the names of its fields. Never: a bit position.

use super::opcode::Opcode;
use super::operand::{Operand, OperandKind, nested, signed};
use super::semantics::{Condition, Round};
use crate::table::DecodedWord;

/// The type of values that are moved, loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the assembly")]
pub enum Type {
    F16,
    F32,
    U16,
    U32,
    S16,
    S32,
    /// A byte in a half register.
    U8,
    /// A byte in a full register.
    U8x32,
    /// Only of atomic operations.
    U64,
}

impl Type {
    fn from_bits(bits: u64) -> Type {
        use Type::*;
        [F16, F32, U16, U32, S16, S32, U8, U8x32][bits as usize % 8]
    }

    /// Bits in memory.
    pub fn bits(self) -> u32 {
        match self {
            Type::U8 | Type::U8x32 => 8,
            Type::F16 | Type::U16 | Type::S16 => 16,
            Type::F32 | Type::U32 | Type::S32 => 32,
            Type::U64 => 64,
        }
    }

    /// Whether it is in half registers.
    pub fn is_half(self) -> bool {
        matches!(self, Type::F16 | Type::U16 | Type::S16 | Type::U8)
    }

    /// Whether it is a float.
    pub fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::F32)
    }

    /// Whether it has a sign.
    pub fn is_signed(self) -> bool {
        matches!(self, Type::S16 | Type::S32)
    }
}

/// Flags that order instructions and steer a wave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// `(ss)`: waits for results of short latency, and for late reads of sources.
    pub ss: bool,
    /// `(sy)`: waits for results of texture and memory.
    pub sy: bool,
    /// `(jp)`: fibers that wait here go on with those that arrive.
    pub jp: bool,
    /// `(eq)`: helpers end here.
    pub eq: bool,
    /// `(ul)`: the last use of `a0.x`.
    pub ul: bool,
    /// `(ei)`: varyings are released; of `add.u` and `add.s`, the sum is halved.
    pub ei: bool,
    /// `(sat)`.
    pub sat: bool,
}

/// How the number of a descriptor is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DescriptorIndex {
    /// In the instruction.
    Immediate,
    /// In a register, the same for all fibers.
    Uniform,
    /// In a register, each fiber its own.
    Nonuniform,
}

/// What a texture instruction says besides its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextureAccess {
    /// The type of the result.
    pub ty: Type,
    /// Components of the result, the lowest bit for `x`.
    pub mask: u8,
    /// `.3d`: three coordinates.
    pub three_d: bool,
    /// `.a`: a layer follows the coordinates.
    pub array: bool,
    /// `.o`: offsets in the second source.
    pub offsets: bool,
    /// `.p`
    pub project: bool,
    /// `.s`: a reference is compared.
    pub shadow: bool,
    /// `.1d`
    pub one_d: bool,
    /// `.v`: the components are elements of a buffer in a row.
    pub vector: bool,
    /// Added to the coordinate, in elements.
    pub offset: u8,
    /// The set of bindless descriptors; absent: the table of the stage.
    pub base: Option<u8>,
    /// How texture and sampler are named.
    pub index: DescriptorIndex,
    /// `a1.x` names what the instruction has no room for.
    pub a1: bool,
    /// Number of the texture, when immediate.
    pub texture: u16,
    /// Number of the sampler, when immediate.
    pub sampler: u16,
    /// Texture and sampler, when in registers.
    pub numbers: Option<Operand>,
    /// Fibers of a cluster of `brcst.active`.
    pub cluster: u8,
}

impl TextureAccess {
    /// Coordinates: two, or three with `.3d`.
    pub fn axes(&self) -> u8 {
        if self.three_d { 3 } else { 2 }
    }

    /// Which component of the first source is the first of the gradients, of an instruction that has some: reference, layer and divisor
    /// follow the coordinates, and these are four registers at least.
    pub fn gradients(&self) -> u8 {
        (self.axes() + u8::from(self.shadow) + u8::from(self.array) + u8::from(self.project)).max(4)
    }
}

/// What a memory instruction says besides its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryAccess {
    /// The type of an element.
    pub ty: Type,
    /// Elements; of `ldc.k` and `ldg.k` groups of four dwords.
    pub size: u8,
    /// Added to the address: bytes, or elements of an image or buffer.
    pub offset: i32,
    /// What the register offset of `ldg.a` and `stg.a` is shifted left by.
    pub shift: u8,
    /// Coordinates of an image.
    pub dims: u8,
    /// Converted as the descriptor's format says.
    pub typed: bool,
    /// The set of bindless descriptors; absent: the table of the stage.
    pub base: Option<u8>,
    /// How the descriptor is named.
    pub index: DescriptorIndex,
    /// First component of the vector that `ldc` reads.
    pub component: u8,
    /// `ldc.u`: the result is shared.
    pub uniform: bool,
    /// Which fiber `shfl` reads from: 1 xor, 2 up, 3 down, 6 rup, 7 rdown.
    pub shuffle: u8,
}

/// What a category adds to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attributes {
    /// Nothing.
    None,
    /// Distance of the target of a branch in instructions, and fibers of a cluster of `getlast`.
    Flow {
        /// From this instruction.
        target: Option<i32>,
        /// 0 where there is none.
        cluster: u8,
    },
    /// A move or conversion.
    Move {
        /// The type of the source.
        from: Type,
        /// The type of the result.
        to: Type,
        /// How a float is made narrower.
        round: Round,
    },
    /// A comparison.
    Compare(Condition),
    /// A dot product.
    Dot {
        /// The first source is signed.
        mixed: bool,
        /// The high half of the bytes.
        high: bool,
    },
    /// Category 5.
    Texture(TextureAccess),
    /// Category 6.
    Memory(MemoryAccess),
    /// A barrier or fence.
    Barrier {
        /// `.g`
        global: bool,
        /// `.l`
        local: bool,
        /// `.r`
        read: bool,
        /// `.w`
        write: bool,
    },
    /// A replacement of a register in the next instruction.
    Alias {
        /// 0 for textures, 1 for render targets, 2 and 3 for memory.
        scope: u8,
        /// How many entries follow.
        more: u8,
    },
}

/// Most operands of one kind.
const MAX_OPERANDS: usize = 4;

/// Operands in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operands {
    list: [Option<Operand>; MAX_OPERANDS],
}

impl Operands {
    /// Up to four of them.
    pub fn of(operands: &[Operand]) -> Operands {
        let mut all = Operands::default();
        operands.iter().for_each(|operand| all.push(*operand));
        all
    }

    fn push(&mut self, operand: Operand) {
        if let Some(free) = self.list.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(operand);
        }
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = Operand> {
        self.list.iter().flatten().copied()
    }

    /// One of them.
    pub fn get(&self, at: usize) -> Option<Operand> {
        self.list.get(at).copied().flatten()
    }
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Its encoding.
    pub word: u64,
    /// What it does.
    pub opcode: Opcode,
    /// Flags.
    pub flags: Flags,
    /// `(rptN)`: it is executed so many times more.
    pub repeat: u8,
    /// `(nopN)`: so many cycles pass after it.
    pub nops: u8,
    /// What it writes.
    pub dsts: Operands,
    /// What it reads, in the order of the assembly without what is a descriptor's set; then the offset register of
    /// `ldg.a` and `stg.a`.
    pub srcs: Operands,
    /// What its category adds.
    pub attributes: Attributes,
}

/// Reads fields of a decoded word.
struct Reader<'r, 't> {
    word: &'r DecodedWord<'t>,
}

impl Reader<'_, '_> {
    fn bits(&self, name: &str) -> u64 {
        self.word.field(name).unwrap_or(0)
    }

    fn flag(&self, name: &str) -> bool {
        self.bits(name) != 0
    }

    fn ty(&self) -> Type {
        Type::from_bits(self.bits("TYPE"))
    }

    fn operand(&self, name: &str, half: bool) -> Option<Operand> {
        nested(self.word, name, half)
    }

    fn gpr(&self, name: &str) -> Option<Operand> {
        self.operand(name, false)
    }
}

impl Instruction {
    /// The instruction a word is on a GPU (630, 730); `None` where the table has none, or an operand has no valid form.
    pub fn decode(word: u64, gpu_id: u32) -> Option<Instruction> {
        let decoded = super::decode(word, gpu_id)?;
        let reader = Reader { word: &decoded };
        let opcode = Opcode::of(decoded.leaf())?;
        let flag = |name: &str| reader.flag(name);
        let flags = Flags {
            ss: flag("SS"),
            sy: flag("SY"),
            jp: flag("JP"),
            eq: flag("EQ"),
            ul: flag("UL"),
            ei: flag("EI"),
            sat: flag("SAT"),
        };
        let mut instruction = Instruction {
            word,
            opcode,
            flags,
            repeat: reader.bits("REPEAT") as u8,
            nops: decoded.field("NOP").unwrap_or(0) as u8,
            dsts: Operands::default(),
            srcs: Operands::default(),
            attributes: Attributes::None,
        };
        match opcode.category() {
            0 => instruction.flow(&reader),
            1 => instruction.moves(&reader),
            2..=4 => instruction.alu(&reader),
            5 => instruction.texture(&reader, gpu_id),
            6 => instruction.memory(&reader),
            _ => instruction.barrier(&reader),
        }?;
        Some(instruction)
    }

    /// The target of a branch, as an index, when it is one and does not leave the program at its start.
    pub fn target(&self, at: usize) -> Option<usize> {
        let Attributes::Flow { target: Some(target), .. } = self.attributes else { return None };
        at.checked_add_signed(target as isize)
    }

    /// How many components of a source it reads at least, without repetitions.
    pub fn source_components(&self, at: usize) -> u8 {
        use Opcode::{BaryF, BrcstActive, Dsx, Dsxpp1, Dsy, Dsypp1};
        use Opcode::{Getinfo, Getlod, Getpos, Getsize, Rgetinfo, Rgetpos};
        use Opcode::{QuadShuffleBrcst, QuadShuffleDiag, QuadShuffleHoriz, QuadShuffleVert};
        // Both barycentric coordinates.
        if self.opcode == BaryF && at == 1 {
            return 2;
        }
        let Attributes::Texture(access) = &self.attributes else {
            return self.srcs.get(at).map_or(0, |operand| operand.count.max(1));
        };
        match self.opcode {
            Getinfo | Getsize | Getpos | Rgetinfo | Rgetpos | Dsxpp1 | Dsypp1 | BrcstActive => return 1,
            Dsx | Dsy => return access.mask.count_ones() as u8,
            QuadShuffleBrcst | QuadShuffleDiag | QuadShuffleHoriz | QuadShuffleVert => return 1,
            _ => {}
        }
        let plain = match (access.one_d, access.three_d) {
            (true, _) => 1,
            (_, true) => 3,
            _ => 2,
        };
        match at {
            0 if self.opcode == Getlod => plain,
            0 if access.vector || access.one_d => 1,
            0 => plain + u8::from(access.array) + u8::from(access.shadow) + u8::from(access.project),
            _ => 1,
        }
    }

    /// Whether it is `mova` or `mova1`.
    pub fn is_mova(&self) -> bool {
        let address = self.dsts.get(0).is_some_and(|dst| matches!(dst.kind, OperandKind::Address(0 | 1)));
        let Attributes::Move { from, to, .. } = self.attributes else { return false };
        address && from == to && matches!(to, Type::S16 | Type::U16)
    }

    fn flow(&mut self, reader: &Reader<'_, '_>) -> Option<()> {
        for (component, invert) in [("COMP1", "INV1"), ("COMP2", "INV2")] {
            if let Some(component) = reader.word.field(component) {
                let operand = Operand::new(OperandKind::Predicate(component as u8), false);
                self.srcs.push(Operand { negate: reader.flag(invert), ..operand });
            }
        }
        use Opcode::*;
        let jumps = matches!(
            self.opcode,
            Jump | Call | Bkt | Getlast | Getone | Shps | Brac | Brax | Br | Bany | Ball | Brao | Braa
        );
        let target = jumps.then(|| reader.bits("IMMED") as u32 as i32);
        if jumps || self.srcs.get(0).is_some() {
            self.repeat = 0;
        }
        self.attributes = Attributes::Flow { target, cluster: reader.bits("CLUSTER_SIZE") as u8 };
        Some(())
    }

    fn moves(&mut self, reader: &Reader<'_, '_>) -> Option<()> {
        if self.opcode == Opcode::Movmsk {
            let words = std::mem::take(&mut self.repeat) + 1;
            self.dsts.push(reader.operand("DST", false)?.components(words));
            return Some(());
        }
        let (half, dst_half) = (reader.flag("HALF"), reader.flag("DST_HALF"));
        let round = [Round::Zero, Round::Even, Round::Up, Round::Down][reader.bits("ROUND") as usize % 4];
        self.attributes = Attributes::Move {
            from: Type::from_bits(reader.bits("SRC_TYPE")),
            to: Type::from_bits(reader.bits("DST_TYPE")),
            round,
        };
        if self.opcode == Opcode::Mov {
            let types = (reader.bits("SRC_TYPE"), reader.bits("DST_TYPE"));
            let dst = match (reader.bits("DST"), types) {
                // `mova` and `mova1`, whatever else the word says of the destination.
                (0xf4, (4, 4)) => Operand::new(OperandKind::Address(0), false),
                (0xf5, (2, 2)) => Operand::new(OperandKind::Address(1), false),
                _ => reader.operand("DST", dst_half)?,
            };
            self.dsts.push(dst);
            let source = reader.operand("SRC", half)?;
            // An immediate has no next one; of `mova1` the flag is about a hazard.
            let steps = !matches!(source.kind, OperandKind::Immediate(_)) || self.is_mova();
            self.srcs.push(Operand { step: steps && reader.flag("SRC_R"), ..source });
            return Some(());
        }
        self.repeat = 0;
        let (dsts, srcs): (&[&str], &[&str]) = match self.opcode {
            Opcode::Swz => (&["DST0", "DST1"], &["SRC0", "SRC1"]),
            Opcode::Gat => (&["DST0"], &["SRC0", "SRC1", "SRC2", "SRC3"]),
            _ => (&["DST0", "DST1", "DST2", "DST3"], &["SRC0"]),
        };
        for name in dsts {
            let count = if self.opcode == Opcode::Gat { 4 } else { 1 };
            self.dsts.push(reader.operand(name, dst_half)?.components(count));
        }
        for name in srcs {
            let count = if self.opcode == Opcode::Sct { 4 } else { 1 };
            self.srcs.push(reader.operand(name, half)?.components(count));
        }
        Some(())
    }

    fn alu(&mut self, reader: &Reader<'_, '_>) -> Option<()> {
        let half = !reader.flag("FULL");
        self.dsts.push(reader.operand("DST", reader.flag("DST_HALF"))?);
        // Without repetitions these bits are nops, also where the text shows them as flags of sources.
        if self.repeat == 0 && matches!(self.opcode.category(), 2 | 3) && reader.word.field("NOP").is_none() {
            self.nops = (reader.bits("SRC1_R") | reader.bits("SRC2_R") << 1) as u8;
        }
        let steps = self.nops == 0;
        for (name, negate, step) in [
            ("SRC", "", "SRC_R"),
            ("SRC1", "SRC1_NEG", "SRC1_R"),
            ("SRC2", "SRC2_NEG", "SRC2_R"),
            ("SRC3", "SRC3_NEG", "SRC3_R"),
        ] {
            if reader.word.field(name).is_none() {
                continue;
            }
            let operand = reader.operand(name, half)?;
            self.srcs.push(Operand {
                negate: operand.negate | reader.flag(negate),
                step: steps && reader.flag(step),
                ..operand
            });
        }
        if let Some(condition) = reader.word.field("COND") {
            self.attributes = Attributes::Compare(Condition::from_bits(condition)?);
        }
        if matches!(self.opcode, Opcode::Dp2acc | Opcode::Dp4acc) {
            let (mixed, high) = (reader.flag("SRC_SIGN"), reader.flag("SRC_PACK"));
            self.attributes = Attributes::Dot { mixed, high };
        }
        Some(())
    }

    fn texture(&mut self, reader: &Reader<'_, '_>, gpu_id: u32) -> Option<()> {
        if self.opcode == Opcode::Tcinv {
            return Some(());
        }
        let ty = Type::from_bits(reader.bits("TYPE"));
        let half = !reader.flag("FULL");
        let mut access = TextureAccess {
            ty,
            mask: reader.bits("WRMASK") as u8,
            three_d: reader.flag("3D"),
            array: reader.flag("A"),
            offsets: reader.flag("O"),
            project: reader.flag("P"),
            shadow: self.opcode != Opcode::Isam && reader.flag("SV"),
            one_d: self.opcode == Opcode::Isam && !reader.flag("1D"),
            vector: self.opcode == Opcode::Isam && reader.flag("SV"),
            offset: 0,
            base: None,
            index: DescriptorIndex::Immediate,
            a1: false,
            texture: 0,
            sampler: 0,
            numbers: None,
            cluster: reader.bits("CLUSTER_SIZE") as u8,
        };
        let written = 4 - (access.mask << 4).leading_zeros().min(4) as u8;
        self.dsts.push(reader.operand("DST", reader.flag("DST_HALF"))?.components(written));
        let sources: &[&str] = if self.opcode == Opcode::BrcstActive { &["SRC1"] } else { &["SRC1", "SRC2"] };
        for name in sources {
            let form = reader.word.nested(name)?;
            if form.nested("SRC").is_some() {
                self.srcs.push(reader.operand(name, half)?);
            } else if let Some(offset) = form.field("OFF").filter(|_| reader.flag("SRC2_IMM_OFFSET")) {
                access.offset = offset as u8;
            }
        }
        if let (true, Some(first)) = (self.opcode.has_gradients(), self.srcs.list.first_mut()) {
            // Gradients follow the coordinates in the same vector.
            *first = first.map(|operand| operand.components(access.gradients() + 2 * access.axes()));
        }
        descriptors(&mut access, reader, gpu_id)?;
        self.attributes = Attributes::Texture(access);
        Some(())
    }

    fn memory(&mut self, reader: &Reader<'_, '_>) -> Option<()> {
        let ty = if reader.word.field("TYPE").is_some() { reader.ty() } else { Type::U32 };
        let atomic = self.opcode.name().starts_with("atomic");
        let wide = atomic && !self.opcode.is_local_atomic() && ty == Type::U8;
        let ty = if wide { Type::U64 } else { ty };
        let index = match reader.bits("MODE") {
            0 => DescriptorIndex::Immediate,
            1 => DescriptorIndex::Uniform,
            _ => DescriptorIndex::Nonuniform,
        };
        let mut access = MemoryAccess {
            ty,
            size: 1,
            offset: 0,
            shift: 0,
            dims: 1,
            typed: reader.flag("TYPED"),
            base: reader.flag("BINDLESS").then(|| reader.bits("BASE") as u8),
            index,
            component: 0,
            uniform: false,
            shuffle: if self.opcode == Opcode::Shfl { reader.bits("MODE") as u8 } else { 0 },
        };
        if self.opcode == Opcode::Shfl {
            access.index = DescriptorIndex::Immediate;
        }
        if matches!(self.opcode, Opcode::StibB | Opcode::LdibB) {
            access.offset = reader.bits("OFFSET") as i32;
        }
        if let Some(dims) = reader.word.field("D") {
            access.dims = dims as u8;
        }
        if let Some(size) = reader.word.field("TYPE_SIZE") {
            access.size = size as u8;
        }
        if let Some(size) = reader.word.field("SIZE") {
            access.size = size as u8;
        }
        self.memory_operands(reader, &mut access, atomic)?;
        self.attributes = Attributes::Memory(access);
        Some(())
    }

    fn memory_operands(
        &mut self,
        reader: &Reader<'_, '_>,
        access: &mut MemoryAccess,
        atomic: bool,
    ) -> Option<()> {
        use Opcode::*;
        let half = access.ty.is_half();
        let count = access.size;
        let data = |name: &str, count: u8| Some(reader.operand(name, half)?.components(count));
        match self.opcode {
            Ldg | LdgA => {
                self.dsts.push(data("DST", count)?);
                self.global_address(reader, access, signed(reader.bits("OFF"), 13))?;
            }
            Stg | StgA => {
                self.global_address(reader, access, signed(reader.bits("OFF"), 13))?;
                self.srcs.push(data("SRC3", count)?);
            }
            LdgK => {
                self.dsts.push(reader.gpr("DST")?);
                self.srcs.push(reader.gpr("SRC1")?.components(2));
                access.offset = signed(reader.bits("OFF"), 13);
            }
            Ldl | Ldp | Ldlw => {
                self.dsts.push(data("DST", count)?);
                self.srcs.push(reader.gpr("SRC")?);
                access.offset = signed(reader.bits("OFF"), 13);
            }
            Ldlv => {
                self.dsts.push(data("DST", count)?);
                access.offset = reader.bits("OFF") as i32;
            }
            Stl | Stp | Stlw => {
                self.srcs.push(reader.gpr("DST")?);
                self.srcs.push(data("SRC", count)?);
                access.offset = signed(reader.bits("OFF"), 13);
            }
            Stc => {
                self.dsts.push(reader.gpr("DST")?);
                self.srcs.push(data("SRC", count)?);
            }
            Stsc => {
                self.dsts.push(Operand::new(OperandKind::Const(reader.bits("DST") as u16), false));
                self.srcs.push(reader.gpr("SRC")?);
            }
            Ldc => {
                access.component = reader.bits("OFFSET") as u8;
                access.uniform = reader.flag("U");
                self.dsts.push(reader.gpr("DST")?.components(count));
                self.srcs.push(reader.gpr("SRC1")?);
                self.srcs.push(reader.gpr("SRC2")?);
            }
            LdcK => {
                access.size = reader.bits("LOAD_SIZE") as u8;
                self.dsts.push(Operand::new(OperandKind::IndexedConst(0), false));
                self.srcs.push(reader.gpr("SRC1")?);
                self.srcs.push(reader.gpr("SRC2")?);
            }
            _ if atomic => self.atomic_operands(reader, access)?,
            _ => self.image_operands(reader, access)?,
        }
        Some(())
    }

    /// Operands of atomic operations: the old value is the result.
    fn atomic_operands(&mut self, reader: &Reader<'_, '_>, access: &MemoryAccess) -> Option<()> {
        let width = if access.ty == Type::U64 { 2 } else { 1 };
        let name = self.opcode.name();
        let values = 1 + u8::from(name.ends_with("cmpxchg"));
        if name.starts_with("atomic.b") {
            // One vector receives it and has the data after it.
            self.dsts.push(reader.gpr("SRC1")?.components(width));
            self.srcs.push(reader.gpr("SRC1")?.components((1 + values) * width));
            self.srcs.push(reader.gpr("SRC2")?.components(access.dims));
            self.srcs.push(reader.gpr("SSBO")?);
            return Some(());
        }
        if name.starts_with("atomic.s") {
            return self.image_operands(reader, access);
        }
        let address = if self.opcode.is_local_atomic() { 1 } else { 2 };
        self.dsts.push(reader.gpr("DST")?.components(width));
        self.srcs.push(reader.gpr("SRC1")?.components(address));
        self.srcs.push(reader.gpr("SRC2")?.components(values * width));
        Some(())
    }

    /// Operands of image and buffer access, of questions about the wave, and of older generations.
    fn image_operands(&mut self, reader: &Reader<'_, '_>, access: &MemoryAccess) -> Option<()> {
        use Opcode::*;
        let half = access.ty.is_half();
        match self.opcode {
            StibB | LdibB => {
                let data = reader.operand("SRC1", half)?.components(access.size);
                if self.opcode == LdibB { &mut self.dsts } else { &mut self.srcs }.push(data);
                self.srcs.push(reader.gpr("SRC2")?.components(access.dims));
                self.srcs.push(reader.gpr("SSBO")?);
            }
            RayIntersection => {
                self.dsts.push(reader.gpr("DST")?.components(5));
                for (name, count) in [("SRC1", 2), ("SRC2", 1), ("SRC3", 8), ("SRC4", 1)] {
                    self.srcs.push(reader.gpr(name)?.components(count));
                }
            }
            Shfl => {
                self.dsts.push(reader.operand("DST", half)?);
                self.srcs.push(reader.operand("SRC1", half)?);
                self.srcs.push(reader.gpr("SRC2")?);
            }
            _ => {
                if reader.word.field("DST").is_some() {
                    let count = match self.opcode {
                        ResinfoB | Resinfo => 3,
                        Resbase => 2,
                        _ => 1,
                    };
                    let half = half && !self.opcode.name().starts_with("atomic");
                    self.dsts.push(reader.operand("DST", half)?.components(count));
                }
                for name in ["SSBO", "SRC1", "SRC2", "SRC3"] {
                    if reader.word.field(name).is_some() {
                        self.srcs.push(reader.gpr(name)?);
                    }
                }
            }
        }
        Some(())
    }

    /// Address and register offset of `ldg` and `stg`.
    fn global_address(
        &mut self,
        reader: &Reader<'_, '_>,
        access: &mut MemoryAccess,
        offset: i32,
    ) -> Option<()> {
        self.srcs.push(reader.gpr("SRC1")?.components(2));
        if !matches!(self.opcode, Opcode::LdgA | Opcode::StgA) {
            access.offset = offset;
            return Some(());
        }
        self.srcs.push(reader.gpr("SRC2")?);
        match reader.word.field("SRC2_ADD_DWORD_SHIFT") {
            Some(shift) => {
                access.shift = shift as u8 + 2;
                access.offset = (reader.bits("OFF") * 4) as i32;
            }
            None => access.offset = reader.bits("OFF") as i32,
        }
        Some(())
    }

    fn barrier(&mut self, reader: &Reader<'_, '_>) -> Option<()> {
        match self.opcode {
            Opcode::Bar | Opcode::Fence => {
                self.attributes = Attributes::Barrier {
                    global: reader.flag("G"),
                    local: reader.flag("L"),
                    read: reader.flag("R"),
                    write: reader.flag("W"),
                };
            }
            Opcode::Alias => {
                let half = reader.bits("TYPE_SIZE") == 0;
                self.dsts.push(reader.operand("DST", reader.flag("DST_HALF"))?);
                self.srcs.push(reader.operand("SRC", half)?);
                let scope = reader.bits("SCOPE") as u8;
                self.attributes =
                    Attributes::Alias { scope, more: reader.bits("TABLE_SIZE_MINUS_ONE") as u8 };
            }
            _ => {}
        }
        Some(())
    }
}

impl Opcode {
    /// Whether it is a sample with gradients.
    pub fn has_gradients(self) -> bool {
        matches!(self, Opcode::Samgq | Opcode::Samgp0 | Opcode::Samgp1 | Opcode::Samgp2 | Opcode::Samgp3)
    }

    /// Whether it is an atomic operation on local memory.
    pub fn is_local_atomic(self) -> bool {
        let name = self.name();
        name.starts_with("atomic.")
            && !["atomic.b.", "atomic.g.", "atomic.s."].iter().any(|other| name.starts_with(other))
    }
}

/// How a texture instruction names its texture and sampler.
fn descriptors(access: &mut TextureAccess, reader: &Reader<'_, '_>, gpu_id: u32) -> Option<()> {
    let number = |name: &str, field: &str| Some(reader.word.nested(name)?.field(field).unwrap_or(0) as u16);
    let Some(mode) = reader.word.field("DESC_MODE").filter(|_| reader.flag("S2EN_BINDLESS")) else {
        if reader.word.field("S2EN_BINDLESS").is_some() {
            access.sampler = number("SAMP", "SAMP")?;
            access.texture = number("TEX", "TEX")?;
        }
        return Some(());
    };
    access.index = match mode {
        0 | 1 | 5 => DescriptorIndex::Uniform,
        2..=4 => DescriptorIndex::Nonuniform,
        _ => DescriptorIndex::Immediate,
    };
    let bindless = !matches!(mode, 0 | 4);
    access.a1 = matches!(mode, 1 | 3 | 7);
    if bindless {
        access.base = Some(reader.word.nested("BASE")?.field("BASE")? as u8);
    }
    let numbers = reader.word.nested("SRC3")?;
    if access.index != DescriptorIndex::Immediate {
        access.numbers = Some(reader.operand("SRC3", !bindless)?.components(2));
    } else {
        let inner = |name: &str| Some(numbers.nested(name)?.field(name).unwrap_or(0) as u16);
        let (sampler, texture) = match (access.a1, gpu_id) {
            (true, ..700) => (inner("SAMP")?, 0),
            (true, _) => (0, inner("TEX")?),
            (false, _) => (inner("SAMP")?, inner("TEX")?),
        };
        (access.sampler, access.texture) = (sampler, texture);
    }
    Some(())
}
