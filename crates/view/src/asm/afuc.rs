//! Names in listings of the command processor's firmware. Never: the instructions; those are `isa`'s.

use crate::listing::COLORS;
use std::borrow::Cow;
use unwedge_isa::afuc::{AfucNames, DbNames, Firmware, SqeSpace};

/// Register names in the colours of Mesa's tools.
pub struct ColouredNames<'n>(pub DbNames<'n>);

impl AfucNames for ColouredNames<'_> {
    fn register(&self, firmware: Firmware, space: SqeSpace, offset: u32) -> Option<Cow<'_, str>> {
        let name = self.0.register(firmware, space, offset)?;
        Some(Cow::Owned(format!("{}{name}{}", COLORS.name, COLORS.reset)))
    }

    fn offset(&self, firmware: Firmware, space: SqeSpace, name: &str) -> Option<u32> {
        self.0.offset(firmware, space, name)
    }

    fn pipe_is_void(&self, firmware: Firmware, offset: u32) -> bool {
        self.0.pipe_is_void(firmware, offset)
    }

    fn packet(&self, firmware: Firmware, opcode: u8) -> Option<Cow<'_, str>> {
        self.0.packet(firmware, opcode)
    }

    fn opcode(&self, name: &str) -> Option<u8> {
        self.0.opcode(name)
    }
}
