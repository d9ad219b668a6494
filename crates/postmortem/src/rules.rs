//! The table of rules: every reason for which a finding is reported, with its weight, whether it is a cause, and what it
//! advises.
//!
//! Never: sentences. The words of a rule are made in crate `view`, which matches on [`Rule`] without a default arm, so
//! that a rule without words does not compile.

use crate::report::{Finding, FindingKind, Trust};

/// Drivers whose dumps a rule reads, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vendors(u8);

impl Vendors {
    /// Dumps of msm.
    pub const ADRENO: Vendors = Vendors(1);
    /// Dumps of amdgpu, RADV and umr.
    pub const AMD: Vendors = Vendors(2);
    /// Dumps of i915 and xe.
    pub const INTEL: Vendors = Vendors(4);

    /// Whether all of `other` are among them.
    pub fn contains(self, other: Vendors) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A row of [`RULES`].
#[derive(Clone, Copy, Debug)]
pub struct RuleRow {
    /// The rule.
    pub rule: Rule,
    /// Its identifier, the same in every version: `corrupt-stream`.
    pub id: &'static str,
    /// What its findings are about.
    pub kind: FindingKind,
    /// Whose dumps it reads.
    pub vendors: Vendors,
    /// How telling it is: among findings that are equally likely, the heaviest comes first.
    pub weight: u32,
    /// Whether it says why something hung, and not only what was seen.
    pub cause: bool,
    /// What to try next, the most telling first. Whether it fits this dump is decided where the report is put together.
    pub advice: &'static [AdviceId],
}

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident: $id:literal, $kind:ident, $vendors:ident, $weight:literal, $cause:literal, [$($advice:ident),*];)*) => {
        /// A reason for which a finding is reported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        /// Every rule, in the order of [`Rule`].
        pub const RULES: &[RuleRow] = &[
            $(RuleRow {
                rule: Rule::$rule,
                id: $id,
                kind: FindingKind::$kind,
                vendors: Vendors::$vendors,
                weight: $weight,
                cause: $cause,
                advice: &[$(AdviceId::$advice),*],
            },)*
        ];
    };
}

