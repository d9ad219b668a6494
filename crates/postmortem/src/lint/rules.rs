//! The table of lint rules: what each finding means, how bad it is, and where the rule comes from.
//!
//! Never: sentences of a report; they are made in crate `view`, which matches on [`LintRule`] without a default arm.

use unwedge_check::Level;

/// A row of [`LINT_RULES`].
#[derive(Clone, Copy, Debug)]
pub struct LintRuleRow {
    /// The rule.
    pub rule: LintRule,
    /// Its identifier, the same in every version: `stale-register`.
    pub id: &'static str,
    /// What its findings mean.
    pub level: Level,
    /// What it means.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

macro_rules! lint_rules {
    ($($(#[doc = $doc:literal])* $rule:ident: $id:literal, $level:ident, $source:literal;)*) => {
        /// A reason for which lint reports something.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum LintRule {
            $($(#[doc = $doc])* $rule,)*
        }

        /// Every rule, in the order of [`LintRule`].
        pub const LINT_RULES: &[LintRuleRow] = &[
            $(LintRuleRow {
                rule: LintRule::$rule,
                id: $id,
                level: Level::$level,
                summary: concat!($($doc),*).trim_ascii(),
                source: $source,
            },)*
        ];
    };
}

lint_rules! {
    /// Work reads a register that its submit does not set, and that an earlier submit has set.
    StaleRegister: "stale-register", Warning, "freedreno documents, \"Finding instances of stale reg reads\"; data/adreno/state_uses.txt";
    /// Work reads a register that nothing in the capture has set.
    UnsetRegister: "unset-register", Warning, "freedreno documents, \"Finding instances of stale reg reads\"; data/adreno/state_uses.txt";
    /// An attachment is read, for a test or for blending, and nothing has written it.
    UnwrittenAttachment: "unwritten-attachment", Warning, "freedreno documents, \"Debugging random failures\"";
    /// A draw reads GMEM that nothing has written since the tile began.
    UnwrittenGmem: "unwritten-gmem", Warning, "freedreno documents, \"Debugging random failures\"";
    /// GMEM is loaded from memory that nothing has written. It is a fault if something uses what was loaded.
    UnwrittenLoad: "unwritten-load", Note, "freedreno documents, \"Debugging random failures\"";
    /// Memory is read that holds zeros, which either the CPU or nobody has written.
    UnwrittenRead: "unwritten-read", Note, "freedreno documents, \"Debugging random failures\"";
    /// A read does not see what was written, because a cache was not written back.
    MissingFlush: "missing-flush", Error, "freedreno documents, \"Cache hierarchy\"; the flushes of Turnip";
    /// A read does not see what was written, because its cache still holds the line from before.
    MissingInvalidate: "missing-invalidate", Error, "freedreno documents, \"Cache hierarchy\"; the flushes of Turnip";
    /// The CP reads what an event or a packet writes without waiting for the write.
    MissingWait: "missing-wait", Error, "freedreno documents, \"Pipelining\"; the waits of Turnip";
    /// A cache writes older bytes back over newer ones.
    LostWrite: "lost-write", Error, "freedreno documents, \"Cache hierarchy\"";
    /// RB_CCU_CNTL changes while a CCU holds data or work runs.
    CcuInUse: "ccu-in-use", Error, "Turnip, tu_emit_cache_flush_ccu: clean and invalidate both CCUs and wait before RB_CCU_CNTL (a6xx)";
    /// Code of a shader that the capture runs breaks a rule of the GPU.
    ShaderError: "shader-error", Error, "docs/ir3-check.md";
    /// Code of a shader that the capture runs may be wrong.
    ShaderWarning: "shader-warning", Warning, "docs/ir3-check.md";
    /// Flags and nops in shader code that nothing needs.
    ShaderWaste: "shader-waste", Note, "docs/ir3-check.md";
    /// Registers are written with the values that they already have.
    RedundantState: "redundant-state", Note, "what the submit executes";
    /// An event cleans or invalidates a cache that has nothing for it to do.
    NeedlessFlush: "needless-flush", Note, "what the submit executes; caches that are not modelled do not count";
    /// CP_WAIT_FOR_IDLE with nothing to wait for.
    NeedlessWait: "needless-wait", Note, "what the submit executes";
    /// A submit that was not executed to its end, so that what follows is not judged.
    NotJudged: "not-judged", Note, "what the capture holds";
}

impl LintRule {
    /// Its row.
    pub fn row(self) -> &'static LintRuleRow {
        // The table has the order of the enum.
        &LINT_RULES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_of_their_rules() {
        for (at, row) in LINT_RULES.iter().enumerate() {
            assert_eq!(row.rule as usize, at);
            assert!(row.summary.ends_with('.') && !row.source.is_empty(), "{}", row.id);
            assert_eq!(LINT_RULES.iter().filter(|other| other.id == row.id).count(), 1, "{}", row.id);
        }
    }
}
