//! The entities of a program.

unwedge_base::entity! {
    /// A block.
    pub struct Block = "B";
    /// An instruction.
    pub struct Inst = "i";
    /// A temporary: an SSA value with a register class.
    pub struct Temp = "%";
    /// A structured instruction of the source that its blocks belong to.
    pub struct Construct = "c";
}
