//! The encodings of ir2: where each field lies, what the text calls it, which opcodes there are.
//!
//! Everything the disassembler and the assembler know stands here once; they only add the syntax of operands. Facts:
//! Mesa's description of the a2xx instruction words, the surface formats of the a2xx register database.

/// A run of bits of an instruction word.
#[derive(Debug)]
pub struct WordField {
    /// What braces call it when no other syntax shows it.
    pub name: &'static str,
    /// Lowest bit.
    pub low: u8,
    /// Bits.
    pub width: u8,
    /// Its value where the text says nothing.
    pub rest: u8,
}

impl WordField {
    /// The largest value.
    pub const fn max(&self) -> u128 {
        (1 << self.width) - 1
    }

    /// The bits it takes.
    pub const fn mask(&self) -> u128 {
        self.max() << self.low
    }

    /// Its value in `word`.
    pub const fn get(&self, word: u128) -> u128 {
        word >> self.low & self.max()
    }

    /// Puts the low bits of `value` in.
    pub const fn set(&self, word: u128, value: u128) -> u128 {
        word & !self.mask() | (value & self.max()) << self.low
    }
}

const fn bits(name: &'static str, low: u8, width: u8) -> WordField {
    WordField { name, low, width, rest: 0 }
}

const fn bits_at_rest(name: &'static str, low: u8, width: u8, rest: u8) -> WordField {
    WordField { name, low, width, rest }
}

/// A shape of instruction words.
#[derive(Debug)]
pub struct WordForm {
    /// Its fields: together, all bits of the word.
    pub fields: &'static [&'static WordField],
    /// What follows the operands, in order.
    pub attrs: &'static [InstrAttr],
}

impl WordForm {
    /// The word where the text says nothing.
    pub fn rest(&self) -> u128 {
        self.fields.iter().fold(0, |word, field| field.set(word, u128::from(field.rest)))
    }
}

/// Something printed after the operands.
#[derive(Debug)]
pub struct InstrAttr {
    /// Its keyword; empty for a [`AttrArg::Choice`].
    pub word: &'static str,
    /// When it is there.
    pub when: AttrCondition,
    /// What is in its parentheses.
    pub args: &'static [AttrArg],
}

