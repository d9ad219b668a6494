//! The vocabulary of the instruction table: what `data/amd/*.txt` may say, and the rows the build makes of it.
//!
//! Shared by the build script, which compiles the table, and by the library, which only reads what was compiled.
//! Never: a fact about one instruction; those stand in `data/amd`.

pub use unwedge_base::Gfx;

/// Declares an enum whose variants have a name in the table.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $(#[doc = concat!("`", $text, "`.")] $(#[$doc])* $variant,)* }

        impl $name {
            /// Every one, in order.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// Its name in the table.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The one of this name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }
    };
}

mod access;

pub use access::*;

/// How many generations there are.
pub const GENS: usize = Gfx::ALL.len();

/// The bits of a set of columns: bit `n` is generation `n`; [`REAL_TRUE16`] moves a generation to its second column, twice
/// that to its third.
pub type Columns = u32;

/// The generations that a text names: `6`, `8-906`, `6-7,10-12`.
pub const fn generations(text: &str) -> Option<Columns> {
    let bytes = text.as_bytes();
    let (mut set, mut from, mut at, mut begin) = (0, None, 0, 0);
    while at <= bytes.len() {
        let end = if at < bytes.len() { bytes[at] } else { b',' };
        if end == b',' || end == b'-' {
            let (_, rest) = bytes.split_at(begin);
            let (name, _) = rest.split_at(at - begin);
            let Some(generation) = generation(name) else { return None };
            if end == b'-' {
                from = Some(generation);
            } else {
                let first = match from {
                    Some(first) => first,
                    None => generation,
                };
                let mut number = first as u8;
                while number <= generation as u8 {
                    set |= 1 << number;
                    number += 1;
                }
                from = None;
            }
            begin = at + 1;
        }
        at += 1;
    }
    Some(set)
}

/// The generation of a name.
const fn generation(name: &[u8]) -> Option<Gfx> {
    let mut number = 0;
    while number < GENS {
        let own = Gfx::ALL[number].number().as_bytes();
        let mut at = 0;
        while at < own.len() && at < name.len() && own[at] == name[at] {
            at += 1;
        }
        if at == own.len() && at == name.len() {
            return Some(Gfx::ALL[number]);
        }
        number += 1;
    }
    None
}

/// From gfx11 on a generation has two more columns, for the mode in which 16-bit operands name half registers: one with the
/// instructions of which LLVM 19 names them, one with all.
pub const REAL_TRUE16: usize = 3;

/// How many columns there are.
pub const COLUMNS: usize = GENS + 2 * REAL_TRUE16;

vocabulary! {
    /// The family of encodings a row belongs to.
    Format {
        Sop1 = "SOP1", Sop2 = "SOP2", Sopc = "SOPC", Sopk = "SOPK", Sopp = "SOPP",
        Vop1 = "VOP1", Vop2 = "VOP2", Vopc = "VOPC", Vop3 = "VOP3", Vop3p = "VOP3P",
        /// Products of matrices over accumulation registers.
        Mai = "MAI",
        /// The same with scales, which another instruction before them holds.
        MaiScaled = "MAI_SCALED",
        /// Half of a dual instruction.
        Vopd = "VOPD",
        Vintrp = "VINTRP", Vinterp = "VINTERP", Ldsdir = "LDSDIR", Exp = "EXP",
        Smem = "SMEM", Ds = "DS", Mubuf = "MUBUF", Mtbuf = "MTBUF", Mimg = "MIMG",
        Flat = "FLAT", Global = "GLOBAL", Scratch = "SCRATCH",
        Vbuffer = "VBUFFER", Vimage = "VIMAGE", Vsample = "VSAMPLE",
    }
}

impl Format {
    /// Whether it is a memory instruction's.
    pub const fn is_memory(self) -> bool {
        self as u8 >= Format::Smem as u8
    }
}

vocabulary! {
    /// One layout of bits: a format, or a format with an extra dword. `data/amd/encodings.txt` has its bits per generation.
    Encoding {
        Sop1 = "SOP1", Sop2 = "SOP2", Sopc = "SOPC", Sopk = "SOPK", Sopp = "SOPP",
        Vop1 = "VOP1", Vop1Sdwa = "VOP1_SDWA", Vop1Dpp = "VOP1_DPP", Vop1Dpp8 = "VOP1_DPP8",
        Vop2 = "VOP2", Vop2Sdwa = "VOP2_SDWA", Vop2Dpp = "VOP2_DPP", Vop2Dpp8 = "VOP2_DPP8",
        Vopc = "VOPC", VopcSdwa = "VOPC_SDWA", VopcDpp = "VOPC_DPP", VopcDpp8 = "VOPC_DPP8",
        Vop3 = "VOP3", Vop3Dpp = "VOP3_DPP", Vop3Dpp8 = "VOP3_DPP8",
        Vop3p = "VOP3P", Vop3pDpp = "VOP3P_DPP", Vop3pDpp8 = "VOP3P_DPP8",
        Mai = "MAI", MaiScaled = "MAI_SCALED",
        Vopd = "VOPD",
        Vintrp = "VINTRP", Vinterp = "VINTERP", Ldsdir = "LDSDIR", Exp = "EXP",
        Smem = "SMEM", SmemImm = "SMEM_IMM", Ds = "DS", Mubuf = "MUBUF", Mtbuf = "MTBUF", Mimg = "MIMG", MimgNsa = "MIMG_NSA",
        Flat = "FLAT", Global = "GLOBAL", Scratch = "SCRATCH",
        Vbuffer = "VBUFFER", Vimage = "VIMAGE", Vsample = "VSAMPLE",
    }
}

