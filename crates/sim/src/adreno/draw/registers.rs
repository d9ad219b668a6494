//! Registers of draws, by name: what the other modules read of the state.
//!
//! Facts: the register descriptions of the Mesa project. Never: what a value does.

use crate::adreno::cp::ThreadId;
use crate::adreno::machine::AdrenoMachine;
use unwedge_hw::Gpu;

macro_rules! registers {
    ($($name:ident $text:literal)*) => {
        /// A register, or the first of an array of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Reg {
            $(#[doc = $text] $name,)*
        }

        const NAMES: &[&str] = &[$($text),*];
    };
}

registers! {
    AttributeCount "VFD_CONTROL_0"
    VertexValues "VFD_CONTROL_1"
    HullValues "VFD_CONTROL_2"
    DomainValues "VFD_CONTROL_3"
    GeometryValues "VFD_CONTROL_5"
    FetchBase "VFD_FETCH[0].BASE"
    FetchSize "VFD_FETCH[0].SIZE"
    FetchStride "VFD_FETCH[0].STRIDE"
    Decode "VFD_DECODE[0].INSTR"
    DecodeStep "VFD_DECODE[0].STEP_RATE"
    DecodeDestination "VFD_DEST_CNTL[0].INSTR"
    IndexOffset "VFD_INDEX_OFFSET"
    InstanceOffset "VFD_INSTANCE_START_OFFSET"
    Multiview "PC_MULTIVIEW_CNTL"
    MultiviewMask "PC_MULTIVIEW_MASK"
    PrimitiveControl "PC_PRIMITIVE_CNTL_0"
    RestartIndex "PC_RESTART_INDEX"
    GeometryControl "PC_PRIMITIVE_CNTL_5"
    RasterControl "PC_RASTER_CNTL"
    PolygonMode "VPC_POLYGON_MODE"
    TessControl "PC_TESS_CNTL"
    TessVertices "PC_TESS_NUM_VERTEX"
    TessFactors "PC_TESSFACTOR_ADDR"
    ClipControl "GRAS_CL_CNTL"
    LastLayer "GRAS_MAX_LAYER_INDEX"
    Viewport "GRAS_CL_VPORT[0].XOFFSET"
    ViewportDepth "GRAS_CL_Z_CLAMP[0].MIN"
    ViewportScissor "GRAS_SC_VIEWPORT_SCISSOR[0].TL"
    ScreenScissor "GRAS_SC_SCREEN_SCISSOR[0].TL"
    WindowScissorFirst "GRAS_SC_WINDOW_SCISSOR_TL"
    WindowScissorLast "GRAS_SC_WINDOW_SCISSOR_BR"
    Setup "GRAS_SU_CNTL"
    PointMinMax "GRAS_SU_POINT_MINMAX"
    PointSize "GRAS_SU_POINT_SIZE"
    ScanControl "GRAS_SC_CNTL"
    Conservative "GRAS_SU_CONSERVATIVE_RAS_CNTL"
    DepthBiasScale "GRAS_SU_POLY_OFFSET_SCALE"
    DepthBiasOffset "GRAS_SU_POLY_OFFSET_OFFSET"
    DepthBiasClamp "GRAS_SU_POLY_OFFSET_OFFSET_CLAMP"
    SetupDepthFormat "GRAS_SU_DEPTH_BUFFER_INFO"
    RasterSamples "GRAS_RAS_MSAA_CNTL"
    TargetSamples "RB_DEST_MSAA_CNTL"
    SampleConfig "GRAS_SAMPLE_CONFIG"
    SampleLocations "GRAS_SAMPLE_LOCATION_0"
    PerSample "RB_SAMPLE_CNTL"
    RenderValues "RB_RENDER_CONTROL1"
    FragmentValues "HLSQ_CONTROL_2_REG"
    FragmentPixelWeights "HLSQ_CONTROL_3_REG"
    FragmentSampleWeights "HLSQ_CONTROL_4_REG"
    Borders "SP_PS_TP_BORDER_COLOR_BASE_ADDR"
    Images "SP_IBO"
    Bindless "SP_BINDLESS_BASE[0].DESCRIPTOR"
    Interpolation "VPC_VARYING_INTERP[0].MODE"
    PointReplacement "VPC_VARYING_PS_REPL[0].MODE"
    Varyings "VPC_CNTL_0"
    PointCoordInvert "VPC_POINT_COORD_INVERT"
    OutputCount "SP_FS_OUTPUT_CNTL1"
    Outputs "SP_FS_OUTPUT[0].REG"
    OutputControl "SP_FS_OUTPUT_CNTL0"
    TargetTypes "SP_FS_MRT[0].REG"
    PrefetchControl "SP_FS_PREFETCH_CNTL"
    Prefetches "SP_FS_PREFETCH[0].CMD"
    BindlessPrefetches "SP_FS_BINDLESS_PREFETCH[0].CMD"
    RenderComponents "RB_RENDER_COMPONENTS"
    TargetInfo "RB_MRT[0].BUF_INFO"
    TargetPitch "RB_MRT[0].PITCH"
    TargetLayerPitch "RB_MRT[0].ARRAY_PITCH"
    TargetBase "RB_MRT[0].BASE"
    TargetGmem "RB_MRT[0].BASE_GMEM"
    TargetFlags "RB_MRT_FLAG_BUFFER[0].ADDR"
    TargetFlagPitch "RB_MRT_FLAG_BUFFER[0].PITCH"
    TargetSrgb "RB_SRGB_CNTL"
    RenderControl "RB_RENDER_CNTL"
    DepthPitch "RB_DEPTH_BUFFER_PITCH"
    DepthLayerPitch "RB_DEPTH_BUFFER_ARRAY_PITCH"
    DepthBase "RB_DEPTH_BUFFER_BASE"
    DepthGmem "RB_DEPTH_BUFFER_BASE_GMEM"
    DepthFlags "RB_DEPTH_FLAG_BUFFER_BASE"
    DepthFlagPitch "RB_DEPTH_FLAG_BUFFER_PITCH"
    StencilInfo "RB_STENCIL_INFO"
    StencilPitch "RB_STENCIL_BUFFER_PITCH"
    StencilLayerPitch "RB_STENCIL_BUFFER_ARRAY_PITCH"
    StencilBase "RB_STENCIL_BUFFER_BASE"
    StencilGmem "RB_STENCIL_BUFFER_BASE_GMEM"
    BinControl "RB_BIN_CONTROL"
    RasterBins "GRAS_BIN_CONTROL"
    LrzControl "GRAS_LRZ_CNTL"
    LrzControl2 "GRAS_LRZ_CNTL2"
    LrzBase "GRAS_LRZ_BUFFER_BASE"
    LrzPitch "GRAS_LRZ_BUFFER_PITCH"
    LrzDepthView "GRAS_LRZ_DEPTH_VIEW"
    LrzClearDepth "GRAS_LRZ_CLEAR_DEPTH_F32"
    RenderLocation "RB_UNKNOWN_8812"
    WindowOffset "RB_WINDOW_OFFSET"
    TextureWindowOffset "SP_TP_WINDOW_OFFSET"
    BlitWindowOffset "RB_WINDOW_OFFSET2"
    BlitScissorFirst "RB_BLIT_SCISSOR_TL"
    BlitScissorLast "RB_BLIT_SCISSOR_BR"
    BlitGmem "RB_BLIT_BASE_GMEM"
    BlitGmemSamples "RB_BLIT_GMEM_MSAA_CNTL"
    BlitInfo "RB_BLIT_INFO"
    BlitTargetInfo "RB_BLIT_DST_INFO"
    BlitTarget "RB_BLIT_DST"
    BlitTargetPitch "RB_BLIT_DST_PITCH"
    BlitFlags "RB_BLIT_FLAG_DST"
    BlitFlagPitch "RB_BLIT_FLAG_DST_PITCH"
    BlitClear "RB_BLIT_CLEAR_COLOR_DW0"
    BlitClearMode "RB_BLIT_CLEAR_MODE"
    TargetControl "RB_MRT[0].CONTROL"
    TargetBlend "RB_MRT[0].BLEND_CONTROL"
    BlendControl "RB_BLEND_CNTL"
    BlendConstants "RB_BLEND_RED_F32"
    DepthPlane "RB_DEPTH_PLANE_CNTL"
    DepthControl "RB_DEPTH_CNTL"
    DepthFormat "RB_DEPTH_BUFFER_INFO"
    DepthBoundsMin "RB_Z_BOUNDS_MIN"
    DepthBoundsMax "RB_Z_BOUNDS_MAX"
    DepthClampMin "RB_Z_CLAMP_MIN"
    DepthClampMax "RB_Z_CLAMP_MAX"
    StencilControl "RB_STENCIL_CONTROL"
    StencilReference "RB_STENCILREF"
    StencilReadMask "RB_STENCILMASK"
    StencilWriteMask "RB_STENCILWRMASK"
    SampleCountControl "RB_SAMPLE_COUNT_CONTROL"
    StreamControl "VPC_SO_STREAM_CNTL"
    StreamDisable "VPC_SO_DISABLE"
    StreamBase "VPC_SO[0].BUFFER_BASE"
    StreamSize "VPC_SO[0].BUFFER_SIZE"
    StreamStride "VPC_SO[0].BUFFER_STRIDE"
    StreamOffset "VPC_SO[0].BUFFER_OFFSET"
    Counters "RBBM_PRIMCTR_0_LO"
}

