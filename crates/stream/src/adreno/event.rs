//! What a walk reports.

use crate::adreno::AdrenoState;
use crate::adreno::header::AdrenoPacketHeader;
use crate::{Exec, Flow, RegWrite, StreamPos, Trouble, WorkKind};
use unwedge_base::Dwords;

/// Receives the events of a walk, in stream order.
pub trait AdrenoSink {
    /// `state` is what the packets so far have done; for [`AdrenoEvent::RegWrite`] the write is already in it.
    /// The return value counts for [`AdrenoEvent::Enter`], and for [`AdrenoEvent::Draw`] of [`Pass::All`].
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow;
}

/// Something the walker met.
#[derive(Clone, Debug)]
pub enum AdrenoEvent<'e> {
    /// A packet, before anything it does. Draw-state groups that a draw loads are reported before the draw's packet.
    Packet(Packet<'e>),
    /// The same packet, after everything it does, nested buffers included.
    PacketEnd(Packet<'e>),
    /// A dword written to a register by the current packet, whichever operation does it. When the write is
    /// [`Exec::NotTaken`] it is not in the state, unless the walk is linear.
    RegWrite(RegWrite),
    /// A nested stream is about to be walked.
    Enter(NestedStream<'e>),
    /// The nested stream has been walked.
    Leave(NestedStream<'e>),
    /// A nested stream whose memory the dump does not hold.
    Missing(NestedStream<'e>),
    /// A draw-state group is considered, right before its [`AdrenoEvent::Enter`] if it is loaded.
    Group(DrawStateGroup),
    /// Shader state loaded by a CP_LOAD_STATE packet that is not known to be skipped.
    LoadState(LoadState<'e>),
    /// Work for the GPU starts: a draw, a dispatch, a blit. Register state is complete. Skipped draws
    /// ([`Exec::NotTaken`]) have no such event, but count in the numbers of those that follow.
    Draw(Draw<'e>),
    /// Something is wrong with the stream.
    Trouble(Trouble),
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'e> {
    /// Where its header stands.
    pub place: StreamPos,
    /// The header dword.
    pub raw: u32,
    /// The header, decoded.
    pub header: AdrenoPacketHeader,
    /// Everything after the header; shorter than the header's count when the stream ends early.
    pub payload: Dwords<'e>,
    /// Header and payload.
    pub dwords: Dwords<'e>,
    /// What the operation is, for those the walker acts on or reports specially.
    pub op: AdrenoOp,
    /// Whether it is executed.
    pub exec: Exec,
}

/// Operations that mean something to the walker; everything else is [`AdrenoOp::Other`]. One opcode number can be another
/// operation on another generation, so these come from the packet names of the database.
#[allow(missing_docs, reason = "the names are the packets' names without CP_")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum AdrenoOp {
    /// A register-write or padding packet.
    #[default]
    None,
    /// A packet the walker does not act on.
    Other,
    Nop,
    IndirectBuffer,
    IndirectBufferPfd,
    IndirectBufferChain,
    CondIndirectBufferPfe,
    WaitForIdle,
    WaitForMe,
    WaitRegMem,
    WaitMemGte,
    WaitMemWrites,
    WaitRegEq,
    WaitTimestamp,
    MemToMem,
    Memcpy,
    RegToMemOffsetReg,
    RegToMemOffsetMem,
    MemToScratchMem,
    BvBrCountOps,
    ModifyTimestamp,
    GlobalTimestamp,
    LocalTimestamp,
    SmmuTableUpdate,
    WhereAmI,
    RegRmw,
    RegToMem,
    MemToReg,
    MemWrite,
    EventWrite,
    EventWrite7,
    RunOpencl,
    DrawIndx,
    DrawIndx2,
    DrawIndxOffset,
    DrawIndirect,
    DrawIndxIndirect,
    DrawIndirectMulti,
    DrawAuto,
    SetConstant,
    ImLoadImmediate,
    WideRegWrite,
    LoadState,
    LoadState4,
    LoadState6,
    LoadState6Geom,
    LoadState6Frag,
    SetBin,
    SetDrawState,
    ExecCs,
    ExecCsIndirect,
    SetRenderMode,
    ComputeCheckpoint,
    Blit,
    ContextRegBunch,
    ContextRegBunch2,
    NonContextRegBunch,
    SkipIb2EnableGlobal,
    SkipIb2EnableLocal,
    SetMode,
    SetMarker,
    RegWrite,
    SetAmble,
    StartBin,
    EndBin,
    FixedStrideDrawTable,
    ThreadControl,
    CondRegExec,
    CondExec,
    RegTest,
    DrawPredSet,
    DrawPredEnableGlobal,
    DrawPredEnableLocal,
    CondWrite,
    CondWrite5,
    ScratchToReg,
    RegToScratch,
    ScratchWrite,
    SetProtectedMode,
    SetSubdrawSize,
    ResetContextState,
}

/// Why a nested stream is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdrenoStreamKind {
    /// CP_INDIRECT_BUFFER and its relatives: one IB level deeper; CP_INDIRECT_BUFFER_CHAIN: the same level, entered
    /// after the buffer that ends with it is left.
    Indirect,
    /// A draw-state group (SDS).
    Group {
        /// Which group.
        id: u8,
    },
    /// The preamble, postamble or bin amble of CP_SET_AMBLE.
    Amble,
    /// Iteration of CP_START_BIN.
    Bin {
        /// Which bin.
        index: u32,
    },
    /// Iteration of CP_FIXED_STRIDE_DRAW_TABLE.
    DrawTable {
        /// Which draw.
        index: u32,
    },
    /// CP_SET_RENDER_MODE's or CP_COMPUTE_CHECKPOINT's commands (a5xx).
    Mode,
    /// Packets inside the payload of CP_MEM_WRITE.
    Embedded,
}

/// A nested stream.
#[derive(Clone, Copy, Debug)]
pub struct NestedStream<'e> {
    /// Why.
    pub kind: AdrenoStreamKind,
    /// The IB level inside it.
    pub level: u8,
    /// GPU address; `None` for [`AdrenoStreamKind::Embedded`] in a ring copy.
    pub iova: Option<u64>,
    /// Size that the packet claims, in dwords.
    pub claimed: u64,
    /// What is there: at most `claimed` dwords.
    pub dwords: Dwords<'e>,
    /// Whether it is executed.
    pub exec: Exec,
}

/// A draw-state group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawStateGroup {
    /// Group id.
    pub id: u8,
    /// The group as CP_SET_DRAW_STATE set it.
    pub set: GroupState,
    /// Loaded, or left out because its enable mask excludes the current mode.
    pub loaded: bool,
}

/// One entry of CP_SET_DRAW_STATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GroupState {
    /// Dwords of commands; 0 when the group is disabled.
    pub count: u32,
    /// Where they are.
    pub iova: u64,
    /// DIRTY, DISABLE, DISABLE_ALL_GROUPS, LOAD_IMMED (bits 0 to 3).
    pub flags: u8,
    /// BINNING, GMEM, SYSMEM (bits 0 to 2).
    pub enable_mask: u8,
}

/// A pipeline stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Stage {
    Vertex,
    TessControl,
    TessEval,
    Geometry,
    Fragment,
    Compute,
}