impl Encoding {
    /// Whether addresses are of 64 bits, or of scratch.
    pub const fn is_flat(self) -> bool {
        matches!(self, Encoding::Flat | Encoding::Global | Encoding::Scratch)
    }
}

vocabulary! {
    /// How an instruction of a row is written and encoded.
    Form {
        /// In the encoding of the row's format, which is its only one: no suffix.
        Native = "native",
        /// `_e32`.
        E32 = "e32",
        /// `_e64`: a VOP1, VOP2 or VOPC row encoded as VOP3.
        E64 = "e64",
        /// `_sdwa`.
        Sdwa = "sdwa",
        /// `_dpp`.
        Dpp = "dpp",
        /// `_dpp` with `dpp8:`.
        Dpp8 = "dpp8",
        /// `_e64_dpp`.
        E64Dpp = "e64_dpp",
        /// `_e64_dpp` with `dpp8:`.
        E64Dpp8 = "e64_dpp8",
    }
}

vocabulary! {
    /// What a value is: how wide, and how constants in its place are read and written.
    Type {
        None = "none",
        B8 = "b8",
        B16 = "b16", I16 = "i16", U16 = "u16", F16 = "f16", Bf16 = "bf16",
        B32 = "b32", I32 = "i32", U32 = "u32", F32 = "f32",
        PkB16 = "pk_b16", PkI16 = "pk_i16", PkU16 = "pk_u16", PkF16 = "pk_f16", PkBf16 = "pk_bf16",
        B64 = "b64", I64 = "i64", U64 = "u64", F64 = "f64", PkF32 = "pk_f32",
        B96 = "b96", B128 = "b128", B160 = "b160", B192 = "b192", B224 = "b224", B256 = "b256", B288 = "b288",
        B320 = "b320", B352 = "b352", B384 = "b384", B512 = "b512", B1024 = "b1024",
        /// Four doubles.
        Pk4F64 = "pk4_f64",
        /// A bit per lane: one dword in wave32, two in wave64.
        Mask = "mask",
        /// Spread over the lanes of a wave: this many bits in wave32, half as many in wave64.
        Wave64 = "wave64", Wave128 = "wave128", Wave256 = "wave256", Wave512 = "wave512",
        /// Three and four values of 16 bits, as memory instructions move them.
        Pk3B16 = "pk3_b16", Pk4B16 = "pk4_b16",
    }
}

impl Type {
    /// Width in bits: of a mask in wave64, of what is spread over a wave in wave32.
    pub const fn bits(self) -> u16 {
        match self {
            Type::None => 0,
            Type::B8 => 8,
            Type::B16 | Type::I16 | Type::U16 | Type::F16 | Type::Bf16 => 16,
            Type::B32 | Type::I32 | Type::U32 | Type::F32 => 32,
            Type::PkB16 | Type::PkI16 | Type::PkU16 | Type::PkF16 | Type::PkBf16 => 32,
            Type::B64 | Type::I64 | Type::U64 | Type::F64 | Type::PkF32 | Type::Mask => 64,
            Type::Pk3B16 => 48,
            Type::Pk4B16 => 64,
            Type::B96 => 96,
            Type::Wave64 => 64,
            Type::Wave128 => 128,
            Type::Wave256 => 256,
            Type::Wave512 => 512,
            Type::B128 => 128,
            Type::B160 => 160,
            Type::B192 => 192,
            Type::B224 => 224,
            Type::B256 | Type::Pk4F64 => 256,
            Type::B288 => 288,
            Type::B320 => 320,
            Type::B352 => 352,
            Type::B384 => 384,
            Type::B512 => 512,
            Type::B1024 => 1024,
        }
    }

    /// How many registers hold it, in the wave size of [`Type::bits`].
    pub const fn dwords(self) -> u8 {
        self.bits().div_ceil(32) as u8
    }

    /// Whether it is floating point.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Type::F16 | Type::Bf16 | Type::F32 | Type::F64 | Type::PkF16 | Type::PkBf16 | Type::PkF32
        )
    }

    /// Whether it is two values in one.
    pub const fn is_packed(self) -> bool {
        matches!(self, Type::PkB16 | Type::PkI16 | Type::PkU16 | Type::PkF16 | Type::PkBf16 | Type::PkF32)
    }
}

