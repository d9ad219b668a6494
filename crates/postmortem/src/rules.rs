//! The table of rules: every reason for which a finding is reported, with its weight, the part it can play, and what it
//! advises.
//!
//! Never: sentences of a report. The words of a finding are made in crate `view`, which matches on [`Rule`] without a default
//! arm, so that a rule without words does not compile. The comment of a rule is what `docs/explain.md` says it means.

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

/// What a finding is about, coarsely. New kinds may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// Where the command processor stopped.
    HangPoint,
    /// The command stream itself is broken.
    CorruptStream,
    /// A fault of the IOMMU or the GPU's own memory management.
    Fault,
    /// The CP waits for memory or a register.
    CpWait,
    /// Which blocks are busy and what that means.
    Busy,
    /// Code of a shader breaks a rule of the GPU.
    CodeFault,
    /// Earlier work that is not known to be done, and may be the culprit.
    Suspect,
    /// What the shaders or the draw in flight do.
    InFlight,
    /// Rings and fences.
    Progress,
    /// Register writes still queued for a cluster.
    QueuedWrites,
    /// The GMU.
    Gmu,
    /// An error interrupt the CP or the GPU raised.
    ErrorInterrupt,
    /// The device as a whole does not answer.
    Device,
    /// Something the dump does not hold.
    NotCaptured,
}

impl FindingKind {
    /// A stable identifier: `hang-point`, `corrupt-stream` …
    pub fn id(self) -> &'static str {
        match self {
            FindingKind::HangPoint => "hang-point",
            FindingKind::CorruptStream => "corrupt-stream",
            FindingKind::Fault => "fault",
            FindingKind::CpWait => "cp-wait",
            FindingKind::Busy => "busy",
            FindingKind::CodeFault => "code-fault",
            FindingKind::Suspect => "suspect",
            FindingKind::InFlight => "in-flight",
            FindingKind::Progress => "progress",
            FindingKind::QueuedWrites => "queued-writes",
            FindingKind::Gmu => "gmu",
            FindingKind::ErrorInterrupt => "error-interrupt",
            FindingKind::Device => "device",
            FindingKind::NotCaptured => "not-captured",
        }
    }
}

/// What part the findings of a rule can play in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleRole {
    /// It says where the command processor stopped.
    Position,
    /// It explains a hang by itself: the heaviest is the cause, and every other stands on its own.
    Cause,
    /// It explains a hang if nothing better does, and else supports what does.
    Clue,
    /// It was seen, and explains nothing: where nothing else fired, the cause is not known.
    Observation,
    /// It says what was in flight or pending, and supports whatever the cause is.
    Context,
    /// It is worth knowing, and has nothing to do with the cause.
    Record,
    /// It names what the dump does not hold.
    Absence,
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
    /// How much it explains: the heaviest finding comes first, less a discount for what is only possible or a guess.
    pub weight: u32,
    /// What part its findings can play in a report.
    pub role: RuleRole,
    /// What to try next, the most telling first. Whether it fits this dump is decided where the report is put together.
    pub advice: &'static [AdviceId],
    /// What the rule means, for the reference of rules. No report has it.
    pub summary: &'static str,
}

