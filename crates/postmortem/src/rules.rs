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
    // Intel.
}

rules! {
    // ---- Adreno ----
    /// The dump names no GPU that the tables have.
    UnknownGpu: "unknown-gpu", NotCaptured, ADRENO, 0, false, [];

    // ---- AMD ----

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