vocabulary! {
    /// What may stand in an operand's place, and how it is put into its field.
    Class {
        /// Vector registers.
        Vgpr = "vgpr",
        /// A vector register of the lower half, in the 8 bits of a place for halves of registers.
        VgprLow = "vgpr_low",
        /// Half of a vector register of the lower half; bit 7 tells which.
        VgprHalf = "vgpr_half",
        /// Half of any vector register; a bit of `op_sel` tells which.
        VgprSel = "vgpr_sel",
        /// As [`Class::VgprSel`], and the text names that half besides.
        VgprNamed = "vgpr_named",
        /// A vector register in a field that could say more: bit 8 is set.
        VgprSrc = "vgpr_src",
        /// As [`Class::VgprLow`], in a field that could say more.
        VgprLowSrc = "vgpr_low_src",
        /// As [`Class::VgprHalf`], in a field that could say more.
        VgprHalfSrc = "vgpr_half_src",
        /// The second destination of a dual instruction: even if the first is odd.
        VgprDual = "vgpr_dual",
        /// A source of the vector ALU: vector or scalar register, constant, literal.
        Src = "src",
        /// As [`Class::Src`], but of vector registers the lower half.
        SrcLow = "src_low",
        /// As [`Class::Src`], with halves of vector registers of the lower half.
        SrcHalf = "src_half",
        /// As [`Class::Src`], with halves of vector registers told by `op_sel`.
        SrcSel = "src_sel",
        /// As [`Class::SrcSel`], and the text names the halves besides.
        SrcNamed = "src_named",
        /// As [`Class::SrcNamed`], of vector registers only.
        VgprNamedSrc = "vgpr_named_src",
        /// Vector registers or an inline constant.
        SrcMatrix = "matrix",
        /// Accumulation registers.
        Agpr = "agpr",
        /// Accumulation registers in a field that could say more: bit 8 is set.
        AgprSrc = "agpr_src",
        /// The result of a product of matrices: accumulation registers, from MI200 on vector registers as well, which a
        /// flag selects.
        AccDst = "acc_dst",
        /// A matrix: vector or accumulation registers, which a flag for each source selects.
        AccSrc = "acc_src",
        /// As [`Class::AccSrc`], of values whose size, and with it the number of registers, depends on a modifier.
        AccSmall = "acc_small",
        /// What a product of matrices is added to: registers of the same file as [`Class::AccDst`], or an inline constant.
        AccMatrix = "acc_matrix",
        /// As [`Class::Src`], but no literal.
        SrcInline = "src_inline",
        /// A source of an SDWA instruction: a flag tells vector registers from the rest.
        SrcSdwa = "src_sdwa",
        /// A scalar source: register, constant, literal.
        Ssrc = "ssrc",
        /// As [`Class::Ssrc`], with constants of 32 bits though the value has 16.
        Ssrc32 = "ssrc32",
        /// As [`Class::Ssrc`], or `src_lds_direct`.
        SsrcLds = "ssrc_lds",
        /// As [`Class::Ssrc`], but no literal.
        SsrcInline = "ssrc_inline",
        /// Scalar registers, read.
        Sreg = "sreg",
        /// Scalar registers, written.
        Sdst = "sdst",
        /// Scalar registers whose number is encoded without its low bit.
        SregPair = "sreg2",
        /// Scalar registers whose number is encoded without its low two bits.
        SregQuad = "sreg4",
        /// One certain register, written in the text but not encoded.
        Fixed = "fixed",
        /// As [`Class::Fixed`], and the text may leave it out.
        FixedOptional = "fixed?",
        /// One certain register, neither written in the text nor encoded.
        Implicit = "implicit",
        /// The lane mask written by an SDWA comparison: vcc, or with a flag any scalar register.
        SdwaSdst = "sdwa_sdst",
        /// A 16-bit immediate.
        Imm16 = "imm16",
        /// A 16-bit immediate that may be left out if it is 0.
        Imm16Optional = "imm16?",
        /// A 32-bit immediate in a dword of its own.
        Imm32 = "imm32",
        /// A branch target, in dwords after this instruction.
        Label = "label",
        /// `hwreg(…)`.
        Hwreg = "hwreg",
        /// `sendmsg(…)`.
        SendMsg = "sendmsg",
        /// `sendmsg(…)` in a scalar source.
        SendMsgRtn = "sendmsg_rtn",
        /// `vmcnt(…) expcnt(…) lgkmcnt(…)`.
        Waitcnt = "waitcnt",
        /// `depctr_…(…)`.
        Depctr = "depctr",
        /// `{ export_ready: 1 }`.
        WaitEvent = "wait_event",
        /// `instid0(…) | instskip(…) | instid1(…)`.
        DelayAlu = "delay_alu",
        /// `gpr_idx(…)`, in 4 bits.
        GprIdx = "gpr_idx",
        /// A barrier: `m0` or a number.
        Barrier = "barrier",
        /// Version codes of `s_version`.
        Version = "version",
        /// `attr0.x`.
        Attr = "attr",
        /// `p10`, `p20`, `p0`.
        InterpSlot = "interp_slot",
        /// Target of an export.
        ExpTarget = "exp_target",
        /// A vector register that an export may leave out: `off`.
        ExpSrc = "exp_src",
        /// The offset of a scalar memory instruction: a register, an immediate, or both.
        SmemOffset = "smem_offset",
        /// Unsigned immediates in place of a register.
        Imm5 = "imm5", Imm7 = "imm7",
        /// A signed immediate of 24 bits.
        Imm24 = "imm24",
        /// The scalar offset of a buffer instruction: a register or an inline constant, never a literal.
        BufferOffset = "buffer_offset",
        /// The vector address of a buffer instruction: as many registers as its modifiers say, or `off`.
        BufferAddr = "buffer_addr",
        /// A vector register written only if the instruction returns what was in memory.
        Returned = "returned",
        /// Data with one register more for the status that `tfe` asks for.
        TfeData = "tfe_data",
        /// Data of 16 bits each, in a register each where they are not packed.
        D16Data = "d16_data",
        /// The address of a global instruction: 64 bits, or an offset of 32 bits to [`Class::GlobalBase`].
        GlobalAddr = "global_addr",
        /// A pair of scalar registers, or `off`.
        GlobalBase = "global_base",
        /// The vector address of a scratch instruction, or `off`.
        ScratchAddr = "scratch_addr",
        /// The scalar address of a scratch instruction, or `off`.
        ScratchBase = "scratch_base",
        /// Data of an image instruction, as many registers as its modifiers say.
        ImageData = "image_data",
        /// The address of an image instruction, in registers that may be named one by one.
        ImageAddr = "image_addr",
    }
}

