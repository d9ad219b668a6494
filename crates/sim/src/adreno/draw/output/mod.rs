//! Tests and blends.
use unwedge_hw::adreno::format::TexelCodec;
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlendEquation {
    pub source: u32,
    pub operation: u32,
    pub destination: u32,
}
#[derive(Clone, Debug)]
pub(crate) struct BlendState {
    pub enabled: bool,
    pub rgb: BlendEquation,
    pub alpha: BlendEquation,
    pub rop: Option<u8>,
    pub write_mask: u8,
    pub constants: [f32; 4],
    pub alpha_to_one: bool,
}
pub(crate) fn alpha_to_coverage(_a: f32, _s: u32) -> u8 {
    0xff
}
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DepthFormat {
    Unorm16,
    Unorm24,
    Float32,
}
#[derive(Clone, Copy, Debug)]
pub(crate) struct StencilFace {
    pub func: u32,
    pub fail: u32,
    pub pass: u32,
    pub z_fail: u32,
    pub reference: u8,
    pub read_mask: u8,
    pub write_mask: u8,
}
#[derive(Clone, Debug)]
pub(crate) struct DepthStencilState {
    pub z_test: bool,
    pub z_write: bool,
    pub z_func: u32,
    pub bounds: Option<[f32; 2]>,
    pub clamp: Option<[f32; 2]>,
    pub stencil: Option<[StencilFace; 2]>,
}
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StoredDepthStencil {
    pub depth: u32,
    pub stencil: u8,
}
pub(crate) struct Tested {
    pub passes: bool,
    pub stored: StoredDepthStencil,
}
pub(crate) fn test(
    _s: &DepthStencilState,
    _f: DepthFormat,
    _front: bool,
    _r: Option<u8>,
    stored: StoredDepthStencil,
    _z: f32,
) -> Tested {
    Tested { passes: true, stored }
}
pub(crate) fn merge(_s: &BlendState, _c: &TexelCodec, _a: [u32; 4], _b: [u32; 4], _t: &mut [u8]) {}
