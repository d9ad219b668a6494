//! Which operation an opcode number is, on one generation.
//!
//! Built once per walker from the packet names of the database; never: an opcode number of its own.

use crate::adreno::Op;
use unwedge_hw::Gpu;

/// The operation a packet's name stands for, without the CP_ prefix.
fn by_name(name: &str) -> Op {
    match name {
        "NOP" => Op::Nop,
        "INDIRECT_BUFFER" | "INDIRECT_BUFFER_PFE" => Op::IndirectBuffer,
        "INDIRECT_BUFFER_PFD" => Op::IndirectBufferPfd,
        "INDIRECT_BUFFER_CHAIN" => Op::IndirectBufferChain,
        "COND_INDIRECT_BUFFER_PFE" | "COND_INDIRECT_BUFFER_PFD" => Op::CondIndirectBufferPfe,
        "WAIT_FOR_IDLE" => Op::WaitForIdle,
        "WAIT_FOR_ME" => Op::WaitForMe,
        "WAIT_REG_MEM" => Op::WaitRegMem,
        "WAIT_MEM_GTE" => Op::WaitMemGte,
        "REG_RMW" => Op::RegRmw,
        "REG_TO_MEM" => Op::RegToMem,
        "MEM_TO_REG" => Op::MemToReg,
        "MEM_WRITE" => Op::MemWrite,
        "EVENT_WRITE" => Op::EventWrite,
        "EVENT_WRITE7" => Op::EventWrite7,
        "RUN_OPENCL" => Op::RunOpencl,
        "DRAW_INDX" => Op::DrawIndx,
        "DRAW_INDX_2" => Op::DrawIndx2,
        "DRAW_INDX_OFFSET" => Op::DrawIndxOffset,
        "DRAW_INDIRECT" => Op::DrawIndirect,
        "DRAW_INDX_INDIRECT" => Op::DrawIndxIndirect,
        "DRAW_INDIRECT_MULTI" => Op::DrawIndirectMulti,
        "DRAW_AUTO" => Op::DrawAuto,
        "SET_CONSTANT" => Op::SetConstant,
        "IM_LOAD_IMMEDIATE" => Op::ImLoadImmediate,
        "WIDE_REG_WRITE" => Op::WideRegWrite,
        "LOAD_STATE" => Op::LoadState,
        "LOAD_STATE4" => Op::LoadState4,
        "LOAD_STATE6" => Op::LoadState6,
        "LOAD_STATE6_GEOM" => Op::LoadState6Geom,
        "LOAD_STATE6_FRAG" => Op::LoadState6Frag,
        "SET_BIN" => Op::SetBin,
        "SET_DRAW_STATE" => Op::SetDrawState,
        "EXEC_CS" => Op::ExecCs,
        "EXEC_CS_INDIRECT" => Op::ExecCsIndirect,
        "SET_RENDER_MODE" => Op::SetRenderMode,
        "COMPUTE_CHECKPOINT" => Op::ComputeCheckpoint,
        "BLIT" => Op::Blit,
        "CONTEXT_REG_BUNCH" => Op::ContextRegBunch,
        "CONTEXT_REG_BUNCH2" => Op::ContextRegBunch2,
        "NON_CONTEXT_REG_BUNCH" => Op::NonContextRegBunch,
        "SKIP_IB2_ENABLE_GLOBAL" => Op::SkipIb2EnableGlobal,
        "SKIP_IB2_ENABLE_LOCAL" => Op::SkipIb2EnableLocal,
        "SET_MODE" => Op::SetMode,
        "SET_MARKER" => Op::SetMarker,
        "REG_WRITE" => Op::RegWrite,
        "SET_AMBLE" => Op::SetAmble,
        "START_BIN" => Op::StartBin,
        "END_BIN" => Op::EndBin,
        "FIXED_STRIDE_DRAW_TABLE" => Op::FixedStrideDrawTable,
        "THREAD_CONTROL" => Op::ThreadControl,
        "COND_REG_EXEC" => Op::CondRegExec,
        "COND_EXEC" => Op::CondExec,
        "REG_TEST" => Op::RegTest,
        "DRAW_PRED_SET" => Op::DrawPredSet,
        "DRAW_PRED_ENABLE_GLOBAL" => Op::DrawPredEnableGlobal,
        "DRAW_PRED_ENABLE_LOCAL" => Op::DrawPredEnableLocal,
        "COND_WRITE" => Op::CondWrite,
        "COND_WRITE5" => Op::CondWrite5,
        "SCRATCH_TO_REG" => Op::ScratchToReg,
        "REG_TO_SCRATCH" => Op::RegToScratch,
        "SCRATCH_WRITE" => Op::ScratchWrite,
        "SET_PROTECTED_MODE" => Op::SetProtectedMode,
        "SET_SUBDRAW_SIZE" => Op::SetSubdrawSize,
        "RESET_CONTEXT_STATE" => Op::ResetContextState,
        _ => Op::Other,
    }
}

/// The operation of every opcode number.
pub(crate) fn table(gpu: Gpu<'_>) -> [Op; 256] {
    let mut ops = [Op::Other; 256];
    for (opcode, op) in (0..=u8::MAX).zip(&mut ops) {
        if let Some(name) = gpu.packet_name(opcode) {
            *op = by_name(name.strip_prefix("CP_").unwrap_or(name));
        }
    }
    ops
}

impl Op {
    /// Draw-state groups are loaded before it.
    pub(crate) fn loads_groups(self) -> bool {
        matches!(
            self,
            Op::DrawIndx
                | Op::DrawIndx2
                | Op::DrawIndxOffset
                | Op::DrawIndirect
                | Op::DrawIndxIndirect
                | Op::DrawIndirectMulti
                | Op::DrawAuto
                | Op::ExecCs
                | Op::ExecCsIndirect
        )
    }
}