impl Class {
    /// Whether the field of a vector register also selects a half of it.
    pub const fn encodes_half(self) -> bool {
        matches!(self, Class::VgprHalf | Class::VgprHalfSrc | Class::SrcHalf)
    }

    /// Whether operands may be scalar registers or constants: literals, too, unless the class says otherwise.
    pub const fn takes_constants(self) -> bool {
        matches!(
            self,
            Class::Src
                | Class::SrcLow
                | Class::SrcHalf
                | Class::SrcSel
                | Class::SrcNamed
                | Class::SrcInline
                | Class::SrcMatrix
                | Class::AccMatrix
                | Class::SrcSdwa
                | Class::Ssrc
                | Class::Ssrc32
                | Class::SsrcLds
                | Class::SsrcInline
                | Class::Barrier
        )
    }
}

vocabulary! {
    /// A field of an encoding.
    Field {
        None = "-",
        Op = "op", OpHi = "op_hi", OpX = "opx", OpY = "opy",
        Sdst = "sdst", Ssrc0 = "ssrc0", Ssrc1 = "ssrc1", Simm16 = "simm16", Literal = "literal",
        Vdst = "vdst", Src0 = "src0", Src1 = "src1", Src2 = "src2", Vsrc1 = "vsrc1",
        VdstX = "vdstx", VdstY = "vdsty", SrcX0 = "srcx0", VsrcX1 = "vsrcx1", SrcY0 = "srcy0", VsrcY1 = "vsrcy1",
        Abs = "abs", Neg = "neg", NegHi = "neg_hi", OpSel = "op_sel", OpSelHi = "op_sel_hi", OpSelHi2 = "op_sel_hi2",
        Clamp = "clamp", Omod = "omod",
        DstSel = "dst_sel", DstUnused = "dst_unused", Src0Sel = "src0_sel", Src1Sel = "src1_sel",
        Sext0 = "sext0", Neg0 = "neg0", Abs0 = "abs0", S0 = "s0", Sext1 = "sext1", Neg1 = "neg1", Abs1 = "abs1", S1 = "s1",
        Sd = "sd",
        DppCtrl = "dpp_ctrl", Fi = "fi", BoundCtrl = "bound_ctrl", BankMask = "bank_mask", RowMask = "row_mask",
        LaneSel = "lane_sel",
        Vsrc = "vsrc", Chan = "chan", Attr = "attr", WaitExp = "wait_exp", WaitVdst = "wait_vdst", WaitVsrc = "wait_vsrc",
        En = "en", Target = "target", Compr = "compr", Done = "done", Vm = "vm", RowEn = "row_en",
        Vsrc0 = "vsrc0", Vsrc2 = "vsrc2", Vsrc3 = "vsrc3",
        Sbase = "sbase", Offset = "offset", Soffset = "soffset", Imm = "imm", Soe = "soe", Nv = "nv",
        Glc = "glc", Slc = "slc", Dlc = "dlc", Scope = "scope", Th = "th",
        Offset0 = "offset0", Offset1 = "offset1", Gds = "gds", Addr = "addr", Data0 = "data0", Data1 = "data1",
        Offen = "offen", Idxen = "idxen", Addr64 = "addr64", Lds = "lds", Vaddr = "vaddr", Vdata = "vdata",
        Srsrc = "srsrc", Tfe = "tfe", Lwe = "lwe", Dfmt = "dfmt", Nfmt = "nfmt", BufFormat = "format",
        Dmask = "dmask", Unorm = "unorm", Da = "da", R128 = "r128", A16 = "a16", D16 = "d16", Ssamp = "ssamp",
        Nsa = "nsa", Dim = "dim", Saddr = "saddr", Data = "data", Sve = "sve",
        /// 233 and 234 minus 232: which of the two codes of DPP8 it is.
        FiCode = "fi_code",
        /// Which file registers are of: those of two sources, of the result of a product of matrices, of a memory
        /// instruction's data.
        Acc0 = "acc0", Acc1 = "acc1", AccCd = "acc_cd", Acc = "acc",
        Cbsz = "cbsz", Abid = "abid", Blgp = "blgp", Scc = "scc",
        Scale0 = "scale0", Scale1 = "scale1", SwapFi = "swap_fi", SwapBound = "swap_bound",
        High = "high", ByteSel = "byte_sel", ByteLow = "byte_low", ByteHigh = "byte_high",
        IndexKey = "index_key",
        Vaddr0 = "vaddr0", Vaddr1 = "vaddr1", Vaddr2 = "vaddr2", Vaddr3 = "vaddr3", Vaddr4 = "vaddr4",
    }
}