/// A stage of draws that has a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrawStage {
    Vertex,
    Hull,
    Domain,
    Geometry,
    Fragment,
}

impl DrawStage {
    const ALL: [DrawStage; 5] =
        [DrawStage::Vertex, DrawStage::Hull, DrawStage::Domain, DrawStage::Geometry, DrawStage::Fragment];

    /// As the names of registers have it.
    fn prefix(self) -> &'static str {
        match self {
            DrawStage::Vertex => "VS",
            DrawStage::Hull => "HS",
            DrawStage::Domain => "DS",
            DrawStage::Geometry => "GS",
            DrawStage::Fragment => "FS",
        }
    }

    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DrawStage::Vertex => "vertex",
            DrawStage::Hull => "tessellation control",
            DrawStage::Domain => "tessellation evaluation",
            DrawStage::Geometry => "geometry",
            DrawStage::Fragment => "fragment",
        }
    }
}

macro_rules! stage_registers {
    ($($name:ident $text:literal)*) => {
        /// A register that every stage has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum StageReg {
            $(#[doc = $text] $name,)*
        }

        const STAGE_NAMES: &[&str] = &[$($text),*];
    };
}

stage_registers! {
    Code "SP_{}_OBJ_START"
    FirstInstruction "SP_{}_OBJ_FIRST_EXEC_OFFSET"
    CodeSize "SP_{}_INSTRLEN"
    Control "SP_{}_CTRL_REG0"
    Config "SP_{}_CONFIG"
    PrivateBase "SP_{}_PVT_MEM_ADDR"
    PrivateSize "SP_{}_PVT_MEM_PARAM"
    Textures "SP_{}_TEX_CONST"
    Samplers "SP_{}_TEX_SAMP"
    OutputCount "SP_{}_PRIMITIVE_CNTL"
    Output "SP_{}_OUT[0].REG"
    OutputPlace "SP_{}_VPC_DST[0].REG"
    Pack "VPC_{}_PACK"
    ClipPlaces "VPC_{}_CLIP_CNTL"
    LayerPlaces "VPC_{}_LAYER_CNTL"
    ClipMasks "GRAS_{}_CL_CNTL"
}

