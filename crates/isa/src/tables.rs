//! The tables that are compiled in.

use crate::table::program::Programs;
use crate::table::{IsaTable, Root};

/// ir3, the shader instruction set of Adreno 3xx to 7xx. Generations are GPU ids: 300, 420, 530, 630, 730.
pub static IR3: &IsaTable<'static> = &ir3::IR3;

/// The instructions of [`IR3`], 64 bits each.
pub const IR3_INSTRUCTION: Root = ir3::INSTRUCTION;

/// How [`IR3_INSTRUCTION`]s are written.
pub(crate) static IR3_PROGRAMS: &Programs<'static> = &ir3_programs::PROGRAMS;

/// afuc, the instruction set of the command processor of Adreno 5xx to 7xx. Generations are 5, 6 and 7.
pub static AFUC: &IsaTable<'static> = &afuc::AFUC;

/// The instructions of [`AFUC`], 32 bits each.
pub const AFUC_INSTRUCTION: Root = afuc::INSTRUCTION;

#[rustfmt::skip]
mod ir3 {
    use crate::table::{Root, IsaTable, expr::Binary::*, rows::{*, DecodeNode::*, ExprOp::*, TemplatePart::*, FieldType::*}};
    use std::borrow::Cow;
    include!(concat!(env!("OUT_DIR"), "/ir3.rs"));
}

#[rustfmt::skip]
mod ir3_programs {
    use crate::table::program::{WordCheck::*, ProgramHead, LineProgram, Programs, LineStep, ConditionalProgram, StepLookup::*};
    use crate::table::rows::{Assert, DecodeNode::*, RowSpan, TextId};
    include!(concat!(env!("OUT_DIR"), "/ir3_programs.rs"));
}

#[rustfmt::skip]
mod afuc {
    use crate::table::{Root, IsaTable, expr::Binary::*, rows::{*, DecodeNode::*, ExprOp::*, TemplatePart::*, FieldType::*}};
    use std::borrow::Cow;
    include!(concat!(env!("OUT_DIR"), "/afuc.rs"));
}