/// When an attribute is there.
#[derive(Debug)]
pub enum AttrCondition {
    /// Always.
    Always,
    /// When the field is not this.
    Not(&'static WordField, u8),
    /// When the field is this.
    Is(&'static WordField, u8),
    /// When one of its arguments is not 0.
    Any,
}

/// A value in an attribute.
#[derive(Debug)]
pub enum AttrArg {
    /// A decimal number.
    Dec(&'static WordField),
    /// A hexadecimal number.
    Hex(&'static WordField),
    /// A name, or a decimal number where there is none.
    Name(&'static WordField, &'static [(u8, &'static str)]),
    /// A name with no keyword and no parentheses, or the second with a number where there is none.
    Choice(&'static WordField, &'static [(u8, &'static str)], &'static str),
}

impl AttrArg {
    /// What it shows.
    pub fn field(&self) -> &'static WordField {
        match self {
            AttrArg::Dec(f) | AttrArg::Hex(f) | AttrArg::Name(f, _) | AttrArg::Choice(f, ..) => f,
        }
    }
}

const fn attr(word: &'static str, when: AttrCondition, args: &'static [AttrArg]) -> InstrAttr {
    InstrAttr { word, when, args }
}

/// Control flow: 48 bits.
pub mod cf {
    use super::{AttrArg, AttrCondition, InstrAttr, WordField, WordForm, attr, bits};

    /// The opcode, in every form.
    pub static OPCODE: WordField = bits("opcode", 44, 4);
    /// Instruction address of the first instruction.
    pub static ADDRESS: WordField = bits("address", 0, 9);
    /// Number of instructions.
    pub static COUNT: WordField = bits("count", 12, 3);
    /// Two bits for each of the first six instructions: fetch, wait.
    pub static SERIALIZE: WordField = bits("serialize", 16, 12);
    static EXEC_RESERVED: WordField = bits("reserved", 9, 3);
    static YIELD: WordField = bits("yield", 15, 1);
    static VERTEX_CACHE: WordField = bits("vc", 28, 6);
    static BOOL: WordField = bits("bool_addr", 34, 8);
    static CONDITION: WordField = bits("condition", 42, 1);
    static ABSOLUTE: WordField = bits("absolute", 43, 1);
    static TARGET: WordField = bits("address", 0, 10);
    static LOOP_RESERVED_0: WordField = bits("reserved0", 10, 6);
    static LOOP_ID: WordField = bits("loop_id", 16, 5);
    static LOOP_RESERVED_1: WordField = bits("reserved1", 21, 22);
    static JUMP_RESERVED_0: WordField = bits("reserved0", 10, 3);
    static FORCE_CALL: WordField = bits("force_call", 13, 1);
    static PREDICATED: WordField = bits("predicated", 14, 1);
    static JUMP_RESERVED_1: WordField = bits("reserved1", 15, 18);
    static DIRECTION: WordField = bits("direction", 33, 1);
    static SIZE: WordField = bits("size", 0, 4);
    static ALLOC_RESERVED: WordField = bits("reserved", 4, 36);
    static NO_SERIAL: WordField = bits("no_serial", 40, 1);
    static BUFFER: WordField = bits("buffer", 41, 2);
    static ALLOC_MODE: WordField = bits("alloc_mode", 43, 1);
    static NOP_RESERVED: WordField = bits("reserved", 0, 44);

    static EXEC_FIELDS: &[&WordField] = &[
        &ADDRESS,
        &EXEC_RESERVED,
        &COUNT,
        &YIELD,
        &SERIALIZE,
        &VERTEX_CACHE,
        &BOOL,
        &CONDITION,
        &ABSOLUTE,
        &OPCODE,
    ];
    const ADDR_OF_CODE: InstrAttr =
        InstrAttr { word: "ADDR", when: AttrCondition::Always, args: &[AttrArg::Hex(&ADDRESS)] };
    const ADDR_OF_CF: InstrAttr =
        InstrAttr { word: "ADDR", when: AttrCondition::Always, args: &[AttrArg::Hex(&TARGET)] };
    const CNT: InstrAttr =
        InstrAttr { word: "CNT", when: AttrCondition::Always, args: &[AttrArg::Hex(&COUNT)] };
    const YIELDS: InstrAttr = attr("YIELD", AttrCondition::Is(&YIELD, 1), &[]);
    const VC: InstrAttr = InstrAttr {
        word: "VC",
        when: AttrCondition::Not(&VERTEX_CACHE, 0),
        args: &[AttrArg::Hex(&VERTEX_CACHE)],
    };
    const BOOL_ADDR: InstrAttr =
        InstrAttr { word: "BOOL_ADDR", when: AttrCondition::Not(&BOOL, 0), args: &[AttrArg::Hex(&BOOL)] };
    const ABSOLUTE_ADDR: InstrAttr = attr("ABSOLUTE_ADDR", AttrCondition::Is(&ABSOLUTE, 1), &[]);

    static EXEC: WordForm =
        WordForm { fields: EXEC_FIELDS, attrs: &[ADDR_OF_CODE, CNT, YIELDS, VC, BOOL_ADDR, ABSOLUTE_ADDR] };
    static COND_EXEC: WordForm = WordForm {
        fields: EXEC_FIELDS,
        attrs: &[
            ADDR_OF_CODE,
            CNT,
            YIELDS,
            VC,
            BOOL_ADDR,
            ABSOLUTE_ADDR,
            attr("COND", AttrCondition::Always, &[AttrArg::Dec(&CONDITION)]),
        ],
    };
    static LOOP: WordForm = WordForm {
        fields: &[&TARGET, &LOOP_RESERVED_0, &LOOP_ID, &LOOP_RESERVED_1, &ABSOLUTE, &OPCODE],
        attrs: &[
            ADDR_OF_CF,
            attr("LOOP_ID", AttrCondition::Always, &[AttrArg::Dec(&LOOP_ID)]),
            ABSOLUTE_ADDR,
        ],
    };
    static JUMP: WordForm = WordForm {
        fields: &[
            &TARGET,
            &JUMP_RESERVED_0,
            &FORCE_CALL,
            &PREDICATED,
            &JUMP_RESERVED_1,
            &DIRECTION,
            &BOOL,
            &CONDITION,
            &ABSOLUTE,
            &OPCODE,
        ],
        attrs: &[
            ADDR_OF_CF,
            attr("DIR", AttrCondition::Always, &[AttrArg::Dec(&DIRECTION)]),
            attr("FORCE_CALL", AttrCondition::Is(&FORCE_CALL, 1), &[]),
            attr("COND", AttrCondition::Is(&PREDICATED, 1), &[AttrArg::Dec(&CONDITION)]),
            BOOL_ADDR,
            ABSOLUTE_ADDR,
        ],
    };
    static ALLOC: WordForm = WordForm {
        fields: &[&SIZE, &ALLOC_RESERVED, &NO_SERIAL, &BUFFER, &ALLOC_MODE, &OPCODE],
        attrs: &[
            attr(
                "",
                AttrCondition::Always,
                &[AttrArg::Choice(
                    &BUFFER,
                    &[(0, "NO ALLOC"), (1, "POSITION"), (2, "PARAM/PIXEL"), (3, "MEMORY")],
                    "BUFFER",
                )],
            ),
            attr("SIZE", AttrCondition::Always, &[AttrArg::Hex(&SIZE)]),
            attr("NO_SERIAL", AttrCondition::Is(&NO_SERIAL, 1), &[]),
            attr("ALLOC_MODE", AttrCondition::Is(&ALLOC_MODE, 1), &[]),
        ],
    };
    static NOP: WordForm = WordForm { fields: &[&NOP_RESERVED, &OPCODE], attrs: &[] };

    /// Name, shape, and whether it runs instructions; the place is the opcode.
    pub static OPCODES: [(&str, &WordForm, bool); 16] = [
        ("NOP", &NOP, false),
        ("EXEC", &EXEC, true),
        ("EXEC_END", &EXEC, true),
        ("COND_EXEC", &COND_EXEC, true),
        ("COND_EXEC_END", &COND_EXEC, true),
        ("COND_PRED_EXEC", &COND_EXEC, true),
        ("COND_PRED_EXEC_END", &COND_EXEC, true),
        ("LOOP_START", &LOOP, false),
        ("LOOP_END", &LOOP, false),
        ("COND_CALL", &JUMP, false),
        ("RETURN", &JUMP, false),
        ("COND_JMP", &JUMP, false),
        ("ALLOC", &ALLOC, false),
        ("COND_EXEC_PRED_CLEAN", &COND_EXEC, true),
        ("COND_EXEC_PRED_CLEAN_END", &COND_EXEC, true),
        ("MARK_VS_FETCH_DONE", &NOP, false),
    ];
}

/// Fetches: 96 bits.
pub mod fetch {
    use super::{AttrArg, AttrCondition, WordField, WordForm, attr, bits, bits_at_rest};

    /// The opcode, in both forms.
    pub static OPCODE: WordField = bits("opcode", 0, 5);
    /// The register of the address or coordinates.
    pub static SRC: WordField = bits("src", 5, 6);
    /// The register written.
    pub static DST: WordField = bits("dst", 12, 6);
    /// Three bits for each channel written.
    pub static DST_SWIZZLE: WordField = bits("dst_swizzle", 32, 12);
    /// Whether the predicate decides.
    pub static PREDICATED: WordField = bits("predicated", 63, 1);
    /// Which predicate runs it.
    pub static CONDITION: WordField = bits("condition", 95, 1);
    /// The channel of a vertex fetch.
    pub static VERTEX_SWIZZLE: WordField = bits("src_swizzle", 30, 2);
    /// The channels of a texture fetch.
    pub static TEXTURE_SWIZZLE: WordField = bits("src_swizzle", 26, 6);

    static SRC_RELATIVE: WordField = bits("src_rel", 11, 1);
    static DST_RELATIVE: WordField = bits("dst_rel", 18, 1);

    static MUST_BE_ONE: WordField = bits_at_rest("must_be_one", 19, 1, 1);
    static CONST: WordField = bits("const", 20, 5);
    static CONST_SELECT: WordField = bits("const_sel", 25, 2);
    static VERTEX_RESERVED_0: WordField = bits("reserved0", 27, 3);
    static SIGNED: WordField = bits("signed", 44, 1);
    static INTEGER: WordField = bits_at_rest("num_format", 45, 1, 1);
    static SIGNED_RF_MODE: WordField = bits("signed_rf_mode", 46, 1);
    static VERTEX_RESERVED_1: WordField = bits("reserved1", 47, 1);
    static FORMAT: WordField = bits("format", 48, 6);
    static VERTEX_RESERVED_2: WordField = bits("reserved2", 54, 2);
    static EXP_ADJUST: WordField = bits("exp_adjust", 56, 6);
    static VERTEX_RESERVED_3: WordField = bits("reserved3", 62, 1);
    static STRIDE: WordField = bits("stride", 64, 8);
    static OFFSET: WordField = bits("offset", 72, 22);
    static VERTEX_RESERVED_4: WordField = bits("reserved4", 94, 1);

    static VALID_ONLY: WordField = bits("valid_only", 19, 1);
    static DENORM: WordField = bits("coord_denorm", 25, 1);
    static MAG: WordField = bits_at_rest("mag", 44, 2, 3);
    static MIN: WordField = bits_at_rest("min", 46, 2, 3);
    static MIP: WordField = bits_at_rest("mip", 48, 2, 3);
    static ANISO: WordField = bits_at_rest("aniso", 50, 3, 7);
    static ARBITRARY: WordField = bits_at_rest("arbitrary", 53, 3, 7);
    static VOL_MAG: WordField = bits_at_rest("vol_mag", 56, 2, 3);
    static VOL_MIN: WordField = bits_at_rest("vol_min", 58, 2, 3);
    static COMPUTED_LOD: WordField = bits_at_rest("use_comp_lod", 60, 1, 1);
    static REG_LOD: WordField = bits("use_reg_lod", 61, 2);
    static GRADIENTS: WordField = bits("use_reg_gradients", 64, 1);
    static LOCATION: WordField = bits("location", 65, 1);
    static LOD_BIAS: WordField = bits("lod_bias", 66, 7);
    static TEXTURE_RESERVED: WordField = bits("reserved", 73, 7);
    static OFFSET_X: WordField = bits("offset_x", 80, 5);
    static OFFSET_Y: WordField = bits("offset_y", 85, 5);
    static OFFSET_Z: WordField = bits("offset_z", 90, 5);

    static FORMATS: &[(u8, &str)] = &[
        (0, "FMT_1_REVERSE"),
        (2, "FMT_8"),
        (6, "FMT_8_8_8_8"),
        (10, "FMT_8_8"),
        (24, "FMT_16"),
        (25, "FMT_16_16"),
        (26, "FMT_16_16_16_16"),
        (33, "FMT_32"),
        (34, "FMT_32_32"),
        (35, "FMT_32_32_32_32"),
        (36, "FMT_32_FLOAT"),
        (37, "FMT_32_32_FLOAT"),
        (38, "FMT_32_32_32_32_FLOAT"),
        (57, "FMT_32_32_32_FLOAT"),
    ];
    static FILTERS: &[(u8, &str)] = &[(0, "POINT"), (1, "LINEAR"), (2, "BASEMAP")];
    static ANISOTROPIES: &[(u8, &str)] =
        &[(0, "DISABLED"), (1, "MAX_1_1"), (2, "MAX_2_1"), (3, "MAX_4_1"), (4, "MAX_8_1"), (5, "MAX_16_1")];
    static ARBITRARY_FILTERS: &[(u8, &str)] =
        &[(0, "2x4_SYM"), (1, "2x4_ASYM"), (2, "4x2_SYM"), (3, "4x2_ASYM"), (4, "4x4_SYM"), (5, "4x4_ASYM")];

    /// A fetch of vertex data.
    pub static VERTEX: WordForm = WordForm {
        fields: &[
            &OPCODE,
            &SRC,
            &SRC_RELATIVE,
            &DST,
            &DST_RELATIVE,
            &MUST_BE_ONE,
            &CONST,
            &CONST_SELECT,
            &VERTEX_RESERVED_0,
            &VERTEX_SWIZZLE,
            &DST_SWIZZLE,
            &SIGNED,
            &INTEGER,
            &SIGNED_RF_MODE,
            &VERTEX_RESERVED_1,
            &FORMAT,
            &VERTEX_RESERVED_2,
            &EXP_ADJUST,
            &VERTEX_RESERVED_3,
            &PREDICATED,
            &STRIDE,
            &OFFSET,
            &VERTEX_RESERVED_4,
            &CONDITION,
        ],
        attrs: &[
            attr("", AttrCondition::Always, &[AttrArg::Choice(&FORMAT, FORMATS, "TYPE")]),
            attr(
                "",
                AttrCondition::Always,
                &[AttrArg::Choice(&SIGNED, &[(0, "UNSIGNED"), (1, "SIGNED")], "SIGN")],
            ),
            attr("NORMALIZED", AttrCondition::Is(&INTEGER, 0), &[]),
            attr("STRIDE", AttrCondition::Always, &[AttrArg::Dec(&STRIDE)]),
            attr("OFFSET", AttrCondition::Not(&OFFSET, 0), &[AttrArg::Dec(&OFFSET)]),
            attr("CONST", AttrCondition::Always, &[AttrArg::Dec(&CONST), AttrArg::Dec(&CONST_SELECT)]),
        ],
    };

    /// A fetch from a texture, and what prepares one.
    pub static TEXTURE: WordForm = WordForm {
        fields: &[
            &OPCODE,
            &SRC,
            &SRC_RELATIVE,
            &DST,
            &DST_RELATIVE,
            &VALID_ONLY,
            &CONST,
            &DENORM,
            &TEXTURE_SWIZZLE,
            &DST_SWIZZLE,
            &MAG,
            &MIN,
            &MIP,
            &ANISO,
            &ARBITRARY,
            &VOL_MAG,
            &VOL_MIN,
            &COMPUTED_LOD,
            &REG_LOD,
            &PREDICATED,
            &GRADIENTS,
            &LOCATION,
            &LOD_BIAS,
            &TEXTURE_RESERVED,
            &OFFSET_X,
            &OFFSET_Y,
            &OFFSET_Z,
            &CONDITION,
        ],
        attrs: &[
            attr("CONST", AttrCondition::Always, &[AttrArg::Dec(&CONST)]),
            attr("VALID_ONLY", AttrCondition::Is(&VALID_ONLY, 1), &[]),
            attr("DENORM", AttrCondition::Is(&DENORM, 1), &[]),
            attr("MAG", AttrCondition::Not(&MAG, 3), &[AttrArg::Name(&MAG, FILTERS)]),
            attr("MIN", AttrCondition::Not(&MIN, 3), &[AttrArg::Name(&MIN, FILTERS)]),
            attr("MIP", AttrCondition::Not(&MIP, 3), &[AttrArg::Name(&MIP, FILTERS)]),
            attr("ANISO", AttrCondition::Not(&ANISO, 7), &[AttrArg::Name(&ANISO, ANISOTROPIES)]),
            attr(
                "ARBITRARY",
                AttrCondition::Not(&ARBITRARY, 7),
                &[AttrArg::Name(&ARBITRARY, ARBITRARY_FILTERS)],
            ),
            attr("VOL_MAG", AttrCondition::Not(&VOL_MAG, 3), &[AttrArg::Name(&VOL_MAG, FILTERS)]),
            attr("VOL_MIN", AttrCondition::Not(&VOL_MIN, 3), &[AttrArg::Name(&VOL_MIN, FILTERS)]),
            attr("LOD", AttrCondition::Is(&COMPUTED_LOD, 0), &[AttrArg::Dec(&COMPUTED_LOD)]),
            attr("LOD_BIAS", AttrCondition::Is(&COMPUTED_LOD, 0), &[AttrArg::Dec(&LOD_BIAS)]),
            attr("REG_LOD", AttrCondition::Not(&REG_LOD, 0), &[AttrArg::Dec(&REG_LOD)]),
            attr("USE_REG_GRADIENTS", AttrCondition::Is(&GRADIENTS, 1), &[]),
            attr(
                "LOCATION",
                AttrCondition::Always,
                &[AttrArg::Name(&LOCATION, &[(0, "CENTROID"), (1, "CENTER")])],
            ),
            attr(
                "OFFSET",
                AttrCondition::Any,
                &[AttrArg::Dec(&OFFSET_X), AttrArg::Dec(&OFFSET_Y), AttrArg::Dec(&OFFSET_Z)],
            ),
        ],
    };

    /// The opcodes with a name. The others fetch from textures too; braces tell them apart.
    pub static OPCODES: &[(u8, &str)] = &[(0, "VERTEX"), (1, "SAMPLE"), (24, "SET_TEX_LOD")];
    /// The name of the other opcodes.
    pub const OTHER: &str = "?";

    /// The shape of an opcode's words.
    pub fn form(opcode: u128) -> &'static WordForm {
        if opcode == 0 { &VERTEX } else { &TEXTURE }
    }
}

/// Arithmetic: 96 bits, a vector operation and a scalar one.
pub mod alu {
    use super::{WordField, WordForm, bits};

    /// An operand.
    #[derive(Debug)]
    pub struct AluSource {
        /// The register or constant.
        pub number: WordField,
        /// High for a register, low for a constant.
        pub register: WordField,
        /// Two bits for each channel: how far the channel read lies after the one written.
        pub swizzle: WordField,
        /// Its sign is turned.
        pub negate: WordField,
        /// Its sign is dropped.
        pub abs: WordField,
        select: WordField,
    }

    /// The first operand.
    pub static SRC1: AluSource = AluSource {
        number: bits("src1", 80, 6),
        register: bits("src1_reg", 95, 1),
        swizzle: bits("src1_swizzle", 48, 8),
        negate: bits("src1_neg", 58, 1),
        abs: bits("src1_abs", 87, 1),
        select: bits("src1_select", 86, 1),
    };
    /// The second operand.
    pub static SRC2: AluSource = AluSource {
        number: bits("src2", 72, 6),
        register: bits("src2_reg", 94, 1),
        swizzle: bits("src2_swizzle", 40, 8),
        negate: bits("src2_neg", 57, 1),
        abs: bits("src2_abs", 79, 1),
        select: bits("src2_select", 78, 1),
    };
    /// The third operand, and that of the scalar operation.
    pub static SRC3: AluSource = AluSource {
        number: bits("src3", 64, 6),
        register: bits("src3_reg", 93, 1),
        swizzle: bits("src3_swizzle", 32, 8),
        negate: bits("src3_neg", 56, 1),
        abs: bits("src3_abs", 71, 1),
        select: bits("src3_select", 70, 1),
    };

    /// A result and what is done to it.
    #[derive(Debug)]
    pub struct AluResult {
        /// The opcode.
        pub opcode: WordField,
        /// The register, or the export, written.
        pub dst: WordField,
        /// The channels written.
        pub mask: WordField,
        /// Clamped to 0…1.
        pub clamp: WordField,
    }

    /// The vector operation.
    pub static VECTOR: AluResult = AluResult {
        opcode: bits("vector_opcode", 88, 5),
        dst: bits("vector_dst", 0, 6),
        mask: bits("vector_mask", 16, 4),
        clamp: bits("vector_clamp", 24, 1),
    };
    /// The scalar operation.
    pub static SCALAR: AluResult = AluResult {
        opcode: bits("scalar_opcode", 26, 6),
        dst: bits("scalar_dst", 8, 6),
        mask: bits("scalar_mask", 20, 4),
        clamp: bits("scalar_clamp", 25, 1),
    };
    /// Results are exports.
    pub static EXPORT: WordField = bits("export", 15, 1);
    /// 2: where the predicate is clear; 3: where it is set.
    pub static PREDICATE: WordField = bits("predicate", 59, 2);

    static VECTOR_DST_REL: WordField = bits("vector_dst_rel", 6, 1);
    static LOW_PRECISION: WordField = bits("low_precision", 7, 1);
    static SCALAR_DST_REL: WordField = bits("scalar_dst_rel", 14, 1);
    static RELATIVE: WordField = bits("relative", 61, 1);
    static CONST_1_REL: WordField = bits("const1_rel", 62, 1);
    static CONST_0_REL: WordField = bits("const0_rel", 63, 1);

    /// The shape of its words.
    pub static ALU: WordForm = WordForm {
        fields: &[
            &VECTOR.dst,
            &VECTOR_DST_REL,
            &LOW_PRECISION,
            &SCALAR.dst,
            &SCALAR_DST_REL,
            &EXPORT,
            &VECTOR.mask,
            &SCALAR.mask,
            &VECTOR.clamp,
            &SCALAR.clamp,
            &SCALAR.opcode,
            &SRC3.swizzle,
            &SRC2.swizzle,
            &SRC1.swizzle,
            &SRC3.negate,
            &SRC2.negate,
            &SRC1.negate,
            &PREDICATE,
            &RELATIVE,
            &CONST_1_REL,
            &CONST_0_REL,
            &SRC3.number,
            &SRC3.select,
            &SRC3.abs,
            &SRC2.number,
            &SRC2.select,
            &SRC2.abs,
            &SRC1.number,
            &SRC1.select,
            &SRC1.abs,
            &VECTOR.opcode,
            &SRC3.register,
            &SRC2.register,
            &SRC1.register,
        ],
        attrs: &[],
    };

    /// Name and number of operands; the place is the opcode.
    pub static VECTOR_OPCODES: [(&str, u8); 30] = [
        ("ADDv", 2),
        ("MULv", 2),
        ("MAXv", 2),
        ("MINv", 2),
        ("SETEv", 2),
        ("SETGTv", 2),
        ("SETGTEv", 2),
        ("SETNEv", 2),
        ("FRACv", 1),
        ("TRUNCv", 1),
        ("FLOORv", 1),
        ("MULADDv", 3),
        ("CNDEv", 3),
        ("CNDGTEv", 3),
        ("CNDGTv", 3),
        ("DOT4v", 2),
        ("DOT3v", 2),
        ("DOT2ADDv", 3),
        ("CUBEv", 2),
        ("MAX4v", 1),
        ("PRED_SETE_PUSHv", 2),
        ("PRED_SETNE_PUSHv", 2),
        ("PRED_SETGT_PUSHv", 2),
        ("PRED_SETGTE_PUSHv", 2),
        ("KILLEv", 2),
        ("KILLGTv", 2),
        ("KILLGTEv", 2),
        ("KILLNEv", 2),
        ("DSTv", 2),
        ("MOVAv", 1),
    ];

    /// Names; the place is the opcode.
    pub static SCALAR_OPCODES: [Option<&str>; 51] = [
        Some("ADDs"),
        Some("ADD_PREVs"),
        Some("MULs"),
        Some("MUL_PREVs"),
        Some("MUL_PREV2s"),
        Some("MAXs"),
        Some("MINs"),
        Some("SETEs"),
        Some("SETGTs"),
        Some("SETGTEs"),
        Some("SETNEs"),
        Some("FRACs"),
        Some("TRUNCs"),
        Some("FLOORs"),
        Some("EXP_IEEE"),
        Some("LOG_CLAMP"),
        Some("LOG_IEEE"),
        Some("RECIP_CLAMP"),
        Some("RECIP_FF"),
        Some("RECIP_IEEE"),
        Some("RECIPSQ_CLAMP"),
        Some("RECIPSQ_FF"),
        Some("RECIPSQ_IEEE"),
        Some("MOVAs"),
        Some("MOVA_FLOORs"),
        Some("SUBs"),
        Some("SUB_PREVs"),
        Some("PRED_SETEs"),
        Some("PRED_SETNEs"),
        Some("PRED_SETGTs"),
        Some("PRED_SETGTEs"),
        Some("PRED_SET_INVs"),
        Some("PRED_SET_POPs"),
        Some("PRED_SET_CLRs"),
        Some("PRED_SET_RESTOREs"),
        Some("KILLEs"),
        Some("KILLGTs"),
        Some("KILLGTEs"),
        Some("KILLNEs"),
        Some("KILLONEs"),
        Some("SQRT_IEEE"),
        None,
        Some("MUL_CONST_0"),
        Some("MUL_CONST_1"),
        Some("ADD_CONST_0"),
        Some("ADD_CONST_1"),
        Some("SUB_CONST_0"),
        Some("SUB_CONST_1"),
        Some("SIN"),
        Some("COS"),
        Some("RETAIN_PREV"),
    ];
}

#[cfg(test)]
mod tests {
    use super::{WordForm, alu, cf, fetch};

    /// Every bit belongs to one field: no bit pattern has two readings, and none is lost.
    #[test]
    fn fields_partition_the_words() {
        let check = |what: &str, form: &WordForm, width: u32| {
            let mut seen = 0u128;
            for field in form.fields {
                assert_eq!(seen & field.mask(), 0, "{what}: {} overlaps", field.name);
                seen |= field.mask();
            }
            assert_eq!(seen, (1 << width) - 1, "{what}: bits without a field");
            for (i, field) in form.fields.iter().enumerate() {
                assert!(form.fields[..i].iter().all(|f| f.name != field.name), "{what}: two {}", field.name);
            }
        };
        for (name, form, _) in &cf::OPCODES {
            check(name, form, 48);
        }
        check("vertex fetch", &fetch::VERTEX, 96);
        check("texture fetch", &fetch::TEXTURE, 96);
        check("alu", &alu::ALU, 96);
    }
}