/// What kind of state CP_LOAD_STATE loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum StateType {
    Sampler,
    TexConst,
    Shader,
    Constants,
    Ssbo0,
    Ssbo1,
    Ssbo2,
    Ubo,
    /// Unknown, in units of two dwords.
    Unknown2,
    /// Unknown.
    Unknown,
}

/// Where CP_LOAD_STATE takes it from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum StateSource {
    Direct,
    Indirect,
    Bindless,
    /// From a UBO that another CP_LOAD_STATE6 has loaded (a6xx on).
    Ubo,
}

/// State loaded for a stage.
#[derive(Clone, Copy, Debug)]
pub struct LoadState<'e> {
    /// For which stage; `None` for state shared by the stages of a draw.
    pub stage: Option<Stage>,
    /// What.
    pub ty: StateType,
    /// From where.
    pub source: StateSource,
    /// Units, as the packet counts them.
    pub units: u32,
    /// First unit written.
    pub dst: u32,
    /// Address of indirect or bindless state.
    pub iova: Option<u64>,
    /// The state: the payload's rest (when walking linearly the rest of the stream's buffer, which listing tools read
    /// when `units` promises more) or the memory at `iova` to the end of its buffer; `None` when the dump does not
    /// hold it.
    pub contents: Option<Dwords<'e>>,
}

/// With which draw-state groups a draw is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Pass {
    /// Those of the mode that the stream is in, as the hardware loads them. The others follow this one, when
    /// [`Walker::compare`](crate::adreno::AdrenoWalker::compare) asks for them.
    #[default]
    Current,
    /// Those of any mode.
    All,
    /// Those of binning.
    Binning,
    /// Those of the modes that draw, to tile or to system memory.
    Drawing,
}

/// A draw, dispatch, blit or working event.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'e> {
    /// Counts from 0 over the whole walk, as listings count.
    pub number: u32,
    /// Ends the span of writes since the last draw, and counts. Listings leave out draws without indices and the
    /// working events of a5xx; such a draw has the number of the one that follows.
    pub summary: bool,
    /// What.
    pub kind: WorkKind,
    /// With which groups.
    pub pass: Pass,
    /// The packet.
    pub packet: Packet<'e>,
    /// Primitive type (pc_di_primtype, 6 bits), for draws.
    pub primitive: Option<u32>,
    /// Number of indices or vertices, where the packet says it.
    pub count: Option<u32>,
    /// Number of instances, where the packet says it.
    pub instances: Option<u32>,
    /// Address of indirect parameters; for CP_DRAW_AUTO of the vertex count.
    pub indirect: Option<u64>,
    /// Event number (vgt_event_type), for [`WorkKind::Event`].
    pub event: Option<u32>,
}