/// Where the registers of draws are, on a GPU that has them.
#[derive(Clone, Debug)]
pub(crate) struct DrawPlaces {
    registers: Vec<Option<u32>>,
    stages: Vec<Vec<Option<u32>>>,
}

impl DrawPlaces {
    pub(crate) fn new(gpu: Gpu<'_>) -> DrawPlaces {
        // Registers that hold one number each have no name of their own for each.
        let offset = |name: &str| gpu.reg_offset(name);
        let of_stage = |stage: DrawStage| {
            STAGE_NAMES.iter().map(|name| offset(&name.replace("{}", stage.prefix()))).collect()
        };
        DrawPlaces {
            registers: NAMES.iter().map(|name| offset(name)).collect(),
            stages: DrawStage::ALL.into_iter().map(of_stage).collect(),
        }
    }

    pub(super) fn offset(&self, reg: Reg) -> Option<u32> {
        self.registers.get(reg as usize).copied().flatten()
    }

    fn stage(&self, stage: DrawStage, reg: StageReg) -> Option<u32> {
        self.stages.get(stage as usize)?.get(reg as usize).copied().flatten()
    }
}

/// The registers of a thread, as draws read them. Those that a GPU does not have are zero.
#[derive(Clone, Copy)]
pub(super) struct DrawRegisters<'m, 'd> {
    pub(super) machine: &'m AdrenoMachine<'d>,
    pub(super) thread: ThreadId,
}

impl DrawRegisters<'_, '_> {
    pub(super) fn get(&self, reg: Reg) -> u32 {
        self.at(reg, 0)
    }

    /// So many registers behind it.
    pub(super) fn at(&self, reg: Reg, behind: u32) -> u32 {
        let offset = self.machine.draw_places.offset(reg);
        offset.map_or(0, |offset| self.machine.read_register(self.thread, offset + behind))
    }

    pub(super) fn float(&self, reg: Reg) -> f32 {
        f32::from_bits(self.get(reg))
    }

    /// An address in two registers, so many behind it.
    pub(super) fn address(&self, reg: Reg, behind: u32) -> u64 {
        u64::from(self.at(reg, behind)) | u64::from(self.at(reg, behind + 1)) << 32
    }

    pub(super) fn stage(&self, stage: DrawStage, reg: StageReg) -> u32 {
        self.stage_at(stage, reg, 0)
    }

    pub(super) fn stage_at(&self, stage: DrawStage, reg: StageReg, behind: u32) -> u32 {
        let offset = self.machine.draw_places.stage(stage, reg);
        offset.map_or(0, |offset| self.machine.read_register(self.thread, offset + behind))
    }

    /// Whether a stage has a shader.
    pub(super) fn has_stage(&self, stage: DrawStage) -> bool {
        self.stage(stage, StageReg::Config) >> 8 & 1 != 0
    }

    pub(super) fn stage_address(&self, stage: DrawStage, reg: StageReg) -> u64 {
        u64::from(self.stage_at(stage, reg, 0)) | u64::from(self.stage_at(stage, reg, 1)) << 32
    }
}

/// Whether the number of a register names one.
pub(super) fn named(register: u32) -> Option<u8> {
    Some((register & 0xff) as u8).filter(|register| *register < 252)
}