macro_rules! advice {
    ($($(#[$doc:meta])* $name:ident: $id:literal;)*) => {
        /// Something to try next.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum AdviceId {
            $($(#[$doc])* $name,)*
        }

        impl AdviceId {
            /// Its identifier, the same in every version.
            pub fn id(self) -> &'static str {
                match self {
                    $(AdviceId::$name => $id,)*
                }
            }
        }
    };
}

advice! {
    // Every vendor.
    /// Show the packets around the hang.
    DecodeAroundHang: "decode-around-hang";
    // Adreno.
    // AMD.
    /// Show the packets of the ring and of the buffers in the dump.
    DecodeStreams: "decode-streams";
    /// Run under the Vulkan validation layers.
    VulkanValidation: "vulkan-validation";
    /// Run without compressed attachments.
    RadvNoCompression: "radv-no-compression";
    /// Have RADV write a report.
    RadvHangReport: "radv-hang-report";
    /// Keep the GPU as it hung.
    AmdgpuNoRecovery: "amdgpu-no-recovery";
    /// Read the waves while it hangs.
    UmrWaves: "umr-waves";
    /// Read the ring while it hangs.
    UmrRing: "umr-ring";
    /// Compile shaders without optimizations.
    AcoNoOptimizations: "aco-no-optimizations";
    /// One command at a time.
    RadvSyncShaders: "radv-syncshaders";
    /// Let RADV run umr.
    UmrSetuid: "umr-setuid";
    /// Use a single queue.
    RadvNoAsyncCompute: "radv-no-async-compute";
    // Intel.
}

rules! {
    // ---- Adreno ----
    /// The dump names no GPU that the tables have.
    UnknownGpu: "unknown-gpu", NotCaptured, ADRENO, 0, false, [];

    // ---- AMD ----
    // In the order of weight: what the stream, a fault or a wait shows, before what waves and blocks show.
    /// The kernel reports that a ring timed out.
    JobTimedOut: "job-timed-out", HangPoint, AMD, 100, false, [DecodeStreams];
    /// Trace points alone show how far a queue came.
    QueueHungAfterTracePoint: "queue-hung-after-trace-point", HangPoint, AMD, 100, false, [];
    /// Dwords that are executed are not valid packets.
    DwordsNotPackets: "dwords-not-packets", CorruptStream, AMD, 60, true, [];
    /// A page fault of the GPU's own memory management.
    GpuvmFault: "gpuvm-fault", Fault, AMD, 55, true, [VulkanValidation, RadvNoCompression];
    /// A page fault in a buffer that was destroyed.
    GpuvmUseAfterFree: "gpuvm-use-after-free", Fault, AMD, 55, true, [VulkanValidation, RadvNoCompression];
    /// A page fault in a part of a sparse buffer that was unmapped.
    GpuvmUnmappedRange: "gpuvm-unmapped-range", Fault, AMD, 55, true, [VulkanValidation, RadvNoCompression];
    /// A page fault where no buffer ever was.
    GpuvmNoBuffer: "gpuvm-no-buffer", Fault, AMD, 55, true, [VulkanValidation, RadvNoCompression];
    /// A packet waits for memory that no packet in the dump writes.
    PacketWaitsForOtherQueue: "packet-waits-for-other-queue", CpWait, AMD, 50, true, [RadvNoAsyncCompute];
    /// A packet waits for memory that only a packet after it writes.
    PacketWaitsForLaterWrite: "packet-waits-for-later-write", CpWait, AMD, 50, true, [];
    /// A packet waits for memory that a packet before it writes.
    PacketWaitsForEarlierWrite: "packet-waits-for-earlier-write", CpWait, AMD, 50, true, [];
    /// A packet waits for a register.
    PacketWaitsForRegister: "packet-waits-for-register", CpWait, AMD, 50, true, [];
    /// The ME waits for shaders to end.
    MeWaitsForShaders: "me-waits-for-shaders", CpWait, AMD, 50, true, [];
    /// A fence waits for the pipeline to drain.
    FenceWaitsForPipeline: "fence-waits-for-pipeline", CpWait, AMD, 50, true, [];
    /// The ME waits for compute shaders to end.
    MeWaitsForComputeShaders: "me-waits-for-compute-shaders", CpWait, AMD, 50, true, [];
    /// The ME waits for pixel shaders to end.
    MeWaitsForPixelShaders: "me-waits-for-pixel-shaders", CpWait, AMD, 50, true, [];
    /// A cache flush waits for draws to end.
    CacheFlushWaitsForDraws: "cache-flush-waits-for-draws", CpWait, AMD, 50, true, [];
    /// A cache flush waits for caches to be clean.
    CacheFlushWaitsForCaches: "cache-flush-waits-for-caches", CpWait, AMD, 50, true, [];
    /// All register contexts are in use.
    RegisterContextsInUse: "register-contexts-in-use", CpWait, AMD, 50, true, [];
    /// The ME waits for memory that it reads.
    MeWaitsForMemoryRead: "me-waits-for-memory-read", CpWait, AMD, 50, true, [];
    /// The ME waits for a register that it reads.
    MeWaitsForRegisterRead: "me-waits-for-register-read", CpWait, AMD, 50, true, [];
    /// The ME waits for a write to arrive in memory.
    MeWaitsForMemoryWrite: "me-waits-for-memory-write", CpWait, AMD, 50, true, [];
    /// A packet touched a register that it must not.
    RegisterViolation: "register-violation", CpWait, AMD, 50, true, [];
    /// The ME waits for the constant engine.
    MeWaitsForConstantEngine: "me-waits-for-constant-engine", CpWait, AMD, 50, true, [];
    /// The constant engine waits for the ME.
    ConstantEngineWaitsForMe: "constant-engine-waits-for-me", CpWait, AMD, 50, true, [];
    /// An address translation is open.
    AddressTranslationOpen: "address-translation-open", CpWait, AMD, 50, true, [];
    /// The command processor polls.
    CpPolls: "cp-polls", CpWait, AMD, 50, true, [];
    /// Code uses a register before the wait that it needs.
    CodeMissesWait: "code-misses-wait", CodeFault, AMD, 42, true, [];
    /// Code breaks another rule of the GPU.
    CodeBreaksRule: "code-breaks-rule", CodeFault, AMD, 42, true, [];
    /// Waves have an error in their state.
    WavesWithErrors: "waves-with-errors", Suspect, AMD, 40, true, [AcoNoOptimizations];
    /// Waves are in a loop.
    WavesInLoop: "waves-in-loop", Suspect, AMD, 40, true, [AcoNoOptimizations];
    /// Waves are in code of no shader that a report lists.
    WavesInUnlistedCode: "waves-in-unlisted-code", Suspect, AMD, 40, true, [AcoNoOptimizations];
    /// RADV's trap handler caught an exception of a shader.
    ShaderException: "shader-exception", Suspect, AMD, 40, true, [AcoNoOptimizations];
    /// An address in a command buffer is in no buffer that Mesa knows.
    AddressWithoutBuffer: "address-without-buffer", Suspect, AMD, 40, true, [AcoNoOptimizations];
    /// Draws or dispatches do not end, and the command processor waits for them.
    GrbmWorkDoesNotEnd: "grbm-work-does-not-end", Busy, AMD, 36, true, [];
    /// Draws or dispatches are open while the command processor polls.
    GrbmWorkWhilePolling: "grbm-work-while-polling", Busy, AMD, 36, true, [];
    /// Draws or dispatches are open.
    GrbmWorkOpen: "grbm-work-open", Busy, AMD, 36, true, [];
    /// No block but the command processor is busy.
    GrbmCpAlone: "grbm-cp-alone", Busy, AMD, 36, true, [];
    /// No block is busy.
    GrbmIdle: "grbm-idle", Busy, AMD, 36, true, [];
    /// A DMA engine is not idle.
    SdmaBusy: "sdma-busy", Busy, AMD, 36, true, [];
    /// Waves are at an instruction of a shader that a report lists.
    WavesAtInstruction: "waves-at-instruction", InFlight, AMD, 20, true, [AcoNoOptimizations];
    /// No wave was running.
    NoWaves: "no-waves", InFlight, AMD, 20, true, [];
    /// Shaders of the work that hangs.
    WorkRunsShaders: "work-runs-shaders", InFlight, AMD, 20, true, [];
    /// The command processor passed one trace point and not the next.
    StoppedBetweenTracePoints: "stopped-between-trace-points", Progress, AMD, 10, false, [];
    /// The command processor passed every trace point.
    PassedEveryTracePoint: "passed-every-trace-point", Progress, AMD, 10, false, [];
    /// The packet that an engine read last.
    EngineLastRead: "engine-last-read", Progress, AMD, 10, false, [];
    /// Packets that an engine remembers.
    EngineRemembers: "engine-remembers", Progress, AMD, 10, false, [];
    /// Jobs of the ring are open.
    JobsOpen: "jobs-open", Progress, AMD, 10, false, [];
    /// Every job of the ring has ended.
    JobsEnded: "jobs-ended", Progress, AMD, 10, false, [];
    /// VRAM was lost in the reset.
    VramLost: "vram-lost", Progress, AMD, 10, false, [];
    /// The generation of an AMD GPU.
    AmdGenerationUnknown: "amd-generation-unknown", NotCaptured, AMD, 0, false, [];
    /// The ring that timed out.
    RingNotNamed: "ring-not-named", NotCaptured, AMD, 0, false, [];
    /// Contents of the ring.
    RingContentsMissing: "ring-contents-missing", NotCaptured, AMD, 0, false, [];
    /// Packets of a video ring.
    VideoRingPackets: "video-ring-packets", NotCaptured, AMD, 0, false, [];
    /// Buffers that the ring calls.
    CalledBuffersMissing: "called-buffers-missing", NotCaptured, AMD, 0, false, [];
    /// A page fault: the kernel recorded none.
    NoFaultRecorded: "no-fault-recorded", NotCaptured, AMD, 0, false, [];
    /// Page faults: the source has nothing about them.
    FaultsNotReported: "faults-not-reported", NotCaptured, AMD, 0, false, [];
    /// Registers of an AMD GPU.
    GpuRegistersMissing: "gpu-registers-missing", NotCaptured, AMD, 0, false, [];
    /// Waves.
    WavesMissing: "waves-missing", NotCaptured, AMD, 0, false, [];

    // ---- Intel ----
}

impl Rule {
    /// Its row.
    pub fn row(self) -> &'static RuleRow {
        &RULES[self as usize]
    }
}

/// Findings in the order they are shown: what is likely comes first, then what its rule weighs.
#[allow(dead_code, reason = "until every vendor reports by rules")]
pub(crate) fn rank(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| {
        let likely = finding.trust >= Trust::Likely;
        std::cmp::Reverse((likely, finding.rule.map_or(0, |rule| rule.row().weight)))
    });
}

/// The findings that explain the hang, as positions, the strongest first: causes that are at least likely.
#[allow(dead_code, reason = "until every vendor reports by rules")]
pub(crate) fn causes(findings: &[Finding]) -> Vec<usize> {
    let explains = |f: &Finding| f.trust >= Trust::Likely && f.rule.is_some_and(|rule| rule.row().cause);
    findings.iter().enumerate().filter(|(_, f)| explains(f)).map(|(i, _)| i).collect()
}
