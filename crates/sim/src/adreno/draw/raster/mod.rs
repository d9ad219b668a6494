//! The rasterizer: from positions of a primitive to the samples that it covers.
//!
//! Never: registers, shaders, memory.
use std::ops::ControlFlow;
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Area {
    pub first: [u32; 2],
    pub last: [u32; 2],
}
impl Area {
    pub fn and(&self, o: &Area) -> Area {
        Area {
            first: [self.first[0].max(o.first[0]), self.first[1].max(o.first[1])],
            last: [self.last[0].min(o.last[0]), self.last[1].min(o.last[1])],
        }
    }
}
#[derive(Clone, Debug, Default)]
pub(crate) struct Viewport {
    pub scale: [f32; 3],
    pub offset: [f32; 3],
    pub z_clamp: [f32; 2],
    pub scissor: Area,
}
#[derive(Clone, Debug, Default)]
pub(crate) struct ClipState {
    pub disabled: bool,
    pub no_transform: bool,
    pub no_division: bool,
    pub near: bool,
    pub far: bool,
    pub zero_to_one: bool,
    pub clamps_depth: bool,
    pub distances: u8,
    pub culls: u8,
}
#[derive(Clone, Debug, Default)]
pub(crate) enum Fill {
    #[default]
    Triangles,
    Lines,
    Points,
}
#[derive(Clone, Debug, Default)]
pub(crate) enum LineMode {
    #[default]
    Bresenham,
    Rectangular,
}
#[derive(Clone, Debug, Default)]
pub(crate) struct LineState {
    pub half_width: f32,
    pub mode: LineMode,
}
#[derive(Clone, Debug, Default)]
pub(crate) struct PointState {
    pub size: f32,
    pub min: f32,
    pub max: f32,
}
#[derive(Clone, Debug)]
pub(crate) enum DepthUnit {
    Bits16,
    Bits24,
    Float,
}
#[derive(Clone, Debug)]
pub(crate) struct DepthBias {
    pub scale: f32,
    pub offset: f32,
    pub clamp: f32,
    pub unit: DepthUnit,
}
#[derive(Clone, Debug, Default)]
pub(crate) struct RasterState {
    pub viewports: Vec<Viewport>,
    pub window: Area,
    pub clip: ClipState,
    pub cull_front: bool,
    pub cull_back: bool,
    pub front_is_clockwise: bool,
    pub fill: Fill,
    pub line: LineState,
    pub points: PointState,
    pub depth_bias: Option<DepthBias>,
    pub samples: u32,
    pub sample_places: [[u8; 2]; 4],
    pub conservative: Option<f32>,
}
#[derive(Clone, Copy, Debug)]
pub(crate) struct RasterVertex {
    pub position: [f32; 4],
    pub distances: [f32; 8],
    pub point_size: Option<f32>,
}
pub(crate) enum Primitive {
    Point([RasterVertex; 1]),
    Line([RasterVertex; 2]),
    Triangle([RasterVertex; 3]),
    Rectangle([RasterVertex; 2]),
}
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quad {
    pub x: u32,
    pub y: u32,
    pub coverage: [u8; 4],
}
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Surface {}
pub(crate) struct Weights {
    pub perspective: [f32; 2],
    pub linear: [f32; 2],
    pub rhw: f32,
    pub z: f32,
    pub point: [f32; 2],
}
impl Surface {
    pub fn front(&self) -> bool {
        true
    }
    pub fn at(&self, _x: f32, _y: f32) -> Weights {
        Weights { perspective: [0.0; 2], linear: [0.0; 2], rhw: 1.0, z: 0.0, point: [0.0; 2] }
    }
}
pub(crate) fn rasterize(
    _s: &RasterState,
    _v: usize,
    _p: &Primitive,
    _emit: &mut dyn FnMut(&Surface, &Quad) -> ControlFlow<()>,
) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
