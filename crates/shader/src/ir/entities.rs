//! The names of what a shader consists of.

unwedge_base::entity! {
    /// An SSA value of a function: the result of an instruction or the parameter of a region.
    pub struct Value = "%";
    /// An instruction of a function.
    pub struct Inst = "i";
    /// A sequence of instructions of a function: a function's body, the body of a `block` or a `loop`, an arm of an `if`.
    pub struct Region = "region";
    /// A function of a shader.
    pub struct Func = "f";
    /// A variable of a shader.
    pub struct Var = "v";
    /// A descriptor binding of a shader.
    pub struct Resource = "r";
    /// A node of the type trees of variables.
    pub struct TypeId = "t";
    /// A position in the source that the shader was compiled from.
    pub struct Loc = "!";
}
