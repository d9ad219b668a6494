//! Which optional phases run, and what is checked between phases. ACO has names for most of these options.

/// Which optional phases and checks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    /// Value numbering.
    pub numbering: bool,
    /// Combining of instructions.
    pub combining: bool,
    /// Combining stops after this many changes of instructions.
    pub combinations: Option<u32>,
    /// Scheduling.
    pub scheduling: bool,
    /// Optimization after allocation.
    pub forwarding: bool,
    /// Branches over few instructions and unread changes of `exec` are left out.
    pub skips: bool,
    /// Two vector instructions become one.
    pub dual: bool,
    /// Memory accesses form clauses.
    pub clauses: bool,
    /// `s_delay_alu` is inserted.
    pub delays: bool,
    /// The IR is checked after each phase.
    pub validate_ir: bool,
    /// Registers of every operand are checked after allocation.
    pub validate_registers: bool,
    /// Each instruction waits for everything that is pending.
    pub all_waits: bool,
    /// Causes of slow code are reported.
    pub warnings: bool,
}

impl Default for Passes {
    fn default() -> Passes {
        Passes {
            numbering: true,
            combining: true,
            combinations: None,
            scheduling: true,
            forwarding: true,
            skips: true,
            dual: true,
            clauses: true,
            delays: true,
            validate_ir: false,
            validate_registers: false,
            all_waits: false,
            warnings: false,
        }
    }
}

/// An option: its name, what it does, and how it does it.
#[derive(Debug, Clone, Copy)]
pub struct PassOption {
    /// The name: ACO's, where it has one.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    set: fn(&mut Passes),
}

macro_rules! options {
    ($($name:literal $help:literal $field:ident = $value:literal;)+) => {
        &[$(PassOption { name: $name, help: $help, set: |passes| passes.$field = $value },)+]
    };
}

/// All options. Those that leave out a phase are in the order of the phases.
pub const OPTIONS: &[PassOption] = options! {
    "novn" "no value numbering" numbering = false;
    "noopt" "no combining of instructions" combining = false;
    "nosched" "no scheduling" scheduling = false;
    "noforward" "no optimization after allocation" forwarding = false;
    "noskips" "keep branches that are not needed or go over few instructions, and changes of exec that nothing reads" skips = false;
    "nosched-vopd" "no dual instructions" dual = false;
    "noclauses" "no clauses of memory accesses" clauses = false;
    "nodelay" "no s_delay_alu" delays = false;
    "validateir" "check the IR after each phase" validate_ir = true;
    "validatera" "check registers after allocation" validate_registers = true;
    "force-waitcnt" "wait for everything pending before each instruction" all_waits = true;
    "perfwarn" "report what makes the code slow" warnings = true;
};

/// An unknown name of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown option `{0}`; known are {known}", known = names())]
pub struct UnknownOption(String);

fn names() -> String {
    let names: Vec<&str> = OPTIONS.iter().map(|option| option.name).collect();
    names.join(", ")
}

impl Passes {
    /// Sets the option of a name; `None` if it is unknown.
    #[must_use]
    pub fn with(mut self, name: &str) -> Option<Passes> {
        let option = OPTIONS.iter().find(|option| option.name == name)?;
        (option.set)(&mut self);
        Some(self)
    }
}

impl std::str::FromStr for Passes {
    type Err = UnknownOption;

    /// The options of a comma-separated list of names.
    fn from_str(list: &str) -> Result<Passes, UnknownOption> {
        let mut passes = Passes::default();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            passes = passes.with(name).ok_or_else(|| UnknownOption(name.to_owned()))?;
        }
        Ok(passes)
    }
}