macro_rules! rules {
    ($($vendor:ident $vendor_rule:ident $vendors:ident {
        $($(#[doc = $doc:literal])* $rule:ident: $id:literal, $kind:ident, $weight:literal, $role:ident, [$($advice:ident),*];)*
    })*) => {
        /// A reason for which a finding is reported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule {
            $($($(#[doc = $doc])* $rule,)*)*
        }

        $(
            /// The rules of one vendor, for matches that leave none out.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum $vendor_rule {
                $($(#[doc = $doc])* $rule,)*
            }
        )*

        /// A rule as one of its vendor's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum VendorRule {
            $(
                #[doc = concat!("Of ", stringify!($vendor), ".")]
                $vendor($vendor_rule),
            )*
        }

        impl Rule {
            /// The same rule, by vendor.
            pub fn by_vendor(self) -> VendorRule {
                match self {
                    $($(Rule::$rule => VendorRule::$vendor($vendor_rule::$rule),)*)*
                }
            }
        }

        /// Every rule, in the order of [`Rule`].
        pub const RULES: &[RuleRow] = &[
            $($(RuleRow {
                rule: Rule::$rule,
                id: $id,
                kind: FindingKind::$kind,
                vendors: Vendors::$vendors,
                weight: $weight,
                role: RuleRole::$role,
                advice: &[$(AdviceId::$advice),*],
                summary: concat!($($doc),*).trim_ascii(),
            },)*)*
        ];
    };
}

macro_rules! advice {
    ($($(#[doc = $doc:literal])* $name:ident: $id:literal;)*) => {
        /// Something to try next.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum AdviceId {
            $($(#[doc = $doc])* $name,)*
        }

        impl AdviceId {
            /// Its identifier, the same in every version.
            pub fn id(self) -> &'static str {
                match self {
                    $(AdviceId::$name => $id,)*
                }
            }

            /// All advice there is.
            pub const ALL: &[AdviceId] = &[$(AdviceId::$name),*];

            /// What to do, for the reference of rules. Reports have words of their own.
            pub fn summary(self) -> &'static str {
                match self {
                    $(AdviceId::$name => concat!($($doc),*).trim_ascii(),)*
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
    /// Show the state of the work that is suspected.
    QueryWork: "query-work";
    /// Capture the submit as the kernel got it.
    CaptureHungSubmit: "capture-hung-submit";
    /// Capture the submit with all its buffers.
    CaptureAllBuffers: "capture-all-buffers";
    /// Capture the submits before it.
    CaptureEarlierSubmits: "capture-earlier-submits";
    /// One piece of work at a time.
    SerializeWork: "serialize-work";
    /// Render without tiling.
    RenderToSysmem: "render-to-sysmem";
    /// Render with tiling.
    RenderToGmem: "render-to-gmem";
    /// Leave the binning pass out.
    NoBinning: "no-binning";
    /// Leave LRZ out.
    NoLrz: "no-lrz";
    /// Leave compressed render targets out.
    NoUbwc: "no-ubwc";
    /// Leave the 2D engine out.
    NoBlitEngine: "no-blit-engine";
    /// Leave shader optimizations out.
    ShaderOptimizationsOff: "shader-optimizations-off";
    /// Wait longer before a hang is reported.
    LongerHangcheck: "longer-hangcheck";
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
    /// Show the ring and the batch around the stop.
    DecodeEngineStreams: "decode-engine-streams";
    /// Have Mesa's buffers captured with the next error state.
    IntelDebugCaptureAll: "intel-debug-capture-all";
    /// Wait after every submission.
    IntelDebugSync: "intel-debug-sync";
    /// Print batches and the reasons of flushes.
    IntelDebugBatches: "intel-debug-batches";
    /// Print shaders.
    IntelDebugShaders: "intel-debug-shaders";
    /// Write down what libva is asked to decode.
    LibvaTrace: "libva-trace";
    /// Make i915 capture the next hang.
    I915NextErrorState: "i915-next-error-state";
    /// Keep the device as it hung.
    XeWedgedMode: "xe-wedged-mode";
}

rules! {
    Adreno AdrenoRule ADRENO {
        // In the order of weight: a broken stream, a fault or a wait says more than the blocks that are busy because of it.
        /// Where the command processor stopped.
        CpStopped: "cp-stopped", HangPoint, 100, Position, [DecodeAroundHang];
        /// A value that somebody writes on purpose is where a packet should start.
        PoisonInStream: "poison-in-stream", CorruptStream, 60, Cause, [CaptureHungSubmit];
        /// A dword that no packet starts with is where a packet should start.
        NotAPacket: "not-a-packet", CorruptStream, 60, Cause, [CaptureHungSubmit];
        /// The CP is at a packet with an opcode that the GPU does not have.
        UnknownOpcode: "unknown-opcode", CorruptStream, 60, Cause, [CaptureHungSubmit];
        /// The CP is at a packet that is longer than what its stream has left.
        PacketPastEnd: "packet-past-end", CorruptStream, 60, Cause, [CaptureHungSubmit];
        /// A stream that leads back to itself, with the CP in it.
        StreamLoops: "stream-loops", CorruptStream, 61, Cause, [CaptureHungSubmit];
        /// Registers of the GPU read as all ones.
        RegistersAllOnes: "registers-all-ones", Device, 90, Cause, [];
        /// Bad packet headers before the stop.
        EarlierBadHeaders: "earlier-bad-headers", CorruptStream, 45, Clue, [CaptureHungSubmit];
        /// An IOMMU fault in the first pages.
        IommuFaultNullPage: "iommu-fault-null-page", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault at what has more bits than an address.
        IommuFaultNotAnAddress: "iommu-fault-not-an-address", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault where UCHE sends accesses out of bounds.
        IommuFaultTrapRange: "iommu-fault-trap-range", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault in a buffer that is mapped for other accesses.
        IommuFaultPermission: "iommu-fault-permission", Fault, 55, Cause, [CaptureAllBuffers];
        /// Memory refused an access after its address was translated.
        IommuFaultExternal: "iommu-fault-external", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault in a listed buffer that was unmapped.
        IommuFaultUnmappedBuffer: "iommu-fault-unmapped-buffer", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault in a buffer that the submit lists.
        IommuFaultListedBuffer: "iommu-fault-listed-buffer", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault in memory that was unmapped.
        IommuFaultUseAfterFree: "iommu-fault-use-after-free", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault shortly after the end of a buffer.
        IommuFaultOverrun: "iommu-fault-overrun", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault shortly before the start of a buffer.
        IommuFaultUnderrun: "iommu-fault-underrun", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault between the buffers of the submit.
        IommuFaultBetweenBuffers: "iommu-fault-between-buffers", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault far from every buffer.
        IommuFaultOutside: "iommu-fault-outside", Fault, 55, Cause, [CaptureAllBuffers];
        /// An IOMMU fault in a dump that lists no buffers.
        IommuFaultNoBuffers: "iommu-fault-no-buffers", Fault, 55, Cause, [CaptureAllBuffers];
        /// The CP waits for a value, and the dump has another.
        CpWaitsForValue: "cp-waits-for-value", CpWait, 50, Cause, [CaptureEarlierSubmits];
        /// The CP waits for a value that only a packet after the wait writes.
        CpWaitsForItself: "cp-waits-for-itself", CpWait, 52, Cause, [CaptureHungSubmit];
        /// The CP waits for a value, and the packets that write there write another one.
        CpWaitsForWrongWrite: "cp-waits-for-wrong-write", CpWait, 52, Cause, [CaptureHungSubmit];
        /// The CP is at a wait for a value that the dump has.
        CpAwaitedValueIsThere: "cp-awaited-value-is-there", CpWait, 30, Observation, [];
        /// The CP waits for a value that the dump does not have.
        CpWaitsForUnknownValue: "cp-waits-for-unknown-value", CpWait, 50, Cause, [CaptureEarlierSubmits];
        // Less than a wait of BR, which may be what BV waits for.
        /// The BV thread waits for a value that the dump does not have.
        BvWaitsForValue: "bv-waits-for-value", CpWait, 49, Cause, [CaptureEarlierSubmits];
        /// The CP waits for a value that an event before it writes, once the work before that is over.
        CpWaitsForQueuedEvent: "cp-waits-for-queued-event", CpWait, 34, Observation, [];
        /// The CP waits for earlier work.
        CpWaitsForWork: "cp-waits-for-work", CpWait, 34, Observation, [];
        /// The CP waits for earlier register writes.
        CpWaitsForRegisterWrites: "cp-waits-for-register-writes", CpWait, 34, Observation, [];
        /// The CP waits for earlier waits.
        CpWaitsForWaits: "cp-waits-for-waits", CpWait, 34, Observation, [];
        /// The GPU was not initialized when the dump was taken.
        GpuNotInitialized: "gpu-not-initialized", Gmu, 46, Cause, [];
        /// The watchdog of the GMU fired.
        GmuWatchdog: "gmu-watchdog", Gmu, 47, Cause, [];
        /// A register access was stopped at the GMU's fence.
        GmuFenceStoppedAccess: "gmu-fence-stopped-access", Gmu, 46, Cause, [];
        /// An AHB bus error on the side of the GMU.
        GmuBusError: "gmu-bus-error", Gmu, 47, Cause, [];
        /// The processor of the GMU reports a fault.
        GmuProcessorFault: "gmu-processor-fault", Gmu, 47, Cause, [];
        /// A register write was dropped at the GMU's fence.
        GmuFenceDroppedWrite: "gmu-fence-dropped-write", Gmu, 46, Cause, [];
        /// The firmware of the GMU did not start as usual.
        GmuStartResult: "gmu-start-result", Gmu, 46, Cause, [];
        /// The GMU sent an error message.
        GmuErrorMessage: "gmu-error-message", Gmu, 46, Cause, [];
        /// The GMU refused a message of the kernel.
        GmuRefusedMessage: "gmu-refused-message", Gmu, 46, Cause, [];
        /// The GMU has not read the last message of the kernel.
        GmuMessageUnread: "gmu-message-unread", Gmu, 35, Clue, [];
        /// A HFI queue dropped messages.
        HfiDroppedMessages: "hfi-dropped-messages", Gmu, 35, Clue, [];
        /// An error interrupt that the CP or the GPU raised.
        ErrorInterrupt: "error-interrupt", ErrorInterrupt, 44, Clue, [];
        /// The CP hardware reports a fault.
        CpHwFault: "cp-hw-fault", ErrorInterrupt, 44, Clue, [];
        /// The stream accessed a protected register.
        ProtectedRegister: "protected-register", ErrorInterrupt, 44, Clue, [];
        // Only possible as it is, it still says more than that the shader processors are busy.
        /// Code of a shader uses a register before the wait that it needs.
        Ir3CodeMissesWait: "ir3-code-misses-wait", CodeFault, 49, Cause, [];
        /// Code of a shader breaks another rule of the GPU.
        Ir3CodeBreaksRule: "ir3-code-breaks-rule", CodeFault, 49, Cause, [];
        /// A blit whose end the clusters have not taken.
        BlitNotFinished: "blit-not-finished", Suspect, 40, Clue, [];
        // Less than the blocks that are busy with it: they say in which way it does not end.
        /// Work whose register context the clusters wait for.
        WorkNotFinished: "work-not-finished", Suspect, 35, Clue, [];
        /// Earlier work that no wait is known to have ended.
        WorkMayBeRunning: "work-may-be-running", Suspect, 40, Clue, [];
        /// The IOMMU stalls the GPU at a fault.
        SmmuStalled: "smmu-stalled", Busy, 36, Clue, [];
        /// Shader processors, texture units and the L2 cache have work open.
        ShadersWaitForTextures: "shaders-wait-for-textures", Busy, 36, Clue, [];
        /// Shader processors wait for the bus.
        ShadersWaitForMemory: "shaders-wait-for-memory", Busy, 36, Clue, [];
        /// Shader processors are busy without a memory access.
        ShaderProcessorsStuck: "shader-processors-stuck", Busy, 36, Clue, [ShaderOptimizationsOff];
        /// Shader processors are busy.
        ShaderProcessorsBusy: "shader-processors-busy", Busy, 36, Clue, [ShaderOptimizationsOff];
        /// The render backend holds earlier work while the front end waits.
        BackEndNotDraining: "back-end-not-draining", Busy, 36, Clue, [];
        /// The front end waits for memory.
        FrontEndWaitsForMemory: "front-end-waits-for-memory", Busy, 36, Clue, [];
        /// Primitive or vertex fetch is busy alone.
        FrontEndStuck: "front-end-stuck", Busy, 36, Clue, [];
        /// The rasterizer is busy alone.
        RasterizerStuck: "rasterizer-stuck", Busy, 36, Clue, [];
        /// The 2D engine is busy.
        BlitEngineBusy: "blit-engine-busy", Busy, 36, Clue, [];
        /// The render backends are busy alone.
        RenderBackendsStuck: "render-backends-stuck", Busy, 36, Clue, [];
        /// The L2 cache is busy alone.
        CacheWaitsForMemory: "cache-waits-for-memory", Busy, 36, Clue, [];
        /// HLSQ is busy without a running shader.
        SequencerWaits: "sequencer-waits", Busy, 36, Clue, [];
        /// The CP is master on the AHB bus and all else is idle.
        CpWaitsOnAhb: "cp-waits-on-ahb", Busy, 36, Clue, [];
        /// The CP and the bus are busy and all else is idle.
        CpWaitsForMemory: "cp-waits-for-memory", Busy, 36, Clue, [];
        /// Only the CP is busy.
        OnlyCpBusy: "only-cp-busy", Busy, 36, Observation, [];
        /// No block is busy.
        NoBlockBusy: "no-block-busy", Busy, 36, Observation, [];
        /// Register writes that the clusters have not taken.
        QueuedWrites: "queued-writes", QueuedWrites, 30, Context, [];
        /// The work that the CP was starting.
        WorkStarting: "work-starting", InFlight, 20, Context, [];
        /// The last work that the CP sent.
        WorkLastSent: "work-last-sent", InFlight, 20, Context, [];
        /// The packet that the BV thread has in work.
        BvThreadAt: "bv-thread-at", InFlight, 20, Context, [];
        /// The ring is read to its end, no block is busy, and a fence is not retired.
        FenceNotRetired: "fence-not-retired", Progress, 38, Clue, [];
        /// Submits of the hung ring are open.
        SubmitsOpen: "submits-open", Progress, 10, Context, [];
        /// All submits of the hung ring are complete.
        SubmitsComplete: "submits-complete", Progress, 11, Clue, [];
        /// The fences of the hung ring are not in the dump.
        FencesNotCaptured: "fences-not-captured", Progress, 10, Context, [];
        /// Submits of another ring are open.
        OtherRingWaits: "other-ring-waits", Progress, 10, Record, [];
        /// Another ring has commands that the CP has not read.
        OtherRingUnread: "other-ring-unread", Progress, 10, Record, [];
        /// The CP has not been given all that the kernel wrote to the ring.
        WritePointerNotSeen: "write-pointer-not-seen", Progress, 39, Cause, [];
        /// fault-info names no fault.
        FaultInfoEmpty: "fault-info-empty", NotCaptured, 0, Absence, [];
        /// No registers were captured.
        RegistersNotCaptured: "registers-not-captured", NotCaptured, 0, Absence, [];
        /// Every register reads zero, so none was read.
        RegistersAllZero: "registers-all-zero", NotCaptured, 0, Absence, [];
        /// The dump ends inside a ring, or its contents are damaged from a dword on.
        RingContentsCut: "ring-contents-cut", NotCaptured, 0, Absence, [];
        /// The dump ends inside a buffer, or its contents are damaged from a dword on.
        BufferContentsCut: "buffer-contents-cut", NotCaptured, 0, Absence, [];
        /// How far the CP has read the ring.
        RingPositionNotCaptured: "ring-position-not-captured", NotCaptured, 0, Absence, [];
        /// No ring was captured.
        RingNotCaptured: "ring-not-captured", NotCaptured, 0, Absence, [];
        /// The contents of the ring were not captured.
        RingDwordsNotCaptured: "ring-dwords-not-captured", NotCaptured, 0, Absence, [];
        /// The contents of an IB were not captured.
        IbNotCaptured: "ib-not-captured", NotCaptured, 0, Absence, [];
        /// Sections that would help are not there.
        SectionsNotCaptured: "sections-not-captured", NotCaptured, 0, Absence, [];
        /// The dump names no GPU that the tables have.
        UnknownGpu: "unknown-gpu", NotCaptured, 0, Absence, [];
    }
    Amd AmdRule AMD {
        // In the order of weight: what the stream, a fault or a wait shows, before what waves and blocks show.
        /// The kernel reports that a ring timed out.
        JobTimedOut: "job-timed-out", HangPoint, 100, Position, [DecodeStreams];
        /// Trace points alone show how far a queue came.
        QueueHungAfterTracePoint: "queue-hung-after-trace-point", HangPoint, 100, Position, [];
        /// Dwords that are executed are not valid packets.
        DwordsNotPackets: "dwords-not-packets", CorruptStream, 60, Cause, [];
        /// A chain of indirect buffers that leads back to itself.
        IbLoops: "ib-loops", CorruptStream, 61, Cause, [];
        /// A page fault of the GPU's own memory management.
        GpuvmFault: "gpuvm-fault", Fault, 55, Cause, [VulkanValidation, RadvNoCompression];
        /// A page fault at an address where nothing is mapped.
        GpuvmPageNotMapped: "gpuvm-page-not-mapped", Fault, 55, Cause, [VulkanValidation, RadvNoCompression];
        /// A page fault at a page that is mapped and does not permit the access.
        GpuvmAccessNotPermitted: "gpuvm-access-not-permitted", Fault, 55, Cause, [VulkanValidation, RadvNoCompression];
        /// A page fault in the address space of the kernel, which the driver and firmware use.
        GpuvmKernelFault: "gpuvm-kernel-fault", Fault, 55, Cause, [];
        /// A page fault in a buffer that was destroyed.
        GpuvmUseAfterFree: "gpuvm-use-after-free", Fault, 55, Cause, [VulkanValidation, RadvNoCompression];
        /// A page fault in a part of a sparse buffer that was unmapped.
        GpuvmUnmappedRange: "gpuvm-unmapped-range", Fault, 55, Cause, [VulkanValidation, RadvNoCompression];
        /// A page fault where no buffer ever was.
        GpuvmNoBuffer: "gpuvm-no-buffer", Fault, 55, Cause, [VulkanValidation, RadvNoCompression];
        /// A packet waits for memory that no packet in the dump writes.
        PacketWaitsForOtherQueue: "packet-waits-for-other-queue", CpWait, 50, Cause, [RadvNoAsyncCompute];
        /// A packet waits for memory that only a packet after it writes.
        PacketWaitsForLaterWrite: "packet-waits-for-later-write", CpWait, 50, Cause, [];
        /// A packet waits for memory that a packet before it writes.
        PacketWaitsForEarlierWrite: "packet-waits-for-earlier-write", CpWait, 45, Clue, [];
        /// A packet waits for a value, and the packets that write there write another one.
        PacketWaitsForWrongWrite: "packet-waits-for-wrong-write", CpWait, 52, Cause, [];
        /// A packet waits for a value that the dump has.
        PacketAwaitedValueIsThere: "packet-awaited-value-is-there", CpWait, 30, Observation, [];
        /// A packet waits for a register.
        PacketWaitsForRegister: "packet-waits-for-register", CpWait, 50, Cause, [];
        /// The ME waits for shaders to end.
        MeWaitsForShaders: "me-waits-for-shaders", CpWait, 37, Clue, [];
        /// A fence waits for the pipeline to drain.
        FenceWaitsForPipeline: "fence-waits-for-pipeline", CpWait, 37, Clue, [];
        /// The ME waits for compute shaders to end.
        MeWaitsForComputeShaders: "me-waits-for-compute-shaders", CpWait, 37, Clue, [];
        /// The ME waits for pixel shaders to end.
        MeWaitsForPixelShaders: "me-waits-for-pixel-shaders", CpWait, 37, Clue, [];
        /// A cache flush waits for draws to end.
        CacheFlushWaitsForDraws: "cache-flush-waits-for-draws", CpWait, 37, Clue, [];
        /// A cache flush waits for caches to be clean.
        CacheFlushWaitsForCaches: "cache-flush-waits-for-caches", CpWait, 37, Clue, [];
        /// All register contexts are in use.
        RegisterContextsInUse: "register-contexts-in-use", CpWait, 37, Clue, [];
        /// The ME waits for memory that it reads.
        MeWaitsForMemoryRead: "me-waits-for-memory-read", CpWait, 37, Clue, [];
        /// The ME waits for a register that it reads.
        MeWaitsForRegisterRead: "me-waits-for-register-read", CpWait, 37, Clue, [];
        /// The ME waits for a write to arrive in memory.
        MeWaitsForMemoryWrite: "me-waits-for-memory-write", CpWait, 37, Clue, [];
        /// A packet touched a register that it must not.
        RegisterViolation: "register-violation", CpWait, 50, Cause, [];
        /// The ME waits for the constant engine.
        MeWaitsForConstantEngine: "me-waits-for-constant-engine", CpWait, 37, Clue, [];
        /// The constant engine waits for the ME.
        ConstantEngineWaitsForMe: "constant-engine-waits-for-me", CpWait, 37, Clue, [];
        /// An address translation is open.
        AddressTranslationOpen: "address-translation-open", CpWait, 39, Clue, [];
        /// The ME or PFP waits for the result of an atomic operation.
        MeWaitsForAtomic: "me-waits-for-atomic", CpWait, 37, Clue, [];
        /// Memory has not confirmed the write of a fence.
        FenceWriteNotConfirmed: "fence-write-not-confirmed", CpWait, 37, Clue, [];
        /// Register writes wait for the block that takes them.
        RegisterWritesBlocked: "register-writes-blocked", CpWait, 37, Clue, [];
        /// A compute micro engine waits for a register that it reads.
        MecWaitsForRegister: "mec-waits-for-register", CpWait, 37, Clue, [];
        /// The command processor polls.
        CpPolls: "cp-polls", CpWait, 34, Observation, [];
        /// Code uses a register before the wait that it needs.
        CodeMissesWait: "code-misses-wait", CodeFault, 42, Cause, [];
        /// Code breaks another rule of the GPU.
        CodeBreaksRule: "code-breaks-rule", CodeFault, 42, Cause, [];
        /// Waves have an error in their state.
        WavesWithErrors: "waves-with-errors", Suspect, 52, Clue, [AcoNoOptimizations];
        /// Waves are in a loop.
        WavesInLoop: "waves-in-loop", Suspect, 41, Clue, [AcoNoOptimizations];
        /// Waves are in code of no shader that a report lists.
        WavesInUnlistedCode: "waves-in-unlisted-code", Suspect, 38, Observation, [AcoNoOptimizations];
        /// RADV's trap handler caught an exception of a shader.
        ShaderException: "shader-exception", Suspect, 54, Clue, [AcoNoOptimizations];
        /// An address in a command buffer is in no buffer that Mesa knows.
        AddressWithoutBuffer: "address-without-buffer", Suspect, 40, Cause, [AcoNoOptimizations];
        /// Status registers of the GPU read as all ones.
        GpuNotResponding: "gpu-not-responding", Device, 90, Cause, [];
        /// Draws or dispatches do not end, and the command processor waits for them.
        GrbmWorkDoesNotEnd: "grbm-work-does-not-end", Busy, 36, Clue, [];
        /// Draws or dispatches are open while the command processor polls.
        GrbmWorkWhilePolling: "grbm-work-while-polling", Busy, 36, Clue, [];
        /// Draws or dispatches are open.
        GrbmWorkOpen: "grbm-work-open", Busy, 36, Observation, [];
        /// No block but the command processor is busy.
        GrbmCpAlone: "grbm-cp-alone", Busy, 36, Observation, [];
        /// No block is busy.
        GrbmIdle: "grbm-idle", Busy, 36, Observation, [];
        /// Flags of stall registers that no other rule reads.
        CpStallFlags: "cp-stall-flags", Busy, 30, Observation, [];
        /// A DMA engine is not idle.
        SdmaBusy: "sdma-busy", Busy, 36, Observation, [];
        /// Waves are at an instruction of a shader that a report lists.
        WavesAtInstruction: "waves-at-instruction", InFlight, 38, Observation, [AcoNoOptimizations];
        /// No wave was running.
        NoWaves: "no-waves", InFlight, 20, Context, [];
        /// Shaders of the work that hangs.
        WorkRunsShaders: "work-runs-shaders", InFlight, 20, Context, [];
        /// The command processor passed one trace point and not the next.
        StoppedBetweenTracePoints: "stopped-between-trace-points", Progress, 15, Observation, [];
        /// The command processor passed every trace point.
        PassedEveryTracePoint: "passed-every-trace-point", Progress, 12, Observation, [];
        /// The packet that an engine read last.
        EngineLastRead: "engine-last-read", Progress, 10, Context, [];
        /// Packets that an engine remembers.
        EngineRemembers: "engine-remembers", Progress, 10, Context, [];
        /// Jobs of the ring are open.
        JobsOpen: "jobs-open", Progress, 10, Context, [];
        /// Every job of the ring has ended.
        JobsEnded: "jobs-ended", Progress, 11, Clue, [];
        /// VRAM was lost in the reset.
        VramLost: "vram-lost", Progress, 10, Record, [];
        /// The generation of an AMD GPU.
        AmdGenerationUnknown: "amd-generation-unknown", NotCaptured, 0, Absence, [];
        /// The ring that timed out.
        RingNotNamed: "ring-not-named", NotCaptured, 0, Absence, [];
        /// Contents of the ring.
        RingContentsMissing: "ring-contents-missing", NotCaptured, 0, Absence, [];
        /// A part of the ring that hangs.
        AmdRingContentsCut: "amd-ring-contents-cut", NotCaptured, 0, Absence, [];
        /// A part of an indirect buffer.
        IbContentsCut: "ib-contents-cut", NotCaptured, 0, Absence, [];
        /// Packets of a video ring.
        VideoRingPackets: "video-ring-packets", NotCaptured, 0, Absence, [];
        /// Buffers that the ring calls.
        CalledBuffersMissing: "called-buffers-missing", NotCaptured, 0, Absence, [];
        /// A page fault: the kernel recorded none.
        NoFaultRecorded: "no-fault-recorded", NotCaptured, 0, Absence, [];
        /// Page faults: the source has nothing about them.
        FaultsNotReported: "faults-not-reported", NotCaptured, 0, Absence, [];
        /// Registers of an AMD GPU.
        GpuRegistersMissing: "gpu-registers-missing", NotCaptured, 0, Absence, [];
        /// Every register reads zero, so none was read.
        GpuRegistersAllZero: "gpu-registers-all-zero", NotCaptured, 0, Absence, [];
        /// Waves.
        WavesMissing: "waves-missing", NotCaptured, 0, Absence, [];
    }
    Intel IntelRule INTEL {
        // In the order of weight. A wait comes before a broken stream, unlike on Adreno: IPEHR holds the very command that waits, and
        // an engine that executes it has read what comes before it, while dwords that are not valid commands may be anywhere in
        // the walk, also where the engine never comes. Units that are not done are not causes: every hang has some. Which they
        // are is a value of the wait or the stop.
        /// The command that an engine was executing.
        EngineAtCommand: "engine-at-command", HangPoint, 100, Position, [DecodeEngineStreams, IntelDebugCaptureAll];
        /// An engine has read its ring to the end.
        EngineRingDrained: "engine-ring-drained", HangPoint, 100, Position, [IntelDebugCaptureAll];
        /// An engine is in a buffer that no command leads to.
        EngineInUnreachedBuffer: "engine-in-unreached-buffer", HangPoint, 100, Position, [IntelDebugCaptureAll];
        /// An engine is in a batch that it executes, where no valid command is.
        EngineAtInvalidCommand: "engine-at-invalid-command", HangPoint, 100, Position, [DecodeEngineStreams, IntelDebugCaptureAll];
        /// An engine is in memory that the dump does not hold.
        EngineInMissingMemory: "engine-in-missing-memory", HangPoint, 100, Position, [IntelDebugCaptureAll];
        /// Registers of an engine read as all ones.
        EngineNotResponding: "engine-not-responding", HangPoint, 90, Cause, [];
        /// Registers of an engine read as zero, so none was read.
        EngineRegistersZero: "engine-registers-zero", HangPoint, 100, Position, [];
        /// ACTHD of an engine that hangs is not in the dump.
        EnginePositionMissing: "engine-position-missing", HangPoint, 100, Position, [IntelDebugCaptureAll];
        /// A semaphore whose memory holds another value.
        SemaphoreNotSignaled: "semaphore-not-signaled", CpWait, 60, Cause, [];
        /// A semaphore that only a command after the wait signals.
        SemaphoreWaitsForItself: "semaphore-waits-for-itself", CpWait, 61, Cause, [];
        /// A semaphore whose memory is written with a value that cannot end the wait.
        SemaphoreWrongWrite: "semaphore-wrong-write", CpWait, 61, Cause, [];
        /// A semaphore whose memory holds the value that it waits for.
        SemaphoreValueIsThere: "semaphore-value-is-there", CpWait, 30, Observation, [];
        /// A semaphore whose memory is not in the dump.
        SemaphoreValueMissing: "semaphore-value-missing", CpWait, 60, Cause, [];
        /// A wait for an event of the display.
        DisplayEventWait: "display-event-wait", CpWait, 60, Cause, [];
        /// A PIPE_CONTROL stalls after a draw or dispatch.
        StallWaitsForWork: "stall-waits-for-work", CpWait, 45, Clue, [IntelDebugSync];
        /// A PIPE_CONTROL stalls after a draw or dispatch, and no unit but the command streamer has anything left to do.
        StallWithUnitsIdle: "stall-with-units-idle", CpWait, 37, Observation, [IntelDebugSync];
        /// A PIPE_CONTROL stalls without a draw or dispatch before it.
        StallWithoutWork: "stall-without-work", CpWait, 35, Observation, [IntelDebugSync];
        /// A PIPE_CONTROL flushes or invalidates caches.
        FlushAtStop: "flush-at-stop", CpWait, 34, Observation, [IntelDebugSync];
        /// The code of a shader of the work at the stop is zero.
        EuCodeZero: "eu-code-zero", CodeFault, 52, Cause, [DecodeEngineStreams];
        /// An illegal opcode, or what is not an instruction, comes before the end of the thread in a shader of the work at the stop.
        EuCodeIllegal: "eu-code-illegal", CodeFault, 51, Cause, [DecodeEngineStreams];
        /// The buffer of a shader of the work at the stop ends before the end of the thread.
        EuCodeWithoutEnd: "eu-code-without-end", CodeFault, 48, Cause, [DecodeEngineStreams];
        /// Code of a shader of the work at the stop uses a register before the scoreboard wait that it needs.
        EuCodeMissesWait: "eu-code-misses-wait", CodeFault, 42, Cause, [DecodeEngineStreams];
        /// Code of a shader of the work at the stop breaks another rule of the instruction set.
        EuCodeBreaksRule: "eu-code-breaks-rule", CodeFault, 42, Cause, [DecodeEngineStreams];
        /// The code of a shader of the work at the stop is in memory that the kernel could not read.
        EuCodeUnreadable: "eu-code-unreadable", CodeFault, 33, Clue, [];
        /// A surface of the work at the stop goes past the end of its buffer.
        SurfacePastBuffer: "surface-past-buffer", CodeFault, 46, Clue, [DecodeEngineStreams];
        /// A surface or buffer of the work at the stop is in none of the buffers in use, all of which the kernel lists.
        SurfaceNotBound: "surface-not-bound", CodeFault, 47, Clue, [DecodeEngineStreams];
        /// A page fault in memory that the dump holds.
        PageFaultInBuffer: "page-fault-in-buffer", Fault, 55, Cause, [IntelDebugBatches];
        /// A page fault shortly after the end of a buffer.
        PageFaultOverrun: "page-fault-overrun", Fault, 55, Cause, [IntelDebugBatches];
        /// A page fault shortly before the start of a buffer.
        PageFaultUnderrun: "page-fault-underrun", Fault, 55, Cause, [IntelDebugBatches];
        /// A page fault after the captured part of a buffer whose end was not captured.
        PageFaultBeyondCapture: "page-fault-beyond-capture", Fault, 55, Cause, [IntelDebugBatches];
        /// A page fault in the first pages.
        PageFaultNull: "page-fault-null", Fault, 55, Cause, [IntelDebugBatches];
        /// A page fault far from every buffer of the dump.
        PageFaultOutside: "page-fault-outside", Fault, 55, Cause, [IntelDebugBatches];
        /// A page fault whose address is not in the dump.
        PageFaultWithoutAddress: "page-fault-without-address", Fault, 55, Cause, [IntelDebugBatches];
        /// A batch that jumps back to itself, with the engine in it.
        BatchLoops: "batch-loops", CorruptStream, 61, Cause, [];
        /// IPEHR holds what is not a valid command.
        HeaderNotCommand: "header-not-command", CorruptStream, 50, Cause, [];
        /// What memory is filled with is where commands should be.
        FillInStream: "fill-in-stream", CorruptStream, 50, Cause, [];
        /// Dwords of the stream are not valid commands.
        DwordsNotCommands: "dwords-not-commands", CorruptStream, 50, Cause, [];
        /// An engine runs through zeros.
        ZerosInStream: "zeros-in-stream", CorruptStream, 50, Cause, [];
        /// The image of a context was never saved, or was cleared.
        ContextNeverSaved: "context-never-saved", CorruptStream, 50, Cause, [];
        /// The image of a context is not as the hardware saves it.
        ContextCorrupted: "context-corrupted", CorruptStream, 50, Cause, [];
        /// The device recorded an error.
        DeviceErrorRegister: "device-error-register", ErrorInterrupt, 44, Clue, [];
        /// The memory interface recorded an error.
        MemoryInterfaceError: "memory-interface-error", ErrorInterrupt, 44, Clue, [];
        /// An engine or its instruction parser raised an error.
        EngineErrorRegister: "engine-error-register", ErrorInterrupt, 44, Clue, [];
        /// Another engine that hangs, where it stopped.
        OtherEngineStopped: "other-engine-stopped", Suspect, 40, Record, [];
        /// Engines that do not hang, and have not read all there is.
        OtherEnginesNotDone: "other-engines-not-done", Suspect, 40, Record, [];
        /// Threads of EUs waited for a debugger: an exception had stopped them.
        EuThreadsNeedAttention: "eu-threads-need-attention", Busy, 38, Clue, [IntelDebugShaders];
        /// Every unit of an engine is done.
        AllUnitsDone: "all-units-done", Busy, 36, Observation, [];
        /// Only units that the tables do not have may not be done.
        UnknownUnitsNotDone: "unknown-units-not-done", Busy, 36, Observation, [IntelDebugShaders];
        /// Only the command streamer is not done.
        OnlyStreamerNotDone: "only-streamer-not-done", Busy, 36, Observation, [];
        /// Shader threads run.
        ShaderThreadsRun: "shader-threads-run", Busy, 36, Clue, [IntelDebugShaders];
        /// A sampler is not done.
        SamplerNotDone: "sampler-not-done", Busy, 36, Clue, [IntelDebugShaders];
        /// Vertex fetch is not done.
        VertexFetchNotDone: "vertex-fetch-not-done", Busy, 36, Clue, [IntelDebugShaders];
        /// A stage of the geometry pipeline is not done.
        GeometryNotDone: "geometry-not-done", Busy, 36, Clue, [IntelDebugShaders];
        /// The memory arbiter has requests open.
        MemoryArbiterNotDone: "memory-arbiter-not-done", Busy, 36, Clue, [IntelDebugShaders];
        /// Other units are not done.
        UnitsNotDone: "units-not-done", Busy, 36, Observation, [IntelDebugShaders];
        /// What was drawn, dispatched or set before the stop.
        WorkBeforeStop: "work-before-stop", InFlight, 20, Context, [];
        /// State was set before the stop, and nothing was drawn or dispatched.
        StateBeforeStop: "state-before-stop", InFlight, 20, Context, [];
        /// The kernel's code of the hang.
        KernelHangCode: "kernel-hang-code", Progress, 10, Record, [];
        /// Why the kernel made the dump.
        KernelReason: "kernel-reason", Progress, 10, Context, [];
        /// Resets before this one.
        EarlierResets: "earlier-resets", Progress, 10, Record, [];
        /// A queue that timed out.
        QueueTimedOut: "queue-timed-out", Progress, 10, Context, [];
        /// Requests that were handed to an engine and are not done.
        RequestsPending: "requests-pending", Progress, 10, Context, [];
        /// Whose context is on an engine.
        EngineRunsProcess: "engine-runs-process", Progress, 10, Context, [];
        /// Registers of a context have values that no driver sets.
        ContextOddValues: "context-odd-values", Progress, 10, Record, [];
        /// The part of a ring that a walk goes to.
        RingPartMissing: "ring-part-missing", NotCaptured, 0, Absence, [];
        /// The batch that a walk goes to.
        BatchMissing: "batch-missing", NotCaptured, 0, Absence, [];
        /// Buffers of the address space, which the kernel could not read.
        VmBuffersMissing: "vm-buffers-missing", NotCaptured, 0, Absence, [];
        /// Engines.
        EnginesMissing: "engines-missing", NotCaptured, 0, Absence, [];
        /// The generation of an Intel GPU.
        IntelGenerationUnknown: "intel-generation-unknown", NotCaptured, 0, Absence, [];
        /// The end of a block of memory.
        MemoryContentsCut: "memory-contents-cut", NotCaptured, 0, Absence, [];
        /// Ring and batch of an engine that hangs.
        RingAndBatchMissing: "ring-and-batch-missing", NotCaptured, 0, Absence, [];
        /// The context of an engine that hangs.
        ContextMissing: "context-missing", NotCaptured, 0, Absence, [];
        /// A page fault: the registers were captured, and hold none.
        NoPageFaultRecorded: "no-page-fault-recorded", NotCaptured, 0, Absence, [];
        /// The registers of page faults.
        PageFaultRegistersMissing: "page-fault-registers-missing", NotCaptured, 0, Absence, [];
    }
}

impl Rule {
    /// Its row.
    pub fn row(self) -> &'static RuleRow {
        &RULES[self as usize]
    }
}