/// How many fields there are.
pub const FIELDS: usize = Field::ALL.len();

vocabulary! {
    /// What an instruction says besides its operands. A modifier's value stands in [`super::Mods`].
    Mod {
        /// A bit per source.
        Neg = "neg", Abs = "abs", Sext = "sext",
        /// A bit per source, and bit 3 for the destination.
        OpSel = "op_sel",
        /// As [`Mod::OpSel`], where the text has only the names of halves.
        Halves = "halves",
        /// A bit per source.
        OpSelHi = "op_sel_hi", NegLo = "neg_lo", NegHi = "neg_hi",
        /// Bits that are always set, and not written.
        Ones = "ones",
        Clamp = "clamp", Omod = "omod",
        /// Of products of matrices: how many blocks of the first share one, which of them that is, and how lanes of the
        /// second are permuted. In place of the last those of doubles may negate their sources, a bit each.
        Cbsz = "cbsz", Abid = "abid", Blgp = "blgp", NegMatrix = "neg_matrix",
        /// The result of each combination of a bit of three sources: a truth table.
        Bitop3 = "bitop3",
        ByteSel = "byte_sel", IndexKey = "index_key", High = "high",
        DstSel = "dst_sel", DstUnused = "dst_unused", Src0Sel = "src0_sel", Src1Sel = "src1_sel",
        DppCtrl = "dpp_ctrl", RowMask = "row_mask", BankMask = "bank_mask", BoundCtrl = "bound_ctrl",
        /// Eight lane numbers of three bits.
        Dpp8 = "dpp8",
        Fi = "fi",
        WaitExp = "wait_exp", WaitVdst = "wait_vdst", WaitVaVdst = "wait_va_vdst", WaitVmVsrc = "wait_vm_vsrc",
        Done = "done", Vm = "vm", Compr = "compr", RowEn = "row_en",
        /// Which of an export's sources are there: a bit each.
        En = "en",
        Offset = "offset", Offset0 = "offset0", Offset1 = "offset1", Gds = "gds",
        /// MI300 calls them `sc0` and `nt`, and the third, which MI200 has first, `sc1`.
        Glc = "glc", Slc = "slc", Scc = "scc",
        Dlc = "dlc", Nv = "nv", Th = "th", Scope = "scope",
        Offen = "offen", Idxen = "idxen", Addr64 = "addr64", Lds = "lds", Tfe = "tfe", Lwe = "lwe",
        Format = "format", Dmask = "dmask", Unorm = "unorm", Da = "da", R128 = "r128", A16 = "a16", D16 = "d16",
        Dim = "dim",
        /// That a scalar register has an offset beside it, which may be 0.
        Soe = "soe",
    }
}

impl Mod {
    /// How many bits its value has; a negative number says that it is signed.
    pub const fn width(self) -> i8 {
        match self {
            Mod::Neg | Mod::Abs | Mod::NegLo | Mod::NegHi | Mod::OpSelHi | Mod::Ones | Mod::Sext => 3,
            Mod::Cbsz | Mod::Blgp | Mod::NegMatrix => 3,
            Mod::Abid => 4,
            Mod::Omod | Mod::ByteSel | Mod::IndexKey | Mod::DstUnused | Mod::Scope => 2,
            Mod::OpSel
            | Mod::Halves
            | Mod::RowMask
            | Mod::BankMask
            | Mod::WaitVdst
            | Mod::WaitVaVdst
            | Mod::En
            | Mod::Dmask => 4,
            Mod::DstSel | Mod::Src0Sel | Mod::Src1Sel | Mod::WaitExp | Mod::Dim | Mod::Th => 3,
            Mod::DppCtrl => 9,
            Mod::Dpp8 => 24,
            Mod::Offset => -25,
            Mod::Offset0 | Mod::Offset1 | Mod::Bitop3 => 8,
            Mod::Format => 7,
            _ => 1,
        }
    }
}

vocabulary! {
    /// What a GPU needs beyond its generation for a row to exist there.
    Need {
        Always = "always",
        Wave32 = "wave32",
        Wave64 = "wave64",
        /// `v_dot2_f32_f16` and the other dot products of gfx1011.
        Dot = "dot",
        /// Ray tracing of gfx1013.
        Bvh = "bvh",
    }
}

vocabulary! {
    /// The part of the GPU that executes a row, as its cost is counted.
    Unit {
        Salu = "salu",
        /// Floating point of the scalar ALU.
        Sfpu = "sfpu",
        Branch = "branch", Barrier = "barrier", Waitcnt = "waitcnt", SendMsg = "sendmsg",
        /// Vector ALU: values of 32 bits or less, and slower ones.
        Valu32 = "valu32", Valu64 = "valu64", ValuQuarterRate32 = "valu_quarter_rate32", ValuFma = "valu_fma",
        ValuDouble = "valu_double", ValuDoubleAdd = "valu_double_add", ValuDoubleConvert = "valu_double_convert",
        ValuDoubleTranscendental = "valu_double_transcendental",
        ValuTranscendental32 = "valu_transcendental32", ValuPseudoScalarTrans = "valu_pseudo_scalar_trans",
        /// Matrices, of RDNA and of CDNA.
        Wmma = "wmma", Mfma = "mfma",
        Interp = "interp", Ldsdir = "ldsdir", Exp = "exp",
        Smem = "smem", Lds = "lds", Vmem = "vmem",
        Other = "other",
    }
}

