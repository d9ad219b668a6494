//! Attachments: render targets, depth and stencil images, in memory or in GMEM.
use crate::adreno::cp::ThreadId;
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::GpuFault;
use unwedge_hw::adreno::format::TexelCodec;
pub(crate) struct Attachment {
    pub(crate) codec: TexelCodec,
}
impl AdrenoMachine<'_> {
    pub(crate) fn colour_attachment(&self, _id: ThreadId, _n: usize) -> Option<Attachment> {
        None
    }
    pub(crate) fn depth_attachment(&self, _id: ThreadId) -> Option<Attachment> {
        None
    }
    pub(crate) fn stencil_attachment(&self, _id: ThreadId) -> Option<Attachment> {
        None
    }
    pub(crate) fn attachment_read(
        &self,
        _a: &Attachment,
        _x: u32,
        _y: u32,
        _l: u32,
        _s: u32,
        _t: &mut [u8],
    ) -> Result<(), GpuFault> {
        Ok(())
    }
    pub(crate) fn attachment_write(
        &mut self,
        _a: &Attachment,
        _x: u32,
        _y: u32,
        _l: u32,
        _s: u32,
        _t: &[u8],
    ) -> Result<(), GpuFault> {
        Ok(())
    }
}
