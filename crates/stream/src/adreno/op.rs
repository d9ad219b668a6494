//! Which operation an opcode number is, on one generation.
//!
//! Built once per walker from the packet names of the database; never: an opcode number of its own.

use crate::adreno::AdrenoOp;
use unwedge_hw::Gpu;

/// The operation a packet's name stands for, without the CP_ prefix.
fn by_name(name: &str) -> AdrenoOp {
    match name {
        "NOP" => AdrenoOp::Nop,
        "INDIRECT_BUFFER" | "INDIRECT_BUFFER_PFE" => AdrenoOp::IndirectBuffer,
        "INDIRECT_BUFFER_PFD" => AdrenoOp::IndirectBufferPfd,
        "INDIRECT_BUFFER_CHAIN" => AdrenoOp::IndirectBufferChain,
        "COND_INDIRECT_BUFFER_PFE" | "COND_INDIRECT_BUFFER_PFD" => AdrenoOp::CondIndirectBufferPfe,
        "WAIT_FOR_IDLE" => AdrenoOp::WaitForIdle,
        "WAIT_FOR_ME" => AdrenoOp::WaitForMe,
        "WAIT_REG_MEM" => AdrenoOp::WaitRegMem,
        "WAIT_MEM_GTE" => AdrenoOp::WaitMemGte,
        "WAIT_MEM_WRITES" => AdrenoOp::WaitMemWrites,
        "WAIT_REG_EQ" => AdrenoOp::WaitRegEq,
        "WAIT_TIMESTAMP" => AdrenoOp::WaitTimestamp,
        "MEM_TO_MEM" => AdrenoOp::MemToMem,
        "MEMCPY" => AdrenoOp::Memcpy,
        "REG_TO_MEM_OFFSET_REG" => AdrenoOp::RegToMemOffsetReg,
        "REG_TO_MEM_OFFSET_MEM" => AdrenoOp::RegToMemOffsetMem,
        "MEM_TO_SCRATCH_MEM" => AdrenoOp::MemToScratchMem,
        "BV_BR_COUNT_OPS" => AdrenoOp::BvBrCountOps,
        "MODIFY_TIMESTAMP" => AdrenoOp::ModifyTimestamp,
        "GLOBAL_TIMESTAMP" => AdrenoOp::GlobalTimestamp,
        "LOCAL_TIMESTAMP" => AdrenoOp::LocalTimestamp,
        "SMMU_TABLE_UPDATE" => AdrenoOp::SmmuTableUpdate,
        "WHERE_AM_I" => AdrenoOp::WhereAmI,
        "REG_RMW" => AdrenoOp::RegRmw,
        "REG_TO_MEM" => AdrenoOp::RegToMem,
        "MEM_TO_REG" => AdrenoOp::MemToReg,
        "MEM_WRITE" => AdrenoOp::MemWrite,
        "EVENT_WRITE" => AdrenoOp::EventWrite,
        "EVENT_WRITE7" => AdrenoOp::EventWrite7,
        "RUN_OPENCL" => AdrenoOp::RunOpencl,
        "DRAW_INDX" => AdrenoOp::DrawIndx,
        "DRAW_INDX_2" => AdrenoOp::DrawIndx2,
        "DRAW_INDX_OFFSET" => AdrenoOp::DrawIndxOffset,
        "DRAW_INDIRECT" => AdrenoOp::DrawIndirect,
        "DRAW_INDX_INDIRECT" => AdrenoOp::DrawIndxIndirect,
        "DRAW_INDIRECT_MULTI" => AdrenoOp::DrawIndirectMulti,
        "DRAW_AUTO" => AdrenoOp::DrawAuto,
        "SET_CONSTANT" => AdrenoOp::SetConstant,
        "IM_LOAD_IMMEDIATE" => AdrenoOp::ImLoadImmediate,
        "WIDE_REG_WRITE" => AdrenoOp::WideRegWrite,
        "LOAD_STATE" => AdrenoOp::LoadState,
        "LOAD_STATE4" => AdrenoOp::LoadState4,
        "LOAD_STATE6" => AdrenoOp::LoadState6,
        "LOAD_STATE6_GEOM" => AdrenoOp::LoadState6Geom,
        "LOAD_STATE6_FRAG" => AdrenoOp::LoadState6Frag,
        "SET_BIN" => AdrenoOp::SetBin,
        "SET_DRAW_STATE" => AdrenoOp::SetDrawState,
        "EXEC_CS" => AdrenoOp::ExecCs,
        "EXEC_CS_INDIRECT" => AdrenoOp::ExecCsIndirect,
        "SET_RENDER_MODE" => AdrenoOp::SetRenderMode,
        "COMPUTE_CHECKPOINT" => AdrenoOp::ComputeCheckpoint,
        "BLIT" => AdrenoOp::Blit,
        "CONTEXT_REG_BUNCH" => AdrenoOp::ContextRegBunch,
        "CONTEXT_REG_BUNCH2" => AdrenoOp::ContextRegBunch2,
        "NON_CONTEXT_REG_BUNCH" => AdrenoOp::NonContextRegBunch,
        "SKIP_IB2_ENABLE_GLOBAL" => AdrenoOp::SkipIb2EnableGlobal,
        "SKIP_IB2_ENABLE_LOCAL" => AdrenoOp::SkipIb2EnableLocal,
        "SET_MODE" => AdrenoOp::SetMode,
        "SET_MARKER" => AdrenoOp::SetMarker,
        "REG_WRITE" => AdrenoOp::RegWrite,
        "SET_AMBLE" => AdrenoOp::SetAmble,
        "START_BIN" => AdrenoOp::StartBin,
        "END_BIN" => AdrenoOp::EndBin,
        "FIXED_STRIDE_DRAW_TABLE" => AdrenoOp::FixedStrideDrawTable,
        "THREAD_CONTROL" => AdrenoOp::ThreadControl,
        "COND_REG_EXEC" => AdrenoOp::CondRegExec,
        "COND_EXEC" => AdrenoOp::CondExec,
        "REG_TEST" => AdrenoOp::RegTest,
        "DRAW_PRED_SET" => AdrenoOp::DrawPredSet,
        "DRAW_PRED_ENABLE_GLOBAL" => AdrenoOp::DrawPredEnableGlobal,
        "DRAW_PRED_ENABLE_LOCAL" => AdrenoOp::DrawPredEnableLocal,
        "COND_WRITE" => AdrenoOp::CondWrite,
        "COND_WRITE5" => AdrenoOp::CondWrite5,
        "SCRATCH_TO_REG" => AdrenoOp::ScratchToReg,
        "REG_TO_SCRATCH" => AdrenoOp::RegToScratch,
        "SCRATCH_WRITE" => AdrenoOp::ScratchWrite,
        "SET_PROTECTED_MODE" => AdrenoOp::SetProtectedMode,
        "SET_SUBDRAW_SIZE" => AdrenoOp::SetSubdrawSize,
        "RESET_CONTEXT_STATE" => AdrenoOp::ResetContextState,
        _ => AdrenoOp::Other,
    }
}

/// The operation of every opcode number.
pub fn table(gpu: Gpu<'_>) -> [AdrenoOp; 256] {
    let mut ops = [AdrenoOp::Other; 256];
    for (opcode, op) in (0..=u8::MAX).zip(&mut ops) {
        if let Some(name) = gpu.packet_name(opcode) {
            *op = by_name(name.strip_prefix("CP_").unwrap_or(name));
        }
    }
    ops
}

impl AdrenoOp {
    /// Draw-state groups are loaded before it.
    pub fn loads_groups(self) -> bool {
        matches!(
            self,
            AdrenoOp::DrawIndx
                | AdrenoOp::DrawIndx2
                | AdrenoOp::DrawIndxOffset
                | AdrenoOp::DrawIndirect
                | AdrenoOp::DrawIndxIndirect
                | AdrenoOp::DrawIndirectMulti
                | AdrenoOp::DrawAuto
                | AdrenoOp::ExecCs
                | AdrenoOp::ExecCsIndirect
        )
    }
}