vocabulary! {
    /// Parts of a GPU that an instruction keeps busy.
    Resource {
        Scalar = "scalar", Branch = "branch", Valu = "valu",
        /// The part of the vector ALU that is slower.
        ValuComplex = "valu_complex",
        Lds = "lds", Export = "export", Vmem = "vmem",
    }
}

impl Unit {
    /// Whether it is the part of the vector ALU for reciprocals, roots, exponentials and sines.
    pub const fn is_transcendental(self) -> bool {
        matches!(
            self,
            Unit::ValuTranscendental32 | Unit::ValuDoubleTranscendental | Unit::ValuPseudoScalarTrans
        )
    }
}

vocabulary! {
    /// What a row is for. Every row has exactly one; what computes is grouped by the table of its semantics.
    Role {
        /// Integers of the scalar ALU.
        Scalar = "scalar",
        /// Floating point of the scalar ALU.
        ScalarFloat = "scalar_float",
        /// Integers of the vector ALU.
        Integer = "integer",
        /// Floating point of the vector ALU: sums, products, divisions.
        Float = "float",
        /// Minima, maxima and medians of floating point.
        Minmax = "minmax",
        /// Conversions and roundings of floating point.
        Convert = "convert",
        /// Conversions from and to numbers of 8 bits and less with a scale, of up to 32 at once.
        Scaled = "scaled",
        /// Reciprocals, roots, exponentials, logarithms, sines.
        Transcendental = "transcendental",
        /// Packed and mixed precision, dot products.
        Packed = "packed",
        /// `compare=RELATION`: writes a bit of a mask, or the condition code.
        Compare = "compare",
        /// Half of a dual instruction.
        Dual = "dual",
        /// Moves data between lanes, or between lanes and scalar registers.
        Lanes = "lanes",
        /// Multiplies matrices, a wave together.
        Matrix = "matrix",
        /// Multiplies matrices into accumulation registers.
        Mfma = "mfma",
        /// Interpolates attributes.
        Interp = "interp",
        /// Loads parameters or other data from LDS into lanes.
        Parameter = "parameter",
        /// Exports to the fixed functions.
        Export = "export",
        /// `memory=MOVED`: loads, stores, samples, asks a descriptor, or moves data through LDS.
        Memory = "memory",
        /// `atomic=OPERATION`: changes memory.
        Atomic = "atomic",
        /// Writes caches back or invalidates them.
        Cache = "cache",
        /// Asks for instructions or data ahead of their use.
        Prefetch = "prefetch",
        /// Asks for a translation of an address.
        Probe = "probe",
        /// A direct branch that is always taken.
        Branch = "branch",
        /// A direct branch that is taken on a condition.
        CBranch = "cbranch",
        /// The same, and the condition is that of `vccz`.
        CBranchVcc = "cbranch_vcc",
        /// The two ways of a branch of gfx6 to gfx9, by a stack.
        Fork = "fork",
        /// Jumps to an address in registers.
        SetPc = "set_pc",
        /// Calls an address in registers.
        SwapPc = "swap_pc",
        /// Reads the address of the next instruction.
        GetPc = "get_pc",
        /// A direct call.
        Call = "call",
        /// From a trap handler.
        Return = "return",
        /// The halves of a wave of 64 lanes one after the other.
        Subvector = "subvector",
        /// Ends the program.
        End = "end",
        /// Enters the trap handler.
        Trap = "trap",
        /// Waits for other waves of the workgroup, or signals them.
        Barrier = "barrier",
        /// Sends a message to another unit.
        Message = "message",
        /// A message that is answered.
        MessageRtn = "message_rtn",
        /// Writes or reads a hardware register.
        SetReg = "set_reg", GetReg = "get_reg",
        /// Sets parts of the MODE register, or what indexes registers.
        Mode = "mode",
        /// Moves scalar registers whose numbers are relative to `m0`.
        Movrel = "movrel",
        /// Waits for counters; `waits.txt` says for which.
        Wait = "wait",
        /// Waits for everything.
        WaitIdle = "wait_idle",
        /// Waits for parts of the vector ALU and of memory instructions.
        Depctr = "depctr",
        /// Wait states.
        Nop = "nop",
        /// Neither computes, accesses nor steers anything: priorities, sleeps, clauses, performance counters.
        Hint = "hint",
        /// What it does is not documented, or is nothing.
        Unknown = "unknown",
    }
}

impl Role {
    /// Whether control goes on elsewhere than after it, or may.
    pub const fn ends_block(self) -> bool {
        matches!(
            self,
            Role::Branch
                | Role::CBranch
                | Role::CBranchVcc
                | Role::Fork
                | Role::SetPc
                | Role::SwapPc
                | Role::Call
                | Role::Return
                | Role::Subvector
                | Role::End
        )
    }

    /// Whether it calls: what follows runs once what is called has come back.
    pub const fn calls(self) -> bool {
        matches!(self, Role::SwapPc | Role::Call)
    }
}

vocabulary! {
    /// What a comparison asks of its two sources.
    Relation {
        /// Never and always.
        F = "f", Tru = "tru",
        Lt = "lt", Eq = "eq", Le = "le", Gt = "gt", Ne = "ne", Ge = "ge",
        /// Of floating point: not equal, both are numbers, one is none, and what is not so.
        Lg = "lg", O = "o", U = "u",
        Nge = "nge", Nlg = "nlg", Ngt = "ngt", Nle = "nle", Neq = "neq", Nlt = "nlt",
        /// The first is of a class that the second has a bit for.
        Class = "class",
    }
}

vocabulary! {
    /// What an atomic instruction does to memory.
    AtomicOp {
        Swap = "swap",
        /// Swaps if memory is equal to another value, as an integer or as a float.
        Cmpswap = "cmpswap", Fcmpswap = "fcmpswap",
        Add = "add", Fadd = "fadd", Sub = "sub",
        /// Subtracts, and stays at zero.
        Csub = "csub",
        /// Subtracts memory from the data.
        Rsub = "rsub",
        /// Subtracts if memory is not less.
        CondSub = "cond_sub",
        And = "and", Or = "or", Xor = "xor",
        /// To zero past the data, and to the data past zero.
        Inc = "inc", Dec = "dec",
        /// Clears the data's bits and sets another value's.
        Mskor = "mskor",
        /// Subtracts if memory is not less, else adds another value.
        Wrap = "wrap",
        Fmin = "fmin", Fmax = "fmax", Smin = "smin", Smax = "smax", Umin = "umin", Umax = "umax",
        /// Two halves each.
        PkAddF16 = "pk_add_f16", PkAddBf16 = "pk_add_bf16",
        /// Something of its own: counters, stacks, turns.
        Other = "other",
    }
}

impl AtomicOp {
    /// Whether it takes a second value: what is compared with, a mask, or what is added instead.
    pub const fn has_second(self) -> bool {
        matches!(self, AtomicOp::Cmpswap | AtomicOp::Fcmpswap | AtomicOp::Mskor | AtomicOp::Wrap)
    }
}

vocabulary! {
    /// A counter of what is under way. Counters of different generations that count the same are one.
    Counter {
        /// Vector memory: loads, and up to gfx9 stores.
        Memory = "memory",
        /// Exports, GDS, parameters in LDS; on gfx6 the data of stores.
        Exp = "exp",
        /// LDS, GDS and, before gfx12, scalar memory and messages.
        Local = "local",
        /// Stores of vector memory, from gfx10 on.
        Store = "store",
        /// gfx12: image instructions with a sampler.
        Sample = "sample",
        /// gfx12: rays.
        Bvh = "bvh",
        /// gfx12: scalar memory and messages.
        Scalar = "scalar",
    }
}

vocabulary! {
    /// What ends later than its instruction, and is counted.
    Event {
        Smem = "smem", Message = "message", Lds = "lds", Gds = "gds",
        /// Operands, `m0` and `exec` of GDS instructions are read.
        GdsLock = "gds_lock",
        Load = "load", Sample = "sample", Bvh = "bvh", Store = "store",
        /// The data of a store is read.
        StoreLock = "store_lock",
        FlatLoad = "flat_load", FlatStore = "flat_store",
        ExportPos = "export_pos", ExportPar = "export_par", ExportMrt = "export_mrt",
        Ldsdir = "ldsdir",
    }
}

vocabulary! {
    /// What instructions do, beyond their operands and their role.
    Trait {
        /// Of two sources that are the same register its result depends on neither.
        Cancels = "cancels",
        /// Each bit of the result is one of the sources, or a bitwise function of some.
        Bitwise = "bitwise",
        /// `op_sel_hi` says which sources have 16 bits.
        Mix = "mix",
        /// Compares and writes `exec`.
        Cmpx = "cmpx",
        /// Reads a bit of a mask for each lane: a carry, a selection.
        ReadsMask = "reads_mask",
        /// The last step of a division, which reads `vcc`.
        DivFmas = "div_fmas",
        /// Its first two sources are in the other order than their names say.
        Reversed = "reversed",
        Permlane = "permlane", Readlane = "readlane", Readfirstlane = "readfirstlane", Writelane = "writelane",
        /// Names registers relative to `m0`, or makes others do so.
        Relative = "relative",
        /// On gfx9 a result of 16 bits makes the upper half of its register zero, which its successors keep.
        ZeroesHigh = "zeroes_high",
        /// `op_sel` has bits for three sources, although there are two.
        OpSelOfThree = "op_sel_of_three",
        /// A product of matrices of which one is sparse.
        Sparse = "sparse",
        /// Adds the number of the lane to the address.
        Addtid = "addtid",
        /// Scalar memory through a descriptor.
        Buffer = "buffer",
        /// Scalar memory of scratch: a register's offset counts 64 bytes.
        Scratch = "scratch",
        /// An atomic of 64 bits.
        X2 = "x2",
        Load = "load", Store = "store", Atomic = "atomic",
        /// Asks the descriptor, not memory.
        Query = "query",
        /// Swaps only what compares equal: twice the data.
        Cmpswap = "cmpswap",
        /// What it loads goes to LDS, always.
        ToLds = "to_lds",
        /// `lds` may be said, or must be.
        Lds = "lds", LdsAlways = "lds_always",
        /// `gds` may be said, or must be.
        Gds = "gds", GdsAlways = "gds_always",
        /// Modifiers of most memory instructions: caching, offsets, the address of a buffer, its format, status.
        Cpol = "cpol", Offset = "offset", Offset0 = "offset0", Offset1 = "offset1", Vaddr = "vaddr",
        /// Two offsets count 64 values each.
        Stride64 = "stride64",
        Format = "format", Tfe = "tfe",
        /// The offset is a pattern of lanes.
        Swizzle = "swizzle",
        /// Four texels of one channel.
        Gather4 = "gather4",
        /// Four samples of one channel, from gfx11 on.
        Msaa = "msaa",
        /// Parts of a sample's address before its coordinates: offsets of texels, what is added to the level of detail,
        /// what texels are compared with.
        TexelOffset = "texel_offset", Bias = "bias", DepthCompare = "depth_compare",
        /// Derivatives, of 16 bits each with the second.
        Grad = "grad", G16 = "g16",
        /// Parts of an address after its coordinates: a level of detail or mip level, the least level of detail.
        Level = "level", ClampLod = "clamp_lod",
        /// The level of detail is zero.
        LevelZero = "level_zero",
        /// No coordinates.
        NoCoord = "nocoord",
        /// `d16` and `a16` may be said.
        D16 = "d16", A16 = "a16",
        /// Ray tracing, with node addresses of 32 and 64 bits.
        Bvh = "bvh", Bvh64 = "bvh64",
    }
}

/// A set of [`Trait`]s: bit `n` is number `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits(
    /// The bits.
    pub u64,
);

impl Traits {
    /// Whether a trait is among them.
    pub const fn has(self, id: Trait) -> bool {
        self.0 >> id as u8 & 1 != 0
    }
}

/// Which way a value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperandAccess(
    /// [`OperandAccess::READ`] and [`OperandAccess::WRITE`].
    pub u8,
);

impl OperandAccess {
    /// The instruction reads it.
    pub const READ: u8 = 1;
    /// The instruction writes it.
    pub const WRITE: u8 = 2;

    /// Whether the instruction reads it.
    pub const fn reads(self) -> bool {
        self.0 & OperandAccess::READ != 0
    }

    /// Whether the instruction writes it.
    pub const fn writes(self) -> bool {
        self.0 & OperandAccess::WRITE != 0
    }
}

/// Where an operand stands: in the text by its position, in the words by its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperandSlot {
    /// What may stand there.
    pub class: Class,
    /// What the instruction takes it for.
    pub ty: Type,
    /// The field it is encoded in.
    pub field: Field,
    /// Whether it is read, written, or both.
    pub access: OperandAccess,
    /// Which source it is to modifiers: bit `source` of [`Mod::Neg`] and so on. [`OperandSlot::NO_SOURCE`] if none.
    pub source: u8,
    /// The register, if there is only one: a number of [`super::Reg`].
    pub reg: u16,
}

impl OperandSlot {
    /// Of [`OperandSlot::source`]: modifiers do not apply.
    pub const NO_SOURCE: u8 = 7;
}

/// A modifier an instruction may have, in the order they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModSlot {
    /// Which.
    pub id: Mod,
    /// The field it is encoded in.
    pub field: Field,
    /// The value's bits from this one on are in that field.
    pub shift: u8,
    /// The bits of the value that may be set.
    pub mask: u32,
}

/// Where a field lies: lowest bit and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldBits {
    /// Lowest bit.
    pub lsb: u8,
    /// How many bits; 0: the encoding has no such field.
    pub width: u8,
}

/// In place of an opcode: the instruction is not in that generation.
pub const NO_OPCODE: u16 = u16::MAX;

/// The bits of one encoding in one or more generations.
#[derive(Debug, Clone, Copy)]
pub struct EncodingLayout {
    /// Of which encoding.
    pub encoding: Encoding,
    /// How many dwords, without a literal.
    pub dwords: u8,
    /// Whether a source may be a literal in one dword more.
    pub literal: bool,
    /// Bits of the first two dwords that tell the encoding.
    pub mask: u64,
    /// Value under the mask.
    pub value: u64,
    /// Bits of the two dwords after those, which have one value in all instructions of the encoding.
    pub high_mask: u64,
    /// Value under that mask.
    pub high_value: u64,
    /// By number of [`Field`].
    pub fields: [FieldBits; FIELDS],
}

/// How many encodings there are.
pub const ENCODINGS: usize = Encoding::ALL.len();

/// Index of a [`EncodingLayout`]; the greatest: none.
pub type LayoutIndex = u8;

/// The hash names are found by.
pub const fn name_hash(name: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5u32;
    let mut at = 0;
    while at < name.len() {
        hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash ^ hash >> 15
}
